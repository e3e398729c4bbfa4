"""From ReFrame's run report to rows: a report is taken whole, once, in one transaction, or not at all.

Rates are not taken from the report: they follow from bytes and seconds (:mod:`iogauge.measurement`), and have to be those that
the judge saw. A case of which that is not true is kept as invalid with the reason, and is never a rate.
"""

from __future__ import annotations

import gc
import hashlib
import json
import math
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from sqlalchemy import ColumnElement, Connection, Table, select

from iogauge.errors import InputError
from iogauge.history.database import History, add_rows, next_id
from iogauge.history.operators import renames
from iogauge.history.schema import REFRAME, cases, evidence, measurements, placements, runs, series, software
from iogauge.judge import Judgement, Row, invalid, is_of_a_series
from iogauge.measurement import Measurement
from iogauge.night import Case, Night, case_of, is_case, night_of

#: A report from before this moment, or from later than now, was written by a clock that was wrong.
_NO_EARLIER = datetime(2000, 1, 1, tzinfo=timezone.utc).timestamp()
_NO_LATER_SECONDS = 3600

#: Clocks of compute nodes may differ by so much from that of the machine that ran ReFrame.
_CLOCKS_DIFFER_SECONDS = 300

_RECORDS = TypeAdapter(list[Measurement])

#: Pydantic's names for what another version of the records, and nobody's bad luck, explains.
_ANOTHER_VERSION = ("missing", "extra_forbidden", "literal_error")


class _Untrue(Exception):
    """A case's records are not true, or not those that were judged."""


@dataclass(frozen=True)
class Measured:
    """A case of a report with its measurements, each with the judge's row."""

    case: Case
    environ: str
    darshan: Any
    rows: tuple[tuple[Row, Measurement], ...] = ()
    #: Why its records cannot be believed although they were judged.
    spoiled: str = ""
    #: Is it known where its ranks were?
    placed: bool = True


@dataclass(frozen=True)
class Report:
    """A run report, checked: columns of :data:`iogauge.history.schema.runs`, and its cases."""

    run: dict[str, Any]
    cases: tuple[Measured, ...]
    #: Seconds to add to every time in it.
    shift: int = 0


@dataclass
class Outcome:
    """What became of a report: ``added``, or it was there already; what was odd, for people."""

    path: Path
    added: bool
    site: str
    night: str
    cases: int = 0
    measurements: int = 0
    spoiled: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def ingest(history: History, path: Path, *, started: datetime | None = None, suite: str | None = None) -> Outcome:
    """Take a run report, or a night's folder with one, into the history; what is there already stays as it is.

    ``started`` replaces the time of the report, where a clock was wrong (a night that knew it has its own ``as_of``);
    ``suite`` its suite, which only a night's folder tells. Raises :class:`InputError` for what is no report of ours; then
    nothing has changed.
    """
    with no_garbage():
        report = read_report(path, started=started, suite=suite)
        with history.writing() as connection:
            return _store(connection, report, path)


@contextmanager
def no_garbage() -> Iterator[None]:
    """Python's collector would look through the millions of objects of a large report again and again: half of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def nights_in(folder: Path) -> list[Path]:
    """The folders of nights that have a report, oldest first."""
    return sorted(report.parent for report in folder.glob("*/reframe.json"))


# --- the report -------------------------------------------------------------------------------------------------------


def read_report(path: Path, *, started: datetime | None = None, suite: str | None = None) -> Report:
    """Read and check a run report (or a folder with ``reframe.json``, and ``night.json`` if the night ended)."""
    file = path / "reframe.json" if path.is_dir() else path
    record = file.parent / "night.json"
    night = Night.load(record) if file.name == "reframe.json" and record.exists() else None
    try:
        document = from_json(file.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file) from error
    except ValueError as error:
        raise InputError(f"no run report, or only a part of one: {error}", file=file) from error
    try:
        session = document["session_info"]
        entries = [entry for run in document["runs"] for entry in run["testcases"]]
        mine = [entry for entry in entries if "judgement" in entry and "measurements" in entry]
        if not mine:
            raise InputError(f"a run report of ReFrame without any case of iogauge ({len(entries)} others)", file=file)
        found = tuple(_measured(entry, file) for entry in mine if is_case(entry))
        run = _run(session, mine, night, file)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"no run report of ReFrame with our checks: {reason}", file=file) from error
    run |= {"suite": suite or run["suite"], "content": _content(run, found)}
    if started is not None:
        return _shifted(run, found, started, night_of(started.astimezone()))
    if night is not None and night.as_of is not None:
        return _shifted(run, found, night.as_of, night.night_date)
    check_clock(run, file)
    return Report(run, found)


def _run(session: Mapping[str, Any], entries: Sequence[Any], night: Night | None, file: Path) -> dict[str, Any]:
    sites = sorted({entry["system"] for entry in entries})
    if len(sites) != 1:
        raise InputError(f"cases of several sites in one report: {', '.join(sites)}", file=file)
    begun = datetime.strptime(session["time_start"], "%Y%m%dT%H%M%S%z")
    notes = [] if night is None else list(night.notes)
    started, finished = int(session["time_start_unix"]), int(session["time_end_unix"])
    if finished < started:
        notes.append(f"the clock went back by at least {started - finished} s during the run")
    return {
        "session": str(session["uuid"]),
        "site": sites[0] if night is None else night.site,
        "suite": "" if night is None else night.suite,
        "night": (night and night.of_night) or night_of(begun),
        "started": started,
        "finished": max(started, finished),
        "complete": not session["num_aborted"] if night is None else night.complete,
        "cause": "" if night is None else night.cause,
        "selected": len(entries),
        "host": session["hostname"],
        "reframe": session["version"],
        "machine": None if night is None else night.machine.model_dump(mode="json"),
        "report": str(file.resolve()),
        "notes": notes,
    }


def check_clock(run: Mapping[str, Any], file: Path) -> None:
    """Raises :class:`InputError` for a time before 2000 or in the future."""
    if not _NO_EARLIER <= run["started"] <= time.time() + _NO_LATER_SECONDS:
        when = datetime.fromtimestamp(run["started"], timezone.utc)
        raise InputError(
            f"began at {when:%Y-%m-%d %H:%M} UTC by its clock, which cannot be right; --started TIME takes it in with the "
            f"right time",
            file=file,
        )


def _shifted(run: dict[str, Any], found: tuple[Measured, ...], started: datetime, night: date) -> Report:
    shift = int(started.timestamp()) - run["started"]
    note = f"the time was given by hand: {shift:+d} s"
    times = {"started": run["started"] + shift, "finished": run["finished"] + shift, "night": night}
    return Report(run | times | {"notes": [*run["notes"], note]}, found, shift)


def _measured(entry: Mapping[str, Any], file: Path) -> Measured:
    case = case_of(dict(entry))
    environ, profile = entry["environ"], case.judgement.profile
    darshan = profile and profile.summary.model_dump(mode="json", by_alias=True)
    try:
        return Measured(case, environ, darshan, tuple(_matched(case.judgement, _records(entry, file))))
    except _Untrue as problem:
        spoiled = f"records spoiled: {problem}"
        return Measured(case.model_copy(update={"judgement": invalid([spoiled])}), environ, darshan, spoiled=spoiled)


def _records(entry: Mapping[str, Any], file: Path) -> list[Measurement]:
    if not entry["judgement"].get("rows"):
        return []
    try:
        return _RECORDS.validate_python(entry["measurements"])
    except ValidationError as error:
        first = error.errors()[0]
        key = "measurements." + ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] in _ANOTHER_VERSION:
            raise InputError(
                f"records of another version of iogauge ({entry['display_name']}): {message}", file=file, key=key
            ) from error
        raise _Untrue(f"{key}: {message}") from error


def _matched(judgement: Judgement, records: Sequence[Measurement]) -> Iterable[tuple[Row, Measurement]]:
    """Each of the judge's rows with its record. Raises :class:`_Untrue` when the rates are not those of the record."""
    mine = [record for record in records if is_of_a_series(record)]
    if len(mine) != len(judgement.rows) or len({(row.key, row.fingerprint) for row in judgement.rows}) != len(mine):
        raise _Untrue(f"{len(judgement.rows)} series judged, {len(mine)} recorded")
    for row, record in zip(judgement.rows, mine, strict=True):
        same = len(row.observed_repeats) == len(record.repeats) and row.unit == record.unit
        pairs = zip(row.observed_repeats, record.observed, strict=False)
        if not same or not all(math.isclose(judged, true, rel_tol=1e-9) for judged, true in pairs):
            raise _Untrue(f"the rates of {row.key} do not follow from its bytes and seconds")
        if not record.verified:
            raise _Untrue(f"{row.key} was judged, but not all of its data was verified")
    return zip(judgement.rows, mine, strict=True)


def _content(run: Mapping[str, Any], found: Sequence[Measured]) -> str:
    """A digest of what was measured when; the report's name and form are not in it."""
    digest = hashlib.sha256(f"{run['site']} {run['started']}".encode())
    for one in found:
        digest.update(f" {one.case.name} {one.case.judgement.verdict}".encode())
        for row, record in one.rows:
            digest.update(f" {row.key} ".encode())
            digest.update(array("d", [repeat.total_seconds for repeat in record.repeats]))
    return digest.hexdigest()


# --- the rows ---------------------------------------------------------------------------------------------------------


def _store(connection: Connection, report: Report, path: Path) -> Outcome:
    run = report.run
    known = connection.execute(
        select(runs.c.session, runs.c.content, runs.c.report).where(
            (runs.c.session == run["session"]) | (runs.c.content == run["content"])
        )
    ).first()
    outcome = Outcome(path, known is None, run["site"], run["night"].isoformat())
    if known is not None:
        if known.content != run["content"]:
            raise InputError(
                f"is ReFrame's session {run['session']}, which is in the history with other measurements (from "
                f"{known.report}). Nothing was changed",
                file=path,
            )
        if known.session != run["session"]:
            outcome.notes.append(f"the same measurements as {known.report}, under another session's name")
        return outcome
    outcome.notes += _same_night(connection, run)
    rows = Rows(connection, [report])
    rows.insert()
    outcome.cases, outcome.measurements = len(report.cases), len(rows.measurements)
    outcome.notes += rows.notes
    outcome.spoiled = [f"{one.case.name}: {one.spoiled}" for one in report.cases if one.spoiled]
    return outcome


def _same_night(connection: Connection, run: Mapping[str, Any]) -> list[str]:
    alike = (runs.c.site == run["site"], runs.c.suite == run["suite"], runs.c.night == run["night"])
    others = connection.execute(select(runs.c.started).where(*alike).order_by(runs.c.started)).scalars().all()
    return [f"run {len(others) + 1} of this night"] if others else []


class Rows:
    """The rows of reports of one site: what recurs (series, software, placements) is looked up, or added, once."""

    def __init__(self, connection: Connection, reports: Sequence[Report]) -> None:
        self._connection = connection
        site = reports[0].run["site"]
        self._renamed = renames(connection, site)
        self._series = _Catalogue(connection, series, ("key", "fingerprint", "unit"), series.c.site == site)
        self._units = {key: unit for key, _, unit in self._series.known}
        self._software = _Catalogue(connection, software, ("digest",))
        placed = {
            _digest(_placement(one.rows[0][1])) for report in reports for one in report.cases if one.rows and one.placed
        }
        self._placements = _Catalogue(connection, placements, ("digest",), placements.c.digest.in_(placed))
        self.notes: list[str] = []
        self.runs: list[dict[str, Any]] = []
        self.cases: list[dict[str, Any]] = []
        self.measurements: list[dict[str, Any]] = []
        self.evidence: list[dict[str, Any]] = []
        run_id, self._case_id = next_id(connection, runs), next_id(connection, cases)
        for number, report in enumerate(reports):
            self._add_run(run_id + number, report)

    def insert(self) -> None:
        """Write them."""
        add_rows(self._connection, runs, self.runs)
        for catalogue in (self._series, self._software, self._placements):
            catalogue.insert()
        for table, rows in ((cases, self.cases), (measurements, self.measurements), (evidence, self.evidence)):
            add_rows(self._connection, table, rows)

    def _add_run(self, run_id: int, report: Report) -> None:
        self._run_id, self._report = run_id, report
        self.notes = list(report.run["notes"])
        for one in report.cases:
            self._add(self._case_id, one)
            self._case_id += 1
        notes = {"notes": list(dict.fromkeys(self.notes)), "ingested": int(time.time())}
        self.runs.append({"id": run_id, "origin": REFRAME, "sha256": None, **report.run, **notes})

    def _add(self, case_id: int, one: Measured) -> None:
        case = one.case
        self.cases.append(
            {
                "id": case_id,
                "run_id": self._run_id,
                "name": case.name,
                "file_system": self._today(case.file_system),
                "nodes": case.nodes,
                "ranks_per_node": case.ranks_per_node,
                "partition": case.partition,
                "environ": one.environ,
                "verdict": case.judgement.verdict,
                "reasons": list(case.judgement.reasons),
                "placement_id": self._placement_of(one.rows[0][1]) if one.rows and one.placed else None,
                "layout": case.judgement.layout,
                "seconds": case.seconds,
                "stage": case.stage,
                "darshan": one.darshan,
            }
        )
        for row, record in one.rows:
            key = {"series_id": self._series_of(row), "started": self._started(record), "case_id": case_id}
            self.measurements.append(key | self._measurement(row, record))
            self.evidence.append(key | _evidence(row, record))

    def _measurement(self, row: Row, record: Measurement) -> dict[str, Any]:
        return {
            "run_id": self._run_id,
            "software_id": self._software_of(record),
            "role": row.role,
            "verdict": row.verdict,
            "cached": row.band_status == "cached",
            "amount": record.amount,
            "observed": record.best_observed,
            "total_seconds": [repeat.total_seconds for repeat in record.repeats],
        }

    def _today(self, file_system: str) -> str:
        """The name that the file system has now."""
        for rename in self._renamed:
            if rename.old == file_system and self._report.run["started"] < rename.before:
                file_system = rename.new
        return file_system

    def _series_of(self, row: Row) -> int:
        words = row.key.split("/")
        words[2] = self._today(words[2])
        key, site = "/".join(words), self._report.run["site"]
        if (before := self._units.setdefault(key, row.unit)) != row.unit:
            self.notes.append(f"{key} was in {before}, and is in {row.unit} here: a series of its own")
            self._units[key] = row.unit
        return self._series.find((key, row.fingerprint, row.unit), lambda: {"site": site, "file_system": words[2]})

    def _software_of(self, record: Measurement) -> int:
        versions = record.software.model_dump(mode="json")
        return self._software.find((_digest(versions),), lambda: {"versions": versions})

    def _placement_of(self, record: Measurement) -> int:
        placed = _placement(record)
        return self._placements.find((_digest(placed),), lambda: placed)

    def _started(self, record: Measurement) -> int:
        """By the compute node's clock, unless that is not within the run."""
        run = self._report.run
        when = int(record.started.timestamp()) + self._report.shift
        if run["started"] - _CLOCKS_DIFFER_SECONDS <= when <= run["finished"] + _CLOCKS_DIFFER_SECONDS:
            return when
        host = next(iter(record.hosts))
        self.notes.append(f"the clock of {host} is not that of {run['host']}: the run's time was taken")
        return int(run["started"])


class _Catalogue:
    """The rows of a table in which each thing stands once, by its unique columns."""

    def __init__(
        self, connection: Connection, table: Table, unique: tuple[str, ...], where: ColumnElement[bool] | None = None
    ) -> None:
        self._connection = connection
        self._table = table
        self._unique = unique
        query = select(*(table.c[name] for name in unique), table.c.id)
        found = connection.execute(query if where is None else query.where(where))
        self.known: dict[tuple[str, ...], int] = {tuple(row[:-1]): row[-1] for row in found}
        self._next = next_id(connection, table)
        self._new: list[dict[str, Any]] = []

    def find(self, values: tuple[str, ...], rest: Callable[[], dict[str, Any]]) -> int:
        """The number of the thing with these values in the unique columns; when it is new, ``rest`` gives the others."""
        if values not in self.known:
            self.known[values] = self._next
            self._new.append({"id": self._next, **dict(zip(self._unique, values, strict=True)), **rest()})
            self._next += 1
        return self.known[values]

    def insert(self) -> None:
        add_rows(self._connection, self._table, self._new)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _placement(record: Measurement) -> dict[str, Any]:
    cores: dict[str, list[list[int]]] = {host: [] for host in record.hosts}
    for place in record.placement:
        cores[place.host].append(list(place.cores))
    return {"hosts": {host: len(ranks) for host, ranks in record.hosts.items()}, "cores": cores}


def _evidence(row: Row, record: Measurement) -> dict[str, Any]:
    repeats = record.repeats
    fractions = [repeat.cached_fraction for repeat in repeats]
    phases = ("open_seconds", "transfer_seconds", "flush_seconds", "close_seconds", "prepare_seconds")
    return {
        **{name: [getattr(repeat, name) for repeat in repeats] for name in phases},
        "least_total_seconds": [repeat.least and repeat.least.total_seconds for repeat in repeats],
        "cached_fraction": None if fractions == [None] * len(repeats) else fractions,
        "ratios": [
            {
                "name": ratio.name,
                "metric": ratio.metric,
                "value": ratio.value,
                "spread": ratio.spread,
                "pairs": list(ratio.pairs),
            }
            for ratio in row.ratios
        ],
    }
