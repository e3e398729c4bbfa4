"""The history keeps what run reports say, once and whole, in SQLite and in PostgreSQL alike."""

from __future__ import annotations

import copy
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from click.testing import CliRunner, Result
from conftest import needs_root
from pyarrow import csv, parquet
from run_reports import (
    STARTED,
    entry,
    invalid_entry,
    one_night,
    profiled,
    records,
    report,
    skipped_entry,
    written,
)
from samples import baseline, make_night, record

from iogauge import cli
from iogauge.bands_cli import bands_group
from iogauge.darshan.summary import Summary
from iogauge.errors import InputError
from iogauge.history import database, operators, schema
from iogauge.history.cli import history_group
from iogauge.history.database import History, add_rows
from iogauge.history.export import export
from iogauge.history.ingest import Outcome, ingest
from iogauge.history.reading import (
    Measurements,
    count_by_series,
    list_series,
    read_evidence,
    read_measurements,
    read_runs,
    read_software,
)

WRITE = "particles/write/disk/1x2/CC/hdf5"
RECENT = timedelta(days=1)


Take = Callable[..., Outcome]


@pytest.fixture
def take(history: History, tmp_path: Path) -> Take:
    """Ingests a report's document."""

    def taken(document: dict[str, Any], name: str = "report.json", **options: Any) -> Outcome:
        return ingest(history, written(tmp_path / name, document), **options)

    return taken


@pytest.fixture
def sqlite_take(tmp_path: Path) -> Take:
    """The same into SQLite alone, for what is found before the database is asked."""
    history = History(str(tmp_path / "history.sqlite"))
    return lambda document: ingest(history, written(tmp_path / "report.json", document))


def all_rows(history: History) -> dict[str, list[tuple[Any, ...]]]:
    """The whole of the history."""
    with history.reading() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(sa.select(table))), key=repr)
            for table in schema.metadata.sorted_tables
        }


def measured(history: History, key: str = WRITE) -> Measurements:
    """The measurements of the one series with that key."""
    with history.reading() as connection:
        (one,) = read_measurements(connection, [one for one in list_series(connection) if one.key == key])
    return one


def verdicts(history: History) -> dict[str, tuple[str, list[str]]]:
    with history.reading() as connection:
        rows = connection.execute(sa.select(schema.cases.c.name, schema.cases.c.verdict, schema.cases.c.reasons))
        return {name: (verdict, reasons) for name, verdict, reasons in rows}


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_the_tables_are_those_that_the_migrations_make(history):
    with history.writing() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": database.VERSION_TABLE})
        assert compare_metadata(context, schema.metadata) == []


def test_the_revisions_are_those_that_alembic_finds():
    migrations = ScriptDirectory(str(Path(database.__file__).parent / "migrations"))
    assert database.revisions() == tuple(found.revision for found in migrations.walk_revisions())


def test_every_repeat_software_placement_and_ratio_is_kept(history, take):
    case = profiled(entry(records("write", "read")))
    case["darshan"] = True  # what was asked for is not what was seen
    outcome = take(report([case]))
    assert (outcome.added, outcome.cases, outcome.measurements, outcome.spoiled) == (True, 1, 6, [])
    one = measured(history)
    true = [64 / (transfer + 0.12) for transfer in (0.52, 0.5, 0.58)]
    assert one.repeats(0) == pytest.approx(true)
    assert (one.observed[0], one.series.unit, one.main[0]) == (pytest.approx(max(true)), "MiB/s", True)
    with history.reading() as connection:
        (evidence,) = read_evidence(connection, one.series)
        (versions,) = read_software(connection).values()
        (placement,) = connection.execute(sa.select(schema.placements.c.hosts, schema.placements.c.cores))
        (darshan,) = connection.execute(sa.select(schema.cases.c.darshan)).scalars()
        (run,) = read_runs(connection).values()
        assert len(list_series(connection)) == 6
    assert evidence["transfer_seconds"] == [0.52, 0.5, 0.58]
    assert evidence["flush_seconds"] == [0.1] * 3
    assert {ratio["name"]: len(ratio["pairs"]) for ratio in evidence["ratios"]} == {"to_mpiio": 3, "to_posix": 3}
    assert versions["hdf5"] == "1.10.8"
    assert tuple(placement) == ({"n1": 2}, {"n1": [[0], [1]]})
    assert Summary.model_validate(darshan).layers["POSIX"].bytes_written == 1 << 26
    assert (run.night, run.started, run.complete) == (date(2026, 2, 28), int(STARTED.timestamp()), True)


def test_a_nights_folder_tells_suite_machine_and_what_stopped_it(history, tmp_path):
    written(tmp_path / "night" / "reframe.json", one_night())
    make_night(complete=False, cause="stopped by SIGTERM", notes=("no quota",)).save(tmp_path / "night" / "night.json")
    ingest(history, tmp_path / "night")
    with history.reading() as connection:
        (run,) = connection.execute(sa.select(schema.runs))
    assert (run.site, run.suite, run.complete, run.cause) == ("here", "nightly", False, "stopped by SIGTERM")
    assert run.machine["processor"] == "A Processor 9000"
    assert run.notes == ["no quota"]


def test_invalid_and_skipped_cases_are_kept_as_such_and_are_no_rate(history, take):
    aborted = entry([], name="Aborted") | {"result": "abort"}
    outcome = take(report([entry(records("write")), invalid_entry("share a core"), skipped_entry("too big"), aborted]))
    assert (outcome.cases, outcome.measurements) == (3, 3)
    found = verdicts(history)
    assert found["Invalid"] == ("invalid", ["share a core"])
    assert found["Skipped"] == ("skipped", ["too big"])
    assert "Aborted" not in found
    with history.reading() as connection:
        assert connection.execute(sa.select(schema.runs.c.selected)).scalar() == 4


def test_a_baseline_of_another_pattern_is_some_other_cases_series(history, take):
    main = record("write", dimensions=2)
    take(report([entry([main, baseline(main, dimensions="1")])]))
    with history.reading() as connection:
        (one,) = list_series(connection)
    assert one.key == "particles/write/disk/1x2/CC-2d/hdf5"


def test_a_read_from_the_page_cache_is_marked(history, take):
    take(one_night(cached=0.4))
    assert measured(history, "particles/read/disk/1x2/CC/hdf5").cached.tolist() == [True]
    assert measured(history).cached.tolist() == [False]


def test_series_are_read_in_order_of_time_whatever_came_first(history, take):
    for number in (2, 0, 1):
        take(one_night(number, slower=1 + number / 10), f"{number}.json")
    one = measured(history)
    assert list(one.started) == [int((STARTED + number * RECENT).timestamp()) for number in range(3)]
    assert list(one.observed) == sorted(one.observed, reverse=True)
    assert [len(one.repeats(number)) for number in range(3)] == [3, 3, 3]
    with history.reading() as connection:
        since = int((STARTED + RECENT).timestamp())
        (later,) = read_measurements(connection, [one.series], since=since)
        assert len(later) == 2
        assert count_by_series(connection, "here")[one.series.id] == (3, date(2026, 2, 28), date(2026, 3, 2))


def test_a_change_of_software_is_in_the_same_series(history, take):
    take(one_night(0), "0.json")
    take(one_night(1, software={"hdf5": "1.14.5"}), "1.json")
    one = measured(history)
    with history.reading() as connection:
        versions = read_software(connection)
    assert [versions[number]["hdf5"] for number in one.software_id.tolist()] == ["1.10.8", "1.14.5"]


# --- once, whole, by one at a time ------------------------------------------------------------------------------------


def test_the_same_report_twice_changes_nothing(history, take):
    document = one_night()
    take(document)
    before = all_rows(history)
    again = take(document)
    assert (again.added, again.measurements) == (False, 0)
    assert all_rows(history) == before


def test_a_copy_of_a_night_under_another_session_is_not_taken_twice(history, take):
    take(one_night(session="first"))
    before = all_rows(history)
    again = take(one_night(session="second"), "copy.json")
    assert not again.added
    assert "the same measurements as" in again.notes[0]
    assert all_rows(history) == before


def test_a_session_with_other_measurements_is_refused_and_changes_nothing(history, take):
    take(one_night(session="first"))
    before = all_rows(history)
    with pytest.raises(InputError, match="session first, which is in the history with other measurements"):
        take(one_night(session="first", slower=2.0), "other.json")
    assert all_rows(history) == before


def test_two_runs_of_one_night_are_both_kept_and_told(history, take):
    take(one_night(hour=22), "a.json")
    second = take(one_night(hour=26), "b.json")
    assert second.notes == ["run 2 of this night"]
    assert len(measured(history)) == 2


def test_two_writers_at_once_keep_everything_once(location, tmp_path):
    reports = [written(tmp_path / f"{number}.json", one_night(number)) for number in range(6)]
    failures: list[BaseException] = []

    def write(order: list[Path]) -> None:
        try:
            history = History(location)
            for path in order:
                ingest(history, path)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(order,)) for order in (reports, reports[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(measured(History(location))) == 6


_KILLED_AT = """
import os, signal, sys
from pathlib import Path
from iogauge.history import ingest
from iogauge.history.database import History

add_rows = ingest.add_rows

def killed(connection, table, rows):
    add_rows(connection, table, rows)
    if table.name == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

ingest.add_rows = killed
ingest.ingest(History(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("table", ["runs", "evidence"])
def test_killed_half_way_nothing_is_kept_and_the_next_one_goes_well(history, location, take, tmp_path, table):
    take(one_night(0))
    before = all_rows(history)
    path = written(tmp_path / "second.json", one_night(1))
    done = subprocess.run([sys.executable, "-c", _KILLED_AT, location, str(path), table], check=False)
    assert done.returncode == -signal.SIGKILL
    assert all_rows(history) == before
    assert ingest(history, path).added
    assert len(measured(history)) == 2


def test_a_row_that_is_there_already_is_told_by_either_database_alike_and_nothing_of_it_is_kept(history, take):
    take(one_night(0))
    before = all_rows(history)
    with history.reading() as connection:
        rows = [dict(row) for row in connection.execute(sa.select(schema.software)).mappings()]
    new = [{**row, "id": row["id"] + 100, "digest": f"new {row['digest']}"} for row in rows]
    with pytest.raises(sa.exc.IntegrityError, match=r"(?i)unique"), history.writing() as connection:
        add_rows(connection, schema.software, new + rows)
    assert all_rows(history) == before


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text[: len(text) // 2], "only a part of one: .* at line 1 column"),
        (lambda text: "", "only a part of one"),
        (lambda text: "[1, 2]", "no run report of ReFrame"),
        (lambda text: '{"runs": []}', "no run report of ReFrame.*session_info"),
        (lambda text: text.replace('"judgement"', '"verdicts"'), "without any case of iogauge .1 others"),
        (lambda text: text.replace('"time_start_unix"', '"begin"'), "time_start_unix"),
        (lambda text: text.replace('"iogauge.measurement/1"', '"iogauge.measurement/9"'), "records of another version"),
        (lambda text: text.replace('"seed"', '"seeds"'), "records of another version"),
        (lambda text: text.replace('"observed_repeats"', '"rates"'), "observed_repeats"),
    ],
)
def test_what_is_no_report_of_ours_is_refused_with_its_name(tmp_path, spoil, message):
    history = History(str(tmp_path / "history.sqlite"))
    path = tmp_path / "bad.json"
    path.write_text(spoil(json.dumps(one_night())), encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        ingest(history, path)
    assert caught.value.file == path
    assert not history.exists()


def test_a_truncated_report_leaves_what_was_there(history, take, tmp_path):
    take(one_night())
    before = all_rows(history)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(one_night(1))[:-100], encoding="utf-8")
    with pytest.raises(InputError):
        ingest(history, path)
    assert all_rows(history) == before


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "finite number"),
        (float("inf"), "finite number"),
        (0.0, "greater than 0"),
        (-1.0, "greater than 0"),
    ],
)
@pytest.mark.parametrize("name", ["total_seconds", "transfer_seconds"])
def test_no_rate_comes_of_times_that_are_none(sqlite_take, tmp_path, name, value, message):
    good, bad = entry(records("write")), entry(records("write"), file_system="memory", name="Spoiled")
    bad["measurements"][0]["repeats"][1][name] = value
    outcome = sqlite_take(report([good, bad]))
    history = History(str(tmp_path / "history.sqlite"))
    assert outcome.measurements == 3
    (line,) = outcome.spoiled
    assert f"Spoiled: records spoiled: measurements.0.repeats.1.{name}" in line
    assert message in line
    verdict, reasons = verdicts(history)["Spoiled"]
    assert (verdict, message in reasons[0]) == ("invalid", True)
    assert len(measured(history)) == 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda case: case["judgement"]["rows"][0].update(observed_repeats=[1e9] * 3),
        lambda case: case["judgement"]["rows"][0].update(observed_repeats=[float("nan")] * 3),
        lambda case: case["judgement"]["rows"][0].update(unit="operations/s"),
        lambda case: case["measurements"][0].update(logical_bytes=1 << 40),
        lambda case: case["measurements"][0]["repeats"][0].update(mismatches=1),
        lambda case: case["measurements"].pop(),
        lambda case: case["judgement"]["rows"].append(copy.deepcopy(case["judgement"]["rows"][0])),
    ],
)
def test_rates_that_do_not_follow_from_the_records_are_invalid(sqlite_take, tmp_path, spoil):
    case = entry(records("write"))
    spoil(case)
    outcome = sqlite_take(report([case]))
    assert (outcome.measurements, len(outcome.spoiled)) == (0, 1)
    assert next(iter(verdicts(History(str(tmp_path / "history.sqlite"))).values()))[0] == "invalid"


def test_another_unit_is_another_series_and_is_told(history, take):
    take(one_night())
    counted = entry(records("write"))
    for one in counted["measurements"]:
        one |= {"logical_bytes": 0, "operations": 1000}
        for repeat in one["repeats"]:
            repeat |= {"verified_bytes": 0, "verified_operations": 1000}
    counted = entry(counted["measurements"])
    for row, before in zip(counted["judgement"]["rows"], entry(records("write"))["judgement"]["rows"], strict=True):
        row["fingerprint"] = before["fingerprint"]
    outcome = take(report([counted], started=STARTED + RECENT), "counted.json")
    assert f"{WRITE} was in MiB/s, and is in operations/s here: a series of its own" in outcome.notes
    with history.reading() as connection:
        assert [one.unit for one in list_series(connection) if one.key == WRITE] == ["MiB/s", "operations/s"]


@pytest.mark.parametrize(
    "started", [datetime(1970, 1, 1, 3, tzinfo=timezone.utc), datetime(2199, 1, 1, tzinfo=timezone.utc)]
)
def test_a_night_of_a_clock_that_was_wrong_waits_for_its_time(history, take, started):
    document = report([entry(records("write", started=started))], started=started)
    with pytest.raises(InputError, match=r"began at .* by its clock, which cannot be right; --started"):
        take(document)
    outcome = take(document, started=STARTED + timedelta(hours=3))
    assert outcome.added
    assert measured(history).started.tolist() == [int((STARTED + timedelta(hours=3)).timestamp())]
    assert not take(document, started=STARTED).added


def test_a_clock_set_back_during_the_run_is_told(history, take):
    outcome = take(report([entry(records("write"))], time_end_unix=STARTED.timestamp() - 60))
    assert "the clock went back by at least 60 s during the run" in outcome.notes


def test_a_compute_nodes_clock_that_differs_is_told_and_not_believed(history, take):
    outcome = take(report([entry(records("write", started=STARTED - timedelta(days=400)))]))
    assert "the clock of n1 is not that of n0: the run's time was taken" in outcome.notes
    assert measured(history).started.tolist() == [int(STARTED.timestamp())]


def test_a_history_of_a_newer_version_is_left_alone(history, take):
    take(one_night())
    with history.writing() as connection:
        connection.execute(sa.text(f"UPDATE {database.VERSION_TABLE} SET version_num = '9999'"))
    for use in (history.reading, history.writing):
        with pytest.raises(InputError, match=r"newer iogauge \(revision 9999, this one knows"), use():
            pass


def test_another_programs_database_is_left_alone(tmp_path):
    history = History(str(tmp_path / "other.sqlite"))
    with history._engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE runs (x INTEGER)"))
    with pytest.raises(InputError, match="is no history of iogauge, but has a table 'runs'"), history.writing():
        pass


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "text").write_text("not a database, but long enough to be looked at\n" * 100)
    with (
        pytest.raises(InputError, match="text: the database says: file is not a database"),
        History(str(tmp_path / "text")).writing(),
    ):
        pass


def test_a_history_that_cannot_be_reached_is_named_without_its_password(tmp_path):
    pytest.importorskip("psycopg")
    history = History(f"postgresql://me:secret@/none?host={tmp_path}")
    with pytest.raises(InputError, match="the database says") as caught, history.reading():
        pass
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("location", ["mysql://x/y", "sqlite://", "://", "sqlite:///:memory:"])
def test_a_url_that_is_none_of_ours_is_named(location):
    with pytest.raises(InputError, match="postgresql://USER@HOST/DATABASE"):
        History(location)


def test_a_locked_history_is_waited_for_and_then_named(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "WAIT_SECONDS", 0.2)
    first, second = History(str(tmp_path / "h")), History(str(tmp_path / "h"))
    with first.writing(), pytest.raises(InputError, match="database is locked"), second.writing():
        pass


@needs_root
def test_a_read_only_history_is_read_and_not_written(tmp_path):
    folder = tmp_path / "mounted"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True)
    try:
        history = History(str(folder / "history.sqlite"))
        ingest(history, written(tmp_path / "a.json", one_night()))
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        with pytest.raises(InputError, match=r"read.?only"):
            ingest(history, written(tmp_path / "b.json", one_night(1)))
        assert len(measured(history)) == 1
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@needs_root
def test_a_full_disk_is_told_and_loses_nothing(tmp_path):
    folder = tmp_path / "mounted"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=320k", "tmpfs", folder], check=True)
    try:
        history = History(str(folder / "history.sqlite"))
        ingest(history, written(tmp_path / "a.json", one_night()))
        before = all_rows(history)
        with suppress(OSError):
            (folder / "filler").write_bytes(b"x" * (320 << 10))
        with history.reading() as connection, pytest.raises(OSError, match="No space left"):
            export(connection, folder / "out.csv")
        (folder / "filler").unlink()
        cases = [entry(records("write", "read", count=9), file_system=f"disk{number}") for number in range(60)]
        big = written(tmp_path / "b.json", report(cases, started=STARTED + RECENT))
        with pytest.raises(InputError, match="full"):
            ingest(history, big)
        assert all_rows(history) == before
        assert not list(folder.glob(".*out.csv*"))
        subprocess.run(["mount", "-o", "remount,size=8m", folder], check=True)
        assert ingest(history, big).added
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


# --- a renamed file system --------------------------------------------------------------------------------------------


def rename(history: History, old: str, new: str, **options: Any) -> operators.Renamed:
    return operators.rename(history, "here", old, new, who="me", why="moved", **options)


def test_a_renamed_file_system_keeps_its_history(history, take):
    take(one_night(0), "0.json")
    take(one_night(1, file_system="work"), "1.json")
    assert rename(history, "disk", "work") == operators.Renamed(moved=0, joined=6)
    one = measured(history, WRITE.replace("disk", "work"))
    assert len(one) == 2
    with history.reading() as connection:
        assert {series.file_system for series in list_series(connection)} == {"work"}
        assert len(read_evidence(connection, one.series)) == 2
    # A night under the old name that comes in late goes there, too.
    take(one_night(2), "2.json")
    assert len(measured(history, WRITE.replace("disk", "work"))) == 3


def with_fingerprint(document: dict[str, Any], fingerprint: str) -> dict[str, Any]:
    for row in document["runs"][0]["testcases"][0]["judgement"]["rows"]:
        row["fingerprint"] = fingerprint
    return document


@pytest.mark.parametrize("same", [False, True])
def test_another_mount_point_is_another_configuration_unless_the_operator_says_not(history, take, same):
    take(with_fingerprint(one_night(0), "aaaaaaaa"), "0.json")
    take(with_fingerprint(one_night(1, file_system="work"), "bbbbbbbb"), "1.json")
    done = rename(history, "disk", "work", same_configuration=same)
    assert done == (operators.Renamed(0, 6) if same else operators.Renamed(6, 0))
    with history.reading() as connection:
        assert len(list_series(connection)) == (6 if same else 12)


def test_a_file_system_that_is_not_there_is_named_with_those_that_are(history, take):
    take(one_night())
    before = all_rows(history)
    with pytest.raises(InputError, match="no file system 'tape' in the history of site here; there are: disk"):
        rename(history, "tape", "work")
    for new in ("", "a/b", "disk"):
        with pytest.raises(InputError, match="another name"):
            rename(history, "disk", new)
    assert all_rows(history) == before


# --- what operators say -----------------------------------------------------------------------------------------------


def action(kind: operators.Kind, target: str = "particles/*/disk/*", **changes: Any) -> operators.Action:
    values = {"site": "here", "since": 0, "until": None, "at": 1000, "who": "me", "why": "because"} | changes
    return operators.Action(kind=kind, target=target, **values)


def test_what_operators_say_is_kept_with_who_when_and_why(history, take):
    take(one_night())
    assert operators.say(history, action("ack")) == 6
    assert operators.say(history, action("mute", WRITE, until=2000)) == 1
    with history.reading() as connection:
        ack, mute = operators.said(connection, "here")
    assert (ack.kind, ack.who, ack.at, ack.why) == ("ack", "me", 1000, "because")
    assert (mute.until, mute.fits(WRITE), mute.fits(WRITE + "x")) == (2000, True, False)
    rename(history, "disk", "scratch")
    with history.reading() as connection:
        assert operators.said(connection, "here")[0].target == "particles/*/scratch/*"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (action("ack", why=" "), "why: empty"),
        (action("ack", "tiles/*"), "no series of site here fits 'tiles/"),
        (action("mute"), "until: belongs to mute"),
        (action("ack", until=2000), "until: belongs to mute"),
        (action("mute", until=999), "until: has to be later than now"),
        (action("mute", until=1000 + 367 * 86400), "until: .* is more than a year away"),
        (action("ack", who=" "), "by: empty"),
        (action("ack", "particles/write/disk/1x2/CC/hdf"), "hdf'; particles/write/disk/1x2/CC/hdf5 does"),
        (action("bless", since=1001), "since: .* has not come yet"),
        (action("bless", since=2_000_000_000, at=2_000_000_001), "since: .*: the last night of what fits began 2026"),
    ],
)
def test_what_cannot_be_meant_is_refused(history, take, wrong, message):
    take(one_night())
    with pytest.raises(InputError, match=message):
        operators.say(history, wrong)
    with history.reading() as connection:
        assert operators.said(connection, "here") == []


def test_what_is_muted_so_long_already_is_not_muted_again(history, take):
    take(one_night())
    operators.say(history, action("mute", until=5000, why="rebuild"))
    for again in (action("mute", until=5000), action("mute", WRITE, until=4000)):
        with pytest.raises(
            InputError, match=r"muted until .* already, by me: rebuild; iogauge history unsay 1 ends that"
        ):
            operators.say(history, again)
    assert operators.say(history, action("mute", WRITE, until=6000)) == 1  # longer
    operators.unsay(history, "here", "2", who="anna", why="it is enough")
    operators.unsay(history, "here", "1", who="anna", why="done")
    assert operators.say(history, action("mute", WRITE, until=4000)) == 1


def test_what_was_taken_back_does_not_count_and_is_kept(history, take):
    take(one_night())
    operators.say(history, action("ack"))
    operators.maintain(history, operators.Maintenance("here", "disk", 100, 200, 50, "me", "servers"))
    operators.say(history, action("bless", at=2000))
    for number in ("1", "m1"):
        operators.unsay(history, "here", number, who="anna", why="wrong file system")
        with pytest.raises(InputError, match=f"N: {number} was taken back by anna on .*: wrong file system"):
            operators.unsay(history, "here", number, who="me", why="again")
    with history.reading() as connection:
        assert [one.kind for one in operators.said(connection, "here")] == ["bless"]
        assert operators.maintenance(connection, "here") == []
        everything = operators.everything_said(connection, "here")
    assert [one.number for one in everything] == ["m1", "1", "2"]
    assert [one.taken_back and (one.taken_back.who, one.taken_back.why) for one in everything] == [
        ("anna", "wrong file system"),
        ("anna", "wrong file system"),
        None,
    ]
    for wrong in ("9", "m2", "x", ""):
        with pytest.raises(InputError, match="nothing of that number was said at site here; there are: m1, 1, 2"):
            operators.unsay(history, "here", wrong, who="me", why="x")
    with pytest.raises(InputError, match="at site there; there are: none"):
        operators.unsay(history, "there", "2", who="me", why="x")
    with pytest.raises(InputError, match="why: empty"):
        operators.unsay(history, "here", "2", who="me", why="")


def test_two_file_systems_that_were_measured_together_are_not_joined_by_a_rename(history, take):
    both = [entry(records("write"), file_system=name) for name in ("disk", "work")]
    take(report(both))
    before = measured_keys(history)
    with pytest.raises(InputError, match=r"measured beside 'disk', on 2026-0[23]-\d\d last"):
        rename(history, "disk", "work")
    assert measured_keys(history) == before


def measured_keys(history: History) -> list[str]:
    with history.reading() as connection:
        return sorted(one.key for one in list_series(connection, "here"))


def test_maintenance_of_years_is_refused_for_nothing_would_alarm_in_it(history, take):
    take(one_night())
    with pytest.raises(InputError, match="more than 366 days"):
        operators.maintain(history, operators.Maintenance("here", "disk", 0, 367 * 86400, 50, "me", "servers"))


def test_maintenance_covers_its_file_system_from_begin_to_end(history, take):
    take(one_night())
    window = operators.Maintenance("here", "disk", 100, 200, 50, "me", "servers")
    operators.maintain(history, window)
    with history.reading() as connection:
        assert operators.maintenance(connection, "here") == [window]
    assert [window.covers("disk", when) for when in (99, 100, 199, 200)] == [False, True, True, False]
    assert not window.covers("work", 150)
    for wrong in (operators.Maintenance("here", "disk", 200, 100, 50, "me", "x"), operators.Maintenance(
        "here", "tape", 100, 200, 50, "me", "x"
    )):  # fmt: skip
        with pytest.raises(InputError):
            operators.maintain(history, wrong)


# --- tables out -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_an_export_has_a_row_for_every_repeat(history, take, tmp_path, suffix):
    take(report([entry(records("write", "read")), invalid_entry()]))
    path = tmp_path / f"out.{suffix}"
    with history.reading() as connection:
        assert export(connection, path) == 18
        with pytest.raises(InputError, match=r"ends in \.parquet or \.csv"):
            export(connection, tmp_path / "out.xlsx")
    table = parquet.read_table(path) if suffix == "parquet" else csv.read_csv(path)
    rows = [row for row in table.to_pylist() if row["key"] == WRITE]
    assert [row["repeat"] for row in rows] == [0, 1, 2]
    assert rows[1]["observed"] == pytest.approx(64 / 0.62)
    assert rows[1]["raw"] == pytest.approx(128)
    assert (rows[0]["hdf5"], rows[0]["hosts"], rows[0]["ranks"]) == ("1.10.8", 1, 2)
    assert rows[0]["night"] == date(2026, 2, 28)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path))
    monkeypatch.delenv("IOGAUGE_HISTORY", raising=False)
    return tmp_path


def iogauge(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.main, ["history", *map(str, arguments)])


@pytest.mark.parametrize("group", [history_group, bands_group])
def test_every_command_of_a_group_helps_with_an_example(group):
    for command in group.commands:
        result = CliRunner().invoke(cli.main, [group.name, command, "--help"])
        assert f"iogauge {group.name} {command}" in result.output.partition("xample")[2], command


def test_ingest_takes_all_nights_of_the_checkout_and_says_what_was_spoiled(home):
    for number in range(2):
        written(home / "runs" / f"2026030{number}T020000Z" / "reframe.json", one_night(number))
    first = iogauge("ingest")
    assert first.exit_code == 0, first.output
    assert first.output.count("1 cases, 6 measurements") == 2
    assert iogauge("ingest").output.count("in the history already") == 2
    bad = one_night(2)
    bad["runs"][0]["testcases"][0]["measurements"][0]["repeats"][0]["total_seconds"] = -1
    again = iogauge("ingest", written(home / "bad.json", bad), written(home / "worse.json", {}))
    assert again.exit_code == 2
    assert "kept as invalid: ParticlesCheck" in again.stderr
    assert "worse.json: no run report" in again.stderr
    assert (home / "history.sqlite").exists()
    listed = iogauge("list").output
    assert "2026-02-28  2026-03-01 02:00" in listed
    assert "1 invalid" in listed
    assert "2026-02-28  2026-03-01" in iogauge("series", WRITE, "--site", "here").output
    assert iogauge("series", "tape", "--site", "here").exit_code == 2


def test_what_was_said_is_listed(home):
    iogauge("ingest", written(home / "a.json", one_night()))
    here = ("--site", "here", "--why", "ticket 4711", "--by", "me")
    assert iogauge("ack", "particles/*", *here).output == "ack: 6 series\n"
    until = (date.today() + timedelta(days=30)).isoformat()
    assert iogauge("mute", WRITE, "--until", until, *here).exit_code == 0
    for wrong in ("1999-01-01", "2999-01-01", until, "tomorrow"):
        assert iogauge("mute", WRITE, "--until", wrong, *here).exit_code == 2
    assert iogauge("maintenance", "2026-03-01", "2026-03-02", "--file-system", "disk", *here).exit_code == 0
    assert (
        iogauge("rename", "disk", "work", *here).output == "disk is work: 6 series moved, 0 joined to those of work\n"
    )
    said = iogauge("said", "--site", "here").output
    for words in ("me   ack", "particles/*", WRITE.replace("disk", "work"), "disk -> work", "ticket 4711"):
        assert words in said
    assert said.count("holds for 6 series") == 1
    assert said.count("holds for 1 series") == 1
    assert "over" in said  # the maintenance
    assert (
        iogauge("unsay", "2", *here[:-2], "--by", "anna").output == "2: the mute of me (ticket 4711) no longer counts\n"
    )
    assert "taken back by anna" in iogauge("said", "--site", "here").output
    about = iogauge("said", WRITE.replace("disk", "work"), "--site", "here").output
    assert ("mute" in about, "rename" in about) == (True, False)
    assert (
        "mute" not in iogauge("said", WRITE.replace("disk", "work").replace("write", "read"), "--site", "here").output
    )
    assert iogauge("said", "tape", "--site", "here").exit_code == 2
    assert iogauge("ack", "x", "--site", "here").exit_code == 2


def test_no_history_yet_is_one_line(home):
    for command in ("list", "said", "series", "ingest"):
        result = iogauge(command)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
    assert not (home / "history.sqlite").exists()
    assert "to revision 0004" in iogauge("upgrade").output
    assert "as it was revision 0004" in iogauge("upgrade").output


def test_an_export_names_the_file_that_cannot_be_written_and_the_sites_that_there_are(history, take, tmp_path):
    take(one_night())
    with history.reading() as connection:
        with pytest.raises(InputError, match=r"no/where\.csv: cannot be written: No such file"):
            export(connection, tmp_path / "no" / "where.csv")
        with pytest.raises(InputError, match=r"no series of 'elsewhere' in the history; it has those of: here"):
            export(connection, tmp_path / "none.csv", "elsewhere")
    assert not (tmp_path / "none.csv").exists()
