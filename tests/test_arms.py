"""Arms of a comparison, really built and run: each is proven to be what it says, and what differs too much is refused.

Debian's HDF5 with Open MPI and with MPICH are two arms that cost a second; a second HDF5 takes minutes to build, so that it is
looked at when ``scripts/hdf5-arms`` has made it, which ``scripts/test`` asks it to do once.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess

import pytest
from click.testing import CliRunner
from conftest import BUILDS, CHECKOUT
from test_spack_arms import KERNELS, install

from iogauge import arms, cli, hdf5_arms, nightly
from iogauge.arms import Arm, Proof, check_comparable, compiler_flags, prove, resolve
from iogauge.compare.cli import check_arms
from iogauge.errors import InputError, Refusal
from iogauge.hdf5_arms import fits, installed

HOME = BUILDS.parent

pytestmark = pytest.mark.skipif(
    not all(shutil.which(f"{name}.openmpi") for name in ("mpicc", "mpirun", "h5pcc")),
    reason="needs Debian's mpicc.openmpi, mpirun.openmpi and h5pcc.openmpi",
)


@pytest.fixture(scope="module", autouse=True)
def home():
    """Arms and their kernels are kept from one run of the tests to the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IOGAUGE_HOME", str(HOME))
        hdf5_arms.main(["--folder", str(HOME / "arms"), "--hdf5", "packages"])
        yield HOME


def of_series(series: str, mpi: str) -> Arm:
    """The arm, found by its name as a user would, or by the prefix that scripts/test made; skips without it."""
    for folder in (HOME / "arms", BUILDS / "arms"):
        for made in installed(folder):
            if made.mpi == mpi and fits(made.hdf5, series):
                return resolve(made.name if folder.parent == HOME else str(made.prefix))
    pytest.skip(f"needs HDF5 {series} with {mpi}: scripts/hdf5-arms --hdf5 {series} --mpi {mpi}")


@pytest.fixture(scope="module")
def debian(home) -> Proof:
    """Debian's packages with Open MPI."""
    return prove(of_series("1.10", "openmpi"))


def brought(proof: Proof, **changes: object) -> Arm:
    """The arm with kernels that are there already, and with changes."""
    return proof.arm.model_copy(update={"programs": proof.kernels.folder, **changes})


def test_an_arm_is_what_its_kernels_say_and_load_while_they_run(debian):
    assert debian.hdf5 == debian.arm.hdf5
    assert debian.library == (debian.arm.prefix / "lib" / "libhdf5.so").resolve()
    assert debian.mpi.startswith("Open MPI")
    assert debian.kernels.flags == ("-DIOGAUGE_HAVE_HDF5", "-O3", "-std=c11")


def test_two_mpi_of_one_hdf5_are_two_arms(debian):
    other = prove(of_series("1.10", "mpich"))
    assert other.mpi.startswith("MPICH")
    assert other.library != debian.library
    check_comparable(debian, other)


def test_two_hdf5_of_one_mpi_are_two_arms(debian):
    other = prove(of_series("1.14", "openmpi"))
    assert other.hdf5.startswith("1.14.")
    assert other.arm.prefix in other.library.parents
    assert (other.sources, other.compiler, other.mpi) == (debian.sources, debian.compiler, debian.mpi)
    check_comparable(debian, other)


def test_kernels_of_an_arm_are_built_once_and_anew_when_a_source_changes(debian, tmp_path, monkeypatch):
    before = (debian.kernels.folder / "kernels.json").stat().st_mtime_ns
    assert arms.build(debian.arm) == debian.kernels
    assert (debian.kernels.folder / "kernels.json").stat().st_mtime_ns == before
    shutil.copytree(CHECKOUT / "kernels", tmp_path / "kernels")
    same = arms._digest(debian.arm, tmp_path / "kernels")
    assert debian.kernels.folder.name == same[:16], "it is the sources that count, not where they are"
    with (tmp_path / "kernels" / "common" / "run.c").open("a") as file:
        file.write("/* another */\n")
    assert arms._digest(debian.arm, tmp_path / "kernels") != same


def test_kernels_that_cannot_be_built_are_told_and_leave_nothing(debian, tmp_path, monkeypatch):
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path))
    arm = debian.arm.model_copy(update={"compiler": "/no/such/mpicc"})
    with pytest.raises(Refusal, match=rf"arm {arm.name}: its kernels could not be built: "):
        prove(arm)
    assert [path.suffix for path in (tmp_path / "arms" / "kernels").iterdir()] == [".lock"]


# --- what is refused --------------------------------------------------------------------------------------------------


def test_an_arm_that_says_another_hdf5_than_it_loads_is_refused(debian):
    with pytest.raises(Refusal, match=rf"says HDF5 1\.14\.5; its kernels loaded {debian.hdf5} from {debian.library}"):
        prove(brought(debian, hdf5="1.14.5"))


def test_a_library_that_the_environment_puts_first_is_found_out(debian, tmp_path):
    """The version is right, the library is another one: only the process tells."""
    (name,) = {path.name for path in debian.library.parent.glob("libhdf5_openmpi.so.*") if path.name.count(".") == 2}
    shutil.copy(debian.library, tmp_path / name)
    arm = brought(debian, variables={"LD_LIBRARY_PATH": str(tmp_path)})
    with pytest.raises(
        Refusal, match=rf"is in {debian.arm.prefix}; its kernels loaded HDF5 {debian.hdf5} from {tmp_path}"
    ):
        prove(arm)


def test_an_arm_of_another_mpi_than_it_says_is_refused(debian):
    with pytest.raises(Refusal, match="says mpich; its kernels run with Open MPI"):
        prove(brought(debian, mpi="mpich"))


@pytest.mark.skipif(shutil.which("mpirun.mpich") is None, reason="needs MPICH beside Open MPI: mpirun.mpich")
def test_a_launcher_of_another_mpi_is_refused(debian):
    with pytest.raises(
        Refusal, match=r"its launcher mpirun\.mpich does not fit its MPI: the launcher started 2 processes"
    ):
        prove(brought(debian, launcher="mpirun.mpich"))


@pytest.mark.parametrize(
    ("launcher", "message"),
    [("/no/such/mpirun", "its launcher /no/such/mpirun is not there"), ("false", "its kernels do not run with false")],
)
def test_a_launcher_that_starts_nothing_is_refused(debian, launcher, message):
    with pytest.raises(Refusal, match=message):
        prove(brought(debian, launcher=launcher))


def test_a_launcher_that_hangs_is_given_up(debian, tmp_path, monkeypatch):
    monkeypatch.setattr(arms, "PROOF_SECONDS", 0.2)
    hangs = tmp_path / "hangs"
    hangs.write_text("#!/bin/sh\nexec sleep 60\n")
    hangs.chmod(0o755)
    with pytest.raises(Refusal, match=r"did not end in 0\.2 s"):
        prove(brought(debian, launcher=str(hangs)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "are the same build: HDF5 "),
        ({"library_sha256": "f" * 64, "sources": "abc"}, "differ in the kernels' sources: "),
        ({"library_sha256": "f" * 64, "compiler": "Clang 19"}, "differ in the compiler: GNU .* and Clang 19"),
        ({"mpi": "MPICH Version: 4", "compiler": "Clang 19"}, "differ in the compiler: "),
    ],
)
def test_arms_that_differ_in_nothing_or_in_more_than_hdf5_and_mpi_are_refused(debian, change, message):
    arm = debian.arm.model_copy(update={"name": "other"})
    with pytest.raises(Refusal, match=rf"arms {debian.arm.name} and other {message}"):
        check_comparable(debian, debian.model_copy(update={"arm": arm, **change}))


def test_arms_with_other_compiler_flags_are_refused_unless_they_are_not_known(debian):
    flags = ("-DIOGAUGE_HAVE_HDF5", "-O2", "-std=c11")
    other = debian.model_copy(
        update={"library_sha256": "f" * 64, "kernels": debian.kernels.model_copy(update={"flags": flags})}
    )
    with pytest.raises(Refusal, match="differ in the compiler's flags: -O3 and -O2"):
        check_comparable(debian, other)
    check_comparable(debian, other.model_copy(update={"kernels": debian.kernels.model_copy(update={"flags": None})}))


def test_compiler_flags_are_those_that_change_the_code():
    command = (
        "mpicc -DH5_X -DIOGAUGE_HAVE_HDF5 -D_FORTIFY_SOURCE=2 -I/a -isystem /b -O3 -march=native -Wall -o x.o -c x.c"
    )
    expected = ["-DIOGAUGE_HAVE_HDF5", "-D_FORTIFY_SOURCE=2", "-O3", "-march=native"]
    other = {"file": "/c/counter.c", "command": "mpicc -fPIC -c counter.c"}
    assert compiler_flags([{"file": "/k/tiles.c", "command": command}, other]) == expected


# --- names ------------------------------------------------------------------------------------------------------------


def test_an_arm_that_is_not_there_is_told_with_those_that_are(debian):
    with pytest.raises(InputError, match=rf"no arm 'hdf5-9'; there are: .*{debian.arm.name}.*default") as caught:
        resolve("hdf5-9")
    assert caught.value.key == "ARM"


def test_a_prefix_is_taken_with_the_wrapper_and_launcher_of_its_mpi(debian):
    folder = debian.arm.prefix.resolve() / "lib"
    arm = resolve(str(folder))  # Debian's own folder of the library is a prefix, without programs
    assert (arm.kind, arm.hdf5, arm.mpi) == ("prefix", debian.hdf5, "openmpi")
    assert (arm.compiler, arm.launcher) == (shutil.which("mpicc.openmpi"), shutil.which("mpirun.openmpi"))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"no prefix of HDF5: .*H5public\.h: No such file"),
        ({"H5public.h": ""}, r"H5public\.h names no version"),
        ({"H5public.h": None, "H5pubconf.h": "/* #undef H5_HAVE_PARALLEL */\n"}, "is not a parallel one"),
        ({"H5public.h": None, "H5pubconf.h": "#define H5_HAVE_PARALLEL 1\n"}, r"neither lib nor lib64 has libhdf5\.so"),
    ],
)
def test_a_folder_that_is_no_parallel_hdf5_is_refused(debian, tmp_path, files, message):
    (tmp_path / "include").mkdir()
    for name, text in files.items():
        header = (debian.arm.prefix / "include" / name).read_text() if text is None else text
        (tmp_path / "include" / name).write_text(header)
    with pytest.raises(InputError, match=message) as caught:
        resolve(str(tmp_path))
    assert caught.value.file == tmp_path


def test_an_environment_of_the_site_brings_its_wrapper_modules_and_variables(tmp_path, monkeypatch):
    (tmp_path / "reframe_checks").mkdir()
    (tmp_path / "site_configs").mkdir()
    partition = {"name": "p", "scheduler": "slurm", "launcher": "srunalloc", "environs": ["new"], "extras": {}}
    partition |= {"modules": ["base"], "env_vars": [["A", "0"], ["B", "2"]]}
    environ = {
        "name": "new",
        "cc": "cc-wrapper",
        "cflags": ["-O1", "-g"],
        "modules": ["hdf5/1.14", {"name": "mpi", "path": "/m"}],
        "env_vars": [["A", "1"]],
    }
    environ["extras"] = {"darshan": "/opt/libdarshan.so"}
    foreign = {"name": "foreign", "cc": "cc", "target_systems": ["elsewhere"]}
    configuration = {"systems": [{"name": "s", "partitions": [partition]}], "environments": [environ, foreign]}
    (tmp_path / "site_configs" / "s.py").write_text(f"site_configuration = {configuration!r}\n")
    monkeypatch.setattr(nightly, "checkout", lambda: tmp_path)
    arm = resolve("new", "s")
    assert arm.load == ()  # no modules: "nomod" is ReFrame's default
    configuration["systems"][0]["modules_system"] = "envmod"
    (tmp_path / "site_configs" / "s.py").write_text(f"site_configuration = {configuration!r}\n")
    arm = resolve("new", "s")
    assert (arm.cflags, arm.programs) == (("-O1", "-g"), None)
    assert (arm.compiler, arm.launcher, arm.variables) == ("cc-wrapper", "srun", {"A": "1", "B": "2"})
    load = ("module load base", "module load hdf5/1.14", "module use /m", "module load mpi", "module unuse /m")
    assert arm.load == load
    assert arm.darshan == "/opt/libdarshan.so"
    assert arm.command("cmake", "a b") == ["bash", "-lc", f"{' && '.join(load)} && exec cmake 'a b'"]
    with pytest.raises(InputError, match="no arm 'foreign'"):
        resolve("foreign", "s")


@pytest.fixture
def with_modules(tmp_path, monkeypatch):
    """A site "s" whose environments "old" and "new" have modules: ``hdf5/old``, and ``hdf5/wrong``, which is not there."""
    folders = {name: tmp_path / name for name in ("reframe_checks", "site_configs", "modulefiles/hdf5")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    (folders["modulefiles/hdf5"] / "old").write_text("#%Module\nsetenv HDF5_ROOT /sw/old\n")
    modules = {"name": "p", "prepare_cmds": [f"module use {tmp_path}/modulefiles"]}
    partition = {**modules, "scheduler": "local", "launcher": "mpirun", "environs": ["old", "new"]}
    environs = [{"name": name, "modules": [f"hdf5/{module}"]} for name, module in (("old", "old"), ("new", "wrong"))]
    system = {"name": "s", "modules_system": "envmod", "partitions": [partition]}
    configuration = {"systems": [system], "environments": environs}
    (folders["site_configs"] / "s.py").write_text(f"site_configuration = {configuration!r}\n")
    monkeypatch.setattr(nightly, "checkout", lambda: tmp_path)
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path / "home"))
    return tmp_path


def test_modules_that_are_there_are_loaded_for_whatever_an_arm_runs(with_modules):
    if subprocess.run(["bash", "-lc", "module --version"], capture_output=True).returncode:
        pytest.skip("needs Environment Modules or Lmod: a login shell with the command module")
    arm = resolve("old", "s")
    arms.check_modules(arm)
    done = subprocess.run(arm.command("printenv", "HDF5_ROOT"), capture_output=True, text=True)
    assert done.stdout == "/sw/old\n"
    with pytest.raises(Refusal, match=r"hdf5/wrong: .*hdf5/wrong"):
        arms.check_modules(resolve("new", "s"))


def test_modules_that_cannot_be_loaded_are_named_before_anything_is_built(with_modules):
    """Where there is no command module at all, the first one's are."""
    done = CliRunner().invoke(cli.main, ["arms", "--site", "s", "old", "new"])
    assert done.exit_code == 2
    assert re.search(r"arm (old|new): its modules cannot be loaded: module use \S+ && module load hdf5/", done.output)
    with pytest.raises(InputError, match="its modules cannot be loaded"):
        check_arms("s", ("old", "new"))
    assert not (with_modules / "home").exists()


def test_an_unknown_kind_of_modules_is_told(with_modules):
    file = with_modules / "site_configs" / "s.py"
    file.write_text(file.read_text().replace("envmod", "tmod32"))
    with pytest.raises(InputError, match="modules of old: unknown module system: tmod32"):
        resolve("old", "s")


def test_a_view_of_a_spack_stack_brings_its_own_kernels(debian, tmp_path, monkeypatch):
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path))
    folder = install(tmp_path, {name: debian.kernels.folder / name for name in KERNELS})
    arm = resolve("hdf5/hdf5-1.10")
    assert (arm.kind, arm.hdf5, arm.mpi) == ("spack", "1.10", "openmpi")
    assert arm.programs == folder / "views" / "hdf5-1.10" / "bin"
    proof = prove(arm.model_copy(update={"hdf5": debian.hdf5}))
    assert (proof.hdf5, proof.kernels.flags) == (debian.hdf5, None)
    assert list(arms.known("local"))[-2:] == ["hdf5/hdf5-1.10", "hdf5/hdf5-1.14"]
    (arm.programs / "tiles").unlink()
    with pytest.raises(InputError, match="tiles; the stack has to hold iogauge's kernels"):
        resolve("hdf5/hdf5-1.10")


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_lists_proves_and_refuses(debian):
    listed = CliRunner().invoke(cli.main, ["arms", "--json"])
    assert debian.arm.name in json.loads(listed.output)
    proven = CliRunner().invoke(cli.main, ["arms", debian.arm.name])
    assert proven.exit_code == 0, proven.output
    assert str(debian.library) in proven.output
    twice = CliRunner().invoke(cli.main, ["arms", debian.arm.name, debian.arm.name])
    assert twice.exit_code == 2
    assert "are the same build" in twice.output
    assert os.environ["IOGAUGE_HOME"] == str(HOME)
