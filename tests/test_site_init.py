"""The draft of a site's Spack scope: the known errors of ``spack external find`` are mended, and nothing is overwritten."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import CHECKOUT
from ruamel.yaml import YAML

from iogauge.cli import main
from iogauge.errors import InputError
from iogauge.site_init import Mpi, check_name, draft, find_mpis, read_found, write
from iogauge.spack_setup import external_problems

FOUND = Path(__file__).parent / "spack_found" / "debian12.yaml"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /usr with the headers of zlib and curl, and the wrappers of two MPI libraries, of which mpicc is Open MPI's."""
    usr = tmp_path / "usr"
    for header in ("zlib.h", "curl/curl.h"):
        (usr / "include" / header).parent.mkdir(parents=True, exist_ok=True)
        (usr / "include" / header).touch()
    (usr / "bin").mkdir()
    says = {
        "openmpi": "case $1 in --showme:version) echo 'mpicc: Open MPI 4.1.4 (Language: C)';; "
        f"-show) echo gcc -I{usr}/lib/openmpi/include -L{usr}/lib/openmpi/lib -lmpi;; esac",
        "mpich": "case $1 in -v) echo 'mpicc for MPICH version 4.0.2';; "
        f"-show) echo gcc -I{usr}/include/mpich -L{usr}/lib -lmpich;; *) exit 1;; esac",
    }
    for name, script in says.items():
        for program in ("mpicc", "mpifort", "mpirun"):
            path = usr / "bin" / f"{program}.{name}"
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
    (usr / "bin" / "mpicc").symlink_to("mpicc.openmpi")
    monkeypatch.setenv("HOME", "/home/someone")
    return usr


def found_on(usr: Path) -> dict:
    text = FOUND.read_text().replace("prefix: /usr", f"prefix: {usr}")
    (usr.parent / "packages.yaml").write_text(text)
    return read_found(usr.parent / "packages.yaml")


def drafted(usr: Path, **changes):
    mpis = find_mpis(str(usr / "bin"))
    return draft(changes.get("found", found_on(usr)), changes.get("mpis", mpis), "x86_64", usr.parent / "shims")


def test_each_mpi_has_a_prefix_of_its_own_and_the_one_that_was_missed_is_added(machine):
    made = drafted(machine)
    packages = made.packages
    prefixes = {name: packages[name]["externals"][0]["prefix"] for name in ("openmpi", "mpich")}
    assert prefixes == {name: str(machine.parent / "shims" / name) for name in ("openmpi", "mpich")}
    assert packages["openmpi"]["externals"][0]["spec"] == "openmpi@4.1.4"
    assert made.shims["mpich"]["bin/mpicc"] == machine / "bin" / "mpicc.mpich"
    assert made.shims["openmpi"]["bin/mpicc"].name == "mpicc.openmpi", "what mpicc leads to may change"
    assert made.shims["openmpi"]["include"] == machine / "lib" / "openmpi" / "include"
    assert "mpich@4.0.2 was missed by Spack" in "\n".join(made.mended)
    assert packages["mpi"] == {"buildable": False, "require": ["openmpi"]}


def test_one_mpi_alone_needs_no_links(machine):
    (machine / "bin" / "mpicc.mpich").unlink()
    made = drafted(machine)
    assert made.packages["openmpi"]["externals"] == [{"spec": "openmpi@4.1.4", "prefix": str(machine)}]
    assert not made.shims


def test_an_mpi_whose_wrapper_is_not_there_is_left_out(machine):
    made = drafted(machine, mpis=[Mpi("mpich", "4.0.2", machine / "bin" / "mpicc.mpich", False)])
    assert "openmpi" not in made.packages
    assert made.packages["all"]["providers"]["mpi"] == ["mpich"]
    assert "openmpi@4.1.4" in "\n".join(made.mended)


def test_without_mpi_and_compiler_a_person_is_told(machine):
    made = drafted(machine, found={}, mpis=[])
    assert set(made.packages) == {"all"}
    told = "\n".join(made.look)
    assert "no MPI was found" in told
    assert "no gcc was found" in told


def test_hdf5_is_left_to_the_stacks_and_never_unbuildable(machine):
    made = drafted(machine)
    assert "hdf5" not in made.packages
    assert sum(sentence.startswith("hdf5@1.10.8") for sentence in made.mended) == 2


def test_what_is_in_a_home_folder_without_headers_or_twice_is_left_out(machine):
    made = drafted(machine)
    assert made.packages["cmake"] == {"externals": [{"spec": "cmake@3.25.1", "prefix": str(machine)}]}, (
        "HDF5 2.x needs newer"
    )
    assert "openssl" not in made.packages
    assert made.packages["curl"]["buildable"] is False
    told = "\n".join(made.mended)
    assert "openssl@3.0.19" in told
    assert "libssl-dev" in told
    assert "cmake@3.31.6 in /home/someone/cmake is left out: in a home folder" in told


def test_the_target_is_explicit_and_compilers_are_required(machine):
    packages = drafted(machine).packages
    assert packages["all"]["require"] == ["target=x86_64"]
    assert packages["fortran"] == {"require": ["gcc"]}
    assert packages["gcc"]["externals"][0]["extra_attributes"]["compilers"]["fortran"] == "/usr/bin/gfortran"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    copy = tmp_path / "a checkout"
    for name in ("spack_env/sites/local", "spack_env/envs/local", "site_configs"):
        shutil.copytree(CHECKOUT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def test_what_is_written_is_read_as_it_was_meant_and_the_links_lead_to_the_wrappers(checkout, machine):
    made = drafted(machine)
    for entry in made.packages.values():
        for external in entry.get("externals", ()):
            external["prefix"] = external["prefix"].replace(
                str(machine.parent / "shims"), str(checkout / "spack_env" / "sites" / "mysite" / "shims")
            )
    written = write(checkout, "mysite", made)
    assert [path.relative_to(checkout).as_posix() for path in written] == [
        "spack_env/sites/mysite",
        "spack_env/envs/mysite",
        "site_configs/mysite.py",
    ]
    text = (written[0] / "packages.yaml").read_text()
    read = YAML(typ="safe").load(text)["packages"]
    assert read == made.packages
    assert all(sentence in text for sentence in (*made.mended, *made.look))
    assert (written[0] / "shims" / "mpich" / "bin" / "mpicc").readlink() == machine / "bin" / "mpicc.mpich"
    own = {name: read[name] for name in ("openmpi", "mpich")}
    assert list(external_problems(own)) == [], "spack-setup accepts it"
    stack = (written[1] / "hdf5" / "spack.yaml").read_text()
    assert "../../../sites/mysite" in stack
    assert "local" not in stack
    assert '"name": "mysite"' in written[2].read_text()


def test_nothing_is_overwritten_and_a_configuration_that_is_there_stays(checkout, machine):
    (checkout / "site_configs" / "mysite.py").write_text("mine\n")
    assert len(write(checkout, "mysite", drafted(machine))) == 2
    assert (checkout / "site_configs" / "mysite.py").read_text() == "mine\n"
    (checkout / "spack_env" / "sites" / "mysite" / "packages.yaml").write_text("mine\n")
    with pytest.raises(InputError, match="is there already, and nothing is overwritten"):
        write(checkout, "mysite", drafted(machine))
    assert (checkout / "spack_env" / "sites" / "mysite" / "packages.yaml").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["", "My Site", "../local", "-x", "common", "template", "a/b"])
def test_a_bad_name_is_refused(name):
    with pytest.raises(InputError):
        check_name(name)


def test_the_command_says_what_is_wrong_and_writes_nothing(checkout, monkeypatch):
    monkeypatch.setattr("iogauge.nightly.checkout", lambda: checkout)
    monkeypatch.setenv("IOGAUGE_HOME", str(checkout / "home"))
    monkeypatch.setenv("SPACK_ROOT", str(checkout / "nowhere"))
    shutil.copy(CHECKOUT / "spack_env" / "versions.yaml", checkout / "spack_env")
    run = CliRunner()
    for name, why in (
        ("My Site", "a name of a site is expected"),
        ("local", "is there already"),
        ("mysite", "no Spack to look with: SPACK_ROOT: there is no program"),
    ):
        done = run.invoke(main, ["site", "init", name])
        assert done.exit_code == 2, done.output
        assert why in done.output
    assert not (checkout / "spack_env" / "sites" / "mysite").exists()
    assert not (checkout / "site_configs" / "mysite.py").exists()
    assert "iogauge site init mysite" in run.invoke(main, ["site", "init", "--help"]).output


@pytest.mark.skipif(
    not os.environ.get("SPACK_ROOT") or not os.environ.get("IOGAUGE_SPACK_PACKAGES_GIT"),
    reason="needs Spack: SPACK_ROOT, and IOGAUGE_SPACK_PACKAGES_GIT for its packages",
)
def test_the_real_spack_makes_a_draft_that_spack_setup_accepts(checkout, monkeypatch):
    monkeypatch.setattr("iogauge.nightly.checkout", lambda: checkout)
    monkeypatch.setenv("IOGAUGE_HOME", os.environ.get("IOGAUGE_HOME", str(checkout / "home")))
    shutil.copy(CHECKOUT / "spack_env" / "versions.yaml", checkout / "spack_env")
    done = CliRunner().invoke(main, ["site", "init", "mysite"])
    assert done.exit_code == 0, done.output
    packages = YAML(typ="safe").load((checkout / "spack_env" / "sites" / "mysite" / "packages.yaml").read_text())[
        "packages"
    ]
    assert list(external_problems(packages)) == []
    assert "hdf5" not in packages
    for mpi in find_mpis(os.environ["PATH"]):
        assert mpi.spec in [external["spec"] for external in packages[mpi.package]["externals"]]
