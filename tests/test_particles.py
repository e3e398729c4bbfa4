"""What the particles kernel has from h5bench beyond the plain write and read, looked at from outside: what is in its
files, what it reads of them, what it takes of memory, and what it refuses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import MPI_ENVIRONMENT, run_mpi
from test_particles_regions import stated

from iogauge import series
from iogauge.adapters.kernel import read_records
from iogauge.errors import Refusal

MEMBERS = ("x", "y", "z", "px", "py", "pz", "id_1", "id_2")
QUICK = ("--repeats", "1", "--warmup", "0", "--drop-cache", "no", "--fsync", "no")


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


@pytest.fixture
def h5py():
    return pytest.importorskip("h5py", reason="needs h5py")


def run(kernels: Path, target: Path, *options: str, ranks: int = 3, **kwargs):
    return run_mpi(ranks, kernels / "particles", "--dir", target, *QUICK, *options, **kwargs)


def measured(kernels: Path, target: Path, *options: str, ranks: int = 3, **kwargs):
    done = run(kernels, target, *options, ranks=ranks, **kwargs)
    assert done.returncode == 0, done.stderr
    return read_records(done.stdout)


def kept(target: Path) -> Path:
    (path,) = target.iterdir()
    return path


def content(dataset: int, step: int, count: int, seed: int = 1) -> np.ndarray:
    """The first words of a dataset: SplitMix64's mixer, then a Weyl sequence, as content.h says."""
    golden, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1

    def mix(value: int) -> int:
        value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & mask
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB & mask
        return value ^ (value >> 31)

    key = mix(mix(mix(seed + golden & mask) + dataset + golden & mask) + step + golden & mask)
    words = np.uint64(key) + np.arange(count, dtype=np.uint64) * np.uint64(golden)
    return ((words >> np.uint64(32)) & np.uint64(0xBFFFFFFF)).astype(np.uint32)


def words_of(dataset) -> np.ndarray:
    return dataset[...].view(np.uint32).ravel()


# --- writing ---------------------------------------------------------------------------------------------------------


def test_overwriting_leaves_other_words_of_the_same_shape(kernels, target, h5py):
    options = ("--particles", "700", "--write-mode", "overwrite")
    write, read = measured(kernels, target, *options, "--keep", "yes")
    assert write.logical_bytes == read.logical_bytes == 3 * 700 * 32 * 2
    assert write.pattern["write_mode"] == "overwrite"
    with h5py.File(kept(target)) as file:
        for step in range(2):
            for m, name in enumerate(MEMBERS):
                found = words_of(file[f"Timestep_{step}/{name}"])
                assert np.array_equal(found, content(m, step + 2, 2100)), "written over what was of steps 0 and 1"
    assert run(kernels, target, *options, "--operation", "read").returncode == 0
    done = run(kernels, target, "--particles", "700", "--operation", "read")
    assert done.returncode == 3, "it is not what a new file holds"


@pytest.mark.parametrize("compress", ["none", "gzip"])
def test_appending_doubles_every_dataset_and_keeps_what_was_there(kernels, target, h5py, compress):
    options = ("--particles", "700", "--write-mode", "append", "--extendible", "yes", "--chunk", "128")
    more = ("--compress", compress, "--collective", "yes")
    write, read = measured(kernels, target, *options, *more, "--keep", "yes")
    assert write.logical_bytes == 3 * 700 * 32 * 2
    assert read.logical_bytes == 2 * write.logical_bytes
    assert write.verified
    assert read.verified
    with h5py.File(kept(target)) as file:
        for m, name in enumerate(MEMBERS):
            dataset = file[f"Timestep_1/{name}"]
            assert (dataset.shape, dataset.maxshape) == ((4200,), (None,))
            assert dataset.compression == (None if compress == "none" else compress)
            assert np.array_equal(words_of(dataset), content(m, 1, 4200))


def test_a_change_of_what_stood_there_before_the_append_is_found(kernels, target, h5py):
    options = ("--particles", "700", "--write-mode", "append", "--extendible", "yes", "--chunk", "128")
    measured(kernels, target, *options, "--keep", "yes")
    with h5py.File(kept(target), "r+") as file:
        file["Timestep_0/y"][5] = 0
    done = run(kernels, target, *options, "--operation", "read")
    assert done.returncode == 3
    assert "dataset Timestep_0/y, step 0, index 5:" in done.stderr


@pytest.mark.parametrize("compress", ["none", "gzip"])
def test_unlimited_datasets_are_written_with_and_without_compression(kernels, target, h5py, compress):
    options = ("--extendible", "yes", "--chunk", "100", "--compress", compress, "--collective", "yes")
    measured(kernels, target, "--particles", "700", *options, "--operation", "write", "--keep", "yes")
    with h5py.File(kept(target)) as file:
        dataset = file["Timestep_0/id_2"]
        assert dataset.maxshape == (None,)
        assert (dataset.compression or "none") == compress


def test_ranks_that_differ_have_normally_distributed_counts_and_an_exact_total(kernels, target):
    """64 ranks, a file each: their sizes are the counts. The logical bytes are the sum, not ranks times a rank's."""
    options = (
        "--interface",
        "posix",
        "--file-per-process",
        "yes",
        "--particles",
        "1000",
        "--stdev",
        "200",
        "--steps",
        "1",
    )
    write, read = measured(kernels, target, *options, "--keep", "yes", ranks=64)
    # The last dataset's rows end the file; all datasets begin where the largest rank's would.
    begin = max(path.stat().st_size for path in target.iterdir()) // 8 * 7
    counts = np.array([(path.stat().st_size - begin) // 4 for path in target.iterdir()])
    assert write.logical_bytes == read.logical_bytes == counts.sum() * 32
    assert counts.min() >= 1
    assert counts.max() <= 1999
    assert abs(counts.mean() - 1000) < 3 * 200 / 8
    assert 140 < counts.std(ddof=1) < 260
    assert series.pattern_label(write) == "CC-varied-file-per-process"


def test_counts_follow_the_seed(kernels, target):
    options = ("--particles", "1000", "--stdev", "200", "--operation", "write")
    totals = [measured(kernels, target, *options, "--seed", seed)[0].logical_bytes for seed in ("1", "1", "2")]
    assert totals[0] == totals[1] != totals[2]


def test_a_selected_write_writes_nothing_else(kernels, target, h5py):
    options = ("--selection", "strided", "--stride", "10", "--block", "3", "--blocks", "4", "--write-selected", "yes")
    write, read = measured(kernels, target, "--particles", "100", *options, "--keep", "yes")
    assert write.logical_bytes == read.logical_bytes == 3 * 4 * 3 * 32 * 2
    chosen = np.zeros((3, 100), dtype=bool)
    for k in range(4):
        chosen[:, 10 * k : 10 * k + 3] = True
    with h5py.File(kept(target)) as file:
        found = words_of(file["Timestep_1/pz"])
    assert np.array_equal(found, np.where(chosen.ravel(), content(5, 1, 300), 0))


def test_delayed_close_closes_what_many_steps_would_leave_open(kernels, target):
    """Every open dataset costs memory: with 500 steps of 8 datasets, more than those of one step."""
    most = {}
    for close in ("0", "500"):
        options = ("--particles", "1", "--steps", "500", "--delayed-close", close, "--operation", "write")
        most[close] = peak_bytes(kernels, target, *options)
    assert most["0"] < most["500"] - (1 << 20)


# --- memory ----------------------------------------------------------------------------------------------------------


def peak_bytes(kernels: Path, target: Path, *options: str) -> int:
    """Largest resident size of a rank."""
    program = (
        "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
        "sys.stdout.write(f'peak={resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss};'); sys.exit(code)"
    )
    done = run_mpi(2, sys.executable, "-c", program, kernels / "particles", "--dir", target, *QUICK, *options)
    assert done.returncode == 0, done.stderr
    return max(int(kib) << 10 for kib in re.findall(r"peak=(\d+);", done.stdout))


@pytest.mark.parametrize(
    "options",
    [
        ("--interface", "posix"),
        ("--interface", "posix", "--locality", "CI"),
        ("--interface", "mpiio", "--locality", "IC"),
        ("--selection", "strided", "--stride", "1M", "--block", "1M"),
    ],
)
def test_a_memory_limit_is_kept(kernels, target, options):
    size = ("--particles", "2M", "--steps", "1")
    unlimited = peak_bytes(kernels, target, *size, *options)
    limited = peak_bytes(kernels, target, *size, *options, "--memory-limit", "4M")
    assert unlimited - limited > 50 << 20
    assert limited < (4 + 64) << 20


@pytest.mark.parametrize("limit", ["32", "100", "1000", "1M"])
def test_pieces_are_the_whole_whatever_their_size(kernels, target, h5py, limit):
    write, read = measured(
        kernels, target, "--particles", "70", "--memory-limit", limit, "--collective", "yes", "--keep", "yes"
    )
    assert write.verified
    assert read.verified
    with h5py.File(kept(target)) as file:
        assert np.array_equal(words_of(file["Timestep_0/pz"]), content(5, 0, 210))


# --- reading parts of 2-D data ----------------------------------------------------------------------------------------

SHAPE = (3 * 37, 23)  # three ranks of 37 rows
REGIONS = [
    ("LDC", (11, 5), (1, 1)),
    ("RDC", (67, 13), (1, 1)),
    ("PRL", (5, 3), (1, 1)),
    ("CS", (7, 4), (5, 3)),
]


@pytest.mark.parametrize(("form", "block", "stride"), REGIONS)
@pytest.mark.parametrize("collective", ["no", "yes"])
def test_a_region_is_all_that_is_read_and_all_of_it_is(kernels, target, h5py, form, block, stride, collective):
    """What numpy says is outside may be anything; what it says is inside may not."""
    size = ("--particles", str(37 * 23), "--dimensions", "2", "--columns", "23", "--steps", "1")
    region = ("--selection", form, "--block", str(block[0]), "--block-columns", str(block[1]))
    region += ("--stride", str(stride[0]), "--stride-columns", str(stride[1]), "--collective", collective)
    measured(kernels, target, *size, "--operation", "write", "--keep", "yes")
    chosen = stated(form, SHAPE, block, stride)
    with h5py.File(kept(target), "r+") as file:
        for name in MEMBERS:
            dataset = file[f"Timestep_0/{name}"]
            assert dataset.shape == SHAPE
            dataset[...] = np.where(chosen, dataset[...], 0)
    (read,) = measured(kernels, target, *size, *region, "--operation", "read")
    assert read.logical_bytes == chosen.sum() * 32
    assert read.verified
    assert series.pattern_label(read) == f"CC-2d-{form}" + ("-collective" if collective == "yes" else "")
    with h5py.File(kept(target), "r+") as file:
        dataset = file["Timestep_0/z"]
        dataset[...] = 0
    done = run(kernels, target, *size, *region, "--operation", "read")
    assert done.returncode == 3
    assert "dataset Timestep_0/z" in done.stderr


@pytest.mark.parametrize("interface", ["posix", "mpiio"])
@pytest.mark.parametrize(("form", "block", "stride"), REGIONS)
def test_the_raw_interfaces_read_the_same_regions(kernels, target, interface, form, block, stride):
    size = ("--particles", str(37 * 23), "--dimensions", "2", "--columns", "23", "--interface", interface)
    region = ("--selection", form, "--block", str(block[0]), "--block-columns", str(block[1]))
    region += ("--stride", str(stride[0]), "--stride-columns", str(stride[1]), "--locality", "CI")
    _, read = measured(kernels, target, *size, *region)
    assert read.logical_bytes == stated(form, SHAPE, block, stride).sum() * 32 * 2
    assert read.verified


def test_a_fraction_is_as_many_rows_as_it_says(kernels, target):
    options = ("--selection", "partial", "--fraction", "0.29", "--particles", "100")
    assert measured(kernels, target, *options)[1].logical_bytes == 3 * 29 * 32 * 2


# --- asynchronous ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_asynchronous_calls_that_would_be_synchronous_are_refused(kernels, target, mode):
    """HDF5 without event sets, or without a connector: never a rate that is called asynchronous."""
    environment = {"HDF5_VOL_CONNECTOR": ""} if "HDF5_VOL_CONNECTOR" in os.environ else {}
    done = run(kernels, target, "--async", mode, env=environment)
    assert done.returncode == 2
    assert re.search("HDF5 1.13 or newer is needed|no asynchronous connector is loaded", done.stderr)
    assert "{" not in done.stdout
    assert list(target.iterdir()) == []


needs_async = pytest.mark.skipif(
    "async" not in os.environ.get("HDF5_VOL_CONNECTOR", ""),
    reason="needs HDF5 1.13 or newer, built thread-safe, and its connector async: set HDF5_VOL_CONNECTOR, HDF5_PLUGIN_PATH",
)


@needs_async
@pytest.mark.parametrize("mode", ["implicit", "explicit"])
@pytest.mark.parametrize("more", [(), ("--delayed-close", "0"), ("--memory-limit", "20000"), ("--collective", "yes")])
def test_asynchronous_calls_move_the_same_data(kernels, target, mode, more):
    for m in measured(kernels, target, "--particles", "3000", "--steps", "4", "--async", mode, *more):
        assert m.verified
        assert m.pattern["async"] == m.pattern["async_in_effect"] == mode
        assert f"async-{mode}" in series.pattern_label(m)


@needs_async
def test_a_connector_that_was_not_asked_for_is_refused(kernels, target):
    done = run(kernels, target)
    assert done.returncode == 2
    assert "calls would not be synchronous" in done.stderr


# --- h5bench's files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def foreign(target, h5py):
    """A file as h5bench_write makes it in CC: id_2 holds floats."""
    with h5py.File(target / "foreign.h5", "w") as file:
        for step in range(2):
            for name in MEMBERS:
                kind = np.int32 if name == "id_1" else np.float32
                file[f"Timestep_{step}/{name}"] = np.random.default_rng(1).random(300).astype(kind)
    return ("--operation", "read", "--foreign", "foreign.h5")


def test_a_foreign_file_is_read_and_never_called_verified(kernels, target, foreign):
    done = run(kernels, target, *foreign, "--particles", "100")
    assert done.returncode == 0, done.stderr
    assert '"content": "foreign"' in done.stdout
    assert '"verified_bytes": 0' in done.stdout
    with pytest.raises(Refusal, match="0 of 19200 bytes verified"):
        read_records(done.stdout)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--particles", "99"), "Timestep_0/x has 300 elements in dimension 1, not 297"),
        (("--particles", "100", "--dimensions", "2"), "Timestep_0/x has 1 dimensions, not 2"),
        (("--particles", "100", "--steps", "3"), "Timestep_2/x"),
    ],
)
def test_a_foreign_file_of_another_shape_is_named(kernels, target, foreign, options, message):
    done = run(kernels, target, *foreign, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert "{" not in done.stdout


def test_a_foreign_file_of_another_type_is_named(kernels, target, foreign, h5py):
    with h5py.File(target / "foreign.h5", "r+") as file:
        del file["Timestep_1/px"]
        file["Timestep_1/px"] = np.zeros(300)
    done = run(kernels, target, *foreign, "--particles", "100")
    assert done.returncode == 2
    assert "Timestep_1/px does not hold numbers of 4 bytes" in done.stderr


needs_h5bench = pytest.mark.skipif(
    shutil.which("h5bench_write") is None or shutil.which("h5bench_read") is None,
    reason="needs h5bench_write and h5bench_read on PATH",
)


def h5bench(program: str, folder: Path, file: Path, **keys: object) -> str:
    configuration = folder / f"{program}.cfg"
    lines = {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": 2, "NUM_DIMS": 2, "DIM_1": 40, "DIM_2": 25}
    configuration.write_text("".join(f"{name}={value}\n" for name, value in {**lines, **keys}.items()))
    path = shutil.which(program)
    assert path is not None
    done = run_mpi(2, path, configuration, file)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_h5bench
def test_files_go_from_h5bench_to_us_and_back(kernels, target, tmp_path):
    size = ("--particles", "1000", "--dimensions", "2", "--columns", "25")
    h5bench("h5bench_write", tmp_path, target / "theirs.h5", IO_OPERATION="WRITE")
    done = run(kernels, target, *size, "--operation", "read", "--foreign", "theirs.h5", ranks=2)
    assert done.returncode == 0, done.stderr
    (target / "theirs.h5").unlink()
    measured(kernels, target, *size, "--operation", "write", "--keep", "yes", ranks=2)
    said = h5bench("h5bench_read", tmp_path, kept(target), IO_OPERATION="READ", READ_OPTION="FULL")
    assert "dims[0] = 80" in said
    assert "Raw read rate" in said


# --- bad input ---------------------------------------------------------------------------------------------------------

TWO = ("--particles", "60", "--dimensions", "2", "--columns", "6")
BAD = [
    (("--columns", "4"), "--columns 4: --dimensions 2 or 3 is needed"),
    (("--dimensions", "2", "--layers", "4"), "--layers 4: --dimensions 3 is needed"),
    (("--particles", "60", "--dimensions", "2", "--columns", "7"), "--particles 60: not a multiple of --columns 7"),
    (("--particles", "10", "--stdev", "11"), "--stdev 11: more than the mean, --particles 10"),
    (("--stdev", "-1"), "--stdev -1: out of range"),
    (("--write-mode", "both"), "--write-mode both: allowed: new|overwrite|append"),
    (("--write-mode", "append"), "--write-mode append: HDF5's datasets must be able to grow; --extendible yes"),
    (
        ("--write-mode", "append", "--extendible", "yes", "--chunk", "9", "--write-selected", "yes"),
        "--write-selected yes: --write-mode append appends whole rows",
    ),
    ((*TWO, "--memory-limit", "100"), "--memory-limit 100: a rank needs 192 bytes for a row of 6 particles"),
    (("--delayed-close", "-1"), "--delayed-close -1: out of range"),
    (("--selection", "XYZ"), "--selection XYZ: allowed: full|partial|strided|LDC|RDC|PRL|CS"),
    (("--selection", "PRL"), "--selection PRL: --dimensions 2 is needed"),
    (
        (*TWO, "--selection", "LDC", "--block", "11", "--block-columns", "1"),
        "--block 11: more than the dataset's 10 rows",
    ),
    (
        (*TWO, "--selection", "CS", "--block", "1", "--block-columns", "7"),
        "--block-columns 7: more than the dataset's 6",
    ),
    ((*TWO, "--selection", "CS", "--stride", "0"), "--stride 0: out of range"),
    (
        ("--particles", "60", "--selection", "strided", "--stride", "20", "--block", "9", "--blocks", "4"),
        "--blocks 4: a rank's 60 rows hold 3 of them",
    ),
    (("--chunk", "9", "--dimensions", "2", "--chunk-columns", "1M"), "--chunk: 1048576 elements in dimension 2"),
    (("--async", "maybe"), "--async maybe: allowed: no|implicit|explicit"),
    (("--async", "explicit", "--interface", "posix"), "--async: only through HDF5"),
    (("--foreign", "a.h5"), "--foreign a.h5: only with --operation read"),
    (("--foreign", "a.h5", "--operation", "read", "--locality", "II"), "--foreign a.h5: only through HDF5"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_arguments_are_named_and_nothing_is_written(kernels, target, options, message):
    done = subprocess.run(
        [kernels / "particles", "--dir", target, *options],
        capture_output=True,
        text=True,
        env={**os.environ, **MPI_ENVIRONMENT},
    )
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert list(target.iterdir()) == []
