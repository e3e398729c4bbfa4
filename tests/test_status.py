"""What is told at a terminal of the newest night, in words, worst first; and of one series at length."""

from __future__ import annotations

import datetime
import fcntl
import json
import re
from datetime import timedelta
from pathlib import Path

import assessed
import pytest
from click.testing import CliRunner, Result
from kept_nights import change, keep
from run_reports import STARTED, entry, invalid_entry, records, report, written
from samples import case, invalid_case

from iogauge import cli, status
from iogauge.detect import Action
from iogauge.errors import InputError
from iogauge.history.database import History
from iogauge.history.ingest import ingest
from iogauge.tonight import load, recent_rates

KEYS = assessed.keys(["scratch", "disk"], 24)
SCRATCH = [key for key in KEYS if "/scratch/" in key]
DISK = [key for key in KEYS if "/disk/" in key]
STEADY: dict[str, assessed.Event] = dict.fromkeys(KEYS, "steady")
NOW = datetime.datetime(2026, 11, 21, 8, tzinfo=datetime.timezone.utc)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path))
    monkeypatch.delenv("IOGAUGE_HISTORY", raising=False)
    return tmp_path


def iogauge(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, [*arguments, "--site", "test"])


def shown(**options: bool) -> str:
    return "\n".join(line.plain for line in status.lines(load("test"), {}, NOW, **options))


def test_a_steady_night_is_said_in_a_word_with_its_file_systems_and_counts(home):
    keep(home, STEADY, case("write"))
    result = iogauge("status")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "nothing is slower"
    assert lines[1].startswith("site test, suite nightly, night of 2026-11-20, ended ")
    assert "✓ disk     steady (12 series)" in lines
    assert "1 no reference, 24 pass" in lines


def test_alarms_come_worst_first_with_scope_reason_and_software(home):
    events = STEADY | {key: "shift" for key in SCRATCH if key.endswith("hdf5")} | {DISK[0]: "invalid", DISK[1]: "bad"}
    keep(home, events, case("write"), invalid_case("no space left"), selected=2)
    text = shown()
    assert re.match(r"SLOWER: only HDF5.* on scratch \(4 series\); INVALID: 2\n", text)
    assert re.search(
        r"▼ scratch  only HDF5.* on scratch:? \d+ % slower since 2026-11-17, since HDF5 1.14.3 -> 1.14.5", text
    )
    places = [text.index(words) for words in ("INVALID  Broken", DISK[0], "SHIFTED LEVEL  " + SCRATCH[0], DISK[1])]
    assert places == sorted(places)
    assert "since HDF5 1.14.3 -> 1.14.5" in text
    assert "2 ranks share core 0 of n1" in text
    assert "transient" in text[text.index("told, no alarm:") :]
    assert iogauge("status").exit_code == 1


def test_a_whole_file_system_is_the_headline(home):
    keep(home, STEADY | dict.fromkeys(SCRATCH, "shift"), case("write"))
    text = shown()
    assert text.startswith("SLOWER: the whole file system scratch (12 series)\n")
    assert text.count("SHIFTED LEVEL") == 3
    assert "and 9 more alarms: --all" in text
    assert shown(every=True).count("SHIFTED LEVEL") == 12


@pytest.mark.parametrize(("slower", "listed"), [(3, 3), (4, 4), (5, 3)])
def test_one_more_alarm_is_shown_and_not_counted(home, slower, listed):
    keep(home, dict.fromkeys(SCRATCH[:slower], "shift"), case("write"))
    text = shown()
    assert f"SLOWER: the whole file system scratch ({slower} series)" in text
    assert text.count("SHIFTED LEVEL") == listed
    assert ("more alarm" in text) == (listed < slower)


def test_a_young_series_is_told_by_its_one_night_and_is_not_called_steady(home):
    noisy, better = "particles/write/disk/1x2/CC/hdf5", "particles/write/scratch/1x2/CC/hdf5"
    cases = case("write", ratio=0.9), case("write", file_system="scratch", ratio=0.5)
    row = cases[0].judgement.rows[0].model_copy(update={"verdict": "too noisy", "reason": "too noisy to judge: pairs"})
    judgement = cases[0].judgement.model_copy(update={"rows": (row, *cases[0].judgement.rows[1:])})
    keep(home, {noisy: "new", better: "new"}, cases[0].model_copy(update={"judgement": judgement}), cases[1])
    lines = shown().splitlines()
    assert "~ disk     1 series too noisy" in lines
    assert "✓ scratch  steady (1 series)" in lines
    told = next(line for line in lines if better in line)
    assert told.startswith("  ▲ improved"), told
    assert iogauge("show", noisy).output.splitlines()[1] == "~ too noisy to judge: pairs"


@pytest.mark.parametrize("kind", ["mute", "ack"])
def test_what_operators_know_is_told_and_is_no_alarm(home, kind):
    until = datetime.date(2027, 1, 1) if kind == "mute" else None
    said = Action(kind, assessed.LAST_NIGHT, "anna", "ticket 4711", until=until)
    keep(home, STEADY | {SCRATCH[0]: "shift"}, case("write"), actions={SCRATCH[0]: [said]})
    text = shown()
    assert text.startswith("nothing is slower\n")
    assert f"▼ shifted level  {SCRATCH[0]}" in text
    assert ("muted until 2027-01-01 by anna: ticket 4711" if kind == "mute" else "acknowledged by anna") in text
    assert "▼ scratch  slower" not in text
    assert load("test").exit_code == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"complete": False, "cause": "stopped by SIGTERM", "selected": 14}, "incomplete: stopped by SIGTERM; 1 of 14"),
        ({"build_failure": "the kernels could not be built: no mpicc"}, "no mpicc"),
        ({"cases": ()}, "nothing was measured"),
    ],
)
def test_a_night_that_is_not_whole_says_so_and_ends_with_2(home, changes, words):
    change(keep(home, STEADY, case("write")), **changes)
    result = iogauge("status")
    assert result.exit_code == 2
    assert words in result.output
    assert "NOT MEASURED, or not all" in result.output.splitlines()[0]


def test_a_newer_night_without_a_record_is_told_unless_it_runs_just_now(home):
    keep(home, STEADY, case("write"))
    runs = home / "runs"
    (runs / "20261121T220000Z").mkdir()
    assert "the night begun 2026-11-21 22:00 UTC ended without a record" in load("test").problem
    with (runs / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert load("test").problem == ""
    assert load("test").problem
    keep(home, STEADY, case("write"), last=datetime.date(2026, 11, 22))
    assert load("test").problem == ""


def test_another_sites_nights_are_not_this_ones(home):
    keep(home, STEADY, case("write"))
    change(keep(home, STEADY, case("write"), last=datetime.date(2026, 11, 22)), site="elsewhere")
    assert str(load("test").date) == "2026-11-20"
    with pytest.raises(InputError):
        load("nowhere")


def test_80_columns_hold_every_line_and_long_keys_are_not_cut(home):
    events = STEADY | dict.fromkeys(SCRATCH, "shift") | {DISK[0]: "invalid"}
    keep(home, events, case("write"), invalid_case("x" * 200), selected=2)
    for options in ((), ("--all",)):
        output = iogauge("status", *options).output
        assert max(map(len, output.splitlines())) <= 80
        assert all(key in output for key in [DISK[0], *(SCRATCH if options else ())])
    assert all(key in iogauge("status", "--all").output for key in DISK)


def test_what_programs_printed_does_not_steer_the_terminal(home):
    keep(home, STEADY, case("write"), invalid_case("\x1b[2Jgone\x07 [bold]x[/]\nnext line"), selected=2)
    output = iogauge("status").output
    assert "\x1b" not in output
    assert "?[2Jgone? [bold]x[/] next line" in output


def test_json_has_the_whole_assessment(home):
    keep(home, STEADY | {SCRATCH[0]: "shift"}, case("write"))
    result = iogauge("status", "--json")
    assert result.exit_code == 1
    found = json.loads(result.output)
    assert (found["schema"], found["exit_code"], found["problem"]) == ("iogauge.status/1", 1, "")
    assert [alarm["name"] for alarm in found["alarms"]] == [SCRATCH[0]]
    assert found["alarms"][0]["began"] == "2026-11-17"
    assert found["assessment"]["schema"] == "iogauge.assessment/1"


def test_a_sparkline_halves_with_the_rate():
    assert status.sparkline([100, 100, 50, 25]) == "██▅▃"
    assert status.sparkline([]) == status.sparkline([0.0]) == ""


def test_an_assessment_that_is_none_is_named_and_the_night_is_still_told(home):
    folder = keep(home, STEADY, case("write"))
    (folder / "assessment.json").write_text('{"schema": "iogauge.assessment/9"}')
    result = iogauge("status")
    assert result.exit_code == 0
    assert result.output.startswith("NOT JUDGED against the nights before\n")
    assert "no history yet" in " ".join(result.output.split())
    (folder / "night.json").unlink()
    assert iogauge("status").exit_code == 2


# --- from the history -------------------------------------------------------------------------------------------------


@pytest.fixture
def measured(home: Path) -> str:
    """The key of a series that became slower with an upgrade five nights ago, in the history alone."""
    history = History()
    for number in range(40):
        slow = number >= 35
        began = STARTED + timedelta(days=number)
        software = {"hdf5": "1.14.5" if slow else "1.14.3"}
        made = records("write", started=began, slower=1.35 if slow else 1 + number % 3 / 50, software=software)
        document = report([entry(made), invalid_entry()], started=began)
        ingest(history, written(home / "reports" / f"{number}.json", document))
    return "particles/write/disk/1x2/CC/hdf5"


def at_length(*arguments: str) -> str:
    result = CliRunner().invoke(cli.main, ["show", *arguments, "--site", "here"])
    assert result.exit_code == 0, result.output
    return result.output


def test_without_its_folder_a_night_is_told_from_the_history_with_the_nights_before_and_since(measured):
    output = CliRunner().invoke(cli.main, ["status", "--site", "here"]).output
    assert f"SHIFTED LEVEL  {measured}" in output
    assert "█████▇" in output
    text = at_length(measured)
    lines = text.splitlines()
    assert lines[0] == measured
    assert lines[1].startswith("▼ shifted level since 2026-04-04 (5 nights of 5), 2")
    before, since = next(line for line in lines if line.startswith("  nights")).split(" | ")
    assert (len(before.split()), len(since.split())) == (1 + 6, 5)
    assert "  coincides   " in text
    assert "HDF5 1.14.3 -> 1.14.5" in text
    assert "within 14 nights on this series" in text
    advice = " ".join(text.split())
    command = f"history bless {measured} --site here --since 2026-04-04 --why REASON"
    assert f"iogauge {command}" in advice
    blessed = CliRunner().invoke(cli.main, command.split())
    assert (blessed.exit_code, blessed.output) == (0, "bless: 1 series\n")
    rates = recent_rates(History(), "here", load("here").tonight)
    assert list(rates[measured])[-1] == datetime.date(2026, 4, 8)
    assert len(rates[measured]) == 30


# --- show -------------------------------------------------------------------------------------------------------------


def test_show_takes_a_night_a_key_or_both(home):
    folder = keep(home, STEADY | {SCRATCH[0]: "shift"}, case("write"))
    night = "particles/write/disk/1x2/CC/hdf5"
    assert "verdict" in iogauge("show").output
    assert (
        iogauge("show", "latest").output == iogauge("show", folder.name).output == iogauge("show", str(folder)).output
    )
    assert f"{night}  (configuration" in iogauge("show", "latest", night).output
    assert iogauge("show", SCRATCH[0]).output.splitlines()[0] == SCRATCH[0]
    assert "next" in iogauge("show", SCRATCH[0]).output
    part = iogauge("show", "scratch/1x1/CC/").output  # a part of several keys
    assert all(key in part for key in SCRATCH if "/CC/" in key)
    many = iogauge("show", "*particles*").output
    assert "24 series; name one of them for more" in many
    wrong = iogauge("show", "particles/write/tape")
    assert (wrong.exit_code, "no series of site test has 'particles/write/tape'" in wrong.stderr) == (2, True)
    assert iogauge("show", "latest", night, "x").exit_code == 2


@pytest.mark.parametrize(
    ("event", "verdict", "words"),
    [
        ("shift", "▼ shifted level since 2026-11-17, 20 % below", "this series only, the file system is steady"),
        ("bad", "▽ transient", "another such night or two"),
        ("invalid", "! invalid: 2 ranks share core 0 of n1", "mend the cause"),
        ("new", "· no reference: 5 of 14 nights", "judged from 14 nights on"),
        ("improved", "▲ improved since 2026-11-1", "after 30 nights it is the new normal"),
        ("steady", "✓ pass", "next        nothing"),
    ],
)
def test_every_verdict_says_what_is_to_be_done(home, event, verdict, words):
    keep(home, STEADY | {SCRATCH[0]: event}, case("write"))
    text = iogauge("show", SCRATCH[0]).output
    assert text.splitlines()[1].startswith(verdict)
    assert words in text or words in " ".join(text.split())


def test_darshans_sentences_and_who_knows_stand_in_the_long_form(home):
    said = Action("mute", assessed.LAST_NIGHT, "anna", "ticket 4711", until=datetime.date(2027, 1, 1))
    keep(home, STEADY | {SCRATCH[0]: "shift"}, case("write"), actions={SCRATCH[0]: [said]})
    text = iogauge("show", SCRATCH[0]).output
    assert "  muted       muted until 2027-01-01 by anna on 2026-11-20: ticket 4711" in text
    assert "nothing until 2027-01-01" in text
