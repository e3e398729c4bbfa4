"""h5bench's kind ``e3sm``: E3SM-IO, the history files of a climate model, in blobs through HDF5.

The runner always asks for HDF5 and blobs, and drops options without a value (``k`` of its own sample: the files are gone at
the end). ``r`` is the records of one of the two files only. Its bandwidths are of the slowest rank's times, from barrier to
barrier (open-to-close) and in closing, where blobs are written (write-only); the time slept between records would count. Bytes
have two decimals of a MiB, and cannot be worked out from the options: the files on disk have to hold them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
from iogauge.adapters.upstream import Job, Launch, Pattern, Printed, agree, printed, repeat, whole
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement, Repeat

_FLAGS = ("k", "v", "u", "j", "m", "q")
_NUMBERS = {"r": (1, 100000), "f": (-1, 1), "y": (-1, 100000), "e": (1, 1000)}
#: The runner sets them itself, or leaves them out.
_RUNNERS = ("a", "x", "o", "i")
_MAP = re.compile(r"map_([fgi])_case_\w+\.(?:h5|nc|nc4|bp)")


@dataclass(frozen=True)
class E3sm(Benchmark):
    """Its options; ``map`` is the decomposition file, on the ranks' nodes."""

    file: str
    map: str
    values: Mapping[str, str]
    kind: str = "e3sm"

    @property
    def program(self) -> str:
        """As h5bench names it."""
        return "h5bench_e3sm"

    def words(self, configuration: str) -> list[str]:
        """As the runner puts them together; its files are always kept, to be looked at."""
        found = []
        for key, value in self.values.items():
            found += [f"-{key}"] if key in _FLAGS else [f"-{key}", value]
        return [*found, "-k", "-a", "hdf5", "-x", "blob", "-o", self.file, self.map]

    @property
    def case(self) -> str:
        """F (atmosphere), G (ocean) or I (land), after the map's name."""
        match = _MAP.fullmatch(Path(self.map).name)
        return match[1].upper() if match else ""

    @property
    def outputs(self) -> list[str]:
        """The history files, in the order of its report."""
        if self.case == "G":
            return ["history"]
        one = self.values.get("f", "-1")
        return ["h0", "h1"] if one == "-1" else [f"h{one}"]

    def file_bytes(self, ranks: int) -> int:
        """Unknown before the run: the F case of 16 processes has 32 MiB, and 1 MiB a record."""
        records, factor = int(self.values.get("r", "1")), int(self.values.get("e", "1"))
        return (128 + 8 * records) * factor << 20

    def announced(self, own: str = "") -> list[Announced]:
        """A write of each history file."""
        pattern: Pattern = {
            "kind": self.kind,
            "case": self.case,
            "map": Path(self.map).name,
            "records": int(self.values.get("r", "1")),
            "factor": int(self.values.get("e", "1")),
            "options": "".join(flag for flag in _FLAGS[2:] if flag in self.values),
        }
        pattern = own_pattern(pattern, own)
        return [Announced("write", pattern | {"output": output}, collective=False) for output in self.outputs]

    def measurements(self, job: Job, launches: Sequence[Launch], *, own: str = "") -> list[Measurement]:
        """A write of each history file."""
        reports = []
        for launch in launches:
            launch.check(self.program, r"^Error\b", r"\bError (?:in|at)\b")
            found = read_stdout(launch.stdout, self.case, launch.name)
            if len(found) != len(self.outputs):
                raise Refusal(f"{launch.name}: {len(found)} reports, {len(self.outputs)} are expected")
            for report in found:
                job.check_ranks(self.program, report.ranks)
                size_on_disk(launch, re.escape(report.file) + r"\.\d{4}", report.bytes, report.file)
            reports.append(found)
        measurements = []
        for number, series in enumerate(self.announced(own)):
            sizes = {found[number].bytes for found in reports}
            if len(sizes) > 1:
                raise Refusal(f"h5bench: e3sm's launches moved {min(sizes)} to {max(sizes)} bytes")
            measurements.append(
                measured(
                    job,
                    series,
                    [found[number].repeat for found in reports],
                    logical_bytes=sizes.pop(),
                    file_bytes=max(found[number].bytes for found in reports),
                )
            )
        return measurements


def check(file: str, values: Mapping[str, Any], where: str, folder: Path) -> E3sm:
    """Raises :class:`InputError`. A map without an absolute path is looked for from ``folder``."""
    texts = texts_of(values, where)
    map_ = texts.pop("map", "")
    if _MAP.fullmatch(Path(map_).name) is None:
        raise InputError(
            f"{map_!r}: one of E3SM-IO's own files is expected, map_f_case_16p.h5 or the like: its name tells the case",
            file=where,
            key="map",
        )
    # As the runner does: what has no value is left out.
    kept = {key: text for key, text in texts.items() if text and key not in _RUNNERS}
    for key, text in kept.items():
        if key == "t":
            raise InputError("the time slept would count as I/O; leave it out", file=where, key=key)
        if key in _NUMBERS:
            least, most = _NUMBERS[key]
            if re.fullmatch(r"-?\d{1,6}", text, re.ASCII) is None or not least <= int(text) <= most:
                raise InputError(f"{text!r}; allowed: {least} to {most}", file=where, key=key)
        elif key in _FLAGS:
            raise InputError(f"{text!r}: it takes no value", file=where, key=key)
        else:
            allowed = ", ".join([*_NUMBERS, "map"])
            raise InputError(f"is not understood here; allowed: {allowed}", file=where, key=key)
    return E3sm(plain_name(file, where), str((folder / map_).resolve()), kept)


@dataclass(frozen=True)
class Report:
    """Of one history file."""

    file: str
    ranks: int
    bytes: int
    repeat: Repeat


_TIME = r"^{} +min/max = +(\S+) / +(\S+)$"
_LINES = {
    "file": r"^History output subfile names       = (\S+)\.\d{4}\.xxxx$",
    "ranks": r"^Total number of MPI processes      = (\S+)$",
    "amount": r"^Total write amount                 = (\S+) MiB = \S+ GiB$",
    "open": _TIME.format("Time of file open/create"),
    "close": _TIME.format("Time of close"),
    "total": _TIME.format("end-to-end time"),
    "slept": _TIME.format(r"Emulate computation time \(sleep\)"),
    "raw": r"^I/O bandwidth in MiB/sec \(write-only\)      = (\S+)$",
    "observed": r"^I/O bandwidth in MiB/sec \(open-to-close\)   = (\S+)$",
}


def read_stdout(text: str, case: str, what: str = "h5bench") -> list[Report]:
    """A report for each history file. Raises :class:`Refusal`."""
    parts = re.split(r"^==== Benchmarking (\w+) case =+$", text, flags=re.MULTILINE)[1:]
    if not parts:
        raise Refusal(f"{what}: it printed no report")
    if re.search(r"^init=\S+ read_decomp=\S+ e3sm_io_core=\S+ end-to-end=\S+$", text, re.MULTILINE) is None:
        raise Refusal(f"{what}: its report has no end")
    if set(parts[::2]) != {case}:
        raise Refusal(f"{what}: a report of case {parts[0][:10]}, {case} was asked for")
    return [_report(part, what) for part in parts[1::2]]


def _report(text: str, what: str) -> Report:
    found = {}
    for name, pattern in _LINES.items():
        matches = re.findall(pattern, text, re.MULTILINE)
        if len(matches) != 1:
            raise Refusal(f"{what}: {len(matches)} lines tell {name}, where one is expected")
        found[name] = matches[0]
    if "==== HDF5 blob I/O =" not in text:
        raise Refusal(f"{what}: it did not write HDF5 blobs")
    times = {name: _slowest(found[name], f"{what}: {name}") for name in ("open", "close", "total", "slept")}
    if times["slept"].value:
        raise Refusal(f"{what}: it slept {times['slept'].value:g} s, which its times count")
    amount = printed(found["amount"], f"{what}: amount")
    if not amount.known:
        raise Refusal(f"{what}: {amount.value:g} MiB are too few for the decimals they are told with")
    bytes_ = round((amount.value - amount.slack) * 2**20)
    for rate, time in (("observed", "total"), ("raw", "close")):
        told = printed(found[rate], f"{what}: {rate} rate")
        spread = 2 * amount.slack / amount.value * told.value
        agree(bytes_, Printed(told.value, told.slack + spread), times[time], f"{what}: {rate}")
    return Report(
        file=Path(found["file"]).name,
        ranks=whole(found["ranks"], f"{what}: ranks", 1),
        bytes=bytes_,
        repeat=repeat(
            total=times["total"],
            transfer=times["close"],
            phases={"open": times["open"]},
            what=what,
        ),
    )


def _slowest(pair: Sequence[str], what: str) -> Printed:
    least, most = (printed(text, what) for text in pair)
    if least.value > most.value:
        raise Refusal(f"{what}: the least is above the most")
    return most
