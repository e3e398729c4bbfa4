"""What is known of a site tonight, made from its history: by judging all of it, and by going on from last night."""

from __future__ import annotations

import datetime
import random
import shutil
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from iogauge.assess import tonight
from iogauge.assess.reading import assess
from iogauge.assess.record import Assessment, SeriesState
from iogauge.assess.tonight import assess_tonight
from iogauge.detect import Calendar
from iogauge.errors import InputError
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
                        seconds = {"total_seconds": [_seconds(rate) for rate in rates[key]]}
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


def _seconds(rate: float) -> float | None:
    return 1 / rate if rate else None


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


def test_one_more_night_is_judged_as_all_nights_are(site):
    world = World(site, 7)
    world.past(135)
    for number in range(135, 150):
        world.tomorrow(number)
        if world.random.random() < 0.6:
            expected = plain(site.assess(number, **world.calendars))
            assert plain(site.tonight(number, **world.calendars)) == expected, number
            if world.random.random() < 0.2:
                site.night(number, world.rates(), hour=31)  # once more, after the assessment


@pytest.fixture
def remembered(sqlite_site: Site) -> Site:
    """Three series of 40 nights, of which all but the last are remembered."""
    sqlite_site.nights([(night, {key(n): noise(40, n)[night] for n in range(3)}) for night in range(40)])
    sqlite_site.tonight(39)
    return sqlite_site


def test_what_is_remembered_is_up_to_the_night_before_and_used(remembered, monkeypatch):
    (state,) = remembered.states()
    assert (state.site, state.file_system, state.night) == ("here", "disk", day(38))
    asked: list[int] = []
    read = tonight.read_nights

    def counted(*args: Any, **options: Any) -> Any:
        found = list(read(*args, **options))
        asked.extend(len(one.nights.history) for one in found)
        return found

    remembered.nights([(night, {key(n): noise(300, n)[night] for n in range(3)}) for night in range(40, 200)])
    remembered.tonight(198)
    monkeypatch.setattr(tonight, "read_nights", counted)
    assert plain(remembered.tonight(199)) == plain(remembered.assess())
    assert asked
    assert max(asked) < 150


def test_a_night_that_gets_another_run_is_judged_with_both(remembered):
    remembered.night(39, {key(0): (200.0,)}, hour=30)
    assert plain(remembered.tonight(39)) == plain(remembered.assess())
    assert {one.key: one.rate for one in remembered.tonight(39).series}[key(0)] == pytest.approx(200)


@pytest.mark.parametrize("change", ["late report", "late invalid", "ack", "bless", "window", "rename", "calendar"])
def test_what_changes_the_past_makes_it_be_judged_anew(remembered, change):
    calendars = {}
    if change == "late report":
        remembered.night(20, {key(0): (500.0,)}, hour=30)
    elif change == "late invalid":
        remembered.night(20, {}, invalid={key(0): "too late"}, hour=30)
    elif change in ("ack", "bless"):
        remembered.say(change, key(1), moment(30, 34), since=moment(25, 0))
    elif change == "window":
        remembered.maintain(moment(30, 20), moment(33, 0), "disk")
    elif change == "rename":
        operators.rename(remembered.history, "here", "disk", "scratch", who="anna", why="moved")
    else:
        calendars = {"disk": Calendar(days_of_month=frozenset({3}))}
    name = "scratch" if change == "rename" else "disk"
    remembered.night(40, {key(n, name): (70.0, 80.0) for n in range(3)})
    before = remembered.states()
    assert plain(remembered.tonight(40, **calendars)) == plain(remembered.assess(**calendars))
    (state,) = remembered.states()
    assert (state.file_system, state.night) == (name, day(39))
    assert (state.basis != before[0].basis) == (not change.startswith("late"))


def test_two_writers_at_once_leave_a_right_state(site):
    site.nights([(night, {key(n): noise(40, n)[night] for n in range(3)}) for night in range(40)])
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda night: plain(site.tonight(night)), [38, 39, 39, 38]))
    assert found == [plain(site.assess(night)) for night in (38, 39, 39, 38)]
    assert plain(site.tonight(39)) == plain(site.assess())


def test_killed_while_it_writes_leaves_what_was_remembered(remembered, monkeypatch):
    before = remembered.states()
    remembered.night(40, {key(0): (80.0,)})

    def killed(table: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(tonight, "insert", killed)
        with pytest.raises(KeyboardInterrupt):
            remembered.tonight(40)
    assert remembered.states() == before
    assert plain(remembered.tonight(40)) == plain(remembered.assess())


def test_a_history_that_cannot_be_written_is_judged_all_the_same(remembered, monkeypatch):
    remembered.night(40, {key(0): (80.0,)})

    def read_only(history: History) -> Any:
        raise InputError("the database says: attempt to write a readonly database. Nothing was changed")

    monkeypatch.setattr(History, "writing", read_only)
    found = remembered.tonight(40)
    assert [note.partition(":")[0] for note in found.notes] == [
        "what the detector remembers is not kept, and the next night takes longer"
    ]
    assert found.series == remembered.assess().series


# --- from the history -------------------------------------------------------------------------------------------------


def test_all_runs_of_a_night_are_one_and_the_best_repeat_counts(site):
    site.night(0, {WRITE: (100.0, 90.0)})
    site.night(0, {WRITE: (120.0,)}, hour=31)
    site.night(1, {WRITE: (95.0,)})
    found = assess(site.history, "here", night=day(1))
    (line,) = found.timelines
    assert line.dates.tolist() == [day(0), day(1)]
    assert line.rates.tolist() == pytest.approx([120, 95])
    assert line.repeats[0] == pytest.approx((100, 90, 120))
    assert only(found.assessment).repeats == pytest.approx((95,))


def test_reads_from_the_page_cache_and_baselines_are_no_nights(sqlite_site):
    sqlite_site.night(0, {WRITE: (100.0,)})
    sqlite_site.night(1, {WRITE: (9000.0,), key(1): (9000.0,)}, cached=True)
    sqlite_site.night(1, {WRITE: (50.0,), key(3): (1.0,)}, role="baseline")
    one = only(sqlite_site.assess())
    assert (one.key, one.date, one.rate) == (WRITE, day(0), pytest.approx(100))


def test_an_invalid_case_is_a_night_of_the_series_that_it_had_measured(site):
    site.night(0, {}, invalid={WRITE: "before it was ever measured"})
    site.night(1, {WRITE: (100.0,)})
    site.night(2, {}, invalid={WRITE: "2 ranks share core 0 of n1", key(5): "no such folder"})
    found = site.assess()
    one = only(found)
    assert (one.word, one.reason, one.date, one.rate) == ("invalid", "2 ranks share core 0 of n1", day(2), None)
    assert found.notes == (f"Check {key(5)}: never measured yet, and invalid: no such folder",)
    site.night(2, {WRITE: (90.0,)}, hour=30)
    one = only(site.assess())
    assert (one.word, one.rate, one.notes) == (
        "no reference", pytest.approx(90), (f"{day(2)}: 2 ranks share core 0 of n1",)
    )  # fmt: skip


@pytest.mark.parametrize("rates", [(), (0.0,), (-5.0,), (float("inf"),), (0.0, -1.0)])
def test_rates_that_are_none_are_an_invalid_night_and_never_an_alarm(sqlite_site, rates):
    nights = [(night, {WRITE: rate}) for night, rate in enumerate(noise(40))]
    sqlite_site.nights([*nights, (40, {WRITE: rates})])
    one = only(sqlite_site.assess())
    assert (one.word, one.rate, one.alarm) == ("invalid", None, False)
    assert "is no rate; only numbers above 0 are" in one.reason
    sqlite_site.night(41, {WRITE: (100.0, *rates)})
    one = only(sqlite_site.assess())
    assert (one.word, one.rate) == ("pass", pytest.approx(100))


def test_nights_in_the_future_are_told_and_left_out(sqlite_site):
    sqlite_site.nights([(night, {WRITE: rate}) for night, rate in enumerate(noise(30))])
    sqlite_site.night(20000, {WRITE: (1.0,)})
    found = sqlite_site.assess()
    assert (only(found).date, only(found).word) == (day(29), "pass")
    assert found.notes == (f"nights in the future, left out: {day(20000)}",)


def test_a_clock_that_was_set_back_is_told(sqlite_site):
    sqlite_site.nights([(night, {WRITE: rate}) for night, rate in enumerate(noise(30))])
    sqlite_site.night(30, {WRITE: (100.0,)}, hour=-60)
    one = only(sqlite_site.assess())
    assert (one.word, one.notes) == ("pass", (f"{day(30)}: measured before the night before it: a clock was set?",))


def test_another_unit_or_configuration_begins_anew_and_alarms_nobody(sqlite_site):
    sqlite_site.nights([(night, {WRITE: rate}) for night, rate in enumerate(noise(40))])
    sqlite_site.unit = "operations/s"
    sqlite_site.nights([(night, {WRITE: (3.0,)}) for night in range(40, 45)])
    one = only(sqlite_site.assess())
    assert (one.word, one.unit, one.rate, one.nights) == ("no reference", "operations/s", pytest.approx(3), 5)
    assert one.notes == (f"{day(40)}: in operations/s from here on, in MiB/s before",)
    sqlite_site.unit = "MiB/s"
    sqlite_site.night(44, {WRITE: (9.0,)}, hour=30)  # somebody tries once more what was there before
    one = only(sqlite_site.assess())
    told = f"{day(44)}: measured with several configurations: the usual one's rates count"
    assert (one.rate, one.notes[-1]) == (pytest.approx(3), told)


def test_a_change_of_software_is_named_as_people_name_it(sqlite_site):
    sqlite_site.nights([(night, {WRITE: rate}) for night, rate in enumerate(noise(40))])
    sqlite_site.software |= {"hdf5": "1.14.5", "suite": "2", "spack": "h5bench@1.4/abc", "packages": {"h5py": "3.1"}}
    sqlite_site.nights([(40 + night, {WRITE: [0.6 * one for one in rate]}) for night, rate in enumerate(noise(8, 1))])
    one = only(sqlite_site.assess())
    changes = ("HDF5 1.14.3 -> 1.14.5", "Spack spec none -> h5bench@1.4/abc", "h5py none -> 3.1")
    assert one.word == "shifted level"
    assert one.move is not None
    assert one.move.changes == one.changes == changes


class TestOperators:
    @pytest.fixture
    def slow(self, sqlite_site: Site) -> Site:
        """Slower by 40 % from night 40 on, until night 49."""
        sqlite_site.nights([(night, {WRITE: rate}) for night, rate in enumerate(noise(40))])
        later = enumerate(noise(10, 1))
        sqlite_site.nights([(40 + night, {WRITE: [0.6 * one for one in rate]}) for night, rate in later])
        assert only(sqlite_site.assess()).alarm
        return sqlite_site

    def test_an_ack_of_the_morning_is_of_the_night_before(self, slow):
        slow.say("ack", "particles/*/disk/*", moment(49, 33))
        one = only(slow.assess())
        assert (one.word, one.alarm) == ("shifted level", False)
        assert one.move is not None
        assert one.move.acknowledged is not None
        assert (one.move.acknowledged.who, one.move.acknowledged.on) == ("anna", day(49))
        assert only(slow.assess(48)).alarm  # nobody had said anything yet

    def test_a_blessed_level_is_the_new_reference(self, slow):
        slow.say("bless", WRITE, moment(49, 33), since=moment(40, 24))
        one = only(slow.assess())
        assert (one.word, one.nights, one.moves[-1].how) == ("pass", 10, "blessed by anna: ticket")

    def test_a_mute_holds_until_its_end(self, slow):
        slow.say("mute", WRITE, moment(49, 33), until=moment(51, 12))
        assert not only(slow.assess()).alarm
        slow.night(50, {WRITE: (60.0,)})
        assert not only(slow.assess()).alarm
        slow.night(51, {WRITE: (60.0,)})
        assert only(slow.assess()).alarm

    def test_what_is_said_of_others_is_nothing_here(self, slow):
        slow.say("ack", "particles/*/scratch/*", moment(49, 33))
        assert only(slow.assess()).alarm


def test_runs_in_a_maintenance_window_do_not_count(site):
    site.nights([(night, {WRITE: rate}) for night, rate in enumerate(noise(40))])
    for night in range(40, 46):
        site.night(night, {WRITE: (10.0,)})
    site.night(45, {WRITE: (99.0,)}, hour=31)
    assert only(site.assess(44)).word == "shifted level"
    site.maintain(moment(40, 20), moment(45, 28), "disk")
    one = only(site.assess(44))
    assert (one.word, one.maintenance, one.moves) == ("pass", True, ())
    one = only(site.assess())
    assert (one.word, one.maintenance, one.rate) == ("pass", False, pytest.approx(99))


def test_the_sites_calendar_weighs_its_days(sqlite_site):
    sqlite_site.nights([(night, {WRITE: rate}) for night, rate in enumerate(noise(40))])
    one = only(sqlite_site.assess(disk=Calendar(days_of_month=frozenset({day(39).day}))))
    assert one.maintenance
    assert not only(sqlite_site.assess(scratch=Calendar(days_of_month=frozenset({day(39).day})))).maintenance


def test_a_site_or_night_that_is_not_there_is_named(sqlite_site):
    with pytest.raises(InputError, match="no night of 'here' in the history; it has those of: none"):
        sqlite_site.assess()
    sqlite_site.night(5, {WRITE: (1.0,)})
    with pytest.raises(InputError, match="none of site 'here' up to 2024-01-02; the first is 2024-01-06"):
        sqlite_site.tonight(1)
    with pytest.raises(InputError, match="no night of 'there' in the history; it has those of: here"):
        assess(sqlite_site.history, "there")


# --- what is slower ---------------------------------------------------------------------------------------------------


def slowed(site: Site, keys: Sequence[str], slow: Sequence[str], nights: int = 36) -> str | None:
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


class TestTogether:
    """What is said of every series of a file system is said of the file system, also where only all together tell."""

    keys = tuple(key(number) for number in range(8))
    rates = 100 * np.exp(0.12 * np.random.default_rng(5).standard_normal((90, 8)))

    @pytest.fixture
    def slow(self, sqlite_site: Site) -> Site:
        """Eight series that have lost 15 % for three nights: none is told alone, all together are."""
        self.nights(sqlite_site, 0, 57, 1.0)
        self.nights(sqlite_site, 57, 60)
        assert self.told(sqlite_site, 59) == (["disk"], [])
        return sqlite_site

    def nights(self, site: Site, first: int, last: int, factor: float = 0.85) -> None:
        rates = (factor * self.rates)[:, :, None].tolist()
        site.nights([(night, dict(zip(self.keys, rates[night], strict=True))) for night in range(first, last)])

    def told(self, site: Site, night: int) -> tuple[list[str], list[str]]:
        """The file systems that are slower as a whole, and the series that alarm: exit code 1 where there is any."""
        found = site.tonight(night)
        return [one.name for one in found.slower_as_a_whole], [one.key for one in found.alarms]

    def told_later(self, site: Site) -> list[tuple[list[str], list[str]]]:
        """The same of the coming nights, on which all stay as slow as they are."""
        later = []
        for night in range(60, 68):
            self.nights(site, night, night + 1)
            later.append(self.told(site, night))
        assert plain(site.tonight(67)) == plain(site.assess())
        return later

    def test_without_a_word_it_is_told_night_after_night_and_some_series_with_it(self, slow):
        later = self.told_later(slow)
        assert all(whole == ["disk"] for whole, _ in later)
        assert later[-1][1]

    def test_a_bless_of_all_series_ends_it_at_once(self, slow):
        slow.say("bless", "particles/*/disk/*", moment(59, 33), since=moment(57, 24))
        assert self.told(slow, 59) == ([], [])
        assert self.told_later(slow) == [([], [])] * 8
        (move,) = slow.assess().file_systems[0].moves
        assert (move.began, move.ended, move.how) == (day(57), day(60), "blessed by anna: ticket")

    def test_a_bless_of_most_series_one_after_the_other_ends_it_with_the_fifth_of_eight(self, slow):
        for number in range(5):
            assert self.told(slow, 59)[0] == ["disk"]
            slow.say("bless", self.keys[number], moment(59, 33), since=moment(57, 24))
        assert self.told(slow, 59)[0] == []

    def test_a_bless_of_one_series_takes_that_one_out(self, slow):
        slow.say("bless", self.keys[0], moment(59, 33), since=moment(57, 24))
        later = self.told_later(slow)
        assert all(whole == ["disk"] and self.keys[0] not in alone for whole, alone in later)
        assert later[-1][1]

    def test_a_bless_from_before_it_began_does_not_end_it(self, sqlite_site):
        self.nights(sqlite_site, 0, 57, 1.0)
        for number, night in enumerate((40, 40, 40, 40, 59)):
            if night == 59:
                self.nights(sqlite_site, 57, 60)
            sqlite_site.say("bless", self.keys[number], moment(night, 33), since=moment(night - 3, 24))
        assert self.told(sqlite_site, 59)[0] == ["disk"]

    def test_another_configuration_of_all_series_ends_it(self, slow):
        slow.fingerprint = dict.fromkeys(self.keys, "another")
        self.nights(slow, 60, 73)
        for night in range(73, 77):  # from the second of these on there is a reference again
            self.nights(slow, night, night + 1)
            assert self.told(slow, night) == ([], [])

    def test_an_ack_of_all_series_is_an_ack_of_the_file_system_and_of_each_that_is_told_later(self, slow):
        slow.say("ack", "particles/*/disk/*", moment(59, 33))
        assert self.told(slow, 59) == ([], [])
        assert self.told_later(slow) == [([], [])] * 8
        found = slow.assess()
        assert found.counts["shifted level"]
        move = found.file_systems[0].move
        assert move is not None
        assert move.acknowledged is not None
        assert (move.acknowledged.who, move.acknowledged.on) == ("anna", day(59))

    def test_an_ack_of_all_series_but_one_is_none_of_the_file_system(self, slow):
        for number in range(7):
            slow.say("ack", self.keys[number], moment(59, 33))
        assert self.told(slow, 59)[0] == ["disk"]

    def test_what_begins_after_an_ack_and_a_recovery_is_news(self, slow):
        slow.say("ack", "*", moment(59, 33))
        self.nights(slow, 60, 72, 1.0)
        assert self.told(slow, 71) == ([], [])
        self.nights(slow, 72, 76, 0.75)
        assert self.told(slow, 75)[0] == ["disk"]

    def test_a_mute_of_all_series_holds_until_its_end(self, slow):
        slow.say("mute", "*", moment(59, 33), until=moment(63, 12))
        assert self.told(slow, 59) == ([], [])
        later = self.told_later(slow)
        assert later[:3] == [([], [])] * 3
        assert all(whole == ["disk"] for whole, _ in later[3:])
