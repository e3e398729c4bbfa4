"""The ReFrame tests, really run on a copy of the checkout: axes, bands, defects, and what ReFrame's own report keeps."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import CHECKOUT, PATIENCE_SECONDS, data_left

REFRAME = Path(sys.executable).parent / "reframe"
SMALL = ("-S", "ParticlesCheck.particles=65536", "-S", "SegmentsCheck.block_bytes=2097152", "-S", "repeats=2")
CC_MEMORY = (
    "ParticlesCheck %nodes=1 %ranks_per_node={ranks} %file_system={fs} %locality=CC %dimensions=1 %selection=full"
)

needs_two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")


def copy_of_site(folder: Path) -> Path:
    """What a site has, to change."""
    copy = folder / "a site"
    for name in ("reframe_checks", "site_configs", "reference_values", "kernels"):
        shutil.copytree(CHECKOUT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def use_built_kernels(site: Path, kernels: Path) -> None:
    """Where the build is not what is tested: a night's worth of seconds saved."""
    names = " ".join(str(kernels / name) for name in ("blocks", "metadata", "particles", "segments", "tiles"))
    (site / "kernels" / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(kernels NONE)\n"
        f"file(COPY {names} DESTINATION ${{CMAKE_BINARY_DIR}})\n"
    )


@pytest.fixture
def site(tmp_path: Path, kernels: Path) -> Path:
    copy = copy_of_site(tmp_path)
    use_built_kernels(copy, kernels)
    return copy


def file_of_check(site: Path, name: str) -> Path:
    """The file of the check that a name begins with: to read all of them takes seconds."""
    check = name[: name.index("Check")] + "Check"
    (file,) = (path for path in (site / "reframe_checks").glob("*.py") if f"class {check}(" in path.read_text())
    return file


def reframe(site: Path, *arguments: str, name: str = "", **environment: str) -> tuple[Any, list[dict[str, Any]]]:
    """Run ReFrame on a copy; returns the process and the report's entries of tests (not of builds)."""
    run = site.parent / "run"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir()
    checks = file_of_check(site, name) if name else site / "reframe_checks"
    command = [REFRAME, "-C", site / "site_configs" / "local.py", "-c", checks, "--prefix", run]
    command += ["--report-file", run / "report.json", *arguments]
    if name:
        command += ["-n", name.replace(" %", ".*") + "$"]
    done = subprocess.run(
        [*map(str, command)],
        cwd=run,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, "IOGAUGE_HOME": str(site.parent / "home"), **environment},
    )
    report = run / "report.json"
    entries = json.loads(report.read_text())["runs"][0]["testcases"] if report.exists() else []
    return done, [entry for entry in entries if not entry["fixture"]]


def one(entries: list[dict[str, Any]]) -> dict[str, Any]:
    assert len(entries) == 1, [entry["name"] for entry in entries]
    return entries[0]


def values(entry: dict[str, Any]) -> dict[str, list[Any]]:
    """Performance variable to value, reference, lower, upper, unit, result."""
    return {name.rpartition(":")[2]: value for name, value in (entry["perfvalues"] or {}).items()}


def assert_no_rate(entry: dict[str, Any]) -> None:
    """ReFrame itself lists a failed test's variables, without a value."""
    assert all(value[0] is None for value in values(entry).values()), values(entry)


@pytest.mark.alone
def test_the_nightly_suite_is_listed_at_little_cost_and_crosses_every_axis(site):
    """In processor time: twelve times what ReFrame needs to say its version was measured."""

    def cost(*arguments: str) -> tuple[float, Any]:
        begin = os.times()
        done, _ = reframe(site, *arguments)
        end = os.times()
        return end.children_user - begin.children_user, done

    floor, _ = cost("--version")
    listing, done = cost("-t", "nightly", "-l")
    assert listing < 30 * floor, (listing, floor)
    assert done.returncode == 0
    cases = [line for line in done.stdout.splitlines() if line.startswith("- ")]
    ranks = (1, 2) if len(os.sched_getaffinity(0)) > 1 else (1,)
    for check in ("MetadataCheck", "ParticlesCheck", "SegmentsCheck"):
        for file_system in ("disk", "memory"):
            for number in ranks:
                axes = f"- {check} %nodes=1 %ranks_per_node={number} %file_system={file_system} "
                assert any(case.startswith(axes) for case in cases), axes
    assert f"Found {len(cases)} check(s)" in done.stdout


def test_a_dry_run_names_every_case_without_a_band(site):
    name = "particles/write/memory/1x1/CC/hdf5"
    bands = {name: BAND, name.replace("write", "read"): BAND}
    write_bands(site, bands)
    done, entries = reframe(site, "-t", "nightly", "--dry-run", "-S", "require_reference=1")
    assert done.returncode == 1
    covered = [entry for entry in entries if entry["band_status"] == "found"]
    assert [entry["band_key"] for entry in covered] == [name]
    assert covered[0]["result"] == "pass"
    for entry in entries:
        if entry not in covered:
            assert (entry["band_status"], entry["result"]) == ("missing", "fail")
            assert "no reference value found" in entry["fail_reason"]


BAND = {"observed": {"reference": 1e6, "lower": -0.1, "upper": 0.1, "unit": "MiB/s"}, "from": {"method": "test"}}


def write_bands(site: Path, bands: dict[str, Any]) -> None:
    document = {"schema": "iogauge.bands/1", "site": "local", "bands": bands}
    (site / "reference_values" / "local.yaml").write_text(json.dumps(document))  # JSON is YAML


def without_portable_bands(site: Path) -> None:
    (site / "reference_values" / "portable.yaml").write_text(
        "schema: iogauge.portable/1\nfrom: {method: none}\nbands: []\n"
    )


def test_one_case_is_built_and_runs_with_sizes_of_its_own_and_the_report_keeps_everything(tmp_path):
    site = copy_of_site(tmp_path)
    without_portable_bands(site)
    done, entries = reframe(site, "-r", *SMALL, name=CC_MEMORY.format(ranks=1, fs="memory"))
    assert done.returncode == 0, done.stdout
    entry = one(entries)
    assert (entry["verdict"], entry["band_status"]) == ("no reference", "missing")
    assert entry["band_key"] == "particles/write/memory/1x1/CC/hdf5"
    assert len(entry["measurements"]) == 6
    assert all(len(m["repeats"]) == 2 and m["pattern"]["particles"] == 65536 for m in entry["measurements"])
    found = values(entry)
    assert {"write_observed", "write_raw", "read_observed", "read_raw", "write_to_mpiio", "read_to_posix"} <= set(found)
    m = entry["measurements"][0]
    best = max(m["logical_bytes"] / 2**20 / repeat["total_seconds"] for repeat in m["repeats"])
    assert found["write_observed"][0] == pytest.approx(best)
    assert found["write_observed"][4] == "MiB/s"
    assert data_left(site.parent / "run") == []


METADATA_MEMORY = "MetadataCheck %nodes=1 %ranks_per_node=1 %file_system=memory %place="


def test_operations_are_counted_and_compared(site):
    key = "metadata/file-stat/memory/1x1/private/posix"
    write_bands(site, {key: {**BAND, "observed": {**BAND["observed"], "unit": "operations/s", "lower": -1 + 1e-9}}})
    done, entries = reframe(site, "-r", "-S", "objects=10", *SMALL[-2:], name=METADATA_MEMORY + "private")
    assert done.returncode == 0, done.stdout
    entry = one(entries)
    assert (entry["band_key"], entry["band_status"]) == (
        key.replace("stat", "create").replace("file", "dir"),
        "missing, found",
    )
    found = values(entry)
    assert len(found) == 12 * 3
    assert {value[4] for name, value in found.items() if not name.endswith("to_shared")} == {"operations/s"}
    assert found["file-stat_observed"][1] == 1e6
    assert all(m["operations"] > 0 and m["logical_bytes"] == 0 for m in entry["measurements"])
    assert data_left(site.parent / "run") == []


def test_a_call_that_lies_is_invalid_and_has_no_rate(site, faults):
    preload = ("-S", f"env_vars=LD_PRELOAD:{faults},FAULT_LIE:unlink")
    done, entries = reframe(site, "-r", "-S", "objects=10", *preload, name=METADATA_MEMORY + "shared")
    assert done.returncode == 1
    entry = one(entries)
    assert (entry["verdict"], entry["fail_phase"]) == ("invalid", "sanity")
    assert "exit code 3: file-remove: " in entry["fail_reason"]
    assert "expected 0 names, found 1: renamed-0-2 does not belong there" in entry["fail_reason"]
    assert_no_rate(entry)


def test_a_band_that_is_missed_fails_the_case_and_keeps_its_rate(site):
    write_bands(site, {"particles/write/memory/1x1/CC/hdf5": BAND})
    done, entries = reframe(site, "-r", *SMALL, name=CC_MEMORY.format(ranks=1, fs="memory"))
    assert done.returncode == 1
    entry = one(entries)
    assert (entry["result"], entry["fail_phase"], entry["verdict"]) == ("fail", "performance", "regressed")
    assert entry["band_status"] == "found, missing"
    assert values(entry)["write_observed"][1] == 1e6
    assert values(entry)["write_observed"][0] > 0


@needs_two_cores
def test_two_ranks_on_one_core_are_invalid_and_have_no_rate(site):
    """What the CLAIX study learned too late, really produced: the launcher is confined to one core."""
    config = site / "site_configs" / "local.py"
    text = config.read_text()
    assert "if ranks <= cores" in text
    config.write_text(text.replace("if ranks <= cores", ""))
    core = min(os.sched_getaffinity(0))
    name = CC_MEMORY.format(ranks=2, fs="memory")
    binding = {"OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        done, entries = reframe(site, "-r", *SMALL, name=name, **binding)
    finally:
        os.sched_setaffinity(0, before)
    assert done.returncode == 1
    entry = one(entries)
    assert (entry["verdict"], entry["fail_phase"]) == ("invalid", "sanity")
    assert f"2 ranks (0-1) share core {core} of {os.uname().nodename}" in entry["fail_reason"]
    assert_no_rate(entry)


def test_fewer_hosts_than_asked_are_invalid_and_have_no_rate(site):
    """Two nodes are asked for where there is one: mpirun starts both ranks on it."""
    config = site / "site_configs" / "local.py"
    assert '"nodes": [1]' in config.read_text()
    config.write_text(config.read_text().replace('"nodes": [1]', '"nodes": [2]'))
    name = CC_MEMORY.format(ranks=1, fs="memory").replace("nodes=1", "nodes=2")
    done, entries = reframe(site, "-r", *SMALL, name=name, OMPI_MCA_rmaps_base_oversubscribe="1")
    assert done.returncode == 1
    entry = one(entries)
    assert entry["verdict"] == "invalid"
    assert f"2 ranks run on 1 hosts ({os.uname().nodename}), 2 were asked for" in entry["fail_reason"]
    assert_no_rate(entry)


def test_a_changed_byte_is_invalid_and_has_no_rate(site, faults):
    preload = ("-S", f"env_vars=LD_PRELOAD:{faults},FAULT_FLIP_BYTE:1")
    done, entries = reframe(site, "-r", *SMALL, *preload, name=CC_MEMORY.format(ranks=1, fs="disk"))
    assert done.returncode == 1
    entry = one(entries)
    assert (entry["verdict"], entry["fail_phase"]) == ("invalid", "sanity")
    assert "exit code 3: data differ: dataset Timestep_" in entry["fail_reason"]
    assert_no_rate(entry)
    assert data_left(site.parent / "run") == []


def test_a_read_from_the_page_cache_is_said_to_be_one_and_has_no_band(site, faults):
    without_portable_bands(site)
    name = "particles/write/disk/1x1/CC/hdf5"
    write_bands(site, {name.replace("write", "read"): BAND})
    preload = ("-S", f"env_vars=LD_PRELOAD:{faults},FAULT_KEEP_CACHE:1")
    scratch = site.parent / "scratch"
    scratch.mkdir()
    kind = subprocess.run(["stat", "-f", "-c", "%T", scratch], capture_output=True, text=True, check=True)
    if kind.stdout.strip() == "tmpfs":
        pytest.skip("needs a temporary folder on a disk: what is in memory is no cached storage")
    case = CC_MEMORY.format(ranks=1, fs="disk")
    _, entries = reframe(site, "-r", *SMALL, *preload, name=case, IOGAUGE_SCRATCH=str(scratch))
    entry = one(entries)
    assert entry["result"] == "pass", "a band of storage must not be held against the cache"
    row = next(row for row in entry["judgement"]["rows"] if row["operation"] == "read")
    assert (row["band_status"], row["verdict"], row["cached_fraction"]) == ("cached", "no reference", 1.0)
    _, entries = reframe(site, "-r", *SMALL, name=case, IOGAUGE_SCRATCH=str(scratch))
    assert one(entries)["verdict"] == "regressed", "uncached, the same band does apply"


def test_a_missing_file_system_ends_the_case_before_the_kernel(site):
    done, entries = reframe(
        site, "-r", *SMALL, name=CC_MEMORY.format(ranks=1, fs="disk"), IOGAUGE_SCRATCH="/no/such/folder"
    )
    assert done.returncode == 1
    assert "/no/such/folder is not a folder here" in one(entries)["fail_reason"]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('"type": "memory"', '"type": "memroy"', "file_systems.memory.type"),
        ('"nodes": [1]', '"node": [1]', "node: unknown key; allowed: checks, cpus_per_node, file_systems"),
    ],
)
def test_a_broken_site_configuration_ends_reframe_with_exit_code_2(site, old, new, text):
    config = site / "site_configs" / "local.py"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))
    done, _ = reframe(site, "-r", "-t", "nightly")
    assert done.returncode == 2
    line = next(i for i, text in enumerate(config.read_text().splitlines(), 1) if new in text)
    assert f"local.py:{line}:" in done.stderr + done.stdout
    assert text in done.stderr + done.stdout


def verdicts_when_quiet(site: Path, *arguments: str) -> dict[str, str]:
    """Verdict and reason of write and read in memory; run again while neighbours make every pair too noisy to judge."""
    found: dict[str, tuple[str, str]] = {}
    for _ in range(6):
        _, entries = reframe(site, "-r", *arguments, name=CC_MEMORY.format(ranks=1, fs="memory"))
        rows = [row for row in one(entries)["judgement"]["rows"] if row["role"] == "main"]
        found |= {row["operation"]: (row["verdict"], row["reason"]) for row in rows if row["verdict"] != "too noisy"}
        if len(found) == 2:
            break
    return found


@pytest.mark.alone
def test_hdf5_made_30_percent_slower_is_found_on_the_first_night(site, faults):
    """The portable bands: clean they hold, and with H5Dwrite and H5Dread at 0.7 of their speed they do not."""
    clean = verdicts_when_quiet(site)
    assert {operation: verdict for operation, (verdict, _) in clean.items()} == {"write": "pass", "read": "pass"}, clean
    slow = verdicts_when_quiet(site, "-S", f"env_vars=LD_PRELOAD:{faults},FAULT_SLOW_HDF5:0.7")
    assert {operation: verdict for operation, (verdict, _) in slow.items()} == {
        "write": "regressed",
        "read": "regressed",
    }, slow
    assert all("HDF5 to" in reason and "raw" in reason for _, reason in slow.values())
