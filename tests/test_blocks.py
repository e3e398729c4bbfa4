"""The kernel blocks, really run: what lies in its files, who wrote it, and what is refused."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from conftest import CHECKOUT, MPI_ENVIRONMENT, needs_root, run_mpi

from iogauge import series
from iogauge.adapters.kernel import read_records

SCHEMA = json.loads((CHECKOUT / "kernels" / "measurement.schema.json").read_text())
ONCE = ("--repeats", "1", "--warmup", "0")
INTERFACES = ("posix", "mpiio", "hdf5", "netcdf")
STEP = np.uint64(0x9E3779B97F4A7C15)

needs_h5dump = pytest.mark.skipif(shutil.which("h5dump") is None, reason="needs h5dump (Debian: hdf5-tools)")


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def interfaces(kernels: Path) -> tuple[str, ...]:
    """What the kernels were built with; netCDF-4 is optional."""
    cache = (kernels / "CMakeCache.txt").read_text()
    return INTERFACES if "IOGAUGE_HAS_NETCDF:INTERNAL=TRUE" in cache else INTERFACES[:3]


def blocks(kernels: Path, target: Path, *options: str, ranks: int = 2, **kwargs):
    return run_mpi(ranks, kernels / "blocks", "--dir", target, *ONCE, *options, **kwargs)


def key_of(seed: int) -> np.uint64:
    """Key of the only dataset: SplitMix64's mixer over seed, dataset 0 and step 0."""

    def mix(value: int) -> int:
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) % 2**64
        return value ^ (value >> 31)

    value = seed
    for _ in range(3):
        value = mix((value + int(STEP)) % 2**64)
    return np.uint64(value)


def words(indices: np.ndarray, seed: int = 1) -> np.ndarray:
    """The 64-bit words at places of the whole array."""
    return key_of(seed) + indices.astype(np.uint64) * STEP


def whole(*shape: int) -> np.ndarray:
    return words(np.arange(np.prod(shape)).reshape(shape))


def content(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """What a file holds, read without the kernels: raw, or by h5dump (a netCDF-4 file is an HDF5 file)."""
    if path.suffix != ".dat":
        raw = path.with_suffix(".raw")
        dump = ["h5dump", "-d", "/data", "-b", "NATIVE", "-o", str(raw), str(path)]
        done = subprocess.run(dump, capture_output=True, text=True, check=True)
        assert "H5T_IEEE_F64LE" in done.stdout
        assert f"( {', '.join(map(str, shape))} ) / (" in done.stdout
        path = raw
    return np.fromfile(path, np.uint64).reshape(shape)


def box(rank: int, grid: tuple[int, ...], block: tuple[int, ...], along: str) -> tuple[slice, ...]:
    """The part of the whole array that is a rank's."""
    order = "F" if along == "slowest" else "C"
    place = np.unravel_index(rank, grid, order=order)  # type: ignore[call-overload]
    return tuple(slice(int(p) * n, (int(p) + 1) * n) for p, n in zip(place, block, strict=True))


@needs_h5dump
@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("writers", ["all", "one"])
def test_one_file_holds_the_whole_array_row_by_row(kernels, interfaces, target, interface, writers):
    if interface not in interfaces:
        pytest.skip("the kernels were built without netCDF-4")
    options = ("--size", "6x5x4", "--grid", "2x1x2", "--writers", writers, "--interface", interface, "--halo", "2")
    done = blocks(kernels, target, *options, "--operation", "write", "--keep", "yes", ranks=4)
    assert done.returncode == 0, done.stderr
    (path,) = target.iterdir()
    np.testing.assert_array_equal(content(path, (12, 5, 8)), whole(12, 5, 8))


@needs_h5dump
@pytest.mark.parametrize("along", ["slowest", "fastest"])
@pytest.mark.parametrize("interface", ["posix", "hdf5"])
def test_a_file_a_process_holds_its_block(kernels, target, interface, along):
    options = ("--size", "6x5x4", "--grid", "2x1x2", "--writers", "process", "--interface", interface)
    done = blocks(kernels, target, *options, "--ranks-along", along, "--keep", "yes", ranks=4)
    assert done.returncode == 0, done.stderr
    assert len(list(target.iterdir())) == 4
    for rank in range(4):
        (path,) = target.glob(f"*-rank{rank}.*")
        expected = whole(12, 5, 8)[box(rank, (2, 1, 2), (6, 5, 4), along)]
        np.testing.assert_array_equal(content(path, (6, 5, 4)), expected)


@pytest.fixture
def two_hosts(tmp_path) -> str:
    """A launcher's wrapper: ranks 0, 1 and 4 see another host name than ranks 2 and 3."""
    script = tmp_path / "as_host"
    script.write_text('#!/bin/sh\nhostname host$((OMPI_COMM_WORLD_RANK % 4 / 2)) && exec "$@"\n')
    script.chmod(0o755)
    return f"unshare --uts {script}"


@needs_root
@pytest.mark.parametrize("interface", ["posix", "hdf5"])
def test_a_file_a_node_holds_its_ranks_blocks_whoever_reads_them(kernels, target, two_hosts, interface):
    """Three ranks on one host and two on the other: a reader needs blocks from both files."""
    options = ("--size", "6x5x4", "--writers", "node", "--interface", interface, "--keep", "yes", *ONCE)
    command = [*two_hosts.split(), kernels / "blocks", "--dir", target, *options]
    done = run_mpi(5, *command)
    assert done.returncode == 0, done.stderr
    write, read = read_records(done.stdout)
    assert write.hosts == {"host0": [0, 1, 4], "host1": [2, 3]}
    assert read.read_shift is not None
    assert read.read_shift.ranks == 3
    assert read.verified
    for opener, ranks in ((0, (0, 1, 4)), (2, (2, 3))):
        (path,) = target.glob(f"*-rank{opener}.*")
        expected = [whole(30, 5, 4)[box(rank, (5, 1, 1), (6, 5, 4), "slowest")] for rank in ranks]
        if interface == "posix" or shutil.which("h5dump"):
            np.testing.assert_array_equal(content(path, (6 * len(ranks), 5, 4)), np.concatenate(expected))


@pytest.mark.parametrize("writers", ["all", "one"])
def test_places_beyond_2_to_the_32_elements_are_right(kernels, target, writers):
    """A corner of a dataset of 9 * 2^30 elements: 72 GiB, of which a few pages are on the disk."""
    options = ("--within", "9x32768x32768", "--at", "1x32760x32750", "--size", "3x4x8", "--interface", "posix")
    done = blocks(kernels, target, *options, "--writers", writers, "--keep", "yes")
    assert done.returncode == 0, done.stderr
    (path,) = target.iterdir()
    assert path.stat().st_size > 8 * 2**32
    assert path.stat().st_blocks * 512 < 2**20
    assert {m.cached_fraction for m in read_records(done.stdout)} == {None}
    file = np.memmap(path, np.uint64, mode="r")
    for z, y in itertools.product(range(1, 7), range(32760, 32764)):
        first = (z * 32768 + y) * 32768 + 32750
        line = np.arange(first, first + 8, dtype=np.uint64)
        np.testing.assert_array_equal(file[first : first + 8], words(line))
        assert not file[first - 8 : first].any()
        assert not file[first + 8 : first + 16].any()


def test_records_follow_the_schema_and_say_what_was_done(kernels, interfaces, target):
    others = [f"--baseline=interface={name}" for name in interfaces if name != "hdf5"]
    done = blocks(kernels, target, "--size", "8x8x8", *others, "--baseline=writers=one", "--baseline=halo=0", ranks=4)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    for line in lines:
        jsonschema.validate(json.loads(line), SCHEMA)
    measurements = read_records(done.stdout)
    assert {m.interface for m in measurements} == set(interfaces)
    assert {m.logical_bytes for m in measurements} == {4 * 8**3 * 8}
    assert all(m.verified for m in measurements)
    main = measurements[0].pattern
    assert (main["size"], main["block"], main["grid"]) == ([16, 16, 8], [8, 8, 8], [2, 2, 1])
    assert {m.pattern["strip"] for m in measurements} == {"call", "message", "nothing"} | (
        {"copy"} if "netcdf" in interfaces else set()
    )
    assert {series.pattern_label(m) for m in measurements} == {"shared-halo1", "one-writer-halo1", "shared-halo0"}
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("interface", "writers"),
    [(interface, "all") for interface in INTERFACES]
    + [("posix", "process"), ("hdf5", "node"), ("posix", "one"), ("netcdf", "one")],
)
def test_one_changed_byte_is_found_at_its_place(kernels, interfaces, target, interface, writers):
    if interface not in interfaces:
        pytest.skip("the kernels were built without netCDF-4")
    options = ("--size", "6x5x400", "--grid", "2x1x1", "--interface", interface, "--writers", writers)
    assert blocks(kernels, target, *options, "--operation", "write", "--keep", "yes").returncode == 0
    wrong = int(words(np.array([9 * 2000 + 123]))[0])  # of rank 1's block
    (path, where) = next(
        (path, where)
        for path in target.iterdir()
        if (where := path.read_bytes().find(wrong.to_bytes(8, "little"))) >= 0
    )
    with path.open("r+b") as file:
        file.seek(where)
        file.write((wrong ^ 1).to_bytes(8, "little"))
    done = blocks(kernels, target, *options, "--operation", "read")
    assert done.returncode == 3, done.stderr
    for part in ("dataset data,", f"index {9 * 2000 + 123}:", f"expected 0x{wrong:x}, found 0x{wrong ^ 1:x} (rank 0"):
        assert part in done.stderr
    assert "found 1 words that differ" in done.stderr
    assert "{" not in done.stdout, "no rate from false data"


def test_what_a_read_leaves_in_a_halo_is_found(kernels, faults, target):
    done = blocks(kernels, target, "--size", "8x8x8", env={"LD_PRELOAD": str(faults), "FAULT_SPILL": "1"})
    assert done.returncode == 3, done.stderr
    assert "dataset data, halo in memory, step 0, index 0: expected 0xffffffffffffffff" in done.stderr


#: On three ranks.
BAD_ON_THREE = [
    (("--size", "100x100x100", "--size-is", "global"), "does not divide by the process grid 3x1x1; (99 or 102) x 100"),
    (("--size", "9x2x9", "--size-is", "global", "--grid", "1x3x1"), "9 x 3 x 9 would"),
    (("--grid", "2x2x1"), "--grid 2x2x1: does not make 3"),
    (("--grid", "2x0x0"), "--grid 2x0x0: does not make 3"),
    (("--grid", "1x1x1"), "--grid 1x1x1: does not make 3"),
    (("--chunk", "193x1x1", "--size", "64x8x8"), "--chunk: 193 elements in dimension 1, more than the dataset's 192"),
    (("--chunk", "65x1x1", "--size", "64x8x8", "--writers", "process"), "more than the dataset's 64"),
    (("--within", "200x8x8", "--at", "9x0x0", "--size", "64x8x8"), "--within 200x8x8: dimension 1 holds 200 elements"),
]
#: On one.
BAD = [
    (("--grid", "1x1x4294967297"), "--grid 4294967297: out of range"),
    (("--grid", "1x1"), "--grid: 2 numbers were given; 3 are expected"),
    (("--size", "64"), "--size: 1 numbers were given"),
    (("--size", "64x64x0"), "--size 0: out of range"),
    (("--size", "0"), "--size 0: 3 numbers are expected"),
    (("--size", "64x64x-1"), "--size -1"),
    (("--size", "64x64x64x64"), "--size: 4 numbers were given"),
    (("--size", "2147483647x1x1"), "2^31 elements or more"),
    (("--size", "2000000x2000000x2000000"), "more bytes than a file offset holds"),
    (("--halo", "-1"), "--halo -1"),
    (("--chunk", "8x8"), "--chunk: 2 numbers were given"),
    (("--writers", "two"), "--writers two: allowed: all|process|node|one"),
    (("--writers", "one", "--collective", "yes"), "--collective yes: where one rank opens a file alone"),
    (("--writers", "node", "--file-per-process", "yes"), "--writers node: contradicts --file-per-process yes"),
    (("--writers", "node", "--strip", "copy"), "--strip: with --writers node messages leave the halos out"),
    (("--at", "1x1x1"), "--at: says where the blocks lie --within"),
    (("--within", "900x900x900", "--writers", "process"), "--within: with --writers process"),
    (("--within", "900x900x900", "--fill", "value"), "--within: with --fill value"),
    (("--interface", "posix", "--collective", "yes"), "--collective yes: --interface posix"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_arguments_are_named_and_nothing_is_written(kernels, target, options, message):
    done = subprocess.run(
        [kernels / "blocks", "--dir", target, *options],
        capture_output=True,
        text=True,
        env={**os.environ, **MPI_ENVIRONMENT},
    )
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(("options", "message"), BAD_ON_THREE)
def test_what_does_not_fit_the_ranks_is_named_once_and_nothing_is_written(kernels, target, options, message):
    done = blocks(kernels, target, *options, ranks=3)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("blocks: error: ") == 1
    assert message in done.stderr
    assert list(target.iterdir()) == []


@pytest.fixture(scope="session")
def kernels_without_netcdf(tmp_path_factory) -> Path:
    build = tmp_path_factory.mktemp("without-netcdf")
    configure = ["cmake", "-S", CHECKOUT / "kernels", "-B", build, "-DBUILD_TESTING=OFF", "-DCMAKE_C_COMPILER=mpicc"]
    for command in (
        [*configure, "-DIOGAUGE_NETCDF=OFF"],
        ["cmake", "--build", build, "--parallel", "2", "--target", "blocks"],
    ):
        assert subprocess.run([*map(str, command)], capture_output=True, check=False).returncode == 0
    return build


def test_without_the_library_netcdf_is_refused_by_name(kernels, kernels_without_netcdf, target):
    done = blocks(kernels_without_netcdf, target, "--interface", "netcdf")
    assert done.returncode == 2
    assert "--interface netcdf: these kernels were built without netCDF-4: a parallel netCDF library" in done.stderr
    assert "libnetcdf-mpi-dev" in done.stderr
    assert blocks(kernels_without_netcdf, target, "--size", "8x8x8").returncode == 0
    done = run_mpi(1, kernels / "segments", "--dir", target, "--interface", "netcdf")
    assert done.returncode == 2
    assert "--interface netcdf: not for segments; allowed: hdf5|mpiio|posix" in done.stderr


def peak_mib(kernels: Path, target: Path, tmp_path: Path, *options: str) -> float:
    """The largest resident memory of any of two ranks, MiB, as the kernel of the operating system counts it."""
    script = tmp_path / "peak"
    log = tmp_path / "peaks"
    log.unlink(missing_ok=True)
    script.write_text(
        "import os, resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[2:]).returncode\n"
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        "open(sys.argv[1], 'a').write(f'{peak}\\n')\n"
        "sys.exit(code)\n"
    )
    done = run_mpi(2, shutil.which("python3") or "", script, log, kernels / "blocks", "--dir", target, *ONCE, *options)
    assert done.returncode == 0, done.stderr
    return max(map(int, log.read_text().split())) / 1024


@pytest.mark.parametrize(
    ("interface", "writers"),
    [(interface, "all") for interface in INTERFACES] + [("posix", "process"), ("hdf5", "node"), ("mpiio", "one")],
)
def test_memory_is_the_blocks_and_little_more(kernels, interfaces, target, tmp_path, interface, writers):
    """32 MiB a rank: a writer for others holds its own block and a message, never the file."""
    if interface not in interfaces:
        pytest.skip("the kernels were built without netCDF-4")
    options = ("--size", "128x128x256", "--halo", "0", "--interface", interface, "--writers", writers, "--fsync", "no")
    assert peak_mib(kernels, target, tmp_path, *options) < 32 + 64


def test_help_names_the_options(kernels):
    done = subprocess.run(
        [kernels / "blocks", "--help"], capture_output=True, text=True, env={**os.environ, **MPI_ENVIRONMENT}
    )
    for word in ("--size", "--grid", "--halo", "--writers all|process|node|one", "hdf5|mpiio|posix|netcdf"):
        assert word in done.stdout
