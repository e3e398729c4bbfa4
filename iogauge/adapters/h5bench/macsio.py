"""h5bench's kind ``macsio``: LLNL's MACSio, dumps of a mesh with its variables through its HDF5 plug-in.

Its "Stat BW" counts a shared file once for every rank, its "Summed BW" adds rates of ranks that did not write at the same
time, and "Last finisher - First starter" subtracts clocks of different nodes. True of each rank are its own bytes and the
seconds in its dumps, which its log tells at the end: the slowest rank's seconds are taken, and all ranks' bytes. Those are of
the objects in memory: the files on disk have to hold as much. Units scale by themselves; nothing is synced or verified.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iogauge.adapters.h5bench.benchmark import (
    Announced,
    Benchmark,
    measured,
    own_pattern,
    plain_name,
    size_on_disk,
    texts_of,
)
from iogauge.adapters.upstream import Job, Launch, Pattern, Printed, agree, printed, repeat
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement

_LOG = "macsio.log"

#: What a value has to look like.
_KEYS = {
    "parallel_file_mode": (r"(MIF|SIF) ([1-9]\d{0,5})", "MIF or SIF and the number of files"),
    "part_size": (r"([1-9]\d{0,11})([BKMG]?)", "a number and B, K, M or G, without a blank"),
    "avg_num_parts": (r"[1-9]\d{0,5}", "a whole number of parts a rank"),
    "vars_per_part": (r"[1-9]\d{0,4}", "a whole number of 1 or more"),
    "part_dim": (r"[123]", "1, 2 or 3"),
    "part_type": (r"rectilinear", "rectilinear, the only one that there is"),
    "num_dumps": (r"[1-9]|[12]\d|30", "1 to 30: of more its log keeps no result"),
}
#: The runner sets them itself.
_RUNNERS = ("filebase", "interface", "log_file_name", "timings_file_name")
_SIZES = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_BYTES = {"b": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50}
_SECONDS = {"nsecs": 1e-9, "usecs": 1e-6, "msecs": 1e-3, "secs": 1.0, "mins": 60.0, "hrs": 3600.0}

#: Objects in memory against files on disk: meshes have names and attributes.
_LEAST_ON_DISK = 0.99


@dataclass(frozen=True)
class Macsio(Benchmark):
    """Its command line, as far as it can be judged."""

    file: str
    values: Mapping[str, str]
    kind: str = "macsio"

    @property
    def program(self) -> str:
        """As h5bench names it."""
        return "h5bench_macsio"

    @property
    def base(self) -> str:
        """What its files' names begin with."""
        return self.file.replace(".h5", "")

    def words(self, configuration: str) -> list[str]:
        """As the runner puts them together; without a folder."""
        found = [word for key, value in self.values.items() for word in (f"--{key}", *value.split())]
        found += ["--interface", "hdf5", "--filebase", self.base]
        return [*found, "--log_file_name", _LOG, "--timings_file_name", "macsio-timings.log"]

    @property
    def results(self) -> list[str]:
        """All ranks' log."""
        return [_LOG]

    @property
    def before(self) -> list[str]:
        """The number of files may be another one."""
        return [f"rm -f {self.base}_hdf5_*.h5"]

    def _number(self, key: str, default: int) -> int:
        return int(self.values.get(key, default))

    @property
    def mode(self) -> tuple[str, int]:
        """Independent files or one shared by a group, and how many."""
        name, files = self.values.get("parallel_file_mode", "MIF 4").split()
        return name, int(files)

    @property
    def part_bytes(self) -> int:
        """Of a variable on a part of the mesh, about."""
        number, unit = re.fullmatch(_KEYS["part_size"][0], self.values.get("part_size", "80000")).groups()  # type: ignore[union-attr]
        return int(number) * _SIZES[unit]

    def file_bytes(self, ranks: int) -> int:
        """Of all dumps."""
        variables = self._number("vars_per_part", 20) * self._number("avg_num_parts", 1)
        return int(1.2 * self._number("num_dumps", 10) * ranks * self.part_bytes * (variables + 2)) + (4 << 20)

    def announced(self, own: str = "") -> list[Announced]:
        """Writing alone."""
        mode, files = self.mode
        pattern: Pattern = {
            "kind": self.kind,
            "mode": mode,
            "files": files,
            "part_bytes": self.part_bytes,
            "parts_per_rank": self._number("avg_num_parts", 1),
            "variables": self._number("vars_per_part", 20),
            "dimensions": self._number("part_dim", 2),
            "dumps": self._number("num_dumps", 10),
        }
        return [Announced("write", own_pattern(pattern, own), collective=mode == "SIF")]

    def measurements(self, job: Job, launches: Sequence[Launch], *, own: str = "") -> list[Measurement]:
        """One measurement."""
        repeats, sizes = [], []
        for launch in launches:
            launch.check(self.program, r"\bERROR\b", r"^(?:Die|Err):")
            moved, slowest = read_log(launch.text(_LOG), job.ranks, launch.name)
            size_on_disk(launch, rf"{re.escape(self.base)}_hdf5_.*\.h5", int(moved * _LEAST_ON_DISK), "its files")
            repeats.append(repeat(total=slowest, what=launch.name))
            sizes.append(moved)
        if len(set(sizes)) > 1:
            raise Refusal(f"h5bench: macsio's launches moved {min(sizes)} to {max(sizes)} bytes")
        series = self.announced(own)[0]
        return [measured(job, series, repeats, logical_bytes=sizes[0], file_bytes=sizes[0])]


def check(file: str, values: Mapping[str, Any], where: str) -> Macsio:
    """Raises :class:`InputError` for what it does not know, or what its log could not be judged with."""
    texts = {key: text for key, text in texts_of(values, where).items() if text and key not in _RUNNERS}
    for key, text in texts.items():
        if key not in _KEYS:
            raise InputError(f"is not understood here; allowed: {', '.join(_KEYS)}", file=where, key=key)
        pattern, expected = _KEYS[key]
        if re.fullmatch(pattern, text, re.ASCII) is None:
            raise InputError(f"{text!r}: {expected} is expected", file=where, key=key)
    return Macsio(plain_name(file, where), texts)


_RANK = re.compile(r"-+Processor (\d{6})-+")
_OVERALL = re.compile(r".*:Overall BW: *(\S+) (\S+)/ *(\S+) (\S+) = *(\S+) (\S+)/sec:::")
_TOTAL = re.compile(r".*:Total Bytes: *(\S+) (\S+);.*")


def read_log(text: str, ranks: int, what: str = "h5bench") -> tuple[int, Printed]:
    """Bytes of all ranks and seconds of the slowest. Raises :class:`Refusal` unless every rank tells its own once."""
    ends: dict[int, list[tuple[Printed, Printed]]] = {}
    totals = []
    for line in (line.strip() for line in text.splitlines()):
        if match := _RANK.fullmatch(line):
            if int(match[1]) != len(ends):
                raise Refusal(f"{what}: {_LOG} has rank {int(match[1])} where {len(ends)} is expected")
            ends[len(ends)] = []
        elif (match := _OVERALL.fullmatch(line)) and ends:
            moved = _scaled(match[1], match[2], _BYTES, what)
            time = _scaled(match[3], match[4], _SECONDS, what)
            rate = _scaled(match[5], match[6], _BYTES, what)
            agree(round(moved.value), Printed(rate.value / 2**20, (rate.slack + moved.slack) / 2**20), time, what)
            ends[len(ends) - 1].append((moved, time))
        elif match := _TOTAL.fullmatch(line):
            totals.append(_scaled(match[1], match[2], _BYTES, what))
    told = sum(len(found) == 1 for found in ends.values())
    if told != ranks or len(ends) != ranks or len(totals) != 1:
        raise Refusal(f"{what}: {_LOG} tells the results of {told} of {ranks} ranks")
    bytes_, seconds = zip(*(found[0] for found in ends.values()), strict=True)
    sum_, slack = sum(b.value for b in bytes_), sum(b.slack for b in bytes_)
    if abs(totals[0].value - sum_) > (totals[0].slack + slack) * 1.001:
        raise Refusal(f"{what}: {totals[0].value:.0f} bytes altogether are not the {sum_:.0f} of its ranks")
    return round(totals[0].value), max(seconds, key=lambda time: time.value)


def _scaled(figure: str, unit: str, units: Mapping[str, float], what: str) -> Printed:
    if unit not in units:
        raise Refusal(f"{what}: an unknown unit {unit[:10]!r}")
    found = printed(figure, what)
    return Printed(found.value * units[unit], found.slack * units[unit])
