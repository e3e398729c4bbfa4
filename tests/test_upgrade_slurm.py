"""A comparison on the mini-cluster's real Slurm: one allocation, ranks proven to be apart, cancelled, and taken up again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE_SECONDS, wait_until
from test_slurm_nights import data_files

from iogauge import arms, hdf5_arms, nightly
from iogauge.compare.result import Comparison

#: Alone, thus last: the second HDF5 is built by then.
pytestmark = [pytest.mark.cluster, pytest.mark.alone]

WHERE = ("--site", "minicluster", "--file-system", "shared", "--partition", "batch")


class Compare:
    """``iogauge compare default SECOND`` with a home of its own."""

    def __init__(self, minicluster, home: Path, kernels: Path, arm: str) -> None:
        self.home, self.arm = home, arm
        built = home / hdf5_arms.ARMS / arms.BUILT
        built.parent.mkdir(parents=True)
        built.symlink_to((nightly.home() / hdf5_arms.ARMS / arms.BUILT).resolve())
        self.environment = {
            **os.environ,
            **minicluster.environment(),
            "IOGAUGE_HOME": str(home),
            "IOGAUGE_KERNELS": str(kernels),
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [
            str(Path(sys.executable).parent / "iogauge"),
            "compare",
            "default",
            self.arm,
            *WHERE,
            *arguments,
        ]
        pipe = subprocess.PIPE
        return subprocess.Popen([*command, "--json"], env=self.environment, stdout=pipe, stderr=pipe, text=True)

    def finish(self, process: subprocess.Popen[str], codes: set[int]) -> Comparison:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode in codes, out + err
        (fields,) = json.loads(out)
        comparison = Comparison.model_validate(fields)
        assert process.returncode == comparison.exit_code
        return comparison

    def said(self, words: str) -> bool:
        return any(words in out.read_text() for out in self.home.glob("compare/**/rfm_job.out"))

    def slurm(self, *command: str) -> str:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def compare(minicluster, tmp_path: Path, kernels: Path, second_hdf5: str) -> Iterator[Compare]:
    yield Compare(minicluster, tmp_path / "home", kernels, second_hdf5)
    minicluster.output("heal")


def test_cancelled_it_gives_no_verdict_and_goes_on_on_other_nodes(compare: Compare, minicluster) -> None:
    asked = ("--only", "file-per-process", "--repeats", "1", "--point", "2x1", "--time-limit", "5m", "--margin", "1%")
    process = compare.start(*asked)
    wait_until(lambda: compare.said("pair 2"))
    compare.slurm("scancel", "--me")
    cancelled = compare.finish(process, {2})
    assert (cancelled.stopped, cancelled.placement) == ("interrupted", "2 ranks on 2 cores of 2 hosts")
    assert cancelled.problem == "the job was ended before its time: it was cancelled"
    assert {result.observed.finding for result in cancelled.results} == {"undecided"}
    assert data_files(minicluster) == []
    left, *_ = cancelled.hosts
    compare.slurm("scontrol", "update", f"nodename={left}", "state=drain", "reason=test")
    comparison = compare.finish(compare.start("--resume", "latest", "--time-limit", "4s"), {0, 1, 2})
    assert comparison.seed == cancelled.seed
    assert comparison.stopped in ("time", "decided")
    assert len(comparison.hosts) == 3
    assert len(comparison.results[0].first) > len(cancelled.results[0].first)
    assert compare.slurm("squeue", "--noheader") == ""
    assert list(minicluster.shared.iterdir()) == []
