"""What is known of a site tonight, made from its history: by judging all of it, and by going on from last night."""

from __future__ import annotations

import datetime
import random
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from iogauge.assess.reading import assess
from iogauge.assess.record import Assessment, SeriesState
from iogauge.assess.tonight import assess_tonight
from iogauge.detect import Calendar
from iogauge.history import operators, schema
from iogauge.history.database import History, next_id

FIRST = datetime.date(2024, 1, 1)
HOUR, DAY = 3600, 86400
SOFTWARE = {"hdf5": "1.14.3", "mpi": "Open MPI v4.1.4", "suite": "1", "kernels": "k1", "compiler": None, "packages": {}}


def day(number: int) -> datetime.date:
    return FIRST + datetime.timedelta(days=number)


def moment(number: int, hour: float = 26) -> int:
    """Unix seconds of an hour of that day, UTC; nights are measured at two in the morning of the next."""
    return int(datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc).timestamp() + number * DAY + hour * HOUR)


@dataclass
class Site:
    """Writes nights into a history without ReFrame's reports; a case measures one series."""

    history: History
    software: dict[str, Any] = field(default_factory=lambda: dict(SOFTWARE))
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    unit: str = "MiB/s"

    def night(
        self,
        number: int,
        rates: Mapping[str, Sequence[float]],
        *,
        invalid: Mapping[str, str] | None = None,
        hour: float = 26,
        cached: bool = False,
        role: str = "main",
    ) -> None:
        """One run: the rates of all repeats by key, and cases (by the key that they measure) that were invalid."""
        self.nights([(number, rates)], invalid=invalid or {}, hour=hour, cached=cached, role=role)

    def nights(
        self,
        nights: Sequence[tuple[int, Mapping[str, Sequence[float]]]],
        *,
        invalid: Mapping[str, str] | None = None,
        hour: float = 26,
        cached: bool = False,
        role: str = "main",
    ) -> None:
        """Several runs at once."""
        with self.history.writing() as connection:
            software = self._software(connection)
            run_id, case_id = next_id(connection, schema.runs), next_id(connection, schema.cases)
            rows: dict[str, list[dict[str, Any]]] = {"runs": [], "cases": [], "measurements": []}
            for number, rates in nights:
                started = moment(number, hour)
                rows["runs"].append(_run(run_id, number, started))
                for key in [*rates, *(invalid or {})]:
                    reason = (invalid or {}).get(key) if key not in rates else None
                    rows["cases"].append(_case(case_id, run_id, key, reason))
                    if reason is None:
                        measured = {"cached": cached, "role": role, "software_id": software}
                        own = {"series_id": self._series(connection, key), "started": started, "case_id": case_id}
                        amount = {"run_id": run_id, "verdict": "pass", "amount": 1.0, "observed": 1.0}
                        seconds = {"total_seconds": [1 / rate if rate else None for rate in rates[key]]}
                        rows["measurements"].append(own | measured | amount | seconds)
                    case_id += 1
                run_id += 1
            for name, some in rows.items():
                if some:
                    connection.execute(sa.insert(schema.metadata.tables[name]), some)

    def _software(self, connection: sa.Connection) -> int:
        digest = repr(sorted(self.software.items()))
        known = connection.execute(sa.select(schema.software.c.id).where(schema.software.c.digest == digest)).scalar()
        if known is None:
            known = next_id(connection, schema.software)
            row = {"id": known, "digest": digest, "versions": self.software}
            connection.execute(sa.insert(schema.software), [row])
        return int(known)

    def _series(self, connection: sa.Connection, key: str) -> int:
        table, values = schema.series.c, {"key": key, "fingerprint": self.fingerprint.get(key, "17982ea9")}
        values |= {"site": "here", "unit": "operations/s" if key.startswith("metadata") else self.unit}
        query = sa.select(table.id).where(*(table[name] == value for name, value in values.items()))
        known = connection.execute(query).scalar()
        if known is None:
            known = next_id(connection, schema.series)
            row = {"id": known, "file_system": key.split("/")[2], **values}
            connection.execute(sa.insert(schema.series), [row])
        return int(known)

    def say(self, kind: operators.Kind, target: str, at: int, **times: int) -> None:
        """An operator's word."""
        values = {"since": at, "until": None} | times
        action = operators.Action(site="here", kind=kind, target=target, at=at, who="anna", why="ticket", **values)
        with self.history.writing() as connection:
            row = {"id": next_id(connection, schema.actions), **vars(action)}
            connection.execute(sa.insert(schema.actions), [row])

    def maintain(self, begins: int, ends: int, file_system: str | None = None) -> None:
        window = operators.Maintenance("here", file_system, begins, ends, begins, "anna", "servers")
        operators.maintain(self.history, window)

    def assess(self, night: int | None = None, **calendars: Calendar) -> Assessment:
        found = assess(self.history, "here", calendars=calendars, night=None if night is None else day(night))
        return found.assessment

    def tonight(self, night: int, **calendars: Calendar) -> Assessment:
        return assess_tonight(self.history, "here", day(night), calendars=calendars)

    def states(self) -> list[Any]:
        with self.history.reading() as connection:
            return list(connection.execute(sa.select(schema.states).order_by(schema.states.c.file_system)))


def _run(number: int, night: int, started: int) -> dict[str, Any]:
    texts = dict.fromkeys(("cause", "host", "reframe", "report"), "") | {"site": "here", "suite": "nightly"}
    times = {"night": day(night), "started": started, "finished": started + HOUR, "ingested": started}
    names = {"session": uuid.uuid4().hex, "content": uuid.uuid4().hex}
    return {"id": number, **names, **texts, **times, "complete": True, "selected": 1, "machine": None, "notes": []}


def _case(number: int, run: int, key: str, invalid: str | None) -> dict[str, Any]:
    file_system = key.split("/")[2]
    texts = {"name": f"Check {key}", "partition": "p", "environ": "e", "layout": "", "stage": ""}
    verdict = {"verdict": "pass" if invalid is None else "invalid", "reasons": [] if invalid is None else [invalid]}
    sizes = {"nodes": 1, "ranks_per_node": 2, "seconds": 1.0, "placement_id": None, "darshan": None}
    return {"id": number, "run_id": run, "file_system": file_system, **texts, **verdict, **sizes}


def key(number: int, file_system: str = "disk") -> str:
    operation, interface = ("write", "read")[number % 2], ("hdf5", "mpiio", "posix")[number // 2 % 3]
    return f"particles/{operation}/{file_system}/1x2/CC{number}/{interface}"


WRITE = key(0)


def noise(count: int, seed: int = 0) -> list[tuple[float, ...]]:
    """Nights of three repeats around 100 MiB/s."""
    logs = 0.04 * np.random.default_rng(seed).standard_normal((count, 3))
    return [tuple(night) for night in (100 * np.exp(logs - 0.02)).tolist()]


@pytest.fixture
def site(history: History) -> Site:
    return Site(history)


@pytest.fixture
def sqlite_site(empty_history: Path, tmp_path: Path) -> Site:
    """For what no database makes a difference to."""
    return Site(History(str(shutil.copy(empty_history, tmp_path / "history.sqlite"))))


def only(assessment: Assessment) -> SeriesState:
    (one,) = assessment.series
    return one


def plain(assessment: Assessment) -> dict[str, Any]:
    """What two assessments of one night have in common."""
    return assessment.model_dump(exclude={"made"})


# --- going on from last night -----------------------------------------------------------------------------------------


class World:
    """A site to which things happen at random."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site, self.random = site, random.Random(seed)
        self.keys = [key(number, "disk") for number in range(5)] + [key(number, "scratch") for number in range(2)]
        self.level = {key: 100.0 * (1 + number) for number, key in enumerate(self.keys)}
        self.calendars: dict[str, Calendar] = {}
        self.late: list[int] = []

    def rates(self) -> dict[str, tuple[float, ...]]:
        measured = {}
        for key in self.keys:
            if self.random.random() < 0.93:
                bad = 0.5 if self.random.random() < 0.05 else 1.0
                rates = [self.level[key] * bad * self.random.lognormvariate(-0.02, 0.05) for _ in range(3)]
                measured[key] = tuple(rates[: self.random.choice((1, 3))])
        return measured

    def past(self, nights: int) -> None:
        self.site.nights([(number, self.rates()) for number in range(nights)])

    def tomorrow(self, number: int) -> None:
        """One more night, or none."""
        rates = self.rates()
        refused = {key: "ranks share a core" for key in self.keys if self.random.random() < 0.05}
        if self.random.random() < 0.08:
            self.late.append(number)
        else:
            self.site.night(number, {key: r for key, r in rates.items() if key not in refused}, invalid=refused)
        if self.random.random() < 0.1:
            self.site.night(number, self.rates(), hour=30)
        for what in self.random.sample(self.events(number), self.random.choice((0, 0, 1, 1, 2))):
            what()

    def events(self, number: int) -> list[Any]:
        some = self.random.choice(("*", "*/disk/*", "*/scratch/*", self.random.choice(self.keys)))
        noon = moment(number, 34)
        return [
            lambda: self.site.say("ack", some, noon),
            lambda: self.site.say("ack", some, noon - self.random.randrange(9) * DAY),
            lambda: self.site.say("bless", some, noon, since=noon - self.random.randrange(20) * DAY),
            lambda: self.site.say("mute", some, noon, until=noon + self.random.randrange(1, 9) * DAY),
            lambda: self.site.maintain(noon, noon + self.random.randrange(1, 3) * DAY, "disk"),
            lambda: self.site.maintain(noon - 3 * DAY, noon),
            self.change_calendar,
            self.change_configuration,
            self.change_level,
            self.change_level,
            self.change_software,
            self.report_late_ones,
        ]

    def change_calendar(self) -> None:
        self.calendars["disk"] = Calendar(days_of_month=frozenset({self.random.randrange(1, 29)}))

    def change_configuration(self) -> None:
        some = {key: str(self.random.randrange(3)) for key in self.random.sample(self.keys, 2)}
        self.site.fingerprint = {**self.site.fingerprint, **some}

    def change_level(self) -> None:
        factor = self.random.choice((0.6, 0.8, 1.4))
        for key in self.random.sample(self.keys, self.random.choice((1, len(self.keys)))):
            self.level[key] *= factor

    def change_software(self) -> None:
        self.site.software = {**self.site.software, "hdf5": f"1.14.{self.random.randrange(9)}"}

    def report_late_ones(self) -> None:
        for number in self.late:
            self.site.night(number, self.rates())
        self.late = []


@pytest.mark.parametrize("seed", range(3))
def test_one_more_night_is_judged_as_all_nights_are(site, seed):
    world = World(site, seed)
    world.past(140)
    for number in range(140, 165):
        world.tomorrow(number)
        if world.random.random() < 0.7:
            expected = plain(site.assess(number, **world.calendars))
            assert plain(site.tonight(number, **world.calendars)) == expected, number
            if world.random.random() < 0.2:
                site.night(number, world.rates(), hour=31)  # once more, after the assessment


# --- what is slower ---------------------------------------------------------------------------------------------------


def slowed(site: Site, keys: Sequence[str], slow: Sequence[str], nights: int = 60) -> str | None:
    """What is told of a file system on which some series have lost 40 % for ten nights."""
    rates = {key: noise(nights, number) for number, key in enumerate(keys)}
    rows = []
    for night in range(nights):
        factor = 0.6 if night >= nights - 10 else 1.0
        of = {key: factor if key in slow else 1.0 for key in keys}
        rows.append((night, {key: [of[key] * rate for rate in rates[key][night]] for key in keys}))
    site.nights(rows)
    (one,) = site.assess().file_systems
    return None if one.scope is None else one.scope.text


KEYS = [
    f"particles/{operation}/disk/{points}/CC{access}/{interface}"
    for operation in ("write", "read")
    for points in ("1x2", "4x2")
    for access, interface in (("", "hdf5"), ("-collective", "hdf5"), ("-collective", "mpiio"), ("", "posix"))
]
METADATA = [
    f"metadata/{op}/disk/1x2/private/posix" for op in ("file-create", "file-remove", "dir-create", "dir-remove")
]
IOR = [f"ior/{operation}/disk/1x2/shared/mpiio" for operation in ("write", "read")]


@pytest.mark.parametrize(
    ("slow", "text"),
    [
        ("", None),
        ("/", "the whole file system disk"),
        ("/write/ CC-collective/hdf5", "only HDF5 collective writes on disk"),
        ("particles /write/", "only particles writes on disk"),
        ("/hdf5", "only HDF5 I/O on disk"),
        ("CC/hdf5", "only HDF5 independent I/O on disk"),
        ("/4x2/", "only I/O from 4 nodes on disk"),
        ("ior", "only IOR on disk"),
        ("remove", "only removals on disk"),
        ("file-remove", "only file removals on disk"),
        ("metadata", "only metadata operations on disk"),
    ],
)
def test_what_is_slower_is_named(sqlite_site, slow, text):
    keys = KEYS + METADATA + IOR
    parts = slow.split()
    assert slowed(sqlite_site, keys, [key for key in keys if parts and all(part in key for part in parts)]) == text


def test_one_series_that_is_not_told_yet_is_no_reason_for_other_words(sqlite_site):
    slow = [key for key in KEYS if "/write/" in key]
    assert slowed(sqlite_site, KEYS, slow[:-1]) == "only writes on disk"


def test_two_series_are_no_file_system_and_new_ones_have_no_scope(sqlite_site):
    sqlite_site.nights([(night, {key(0): [100.0], key(1): [100.0]}) for night in range(30)])
    assert sqlite_site.assess().file_systems == ()
    sqlite_site.nights([(night, {key(n, "new"): [100.0] for n in range(5)}) for night in range(25, 30)])
    assert sqlite_site.assess().file_systems == ()
    assert plain(sqlite_site.tonight(29)) == plain(sqlite_site.assess())
