"""A job writes below a folder of its own, or not at all, and leaves nothing there."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import CHECKOUT, needs_root

from iogauge.case_folders import remove_left_over

SCRIPT = CHECKOUT / "reframe_checks" / "src" / "case_folder.sh"


def job(tmp_path: Path, arguments: str, body: str = "true") -> list[str]:
    (tmp_path / "stage").mkdir(exist_ok=True)
    return ["bash", "-c", f"cd '{tmp_path}/stage' && . '{SCRIPT}' && iogauge_case_folder {arguments} && {body}"]


def run(tmp_path, arguments, body="true"):
    return subprocess.run(job(tmp_path, arguments, body), capture_output=True, text=True, check=False)


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def test_the_job_has_a_folder_of_its_own_and_it_is_gone_afterwards(tmp_path, target):
    (target / "precious").write_text("keep")
    done = run(
        tmp_path,
        f'disk "{target}" 1000',
        'touch "$IOGAUGE_CASE_DIR/data" && echo "$IOGAUGE_CASE_DIR" && ls -A "$IOGAUGE_CASE_DIR"',
    )
    assert done.returncode == 0, done.stderr
    folder, *inside = done.stdout.split()
    assert Path(folder).parent == target
    assert sorted(inside) == [".iogauge-case", "data"]
    assert [p.name for p in target.iterdir()] == ["precious"]
    assert (tmp_path / "stage" / "case_folder.txt").read_text() == f"{folder}\n"
    assert (tmp_path / "stage" / "file_system.txt").read_text().split()


def test_the_folder_is_gone_after_a_failure_and_the_exit_code_stays(tmp_path, target):
    assert run(tmp_path, f'disk "{target}" 1000', "exit 7").returncode == 7
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_folder_is_gone_after_a_signal(tmp_path, target, number):
    # As ReFrame does it: the signal goes to the whole process group of the job.
    # A shell cannot trap what was ignored when it started, as SIGINT is below a job in the background: make it default.
    process = subprocess.Popen(
        job(tmp_path, f'disk "{target}" 1000', "sleep 30"),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 10
    while not list(target.glob("*/.iogauge-case")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(target.iterdir()), "the job never made its folder"
    os.killpg(process.pid, number)
    assert process.wait(timeout=10) == 128 + number
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('beeond "" 1', "its path is empty here"),
        ('disk "/" 1', "the root folder"),
        ('disk "relative" 1', "not absolute"),
        ('disk "/no/such/folder" 1', "not a folder"),
        ('disk "{target}" 99999999999999999', "the case writes 99999999999999999"),
        ('disk "{target}" 1 lustre beegfs', "not as lustre beegfs"),
        ('disk "/proc" 1', "bytes are free"),
    ],
)
def test_the_guard_refuses_before_anything_is_made(tmp_path, target, arguments, reason):
    done = run(tmp_path, arguments.format(target=target), "echo started")
    assert done.returncode == 2
    assert "iogauge: guard: file system" in done.stderr
    assert reason in done.stderr
    assert "started" not in done.stdout
    assert list(target.iterdir()) == []
    assert not (tmp_path / "stage" / "case_folder.txt").exists()


def test_the_type_as_mounted_is_accepted(tmp_path, target):
    mounted = subprocess.run(
        ["df", "--output=fstype", target], capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    assert run(tmp_path, f'disk "{target}" 1 lustre {mounted}').returncode == 0


@needs_root
def test_a_read_only_file_system_is_refused(tmp_path, target):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1M", "tmpfs", target], check=True)
    try:
        done = run(tmp_path, f'disk "{target}" 1')
    finally:
        subprocess.run(["umount", target], check=True)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def left_over(tmp_path, target, marker=True, name="iogauge-case.abcdefgh"):
    stage = tmp_path / "run" / "stage" / "case"
    stage.mkdir(parents=True)
    folder = target / name
    folder.mkdir()
    (folder / "data").write_text("x")
    (stage / "case_folder.txt").write_text(f"{folder}\n")
    if marker:
        (folder / ".iogauge-case").write_text(f"{folder}\n")
    return folder


def test_what_a_killed_job_left_is_removed_and_named(tmp_path, target):
    folder = left_over(tmp_path, target)
    (target / "precious").write_text("keep")
    assert remove_left_over(tmp_path / "run") == [str(folder)]
    assert [p.name for p in target.iterdir()] == ["precious"]
    assert remove_left_over(tmp_path / "run") == []


def test_a_folder_without_the_marker_is_not_ours(tmp_path, target):
    folder = left_over(tmp_path, target, marker=False)
    assert remove_left_over(tmp_path / "run") == []
    assert (folder / "data").exists()


def test_a_folder_with_another_name_is_not_ours(tmp_path, target):
    folder = left_over(tmp_path, target, name="home")
    assert remove_left_over(tmp_path / "run") == []
    assert folder.exists()


def test_a_marker_of_another_folder_does_not_count(tmp_path, target):
    folder = left_over(tmp_path, target)
    (folder / ".iogauge-case").write_text("/somewhere/else\n")
    assert remove_left_over(tmp_path / "run") == []
    assert folder.exists()
