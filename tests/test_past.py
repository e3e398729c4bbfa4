"""A night ends in the history, and is told what was before it; a history that fails neither loses the night nor holds it."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from run_reports import STARTED, entry, one_night, profiled, records, report, written
from samples import make_night

from iogauge import nightly, past
from iogauge.errors import InputError
from iogauge.history import operators, schema
from iogauge.history.database import History
from iogauge.history.ingest import ingest
from iogauge.history.past import last_good, look_back
from iogauge.history.reading import list_series, read_measurements
from iogauge.night import Night, read_run_report
from iogauge.past import Good, Past

WRITE = "particles/write/disk/1x2/CC/hdf5"
DAY = timedelta(days=1)


def night_in(runs: Path, number: int, document: dict[str, Any] | None = None, **record: Any) -> Path:
    """The folder of a night with its report and its record."""
    started = STARTED + number * DAY
    folder = runs / started.strftime("%Y%m%dT%H%M%SZ")
    path = written(folder / "reframe.json", document or one_night(number))
    cases = read_run_report(path).cases
    make_night(*cases, site="here", started=started, finished=started + DAY / 24, **record).save(folder / "night.json")
    return folder


def with_darshan(number: int, seconds: float = 1.0, **changes: Any) -> dict[str, Any]:
    started = STARTED + number * DAY
    case = profiled(entry(records("write", "read", started=started, **changes)), seconds)
    return report([case], started=started)


def judged(document: dict[str, Any], verdict: str) -> dict[str, Any]:
    """The report with another verdict on everything."""
    for row in document["runs"][0]["testcases"][0]["judgement"]["rows"]:
        row["verdict"] = verdict
    return document


def sessions(history: History) -> int:
    with history.reading() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(schema.runs)).scalar() or 0)


# --- what was before --------------------------------------------------------------------------------------------------


def test_a_night_goes_into_the_history_with_those_before_that_are_not_there(history, tmp_path):
    folders = [night_in(tmp_path, number) for number in range(3)]
    (tmp_path / "20200101T000000Z").mkdir()  # killed before it had a report
    found = look_back(history, folders[-1])
    assert (sessions(history), found.notes) == (3, ())
    assert set((found.earlier_nights or {}).values()) == {2}
    assert len(found.earlier_nights or {}) == 6, "baselines are series, too"
    assert set(found.good) == {WRITE, WRITE.replace("write", "read")}
    again = look_back(history, folders[-1])
    assert (again.earlier_nights, again.good) == (found.earlier_nights, found.good), "asked again"
    assert sessions(history) == 3


def test_nights_of_another_configuration_and_the_same_night_do_not_count(history, tmp_path):
    other = one_night(0)
    for row in other["runs"][0]["testcases"][0]["judgement"]["rows"]:
        row["fingerprint"] = "ffffffff"
    night_in(tmp_path, 0, other)
    night_in(tmp_path, 1)
    ingest(history, written(tmp_path / "again.json", one_night(2, hour=1)))
    found = look_back(history, night_in(tmp_path, 2))
    assert set((found.earlier_nights or {}).values()) == {1}


def test_what_a_stopped_night_finished_is_in_the_history(history, tmp_path):
    aborted = entry([], name="Aborted") | {"result": "abort", "judgement": {}}
    document = report([entry(records("write")), aborted])
    folder = night_in(tmp_path, 0, document, complete=False, cause="stopped by SIGTERM")
    look_back(history, folder)
    with history.reading() as connection:
        (run,) = connection.execute(sa.select(schema.runs))
        assert (run.complete, run.cause, run.selected) == (False, "stopped by SIGTERM", 2)
        assert WRITE in {one.key for one in list_series(connection)}


def test_an_earlier_report_that_is_spoiled_is_told_and_keeps_nothing_else_out(history, tmp_path):
    folders = [night_in(tmp_path, number) for number in range(3)]
    (folders[0] / "reframe.json").write_text("{")
    found = look_back(history, folders[-1])
    assert sessions(history) == 2
    assert found.notes == (
        "1 earlier nights are not in the history; iogauge history ingest takes them in, or says why not",
    )


def test_a_night_that_stands_for_another_date_is_that_dates_in_the_history_too(history, tmp_path):
    folder = night_in(tmp_path, 0)
    night = Night.load(folder / "night.json")
    assert night.as_of is None
    as_of = night.started - 10 * DAY
    night.model_copy(update={"as_of": as_of, "started": as_of}).save(folder / "night.json")
    look_back(history, folder)
    with history.reading() as connection:
        (run,) = connection.execute(sa.select(schema.runs))
        (one,) = [one for one in list_series(connection) if one.key == WRITE]
        (measured,) = read_measurements(connection, [one])
    assert run.night == Night.load(folder / "night.json").night_date == STARTED.astimezone().date() - 11 * DAY
    assert run.started == int(as_of.timestamp())
    assert abs(measured.started[0] - run.started) < 3600


def test_a_night_is_assessed_with_all_before_it_and_an_earlier_run_of_it_is_no_night_before(history, tmp_path):
    folders = [
        night_in(tmp_path, number, one_night(number, slower=1.0 if number < 20 else 1.6)) for number in range(25)
    ]
    found = look_back(history, folders[-1])
    assert found.assessment is not None
    night = Night.load(folders[-1] / "night.json").model_copy(update={"assessment": found.assessment})
    assert {told.text.partition(",")[0] for _, _, told in night.told} == {"shifted level since 2026-03-20"}
    assert night.exit_code == 1

    again = night_in(tmp_path, 25, one_night(24, hour=14), first_run=folders[-1].name, of_night=night.night_date)
    later = look_back(history, again)
    assert later.assessment is not None
    assert later.assessment.night == found.assessment.night
    assert {len(state.repeats) for state in later.assessment.series} == {6}, "the repeats of both runs"
    assert (later.earlier_nights, later.good) == (found.earlier_nights, found.good)


def test_a_site_that_cannot_be_assessed_costs_the_night_a_note(history, tmp_path, monkeypatch):
    def assess_tonight(*unused, **alike):
        raise InputError("no such night")

    monkeypatch.setattr("iogauge.history.past.assess_tonight", assess_tonight)
    found = look_back(history, night_in(tmp_path, 0))
    assert (found.assessment, found.notes) == (None, ("not judged against the nights before: no such night",))
    assert found.earlier_nights is not None


# --- the last good night ----------------------------------------------------------------------------------------------


def good(history: History, before: int = 1 << 40, **options: Any) -> Good | None:
    with history.reading() as connection:
        (one,) = [one for one in list_series(connection) if one.key == WRITE]
        return last_good(connection, "here", WRITE, one.fingerprint, before, **options)


def test_the_last_good_night_is_the_newest_that_passed_with_what_darshan_saw(history, tmp_path):
    nights = [judged(with_darshan(0, 1.0), "pass"), judged(with_darshan(1, 2.0), "pass"), judged(with_darshan(2), "regressed"),
              judged(one_night(3), "no reference")]  # fmt: skip
    for number, document in enumerate(nights):
        ingest(history, written(tmp_path / f"{number}.json", document))
    found = good(history)
    assert found is not None
    assert (found.night.isoformat(), found.verdict, found.unit) == ("2026-03-01", "pass", "MiB/s")
    assert found.observed == max(found.rates)
    assert found.summary is not None
    assert found.summary.layers["POSIX"].write_seconds == 2.0
    assert found.software.hdf5 == "1.10.8"
    earlier = good(history, before=found.started)
    assert earlier is not None
    assert earlier.started < found.started
    assert good(history, before=earlier.started) is None


def test_a_series_without_a_pass_has_the_newest_that_was_not_slower(history, tmp_path):
    for number, verdict in enumerate(("no reference", "too noisy", "regressed")):
        ingest(history, written(tmp_path / f"{number}.json", judged(one_night(number), verdict)))
    found = good(history)
    assert found is not None
    assert (found.verdict, found.summary) == ("too noisy", None)
    assert good(history, profiled=True) is None


def test_nights_under_maintenance_are_not_good(history, tmp_path):
    for number in range(2):
        ingest(history, written(tmp_path / f"{number}.json", judged(one_night(number), "pass")))
    begins = int((STARTED + DAY).timestamp()) - 60
    operators.maintain(history, operators.Maintenance("here", "disk", begins, begins + 7200, 0, "me", "servers"))
    found = good(history)
    assert found is not None
    assert found.started == int(STARTED.timestamp())


def test_what_an_older_version_kept_in_place_of_a_summary_is_none(history, tmp_path):
    ingest(history, written(tmp_path / "a.json", judged(with_darshan(0), "pass")))
    with history.writing() as connection:
        connection.execute(sa.update(schema.cases).values(darshan={"posix": 1}))
    found = good(history)
    assert found is not None
    assert found.summary is None
    assert good(history, profiled=True) is None


# --- a history that fails ---------------------------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path))
    monkeypatch.delenv("IOGAUGE_HISTORY", raising=False)
    return tmp_path / "runs"


def test_the_process_of_its_own_answers_with_what_was_before(runs):
    night_in(runs, 0, judged(with_darshan(0), "pass"))
    found = past.look_back(night_in(runs, 1, with_darshan(1)))
    assert (found.notes, set((found.earlier_nights or {}).values())) == ((), {1})
    assert found.good[WRITE].summary is not None
    assert (runs.parent / "history.sqlite").exists()


def test_a_history_that_does_not_answer_is_told_after_its_time_and_the_folders_are_counted(runs):
    night_in(runs, 0)
    folder = night_in(runs, 1)
    History().upgrade()
    with closing(sqlite3.connect(runs.parent / "history.sqlite")) as other:
        other.execute("BEGIN EXCLUSIVE")
        begun = time.monotonic()
        found = past.look_back(folder, seconds=3)
        assert time.monotonic() - begun < past.ANSWER_SECONDS
    assert found.earlier_nights is None
    assert "no answer in 3 s. Later: iogauge history ingest" in found.notes[0]
    night = nightly._with_past(Night.load(folder / "night.json"), found, runs)
    assert set(night.earlier_nights.values()) == {1}
    assert night.notes == found.notes


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda file: file.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 16), "the database says"),
        (lambda file: file.mkdir(), "the database says"),
        (lambda file: _newer(file), "was written by a newer iogauge"),
    ],
)
def test_a_broken_or_newer_history_is_told_and_left_as_it_is(tmp_path, spoil, why):
    file = tmp_path / "history.sqlite"
    spoil(file)
    before = None if file.is_dir() else file.read_bytes()
    found = look_back(History(str(file)), night_in(tmp_path / "runs", 0))
    assert found.earlier_nights is None
    assert any(why in note and "this night is not in the history" in note for note in found.notes)
    assert before is None or file.read_bytes() == before


def _newer(file: Path) -> None:
    History(str(file)).upgrade()
    with History(str(file)).writing() as connection:
        connection.execute(sa.text("UPDATE iogauge_version SET version_num = '9999'"))


def test_a_process_that_breaks_is_told_in_its_own_words(runs, monkeypatch):
    monkeypatch.setenv("IOGAUGE_HISTORY", "mysql://somewhere/x")
    found = past.look_back(night_in(runs, 0))
    assert found.earlier_nights is None
    assert "postgresql://USER@HOST/DATABASE is expected" in found.notes[0]


def test_a_history_of_the_version_before_is_migrated_with_all_nights(history, tmp_path):
    """Revision 0001 knew of no origin, states and comparisons, and kept a switch where the summaries are."""
    first = tmp_path / "first.sqlite"
    current = History(str(first))
    ingest(current, written(tmp_path / "a.json", one_night(0)))
    with current.writing() as connection:
        connection.execute(sa.text("UPDATE cases SET darshan = 'true'"))
        for column in ("origin", "sha256"):
            connection.execute(sa.text(f"ALTER TABLE runs DROP COLUMN {column}"))
        connection.execute(sa.text("DROP TABLE states"))
        connection.execute(sa.text("DROP TABLE comparisons"))
        connection.execute(sa.text("UPDATE iogauge_version SET version_num = '0001'"))
    with pytest.raises(InputError, match="of an older iogauge"), History(str(first)).reading():
        pass
    copy = History(str(shutil.copy(first, tmp_path / "copy.sqlite")))
    assert copy.upgrade() == ("0001", "0004")
    with copy.reading() as connection:
        assert connection.execute(sa.select(schema.runs.c.origin)).scalars().all() == ["reframe"]
        assert connection.execute(sa.select(schema.cases.c.darshan)).scalars().all() == [None]


def test_a_past_is_whole_when_it_went_through_the_process():
    assert Past.model_validate_json(Past(notes=("x",)).model_dump_json(by_alias=True)) == Past(notes=("x",))
