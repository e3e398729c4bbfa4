"""A job writes below a folder of its own, or not at all, and leaves nothing there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CHECKOUT, PATIENCE_SECONDS, needs_root, wait_until

from iogauge import nightly
from iogauge.case_folders import remove_left_over

SCRIPT = CHECKOUT / "reframe_checks" / "src" / "case_folder.sh"


def job(tmp_path: Path, arguments: str, body: str = "true") -> list[str]:
    (tmp_path / "stage").mkdir(exist_ok=True)
    return ["bash", "-c", f"cd '{tmp_path}/stage' && . '{SCRIPT}' && iogauge_case_folder {arguments} && {body}"]


def run(tmp_path, arguments, body="true", **environment):
    return subprocess.run(
        job(tmp_path, arguments, body), capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


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
    assert (tmp_path / "stage" / "case_folder.txt").read_text() == f"{folder}\nremoved\n"
    assert (tmp_path / "stage" / "file_system.txt").read_text().split()


def test_the_folder_is_gone_after_a_failure_and_the_exit_code_stays(tmp_path, target):
    assert run(tmp_path, f'disk "{target}" 1000', "exit 7").returncode == 7
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "said", "told"),
    [
        ("ext2/ext3", "Disk quota exceeded", ", and 1000 bytes more are refused: Disk quota exceeded\n"),
        ("ext2/ext3", "Operation not supported", "free there\n"),
        ("tmpfs", "Disk quota exceeded", "free there\n"),
    ],
)
def test_a_quota_that_is_used_up_is_told_after_a_failure(tmp_path, target, kind, said, told):
    (tmp_path / "bin").mkdir()
    commands = {
        "fallocate": f': >"$3"\necho "fallocate: fallocate failed: {said}" >&2\nexit 1',
        "stat": f"echo {kind}",
    }
    for name, text in commands.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = run(tmp_path, f'disk "{target}" 1000', 'iogauge_ended 2; ls "$IOGAUGE_CASE_DIR"', PATH=path)
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "stage" / "free_afterwards.txt").read_text().endswith(told)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_folder_is_gone_after_a_signal(tmp_path, target, number):
    # As ReFrame does it: the signal goes to the whole process group of the job.
    # A shell cannot trap what was ignored when it started, as SIGINT is below a job in the background: make it default.
    process = subprocess.Popen(
        job(tmp_path, f'disk "{target}" 1000', "sleep 3000"),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    wait_until(lambda: list(target.glob("*/.iogauge-case")))
    os.killpg(process.pid, number)
    assert process.wait(timeout=PATIENCE_SECONDS) == 128 + number
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
        ('--mountpoint "" disk "{target}" 1', "its mount point is empty here"),
        ('--mountpoint "{target}" disk "{target}" 1', "{target} is not a mount point here"),
        (
            f"--quota {sys.executable} 'echo 999' disk '{{target}}' 1000",
            "the case writes 1000 bytes, 999 bytes are left",
        ),
        (
            f"--quota {sys.executable} \"printf '%s\\n' name,id,size,hard,files,hard a,1,5,999,0,0\" disk '{{target}}' 1000",
            "994 bytes are left of the 999 bytes quota of disk for a",
        ),
    ],
)
def test_the_guard_refuses_before_anything_is_made(tmp_path, target, arguments, reason):
    done = run(tmp_path, arguments.format(target=target), "echo started", IOGAUGE_GUARD_WAIT_SECONDS="0")
    assert done.returncode == 2
    assert "iogauge: guard: file system" in done.stderr
    assert reason.format(target=target) in done.stderr
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


def test_a_real_mount_point_and_enough_quota_are_accepted_and_recorded(tmp_path, target):
    done = run(tmp_path, f"--mountpoint / --quota {sys.executable} 'echo 5000000000' disk '{target}' 1000")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "stage" / "quota.txt").read_text() == "4.7 GiB left\n"


@pytest.mark.parametrize(
    ("python", "command", "reason"),
    [
        (sys.executable, "echo three gibibytes", "neither what a known quota tool prints nor one number"),
        (sys.executable, "no-such-quota", "no-such-quota: command not found"),
        ("/no/such/python", "echo 1", "No such file or directory"),
    ],
)
def test_a_quota_that_cannot_be_known_in_the_job_is_said_and_the_case_runs(tmp_path, target, python, command, reason):
    done = run(tmp_path, f"--quota {python} '{command}' disk '{target}' 1000", "echo started")
    assert (done.returncode, done.stdout) == (0, "started\n")
    assert "iogauge: the quota of disk is not known in the job" in done.stderr
    assert reason in done.stderr
    assert reason in (tmp_path / "stage" / "quota.txt").read_text()


def test_what_the_case_before_removed_may_be_given_back_late(tmp_path, target):
    """As Lustre does, which destroys objects after unlink has returned: the first answer is too little, the second enough."""
    asked = tmp_path / "asked"
    command = f"echo x >>{asked}; [ $(wc -l <{asked}) -gt 1 ] && echo 1000 || echo 999"
    done = run(tmp_path, f"--quota {sys.executable} '{command}' disk '{target}' 1000")
    assert done.returncode == 0, done.stderr
    assert asked.read_text() == "x\nx\n"


@needs_root
def test_space_that_others_have_taken_is_waited_for_and_then_refused(tmp_path, target):
    """Between submission and start: really full, and really given back."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4M", "tmpfs", target], check=True)
    try:
        (target / "others").write_bytes(b"x" * (3 << 20))
        arguments = f'--mountpoint "{target}" disk "{target}" {2 << 20}'
        refused = run(tmp_path, arguments, "echo started", IOGAUGE_GUARD_WAIT_SECONDS="1")
        giving_back = subprocess.Popen(["sh", "-c", f"sleep 1; rm '{target}/others'"])
        accepted = run(tmp_path, arguments, "echo started", IOGAUGE_GUARD_WAIT_SECONDS="20")
        giving_back.wait()
    finally:
        subprocess.run(["umount", target], check=True)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"1048576 bytes are free in {target}, the case writes 2097152" in refused.stderr
    assert (accepted.returncode, accepted.stdout) == (0, "started\n"), accepted.stderr


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
    assert remove_left_over(tmp_path / "run") == ([str(folder)], [])
    assert [p.name for p in target.iterdir()] == ["precious"]
    assert remove_left_over(tmp_path / "run") == ([], [])


def test_a_folder_without_the_marker_is_not_ours(tmp_path, target):
    folder = left_over(tmp_path, target, marker=False)
    assert remove_left_over(tmp_path / "run") == ([], [])
    assert (folder / "data").exists()


def test_a_folder_with_another_name_is_not_ours(tmp_path, target):
    folder = left_over(tmp_path, target, name="home")
    assert remove_left_over(tmp_path / "run") == ([], [])
    assert folder.exists()


def test_a_marker_of_another_folder_does_not_count(tmp_path, target):
    folder = left_over(tmp_path, target)
    (folder / ".iogauge-case").write_text("/somewhere/else\n")
    assert remove_left_over(tmp_path / "run") == ([], [])
    assert folder.exists()


def test_what_a_job_has_removed_is_not_looked_for_again(tmp_path, target):
    """Somebody else may have a folder of that name by now."""
    folder = left_over(tmp_path, target)
    with (tmp_path / "run" / "stage" / "case" / "case_folder.txt").open("a") as file:
        file.write("removed\n")
    assert remove_left_over(tmp_path / "run") == ([], [])
    assert folder.exists()


@needs_root
def test_a_file_system_that_hangs_is_not_waited_for_and_is_named(tmp_path, target):
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, target], check=True)
    try:
        folder = left_over(tmp_path, target)
        subprocess.run(["fsfreeze", "--freeze", target], check=True)
        found = remove_left_over(tmp_path / "run", seconds=1)
        subprocess.run(["fsfreeze", "--unfreeze", target], check=True)
        assert found == ([], [f"{folder} could not be removed: no answer in 1 s"])
    finally:
        subprocess.run(["umount", "--lazy", target], check=True)


@pytest.mark.parametrize("away", ["not mounted", "an I/O error"])
def test_what_a_comparison_left_where_its_file_system_went_away_is_removed_when_it_is_back(
    tmp_path, target, monkeypatch, away
):
    """Though the next comparison has taken the place of that one."""
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path / "home"))
    folder = left_over(tmp_path, target)
    (tmp_path / "home").mkdir()
    compare = (tmp_path / "run").rename(tmp_path / "home" / "compare")
    (compare / nightly.OUTPUT_FILE).touch()
    elsewhere = target.rename(tmp_path / "elsewhere")
    if away == "an I/O error":
        target.symlink_to(target)
    told = [f"{folder} could not be removed: "] * (away == "an I/O error")
    nightly._remove(compare)
    assert not compare.exists()
    found = nightly._clear_left_over()
    assert [problem[: len(told[0])] for problem in found.problems] == told
    target.unlink(missing_ok=True)
    elsewhere.rename(target)
    assert nightly._clear_left_over() == ([str(folder)], [])
    assert list(target.iterdir()) == []
    assert nightly._clear_left_over() == ([], [])
    assert list((tmp_path / "home" / nightly.LEFT_OVER).iterdir()) == []


def test_the_last_comparison_is_looked_after_by_the_next_night(tmp_path, target, monkeypatch):
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path / "home"))
    folder = left_over(tmp_path, target)
    (tmp_path / "home" / "runs").mkdir(parents=True)
    compare = (tmp_path / "run").rename(tmp_path / "home" / "compare")
    (compare / nightly.OUTPUT_FILE).touch()
    assert nightly._clear_earlier(tmp_path / "home" / "runs") == ([str(folder)], [])
    assert not folder.exists()


ORPHAN_JOB = f"site:{os.uname().nodename}:4711"


@pytest.fixture
def orphan(tmp_path, target):
    """A folder that a job of Slurm left, and a stand-in for squeue which knows jobs 1 and 2."""
    folder = target / "iogauge-case.orphaned"
    folder.mkdir()
    (folder / "data").write_text("x")
    (folder / ".iogauge-case").write_text(f"{folder}\n{ORPHAN_JOB}\n")
    squeue = tmp_path / "bin" / "squeue"
    squeue.parent.mkdir()
    squeue.write_text("#!/bin/sh\nprintf '1\\n2\\n'\n")
    squeue.chmod(0o755)
    return folder


def beside(orphan: Path, tmp_path: Path, cluster: str = "site") -> subprocess.CompletedProcess[str]:
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    return run(
        tmp_path, f'disk "{orphan.parent}" 1000', "true", SLURM_JOB_ID="2", SLURM_CLUSTER_NAME=cluster, PATH=path
    )


def test_what_a_job_left_that_slurm_no_longer_knows_is_removed_by_the_next_one_there(tmp_path, orphan):
    done = beside(orphan, tmp_path)
    assert f"job 4711 is gone, and left {orphan}: it is removed" in done.stderr
    assert list(orphan.parent.iterdir()) == []


@pytest.mark.parametrize(
    "spared",
    ["its job is there", "another cluster's", "another host's", "squeue fails", "no job's", "another's marker"],
)
def test_what_may_be_at_work_is_left_alone(tmp_path, orphan, spared):
    marker, squeue = orphan / ".iogauge-case", tmp_path / "bin" / "squeue"
    if spared == "its job is there":
        squeue.write_text("#!/bin/sh\necho 4711\n")
    elif spared == "squeue fails":
        squeue.write_text("#!/bin/sh\nexit 1\n")
    elif spared == "another host's":
        marker.write_text(f"{orphan}\nsite:another:4711\n")
    elif spared == "no job's":
        marker.write_text(f"{orphan}\n\n")
    elif spared == "another's marker":
        marker.write_text(f"{orphan}.other\n{ORPHAN_JOB}\n")
    assert beside(orphan, tmp_path, cluster="other" if spared == "another cluster's" else "site").returncode == 0
    assert (orphan / "data").exists()
