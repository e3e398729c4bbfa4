"""The checks of upstream benchmarks: listed once without their programs, a site's own configurations, and real runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import CHECKOUT, PATIENCE_SECONDS, data_left
from test_axes import UPSTREAM
from test_reframe_checks import SMALL, copy_of_site, one, reframe, use_built_kernels, values

from iogauge.adapters.upstream import load_launch
from iogauge.errors import Refusal

#: The file of a check, by its name.
CHECKS = {
    "BenchioCheck": "benchio",
    "FileFormatComparisonCheck": "file_format_comparison",
    "H5benchCheck": "h5bench",
    "H5perfCheck": "h5perf",
    "H5perfSerialCheck": "h5perf_serial",
    "Hdf5IotestCheck": "hdf5_iotest",
    "IorCheck": "ior",
}

#: Where the programs are, for these tests: a folder with all of them; without, PATH.
PROGRAMS = os.environ.get("IOGAUGE_UPSTREAM_PROGRAMS", "")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return copy_of_site(tmp_path)


def only(site: Path, *names: str) -> None:
    """Of all checks: ReFrame lists the sooner."""
    for path in (site / "reframe_checks").glob("*.py"):
        if path.stem not in ("__init__", *names):
            path.unlink()


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
    only(site, *CHECKS.values())
    names = [argument for check in UPSTREAM for argument in ("-n", check)]
    # Debian's h5perf_serial may be there.
    done, entries = reframe(site, "--dry-run", *names, "-S", "H5perfSerialCheck.program=/no/such", **nowhere(site))
    assert sorted(entry["name"].split()[0] for entry in entries) == sorted(UPSTREAM)
    assert {entry["result"] for entry in entries} == {"skip"}
    assert all("nightly" not in entry["tags"] for entry in entries), "the night is not told each time"
    for needed in (
        "needs ior in PATH or the Spack arm (Spack: ior +hdf5), named in the environment's extras (programs: {ior: PATH})",
        "needs runner.py, python3 in PATH or the Spack arm (asriniket/File-Format-Testing, and as fft-python a Python with",
    ):
        assert needed in done.stdout


def test_a_program_is_found_by_a_variable_and_by_the_environments_extras(site):
    only(site, "ior", "benchio")
    folder = site.parent / "bin"
    folder.mkdir()
    for name in ("ior", "benchio"):
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    config = site / "site_configs" / "local.py"
    old = '"extras": {**common.darshan(), **common.kernels()}'
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, f'"extras": {{"programs": {{"benchio": "{folder}"}}}}'))
    done, _ = reframe(site, "-l", "-S", f"IorCheck.program={folder}", **nowhere(site))
    assert done.stdout.count("- IorCheck") > 10
    assert done.stdout.count("- BenchioCheck") > 10


def test_a_program_that_fails_makes_the_case_invalid_with_its_own_words(site, kernels):
    only(site, "ior")
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
    assert data_left(site.parent / "run") == []


def test_a_launch_that_hangs_is_ended_and_there_are_no_more(tmp_path):
    """As an IOR did whose first rank had ended with exit code 1: mpirun waited for ever."""
    case = tmp_path / "case"
    case.mkdir()
    script = """. {}/reframe_checks/src/upstream.sh
iogauge_launch 0 60 'some file.csv:b' bash -c 'echo said; echo 1 > "some file.csv"'
iogauge_launch 1 1 '' bash -c 'echo begun; exec sleep 3600'
iogauge_launch 2 60 '' touch never
"""
    environment = {**os.environ, "IOGAUGE_CASE_DIR": str(case)}
    subprocess.run(
        ["bash", "-c", script.format(CHECKOUT)], cwd=tmp_path, env=environment, check=False, timeout=PATIENCE_SECONDS
    )
    first = load_launch(tmp_path, 0, name="first", results=["some file.csv", "b"])
    assert (first.stdout, first.exit_code, dict(first.texts)) == ("said\n", 0, {"some file.csv": "1\n"})
    hung = load_launch(tmp_path, 1, name="write 1")
    assert (hung.stdout, hung.exit_code) == ("begun\n", 124)
    with pytest.raises(Refusal, match="write 1: ior was ended after its time limit"):
        hung.check("ior")
    assert load_launch(tmp_path, 2, name="later").exit_code is None
    assert not (case / "never").exists()


@pytest.mark.parametrize(
    ("check", "own", "why"),
    [
        ("IorCheck", "-w -D 3", "ior's command line: -D: stops early"),
        ("BenchioCheck", "8 8 8 weak hdf5 unstriped", "benchio's arguments: 'weak': taken for global"),
        ("Hdf5IotestCheck", "FILE", "own.txt:1: 'no ini': 'key = value' is expected"),
        ("H5benchCheck", "FILE", "own.txt:1: not JSON"),
        ("H5benchCheck", "/no/such/file", "cannot be read"),
        ("FileFormatComparisonCheck", "FILE", "own.txt: Input should be"),
    ],
)
def test_a_wrong_configuration_of_a_sites_own_ends_reframe_with_exit_code_2(site, check, own, why):
    only(site, CHECKS[check])
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
    "h5perf_serial": ("H5perfSerialCheck %memory %access=chunked", (), "h5perf_serial"),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_real_program_is_run_and_judged_under_the_name_that_it_announces(site, kernels, name):
    case, options, executable = RUNS[name]
    where = program(executable)
    only(site, name)
    use_built_kernels(site, kernels)
    check = case.split()[0]
    case = case.replace(" %", " %ranks_per_node=1 %", 1)
    done, entries = reframe(site, "-r", *SMALL[-2:], *options, "-S", f"{check}.program={where}", name=case)
    assert done.returncode == 0, done.stdout
    entry = one(entries)
    mains = {row["key"] for row in entry["judgement"]["rows"] if row["role"] == "main"}
    assert mains == set(entry["series_keys"])
    assert all(m["program"]["name"].startswith(name) for m in entry["measurements"])
    assert data_left(site.parent / "run") == []


def test_the_original_file_format_comparison_is_run_as_it_is_with_a_yaml_of_ones_own(site, kernels):
    """IOGAUGE_UPSTREAM_FFT is its checkout, IOGAUGE_UPSTREAM_FFT_PYTHON a Python with zarr before 3 and the rest."""
    checkout, python = (os.environ.get(f"IOGAUGE_UPSTREAM_FFT{name}", "") for name in ("", "_PYTHON"))
    if not (checkout and python):
        pytest.skip(
            "needs File-Format-Testing: its checkout in IOGAUGE_UPSTREAM_FFT, a Python in IOGAUGE_UPSTREAM_FFT_PYTHON"
        )
    only(site, "file_format_comparison")
    use_built_kernels(site, kernels)
    own = site.parent / "own"
    own.mkdir()
    for number, elements in enumerate(([256], [16, 4, 8])):
        text = f"FILE_NAME: some arrays {number}\nNUMBER_DATASETS: 3\nNUMBER_ELEMENTS: {elements}\nCHUNK_SIZE: 0\n"
        (own / f"{number}.yaml").write_text(text)
    options = [f"FileFormatComparisonCheck.{name}={value}"
               for name, value in (("program", checkout), ("python", python), ("own", own))]  # fmt: skip
    arguments = [argument for option in options for argument in ("-S", option)]
    before = sorted(Path(checkout).rglob("*"))
    done, entries = reframe(site, "-r", *arguments, name="FileFormatComparisonCheck %memory %case=own")
    assert done.returncode == 0, done.stdout
    entry = one(entries)
    assert {row["key"] for row in entry["judgement"]["rows"]} == set(entry["series_keys"])
    assert len(entry["series_keys"]) == 2 * 8
    assert len(values(entry)) == 2 * 2 * 8, "formats and patterns have variables of their own"
    assert all(len(m["repeats"]) == 5 and m["software"]["packages"]["zarr"] for m in entry["measurements"])
    assert sorted(Path(checkout).rglob("*")) == before
    assert data_left(site.parent / "run") == []
