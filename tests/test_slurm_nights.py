"""Nights on the mini-cluster's real Slurm: ranks where they were asked for, jobs ended from outside, nights killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iogauge.errors import InputError
from iogauge.night import Night
from iogauge.nightly import run_night
from iogauge.scheduler import why_ended

IOGAUGE = Path(sys.executable).parent / "iogauge"
SMALL = ("--set", "particles=4096", "--set", "repeats=2", "--set", "warmup=0")
ENDLESS = ("--set", "particles=262144", "--set", "repeats=100000")


def only(nodes: int, ranks_per_node: int, file_systems: str) -> tuple[str, str]:
    return "--name", (
        f"ParticlesCheck.*nodes={nodes}%ranks_per_node={ranks_per_node}%file_system=({file_systems})"
        "%locality=CC%dimensions=1%selection=full"
    )


class Site:
    """The site minicluster with a home of its own."""

    def __init__(self, minicluster, home: Path) -> None:
        self.shared: Path = minicluster.shared
        self.home = home
        self.started: list[subprocess.Popen[str]] = []
        self.environment = {**os.environ, **minicluster.environment(), "IOGAUGE_HOME": str(home)}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [str(IOGAUGE), "nightly", "--site", "minicluster", *arguments]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, env=self.environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """What a failed test has left."""
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        subprocess.run(["scancel", "--me"], env=self.environment, check=True)

    def run(self, *arguments: str) -> tuple[int, Night]:
        """To the end; the exit code and the last night."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=150)
        nights = sorted((self.home / "runs").glob("*/night.json"))
        assert nights, out + err
        return process.returncode, Night.load(nights[-1])

    def jobs(self) -> list[str]:
        command = ["squeue", "--noheader", "--states=RUNNING", "--format=%A"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    def at_work(self) -> str:
        """The id of the one job, which has begun to write."""
        wait_for(lambda: len(self.jobs()) == 1 and any(self.shared.glob("iogauge-case.*/*.dat")))
        return self.jobs()[0]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def wrong_with(night: Night) -> list[str]:
    """What is not true; four nodes that share two cores may well be too noisy, and no band is theirs."""
    return [reason for case in night.cases if case.judgement.verdict == "invalid" for reason in case.judgement.reasons]


@pytest.fixture
def site(minicluster, tmp_path) -> Iterator[Site]:
    started = Site(minicluster, tmp_path / "home")
    yield started
    started.end()


def test_ranks_are_proven_to_be_where_they_were_asked_for(site):
    """srun over four nodes with BeeOND, made for the job and gone with it; mpirun over two."""
    _, night = site.run(*only(4, 2, "shared|beeond"), *only(2, 2, "shared-whole"), *SMALL)
    assert wrong_with(night) == []
    placements = {case.file_system: case.judgement.placement for case in night.cases}
    assert placements == {
        "shared": "8 ranks on 8 cores of 4 hosts",
        "beeond": "8 ranks on 8 cores of 4 hosts",
        "shared-whole": "4 ranks on 4 cores of 2 hosts",
    }
    assert list(site.shared.iterdir()) == []


def test_a_case_that_is_cancelled_in_mid_write_is_invalid_by_that_cause_and_leaves_nothing(site):
    process = site.start(*only(2, 1, "shared"), *ENDLESS)
    job = site.at_work()
    subprocess.run(["scancel", job], env=site.environment, check=True)
    process.communicate(timeout=90)
    (night,) = (Night.load(path) for path in (site.home / "runs").glob("*/night.json"))
    assert process.returncode == 1
    assert night.cases[0].judgement.reasons == ("the job was ended before its time: it was cancelled",)
    assert list(site.shared.iterdir()) == []


def test_the_next_night_ends_the_jobs_of_one_that_was_killed_and_is_clean(site):
    process = site.start(*only(2, 1, "shared"), *ENDLESS)
    job = site.at_work()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert site.jobs() == [job], "it runs on"
    _, night = site.run(*only(2, 1, "shared"), *SMALL)
    assert night.complete
    assert wrong_with(night) == []
    assert list(site.shared.iterdir()) == []
    assert site.jobs() == []


def test_without_slurm_the_night_says_so_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("MINICLUSTER_FOLDER", str(tmp_path))
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="the site uses Slurm, and there is no scontrol on PATH"):
        run_night("minicluster", "nightly")
    assert not (tmp_path / "home").exists()


SLURM_SAID = "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-21T12:49:30"


@pytest.mark.parametrize(
    ("state", "said", "cause"),
    [
        ("TIMEOUT", "", "its time limit was reached"),
        (None, f"{SLURM_SAID} DUE TO TIME LIMIT ***", "its time limit was reached"),
        ("CANCELLED", f"{SLURM_SAID} DUE TO TIME LIMIT ***", "its time limit was reached"),
        ("CANCELLED", f"{SLURM_SAID} ***", "it was cancelled"),
        ("CANCELLED", "", "it was cancelled"),
        ("COMPLETED", f"{SLURM_SAID} ***", "it was cancelled"),
        ("NODE_FAIL", "", "one of its nodes failed"),
        (
            "COMPLETED",
            f"{SLURM_SAID} DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
            "one of its nodes failed",
        ),
        ("FAILED", "=>> PBS: job killed: walltime 188 exceeded limit 180", "its time limit was reached"),
        ("EXIT", "TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "its time limit was reached"),
        ("OUT_OF_MEMORY", "", "it was killed for want of memory"),
        ("COMPLETED", "", ""),
        ("FAILED", "particles: error: --dir: no such folder", ""),
        (None, "", ""),
    ],
)
def test_why_a_scheduler_ended_a_job(state, said, cause):
    assert why_ended(state, said) == cause
