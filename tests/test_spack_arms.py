"""Spack arms in the checks: programs come from the arm that the environment chooses, with a hash, or it is said why not."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from samples import case, make_night
from test_reframe_checks import CC_MEMORY, SMALL, copy_of_site, one, reframe, use_built_kernels, without_portable_bands
from test_upstream_checks import nowhere

from iogauge import terminal
from iogauge.errors import InputError
from iogauge.measurement import Measurement
from iogauge.night import case_of
from iogauge.report import render
from iogauge.sites import read_environ
from iogauge.spack import Choice, folder_of, read_arm, read_environment

KERNELS = ("blocks", "metadata", "particles", "segments", "tiles")
HASHES = {"hdf5-1.10": "a" * 32, "hdf5-1.14": "b" * 32}


def install(home: Path, programs: dict[str, Path], site: str = "local", **changes: Any) -> Path:
    """An environment ``hdf5`` with two arms, as spack-setup leaves it: the views link to ``programs``. Returns its folder."""
    folder = folder_of(home, site, "hdf5")
    folder.mkdir(parents=True)
    (folder / "spack.lock").write_text('{"roots": []}')
    arms = {}
    for arm, hash_ in HASHES.items():
        prefix, view = home / "store" / f"iogauge-kernels-{hash_}", folder / "views" / arm
        for path in (prefix / "bin", view / "bin"):
            path.mkdir(parents=True)
        for name, program in programs.items():
            shutil.copy2(program, prefix / "bin" / name)
            (view / "bin" / name).symlink_to(prefix / "bin" / name)
        spec = {"name": "iogauge-kernels", "version": "0.1.0", "hash": hash_, "prefix": str(prefix)}
        arms[arm] = {
            "view": str(view),
            "mpi": "openmpi@4.1.4",
            "hdf5": arm.removeprefix("hdf5-"),
            "darshan": None,
            "vol": None,
            "specs": [spec],
        }
    record = {
        "site": site,
        "stack": "hdf5",
        "spack": {"version": "1.1.0", "commit": "c" * 40},
        "packages": {"tag": "v2026.03.0", "commit": "d" * 40},
        "lock_sha256": hashlib.sha256((folder / "spack.lock").read_bytes()).hexdigest(),
        "used": {"mirrors": [], "buildcaches": [], "upstreams": []},
        "arms": arms,
    }
    (folder / "arms.json").write_text(json.dumps(record | changes))
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    home = tmp_path / "home"
    install(home, {"particles": program, "ior": program})
    return home


def test_an_arm_has_its_programs_with_the_spec_that_they_were_built_from(home):
    arm = read_arm(home, "local", Choice(stack="hdf5", arm="hdf5-1.14"))
    assert str(arm.spec_of(arm.program("particles"))) == f"iogauge-kernels@0.1.0/{'b' * 32}"
    assert arm.program("h5bench_write") is None
    assert arm.spec_of(Path("/bin/sh")) is None


def changed(home: Path, path: str, value: Any) -> None:
    """``arms.json`` with another value at ``a/b/c``; None: without it."""
    file = folder_of(home, "local", "hdf5") / "arms.json"
    document = json.loads(file.read_text())
    *parts, last = path.split("/")
    entry = document
    for part in parts:
        entry = entry[int(part)] if isinstance(entry, list) else entry[part]
    if value is None:
        del entry[last]
    else:
        entry[last] = value
    file.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("path", "value", "key", "why"),
    [
        ("arms/hdf5-1.14/view", "views/x", "arms.hdf5-1.14.view", "an absolute path is expected"),
        ("arms/hdf5-1.14/mpi", None, "arms.hdf5-1.14.mpi", "missing; it is required"),
        ("arms/hdf5-1.14/specs", [], "arms.hdf5-1.14.specs", "at least 1 item"),
        ("arms/hdf5-1.14/specs/0/hash", "b" * 7, "arms.hdf5-1.14.specs.0.hash", "should match pattern"),
        ("arms", {}, "arms", "at least 1 item"),
        ("site", "elsewhere", "site", "'elsewhere', in the folder of 'local'"),
        ("lock_sha256", "0" * 64, "lock_sha256", "which was changed after the installation"),
    ],
)
def test_what_is_wrong_in_arms_json_is_named_with_its_key(home, path, value, key, why):
    changed(home, path, value)
    with pytest.raises(InputError, match=re.escape(why)) as caught:
        read_environment(home, "local", "hdf5")
    assert caught.value.key == key
    assert caught.value.file == folder_of(home, "local", "hdf5") / "arms.json"


def test_an_environment_that_is_not_there_or_half_there_says_what_makes_it(home):
    with pytest.raises(InputError, match=r"not installed; scripts/spack-setup --site local --stack tools makes it"):
        read_environment(home, "local", "tools")
    with pytest.raises(InputError, match=r"no arm 'hdf5-9'; there are: hdf5-1.10, hdf5-1.14"):
        read_arm(home, "local", Choice(stack="hdf5", arm="hdf5-9"))
    file = folder_of(home, "local", "hdf5") / "arms.json"
    file.write_text(file.read_text()[:100])
    with pytest.raises(InputError, match="not JSON"):
        read_environment(home, "local", "hdf5")


@pytest.mark.parametrize(
    ("extras", "key", "why"),
    [
        ({"spak": {}}, "spak", "unknown key; allowed: darshan, darshan_serial, "),
        ({"kernels": "bin"}, "kernels", "an absolute path is expected"),
        ({"spack": {"stack": "hdf5"}}, "spack.arm", "missing; it is required"),
        ({"spack": {"stack": "../hdf5", "arm": "x"}}, "spack.stack", "should match pattern"),
        ({"spack": {"stack": "hdf5", "arm": "x", "view": "/"}}, "spack.view", "unknown key; allowed: arm, stack"),
    ],
)
def test_an_environments_extras_are_checked_with_file_line_and_key(tmp_path, extras, key, why):
    file = tmp_path / "site.py"
    others = '{"name": "other", "extras": {"spack": {"stack": "hdf5", "arm": "a"}}}'
    file.write_text(
        f'site_configuration = {{"environments": [\n{others},\n{{"name": "mine",\n"extras": {extras!r}}}]}}\n'
    )
    with pytest.raises(InputError, match=re.escape(why)) as caught:
        read_environ("mine", extras, file=file)
    assert caught.value.key == f"environments.mine.extras.{key}"
    assert caught.value.line == 4


def test_kernels_that_are_installed_and_an_arm_are_not_both_chosen():
    with pytest.raises(InputError, match="kernels: with spack they come from its arm"):
        read_environ("mine", {"kernels": "/sw/bin", "spack": {"stack": "hdf5", "arm": "x"}})


# --- in ReFrame -------------------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """With particles and IOR only, an environment for each arm, and a spack-setup that does what SETUP says."""
    copy = copy_of_site(tmp_path)
    without_portable_bands(copy)  # rates are not what these tests are about
    for path in (copy / "reframe_checks").glob("*.py"):
        if path.stem not in ("__init__", "particles", "ior"):
            path.unlink()
    (copy / "scripts").mkdir()
    script = copy / "scripts" / "spack-setup"
    script.write_text('#!/bin/sh\necho "$*"\n[ -z "$SETUP" ] || { echo "iogauge: error: $SETUP" >&2; exit 1; }\n')
    script.chmod(0o755)
    config = copy / "site_configs" / "local.py"
    extras = (
        '{"name": "NAME", "cc": "mpicc", "cxx": "", "ftn": "", "extras": {"spack": {"stack": "hdf5", "arm": "ARM"}}},'
    )
    arms = "".join(extras.replace("NAME", arm.replace(".", "_")).replace("ARM", arm) for arm in HASHES)
    text = config.read_text().replace('"environs": ["default"]', '"environs": ["hdf5-1_10", "hdf5-1_14"]')
    config.write_text(text.replace('"environments": [', f'"environments": [{arms}'))
    return copy


def particles(site: Path, *arguments: str, **environment: str) -> tuple[Any, list[dict[str, Any]]]:
    return reframe(site, "-r", *SMALL, *arguments, name=CC_MEMORY.format(ranks=1, fs="memory"), **environment)


def test_each_environment_runs_the_kernels_of_its_arm_and_says_their_hash(site, kernels):
    install(site.parent / "home", {name: kernels / name for name in KERNELS})
    done, entries = particles(site)
    assert done.returncode == 0, done.stdout
    assert sorted(entry["environ"] for entry in entries) == ["hdf5-1_10", "hdf5-1_14"]
    for entry in entries:
        arm = entry["environ"].replace("_", ".")
        spec = f"iogauge-kernels@0.1.0/{HASHES[arm]}"
        assert {m["software"]["spack"] for m in entry["measurements"]} == {spec}
        assert {m["software"]["spack_arm"] for m in entry["measurements"]} == {f"hdf5/{arm}"}
        assert entry["built_by"] == f"Spack hdf5/{arm}: {spec[:-25]}"
        assert case_of(entry).built_by == entry["built_by"]
    # The environ is in a key; what Spack built is not.
    keys = {entry["environ"]: entry["series_keys"] for entry in entries}
    assert keys["hdf5-1_14"] == [f"{key}@hdf5-1_14" for key in keys["hdf5-1_10"]]
    kept = list((site.parent / "run" / "output").rglob("hdf5.*"))
    assert {path.name for path in kept} == {f"hdf5.{end}" for end in ("arms.json", "spack.lock", "out", "err", "code")}
    assert [path.read_text() for path in kept if path.name == "hdf5.out"] == ["--site local --stack hdf5\n"], (
        "once a session"
    )


def test_a_stack_that_cannot_be_installed_fails_its_cases_in_its_own_words(site, kernels):
    install(site.parent / "home", {name: kernels / name for name in KERNELS})
    done, entries = particles(site, "-p", "hdf5-1_10", SETUP="hdf5 could not be fetched")
    assert done.returncode == 1
    assert "the Spack stack hdf5 could not be installed: hdf5 could not be fetched" in done.stdout
    assert one(entries)["result"] == "fail_deps"


def test_without_spack_the_same_cases_are_built_by_cmake_and_say_so(site, kernels):
    use_built_kernels(site, kernels)
    done, entries = particles(site, "-p", "hdf5-1_10", "-S", "spack=0", SETUP="must not be called")
    assert done.returncode == 0, done.stdout
    entry = one(entries)
    assert entry["built_by"] == "CMake, not Spack: spack=0"
    assert {m["software"]["spack"] for m in entry["measurements"]} == {None}


def test_upstream_benchmarks_are_found_in_the_view_and_their_options_still_win(site, home):
    assert home == site.parent / "home"
    done, _ = reframe(site, "-l", "-n", "IorCheck", "-p", "hdf5-1_14", **nowhere(site))
    assert done.stdout.count("- IorCheck") > 10
    done, _ = reframe(site, "-l", "-n", "IorCheck", "-S", "IorCheck.program=/no/such/folder", **nowhere(site))
    assert done.stdout.count("- IorCheck") == 1


# --- what people see --------------------------------------------------------------------------------------------------


def test_report_and_table_say_who_built_what_was_measured(capsys):
    words = "Spack hdf5/hdf5-1.14: iogauge-kernels@0.1.0/bbbbbbb"
    one_case = case("write").model_copy(update={"built_by": words})
    other = case("write", file_system="memory").model_copy(update={"built_by": "CMake, not Spack: spack=0"})
    night = make_night(one_case, other)
    page = render(night)
    assert f"{words} (1 case)" in page
    assert "CMake, not Spack: spack=0" in page
    console = terminal.Console(width=400)
    terminal.print_night(console, night)
    assert f"built by  {words} (1 case)" in capsys.readouterr().out


def test_records_without_a_word_of_spack_are_those_of_another_build(record):
    assert Measurement.model_validate(record).software.spack is None
    record["software"]["spack"] = ""
    with pytest.raises(ValueError, match="at least 1 character"):
        Measurement.model_validate(record)
