"""The record of one night: what ReFrame's run report says, judged, with the machine it ran on."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from iogauge.assess.record import Assessment
from iogauge.darshan.overhead import spread
from iogauge.errors import InputError
from iogauge.judge import Judgement, Row, invalid, skipped
from iogauge.machine import Machine
from iogauge.measurement import Software
from iogauge.validation import read_record
from iogauge.verdict import VERDICTS, Told, Verdict, told

#: Nights that a series needs before a site band can be fitted to it (docs/reading-a-verdict.md).
NIGHTS_FOR_A_REFERENCE = 14


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Case(_Record):
    """One ReFrame test case. ``built_by`` says where its program comes from: a Spack spec, or why it is none; ``software`` is
    what its records name, and none where it has no records."""

    name: str
    file_system: str
    nodes: int
    ranks_per_node: int
    judgement: Judgement
    seconds: float | None
    stage: str
    partition: str = ""
    environ: str = ""
    built_by: str = ""
    software: Software | None = None


class Night(_Record):
    """One run of a suite. ``complete`` is false when it was stopped; ``cause`` then says by what. ``notes`` are what could
    not be looked at before the cases were submitted, and what could not be cleared away. ``as_of``: the time at which it is
    taken to have begun, where that was given; ``started`` is the same, and ``finished`` was moved with it. A second run of a
    night names the first one's folder, ``first_run``, and the date of their night, ``of_night``. ``assessment`` is what all
    nights make of this one; it lies beside the record (:mod:`iogauge.combined`)."""

    schema_: Literal["iogauge.night/1"] = Field(default="iogauge.night/1", alias="schema")
    site: str
    suite: str
    started: datetime
    finished: datetime
    as_of: AwareDatetime | None = None
    of_night: date | None = None
    first_run: str = ""
    complete: bool
    cause: str = ""
    build_failure: str = ""
    selected: int
    machine: Machine
    software: Software | None
    cases: tuple[Case, ...]
    removed_folders: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    earlier_nights: dict[str, int] = {}
    assessment: Assessment | None = Field(default=None, exclude=True)

    @property
    def night_date(self) -> date:
        """By the clock of this machine; of a second run that of the first."""
        return self.of_night or night_of(self.started.astimezone())

    @property
    def rows(self) -> Iterator[tuple[Case, Row]]:
        """Every series measured, with its case; baselines left out."""
        for case in self.cases:
            for row in case.judgement.main_rows:
                yield case, row

    @property
    def told(self) -> Iterator[tuple[Case, Row, Told]]:
        """The same with the verdict on each."""
        tonight = self.assessment.tonight if self.assessment else ()
        states = {(state.key, state.fingerprint): state for state in tonight}
        for case, row in self.rows:
            young = f"{self.nights_of(row.key)} of {NIGHTS_FOR_A_REFERENCE} nights"
            yield case, row, told(row, states.get((row.key, row.fingerprint)), young)

    @property
    def built_by(self) -> dict[str, int]:
        """Where the programs of the cases come from, each with the number of its cases, in their order."""
        return dict(Counter(case.built_by for case in self.cases if case.built_by))

    @property
    def counts(self) -> dict[Verdict, int]:
        """Series by verdict, worst first; an invalid case without rows counts once, and so does one that was skipped."""
        found: Counter[Verdict] = Counter(verdict.word for _, _, verdict in self.told)
        found.update(case.judgement.verdict for case in self.cases if not case.judgement.rows)
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def exit_code(self) -> int:
        """0: nothing is slower but what is known; 1: something is, or is invalid; 2: nothing, or not all, was measured."""
        if self.build_failure or not self.complete or all(c.judgement.verdict == "skipped" for c in self.cases):
            return 2
        whole = self.assessment.slower_as_a_whole if self.assessment else ()
        return 1 if whole or self.counts["invalid"] or any(verdict.alarm for _, _, verdict in self.told) else 0

    @property
    def overhead(self) -> str:
        """What Darshan cost, over all cases that were run with it and without; empty: none was."""
        profiles = [case.judgement.profile for case in self.cases]
        return spread(overhead for profile in profiles if profile is not None for overhead in profile.overhead)

    def nights_of(self, key: str) -> int:
        """Nights on which the series was measured, this one included."""
        return self.earlier_nights.get(key, 0) + 1

    def save(self, path: Path) -> None:
        """Write the record whole or not at all."""
        write_whole(path, self.model_dump_json(by_alias=True, indent=1))

    @classmethod
    def load(cls, path: Path) -> Night:
        """Read a record. Raises :class:`InputError` for what is not one."""
        return read_record(cls, path, "a night")


def night_of(begun: datetime) -> date:
    """The date of a night: noon to noon, by the clock of ``begun``."""
    return (begun - timedelta(hours=12)).date()


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` by way of a temporary file beside it, so that no reader ever sees a part.

    A link stays one. Raises :class:`InputError` for what is there and no regular file: a device would be replaced.
    """
    with replacing(path, text):
        pass


@contextmanager
def replacing(path: Path, text: str, *, mode: int = 0o644) -> Iterator[None]:
    """The same, once what is done in between has gone well: the text is on the disk before."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise InputError("is not a regular file; it or a new one is expected", file=path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        yield
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


#: Of ReFrame's results: skipped, not begun or broken off when the run was stopped, kernels not built.
_NEVER_RAN = ("skip", "abort", "fail_deps")


def is_case(entry: dict[str, Any]) -> bool:
    """It ran, or a check of ours said why it must not."""
    return entry["result"] not in _NEVER_RAN or bool(entry["result"] == "skip" and entry.get("skip_reason"))


class RunReport(_Record):
    """What concerns us of ReFrame's JSON run report."""

    selected: int
    cases: tuple[Case, ...]
    software: Software | None
    build_failure: str


def read_run_report(path: Path) -> RunReport:
    """Read ReFrame's run report. Raises :class:`InputError` when it is missing, truncated or something else."""
    try:
        report = json.loads(path.read_bytes())
        return _run_report([entry for run in report["runs"] for entry in run["testcases"]])
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"no run report of ReFrame with our checks: {error!r}", file=path) from error


def _run_report(entries: list[dict[str, Any]]) -> RunReport:
    tests = [entry for entry in entries if not entry["fixture"]]
    builds = [entry for entry in entries if entry["fixture"] and entry["result"] not in ("pass", *_NEVER_RAN)]
    return RunReport(
        selected=len(tests),
        cases=tuple(case_of(entry) for entry in tests if is_case(entry)),
        software=_software(tests),
        build_failure=" / ".join(map(build_failure, builds)),
    )


def _software(entries: Iterable[dict[str, Any]]) -> Software | None:
    """That of the kernels in C where one ran: the one in Python and the upstream benchmarks have libraries of their own,
    named in their records.
    """
    records = [record["software"] for entry in entries for record in entry.get("measurements") or ()]
    found = max(records, key=lambda software: (bool(software["kernels"]), bool(software["mpi"])), default=None)
    return None if found is None else Software.model_validate(found)


def _judgement(entry: dict[str, Any]) -> Judgement:
    if entry["result"] == "skip":
        return skipped(entry["skip_reason"])
    return Judgement.model_validate(entry["judgement"]) if entry.get("judgement") else invalid([_failure(entry)])


def case_of(entry: dict[str, Any]) -> Case:
    """A case from its entry in ReFrame's run report."""
    return Case(
        name=entry["display_name"],
        file_system=entry["file_system"],
        nodes=entry["nodes"],
        ranks_per_node=entry["ranks_per_node"],
        judgement=_judgement(entry),
        seconds=entry["time_run"],
        # ReFrame moves the files of a case that passed; those of one that failed stay, though it names both folders.
        stage=(entry["result"] == "pass" and entry.get("outputdir")) or entry["stagedir"],
        partition=entry["partition"],
        environ=entry.get("environ") or "",
        built_by=entry.get("built_by") or "",
        software=_software([entry]),
    )


def _failure(entry: dict[str, Any]) -> str:
    reason = " ".join(str(entry["fail_reason"] or "no reason given").split())
    said = _last_lines(Path(entry["stagedir"]) / str(entry.get("job_stderr") or "none"))
    return f"ended in ReFrame's {entry['fail_phase']} phase: {reason}" + (f" ({said})" if said else "")


def build_failure(entry: dict[str, Any]) -> str:
    """Why a build has failed, from its entry in ReFrame's run report."""
    reason = " ".join(str(entry["fail_reason"] or "").split()).removeprefix("refusal: ")
    log = Path(entry["stagedir"]) / str(entry.get("build_stderr") or "none")
    said = _last_lines(log, 5)
    return f"the kernels could not be built: {reason}" + (f" ({said}; all of it: {log})" if said else "")


def _last_lines(path: Path, count: int = 3) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return " / ".join([line.strip() for line in lines if line.strip(" -=")][-count:])
