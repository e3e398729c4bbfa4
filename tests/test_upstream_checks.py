"""The checks of upstream benchmarks: listed once without their programs, a site's own configurations, and real runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from test_axes import UPSTREAM
from test_reframe_checks import SMALL, copy_of_site, one, reframe, use_built_kernels

#: Where the programs are, for these tests: a folder with all of them; without, PATH.
PROGRAMS = os.environ.get("IOGAUGE_UPSTREAM_PROGRAMS", "")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """With these checks only: they are listed sooner."""
    site = copy_of_site(tmp_path)
    for path in (site / "reframe_checks").glob("*.py"):
        if path.stem not in ("__init__", *(f"{name}" for name in RUNS)):
            path.unlink()
    return site


def program(name: str) -> str:
    """The program's path; skips the test, by name, where it is not installed."""
    found = shutil.which(name, path=PROGRAMS or None)
    if found is None:
        pytest.skip(f"needs {name} in PATH, or in the folder IOGAUGE_UPSTREAM_PROGRAMS")
    return found


def nowhere(site: Path) -> dict[str, str]:
    """A PATH without the programs: what else ReFrame needs is linked there."""
    folder = site.parent / "path"
    folder.mkdir(exist_ok=True)
    for name in ("bash", "sh", "cat", "uname", "stat", "mpirun", "df", "env", "git"):
        found = shutil.which(name)
        if found and not (folder / name).exists():
            (folder / name).symlink_to(found)
    return {"PATH": str(folder)}


def test_a_benchmark_that_is_not_there_is_listed_once_and_says_what_it_needs(site):
    names = [argument for check in UPSTREAM for argument in ("-n", check)]
    done, _ = reframe(site, "-l", *names, **nowhere(site))
    listed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("- ")]
    assert sorted(listed) == sorted(UPSTREAM)
    done, entries = reframe(site, "--dry-run", "-n", "IorCheck", **nowhere(site))
    assert (
        "needs ior in PATH (Spack: ior +hdf5), named in the environment's extras (programs: {ior: PATH})" in done.stdout
    )
    assert one(entries)["result"] == "skip"
    done, _ = reframe(site, "-l", "-t", "^nightly$", *names, **nowhere(site))
    assert "Found 0 check(s)" in done.stdout, "the night is not told each time"


def test_a_program_is_found_by_a_variable_and_by_the_environments_extras(site):
    folder = site.parent / "bin"
    folder.mkdir()
    for name in ("ior", "benchio"):
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    done, _ = reframe(site, "-l", "-n", "IorCheck", "-S", f"IorCheck.program={folder}", **nowhere(site))
    assert done.stdout.count("- IorCheck") > 10
    config = site / "site_configs" / "local.py"
    old = '"extras": common.darshan()'
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, f'"extras": {{"programs": {{"benchio": "{folder}"}}}}'))
    done, _ = reframe(site, "-l", "-n", "BenchioCheck", **nowhere(site))
    assert done.stdout.count("- BenchioCheck") > 10


def test_a_program_that_fails_makes_the_case_invalid_with_its_own_words(site, kernels):
    use_built_kernels(site, kernels)
    folder = site.parent / "bin"
    folder.mkdir()
    (folder / "ior").write_text("#!/bin/sh\necho 'ERROR: no such thing, (ior.c:1)' >&2\nexit 3\n")
    (folder / "ior").chmod(0o755)
    done, entries = reframe(
        site,
        "-r",
        "-S",
        f"IorCheck.program={folder}",
        name="IorCheck %nodes=1 %ranks_per_node=1 %memory %access=shared",
    )
    assert done.returncode == 1
    entry = one(entries)
    assert entry["verdict"] == "invalid"
    assert "write 1 through hdf5: ior ended with exit code 3: ERROR: no such thing, (ior.c:1)" in entry["fail_reason"]
    assert len(list(Path(entry["stagedir"]).glob("launch-*.out"))) == 1, "nothing is launched after a failure"
    assert not list(Path("/dev/shm").glob("iogauge-case.*"))


@pytest.mark.parametrize(
    ("check", "own", "why"),
    [
        ("IorCheck", "-w -D 3", "ior's command line: -D: stops early"),
        ("BenchioCheck", "8 8 8 weak hdf5 unstriped", "benchio's arguments: 'weak': taken for global"),
        ("Hdf5IotestCheck", "FILE", "own.txt:1: 'no ini': 'key = value' is expected"),
        ("H5benchCheck", "FILE", "own.txt:1: not JSON"),
        ("H5benchCheck", "/no/such/file", "cannot be read"),
    ],
)
def test_a_wrong_configuration_of_a_sites_own_ends_reframe_with_exit_code_2(site, check, own, why):
    written = site.parent / "own.txt"
    written.write_text("no ini\n")
    own = own.replace("FILE", str(written))
    done, _ = reframe(site, "-l", "-n", check, "-S", f"{check}.own={own}")
    assert done.returncode == 2
    assert why in done.stdout + done.stderr


RUNS = {
    "ior": ("IorCheck %memory %access=shared-collective", ("-S", "IorCheck.block_bytes=4194304"), "ior"),
    "hdf5_iotest": ("Hdf5IotestCheck %memory %cases=one", (), "hdf5_iotest"),
    "benchio": ("BenchioCheck %memory %case=shared", (), "benchio"),
    "h5bench": ("H5benchCheck %memory %case=CC-1d", (), "h5bench_write"),
    "h5perf": ("H5perfCheck %memory %access=contiguous", (), "h5perf"),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_real_program_is_run_and_judged_under_the_name_that_it_announces(site, kernels, name):
    case, options, executable = RUNS[name]
    where = program(executable)
    use_built_kernels(site, kernels)
    check = case.split()[0]
    case = case.replace(" %", " %ranks_per_node=1 %", 1)
    done, entries = reframe(site, "-r", *SMALL[-2:], *options, "-S", f"{check}.program={where}", name=case)
    assert done.returncode == 0, done.stdout
    entry = one(entries)
    mains = {row["key"] for row in entry["judgement"]["rows"] if row["role"] == "main"}
    assert mains == set(entry["series_keys"])
    assert all(m["program"]["name"].startswith(name) for m in entry["measurements"])
    assert not list(Path("/dev/shm").glob("iogauge-case.*"))
