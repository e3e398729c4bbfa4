"""The metadata kernel, really run: every count is proven, every lie is found, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import CHECKOUT, MPI_ENVIRONMENT, PATIENCE_SECONDS, needs_root, run_mpi, wait_until

from iogauge import series
from iogauge.adapters.kernel import read_records

SCHEMA = json.loads((CHECKOUT / "kernels" / "measurement.schema.json").read_text())
SMALL = ("--repeats", "2", "--warmup", "0", "--objects", "6")
HDF5 = ("--interface", "hdf5")
DIRECTORIES = ["dir-create", "dir-stat", "dir-list", "dir-rename", "dir-remove"]
FILES = ["file-create", "file-stat", "file-open", "file-close", "file-list", "file-rename", "file-remove"]
OBJECTS = [f"{kind}-{what}" for kind in ("group", "dataset") for what in ("create", "open", "iterate")]
ATTRIBUTES = ["attribute-create", "attribute-read", "attribute-iterate"]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def metadata(kernels: Path, target: Path, *options: str, ranks: int = 2, **kwargs: Any) -> Any:
    return run_mpi(ranks, kernels / "metadata", "--dir", target, *SMALL, *options, **kwargs)


@pytest.mark.parametrize(
    ("options", "operations"),
    [
        ((), DIRECTORIES + FILES),
        (("--bytes", "3901", "--directory", "private", "--family", "files"), [*FILES[:4], "file-read", *FILES[4:]]),
        ((*HDF5, "--attributes", "3"), OBJECTS + ATTRIBUTES),
        ((*HDF5, "--collective-metadata", "yes", "--family", "groups"), OBJECTS[:3]),
        ((*HDF5, "--file-per-process", "yes", "--family", "attributes"), ATTRIBUTES),
    ],
)
def test_records_follow_the_schema_and_count_operations(kernels, target, options, operations):
    done = metadata(kernels, target, *options)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            jsonschema.validate(json.loads(line), SCHEMA)
    measurements = read_records(done.stdout)
    assert [m.operation for m in measurements] == operations
    for m in measurements:
        attributes = 3 if m.operation.startswith("attribute") and "3" in options else 1
        assert m.operations == 2 * 6 * attributes
        assert (m.unit, m.logical_bytes, m.verified) == ("operations/s", 0, True)
        assert (m.read_shift is None) == m.operation.endswith("create")
        assert series.key(m, "disk").startswith(f"metadata/{m.operation}/disk/1x2/")
    assert list(target.iterdir()) == []


def test_listings_count_the_trees_own_directories_too(kernels, target):
    options = ("--depth", "1", "--branch", "3", "--family", "directories", "--baseline", "directory=private")
    counts = {
        m.role: m.operations for m in read_records(metadata(kernels, target, *options).stdout) if "list" in m.operation
    }
    assert counts == {"main": 2 * 6 + 3, "baseline": 2 * (6 + 3)}


def test_a_chain_of_directories_with_one_leaf_is_a_tree_too(kernels, target):
    options = ("--depth", "64", "--leaves", "yes", "--objects", "1", "--family", "files")
    counts = {m.operation: m.operations for m in read_records(metadata(kernels, target, *options).stdout)}
    assert (counts["file-create"], counts["file-list"]) == (2, 2 + 64)
    assert list(target.iterdir()) == []


def test_paths_too_long_for_the_system_are_refused(kernels, tmp_path):
    folder = tmp_path
    while len(str(folder)) < 1300:
        folder = folder / ("x" * 200)
    folder.mkdir(parents=True)
    done = metadata(kernels, folder, "--depth", "60", ranks=1)
    assert done.returncode == 2
    assert "--dir, --depth 60: paths of more than 4095 bytes" in done.stderr
    assert list(folder.iterdir()) == []


def test_what_another_rank_made_is_looked_at(kernels, target, tmp_path):
    """Rank 0 of two: what it makes has a 0 in its name, what it stats, renames and removes a 1."""
    trace = tmp_path / "trace"
    script = tmp_path / "strace.sh"
    script.write_text(f'exec strace -f -e trace=%file -o {trace}.$OMPI_COMM_WORLD_RANK "$@"\n')
    if subprocess.run(["sh", "-c", "command -v strace"], capture_output=True, check=False).returncode:
        pytest.skip("needs strace")
    done = run_mpi(
        2, "sh", script, kernels / "metadata", "--dir", target, *SMALL, "--family", "files", launcher="mpirun"
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in Path(f"{trace}.0").read_text().splitlines() if "/item-" in line or "/renamed-" in line]
    for call, rank in (("O_CREAT", 0), ("stat", 1), ("O_RDONLY", 1), ("rename", 1), ("unlink", 1)):
        assert [line for line in lines if call in line]
        assert all(f"-{rank}-" in line for line in lines if call in line), call


LIES = [
    ("mkdir", (), "dir-create: ", "expected 12 names, found 1", "is missing"),
    ("stat", (), "dir-stat: ", "expected a directory, found neither a file nor a directory", ""),
    ("rename", ("--directory", "private"), "dir-rename: ", "expected 6 names, found 6: item-", "does not belong there"),
    ("rmdir", (), "dir-remove: ", "expected 0 names, found ", "does not belong there"),
    ("readdir", (), "dir-create: ", "expected 12 names, found 11", "is missing"),
    ("readdir-twice", (), "dir-create: ", "expected 12 names, found 13", "is there twice"),
    ("open", ("--family", "files"), "file-create: ", "expected 12 names, found ", "is missing"),
    (
        "write",
        ("--family", "files", "--bytes", "99"),
        "file-stat: ",
        "expected a file of 99 bytes, found a file of 0",
        "",
    ),
    ("write-flip", ("--family", "files", "--bytes", "99"), "file-read: ", "byte 49: expected 0x", "found 0x"),
    ("unlink", ("--family", "files"), "file-remove: ", "expected 0 names, found ", "does not belong there"),
    ("H5Gcreate2", HDF5, "group-create: ", "expected 12 names, found 12: item-", "-other does not belong there"),
    ("H5Dcreate2", (*HDF5, "--family", "datasets"), "dataset-create: ", "expected 12 names, found 12: item-", "-other"),
    ("H5Acreate2", (*HDF5, "--family", "attributes"), "attribute-create: ", "expected 1 names, found 1", "-other"),
    ("H5Awrite", (*HDF5, "--family", "attributes"), "attribute-read: ", "byte 0: expected 0x", "found 0x"),
]


@pytest.mark.parametrize(("lie", "options", "operation", "expected", "found"), LIES)
def test_a_call_that_lies_is_found_and_named(kernels, target, faults, lie, options, operation, expected, found):
    done = metadata(kernels, target, *options, env={"LD_PRELOAD": str(faults), "FAULT_LIE": lie})
    said = next((line for line in done.stderr.splitlines() if line.startswith("metadata: error: ")), done.stderr)
    assert f"metadata: error: {operation}" in said
    assert expected in said
    assert found in said
    assert done.returncode == 3, done.stderr
    assert "{" not in done.stdout, "no rate of what was not done"
    assert list(target.iterdir()) == []


BAD = [
    (("--interface", "mpiio"), "--interface mpiio: allowed: posix"),
    (("--family", "groups"), "--family groups: --interface posix has directories and files"),
    ((*HDF5, "--family", "files"), "--family files: --interface hdf5 has groups, datasets and attributes"),
    (("--collective", "yes"), "--collective yes: no data are transferred"),
    (("--keep", "yes"), "--keep yes: to remove what was made is part of what is measured"),
    (("--keep-empty", "yes"), "--keep-empty yes: to remove what was made is part of what is measured"),
    (("--operation", "write"), "--operation: metadata has operations of its own"),
    (("--file-per-process", "yes"), "--file-per-process yes: only for --interface hdf5; see --directory private"),
    (
        (*HDF5, "--file-per-process", "yes", "--directory", "private"),
        "--directory private: with --file-per-process yes",
    ),
    ((*HDF5, "--fill", "never"), "the datasets hold no data"),
    (
        (*HDF5, "--file-per-process", "yes", "--collective-metadata", "yes"),
        "--collective-metadata yes: only for a shared",
    ),
    (("--collective-metadata", "yes"), "--collective-metadata yes: only for a shared file through HDF5"),
    (("--objects", "0"), "--objects 0: out of range; allowed: 1 to"),
    (("--objects", "6", "--depth", "2", "--branch", "2"), "--depth 2, --branch 2: more directories to hold objects"),
    (("--depth", "64", "--branch", "2"), "--depth 64, --branch 2: more directories to hold objects"),
    (("--directory", "ours"), "--directory ours: allowed: shared|private"),
    (("--objects", "1G", "--bytes", "1G"), "free, the case makes"),
    (("--bytes", "1G", "--objects", "10K"), "bytes are free, the case writes 10995116277760"),
    (("--baseline", "interface=hdf5"), "--baseline interface=hdf5: does"),
    (("--baseline", "bytes=1"), "--baseline bytes=1: does file-read, which the case does not"),
    (("--baseline", "depth=9,branch=2"), "--depth 9, --branch 2: more directories"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_arguments_are_named_and_nothing_is_written(kernels, target, options, message):
    # Without a launcher: one rank, quick.
    command = [kernels / "metadata", "--dir", target, *SMALL, *options]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **MPI_ENVIRONMENT}, check=False)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("options", [(), HDF5])
def test_what_is_there_already_is_left_alone(kernels, target, options):
    for number in (0, 1):
        (target / f"target-case0-file{number}.dat").mkdir()
        (target / f"target-case0-file{number}.dat" / "item-0-0").write_text("someone else's")
        (target / f"target-case0-file{number}.h5").write_text("someone else's")
    before = sorted(path.relative_to(target) for path in target.rglob("*"))
    done = metadata(kernels, target, *options)
    assert done.returncode == 2
    assert "exists already; it is not overwritten" in done.stderr
    assert sorted(path.relative_to(target) for path in target.rglob("*")) == before


@pytest.fixture
def small_file_system(target: Path) -> Iterator[Path]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16M,nr_inodes=400", "tmpfs", target], check=True)
    try:
        assert os.path.ismount(target), "never fill anything else"
        yield target
    finally:
        subprocess.run(["umount", target], check=True)


@needs_root
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--objects", "1K"), "398 inodes are free, the case makes 2050"),
        (("--objects", "100", "--bytes", "1M"), "bytes are free, the case writes 209715200"),
        # Blocks of 4 KiB: more than the bytes say.
        (("--objects", "190", "--bytes", "1K", "--family", "files"), "write failed: No space left on device"),
        ((*HDF5, "--objects", "4000", "--family", "groups"), "/target-case0-file0.h5: "),
    ],
)
def test_a_full_file_system_is_named_and_left_clean(kernels, small_file_system, options, message):
    with (small_file_system / "filler").open("wb") as filler:
        filler.write(bytes(15 << 20))
    done = metadata(kernels, small_file_system, *options)
    assert done.returncode == 2, done.stderr
    assert "metadata: error: " in done.stderr
    assert message in done.stderr
    assert [path.name for path in small_file_system.iterdir()] == ["filler"]


@pytest.mark.alone
@pytest.mark.parametrize(
    "options",
    [
        ("--objects", "300"),
        ("--objects", "500", "--directory", "private", "--depth", "2", "--branch", "2"),
        (*HDF5, "--file-per-process", "yes"),
    ],
)
def test_a_killed_run_leaves_nothing(kernels, target, options):
    command = ["mpirun", "-np", "2", kernels / "metadata", "--dir", target, *SMALL, "--repeats", "100000", *options]
    process = subprocess.Popen(
        [*map(str, command)],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **MPI_ENVIRONMENT},
    )
    while not list(target.iterdir()) and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=PATIENCE_SECONDS)
    wait_until(lambda: not list(target.iterdir()))


def test_a_file_that_is_just_being_made_when_the_signal_comes_is_removed(kernels, target, faults):
    process = subprocess.Popen(
        [str(word) for word in (kernels / "metadata", "--dir", target, *SMALL, *HDF5, "--file-per-process", "yes")],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **MPI_ENVIRONMENT, "LD_PRELOAD": str(faults), "FAULT_SLOW_CREATE": "1"},
    )
    while not list(target.iterdir()) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE_SECONDS) == -signal.SIGTERM
    assert list(target.iterdir()) == []


def test_a_sweep_over_interfaces_is_resumed(kernels, target, tmp_path):
    """Cases of one sweep have different operations: what is complete is known by each case's own."""
    records = tmp_path / "records.jsonl"
    options = ("--sweep", "interface=posix|hdf5", "--json", str(records))
    assert metadata(kernels, target, *options).returncode == 0
    lines = records.read_text().splitlines(keepends=True)
    assert len(lines) == len(DIRECTORIES + FILES + OBJECTS + ATTRIBUTES)
    part = Path(f"{records}.part")
    part.write_text("".join(lines[:-1]))
    done = metadata(kernels, target, *options, "--resume", "yes")
    assert done.returncode == 0, done.stderr
    assert "[1/2] interface=posix: measured before" in done.stdout
    assert [json.loads(line)["operation"] for line in records.read_text().splitlines()] == [
        json.loads(line)["operation"] for line in lines
    ]
