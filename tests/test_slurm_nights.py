"""Nights on the mini-cluster's real Slurm: ranks where they were asked for, jobs ended from outside, nights killed."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import PATIENCE_SECONDS, wait_until

from iogauge.errors import InputError
from iogauge.night import Night
from iogauge.nightly import run_night
from iogauge.scheduler import mpi_type_for, why_being_ended, why_ended

pytestmark = pytest.mark.cluster

IOGAUGE = Path(sys.executable).parent / "iogauge"
SMALL = ("--set", "particles=4096", "--set", "repeats=2", "--set", "warmup=0")


def endless(check: str) -> tuple[str, ...]:
    return ("--set", f"{check}.particles=262144", "--set", f"{check}.repeats=100000", "--set", f"{check}.warmup=0")


def only(nodes: int, ranks_per_node: int, file_systems: str) -> tuple[str, str]:
    return "--name", (
        f"ParticlesCheck.*nodes={nodes}%ranks_per_node={ranks_per_node}%file_system=({file_systems})"
        "%locality=CC%dimensions=1%selection=full"
    )


class Job(NamedTuple):
    id: str
    nodes: str


class Span(NamedTuple):
    """In sacct's notation, which sorts as time does."""

    start: str
    end: str


class Site:
    """The site minicluster with a home of its own."""

    def __init__(self, minicluster, home: Path, kernels: Path) -> None:
        self.folder: Path = minicluster.folder
        self.shared: Path = minicluster.shared
        self.home = home
        self.started: list[subprocess.Popen[str]] = []
        own = {"IOGAUGE_HOME": str(home), "IOGAUGE_KERNELS": str(kernels)}
        self.environment = {**os.environ, **minicluster.environment(), **own}

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
        """To the end; the exit code and the night."""
        earlier = set(self.nights())
        process = self.start(*arguments)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        (path,) = set(self.nights()) - earlier or pytest.fail(out + err)
        return process.returncode, Night.load(path)

    def nights(self) -> list[Path]:
        return sorted((self.home / "runs").glob("*/night.json"))

    def finish(self, process: subprocess.Popen[str], code: int) -> Night:
        """The night of one that was started."""
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == code, out + err
        return Night.load(self.nights()[-1])

    def jobs(self) -> dict[str, Job]:
        """Those that run, by file system."""
        command = ["squeue", "--noheader", "--states=RUNNING", "--format=%j %A %N"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True)
        found = (line.split() for line in done.stdout.splitlines())
        return {name.removeprefix("iogauge-minicluster-"): Job(id_, nodes) for name, id_, nodes in found}

    def accounted(self, name: str) -> list[Span]:
        """When the jobs of that name ran."""
        command = ["sacct", "-X", "--noheader", "--parsable2", "--format=start,end", f"--name={name}"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True)
        return [Span(*line.split("|")) for line in done.stdout.splitlines()]

    def at_work(self, *file_systems: str) -> dict[str, Job]:
        """The jobs on these, once all have begun to write."""
        folders = {
            "shared": "fs/shared",
            "small": "fs/small",
            "node": "disks/n?",
            "beeond": "disks/n?/beeond-*",
        }
        for name in file_systems:
            wait_until(lambda pattern=f"{folders[name]}/iogauge-case.*/*.h5": any(self.folder.glob(pattern)))
        found = self.jobs()
        assert set(file_systems) <= set(found)
        return found


def data_files(minicluster) -> list[Path]:
    """Whatever cases have left on any disk."""
    patterns = ("fs/shared", "fs/small", "disks/n?", "disks/n?/beeond-*")
    found = (path for pattern in patterns for path in minicluster.folder.glob(f"{pattern}/iogauge-case.*/**/*"))
    return [path for path in found if path.name != ".iogauge-case"]


def wrong_with(night: Night) -> list[str]:
    """What is not true; four nodes that share two cores may well be too noisy, and no band is theirs."""
    return [reason for case in night.cases if case.judgement.verdict == "invalid" for reason in case.judgement.reasons]


@pytest.fixture
def site(minicluster, tmp_path, kernels) -> Iterator[Site]:
    """Its kernels are built already, unless a test takes them away."""
    started = Site(minicluster, tmp_path / "home", kernels)
    yield started
    started.end()
    minicluster.output("heal")


def test_ranks_are_proven_to_be_where_they_were_asked_for(site):
    """srun over four nodes with BeeOND, made for the job and gone with it; mpirun over two, on the same shared disk. The night
    builds the kernels."""
    del site.environment["IOGAUGE_KERNELS"]
    _, night = site.run(*only(4, 2, "shared|beeond"), *only(2, 2, "shared"), *SMALL)
    assert wrong_with(night) == []
    placements = {row.key.partition("write/")[2]: case.judgement.placement for case, row in night.rows}
    placements.pop("")  # the reads
    assert placements == {
        "shared/4x2/CC/hdf5": "8 ranks on 8 cores of 4 hosts",
        "beeond/4x2/CC/hdf5": "8 ranks on 8 cores of 4 hosts",
        "shared/2x2/CC/hdf5": "4 ranks on 4 cores of 2 hosts",
        "shared/2x2/CC/hdf5@whole": "4 ranks on 4 cores of 2 hosts",
    }
    jobs = sorted(site.accounted("iogauge-minicluster-shared"))
    assert len(jobs) == 3
    apart = all(one.end <= other.start for one, other in itertools.pairwise(jobs))
    assert apart, "on one file system they wait for each other, across partitions"
    # The site leaves the portable bands out: there is nothing to be slower than.
    assert {row.verdict for case in night.cases for row in case.judgement.main_rows} == {"no reference"}
    assert list(site.shared.iterdir()) == []


def test_each_fault_is_named_and_no_other_case_is_harmed(site, minicluster):
    """Four cases at work when each gets a fault of its own; a fifth waits for its file system."""
    process = site.start(
        *("--suite", "full", *only(2, 1, "shared"), *only(1, 2, "beeond"), *only(1, 2, "node"), *only(1, 1, "small")),
        *(
            "--name",
            "SegmentsCheck.*nodes=1%ranks_per_node=2%file_system=shared%access=contiguous$",
            "--set",
            "repeats=2",
        ),
        *endless("ParticlesCheck"),
        *("--set", "ParticlesCheck.time_limit=1m"),
    )
    at_work = site.at_work("shared", "beeond", "node", "small")
    minicluster.output("fault", "small-full")
    minicluster.output("fault", "node", at_work["node"].nodes)
    subprocess.run(["scancel", at_work["beeond"].id], env=site.environment, check=True)
    night = site.finish(process, 1)
    reasons = {case.file_system: case.judgement.reasons for case in night.cases if case.judgement.verdict == "invalid"}
    full = reasons.pop("small")
    assert "the kernel ended with exit code 2" in full[0]
    assert re.search(r"; afterwards \S+ of 104M are free there", full[0])
    assert reasons == {
        "shared": ("the job was ended before its time: its time limit was reached",),
        "beeond": ("the job was ended before its time: it was cancelled",),
        "node": ("the job was ended before its time: one of its nodes failed",),
    }
    assert len(night.cases) == 5
    minicluster.output("heal")
    assert data_files(minicluster) == []


def test_a_file_system_that_dies_and_a_prolog_that_fails_are_named_and_the_next_night_is_clean(site, minicluster):
    """Meanwhile the controller is restarted, which harms nobody."""
    minicluster.output("fault", "prolog", "n4")
    process = site.start(
        *(*only(2, 1, "shared"), *only(4, 2, "shared")),
        *("--suite", "full", "--name", "SegmentsCheck.*nodes=1%ranks_per_node=2%file_system=node%access=contiguous$"),
        *(*endless("ParticlesCheck"), "--set", "ParticlesCheck.time_limit=1m", "--set", "SegmentsCheck.repeats=10"),
    )
    site.at_work("shared")
    left = next(site.shared.glob("iogauge-case.*"))
    subprocess.run(["sync", "--file-system", site.shared], check=True)
    minicluster.output("fault", "controller-restart")
    minicluster.output("fault", "shared-gone")
    night = site.finish(process, 1)
    reasons = {case.nodes: case.judgement.reasons for case in night.cases if case.judgement.verdict == "invalid"}
    assert reasons.pop(4) == ("the job was ended before its time: it was cancelled; the prolog failed on n4",)
    # Where one rank alone fails to write metadata, HDF5 1.10 waits for the others for ever in H5Fclose.
    assert re.search("input/output error|its time limit was reached", reasons.pop(2)[0].lower())
    assert reasons == {}
    assert len(night.cases) == 3
    assert any(f"{left} could not be removed" in note for note in night.notes)
    minicluster.output("heal")
    assert left.is_dir(), "it is back with what was in it"
    _, night = site.run(*only(2, 2, "shared"), *SMALL)
    assert str(left) in night.removed_folders
    assert wrong_with(night) == []
    assert data_files(minicluster) == []


def test_the_next_night_ends_the_jobs_of_one_that_was_killed_and_is_clean(site):
    process = site.start(*only(2, 2, "shared"), *endless("ParticlesCheck"))
    jobs = site.at_work("shared")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert site.jobs() == jobs, "it runs on"
    _, night = site.run(*only(2, 2, "shared"), *SMALL)
    assert night.complete
    assert wrong_with(night) == []
    assert list(site.shared.iterdir()) == []
    assert site.jobs() == {}


def test_without_slurm_the_night_says_so_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("MINICLUSTER_FOLDER", str(tmp_path))
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="the site uses Slurm, and there is no scontrol on PATH"):
        run_night("minicluster", "nightly")
    assert not (tmp_path / "home").exists()


TOO_LATE = "Unable to create step for job 4: Job/step already completing or completed"
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
        ("COMPLETED", f"srun: error: {TOO_LATE}", "Slurm was ending it"),
        ("CANCELLED", f"srun: error: {TOO_LATE}", "it was cancelled"),
        ("COMPLETED", "", ""),
        ("FAILED", "particles: error: --dir: no such folder", ""),
        (None, "", ""),
    ],
)
def test_why_a_scheduler_ended_a_job(state, said, cause):
    assert why_ended(state, said) == cause


@pytest.mark.parametrize(
    ("sacct", "cause"),
    [("60|1", "its time limit was reached"), ("59|1", "Slurm was ending it"), ("", "Slurm was ending it")],
)
def test_a_job_that_began_a_step_when_its_time_was_up_is_told_as_that(tmp_path, monkeypatch, sacct, cause):
    """Slurm calls it COMPLETED: the script has ended by itself, when no step could be begun any more."""
    (tmp_path / "sacct").write_text(f"#!/bin/sh\necho '{sacct}'\n")
    (tmp_path / "sacct").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_being_ended("4", "Slurm was ending it") == cause
    assert why_being_ended("4", "it was cancelled") == "it was cancelled"


@pytest.mark.parametrize(
    ("default", "mpi", "type_"),
    [
        ("pmix", "mpich", "pmi2"),
        ("pmix_v4", "mpich", "pmi2"),
        ("pmi2", "mpich", ""),
        ("pmix", "openmpi", ""),
        ("pmix", None, ""),
    ],
)
def test_mpich_is_started_by_what_its_ranks_find_each_other_with(tmp_path, monkeypatch, default, mpi, type_):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/sh\necho "MpiDefault              = {default}"\n')
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert mpi_type_for(mpi) == type_
