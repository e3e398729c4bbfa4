"""``iogauge site check`` says what is there of a site's configuration and what is not, by its exit code too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import CHECKOUT, needs_mpich
from test_reframe_checks import copy_of_site, needs_two_cores, use_built_kernels

from iogauge import nightly, site_check
from iogauge.site_check import Finding

CONFIGURATION = """\
site_configuration = {{
    "systems": [
        {{
            "name": "x",
            "hostnames": ["{hostnames}"],
            "modules_system": "nomod",
            "partitions": [
                {{
                    "name": "batch",
                    "scheduler": "{scheduler}",
                    "launcher": "{launcher}",
                    "environs": ["gnu"],
                    "extras": {{"file_systems": {file_systems}, "nodes": [1, 2], "ranks_per_node": [4]}},
                }}
            ],
        }}
    ],
    "environments": [
        {{"name": "gnu", "cc": "no-such-mpicc", "modules": {modules}, "target_systems": ["x"]}},
        {{"name": "gnu", "cc": "never-meant", "target_systems": ["y"]}},
    ],
}}
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only programs in PATH."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("bash", "df"):
        (folder / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def stand_in(tools: Path, name: str, body: str = "") -> None:
    (tools / name).write_text(f"#!/bin/bash\n{body}\n")
    (tools / name).chmod(0o755)


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Check a configuration; findings by subject. The suite is listed by nobody here: see the last tests."""
    monkeypatch.setattr(nightly, "checkout", lambda: tmp_path)
    monkeypatch.setattr(site_check, "_bands", lambda site, sites: [])
    (tmp_path / "reference_values").mkdir()
    shutil.copy(CHECKOUT / "reference_values" / "portable.yaml", tmp_path / "reference_values")
    (tmp_path / "site_configs").mkdir()

    def check(file_systems: dict[str, Any], **changes: Any) -> dict[str, Finding]:
        words = {"hostnames": ".*", "scheduler": "slurm", "launcher": "srun", "modules": [], **changes}
        text = CONFIGURATION.format(file_systems=file_systems, **words)
        (tmp_path / "site_configs" / "x.py").write_text(text)
        found = site_check.check("x", submit=False, progress=nightly.Progress())
        return {finding.subject: finding for finding in found}

    return check


DISK = {"disk": {"type": "other", "path": "/tmp"}}


def test_programs_of_scheduler_and_launcher_are_found_or_named(look, tools):
    for name in ("sbatch", "sacct", "squeue", "scancel"):
        stand_in(tools, name)
    found = look(DISK)
    assert (found["scheduler slurm"].level, found["launcher srun"].level) == ("ok", "problem")
    assert str(tools / "sbatch") in found["scheduler slurm"].found
    assert found["launcher srun"].found == "not in PATH: srun"
    assert found["environment gnu"].found == "not in PATH: no-such-mpicc"
    (tools / "sacct").unlink()
    assert look(DISK)["scheduler slurm"].found == "not in PATH: sacct"
    assert look(DISK, scheduler="lsf")["scheduler lsf"].found == "not in PATH: bsub, bjobs, bkill"


def test_what_modules_bring_along_is_no_problem_before_they_are_loaded(look, tools):
    found = look(DISK, launcher="mpiexec", modules=["openmpi/4.1"])
    for subject in ("launcher mpiexec", "environment gnu"):
        assert found[subject].level == "ok"
        assert "not seen before the modules are loaded (openmpi/4.1)" in found[subject].found
    assert look(DISK, modules=["openmpi/4.1"])["launcher srun"].level == "problem", "srun comes with Slurm"


def test_a_machine_that_is_not_the_sites_is_a_problem(look):
    found = look(DISK, hostnames="login[0-9]+[.]nowhere")["this machine"]
    assert found.level == "problem"
    assert "is not one of the site's" in found.found


def test_file_systems_are_looked_at_or_left_to_a_job(look, tools, monkeypatch):
    monkeypatch.delenv("BEEOND", raising=False)
    found = look(
        {
            "disk": {"type": "other", "path": "/tmp"},
            "beeond": {"type": "beeond", "path": "$BEEOND"},
            "node": {"type": "local", "path": "/tmp"},
            "work": {"type": "lustre", "path": "/tmp", "quota": "lfs quota /tmp"},
            "home": {"type": "nfs", "path": "/no/such"},
        }
    )
    assert found["file system disk"].level == "ok"
    assert " GiB free" in found["file system disk"].found
    assert (found["file system beeond"].level, found["file system node"].level) == ("ok", "ok")
    assert "can only be told in a job" in found["file system beeond"].found
    assert (found["file system work"].level, found["file system home"].level) == ("warning", "warning")
    assert "not as lustre" in found["file system work"].found
    assert found["quota of work"].level == "problem"
    assert "command not found" in found["quota of work"].found
    assert found["quota of home"].level == "warning"
    assert "quota of disk" not in found


def test_the_quota_is_told_as_its_tool_tells_it(look, tools):
    """``beegfs-ctl`` is a stand-in."""
    stand_in(
        tools, "beegfs-ctl", "printf '%s\\n' name,id,size,hard,files,hard alice,1,1073741824,3221225472,5,unlimited"
    )
    disk = {**DISK["disk"], "quota": "beegfs-ctl --getquota --uid alice --csv"}
    assert look({"disk": disk})["quota of disk"].found == "alice: 2.0 GiB left of 3.0 GiB"


def test_where_jobs_run_here_a_file_system_that_is_not_there_is_a_problem(look):
    found = look({"disk": {"type": "memory", "path": "$NOT_SET"}}, scheduler="local", launcher="local")
    assert found["file system disk"].level == "problem"
    assert found["scheduler local"].found == found["launcher local"].found == "needs no program"


def test_darshan_is_found_by_its_library_and_its_parser(look, tools, monkeypatch):
    assert look(DISK)["Darshan"].level == "warning"
    stand_in(tools, "darshan-parser")
    monkeypatch.setattr("ctypes.util.find_library", lambda name: f"lib{name}.so.0")
    assert look(DISK)["Darshan"].level == "ok"


def test_only_problems_change_the_exit_code():
    findings = [Finding(partition="", subject="a", level=level, found="") for level in ("ok", "warning")]
    assert site_check.exit_code(findings) == 0
    assert site_check.exit_code([*findings, Finding(partition="", subject="b", level="problem", found="")]) == 1


# --- the command ------------------------------------------------------------------------------------------------------


def iogauge(site: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command, as a checkout's."""
    program = f"import sys; sys.argv[0] = 'iogauge'; from iogauge import nightly; from pathlib import Path; \
nightly.checkout = lambda: Path({str(site)!r}); from iogauge.cli import main; main()"
    home = {"IOGAUGE_HOME": str(site.parent / "home"), "IOGAUGE_SCRATCH": str(site.parent)}
    return subprocess.run(
        [sys.executable, "-c", program, "site", "check", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **home, **environment},
        cwd=site.parent,
    )


@pytest.mark.alone
@needs_two_cores
def test_two_ranks_run_on_each_file_system_and_what_is_wrong_is_a_problem(tmp_path, kernels):
    site = copy_of_site(tmp_path)
    use_built_kernels(site, kernels)
    config = site / "site_configs" / "local.py"
    memory = '"memory": {"type": "memory", "path": "/dev/shm"}'
    assert memory in config.read_text()
    config.write_text(config.read_text().replace(memory, memory + ', "work": {"type": "lustre", "path": "/dev/shm"}'))
    in_memory = Path("/dev/shm")
    before = set(in_memory.glob("iogauge-case.*"))
    done = iogauge(site, "--submit", "--json")
    assert done.returncode == 1, done.stderr
    found = {one["subject"]: one for one in json.loads(done.stdout)}
    for name in ("disk", "memory"):
        assert found[f"file system {name}"]["level"] == found[f"job on {name}"]["level"] == "ok"
        assert found[f"job on {name}"]["found"].startswith("2 ranks on 2 cores of 1 host; ")
        assert found[f"job on {name}"]["partition"] == "default"
        assert "series of the nightly suite have one" in found[f"bands of {name}"]["found"]
    assert "tmpfs from tmpfs on /dev/shm" in found["job on memory"]["found"]
    assert found["file system work"]["level"] == found["job on work"]["level"] == "problem"
    assert "is mounted as tmpfs, not as lustre" in found["job on work"]["found"]
    assert not (site.parent / "home" / "runs" / "site-check").exists(), "it is no night"
    assert set(in_memory.glob("iogauge-case.*")) <= before


@needs_mpich
def test_a_launcher_of_another_mpi_is_found_out(tmp_path, kernels):
    """MPICH's mpirun starts kernels that were built with Open MPI: two worlds of one rank, really."""
    site = copy_of_site(tmp_path)
    use_built_kernels(site, kernels)
    config = site / "site_configs" / "local.py"
    memory = '"memory": {"type": "memory", "path": "/dev/shm"}'
    text = config.read_text()
    disk = '"disk": {"type": "other", "path": str(scratch)},'
    assert disk in text
    assert memory in text
    config.write_text(text.replace(disk, ""))
    tools = tmp_path / "tools"
    tools.mkdir()
    stand_in(tools, "mpirun", 'exec mpirun.mpich "$@"')
    done = iogauge(site, "--submit", "--json", PATH=f"{tools}:{os.environ['PATH']}")
    assert done.returncode == 1, done.stderr
    found = {one["subject"]: one for one in json.loads(done.stdout)}
    assert found["job on memory"]["level"] == "problem"
    assert "world" in found["job on memory"]["found"] or "launcher" in found["job on memory"]["found"], found


def test_without_a_job_it_takes_seconds_and_prints_a_table(tmp_path):
    done = iogauge(copy_of_site(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["partition", "what", "found"]
    assert "0 problems" in lines[-1]
    assert "--submit runs two ranks on each file system" in lines[-1]
    assert not (tmp_path / "home" / "site-check").exists(), "nothing was submitted"
    assert not (tmp_path / "reframe.log").exists()


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('"type": "memory"', '"type": "memroy"', "file_systems.memory.type"),
        ('"nodes": [1]', '"nodes": [0]', "nodes.0"),
        ("", "", "no site configuration for 'elsewhere'"),
    ],
)
def test_a_wrong_configuration_is_told_with_exit_code_2(tmp_path, old, new, text):
    site = copy_of_site(tmp_path)
    config = site / "site_configs" / "local.py"
    config.write_text(config.read_text().replace(old, new) if old else config.read_text())
    done = iogauge(site, "local" if old else "elsewhere")
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stdout == ""
