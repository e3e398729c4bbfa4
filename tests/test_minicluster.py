"""The mini-cluster is a real Slurm: what sites have works on it, its faults are real, and nothing of it stays behind."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import CHECKOUT, MPI_ENVIRONMENT, PATIENCE_SECONDS, Minicluster

pytestmark = pytest.mark.cluster

HELLO = """
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int rank, ranks;
    char host[256];
    cpu_set_t cpus;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    gethostname(host, sizeof host);
    sched_getaffinity(0, sizeof cpus, &cpus);
    printf("rank %d of %d on %s:", rank, ranks, host);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus))
            printf(" %d", cpu);
    puts("");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for namespaces and mounts")


def wait_for(what: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture
def healed(minicluster: Minicluster) -> Iterator[Minicluster]:
    """The cluster, put right again and without jobs after a test that does it harm."""
    yield minicluster
    minicluster.output("heal")
    minicluster.output("run", "scancel", "--user=root")
    assert wait_for(lambda: minicluster.output("run", "squeue", "--noheader") == "")


@pytest.fixture(scope="module")
def hello(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program for each MPI that tells its rank, the size of the world, its host and its CPUs."""
    folder = tmp_path_factory.mktemp("hello")
    (folder / "hello.c").write_text(HELLO, encoding="utf-8")
    for mpi in ("openmpi", "mpich"):
        subprocess.run([f"mpicc.{mpi}", folder / "hello.c", "-o", folder / mpi], check=True)
    return folder


def submit(cluster: Minicluster, folder: Path, script: str, *options: str) -> str:
    """Submit a batch script that prints into FOLDER/output.txt; returns its id."""
    (folder / "job.sh").write_text("#!/bin/bash\n" + textwrap.dedent(script), encoding="utf-8")
    output = ["--output", str(folder / "output.txt"), "--time", "2", *options]
    return cluster.output("run", "sbatch", "--parsable", *output, folder / "job.sh").strip()


def state(cluster: Minicluster, job: str) -> str:
    return cluster.output("run", "squeue", "--noheader", "--format=%T", "--states=all", f"--jobs={job}").strip()


def finish(cluster: Minicluster, job: str) -> str:
    """The state in which a job ended."""
    ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
    assert wait_for(lambda: state(cluster, job) in ended), state(cluster, job)
    return state(cluster, job)


def worlds(text: str) -> list[tuple[int, int, str, tuple[int, ...]]]:
    """Rank, size of its world, host and CPUs, by rank."""
    found = re.findall(r"rank (\d+) of (\d+) on (\S+):((?: \d+)+)", text)
    return sorted((int(r), int(n), host, tuple(map(int, cpus.split()))) for r, n, host, cpus in found)


def assert_one_world(text: str, nodes: int, ranks_per_node: int) -> None:
    """All ranks are of one world, as many on each host as asked for, each bound to a CPU of its own there."""
    found = worlds(text)
    ranks = nodes * ranks_per_node
    assert [rank for rank, *_ in found] == list(range(ranks)), text
    assert {size for _, size, *_ in found} == {ranks}, text
    hosts = {host for _, _, host, _ in found}
    assert len(hosts) == nodes, text
    for host in hosts:
        cpus = [cpus for _, _, on, cpus in found if on == host]
        assert len(cpus) == ranks_per_node, text
        assert all(len(own) == 1 for own in cpus), text
        assert len(set(cpus)) == ranks_per_node, text


# What a site has


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 2), (2, 1), (4, 2)])
@pytest.mark.parametrize(("mpi", "interface"), [("openmpi", "pmix"), ("mpich", "pmi2")])
def test_srun_starts_one_world_over_the_nodes_with_each_rank_bound(
    minicluster, hello, mpi, interface, nodes, ranks_per_node
):
    if ranks_per_node > int(minicluster.environment()["MINICLUSTER_CPUS"]):
        pytest.skip("needs two cores")
    said = minicluster.output(
        "run", "srun", f"--mpi={interface}", f"--nodes={nodes}", f"--ntasks-per-node={ranks_per_node}", hello / mpi
    )
    assert_one_world(said, nodes, ranks_per_node)


def test_more_ranks_than_cores_start_when_they_may_share(minicluster, hello):
    said = minicluster.output(
        "run", "srun", "--mpi=pmix", "--overcommit", "--nodes=1", "--ntasks=4", hello / "openmpi",
        env={**os.environ, "OMPI_MCA_mpi_yield_when_idle": "1"},
    )  # fmt: skip
    assert [size for _, size, _, _ in worlds(said)] == [4] * 4
    assert len({host for _, _, host, _ in worlds(said)}) == 1


def test_the_nodes_are_hosts_with_names_networks_and_disks_of_their_own(minicluster):
    own = minicluster.node_disk / "own"
    for node in ("n1", "n2"):
        assert minicluster.output("shell", node, "hostname") == f"{node}\n"
        minicluster.output("shell", node, "bash", "-c", f"hostname >{own}; mountpoint -q {own.parent}")
    assert [minicluster.output("shell", node, "cat", own) for node in ("n1", "n2")] == ["n1\n", "n2\n"]
    assert not own.exists()
    networks = {minicluster.output("shell", node, "readlink", "/proc/self/ns/net") for node in ("n1", "n2", "control")}
    assert len(networks) == 3
    minicluster.output("shell", "n1", "bash", "-c", ": >/dev/tcp/n2/6818")  # slurmd of the other one answers
    minicluster.output("shell", "n1", "rm", own)
    minicluster.output("shell", "n2", "rm", own)


def test_the_shared_file_systems_are_at_the_same_path_everywhere_and_are_mounts(minicluster):
    for path in (minicluster.shared, minicluster.small):
        assert os.path.ismount(path)
        (path / "from login").write_text("login\n")
        for node in ("n1", "n4"):
            said = minicluster.output("shell", node, "bash", "-c", f"mountpoint -q {path} && cat '{path}/from login'")
            assert said == "login\n"
        minicluster.output("shell", "n3", "rm", path / "from login")
        assert list(path.iterdir()) == []
    size = os.statvfs(minicluster.small)
    assert size.f_blocks * size.f_frsize < 128 << 20


@pytest.mark.parametrize("kind", ["as found", "folder"])
def test_beeond_is_an_option_and_names_a_file_system_of_the_jobs_nodes_in_every_step(
    minicluster, hello, tmp_path, kind
):
    """Tried twice: with what the cluster found (GlusterFS where it is), and with the folder that stands in for it."""
    settings = minicluster.folder / "etc" / "settings"
    found = settings.read_text()
    if kind == "folder":
        settings.write_text(re.sub("cluster_beeond=.*", "cluster_beeond=folder", found))
    root_may = " ".join(f"{name}={value}" for name, value in MPI_ENVIRONMENT.items())
    try:
        job = submit(
            minicluster,
            tmp_path,
            f"""\
            #SBATCH --beeond
            #SBATCH --nodes=2
            #SBATCH --ntasks-per-node=1
            echo "batch $BEEOND $(stat -f -c %T "$BEEOND")"
            srun --mpi=none bash -c 'mountpoint -q "$BEEOND" && hostname >"$BEEOND/$(hostname)"; echo "step $BEEOND"'
            echo "files $(cd "$BEEOND" && echo *)"
            {root_may} mpirun -np 2 bash -c 'echo "mpirun $BEEOND"'
            srun --mpi=none bash -c 'echo "together $(cat "$BEEOND"/* | sort | xargs)"'
            ls {minicluster.folder}/disks/*/ >{tmp_path}/disks.txt
            """,
        )
        assert finish(minicluster, job) == "COMPLETED"
    finally:
        settings.write_text(found)
    path = minicluster.folder / "fs" / "beeond" / job
    said = (tmp_path / "output.txt").read_text()
    assert f"batch {path} " in said
    assert said.count(f"step {path}\n") == 2
    assert said.count(f"mpirun {path}\n") == 2
    assert "files n1 n2\n" in said
    assert said.count("together n1 n2\n") == 2
    assert f"beeond-{job}" in (tmp_path / "disks.txt").read_text()
    # The job is over when its epilogs are.
    assert wait_for(lambda: not path.exists())
    assert not list((minicluster.folder / "disks").glob(f"**/beeond-{job}"))


def test_without_the_option_no_file_system_is_made_and_beeond_is_not_set(minicluster):
    said = minicluster.output("run", "srun", "bash", "-c", 'echo "<${BEEOND-unset}>"')
    assert said == "<unset>\n"
    assert list((minicluster.folder / "fs" / "beeond").iterdir()) == []


CHECK = """
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Hello(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "{hello}"
    num_tasks = 4
    num_tasks_per_node = 2
    time_limit = "1m"

    @sanity_function
    def is_one_world(self):
        return sn.assert_eq(sn.count(sn.findall(r"of 4 on n", self.stdout)), 4)
"""

SITE = """
site_configuration = {{
    "systems": [{{
        "name": "minicluster", "hostnames": [".*"],
        "partitions": [
            {{"name": "srun", "scheduler": "slurm", "launcher": "srun", "access": ["-p batch"], "environs": ["any"]}},
            {{"name": "mpirun", "scheduler": "squeue", "launcher": "mpirun", "access": ["-p whole"], "environs": ["any"],
              "env_vars": {variables}}},
        ],
    }}],
    "environments": [{{"name": "any", "cc": "mpicc"}}],
    "general": [{{"remote_detect": False, "poll_rate_min": 10}}],
}}
"""


def test_reframe_runs_through_slurm_with_srun_and_through_squeue_with_mpirun(minicluster, hello, tmp_path):
    (tmp_path / "check.py").write_text(CHECK.format(hello=hello / "openmpi"), encoding="utf-8")
    variables = [list(pair) for pair in MPI_ENVIRONMENT.items()]
    (tmp_path / "site.py").write_text(SITE.format(variables=variables), encoding="utf-8")
    reframe = Path(sys.executable).with_name("reframe")
    done = minicluster(
        "run", reframe, "-C", tmp_path / "site.py", "-c", tmp_path / "check.py", "--prefix", tmp_path, "-r"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 2/2 test case(s)" in done.stdout


def test_run_gives_the_environment_the_arguments_and_the_exit_code(minicluster, tmp_path):
    done = minicluster("run", "bash", "-c", 'printf "%s|" "$SLURM_CONF" "$PWD" "$@"; exit 7', "-", "two words", "--help",
                       cwd=tmp_path)  # fmt: skip
    assert done.returncode == 7
    slurm_conf = minicluster.environment()["SLURM_CONF"]
    assert done.stdout == f"{slurm_conf}|{tmp_path}|two words|--help|"


def test_a_second_start_says_that_it_runs_and_doubles_nothing(minicluster):
    ids = {file: file.read_text() for file in (minicluster.folder / "run").glob("**/*.pid")}
    assert len(ids) == 8
    processes = ("shell", "control", "pgrep", "--count", "-x", "munged|mariadbd|slurmdbd|slurmctld|slurmd|sleep")
    before = minicluster.output(*processes)
    again = minicluster("start")
    assert again.returncode == 0
    assert "it already runs: 4 nodes" in again.stderr
    assert {file: file.read_text() for file in ids} == ids
    assert minicluster.output(*processes) == before
    other = minicluster("start", "--nodes", "2")
    assert other.returncode == 2
    assert "it runs with --nodes 4" in other.stderr


# Faults


WRITER = """\
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
srun --mpi=none bash -c 'while dd if=/dev/zero of={path}/data.$SLURM_PROCID bs=64K count=16 oflag=append conv=notrunc,fsync
    do sleep 0.1; done; echo "the write failed"; exit 5'
"""


def begin_writing(cluster: Minicluster, folder: Path, path: Path) -> str:
    """A job on two nodes that writes until it cannot; it writes when this returns."""
    job = submit(cluster, folder, WRITER.format(path=path))
    assert wait_for(lambda: all((path / f"data.{n}").exists() for n in (0, 1)))
    return job


def all_wait_for_the_disk(path: Path) -> bool:
    """Does each of the job's two writers wait in the kernel (state D), and not between two writes?"""
    states = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"of={path}/data." in (process / "cmdline").read_text() and (process / "comm").read_text() == "dd\n":
                states.append((process / "stat").read_text().rpartition(")")[2].split()[0])
    return states == ["D", "D"]


def remove_data(path: Path) -> None:
    for file in path.glob("data.*"):
        file.unlink()


def test_a_failing_prolog_drains_its_node_and_holds_the_job(healed, tmp_path):
    healed.output("fault", "prolog", "n2")
    job = submit(healed, tmp_path, "#SBATCH --nodelist=n2\necho it ran\n")
    assert wait_for(lambda: "launch failed requeued held" in healed.output("run", "squeue", f"--jobs={job}"))
    nodes = healed.output("run", "sinfo", "--noheader", "--Node", "--partition=batch", "--format=%N %T")
    assert "n2 drained" in nodes
    assert "n1 drain" not in nodes
    assert not (tmp_path / "output.txt").exists()
    status = healed("status")
    assert status.returncode == 1
    assert "faults: prolog-n2" in status.stdout


def test_a_lost_node_has_no_slurmd_and_no_network_until_it_is_healed(healed):
    """How long Slurm takes to notice, half a minute, is its own affair."""
    healed.output("fault", "node", "n3")
    reach = ("shell", "n1", "timeout", "1", "bash", "-c", ": >/dev/tcp/n3/6818")
    assert healed(*reach).returncode != 0
    status = healed("status")
    assert status.returncode == 1
    assert re.search(r"^n3 .*down +down$", status.stdout, re.MULTILINE)
    assert "it already runs" in healed("start").stderr  # heals as well
    healed.output(*reach)
    assert healed.output("run", "srun", "--nodelist=n3", "hostname") == "n3\n"


def test_slurmd_and_link_can_fail_alone(healed):
    healed.output("fault", "slurmd", "n3")
    healed.output("fault", "link", "n4")
    rows = re.findall(r"^(n[34]) .* (up|down) +(up|down)$", healed("status").stdout, re.MULTILINE)
    assert rows == [("n3", "down", "up"), ("n4", "up", "down")]


def test_a_full_file_system_fails_a_running_job_and_is_empty_again_after_healing(healed, tmp_path):
    job = begin_writing(healed, tmp_path, healed.small)
    healed.output("fault", "small-full")
    assert finish(healed, job) == "FAILED"
    assert "No space left on device" in (tmp_path / "output.txt").read_text()
    healed.output("heal")
    remove_data(healed.small)
    assert list(healed.small.iterdir()) == []


def test_what_is_not_mounted_is_not_filled(healed):
    subprocess.run(["umount", healed.small], check=True)
    refused = healed("fault", "small-full")
    assert refused.returncode == 2
    assert "is not mounted" in refused.stderr
    assert list(healed.small.iterdir()) == []
    assert list((healed.folder / "faults").iterdir()) == []
    healed.output("heal")
    assert os.path.ismount(healed.small)


def test_the_shared_file_system_gone_fails_a_running_job_and_comes_back_with_its_files(healed, tmp_path):
    (healed.shared / "kept").write_text("kept")
    os.sync()
    job = begin_writing(healed, tmp_path, healed.shared)
    healed.output("fault", "shared-gone")
    assert finish(healed, job) == "FAILED"
    assert "Input/output error" in (tmp_path / "output.txt").read_text()
    assert "faults: shared-gone" in healed("status").stdout
    healed.output("heal")
    assert healed.output("shell", "n2", "cat", healed.shared / "kept") == "kept"
    remove_data(healed.shared)
    (healed.shared / "kept").unlink()


def test_a_hanging_shared_file_system_holds_the_writers_even_cancelled_until_it_is_healed(healed, tmp_path):
    job = begin_writing(healed, tmp_path, healed.shared)
    healed.output("fault", "shared-hangs")
    assert wait_for(lambda: all_wait_for_the_disk(healed.shared))
    healed.output("run", "scancel", job)
    time.sleep(4)  # KillWait is 3 s
    assert state(healed, job) == "COMPLETING"
    healed.output("heal")
    assert finish(healed, job) == "CANCELLED"
    remove_data(healed.shared)


def test_a_job_outlives_a_restart_of_the_controller_and_is_accounted(healed, tmp_path):
    job = submit(healed, tmp_path, f"touch {tmp_path}/runs; sleep 3; echo done")
    assert wait_for(lambda: (tmp_path / "runs").exists())
    before = (healed.folder / "run" / "slurmctld.pid").read_text()
    healed.output("fault", "controller-restart")
    assert list((healed.folder / "faults").iterdir()) == []
    assert (healed.folder / "run" / "slurmctld.pid").read_text() != before
    assert finish(healed, job) == "COMPLETED"
    accounted = ("run", "sacct", "--noheader", "--parsable2", "-X", "--format=state", f"--jobs={job}")
    assert wait_for(lambda: healed.output(*accounted) == "COMPLETED\n")


def test_killed_daemons_are_started_again(healed):
    healed.output("fault", "controller")
    ids = healed.folder / "run"
    for daemon in ("munged", "mariadbd", "slurmdbd", "n1/slurmd"):
        healed.output("shell", "control", "bash", "-c", f"kill -KILL $(cat {ids / daemon}.pid)")
    status = healed("status")
    assert status.returncode == 1
    assert len(re.findall(r"^(munged|mariadbd|slurmdbd|slurmctld) +down$", status.stdout, re.MULTILINE)) == 4
    assert healed("start").returncode == 0
    assert healed.output("run", "srun", "--nodelist=n1", "hostname") == "n1\n"
    assert healed.output("status")


# Starting and stopping


def left_of(cluster: Minicluster) -> list[str]:
    """Processes, mounts, loop devices, network links and files of the cluster.

    A process is the cluster's when a mount of the cluster's is in its namespace, or its folder among its arguments.
    """
    folder = str(cluster.folder)
    found = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if folder in line]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            of_it = [name for name in ("mountinfo", "cmdline") if folder.encode() in (process / name).read_bytes()]
        except OSError:
            continue  # it has ended
        found += [f"process {process.name} by its {name}" for name in of_it]
    devices = Path("/sys/block").glob("loop*/loop/backing_file")
    found += [str(device) for device in devices if device.read_text().startswith(folder)]
    link = "igmc" + hashlib.sha256(folder.encode()).hexdigest()[:8]
    found += [path.name for path in Path("/sys/class/net").iterdir() if path.name == link]
    return found + [path.name for path in cluster.folder.iterdir() if path.name not in ("log", ".iogauge-minicluster")]


def wait_until_nothing_is_left_of(cluster: Minicluster) -> None:
    """A process that was killed outside the cluster, such as what a start was just running, ends a moment later."""
    wait_for(lambda: not left_of(cluster))
    assert left_of(cluster) == []


@pytest.fixture
def another(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    """A second cluster, not started; its packages are there."""
    cluster = Minicluster(tmp_path_factory.mktemp("another"))
    yield cluster
    cluster("stop")


def kill_start(cluster: Minicluster, reached: str) -> None:
    """Start it with two nodes, and kill the start as soon as a file is there."""
    start = subprocess.Popen([*cluster.argv("start"), "--nodes", "2"], stderr=subprocess.DEVNULL)
    assert wait_for((cluster.folder / reached).exists)
    start.kill()
    start.wait()


def test_a_start_after_a_killed_one_is_whole_and_runs_beside_another_cluster_until_its_stop(minicluster, another):
    kill_start(another, "run/n1")
    another.output("start", "--nodes", "1", "--cpus", "1", "--beeond", "folder")
    assert another.output("run", "srun", "hostname") == "n1\n"
    assert another.environment()["MINICLUSTER_BEEOND"] == "folder"
    another.output("run", "sbatch", "--wrap", f"sleep 100 >{another.shared}/open")  # is ended
    another.output("stop")
    wait_until_nothing_is_left_of(another)
    assert minicluster.output("status")
    assert another("status").returncode == 1
    refused = another("run", "true")
    assert refused.returncode == 2
    assert "it does not run" in refused.stderr


def test_a_cluster_whose_folder_was_removed_is_stopped_all_the_same(another):
    another.output("start", "--nodes", "1", "--beeond", "folder")
    moved = another.folder.with_name("moved")
    subprocess.run(["umount", "--lazy", "--recursive", another.folder / "fs"], check=True)
    another.folder.rename(moved)
    another.output("stop")
    assert not another.folder.exists()
    moved.rename(another.folder)
    another.output("stop")
    wait_until_nothing_is_left_of(another)


@pytest.mark.parametrize("reached", ["disks/shared", "run/n2", "run/slurmctld.pid"])
def test_nothing_is_left_by_a_start_that_was_killed(another, reached):
    kill_start(another, reached)
    assert another("status").returncode == 1
    another.output("stop")
    wait_until_nothing_is_left_of(another)


def test_a_start_that_is_interrupted_leaves_nothing_and_says_so(another):
    start = subprocess.Popen([*another.argv("start"), "--nodes", "1"], stderr=subprocess.PIPE, text=True)
    assert wait_for((another.folder / "database").exists)
    start.terminate()
    _, said = start.communicate(timeout=PATIENCE_SECONDS)
    assert start.returncode == 143
    assert "nothing of it is left" in said
    wait_until_nothing_is_left_of(another)


# Where it cannot work


def minicluster_without(rights: list[str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    setpriv = shutil.which("setpriv")
    assert setpriv
    return subprocess.run(
        [setpriv, *rights, str(CHECKOUT / "scripts" / "minicluster"), *arguments, "--folder", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, "IOGAUGE_NO_INSTALL": "1"},
    )


@needs_root
def test_without_root_it_says_so(tmp_path):
    refused = minicluster_without(["--reuid=65534", "--clear-groups"], tmp_path / "new", "start")
    assert refused.returncode == 2
    assert "needs root" in refused.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("right", "missing"), [("sys_admin", "namespaces (mount, UTS, network, process)"), ("net_admin", "network bridges")]
)
def test_where_namespaces_or_networks_are_not_permitted_it_says_so_and_leaves_nothing(
    minicluster, another, right, missing
):
    refused = minicluster_without([f"--bounding-set=-{right}"], another.folder, "start")
    assert refused.returncode == 2
    assert f"error: {missing}" in refused.stderr
    wait_until_nothing_is_left_of(another)


@needs_root
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["begin"], "'begin' is no command"),
        (["start", "--nodes", "0"], "--nodes 0: a number from 1 to 64 is allowed"),
        (["start", "--cpus", "9999"], "--cpus 9999: a number from 1 to "),
        (["start", "--beeond", "lustre"], "--beeond lustre: gluster or folder is allowed"),
        (["start", "--node", "2"], "--node: no such option"),
        (["start", "2"], "start: 2: takes no such argument"),
        (["start", "--folder"], "--folder: a value is missing"),
        (["start", "--folder", "/tmp/a b"], "only letters, digits and /._+- are allowed"),
        (["start", "--folder", "/tmp/" + "a" * 80], "85 characters are too many"),
        (["start", "--folder", "/usr"], "/usr: it exists and is no mini-cluster's"),
        (["stop", "--nodes", "2"], "--nodes: only for start"),
        (["run", "--folder", "/tmp/nothing-there", "true"], "it does not run in /tmp/nothing-there"),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_allowed(arguments, said):
    done = subprocess.run(
        [CHECKOUT / "scripts" / "minicluster", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fault", "fire"], "'fire' is none; there are: prolog"),
        (["fault", "link", "n9"], "'n9' is no node; there are n1 to n4"),
        (["fault", "link"], "'' is no node; there are n1 to n4"),
        (["fault", "controller", "n1"], "it concerns no single node"),
        (["shell", "login"], "'login' is no node"),
        (["run"], "a command is missing"),
    ],
)
def test_a_wrong_node_or_fault_is_named_with_those_that_there_are(minicluster, arguments, said):
    done = minicluster(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert list((minicluster.folder / "faults").iterdir()) == []


def test_help_has_examples_and_exit_codes_and_needs_no_root():
    done = subprocess.run([CHECKOUT / "scripts" / "minicluster", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "\n  scripts/minicluster start\n" in done.stdout.partition("examples:")[2]
    assert "exit codes: 0" in done.stdout
