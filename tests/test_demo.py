"""The demonstration, whole: a row of real nights on a storage that gets 20 % slower is silent, then finds it, then its end.

It is played once, as scripts/demo plays it, with 30 nights that have to stay silent, 14 of them the reference; what each night
left is looked at here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import PATIENCE_SECONDS, wait_until

from iogauge import demo
from iogauge.combined import read_night
from iogauge.night import Night
from iogauge.verdict import of_file_systems

#: With those of the reference 30 nights that have to be silent.
SILENT = 16

#: By the detector's definition of a transient (three scales low), and one more for a machine that others use.
TRANSIENTS_BY_CHANCE = 3

REFERENCE = slice(0, demo.NIGHTS_FOR_A_REFERENCE)
QUIET = slice(REFERENCE.stop, REFERENCE.stop + SILENT)
ONE_SLOW = QUIET.stop
WELL_AGAIN = slice(ONE_SLOW + 1, ONE_SLOW + 3)


def start(home: Path, kernels: Path, *options: str) -> subprocess.Popen[str]:
    """The demonstration as scripts/demo starts it, without the set-up."""
    return subprocess.Popen(
        [sys.executable, "-m", "iogauge.demo", "--kernels", str(kernels), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "IOGAUGE_HOME": str(home), "IOGAUGE_HISTORY": str(home / "own.sqlite")},
    )


def everything_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Played(NamedTuple):
    nights: list[Night]
    output: str
    code: int
    own: tuple[dict[str, bytes], dict[str, bytes]]
    folder: Path


@pytest.fixture(scope="module")
def played(kernels: Path, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """All nights, what was printed, and what a user's own home held before and after."""
    home = tmp_path_factory.mktemp("home")
    (home / "runs" / "20260101T000000Z").mkdir(parents=True)
    (home / "runs" / "20260101T000000Z" / "night.json").write_text("a user's own night", encoding="utf-8")
    for name in ("history.sqlite", "own.sqlite"):
        (home / name).write_text("a user's own history", encoding="utf-8")
    before = everything_below(home)
    process = start(home, kernels, "--silent", str(SILENT))
    try:
        output, _ = process.communicate(timeout=1800)
    except subprocess.TimeoutExpired:
        process.terminate()
        output, _ = process.communicate()
    after = {path: held for path, held in everything_below(home).items() if not path.startswith(f"{home}/demo/")}
    nights = [read_night(path.parent) for path in sorted((home / "demo/nights/runs").glob("*/night.json"))]
    return Played(nights, output, process.returncode, (before, after), home / "demo")


@pytest.fixture(scope="module")
def nights(played: Played) -> list[Night]:
    assert played.nights, played.output
    return played.nights


def named(night: Night) -> str:
    """What of the file system is slower; empty: nothing."""
    return " ".join(of_file_systems(night.assessment)) if night.assessment else ""


def slowed(nights: list[Night]) -> list[Night]:
    """The nights from the lasting slowdown on, up to the one that said what is slower."""
    rest = nights[WELL_AGAIN.stop :]
    said = [number for number, night in enumerate(rest) if named(night).startswith("the whole file system memory is ")]
    return rest[: said[0] + 1] if said else rest


def test_all_is_seen_as_promised(played: Played) -> None:
    assert played.code == 0, played.output


def test_every_night_is_a_real_one_of_a_date_of_its_own(nights: list[Night]) -> None:
    dates = [night.started.date() for night in nights]
    assert dates == sorted(set(dates))
    assert (dates[-1] - dates[0]).days == len(dates) - 1
    for night in nights:
        assert night.complete
        assert len(list(night.rows)) == 4
        assert all(len(row.observed_repeats) == 3 for _, row in night.rows)


def test_nothing_is_said_of_the_first_nights(nights: list[Night]) -> None:
    assert [dict(night.counts)["no reference"] for night in nights[REFERENCE]] == [4] * demo.NIGHTS_FOR_A_REFERENCE


def test_thirty_nights_stay_silent(nights: list[Night]) -> None:
    assert [night.exit_code for night in nights[QUIET]] == [0] * SILENT
    bad = [night.started.date() for night in nights[QUIET] if night.counts["transient"]]
    assert len(bad) <= TRANSIENTS_BY_CHANCE, bad


def test_one_throttled_night_is_a_transient_and_wakes_nobody(nights: list[Night]) -> None:
    assert nights[ONE_SLOW].counts["transient"] >= 3
    assert nights[ONE_SLOW].exit_code == 0
    assert [night.exit_code for night in nights[WELL_AGAIN]] == [0, 0]


def test_a_slowdown_that_stays_wakes_somebody_within_three_nights(nights: list[Night]) -> None:
    assert 1 in [night.exit_code for night in slowed(nights)[:3]]


def test_it_is_named_with_what_when_and_how_much(nights: list[Night]) -> None:
    found = slowed(nights)
    assert len(found) <= demo.NIGHTS_TO_NAME
    assert found[-1].exit_code == 1
    assert found[-1].counts["shifted level"] >= 3
    said = named(found[-1])
    assert said.startswith("the whole file system memory is ")
    began = date.fromisoformat(said.split(" since ")[1][:10])
    # The one slow night, three nights before, may be counted in: it was one.
    assert abs(began - found[0].started.date()) <= timedelta(days=3), said
    lost = int(said.split(" % slower")[0].split()[-1])
    assert 12 <= lost <= 28, said


def test_its_end_is_told_within_five_nights(nights: list[Night]) -> None:
    repaired = nights[WELL_AGAIN.stop + len(slowed(nights)) :]
    assert 1 <= len(repaired) <= demo.NIGHTS_TO_END
    assert repaired[-1].exit_code == 0
    assert repaired[-1].counts["shifted level"] == 0


def test_each_night_has_its_line_and_the_alarm_its_words(played: Played, nights: list[Night]) -> None:
    lines = [line for line in played.output.splitlines() if "exit code" in line]
    assert len(lines) == len(nights)
    assert [f"exit code {night.exit_code}" in line for night, line in zip(nights, lines, strict=True)] == [True] * len(
        lines
    )
    assert "$ iogauge status" in played.output
    assert "the whole file system memory" in played.output


def test_the_report_and_the_status_of_the_nights_can_be_looked_at(played: Played) -> None:
    home = played.folder / "nights"
    assert f"report    {home}/report/index.html" in played.output
    assert (home / "report" / "index.html").stat().st_size > 0
    done = subprocess.run(
        [str(Path(sys.executable).parent / "iogauge"), "status", "--site", demo.SITE],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "IOGAUGE_HOME": str(home), "IOGAUGE_HISTORY": ""},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"site {demo.SITE}" in done.stdout


def test_a_users_own_nights_and_memory_are_not_touched(played: Played) -> None:
    before, after = played.own
    assert after == before
    assert not demo.memory_of(played.folder).exists()


def test_jobs_are_the_same_but_for_what_slows_the_storage(nights: list[Night]) -> None:
    """The slowdown is in the environment of the job, and nothing else of the night knows of it."""

    def script(night: Night) -> list[str]:
        (path,) = {str(Path(case.stage) / "rfm_job.sh") for case in night.cases if "per-process" in case.name}
        return Path(path).read_text(encoding="utf-8").splitlines()

    well, slow = script(nights[0]), script(nights[ONE_SLOW])
    assert {line.split("=")[0] for line in {*well} ^ {*slow}} == {"export SLOW_STORAGE_SLOWDOWN"}
    assert "SLOWDOWN" not in nights[ONE_SLOW].model_dump_json()


def wait_for(folder: Path, pattern: str) -> None:
    wait_until(lambda: list(folder.glob(pattern)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_one_leaves_nothing(number: signal.Signals, kernels: Path, tmp_path: Path) -> None:
    process = start(tmp_path, kernels)
    wait_for(tmp_path, "demo/nights/runs/*/output.txt")
    process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 2, output
    assert "the demonstration was stopped; nothing of it is left" in output
    assert not (tmp_path / "demo" / "nights").exists()
    assert not demo.memory_of(tmp_path / "demo").exists()


# --- what slows the storage -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "slow_storage.so"
    demo.build(None, path)
    return path


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    folder = tmp_path / "storage"
    folder.mkdir()
    return folder


MOVES = """
import os, sys, time
opened = time.monotonic()
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
time.sleep(float(os.environ.get("FIRST_CALL_AFTER", 0)))
data = bytes(1 << 20)
calls = {
    "write": lambda: os.write(fd, data), "pwrite": lambda: os.pwrite(fd, data, 0), "pread": lambda: os.pread(fd, 1 << 20, 0),
    "pwritev": lambda: os.pwritev(fd, [data], 0), "preadv": lambda: os.preadv(fd, [bytearray(1 << 20)], 0),
}
for name, call in calls.items():
    begin = time.monotonic()
    call()
    print(name, time.monotonic() - begin)
print("all", time.monotonic() - opened)
"""


def durations(library: Path, storage: Path, file: Path, **variables: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", MOVES, str(file)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LD_PRELOAD": str(library), "SLOW_STORAGE_FOLDER": str(storage), **variables},
    )
    return {name: float(seconds) for name, seconds in map(str.split, done.stdout.splitlines())}


def test_a_paced_storage_takes_as_long_as_its_bytes_need(library: Path, storage: Path) -> None:
    found = durations(library, storage, storage / "file", SLOW_STORAGE_MIB_S="10")
    assert found["all"] >= 0.5, found
    found = durations(library, storage, storage / "file", SLOW_STORAGE_MIB_S="10", SLOW_STORAGE_SLOWDOWN="0.5")
    assert found["all"] >= 1, found


def test_a_process_that_waits_for_a_core_before_its_first_call_is_not_slower(library: Path, storage: Path) -> None:
    """Its storage was busy meanwhile: the call has nothing left of the half second that its MiB needs."""
    paced = {"SLOW_STORAGE_MIB_S": "2", "FIRST_CALL_AFTER": "0.5"}
    found = durations(library, storage, storage / "file", **paced)
    assert found["write"] < 0.45, found
    assert found["all"] >= 2.5, found


def test_other_files_are_as_fast_as_ever(library: Path, storage: Path, tmp_path: Path) -> None:
    found = durations(library, storage, tmp_path / "other", SLOW_STORAGE_MIB_S="0.01")  # 100 s for each call
    assert all(seconds < 50 for seconds in found.values()), found


def test_without_a_pace_a_call_takes_as_much_longer(library: Path, storage: Path) -> None:
    """No memory copies a MiB in less than 20 us (50 GB/s); a hundred times as long is 2 ms."""
    found = durations(library, storage, storage / "file", SLOW_STORAGE_SLOWDOWN="0.99")
    assert all(seconds >= 2e-3 for seconds in found.values()), found


@pytest.mark.parametrize("value", ["x", "1", "-0.2", "nan", "0.2x"])
def test_a_slowdown_that_is_none_ends_the_program(value: str, library: Path, storage: Path) -> None:
    done = subprocess.run(
        ["true"],
        capture_output=True,
        text=True,
        check=False,
        env={"LD_PRELOAD": str(library), "SLOW_STORAGE_FOLDER": str(storage), "SLOW_STORAGE_SLOWDOWN": value},
    )
    assert done.returncode == 2
    assert f"SLOW_STORAGE_SLOWDOWN={value}" in done.stderr
