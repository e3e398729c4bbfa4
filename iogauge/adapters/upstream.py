"""What the adapters of the upstream benchmarks share: what a launch left, signs that it failed, printed figures, the record.

An upstream benchmark's exit code and printed rate are never believed alone. Its adapter takes what a launch left behind and
gives a :class:`Measurement`, all of whose rates follow from bytes and seconds, or raises :class:`Refusal` with the reason.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from iogauge.adapters.kernel import read_records
from iogauge.errors import Refusal
from iogauge.measurement import Measurement, Program, Repeat

Interface = Literal["hdf5", "mpiio", "posix", "netcdf", "zarr"]
Pattern = dict[str, str | bool | int | float | list[int]]

#: A time of which not even this part is known (half a unit of its last place) is too short for its decimals.
COARSEST_FRACTION = 0.05

#: Exit code of ``timeout`` when the time was over.
TIMED_OUT = (124, 137)

#: What no launch that went well says, on whichever stream. Libraries' warnings about networks and the like are no sign.
_FAILED = re.compile(
    r"HDF5-DIAG: Error detected.*|MPI_ABORT was invoked.*|.*\bMPI_ERR_\w+.*|.*Segmentation fault.*|.*Assertion .*failed.*"
    r"|Fortran runtime error: .*|.*No space left on device.*|.*[Dd]isk quota exceeded.*|.*Input/output error.*"
    r"|.*(?:exiting improperly|exited with non-zero status|terminated by signal|exited on signal).*|(?:\[[^]]*\] )?\*\*\* .*",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Launch:
    """What one launch of a program left.

    ``exit_code`` is ``None`` when it did not come to its end. ``texts`` are the result files that it was told to write, by
    name; ``files`` the sizes in bytes of all other files it left in the case's folder. ``cached_before_drop`` and
    ``cached_fraction`` are the part of the files' pages in memory before and after they were asked to leave, just before the
    launch; ``cached_after`` that after the launch. ``None``: not looked at, as with outputs that somebody kept.
    """

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, int] | None = None
    cached_before_drop: float | None = None
    cached_fraction: float | None = None
    cached_after: float | None = None
    name: str = "the launch"
    kept: bool = False

    def text(self, name: str) -> str:
        """A result file's text. Raises :class:`Refusal` when there is none or nothing in it."""
        found = self.texts.get(name, "")
        if not found.strip():
            raise Refusal(f"{self.name}: {name} {'is empty' if name in self.texts else 'was not written'}")
        return found

    def check(self, program: str, *more: str) -> None:
        """Raises :class:`Refusal` when the exit code or a word on a stream says that it failed; ``more``: the program's own
        words for it, on stdout or stderr.
        """
        said = self.complaint(*more)
        because = f": {said}" if said else ""
        if self.exit_code is None:
            raise Refusal(f"{self.name}: {program} did not come to its end{because}")
        if self.exit_code in TIMED_OUT:
            raise Refusal(f"{self.name}: {program} was ended after its time limit{because}")
        if self.exit_code:
            last = "" if said else _last_line(self.stderr)
            raise Refusal(f"{self.name}: {program} ended with exit code {self.exit_code}{because or last}")
        if said:
            raise Refusal(f"{self.name}: {program} ended with exit code 0, but said{because}")

    def complaint(self, *more: str) -> str:
        """The first line that is a sign of failure, rather the program's own than the launcher's; empty: none."""
        own = [re.compile(rf"^.*(?:{one}).*$", re.MULTILINE) for one in more]
        for pattern in (*own, _FAILED):
            for text in (self.stderr, self.stdout):
                found = pattern.search(text)
                if found:
                    return " ".join(found[0].split())[:200]
        return ""


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" -")]
    return f": {lines[-1][:200]}" if lines else ""


def load_launch(stage: Path, number: int, *, name: str, results: Sequence[str] = ()) -> Launch:
    """The launch that ``reframe_checks/src/upstream.sh`` kept in ``stage`` under ``number``; ``results``: its ``texts``."""

    def kept(kind: str) -> str:
        path = stage / f"launch-{number}.{kind}"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    code = kept("code").strip()
    cached = _cached(kept("cached"), name)
    texts = {result: kept(result) for result in results if (stage / f"launch-{number}.{result}").exists()}
    return Launch(
        stdout=kept("out"),
        stderr=kept("err"),
        exit_code=int(code) if re.fullmatch(r"\d{1,3}", code) else None,
        texts=texts,
        files=dict(_sizes(kept("files"))),
        cached_before_drop=cached.get("before"),
        cached_fraction=cached.get("dropped"),
        cached_after=cached.get("after"),
        name=name,
    )


def _sizes(listing: str) -> Iterator[tuple[str, int]]:
    for line in listing.splitlines():
        size, _, name = line.partition(" ")
        if size.isdecimal() and name:
            yield name, int(size)


def _cached(text: str, name: str) -> dict[str, float | None]:
    """The largest of all hosts' fractions at each look; unknown where one host does not tell."""
    found: dict[str, list[float | None]] = {}
    for line in text.splitlines():
        try:
            look = json.loads(line)
            found.setdefault(str(look["look"]), []).append(look["fraction"])
        except (ValueError, KeyError, TypeError) as error:
            raise Refusal(f"{name}: the page cache's state is not told: {line[:100]!r}") from error
    known = {look: [f for f in fractions if isinstance(f, float | int)] for look, fractions in found.items()}
    return {look: max(known[look]) if len(known[look]) == len(found[look]) else None for look in found}


@dataclass(frozen=True)
class Job:
    """What the check knows of its job: the record of the kernel that ran first, with the same launcher options.

    That record proves how many ranks the launcher starts and where it puts them; upstream benchmarks tell neither cores nor,
    most of them, hosts.
    """

    probe: Measurement

    @classmethod
    def load(cls, path: Path) -> Job:
        """Raises :class:`Refusal` when the record is missing or not true."""
        try:
            return cls(read_records(path)[0])
        except Refusal as refusal:
            raise Refusal(f"the placement is not proven: {refusal}") from refusal

    @property
    def ranks(self) -> int:
        """Of MPI's world."""
        return self.probe.ranks

    def check_ranks(self, program: str, ranks: int) -> None:
        """Raises :class:`Refusal` unless the benchmark had as many ranks as the launcher starts."""
        if ranks != self.ranks:
            raise Refusal(
                f"{program} ran on {_count(ranks)}, the launcher started {self.ranks}: does the launcher belong to the MPI "
                f"library that it was built with?"
            )


def _count(ranks: int) -> str:
    return f"{ranks} rank" + ("" if ranks == 1 else "s")


@dataclass(frozen=True)
class Printed:
    """A number as it was printed: what it is, and half a unit of its last place."""

    value: float
    slack: float

    @property
    def known(self) -> bool:
        """Well enough for a rate."""
        return self.value > 0 and self.slack <= self.value * COARSEST_FRACTION


_NUMBER = re.compile(r"\d{1,18}(?:\.(\d{1,20}))?(?:[eE]([+-]?\d{1,3}))?", re.ASCII)


def printed(text: str, what: str) -> Printed:
    """A printed figure that is not negative. Raises :class:`Refusal` for all else: signs, NaN, inf, units."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise Refusal(f"{what}: {text.strip()[:40]!r} is no number")
    if not math.isfinite(float(text)):
        raise Refusal(f"{what}: {text.strip()[:40]!r} is too large")
    return Printed(float(text), 0.5 * 10.0 ** (int(match[2] or 0) - len(match[1] or "")))


def whole(text: str, what: str, least: int = 0) -> int:
    """A printed whole number. Raises :class:`Refusal`."""
    if re.fullmatch(r"\d{1,18}", text.strip(), re.ASCII) is None or int(text) < least:
        raise Refusal(f"{what}: {text.strip()[:40]!r} is no whole number of {least} or more")
    return int(text)


def agree(bytes_: int, rate_mib_s: Printed, seconds: Printed, what: str) -> None:
    """Raises :class:`Refusal` unless a printed rate is the bytes over the printed seconds, as far as they were printed."""
    mib = bytes_ / 2**20
    least = mib / (seconds.value + seconds.slack) - rate_mib_s.slack
    most = mib / (seconds.value - seconds.slack) + rate_mib_s.slack if seconds.value > seconds.slack else float("inf")
    if not least * 0.999 <= rate_mib_s.value <= most * 1.001:
        raise Refusal(f"{what}: {rate_mib_s.value:g} MiB/s is not {bytes_} bytes in {seconds.value:g} s")


def repeat(
    *,
    total: Printed,
    transfer: Printed | None = None,
    phases: Mapping[Literal["open", "flush", "close"], Printed] | None = None,
    verified_bytes: int = 0,
    verified_operations: int = 0,
    cached: tuple[float | None, float | None] = (None, None),
    what: str,
) -> Repeat:
    """One repeat. A transfer time that was printed too coarsely is left out; a total so printed is refused.

    ``cached``: of a read, the part of the pages in memory before they were asked to leave, and when it began. A total below
    its longest phase by no more than rounding is taken to be that phase. Raises :class:`Refusal`.
    """
    if not total.known:
        raise Refusal(
            f"{what}: {total.value:g} s are too short for the decimals they are told with; make the case larger"
        )
    found = dict(phases or {})
    longest = max([*found.values(), *([] if transfer is None else [transfer])], key=lambda p: p.value, default=total)
    if longest.value - longest.slack > (total.value + total.slack) * (1 + 1e-9):
        raise Refusal(f"{what}: {longest.value:g} s of a phase in {total.value:g} s altogether")

    def told(printed: Printed | None) -> float | None:
        return None if printed is None else printed.value

    return Repeat(
        open_seconds=told(found.get("open")),
        transfer_seconds=told(transfer) if transfer is not None and transfer.known else None,
        flush_seconds=told(found.get("flush")),
        close_seconds=told(found.get("close")),
        total_seconds=max(total.value, longest.value),
        prepare_seconds=None,
        least=None,
        verified_bytes=verified_bytes,
        verified_operations=verified_operations,
        mismatches=0,
        cached_fraction_before_drop=cached[0],
        cached_fraction=cached[1],
    )


def record(job: Job, program: Program, repeats: Sequence[Repeat], **fields: Any) -> Measurement:
    """The measurement: ``fields`` are the benchmark's own, the placement is the job's. Raises :class:`Refusal`."""
    probe = job.probe
    try:
        return Measurement(
            **{
                "schema": "iogauge.measurement/1",
                "sweep": None,
                "program": program,
                "role": "main",
                "differs": {},
                "operations": 0,
                "ranks": probe.ranks,
                "hosts": probe.hosts,
                "read_shift": None,
                "seed": None,
                "started": probe.started,
                "repeats": tuple(repeats),
                "placement": probe.placement,
                "software": probe.software.model_copy(
                    update={"hdf5": fields.pop("hdf5"), "netcdf": None, "kernels": None, "compiler": None}
                ),
                **fields,
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise Refusal(f"{program.name}: {where or 'record'}: {first['msg']}") from error
