"""What scripts/spack-setup promises: wrong input is named, the checkout is only read, a start that failed is gone on with.

A program stands in for Spack where Spack's own work is not what is proven; what needs the real one runs where SPACK_ROOT
names it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from iogauge.errors import InputError
from iogauge.spack_arms import arms_record, unresolved_libraries
from iogauge.spack_setup import (
    Setup,
    clone,
    copy_definition,
    main,
    origins,
    spack_command,
    spack_variables,
    version_problems,
    write_scope,
)

CHECKOUT = Path(__file__).resolve().parents[1]

# Installs two packages into WORK/store, as a Spack does: one after the other, then the view. "fail" beside it: only one.
SPACK = """
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("1.1.7 (of the test)")
    sys.exit()
(here / "calls").open("a").write(json.dumps([arguments, dict(os.environ)]) + "\\n")
environment = pathlib.Path(arguments[3])
store = pathlib.Path(json.load((pathlib.Path(arguments[1]) / "config.yaml").open())["config"]["install_tree"]["root"])
lock = json.load((environment / "spack.lock").open())["concrete_specs"] if (environment / "spack.lock").exists() else {}
prefix = {hash: store / f"{spec['name']}-{hash}" for hash, spec in lock.items()}
if arguments[4] == "concretize":
    (environment / "spack.lock").write_text((here / "lock").read_text())
elif arguments[4] == "install":
    for hash, spec in lock.items():
        if prefix[hash].exists():
            continue
        print(f"==> Installing {spec['name']}-{spec['version']}-{hash} [1/2]")
        print("==> Fetching file:///mirror/x.tar.gz")
        (prefix[hash] / "bin").mkdir(parents=True)
        (prefix[hash] / "bin" / spec["name"]).write_text("#!/bin/sh\\n")
        (prefix[hash] / "bin" / spec["name"]).chmod(0o755)
        if (here / "fail").exists():
            print("==> Error: ProcessError: no space left")
            sys.exit(1)
    view = pathlib.Path(os.environ["IOGAUGE_VIEWS"]) / "tools" / "bin"
    view.mkdir(parents=True, exist_ok=True)
    for hash, spec in lock.items():
        link = view / spec["name"]
        link.unlink(missing_ok=True)
        link.symlink_to(prefix[hash] / "bin" / spec["name"])
elif arguments[4] == "find":
    print(*(f"{hash}\\t{path}" for hash, path in prefix.items() if path.exists()), sep="\\n")
"""


def spec(name: str, letter: str, version: str = "1.0", *dependencies: tuple[str, str]) -> tuple[str, dict[str, Any]]:
    needs = [
        {
            "name": other,
            "hash": key * 32,
            "parameters": {"deptypes": ["link"], "virtuals": ["mpi"] * (other == "openmpi")},
        }
        for other, key in dependencies
    ]
    return letter * 32, {"name": name, "version": version, "parameters": {"shared": True}, "dependencies": needs}


def lock_text() -> str:
    specs = dict([spec("ior", "a", "4.0.0", ("openmpi", "b")), spec("openmpi", "b", "4.1.4")])
    return json.dumps({"roots": [{"hash": "a" * 32, "spec": "ior"}], "concrete_specs": specs})


def git(*arguments: str | Path, cwd: Path) -> str:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    done = subprocess.run(
        ["git", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **identity},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def repository(folder: Path, tag: str = "v1") -> str:
    """A git repository with one tagged commit; returns the commit."""
    git("init", "--quiet", ".", cwd=folder)
    git("add", "--all", cwd=folder)
    git("commit", "--quiet", "--message", "all", cwd=folder)
    git("tag", tag, cwd=folder)
    return git("rev-parse", "HEAD", cwd=folder)


class Site:
    """A checkout with one site, a program in Spack's place, and a folder to work in."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checkout, self.work, self.root = folder / "checkout", folder / "work", folder / "spack"
        definition = self.checkout / "spack_env"
        for name, text in {
            "sites/here/packages.yaml": "packages: {all: {require: [target=x86_64]}}\n",
            "common/config.yaml": "config: {checksum: true}\n",
            "stacks/tools.yaml": "definitions:\n- all: [ior@4.0.0]\nview: {tools: {root: $IOGAUGE_VIEWS/tools}}\n",
            "envs/here/tools/spack.yaml": "spack: {include: [../../../stacks/tools.yaml], specs: [$all]}\n",
            "envs/here/tools/spack.lock": lock_text(),
            "repo/spack_repo/iogauge/repo.yaml": "repo: {namespace: iogauge, api: v2.2}\n",
        }.items():
            (definition / name).parent.mkdir(parents=True, exist_ok=True)
            (definition / name).write_text(text, encoding="utf-8")
        packages = folder / "packages"
        packages.mkdir()
        (packages / "recipe").write_text("x", encoding="utf-8")
        commit = repository(packages)
        pin = f"{{git: {packages}, tag: v1, commit: {commit}}}"
        (definition / "versions.yaml").write_text(
            f"spack: {{git: x, tag: v1.1.0, commit: {commit}}}\npackages: {pin}\n", encoding="utf-8"
        )
        repository(self.checkout)
        (self.root / "bin").mkdir(parents=True)
        program = self.root / "bin" / "spack"
        program.write_text(f"#!{sys.executable}{SPACK}", encoding="utf-8")
        program.chmod(0o755)
        (self.root / "bin" / "lock").write_text(lock_text(), encoding="utf-8")
        monkeypatch.setenv("SPACK_ROOT", str(self.root))

    @property
    def environment(self) -> Path:
        return self.work / "envs" / "here" / "tools"

    def start(self, *arguments: str) -> int:
        self.work.mkdir(exist_ok=True)
        given = ["--checkout", str(self.checkout), "--work", str(self.work), "--site", "here", "--stack", "tools"]
        return main([*given, *arguments])

    def calls(self) -> list[tuple[list[str], Mapping[str, str]]]:
        file = self.root / "bin" / "calls"
        return [tuple(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]  # type: ignore[misc]

    def arms(self) -> dict[str, Any]:
        return json.loads((self.environment / "arms.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, monkeypatch)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def test_what_is_installed_is_described_and_the_checkout_is_only_read(site: Site) -> None:
    before = contents(site.checkout)
    for path in [site.checkout, *site.checkout.rglob("*")]:
        path.chmod(path.stat().st_mode & ~stat.S_IWUSR)
    assert site.start() == 0
    assert contents(site.checkout) == before
    found = site.arms()
    assert found["arms"]["tools"]["mpi"] == "openmpi@4.1.4"
    assert found["arms"]["tools"]["programs"] == ["ior", "openmpi"]
    assert {each["name"]: Path(each["prefix"]).name for each in found["arms"]["tools"]["specs"]}[
        "ior"
    ] == "ior-" + "a" * 32
    assert found["spack"]["version"] == "1.1.7"


def test_spack_gets_nothing_of_the_users_configuration(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACK_ENV", "/of/the/user")
    assert site.start() == 0
    for _, variables in site.calls():
        assert "SPACK_ENV" not in variables
        assert variables["SPACK_DISABLE_LOCAL_CONFIG"] == "1"
        for name in ("SPACK_USER_CONFIG_PATH", "SPACK_USER_CACHE_PATH"):
            assert Path(variables[name]).is_relative_to(site.work)


def test_a_start_that_failed_half_way_leaves_no_arms_and_the_next_goes_on(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    fail = site.root / "bin" / "fail"
    fail.touch()
    assert site.start() == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("iogauge: error: spack install failed")
    assert not (site.environment / "arms.json").exists()
    first = contents(site.work / "store")
    fail.unlink()
    assert site.start() == 0
    assert first.items() <= contents(site.work / "store").items()
    assert "tools" in site.arms()["arms"]


def test_arms_of_another_lock_are_gone_while_the_new_one_is_installed(site: Site) -> None:
    assert site.start() == 0
    lock = site.checkout / "spack_env" / "envs" / "here" / "tools" / "spack.lock"
    lock.write_text(lock_text().replace("a" * 32, "c" * 32), encoding="utf-8")
    (site.root / "bin" / "fail").touch()
    assert site.start() == 1
    assert not (site.environment / "arms.json").exists()


def test_without_a_committed_lock_one_is_made_once_and_again_when_its_inputs_change(site: Site) -> None:
    (site.checkout / "spack_env" / "envs" / "here" / "tools" / "spack.lock").unlink()

    def concretized() -> int:
        return sum("concretize" in arguments for arguments, _ in site.calls())

    assert site.start() == 0
    assert site.start() == 0
    assert concretized() == 1
    (site.checkout / "spack_env" / "common" / "config.yaml").write_text("config: {checksum: false}\n", encoding="utf-8")
    assert site.start() == 0
    assert concretized() == 2


def test_a_lock_made_anew_is_not_installed_and_the_committed_one_comes_back(site: Site) -> None:
    (site.root / "bin" / "lock").write_text(lock_text().replace("a" * 32, "c" * 32), encoding="utf-8")
    assert site.start("--concretize") == 0
    assert "c" * 32 in (site.environment / "spack.lock").read_text(encoding="utf-8")
    assert not (site.work / "store").exists()
    assert site.start() == 0
    assert (site.environment / "spack.lock").read_text(encoding="utf-8") == lock_text()


def test_what_came_from_a_mirror_is_said_also_by_a_later_start(site: Site) -> None:
    assert site.start("--mirror", "file:///mirror") == 0
    assert site.start("--mirror", "file:///mirror") == 0
    assert site.arms()["used"] == {"mirrors": ["file:///mirror"], "buildcaches": [], "upstreams": []}


def test_the_mirror_or_cache_of_each_package_is_read_from_spacks_output() -> None:
    lines = [
        f"==> Installing ior-4.0.0-{'a' * 32} [3/4]",
        "==> Using cached archive: /proj/mirror/ior/ior-4.0.0.tar.gz",
        f"==> Installing hdf5-2.1.0-{'b' * 32} [4/4]",
        "==> Fetching https://cache.example.org/s/blobs/sha256/1",
        f"==> Installing zlib-1-{'c' * 32} [4/4]",
        "==> Fetching https://cache.example.org/so/blobs/sha256/1",
    ]
    assert origins(lines, ["file:///proj/mirror"], ["https://cache.example.org/s"]) == {
        "a" * 32: {"kind": "mirrors", "place": "file:///proj/mirror"},
        "b" * 32: {"kind": "buildcaches", "place": "https://cache.example.org/s"},
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stack", "tool"], "invalid choice: 'tool'"),
        (["--jobs", "0"], "--jobs: 0 is less than 1"),
        (["--mirror", "/nowhere"], "/nowhere is neither a folder nor a URL"),
        (["--upstream", "/usr"], "/usr is no install tree of Spack"),
        (["--sit", "here"], "unrecognized arguments: --sit"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_written(
    arguments: list[str], said: str, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        site.start(*arguments)
    assert said in capsys.readouterr().err
    assert not any(site.work.iterdir())


def test_an_unknown_site_is_answered_with_those_there_are(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert site.start("--site", "there") == 2
    assert "sites: here" in capsys.readouterr().err
    assert not any(site.work.iterdir())


def test_a_spack_of_another_series_is_refused(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    program = site.root / "bin" / "spack"
    program.write_text(program.read_text(encoding="utf-8").replace("1.1.7", "0.23.1"), encoding="utf-8")
    assert site.start() == 2
    assert "is Spack 0.23.1 (of the test), 1.1.x is expected" in capsys.readouterr().err


def test_a_spack_root_without_spack_is_refused(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    (site.root / "bin" / "spack").unlink()
    assert site.start() == 2
    assert "SPACK_ROOT: there is no program" in capsys.readouterr().err


def test_every_external_that_is_missing_is_named(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    (site.checkout / "spack_env" / "sites" / "here" / "packages.yaml").write_text(
        "packages:\n  openmpi: {externals: [{spec: openmpi@4, prefix: /nowhere}]}\n"
        "  zlib: {externals: [{spec: zlib@1, prefix: /neither}]}\n",
        encoding="utf-8",
    )
    assert site.start() == 2
    said = capsys.readouterr().err
    assert "openmpi@4: there is no /nowhere; zlib@1: there is no /neither" in said
    assert "packages.yaml:1:" in said


@pytest.mark.parametrize(("says", "problems"), [("4.1.4", 0), ("4.1.40", 1), ("14.1.4", 1)])
def test_a_compiler_of_another_version_than_the_scope_says_is_found(says: str, problems: int, tmp_path: Path) -> None:
    program = tmp_path / "mpicc"
    program.write_text(f"#!/bin/sh\necho 'mpicc: Open MPI {says} (Language: C)'\n", encoding="utf-8")
    program.chmod(0o755)
    found = list(version_problems("openmpi@4.1.4", program, [["--showme:version"]]))
    assert len(found) == problems


def test_a_clone_is_the_pinned_commit_or_nothing(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "file").write_text("1", encoding="utf-8")
    commit = repository(source)
    (tmp_path / "target.part").mkdir()  # of a start that was interrupted
    with pytest.raises(InputError, match=f"tag v1 is commit {commit}, {'0' * 40} is expected"):
        clone({"tag": "v1", "commit": "0" * 40}, str(source), target)
    assert not target.exists()
    clone({"tag": "v1", "commit": commit}, str(source), target)
    assert (target / "file").is_file()


def test_a_program_that_misses_a_library_with_an_empty_environment_is_found(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    library, program = tmp_path / "libpart.so", tmp_path / "bin" / "program"
    compile_ = ["cc", "-x", "c", "-"]
    subprocess.run([*compile_, "-shared", "-o", library], input=b"int part(void) { return 0; }", check=True)
    main_ = b"int part(void); int main(void) { return part(); }"
    subprocess.run([*compile_, "-x", "none", library, f"-Wl,-rpath,{tmp_path}", "-o", program], input=main_, check=True)
    assert not list(unresolved_libraries(tmp_path))
    library.unlink()
    assert [(path.name, name) for path, name in unresolved_libraries(tmp_path)] == [("program", str(library))] or [
        name for _, name in unresolved_libraries(tmp_path)
    ] == ["libpart.so"]


def test_an_arm_with_two_hdf5_is_refused(tmp_path: Path) -> None:
    specs = dict([spec("a", "a", "1", ("openmpi", "o"), ("hdf5", "h")), spec("b", "b", "1", ("hdf5", "i"))])
    specs.update([spec("hdf5", "h", "1.14.6"), spec("hdf5", "i", "1.10.8"), spec("openmpi", "o")])
    prefixes = {}
    (tmp_path / "view" / "bin").mkdir(parents=True)
    for hash_, each in specs.items():
        prefixes[hash_] = str(tmp_path / "store" / hash_)
        Path(prefixes[hash_], "bin").mkdir(parents=True)
        Path(prefixes[hash_], "bin", each["name"]).touch()
    for hash_ in ("a" * 32, "b" * 32):
        name = specs[hash_]["name"]
        (tmp_path / "view" / "bin" / name).symlink_to(Path(prefixes[hash_], "bin", name))
    with pytest.raises(ValueError, match=r"more than one hdf5: hdf5@1\.\d+\.\d+\+shared, hdf5@1"):
        arms_record({"concrete_specs": specs}, prefixes, {"arm": tmp_path / "view"})


def missing_for_the_real_spack() -> str:
    """What is missing to try it out; empty: nothing."""
    if not os.access(Path(os.environ.get("SPACK_ROOT", "/nowhere"), "bin", "spack"), os.X_OK):
        return "Spack 1.1: set SPACK_ROOT"
    if not Path(os.environ.get("IOGAUGE_SPACK_PACKAGES_GIT", "/nowhere"), "repos", "spack_repo", "builtin").is_dir():
        return "a clone of spack-packages: set IOGAUGE_SPACK_PACKAGES_GIT to its folder"
    return ""


@pytest.mark.skipif(bool(missing_for_the_real_spack()), reason=f"needs {missing_for_the_real_spack()}")
@pytest.mark.parametrize("stack", ["tools", "hdf5"])
def test_the_real_spack_takes_the_committed_lock_as_it_is(stack: str, tmp_path: Path) -> None:
    """All roots are concrete to it; asking for them writes neither into the home nor into the lock."""
    work, home = tmp_path / "work", tmp_path / "home"
    home.mkdir()
    work.mkdir()
    (work / "packages").symlink_to(os.environ["IOGAUGE_SPACK_PACKAGES_GIT"])
    setup = Setup(CHECKOUT, work, "local", (stack,), spack=Path(os.environ["SPACK_ROOT"]))
    copy_definition(setup)
    write_scope(setup)
    environment = setup.environment(stack)
    shutil.copytree(CHECKOUT / "spack_env" / "envs" / "local" / stack, environment)
    committed = {file: file.read_bytes() for file in environment.iterdir()}
    variables = {**spack_variables(setup), "HOME": str(home), "IOGAUGE_VIEWS": str(environment / "views")}
    variables["SPACK_PYTHON"] = os.environ.get("SPACK_PYTHON", sys.executable)
    command = spack_command(setup, environment, "find", "--show-concretized", "--no-groups")
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    roots = json.loads((environment / "spack.lock").read_text(encoding="utf-8"))["roots"]
    assert re.search(rf"{len(roots)} root specs", done.stdout + done.stderr), done.stdout + done.stderr
    assert {file: file.read_bytes() for file in committed} == committed
    assert not any(home.iterdir())
