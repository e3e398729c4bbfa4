"""``scripts/hdf5-arms``: prefixes that are whole or not there, and a reason for what cannot be had. No network is asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from iogauge import hdf5_arms
from iogauge.errors import InputError
from iogauge.hdf5_arms import CannotBeHad, fits, header_version, installed, main, upstream

needs_openmpi = pytest.mark.skipif(
    not all(shutil.which(f"{name}.openmpi") for name in ("mpicc", "mpirun", "h5pcc")),
    reason="needs Debian's mpicc.openmpi, mpirun.openmpi and h5pcc.openmpi",
)

#: An HDF5 of three lines: it is configured, compiled and installed as the real one is.
CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.16)
project(hdf5 C)
add_library(hdf5 SHARED hdf5.c)
install(TARGETS hdf5 LIBRARY DESTINATION lib)
install(FILES H5public.h DESTINATION include)
"""
HEADER = "#define H5_VERS_MAJOR 1\n#define H5_VERS_MINOR 14\n#define H5_VERS_RELEASE {release}\n"


class StandInArchive:
    """Debian's archive with one source package."""

    def __init__(self, folder: Path, body: str = "int hdf5;\n", release: int = 5) -> None:
        source = folder / "hdf5-1.14.5"
        source.mkdir(parents=True)
        (source / "CMakeLists.txt").write_text(CMAKE_LISTS)
        (source / "hdf5.c").write_text(body)
        (source / "H5public.h").write_text(HEADER.format(release=release))
        self.file = folder / "hdf5_1.14.5+repack.orig.tar.gz"
        with tarfile.open(self.file, "w:gz") as tar:
            tar.add(source, source.name)
        self.asked = 0

    def get(self, series: str) -> tuple[str, str, Path]:
        self.asked += 1
        if not fits("1.14.5", series):
            raise CannotBeHad(f"no source package of HDF5 {series}")
        return "trixie", "1.14.5+repack-3", self.file


@pytest.fixture
def arms(tmp_path: Path) -> Path:
    return tmp_path / "arms"


def made_of(monkeypatch: pytest.MonkeyPatch, archive: StandInArchive) -> None:
    monkeypatch.setattr(hdf5_arms, "Archive", lambda folder: archive)


def command(arms: Path, *arguments: str) -> int:
    return main(["--folder", str(arms), "--mpi", "openmpi", *arguments])


def test_a_version_is_of_a_series_by_its_numbers():
    assert fits("1.14.5", "1.14")
    assert fits("2.2.0", "2")
    assert not fits("1.14.5", "1.1")
    assert upstream("1.14.5+repack-3") == "1.14.5"
    with pytest.raises(CannotBeHad, match="nightly"):
        upstream("nightly")


@needs_openmpi
def test_debians_packages_become_a_prefix_with_the_kernels_own_wrapper_and_are_kept(arms, capsys):
    assert command(arms, "--hdf5", "packages", "--json") == 0
    (arm,) = json.loads(capsys.readouterr().out)["arms"]
    prefix = Path(arm["prefix"])
    assert arm["hdf5"] == header_version(prefix / "include")
    assert prefix == arms / f"hdf5-{arm['hdf5']}-openmpi"
    assert (prefix / "lib" / "libhdf5.so").exists()
    said = subprocess.run([arm["compiler"], "--showme:version"], capture_output=True, text=True, check=True)
    assert "Open MPI" in said.stdout + said.stderr
    written = (prefix / "arm.json").stat().st_mtime_ns
    assert command(arms, "--hdf5", "packages") == 0
    assert (prefix / "arm.json").stat().st_mtime_ns == written
    out = capsys.readouterr().out
    assert f"launcher {prefix}/bin/mpirun" in out
    assert "Debian's package libhdf5-openmpi-dev" in out


@needs_openmpi
def test_packages_that_were_upgraded_since_are_another_arm(arms):
    assert command(arms, "--hdf5", "packages") == 0
    (arm,) = installed(arms)
    old = arms / "hdf5-1.8.1-openmpi"
    arm.prefix.rename(old)
    moved = {
        "name": old.name,
        "hdf5": "1.8.1",
        "prefix": old,
        "compiler": old / "bin/mpicc",
        "launcher": old / "bin/mpirun",
    }
    (old / "arm.json").write_text(arm.model_copy(update=moved).model_dump_json())
    assert command(arms, "--hdf5", "packages") == 0
    assert [found.name for found in installed(arms)] == [arm.name]


@needs_openmpi
def test_a_source_package_is_built_once_and_says_where_it_came_from(arms, tmp_path, monkeypatch, capsys):
    archive = StandInArchive(tmp_path / "archive")
    made_of(monkeypatch, archive)
    more = "--configure=-DCMAKE_C_FLAGS_RELEASE=-O0"
    assert command(arms, "--hdf5", "1.14", more) == command(arms, "--hdf5", "1.14.5") == 0
    assert archive.asked == 1, "what is there is kept"
    (arm,) = installed(arms)
    assert (arm.name, arm.hdf5) == ("hdf5-1.14.5-openmpi", "1.14.5")
    assert (arm.prefix / "lib" / "libhdf5.so").exists()
    assert "-DHDF5_ENABLE_PARALLEL=ON" in arm.flags
    assert arm.flags[-1] == "-DCMAKE_C_FLAGS_RELEASE=-O0"
    assert "hdf5 1.14.5+repack-3 of trixie" in arm.source
    assert "SHA-256 " in arm.source
    assert not (arms / "building").exists()


@needs_openmpi
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"body": "this is no C\n"}, "could not be built"),
        ({"release": 4}, "Debian's 1.14.5+repack-3 holds HDF5 1.14.4"),
    ],
)
def test_what_cannot_be_built_leaves_no_prefix_and_is_named_with_the_reason(
    arms, tmp_path, monkeypatch, capsys, source, reason
):
    made_of(monkeypatch, StandInArchive(tmp_path / "archive", **source))
    assert command(arms, "--hdf5", "1.14", "--hdf5", "9", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["arms"] == []
    assert reason in found["left_out"]["hdf5-1.14-openmpi"]
    assert found["left_out"]["hdf5-9-openmpi"] == "no source package of HDF5 9"
    assert not list(arms.glob("hdf5-*/"))


@needs_openmpi
def test_an_interrupted_build_leaves_no_prefix_and_the_next_start_makes_it(arms, tmp_path, monkeypatch):
    made_of(monkeypatch, StandInArchive(tmp_path / "archive"))
    run = hdf5_arms._run

    def interrupted(command, log, what, **others):
        run(command, log, what, **others)
        if "--install" in command:
            raise KeyboardInterrupt

    monkeypatch.setattr(hdf5_arms, "_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        command(arms, "--hdf5", "1.14")
    assert installed(arms) == []
    assert not list(arms.glob("hdf5-*/"))
    monkeypatch.setattr(hdf5_arms, "_run", run)
    assert command(arms, "--hdf5", "1.14") == 0
    assert [arm.name for arm in installed(arms)] == ["hdf5-1.14.5-openmpi"]


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt-get")
@pytest.mark.skipif(shutil.which("mpicc.openmpi") is None, reason="needs mpicc.openmpi")
def test_an_archive_that_cannot_be_reached_is_named(arms, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("IOGAUGE_DEBIAN_MIRROR", f"file://{tmp_path}/no-archive")
    monkeypatch.setattr(hdf5_arms, "SUITES", ("trixie",))
    assert command(arms, "--hdf5", "1.14") == 1
    said = capsys.readouterr()
    assert (
        "hdf5-1.14-openmpi: left out: no source package of HDF5 1.14: the sources of trixie are not listed: "
        in said.err
    )
    assert "no-archive" in said.out


class Lists(hdf5_arms.Archive):
    """What suites say that they have, and which of it can be fetched."""

    def __init__(self, offered: dict[str, list[str]], held: set[tuple[str, str]]) -> None:
        super().__init__(Path("/no/such/folder"))
        self._offers, self.held = offered, held

    def fetch(self, suite: str, version: str) -> Path:
        if (suite, version) not in self.held:
            raise CannotBeHad(f"hdf5 {version} of {suite} cannot be fetched")
        return Path(f"/{suite}/{version}")


def test_the_newest_of_the_most_settled_suite_is_taken_and_the_next_where_the_archive_has_moved_on():
    offered = {
        "trixie": ["1.14.5-3"],
        "forky": ["2.2.0-5", "2.10.0-1"],
        "sid": ["1.14.6-2", "2.2.0-6"],
        "experimental": [],
    }
    held = {(suite, version) for suite, versions in offered.items() for version in versions}
    assert Lists(offered, held).get("1.14")[:2] == ("trixie", "1.14.5-3")
    assert Lists(offered, held).get("2")[:2] == ("forky", "2.10.0-1")
    assert Lists(offered, held - {("forky", "2.10.0-1")}).get("2") == ("sid", "2.2.0-6", Path("/sid/2.2.0-6"))
    with pytest.raises(CannotBeHad) as caught:
        Lists(offered, set()).get("2")
    assert str(caught.value) == (
        "no source package of HDF5 2: trixie has none; hdf5 2.10.0-1 of forky cannot be fetched; "
        "hdf5 2.2.0-6 of sid cannot be fetched; experimental has none"
    )


def test_without_an_mpi_the_arm_is_left_out(arms, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/no/such/folder")
    assert command(arms, "--hdf5", "packages") == 1
    assert "not in PATH: h5pcc.openmpi (Debian: libhdf5-openmpi-dev)" in capsys.readouterr().out


@needs_openmpi
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda prefix: (prefix / "arm.json").write_text("{"), "not the description of an arm"),
        (lambda prefix: (prefix / "arm.json").write_text('{"name": "x"}'), "name"),
        (lambda prefix: prefix.rename(prefix.parent / "elsewhere"), "was moved to"),
        (lambda prefix: (prefix / "bin" / "mpirun").unlink(), "is no program"),
    ],
)
def test_a_spoiled_arm_is_told_with_its_file_and_exit_code_2(arms, capsys, spoil, message):
    assert command(arms, "--hdf5", "packages") == 0
    spoil(installed(arms)[0].prefix)
    with pytest.raises(InputError) as caught:
        installed(arms)
    assert caught.value.file is not None
    assert caught.value.file.name == "arm.json"
    assert command(arms, "--list") == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("--hdf5", "latest"), ("--jobs", "0"), ("--jobs", "two"), ("--mpi", "lam")])
def test_wrong_arguments_exit_2_and_say_what_is_allowed(arms, capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(["--folder", str(arms), *arguments])
    assert caught.value.code == 2
    assert arguments[1] in capsys.readouterr().err
    assert not arms.exists()


def test_without_arms_the_list_says_how_to_make_them(arms, capsys):
    assert main(["--folder", str(arms), "--list"]) == 0
    assert "scripts/hdf5-arms makes them" in capsys.readouterr().out
    assert not arms.exists()


def test_the_help_has_an_example():
    script = Path(hdf5_arms.__file__).parents[1] / "scripts" / "hdf5-arms"
    done = subprocess.run([script, "--help"], capture_output=True, text=True, check=True, env=dict(os.environ))
    for word in ("examples:", "exit codes:", "--jobs", "IOGAUGE_DEBIAN_MIRROR"):
        assert word in done.stdout
