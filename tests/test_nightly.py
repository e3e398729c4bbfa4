"""A whole night on the local site, with the defects really produced: what is kept, what is removed, how it exits."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from conftest import CHECKOUT, PATIENCE_SECONDS, data_left, wait_until
from filelock import FileLock
from samples import case, make_night

from iogauge import nightly
from iogauge.errors import InputError
from iogauge.history.database import History
from iogauge.history.reading import list_series
from iogauge.night import Night

IOGAUGE = Path(sys.executable).parent / "iogauge"
SMALL = ("--set", "ParticlesCheck.particles=4096", "--set", "ParticlesCheck.repeats=2", "--set", "warmup=0")
ONE_RANK_CC = r"ParticlesCheck.*ranks_per_node=1%.*locality=CC%dimensions=1%selection=full"

pytestmark = pytest.mark.skipif(
    not (IOGAUGE.exists() and shutil.which("mpicc") and shutil.which("mpirun")),
    reason="needs the command iogauge beside this Python, and mpicc and mpirun",
)


@pytest.fixture
def environment(tmp_path: Path, kernels: Path) -> dict[str, str]:
    """Runs and data of this test alone, with kernels that are built already."""
    (tmp_path / "scratch").mkdir()
    folders = {"HOME": tmp_path / "home", "SCRATCH": tmp_path / "scratch", "KERNELS": kernels}
    return {**os.environ, **{f"IOGAUGE_{name}": str(folder) for name, folder in folders.items()}}


def start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    command = [str(IOGAUGE), "nightly", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def run(environment: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    process = start(environment, *arguments)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


def only_night(tmp_path: Path) -> tuple[Night, Path]:
    (folder,) = (path for path in (tmp_path / "home" / "runs").iterdir() if path.is_dir())
    return Night.load(folder / "night.json"), folder


def series_in_history(tmp_path: Path) -> set[str]:
    with History(str(tmp_path / "home" / "history.sqlite")).reading() as connection:
        return {one.key for one in list_series(connection)}


def processes_below(folder: Path) -> list[str]:
    """The names of those that work there."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # ended meanwhile
            where = Path(process.cwd())
            if folder in (where, *where.parents) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.name())
    return found


def test_a_night_is_recorded_shown_and_leaves_no_data(tmp_path, environment):
    code, out, err = run(environment, "--name", ONE_RANK_CC, *SMALL)
    night, folder = only_night(tmp_path)
    assert code == night.exit_code, err
    assert night.complete
    assert night.selected == 2
    assert {one.file_system for one in night.cases} == {"disk", "memory"}
    assert {row.key for _, row in night.rows} == {
        f"particles/{operation}/{place}/1x1/CC/hdf5" for operation in ("write", "read") for place in ("disk", "memory")
    }
    assert all(row.verified and len(row.observed_repeats) == 2 for _, row in night.rows)
    assert night.software is not None
    assert {mount.file_system for mount in night.machine.mounts} == {"disk", "memory"}
    for word in (
        "particles write CC",
        "1 rank on 1 core of 1 host",
        "4 series have no site band",
        str(folder / "index.html"),
    ):
        assert word in out
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page == (tmp_path / "home" / "report" / "nights" / f"{folder.name}.html").read_text(encoding="utf-8")
    for measured in night.cases:
        assert (Path(measured.stage) / "records.jsonl").exists(), "the evidence named is not there"
    assert night.notes == ()
    assert series_in_history(tmp_path) >= {row.key for _, row in night.rows}, "the history has it when it ends"
    assert set(night.earlier_nights.values()) == {0}
    assert list((tmp_path / "scratch").iterdir()) == []
    assert data_left(tmp_path / "home") == []


def test_a_night_that_waits_for_its_second_run_locks_nothing_and_is_whole_when_it_is_stopped(tmp_path, environment):
    name = ONE_RANK_CC.replace("%.*", "%file_system=memory%")
    process = start(environment, "--name", name, *SMALL, "--repeat-later", "1", "--as-of", "2026-03-01")
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("the second run begins at"):
            break
    with FileLock(tmp_path / "home" / "runs" / "lock", timeout=0):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    night, folder = only_night(tmp_path)
    assert process.returncode == night.exit_code, err
    assert (night.complete, night.night_date.isoformat(), folder.name[:8]) == (True, "2026-03-01", "20260301")
    assert "there was no second run: SIGINT while it was waited for" in out
    assert night.notes[0].startswith("--as-of: this night stands for one that began at 2026-03-01")
    assert (folder / "assessment.json").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_noted_and_ends_nothing_by_itself(number):
    before = signal.getsignal(number)
    with nightly.Stop() as stop:
        signal.raise_signal(number)
        assert stop.signal == number
    assert signal.getsignal(number) == before


def test_a_stopped_night_ends_its_jobs_and_keeps_what_was_measured(tmp_path, environment):
    number = signal.SIGTERM
    names = ("--name", r"ParticlesCheck.*ranks_per_node=1%.*disk.*=CC%.*=1%.*=full")
    names += ("--name", r"SegmentsCheck.*ranks_per_node=1%.*disk%access=contiguous$")
    process = start(environment, *names, *SMALL, "--set", "SegmentsCheck.repeats=100000")
    home = tmp_path / "home"
    # The first case has been judged, the second one is at work.
    wait_until(lambda: (_judged(home, 2) and _works(home, "segments")) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    assert list((tmp_path / "scratch").iterdir()), "it had no data to remove"

    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 2, err
    assert processes_below(home) == []
    assert list((tmp_path / "scratch").iterdir()) == []
    assert data_left(tmp_path / "home") == []
    night, folder = only_night(tmp_path)
    assert (folder / "reframe.json").exists(), "ReFrame was killed, and did not end by itself"
    assert not night.complete
    assert night.cause == f"stopped by {number.name}"
    assert "particles/write/disk/1x1/CC/hdf5" in {row.key for _, row in night.rows}
    assert not any(row.benchmark == "segments" for _, row in night.rows)
    assert "particles/write/disk/1x1/CC/hdf5" in series_in_history(tmp_path)
    assert f"INCOMPLETE: stopped by {number.name}" in out
    assert "particles write CC" in out
    assert "Incomplete" in (folder / "index.html").read_text(encoding="utf-8")


def _judged(home: Path, number: int) -> bool:
    return any(f"({number}/3)" in log.read_text(encoding="utf-8") for log in home.glob("runs/*/output.txt"))


def _works(home: Path, kernel: str) -> bool:
    return kernel in processes_below(home)


def test_a_file_system_that_is_not_there_makes_its_cases_invalid_in_words(tmp_path, environment):
    environment["IOGAUGE_SCRATCH"] = str(tmp_path / "not-mounted")
    code, out, err = run(environment, "--name", ONE_RANK_CC, *SMALL)
    assert code == 1, err
    night, _ = only_night(tmp_path)
    by_place = {one.file_system: one.judgement for one in night.cases}
    assert by_place["disk"].verdict == "invalid"
    assert by_place["disk"].rows == ()
    assert "is not a folder here" in by_place["disk"].reasons[0]
    assert by_place["memory"].rows
    assert "1 invalid" in out
    assert f"{tmp_path}/not-mounted is not a folder here" in out


def test_kernels_that_do_not_build_are_said_and_exit_2(tmp_path, environment):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "mpicc").write_text("#!/bin/sh\necho 'licence server not reached' >&2\nexit 1\n")
    (tools / "mpicc").chmod(0o755)
    environment["PATH"] = f"{tools}:{environment['PATH']}"
    del environment["IOGAUGE_KERNELS"]
    code, out, _ = run(environment, "--name", ONE_RANK_CC, *SMALL)
    assert code == 2
    assert "the kernels could not be built" in out
    night, _ = only_night(tmp_path)
    assert night.cases == ()


def test_a_second_night_at_the_same_time_is_refused(tmp_path, environment):
    runs = tmp_path / "home" / "runs"
    runs.mkdir(parents=True)
    with FileLock(runs / "lock"):
        code, _, err = run(environment, "--name", ONE_RANK_CC)
    assert code == 2
    assert "another night is running here" in err
    assert [path.name for path in runs.iterdir() if path.is_dir()] == []


@pytest.fixture
def other_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what people write, to spoil."""
    for name in ("site_configs", "reference_values", "reframe_checks"):
        shutil.copytree(CHECKOUT / name, tmp_path / "checkout" / name)
    monkeypatch.setattr(nightly, "checkout", lambda: tmp_path / "checkout")
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IOGAUGE_SCRATCH", str(tmp_path))
    return tmp_path / "checkout"


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("site_configs/local.py", '"type": "memory"', '"type": "cloud"', "cloud"),
        ("site_configs/local.py", '"nodes": [1]', '"nodes": [0]', "nodes"),
        ("site_configs/local.py", "site_configuration = {", "site_configuration = {{", "local.py"),
    ],
)
def test_a_wrong_site_configuration_stops_the_night_before_anything_runs(other_checkout, name, old, new, reason):
    path = other_checkout / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=reason) as caught:
        nightly.run_night("local", "nightly")
    assert caught.value.file == path
    assert caught.value.line
    assert not nightly.home().exists()


def test_a_night_looks_at_the_checks_that_the_site_names_else_at_all(other_checkout):
    folder = other_checkout / "reframe_checks"
    file = other_checkout / "site_configs" / "local.py"
    text = file.read_text()
    assert nightly.checks_of("local") == [folder]
    file.write_text(text.replace('"netcdf": netcdf', '"checks": ["tiles.py", "ior.py"], "netcdf": netcdf'))
    assert nightly.checks_of("local") == [folder / "tiles.py", folder / "ior.py"]
    file.write_text(text.replace('"netcdf": netcdf', '"checks": ["tile.py"], "netcdf": netcdf'))
    with pytest.raises(InputError, match=r"there is no .*/reframe_checks/tile\.py"):
        nightly.checks_of("local")


def test_wrong_bands_stop_the_night_before_anything_runs(other_checkout):
    path = other_checkout / "reference_values" / "local.yaml"
    path.write_text(
        "schema: iogauge.bands/1\nsite: local\nbands:\n  particles/write/disk/1x1/CC/hdf5:\n"
        "    observed: {reference: -1, lower: -0.1, upper: 0.1, unit: MiB/s}\n    from: {method: none}\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="reference") as caught:
        nightly.run_night("local", "nightly")
    assert (caught.value.file, caught.value.line) == (path, 5)
    assert not nightly.home().exists()


def test_a_test_file_that_does_not_load_makes_the_night_incomplete(other_checkout, kernels, monkeypatch):
    monkeypatch.setenv("IOGAUGE_KERNELS", str(kernels))
    broken = other_checkout / "reframe_checks" / "segments.py"
    broken.write_text(broken.read_text(encoding="utf-8") + "\nno_such_name\n", encoding="utf-8")
    options = ["-n", ONE_RANK_CC, "-S", "ParticlesCheck.particles=4096", "-S", "repeats=2"]
    night, _ = nightly.run_night("local", "nightly", options=options)
    assert (night.exit_code, night.complete) == (2, False)
    assert "segments.py" in night.cause
    assert "no_such_name" in night.cause
    assert night.cases, "what could be loaded was measured and is kept"


@pytest.fixture
def killed_night(tmp_path: Path, environment: dict[str, str]) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """What a night leaves that was killed with no time to clean: a case folder, and a rank still at work."""
    folder = tmp_path / "home" / "runs" / "20260101T000000Z"
    stage = folder / "reframe" / "stage" / "case"
    stage.mkdir(parents=True)
    data = tmp_path / "scratch" / "iogauge-case.abcdefgh"
    data.mkdir()
    for file in (stage / "case_folder.txt", data / ".iogauge-case"):
        file.write_text(f"{data}\n")
    rank = subprocess.Popen(
        ["sleep", str(2 * PATIENCE_SECONDS)], cwd=stage, env={**environment, nightly.NIGHT_VARIABLE: str(folder)}
    )
    yield data, rank
    rank.kill()
    rank.wait()


@pytest.mark.parametrize("arguments", [("--name", "NoSuchCheck"), ("--suite", "monthly")])
def test_a_night_without_a_case_fails_and_has_cleared_away_what_a_killed_one_left(
    tmp_path, environment, killed_night, arguments
):
    """But not a process of someone else in that night's folder."""
    data, rank = killed_night
    stage = tmp_path / "home" / "runs" / "20260101T000000Z" / "reframe"
    reader = subprocess.Popen(["sleep", str(2 * PATIENCE_SECONDS)], cwd=stage)
    try:
        code, _, err = run(environment, *arguments)
        assert reader.poll() is None
    finally:
        reader.kill()
        reader.wait()
    assert not data.exists()
    assert rank.poll() is not None, "a rank of the killed night still disturbs this one"
    assert code == 2
    assert "no case" in err
    assert arguments[1] in err
    assert "Traceback" not in err


def test_a_series_that_several_cases_share_counts_once_a_night(tmp_path):
    """As the POSIX baseline of the collective and of the independent case do."""
    for name, started in (("one", "2026-11-20T02:00:00Z"), ("two", "2026-11-21T02:00:00Z")):
        night = make_night(case("write"), case("write"), started=started)
        (tmp_path / name).mkdir()
        night.save(tmp_path / name / "night.json")
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "spoiled").mkdir()
    (tmp_path / "spoiled" / "night.json").write_text("{")
    assert set(nightly.earlier_nights(tmp_path).values()) == {2}
