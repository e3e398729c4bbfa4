"""In a process of its own (``python -m iogauge.history.past FOLDER``): what :mod:`iogauge.past` asks of the history."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, RowMapping, func, select

from iogauge import nightly
from iogauge.assess.tonight import assess_tonight
from iogauge.darshan.summary import Summary
from iogauge.errors import InputError
from iogauge.history.database import History
from iogauge.history.ingest import ingest, nights_in
from iogauge.history.operators import maintenance
from iogauge.history.schema import REFRAME, cases, measurements, runs, series, software
from iogauge.night import Night
from iogauge.past import EARLIER_SECONDS, Good, Past

#: Of a measurement that was true; the first ones are good beyond doubt.
_GOOD = ("pass", "improved")
_NOT_BAD = ("no reference", "too noisy")

#: Keys that are asked for at a time; SQLite takes no more than some thousands.
_KEYS = 500


def last_good(
    connection: Connection, site: str, key: str, fingerprint: str, before: int, *, profiled: bool = False
) -> Good | None:
    """The last good night of a series before the moment ``before`` (Unix seconds).

    Good is what was judged pass or improved; in a series without any, the newest that was not regressed. What was invalid,
    imported, or under maintenance is neither. ``profiled``: only nights with a Darshan summary.
    """
    windows = maintenance(connection, site)
    for verdicts in (_GOOD, _NOT_BAD):
        query = (
            select(measurements, series.c.unit, series.c.file_system, runs.c.night, runs.c.suite, cases.c.name,
                   cases.c.darshan, software.c.versions)
            .join(series, series.c.id == measurements.c.series_id)
            .join(runs, runs.c.id == measurements.c.run_id)
            .join(cases, cases.c.id == measurements.c.case_id)
            .join(software, software.c.id == measurements.c.software_id)
            .where(series.c.site == site, series.c.key == key, series.c.fingerprint == fingerprint)
            .where(measurements.c.started < before, measurements.c.verdict.in_(verdicts), runs.c.origin == REFRAME)
            .order_by(measurements.c.started.desc(), measurements.c.case_id.desc())
        )  # fmt: skip
        if profiled:
            query = query.where(cases.c.darshan.is_not(None))
        for row in connection.execute(query).mappings():
            summary = _summary(row["darshan"])
            if profiled and summary is None:
                continue
            if not any(window.covers(row["file_system"], row["started"]) for window in windows):
                return _good(row, summary)
    return None


def _summary(kept: Any) -> Summary | None:
    """None also for what another version kept."""
    try:
        return Summary.model_validate(kept)
    except ValidationError:
        return None


def _good(row: RowMapping, summary: Summary | None) -> Good:
    rates = tuple(row["amount"] / seconds for seconds in row["total_seconds"])
    names = ("night", "started", "suite", "verdict", "unit", "observed")
    of_row = {name: row[name] for name in names}
    return Good.model_validate(
        {**of_row, "case": row["name"], "rates": rates, "software": row["versions"], "summary": summary}
    )


def earlier_nights(connection: Connection, night: Night) -> dict[str, int]:
    """On how many nights before this one each of its series was measured with the same configuration, imported ones too."""
    wanted = {(row.key, row.fingerprint) for case in night.cases for row in case.judgement.rows}
    keys = sorted({key for key, _ in wanted})
    found = dict.fromkeys(keys, 0)
    for begin in range(0, len(keys), _KEYS):
        query = (
            select(series.c.key, series.c.fingerprint, func.count(runs.c.night.distinct()))
            .join(measurements, measurements.c.series_id == series.c.id)
            .join(runs, runs.c.id == measurements.c.run_id)
            .where(series.c.site == night.site, series.c.key.in_(keys[begin : begin + _KEYS]))
            .where(runs.c.night < night.night_date)
            .group_by(series.c.key, series.c.fingerprint)
        )
        for key, fingerprint, nights in connection.execute(query):
            if (key, fingerprint) in wanted:
                found[key] = nights
    return found


def look_back(history: History, folder: Path, *, seconds: float = EARLIER_SECONDS) -> Past:
    """Take in the night in ``folder``, then those beside it that are not in the history yet, for about ``seconds``, the oldest
    first; then ask for what was before it, and what all of them together make of it."""
    night = Night.load(folder / "night.json")
    notes = list(_taken(history, folder))
    others = _not_taken(history, [path for path in nights_in(folder.parent) if path.name < folder.name])
    left = sum(not _taken_quietly(history, path, until) for until in [time.monotonic() + seconds] for path in others)
    if left:
        notes.append(
            f"{left} earlier nights are not in the history; iogauge history ingest takes them in, or says why not"
        )
    try:
        with history.reading() as connection:
            earlier, good = earlier_nights(connection, night), dict(_last_good_ones(connection, night))
    except InputError as problem:
        return Past(notes=(*notes, f"the history cannot be read: {problem}"))
    try:
        assessment = assess_tonight(
            history, night.site, night.night_date, calendars=nightly.known_calendars(night.site)
        )
    except InputError as problem:
        assessment = None
        notes.append(f"not judged against the nights before: {problem}")
    return Past(earlier_nights=earlier, good=good, assessment=assessment, notes=tuple(notes))


def _taken(history: History, folder: Path) -> Iterable[str]:
    """Take the night in that just ended; what went wrong."""
    if not (folder / "reframe.json").exists():
        return
    try:
        outcome = ingest(history, folder)
    except InputError as problem:
        yield f"this night is not in the history: {problem}"
    else:
        yield from (f"in the history as invalid: {line}" for line in outcome.spoiled)


def _taken_quietly(history: History, folder: Path, until: float) -> bool:
    if time.monotonic() > until:
        return False
    try:
        ingest(history, folder)
    except InputError:
        return False
    return True


def _not_taken(history: History, folders: list[Path]) -> list[Path]:
    """Those whose reports are not in the history; all of them where it cannot be read."""
    try:
        with history.reading() as connection:
            known = set(connection.execute(select(runs.c.report)).scalars())
    except InputError:
        return folders
    return [folder for folder in folders if str((folder / "reframe.json").resolve()) not in known]


def _last_good_ones(connection: Connection, night: Night) -> Iterable[tuple[str, Good]]:
    started = _first_run(connection, night)
    for case in night.cases:
        for row in case.judgement.main_rows:
            profiled = case.judgement.profile is not None
            good = last_good(connection, night.site, row.key, row.fingerprint, started, profiled=profiled)
            if good is not None:
                yield row.key, good


def _first_run(connection: Connection, night: Night) -> int:
    """When the first run of this night began (Unix seconds): an earlier run of the same night is no night before."""
    same = (runs.c.site == night.site, runs.c.night == night.night_date, runs.c.origin == REFRAME)
    first = connection.execute(select(func.min(runs.c.started)).where(*same)).scalar()
    return min(int(night.started.timestamp()), first if first is not None else sys.maxsize)


if __name__ == "__main__":
    print(look_back(History(), Path(sys.argv[1])).model_dump_json(by_alias=True))
