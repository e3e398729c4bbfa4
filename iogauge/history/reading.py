"""The nights of each series, series by series: a decade of a large site in seconds, with one series in memory at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json
from sqlalchemy import Connection, Select, Text, bindparam, cast, func, select

from iogauge.history.schema import REFRAME, evidence, measurements, runs, series, software


@dataclass(frozen=True)
class Series:
    """A row of :data:`iogauge.history.schema.series`."""

    id: int
    site: str
    key: str
    fingerprint: str
    unit: str
    file_system: str


@dataclass(frozen=True)
class Run:
    """What of a run concerns its measurements. ``origin``: REFRAME or IMPORTED of :mod:`iogauge.history.schema`."""

    id: int
    suite: str
    night: date
    started: int
    complete: bool
    origin: str = REFRAME


@dataclass(frozen=True)
class Measurements:
    """All measurements of one series, ``n`` of them, in order of time.

    Arrays have shape (n,) but for ``rates``, which has those of all repeats one after the other: ``repeats(i)`` gives those
    of one measurement. Rates are in the series' unit; ``observed`` is the best of a measurement's repeats.
    """

    series: Series
    started: NDArray[np.int64]
    case_id: NDArray[np.int64]
    run_id: NDArray[np.int64]
    software_id: NDArray[np.int64]
    cached: NDArray[np.bool_]
    main: NDArray[np.bool_]
    observed: NDArray[np.float64]
    rates: NDArray[np.float64]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.started)

    def repeats(self, number: int) -> NDArray[np.float64]:
        """The rates of the repeats of one measurement."""
        end = self.first[number + 1] if number + 1 < len(self.first) else len(self.rates)
        return self.rates[self.first[number] : end]


def list_series(connection: Connection, site: str | None = None) -> list[Series]:
    """All series, of one site or of all, by site and key."""
    query = select(series).order_by(series.c.site, series.c.key, series.c.id)
    if site is not None:
        query = query.where(series.c.site == site)
    return [Series(**row) for row in connection.execute(query).mappings()]


def read_runs(connection: Connection, site: str | None = None) -> dict[int, Run]:
    """All runs by their number."""
    query = select(runs.c.id, runs.c.suite, runs.c.night, runs.c.started, runs.c.complete, runs.c.origin)
    if site is not None:
        query = query.where(runs.c.site == site)
    return {row.id: Run(*row) for row in connection.execute(query)}


def read_software(connection: Connection) -> dict[int, dict[str, Any]]:
    """Versions by number, as in :class:`iogauge.measurement.Software`."""
    return {row.id: row.versions for row in connection.execute(select(software))}


def read_measurements(
    connection: Connection, wanted: Sequence[Series], *, since: int = 0, main_only: bool = False
) -> Iterator[Measurements]:
    """The measurements from ``since`` (Unix seconds) on of each of ``wanted`` that has any, by their numbers.

    ``main_only``: without those that were taken as the baseline of another one.
    """
    columns = (
        measurements.c.started,
        measurements.c.case_id,
        measurements.c.run_id,
        measurements.c.software_id,
        measurements.c.cached,
        measurements.c.role,
        measurements.c.amount,
        cast(measurements.c.total_seconds, Text),
    )
    asked = [measurements.c.started >= since] + [measurements.c.role == "main"] * main_only
    asked.append(measurements.c.series_id == bindparam("number"))
    query = select(*columns).where(*asked).order_by(measurements.c.started, measurements.c.case_id)
    for one in sorted(wanted, key=lambda one: one.id):
        rows = driver_rows(connection, query, number=one.id)
        if rows:
            yield _collected(one, rows)


def driver_rows(connection: Connection, query: Select[Any], **values: int) -> list[Any]:
    """The rows as the database's driver gives them, for millions: SQLAlchemy's own would take most of the time."""
    with connection.execute(query, values) as result:
        cursor = result.cursor
        assert cursor is not None
        return list(cursor.fetchall())


def _collected(one: Series, rows: Sequence[Any]) -> Measurements:
    started, case_id, run_id, software_id, cached, role, amount, texts = zip(*rows, strict=True)
    if "[]" in texts:
        texts = tuple("[null]" if text == "[]" else text for text in texts)
    repeats = from_json(f"[{','.join(texts)}]")
    counts = np.fromiter(map(len, repeats), np.int64, len(repeats))
    first = np.cumsum(counts) - counts
    seconds = list(itertools.chain.from_iterable(repeats))
    with np.errstate(divide="ignore", invalid="ignore"):  # who reads them leaves out what is no rate
        rates = np.repeat(np.array(amount, np.float64), counts) / np.array(seconds, np.float64)
    return Measurements(
        series=one,
        started=np.array(started, np.int64),
        case_id=np.array(case_id, np.int64),
        run_id=np.array(run_id, np.int64),
        software_id=np.array(software_id, np.int64),
        cached=np.array(cached, np.bool_),
        main=np.array([word == "main" for word in role], np.bool_),
        observed=np.maximum.reduceat(rates, first),
        rates=rates,
        first=first,
    )


def read_evidence(connection: Connection, one: Series, *, since: int = 0) -> list[dict[str, Any]]:
    """The rows of :data:`iogauge.history.schema.evidence` of a series, in order of time."""
    query = select(evidence).where(evidence.c.series_id == one.id, evidence.c.started >= since)
    ordered = query.order_by(evidence.c.started, evidence.c.case_id)
    return [dict(row) for row in connection.execute(ordered).mappings()]


def count_by_series(connection: Connection, site: str) -> dict[int, tuple[int, date, date]]:
    """Nights of each series with the first and the last of them."""
    query = (
        select(
            measurements.c.series_id,
            func.count(runs.c.night.distinct()),
            func.min(runs.c.night),
            func.max(runs.c.night),
        )
        .join(runs, runs.c.id == measurements.c.run_id)
        .where(runs.c.site == site)
        .group_by(measurements.c.series_id)
    )
    return {row[0]: (row[1], row[2], row[3]) for row in connection.execute(query)}
