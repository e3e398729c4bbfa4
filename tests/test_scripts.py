"""What the scripts promise of the set-up: it names what is missing, happens once, survives interruption and odd paths.

The set-up runs for real, in a small checkout of its own: the scripts and kernels of this one, an empty lock, and a package
whose command tells how it was called. Only apt-get is not tried here; that needs a bare machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE_SECONDS

CHECKOUT = Path(__file__).resolve().parents[1]

COMMAND = """
import os, sys, time

def main():
    print(sys.argv[1:], flush=True)
    while sys.argv[2:3] == ["--until"] and not os.path.exists(sys.argv[3]):
        time.sleep(0.05)
    return 7
"""

BACKEND = """
import zipfile

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = "iogauge-0.0-py3-none-any.whl"
    info = "iogauge-0.0.dist-info"
    with zipfile.ZipFile(f"{wheel_directory}/{name}", "w") as wheel:
        wheel.write("command.py", "iogauge.py")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: iogauge\\nVersion: 0.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\\niogauge = iogauge:main\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""

# What the scripts call besides the tools that they look for.
SHELL_TOOLS = "bash env cat cut dirname flock grep id mkdir readlink rm sed sha256sum sleep sort tail uname python3"


def make_checkout(folder: Path) -> Path:
    folder.mkdir(parents=True)
    shutil.copytree(CHECKOUT / "scripts", folder / "scripts")
    shutil.copytree(CHECKOUT / "kernels", folder / "kernels")
    (folder / "requirements.lock").write_text("# nothing is needed\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (folder / "command.py").write_text(COMMAND, encoding="utf-8")
    (folder / "backend.py").write_text(BACKEND, encoding="utf-8")
    return folder


def run(
    script: Path, *arguments: str, as_nobody: bool = False, **variables: str | None
) -> subprocess.CompletedProcess[str]:
    """Run a script without what belongs to this test run; a variable given as None is unset. It never installs."""
    changes: dict[str, str | None] = {
        "IOGAUGE_NO_INSTALL": "1",
        "IOGAUGE_HOME": None,
        "IOGAUGE_SCRATCH": None,
        **variables,
    }
    environment = {key: value for key, value in {**os.environ, **changes}.items() if value is not None}
    user = (
        [str(shutil.which("setpriv")), "--reuid", "65534", "--clear-groups", "--no-new-privs"]
        if as_nobody and os.geteuid() == 0
        else []
    )
    return subprocess.run(
        [*user, str(script), *arguments],
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that any user can read, below no folder of pytest's, which only its owner can."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout that has been set up: below a path with a blank, through a link, in a shell with settings of its own."""
    folder = tmp_path_factory.mktemp("ready")
    checkout = make_checkout(folder / "first night" / "iogauge")
    broken = folder / "shell"
    broken.mkdir()
    (broken / "venv.py").write_text("raise SystemExit('the PYTHONPATH of the shell was used')\n", encoding="utf-8")
    link = folder / "link"
    link.symlink_to(folder / "first night")
    done = run(
        link / "iogauge" / "scripts" / "nightly",
        XDG_CACHE_HOME=str(folder / "cache"),
        PYTHONPATH=str(broken),
        VIRTUAL_ENV="/nonexistent",
        PIP_USER="1",
        HOME=None,
    )
    assert done.returncode == 7, done.stderr
    assert "making the Python environment" in done.stderr
    return checkout


def start(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(checkout / "scripts" / "nightly", *arguments, XDG_CACHE_HOME=str(checkout.parents[1] / "cache"))


@pytest.mark.parametrize("script", ["nightly", "spack-setup", "test"])
def test_help_gives_an_example_and_the_exit_codes_and_sets_nothing_up(script: str, tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    done = run(checkout / "scripts" / script, "--help")
    assert done.returncode == 0
    assert f"\n  scripts/{script}" in done.stdout.partition("example")[2]
    assert "exit codes: 0" in done.stdout
    assert not (checkout / ".venv").exists()
    assert not (checkout / ".iogauge").exists()


@pytest.mark.parametrize("script", ["nightly", "test"])
def test_a_missing_compiler_wrapper_is_named_with_the_packages_of_both_families(script: str, readable: Path) -> None:
    tools = readable / "bin"
    tools.mkdir()
    for tool in (*SHELL_TOOLS.split(), "cc", "cmake", "make", "mpirun"):
        found = shutil.which(tool, path="/usr/bin:/bin") or shutil.which(tool)
        assert found, tool
        (tools / tool).symlink_to(found)
    checkout = make_checkout(readable / "checkout")
    if os.geteuid() == 0:
        shutil.chown(checkout, 65534)
    done = run(checkout / "scripts" / script, as_nobody=True, PATH=str(tools), IOGAUGE_NO_INSTALL=None)
    assert done.returncode == 2, done.stderr
    assert "missing: mpicc \n" in done.stderr
    for name in ("libopenmpi-dev", "libhdf5-openmpi-dev", "openmpi-devel", "hdf5-openmpi-devel", "mpi/openmpi-x86_64"):
        assert name in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_parallel_hdf5_that_cannot_be_found_is_said_before_python_packages_are_fetched(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    done = run(checkout / "scripts" / "nightly", HDF5_ROOT=str(tmp_path), HDF5_DIR=None)
    assert done.returncode == 2
    assert "parallel HDF5 is missing" in done.stderr
    assert "hdf5-openmpi-devel" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_checkout_that_cannot_be_written_is_said(readable: Path) -> None:
    checkout = make_checkout(readable / "checkout")
    if os.geteuid() != 0:
        checkout.chmod(0o555)
    done = run(checkout / "scripts" / "nightly", as_nobody=True)
    if os.geteuid() != 0:
        checkout.chmod(0o755)
    assert done.returncode == 2
    assert f"iogauge: error: {checkout}/.iogauge cannot be written" in done.stderr


def test_a_path_with_a_blank_works_and_says_where_it_works_instead(ready: Path) -> None:
    done = start(ready)
    assert done.returncode == 7
    assert f"working in {ready.parents[1] / 'cache'}/iogauge/" in done.stderr


def test_the_arguments_and_the_exit_code_are_the_commands_own(ready: Path) -> None:
    done = start(ready, "--name", "two words", "*")
    assert (done.returncode, done.stdout) == (7, "['nightly', '--name', 'two words', '*']\n")


def test_a_second_set_up_does_nothing(ready: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (ready / ".venv").rglob("*") if "__pycache__" not in path.parts}
    done = start(ready)
    after = {path: path.stat().st_mtime_ns for path in (ready / ".venv").rglob("*") if "__pycache__" not in path.parts}
    assert done.returncode == 7
    assert "making" not in done.stderr
    assert after == before


def begin(checkout: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "IOGAUGE_NO_INSTALL": "1", "XDG_CACHE_HOME": str(checkout.parents[1] / "cache")}
    environment.pop("IOGAUGE_HOME", None)
    return subprocess.Popen(
        [str(checkout / "scripts" / "nightly"), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_changed_lock_that_cannot_be_installed_is_an_error_and_of_two_next_starts_one_mends_it(ready: Path) -> None:
    lock = ready / "requirements.lock"
    good = lock.read_text(encoding="utf-8")
    lock.write_text(f"./nothing-1.0-py3-none-any.whl --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    try:
        failed = start(ready)
        again = start(ready)
    finally:
        lock.write_text(good, encoding="utf-8")
    for done in (failed, again):
        assert done.returncode == 2
        assert "the locked packages could not be installed" in done.stderr
    both = [begin(ready) for _ in range(2)]
    said = [process.communicate(timeout=PATIENCE_SECONDS)[1] for process in both]
    assert [process.returncode for process in both] == [7, 7], said
    assert sorted("making the Python environment" in text for text in said) == [False, True]
    assert sorted("another start sets this checkout up" in text for text in said) == [False, True]


def test_the_environment_is_not_made_anew_under_a_running_night_while_others_may_start(
    ready: Path, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    night = begin(ready, "--until", str(end))
    assert night.stdout is not None
    night.stdout.readline()  # it runs
    assert start(ready).returncode == 7
    lock = ready / "requirements.lock"
    lock.write_text(lock.read_text(encoding="utf-8") + "# a change\n", encoding="utf-8")
    other = begin(ready)
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(timeout=3)
    assert (ready / ".venv" / "bin" / "iogauge").exists()
    end.touch()
    assert night.wait(timeout=PATIENCE_SECONDS) == 7
    said = other.communicate(timeout=PATIENCE_SECONDS)[1]
    assert other.returncode == 7
    assert said.index("waiting") < said.index("making the Python environment")
