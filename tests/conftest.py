"""What the tests share: the kernels built once, a launcher that works here, and records to work on."""

from __future__ import annotations

import copy
import gc
import json
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from filelock import FileLock

from iogauge import hdf5_arms, nightly
from iogauge.history.database import History

CHECKOUT = Path(__file__).resolve().parents[1]

#: Root may start Open MPI; containers forbid its copy between processes; and many run at once here: ranks that wait let others
#: run, on any core. Other MPI libraries ignore these.
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


#: Files that take minutes, the longest first.
LONG = (
    "test_demo.py",
    "test_nightly.py",
    "test_reframe_checks.py",
    "test_golden.py",
    "test_fingerprint.py",
    "test_particles.py",
    "test_formats.py",
    "test_scripts.py",
    "test_preflight.py",
    "test_site_check.py",
    "test_arms.py",
    "test_upgrade.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several files are tested at a time, none of the long ones begins when the others are done."""
    order = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.name, len(LONG)))


def pytest_collection_finish() -> None:
    """What was imported and collected stays: who asks for garbage to be collected, as kernels/formats does before it measures,
    need not wait until all of it has been looked through."""
    gc.freeze()


#: So long is waited for what has to happen, many times longer than it takes: no machine is too busy, and a failure still ends.
PATIENCE_SECONDS = 300


def wait_until(happened: Callable[[], object]) -> None:
    """Fails when it does not."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


#: Kept between runs: all that test at a time, and the next ones, share what was built before.
BUILDS = Path(os.environ.get("IOGAUGE_HOME") or CHECKOUT / ".iogauge") / "test-build"


def build(source: Path, name: str, *options: str) -> Path:
    """The folder where ``source`` is built with the compiler wrapper and HDF5 that the machine offers first."""
    folder = BUILDS / name
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(BUILDS / f"{name}.lock"):
        for command in (
            ["cmake", "-S", str(source), "-B", str(folder), "-DCMAKE_C_COMPILER=mpicc", *options],
            ["cmake", "--build", str(folder), "--parallel", "2"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def kernels() -> Path:
    """The folder of the kernels."""
    return build(CHECKOUT / "kernels", "pytest-kernels", "-DBUILD_TESTING=OFF")


@pytest.fixture(scope="session")
def faults() -> Path:
    """The preloadable defects, built against the HDF5 that the kernels use."""
    return build(CHECKOUT / "tests" / "faults", "pytest-faults") / "libfaults.so"


def data_left(runs: Path) -> list[Path]:
    """The case folders of the runs below ``runs`` that are still there; others' may be beside them."""
    named = [Path(file.read_text().splitlines()[0]) for file in runs.rglob("case_folder.txt")]
    assert named, f"no case made a folder below {runs}"
    return [path for path in named if path.exists()]


class Minicluster:
    """scripts/minicluster with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shared = folder / "fs" / "shared"
        self.small = folder / "fs" / "small"
        self.node_disk = folder / "fs" / "node"

    def __call__(self, command: str, *arguments: str | Path, timeout: float = 120, **kwargs: Any) -> Any:
        """``scripts/minicluster COMMAND ARGUMENTS``; returns the completed process with its output as text."""
        return subprocess.run(
            [*self.argv(command), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            **kwargs,
        )

    def argv(self, command: str) -> list[str]:
        return [str(CHECKOUT / "scripts" / "minicluster"), command, "--folder", str(self.folder)]

    def output(self, command: str, *arguments: str | Path, **kwargs: Any) -> str:
        """The same; it has to end well, and what it printed is returned."""
        done = self(command, *arguments, **kwargs)
        assert done.returncode == 0, f"{command} {arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def environment(self) -> dict[str, str]:
        """What site configurations read: SLURM_CONF, the paths of the file systems and more."""
        lines = (self.folder / "minicluster.env").read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture(scope="session")
def minicluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    """A Slurm with four nodes, up for the whole session; a test that leaves a fault in it has to heal it."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for a Slurm with several nodes on this machine")
    cluster = Minicluster(tmp_path_factory.mktemp("minicluster"))
    try:
        started = cluster("start", timeout=900)
        if started.returncode == 2:
            pytest.skip(f"no mini-cluster here: {started.stderr.strip().splitlines()[-1]}")
        assert started.returncode == 0, started.stderr
        yield cluster
    finally:
        stopped = cluster("stop")
        assert stopped.returncode == 0, stopped.stderr


def run_mpi(ranks: int, *command: str | Path, launcher: str = "mpirun", **kwargs: Any) -> Any:
    """Run under MPI; returns the completed process with its output as text."""
    environment = {**os.environ, **MPI_ENVIRONMENT, **kwargs.pop("env", {})}
    return subprocess.run(
        [*launcher.split(), "-np", str(ranks), *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        timeout=kwargs.pop("timeout", PATIENCE_SECONDS),
        env=environment,
        **kwargs,
    )


@pytest.fixture
def record() -> dict[str, Any]:
    """A true record of a write on two ranks of one host, three repeats; a copy for each test."""
    return copy.deepcopy(_WRITE)


@pytest.fixture
def read_record(record: dict[str, Any]) -> dict[str, Any]:
    """The read that belongs to it."""
    record["operation"] = "read"
    record["read_shift"] = {"ranks": 1, "other_rank_fraction": 1.0, "other_host_fraction": 0.0}
    for repeat in record["repeats"]:
        repeat |= {"cached_fraction_before_drop": 1.0, "cached_fraction": 0.0, "flush_seconds": 0.0}
        repeat["total_seconds"] = repeat["open_seconds"] + repeat["transfer_seconds"] + repeat["close_seconds"]
    return record


def as_lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")
needs_mpich = pytest.mark.skipif(shutil.which("mpicc.mpich") is None, reason="needs MPICH beside Open MPI: mpicc.mpich")

_BYTES = 64 << 20
_WRITE: dict[str, Any] = {
    "schema": "iogauge.measurement/1",
    "sweep": None,
    "benchmark": "particles",
    "operation": "write",
    "interface": "hdf5",
    "role": "main",
    "differs": {},
    "collective": False,
    "pattern": {
        "locality": "CC",
        "dimensions": 1,
        "shape": [524288],
        "particles": 524288,
        "steps": 2,
        "compute_seconds": 0.0,
        "selection": "full",
        "fraction": 1.0,
        "stride": 0,
        "block": 0,
        "chunk": 0,
        "file_per_process": False,
        "collective_metadata": False,
        "alignment_bytes": 4096,
        "fsync": True,
    },
    "logical_bytes": _BYTES,
    "operations": 0,
    "file_bytes": _BYTES + 8192,
    "ranks": 2,
    "hosts": {"n1": [0, 1]},
    "read_shift": None,
    "seed": 1,
    "started": "2026-11-21T04:40:00Z",
    "repeats": [
        {
            "open_seconds": 0.01,
            "transfer_seconds": transfer,
            "flush_seconds": 0.1,
            "close_seconds": 0.01,
            "total_seconds": transfer + 0.12,
            "prepare_seconds": 0.02,
            "least": {
                "open_seconds": 0.01,
                "transfer_seconds": transfer,
                "flush_seconds": 0.1,
                "close_seconds": 0.01,
                "total_seconds": transfer + 0.12,
            },
            "verified_bytes": _BYTES,
            "verified_operations": 0,
            "mismatches": 0,
            "cached_fraction_before_drop": None,
            "cached_fraction": None,
        }
        for transfer in (0.52, 0.5, 0.58)
    ],
    "placement": [
        {"rank": 0, "host": "n1", "pid": 100, "cpus": [0], "cores": [0]},
        {"rank": 1, "host": "n1", "pid": 101, "cpus": [1], "cores": [1]},
    ],
    "software": {"hdf5": "1.10.8", "mpi": "Open MPI v4.1.4", "suite": "0.1.0", "kernels": "abc", "compiler": "GNU 12"},
}


# --- histories in the two databases -----------------------------------------------------------------------------------


def _server_programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return None if initdb is None else Path(initdb).resolve().parent


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL (without a database's name) of a PostgreSQL of our own, on a socket in a temporary folder."""
    programs = _server_programs()
    if programs is None:
        pytest.skip("needs PostgreSQL's server: initdb is missing")
    pytest.importorskip("psycopg", reason="needs psycopg, the driver of PostgreSQL")
    user = None if os.geteuid() else next((n for n in ("postgres", "nobody") if n in _users()), "")
    if user == "":
        pytest.skip("needs a user other than root: PostgreSQL does not run as root")
    folder = Path(tempfile.mkdtemp(prefix="iogauge-pg-", dir=in_memory()))
    if user:
        shutil.chown(folder, user)

    def run(*command: str | Path) -> None:
        done = subprocess.run([*map(str, command)], user=user, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    data = folder / "data"
    try:
        run(programs / "initdb", "-D", data, "-A", "trust", "-U", "iogauge", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-k {folder} -c listen_addresses= -c fsync=off -c full_page_writes=off"
        run(programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        yield f"postgresql://iogauge@/{{}}?host={folder}"
    finally:
        if (data / "postmaster.pid").exists():
            run(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder)


def in_memory() -> Path | None:
    """Where files are no load for the disk; None: the usual folder for temporary ones."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else None


def _users() -> set[str]:
    return {entry.pw_name for entry in pwd.getpwall()}


@pytest.fixture(scope="session")
def empty_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history in SQLite with all tables and nothing in them, to be copied: migrating takes longer than most tests."""
    path = tmp_path_factory.mktemp("history") / "history.sqlite"
    History(str(path)).upgrade()
    return path


@pytest.fixture(scope="session")
def new_database(postgresql: str) -> Iterator[Callable[[], str]]:
    """Makes a database with the tables of a history, and gives its URL."""
    url = sa.make_url(postgresql.format("postgres")).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE DATABASE migrated"))
        History(postgresql.format("migrated")).upgrade()

        def made() -> str:
            name = f"h{os.urandom(6).hex()}"
            connection.execute(sa.text(f"CREATE DATABASE {name} TEMPLATE migrated"))
            return postgresql.format(name)

        yield made
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where a history is, with all tables: tests with it run on both."""
    if request.param == "postgresql":
        yield request.getfixturevalue("new_database")()
        return
    with tempfile.TemporaryDirectory(prefix="iogauge-history-", dir=in_memory()) as folder:
        yield str(shutil.copy(request.getfixturevalue("empty_history"), folder))


@pytest.fixture
def history(location: str) -> History:
    return History(location)


@pytest.fixture
def second_hdf5() -> str:
    """The prefix of one of scripts/hdf5-arms with another HDF5 than the packages'; waited for where scripts/test makes it."""
    folder = BUILDS / "arms"
    if folder.is_dir():
        with FileLock(folder / "lock", timeout=2 * PATIENCE_SECONDS):  # who builds one holds it
            pass
    made = [*hdf5_arms.installed(folder), *hdf5_arms.installed(nightly.home() / hdf5_arms.ARMS)]
    found = [str(arm.prefix) for arm in made if arm.mpi == "openmpi" and not arm.hdf5.startswith("1.10.")]
    if not found:
        pytest.skip("needs a second HDF5: scripts/hdf5-arms --hdf5 1.14 --mpi openmpi makes one")
    return found[0]
