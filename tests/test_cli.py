"""The command ``iogauge``: what it prints, how it exits, and that what people do wrong gets one line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import CHECKOUT
from samples import case, counted_case, invalid_case, make_night

from iogauge import __version__, cli, night_cli, nightly
from iogauge.combined import read_night
from iogauge.errors import InputError
from iogauge.night import Case, Night

COMMANDS = sorted(cli.COMMANDS)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IOGAUGE_SCRATCH", str(tmp_path))
    (tmp_path / "home" / "runs").mkdir(parents=True)
    return tmp_path / "home"


def iogauge(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def keep(home: Path, night: Night) -> Path:
    folder = home / "runs" / night.started.strftime("%Y%m%dT%H%M%SZ")
    folder.mkdir()
    night.save(folder / "night.json")
    return folder


def one_line_error(result: Result) -> str:
    """The message of a command that ended as it should on bad input."""
    assert result.exit_code == 2
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    (line,) = result.stderr.splitlines()
    assert line.startswith("iogauge: error: ")
    return line


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps_with_an_example(command):
    result = iogauge(command, "--help")
    assert result.exit_code == 0
    assert f"iogauge {command}" in result.output.partition("xample")[2]


def test_all_commands_are_listed_without_loading_any():
    script = "import sys; from iogauge.cli import main; main(standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, check=True)
    *lines, modules = done.stdout.splitlines()
    listed = [
        line.split()[0] for line in lines[lines.index("Commands:") + 1 :] if line.startswith("  ") and line[2] != " "
    ]
    assert listed == COMMANDS
    assert not {"iogauge.nightly", "numpy", "pydantic", "rich", "sqlalchemy"} & {*modules.split()}


def test_the_version_is_the_packages():
    assert iogauge("--version").output.strip() == f"iogauge, version {__version__}"


def test_the_table_has_every_case_its_rate_its_ratios_and_what_is_wrong(home):
    keep(
        home,
        make_night(
            case("write", "read", cached=0.4),
            case("write", file_system="memory", ratio=2.0),
            invalid_case("ranks 0 and 1 share core 0 of n1", file_system="burst"),
            earlier_nights={"particles/write/disk/1x2/CC/hdf5": 2},
        ),
    )
    result = iogauge("show")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    write = next(line for line in lines if line.startswith("disk") and "write" in line)
    for word in (
        "particles write CC",
        "1x2",
        "103 MiB/s  (100 103 91.4)",
        "0.92 / 0.84",
        "2 ranks on 2 cores of 1 host",
    ):
        assert word in write
    assert "all" in write
    assert "no reference (3 of 14 nights)" in write
    read = next(line for line in lines if line.startswith("disk") and "read" in line)
    assert "40%" in read
    assert "not for cached reads" in read
    assert "regressed" in next(line for line in lines if line.startswith("memory"))
    assert "INVALID" in next(line for line in lines if line.startswith("burst"))
    below = result.output.partition("INVALID")[2]
    assert "ranks 0 and 1 share core 0 of n1" in below
    assert "particles/write/memory/1x2/CC/hdf5: HDF5 to MPI-IO 0.92, band 1.60 to 2.40" in below
    assert (
        "1 invalid, 1 regressed, 0 improved, 0 too noisy, 2 without any reference, 0 passed; 3 series have no site band"
        in below
    )


def test_the_long_form_gives_the_evidence_of_a_series(home):
    keep(home, make_night(case("write", "read", ratio=0.92), case("write", file_system="memory")))
    result = iogauge("show", "latest", "write/disk")
    assert result.exit_code == 0
    assert "particles/write/disk/1x2/CC/hdf5" in result.output
    assert "particles/read" not in result.output
    assert "write/memory" not in result.output
    for word in ("100 103 91.4 MiB/s", "raw", "pairs 0.92 0.92 0.92", "band 0.74 to 1.10", "/runs/night/stage/case"):
        assert word in result.output


def test_what_is_counted_is_shown_in_operations_a_second(home):
    keep(home, make_night(counted_case("file-create", "file-stat")))
    table = iogauge("show").output
    for operation in ("file-create", "file-stat"):
        line = next(line for line in table.splitlines() if f"metadata {operation} shared" in line)
        assert "3226 operations/s  (3125 3226 2857)" in line
    assert "MiB/s" not in table
    evidence = iogauge("show", "latest", "metadata/file-stat").output
    assert "3125 3226 2857 operations/s, open to close with flush" in evidence
    assert "3846 4000 3448 operations/s, the calls alone" in evidence
    assert "shared to private  1.00 (pairs 1.00 1.00 1.00)" in evidence


def test_the_long_form_of_an_invalid_case_gives_its_reason_and_the_place_of_its_files(home):
    keep(home, make_night(invalid_case("ranks 0 and 1 share core 0 of n1"), case("write")))
    result = iogauge("show", "latest", "Broken")
    assert result.exit_code == 0
    assert "invalid  ranks 0 and 1 share core 0 of n1" in result.output
    assert "/runs/night/stage/case" in result.output
    assert "particles/" not in result.output


def test_a_key_that_no_series_has_is_one_line(home):
    keep(home, make_night(case("write")))
    assert "'tape'" in one_line_error(iogauge("show", "latest", "tape"))


def test_latest_is_the_last_night_and_a_night_can_be_named(home):
    keep(home, make_night(case("write", file_system="older"), started="2026-11-20T02:00:00Z"))
    keep(home, make_night(case("write", file_system="newer")))
    (home / "runs" / "20261122T020000Z").mkdir()  # stopped before there was a record
    assert "newer" in iogauge("show").output
    assert "older" in iogauge("show", "20261120T020000Z").output
    assert "older" in iogauge("show", home / "runs" / "20261120T020000Z").output


@pytest.mark.parametrize(("command", "words"), [("show", "no night yet; start one"), ("report", "no history yet")])
def test_no_night_yet_and_no_such_night_are_one_line(home, command, words):
    assert words in one_line_error(iogauge(command))
    asked = (command, "20200101T000000Z", *["x"] * (command == "show"))  # one word alone may be a key
    assert "no such night" in one_line_error(iogauge(*asked))


def test_a_spoiled_record_is_one_line_with_its_file(home):
    folder = keep(home, make_night(case("write")))
    (folder / "night.json").write_text("{", encoding="utf-8")
    assert f"{folder}/night.json: no record of a night" in one_line_error(iogauge("show"))


def test_the_page_is_written_again(home):
    folder = keep(home, make_night(case("write")))
    result = iogauge("report", "latest")
    assert result.exit_code == 0
    assert result.output.strip() == str(folder / "index.html")
    assert "particles/write/disk/1x2/CC/hdf5" in (folder / "index.html").read_text(encoding="utf-8")


def test_clean_removes_what_is_marked_and_says_so(tmp_path):
    data = tmp_path / "disk" / "iogauge-case.abcdefgh"
    stage = tmp_path / "runs" / "stage"
    for folder in (data, stage):
        folder.mkdir(parents=True)
    for file in (data / ".iogauge-case", stage / "case_folder.txt"):
        file.write_text(f"{data}\n", encoding="utf-8")
    result = iogauge("clean", tmp_path / "runs")
    assert (result.exit_code, result.output) == (0, f"removed {data}\n")
    assert not data.exists()
    assert iogauge("clean", tmp_path / "runs").output == "nothing was left over\n"


def test_clean_of_a_folder_that_is_not_there_exits_2(tmp_path):
    assert iogauge("clean", tmp_path / "none").exit_code == 2


def test_check_config_says_what_the_site_has(home):
    result = iogauge("check-config", "--site", "local")
    assert result.exit_code == 0, result.output
    assert "disk (other), memory (memory); nodes 1; ranks per node 1" in result.output


def test_an_unknown_site_is_one_line_with_the_known_ones(home):
    line = one_line_error(iogauge("check-config", "--site", "moon"))
    assert "'moon'" in line
    assert "local" in line.partition("there are")[2]


def test_a_broken_band_is_one_line_with_file_line_and_key(home, tmp_path, monkeypatch):
    shutil.copytree(CHECKOUT / "site_configs", tmp_path / "c" / "site_configs")
    shutil.copytree(CHECKOUT / "reference_values", tmp_path / "c" / "reference_values")
    monkeypatch.setattr(nightly, "checkout", lambda: tmp_path / "c")
    path = tmp_path / "c" / "reference_values" / "portable.yaml"
    path.write_text("schema: iogauge.portable/1\nfrom: {method: x}\nbands:\n- refrence: 1\n", encoding="utf-8")
    line = one_line_error(iogauge("check-config"))
    assert f"{path}:4: " in line
    assert "refrence" in line


@pytest.mark.parametrize(
    ("night", "code"),
    [
        (make_night(case("write")), 0),
        (make_night(case("write", ratio=2.0)), 1),
        (make_night(invalid_case("x")), 1),
        (make_night(case("write"), complete=False, cause="stopped by SIGINT"), 2),
    ],
)
def test_the_exit_code_of_nightly_is_the_nights(home, monkeypatch, night, code):
    folder = keep(home, night)
    asked = []

    def run_night(site, suite, *, options, progress, as_of, first):
        asked.append((site, suite, list(options)))
        progress.tell(1, 1)
        return night, folder

    monkeypatch.setattr(nightly, "run_night", run_night)
    result = iogauge("nightly", "--set", "repeats=3", "--set", "steps=1", "--name", "Particles", "--suite", "full")
    assert result.exit_code == code, result.output
    assert asked == [("local", "full", ["-S", "repeats=3", "-S", "steps=1", "-n", "Particles"])]
    assert f"night   {folder / 'index.html'}" in result.output
    assert result.output.splitlines()[-1].startswith("report  not written: "), "there is no history here"
    assert json.loads((folder / "night.json").read_text(encoding="utf-8"))["schema"] == "iogauge.night/1"


@pytest.fixture
def runs_made(home, monkeypatch):
    """What ``nightly`` makes one after the other (or raises), and with which first run and time it was asked for each."""
    made, asked = [], []

    def run_night(*unused, as_of, first, **alike):
        asked.append((first and first.name, as_of))
        night = made.pop(0)
        if isinstance(night, Exception):
            raise night
        folder = keep(home, night.model_copy(update={"first_run": first.name if first else ""}))
        return read_night(folder), folder

    monkeypatch.setattr(nightly, "run_night", run_night)
    monkeypatch.setattr(night_cli, "write_report", lambda night, path: path)
    return made, asked


FIRST = "20261121T020000Z"


def run_of(hour: int, *cases: Case, **changes: Any) -> Night:
    return make_night(*cases, site="local", started=f"2026-11-21T{hour:02}:00:00Z", **changes)


def test_a_night_is_repeated_later_and_the_verdict_is_of_both(home, runs_made):
    made, asked = runs_made
    made += [run_of(2, case("write", ratio=2.0)), run_of(6, case("write", slower=0.5))]
    result = iogauge("nightly", "--repeat-later", "0.0001")
    assert result.exit_code == 0, result.output
    assert asked == [(None, None), (FIRST, None)]
    assert "first run  0 invalid, 1 regressed" in result.output
    assert "the second run begins at " in result.output
    assert "two runs of this night" in result.output
    assert "20261121T060000Z/index.html" in result.output


def test_the_second_run_stands_as_much_later_than_the_first_as_it_is(home, runs_made):
    made, asked = runs_made
    made += [run_of(2, case("write"), as_of="2026-11-03T22:00:00Z"), run_of(6, case("write"))]
    assert iogauge("nightly", "--repeat-later", "0.0001", "--as-of", "2026-11-03").exit_code == 0
    (_, given), (_, later) = asked
    assert 0.3 < (later - given).total_seconds() < 60


@pytest.mark.parametrize(
    "failure", [InputError("another night is running here"), OSError(28, "No space left on device")]
)
def test_a_second_run_that_fails_is_told_and_the_first_counts(home, runs_made, failure):
    made, _ = runs_made
    made += [run_of(2, case("write", ratio=2.0)), failure]
    result = iogauge("nightly", "--repeat-later", "0.0001")
    assert result.exit_code == 1
    assert "note: the second run failed, the first one counts: " in result.output
    assert "No space left" in result.output or "another night" in result.output
    assert Night.load(home / "runs" / FIRST / "night.json").complete
    assert "the second run failed" in iogauge("show", FIRST).output


def test_a_wait_that_is_interrupted_leaves_the_first_run_a_full_night(home, runs_made, monkeypatch):
    made, asked = runs_made
    made.append(run_of(2, case("write")))
    wait = nightly.wait

    def stopped(seconds, stop, tell):
        return wait(seconds, stop, lambda left: os.kill(os.getpid(), signal.SIGTERM))

    monkeypatch.setattr(nightly, "wait", stopped)
    result = iogauge("nightly", "--repeat-later", "1")
    assert (result.exit_code, len(asked)) == (0, 1)
    assert "note: there was no second run: SIGTERM while it was waited for" in result.output
    assert Night.load(home / "runs" / FIRST / "night.json").complete


def test_a_night_that_was_stopped_or_measured_nothing_is_not_waited_for(home, runs_made):
    made, asked = runs_made
    made.append(run_of(2, case("write"), complete=False, cause="stopped by SIGINT"))
    assert iogauge("nightly", "--repeat-later", "1").exit_code == 2
    assert len(asked) == 1


def test_another_run_is_of_the_latest_night_of_the_last_hours_or_of_the_one_that_is_named(home, runs_made):
    made, asked = runs_made
    for hour in (1, 2):
        keep(home, run_of(hour, case("write")))
    made += [run_of(6, case("write")), run_of(7, case("write")), run_of(8, case("write"))]
    assert iogauge("nightly", "--of-night", "latest", "--as-of", "2026-11-21T19:00").exit_code == 0
    result = iogauge("nightly", "--of-night", "latest", "--as-of", "2026-11-23T19:00")
    assert "note: no night of local, nightly began in the last 18 hours: this is its own" in result.output
    assert iogauge("nightly", "--of-night", "20261121T010000Z").exit_code == 0
    assert [first for first, _ in asked] == [FIRST, None, "20261121T010000Z"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--repeat-later", "0"), "is not in the range 0<x<=24"),
        (("--repeat-later", "nan"), "is not in the range"),
        (("--repeat-later", "25"), "is not in the range"),
        (("--repeat-later", "soon"), "is not a valid float"),
        (("--of-night", "../x"), "a folder's name in"),
        (("--of-night", ""), "a folder's name in"),
        (("--of-night", "latest", "--repeat-later", "1"), "--repeat-later makes one itself"),
    ],
)
def test_a_wrong_second_run_is_refused_before_anything_runs(home, runs_made, arguments, said):
    result = iogauge("nightly", *arguments)
    assert (result.exit_code, runs_made[1]) == (2, [])
    assert said in result.output


def test_a_full_disk_is_one_line(home, monkeypatch):
    def run_night(*unused, **alike):
        raise OSError(28, "No space left on device", str(home))

    monkeypatch.setattr(nightly, "run_night", run_night)
    assert one_line_error(iogauge("nightly")) == f"iogauge: error: {home}: No space left on device"


@pytest.mark.parametrize(("given", "hour"), [("2026-11-03", 22), ("2026-11-03T00:00", 0), ("2026-11-03T04:05:06", 4)])
def test_a_night_stands_for_a_time_and_a_date_alone_for_its_evening(home, monkeypatch, given, hour):
    night = make_night(case("write"))
    asked = []

    def run_night(*unused, as_of, **alike):
        asked.append(as_of)
        return night, keep(home, night)

    monkeypatch.setattr(nightly, "run_night", run_night)
    assert iogauge("nightly", "--as-of", given).exit_code == 0
    assert (asked[0].year, asked[0].day, asked[0].hour) == (2026, 3, hour)
    assert asked[0].utcoffset() is not None


def test_a_night_of_another_century_or_of_no_date_is_refused(home):
    assert "2000 to 2099" in one_line_error(iogauge("nightly", "--as-of", "1999-12-31"))
    assert "does not match the formats" in iogauge("nightly", "--as-of", "yesterday").output


def test_ctrl_c_before_a_command_is_loaded_is_no_alarm_either(monkeypatch):
    def stopped(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "import_module", stopped)
    result = iogauge("status")
    assert (result.exit_code, result.output) == (2, "iogauge: error: interrupted\n")
