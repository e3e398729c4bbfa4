"""The checks of segments and of h5perf_serial, really run: the names that they announce, the evidence, the skip line."""

from __future__ import annotations

import shutil

import pytest
from conftest import data_left
from test_reframe_checks import one, reframe, site, values

__all__ = ["site"]  # a fixture

SMALL = ("-S", "SegmentsCheck.block_bytes=1048576", "-S", "SegmentsCheck.repeats=1", "-S", "SegmentsCheck.warmup=0")


def test_every_pattern_is_measured_under_the_name_that_it_announces(site):
    """What --dry-run looks bands up by is the key of the record; no two patterns share one."""
    names = "strided|square-interleaved|array-across|array-growing|driver-split"
    _, entries = reframe(site, "-r", *SMALL, name=f"SegmentsCheck.*ranks_per_node=1.*memory.*access=({names})")
    assert len(entries) == 5
    keys = [row["key"] for entry in entries for row in entry["judgement"]["rows"] if row["operation"] == "write"]
    assert len(set(keys)) == len(keys)
    assert {entry["band_key"] for entry in entries} == {
        f"segments/write/memory/1x1/{label}/hdf5"
        for label in (
            "shared-contiguous-strided",
            "shared-interleaved-square",
            "shared-contiguous-3d-order1x2x3",
            "file-per-process-3d-order1x2x3-chunked-growing-extendible",
            "file-per-process-split",
        )
    }
    assert all(entry["band_key"] in keys for entry in entries)


def test_the_older_patterns_keep_their_names(site):
    _, entries = reframe(site, "--dry-run", name="SegmentsCheck.*ranks_per_node=1.*memory.*access=(con|int|file).*")
    labels = {entry["band_key"].split("/")[4] for entry in entries}
    old = {"shared-contiguous", "shared-interleaved", "file-per-process"}
    assert labels == old | {"shared-contiguous-collective", "shared-interleaved-collective"}


@pytest.mark.alone
@pytest.mark.skipif(shutil.which("h5perf_serial") is None, reason="needs h5perf_serial (Debian: hdf5-tools)")
def test_h5perf_serial_runs_in_turn_with_the_kernel_and_is_evidence(site):
    name = "H5perfSerialBesideCheck.*memory.*access=across"
    done, entries = reframe(site, "-r", "-S", "H5perfSerialBesideCheck.rounds=2", name=name)
    assert done.returncode == 0, done.stdout
    entry = one(entries)
    assert entry["band_key"] == "segments/write/memory/1x1/file-per-process-3d-order1x2x3-sec2/hdf5"
    mains = [row for row in entry["judgement"]["rows"] if row["role"] == "main"]
    assert [row["operation"] for row in mains] == ["write", "read"]
    for row in mains:
        assert len(row["observed_repeats"]) == 6
        pairs = {ratio["name"]: ratio["pairs"] for ratio in row["ratios"] if "h5perf_serial" in ratio["name"]}
        assert set(pairs) == {f"{i}_to_h5perf_serial{raw}" for i in ("hdf5", "posix") for raw in ("", "_raw")}
        assert all(len(found) == 2 for found in pairs.values())
        assert values(entry)[f"{row['operation']}_hdf5_to_h5perf_serial"][0] > 0
    assert data_left(site.parent / "run") == []


def test_without_the_program_the_case_is_skipped_and_says_what_is_missing(site):
    options = ("-S", "H5perfSerialBesideCheck.program=no-such-program")
    done, _ = reframe(site, "--dry-run", *options, name="H5perfSerialBesideCheck.*memory.*access=line")
    assert "needs no-such-program in PATH (Debian: hdf5-tools)" in done.stdout
    assert "1 skipped" in done.stdout
