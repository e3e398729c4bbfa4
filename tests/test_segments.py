"""The segments kernel as h5perf and h5perf_serial have it: where its bytes lie, told by h5py, and what it turns down."""

from __future__ import annotations

import os
import subprocess
from itertools import product
from pathlib import Path

import pytest
from conftest import MPI_ENVIRONMENT, run_mpi

from iogauge.adapters.kernel import read_records
from iogauge.series import pattern_label

MIB = 1 << 20
STEP = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def segments(kernels: Path, target: Path, *options: str, ranks: int = 1, repeats: int = 1):
    return run_mpi(ranks, kernels / "segments", "--dir", target, "--repeats", str(repeats), "--warmup", "0", *options)


def mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def expected_bytes(count: int, dataset: int = 0, seed: int = 1) -> bytes:
    """The content of a dataset, worked out apart from the kernel: SplitMix64's words, lowest byte first."""
    key = mix((mix((mix((seed + STEP) & MASK) + dataset + STEP) & MASK) + STEP) & MASK)
    words = b"".join(((key + i * STEP) & MASK).to_bytes(8, "little") for i in range(-(-count // 8)))
    return words[:count]


def kept_file(target: Path) -> Path:
    (path,) = target.iterdir()
    return path


@pytest.mark.parametrize("layout", ["contiguous", "interleaved"])
def test_a_square_dataset_holds_every_byte_at_its_place(kernels, target, layout):
    h5py = pytest.importorskip("h5py")
    options = ("--geometry", "2d", "--segments", "2", "--block", "20", "--transfer", "40", "--layout", layout)
    done = segments(kernels, target, *options, "--keep", "yes", "--operation", "write", ranks=2)
    assert done.returncode == 0, done.stderr
    with h5py.File(kept_file(target)) as file:
        dataset = file["dataset_0"]
        assert (dataset.shape, dataset.dtype.str) == ((80, 80), "|u1")
        assert dataset[()].tobytes() == expected_bytes(6400)


def test_an_array_in_another_order_of_access_holds_the_same_bytes(kernels, target):
    h5py = pytest.importorskip("h5py")
    options = ("--dims", "12x10x15", "--transfer-dims", "4x5x3", "--order", "2x3x1", "--datasets", "2")
    done = segments(kernels, target, *options, "--keep", "yes", "--operation", "write", ranks=3)
    assert done.returncode == 0, done.stderr
    with h5py.File(kept_file(target)) as file:
        for number in range(2):
            assert file[f"dataset_{number}"].shape == (12, 10, 15)
            assert file[f"dataset_{number}"][()].tobytes() == expected_bytes(1800, dataset=number)


def test_a_growing_dataset_ends_with_its_full_extent_and_no_limits(kernels, target):
    h5py = pytest.importorskip("h5py")
    options = ("--dims", "40x60", "--transfer-dims", "10x20", "--order", "2x1", "--chunk", "8x16")
    grow = ("--extendible", "yes", "--grow", "yes", "--driver", "sec2")
    done = segments(kernels, target, *options, *grow, "--keep", "yes", "--operation", "write")
    assert done.returncode == 0, done.stderr
    with h5py.File(kept_file(target)) as file:
        dataset = file["dataset_0"]
        assert (dataset.shape, dataset.maxshape, dataset.chunks) == ((40, 60), (None, None), (8, 16))
        assert dataset[()].tobytes() == expected_bytes(2400)


def test_the_raw_interfaces_put_the_same_bytes_in_their_files(kernels, target):
    for interface in ("posix", "mpiio"):
        options = ("--dims", "12x10x15", "--transfer-dims", "4x5x3", "--order", "2x3x1", "--interface", interface)
        done = segments(kernels, target, *options, "--keep", "yes", "--operation", "write", ranks=3)
        assert done.returncode == 0, done.stderr
        path = kept_file(target)
        assert path.read_bytes() == expected_bytes(1800)
        path.unlink()


def test_a_transfer_of_several_blocks_is_in_turn_among_the_ranks(kernels, target):
    """h5perf -I: blocks of 64 bytes of three ranks in turn, four of them a transfer."""
    options = ("--bytes-per-process", "512", "--block", "64", "--transfer", "256", "--interface", "posix")
    done = segments(kernels, target, *options, "--keep", "yes", "--operation", "write", ranks=3)
    assert done.returncode == 0, done.stderr
    assert kept_file(target).read_bytes() == expected_bytes(3 * 512)
    m = read_records(done.stdout)[0]
    assert (m.pattern["segments"], m.logical_bytes, pattern_label(m)) == (8, 3 * 512, "shared-contiguous-strided")


def test_the_order_of_access_is_the_one_asked_for(kernels, target, tmp_path):
    """Told by strace: the offsets of a 2-D array's transfers, dimension 1 first as h5perf_serial -r 1,2 has it."""
    if subprocess.run(["which", "strace"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs strace")
    for order, expected in (("1x2", [0, 400, 20, 420]), ("2x1", [0, 20, 400, 420])):
        trace = tmp_path / "trace"
        done = run_mpi(
            1, "strace", "-f", "-e", "trace=pwrite64", "-o", trace, kernels / "segments", "--dir", target,
            "--repeats", "1", "--warmup", "0", "--operation", "write", "--interface", "posix",
            "--dims", "20x40", "--transfer-dims", "10x20", "--order", order,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        offsets = [
            int(line.rpartition(", ")[2].partition(")")[0]) for line in trace.read_text().splitlines() if "= 20" in line
        ]
        assert offsets[::10] == expected


def test_one_sweep_says_h5perfs_transfer_sizes_and_process_counts(kernels, target):
    """h5perf -e 64K -x 16K -X 64K -p 1 -P 4."""
    done = segments(
        kernels, target, "--bytes-per-process", "64K", "--block", "64K", "--sweep", "processes=4|2|1",
        "--sweep", "transfer=16K|32K|64K", "--interface", "posix", ranks=4,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [(m.ranks, m.pattern["transfer_bytes"], m.logical_bytes) for m in read_records(done.stdout)]
    expected = [(p, x, p * 65536) for p, x in product((4, 2, 1), (16384, 32768, 65536))]
    assert found[::2] == expected


def test_observed_without_the_flush_is_h5perf_serials_open_close_throughput(kernels, target):
    """Bytes over everything from the file's opening to its closing; and the table's average is all bytes over all seconds."""
    options = ("--bytes-per-process", "1M", "--block", "1M", "--fsync", "no", "--driver", "sec2")
    done = segments(kernels, target, *options, repeats=5)
    for m in read_records(done.stdout):
        for rate, r in zip(m.observed, m.repeats, strict=True):
            seconds = r.open_seconds + r.transfer_seconds + r.close_seconds
            assert rate == pytest.approx(m.logical_bytes / MIB / seconds, rel=1e-3)
        (row,) = [line for line in done.stdout.splitlines() if line.startswith(m.operation)]
        seconds = [r.total_seconds for r in m.repeats]
        shown = [1 / min(seconds), len(seconds) / sum(seconds), 1 / max(seconds)]
        assert [float(word) for word in row.split()[3:6]] == pytest.approx(shown, abs=0.06)


@pytest.mark.parametrize("driver", ["sec2", "stdio", "core", "split", "multi", "family"])
def test_every_file_driver_carries_the_data_and_leaves_nothing(kernels, target, driver):
    done = segments(kernels, target, "--dims", "64x4K", "--transfer-dims", "8x4K", "--driver", driver)
    assert done.returncode == 0, done.stderr
    write, read = read_records(done.stdout)
    assert write.pattern["driver"] == driver
    assert pattern_label(write) == f"shared-contiguous-2d-order1x2-{driver}"
    assert read.verified
    assert list(target.iterdir()) == []


def test_a_driver_that_this_hdf5_has_not_is_named(kernels, target):
    done = segments(kernels, target, "--driver", "direct")
    if done.returncode == 0:
        pytest.skip("this HDF5 has the direct driver")
    assert done.returncode == 2
    assert "--driver direct: this HDF5 was built without it" in done.stderr


BAD = [
    (
        ("--block", "64K", "--transfer", "40K"),
        "--transfer 40960: does not divide --block 65536, nor is it several blocks",
    ),
    (("--block", "64K", "--transfer", "128K"), "--transfer 131072: it is 2 blocks, which does not divide --segments 1"),
    (("--bytes-per-process", "1M", "--block", "640K"), "--bytes-per-process 1048576: not a multiple of --block 655360"),
    (("--block", "12", "--transfer", "24"), "--block 12: not a multiple of 8"),
    (("--dims", "100x200"), "--transfer-dims 0: as many dimensions as --dims 100x200 has are expected"),
    (("--dims", "100x200", "--transfer-dims", "10"), "--transfer-dims 10: as many dimensions as --dims 100x200"),
    (
        ("--dims", "100x200", "--transfer-dims", "10x30"),
        "a transfer of 10x30 bytes does not divide the dataset of 100x200",
    ),
    (
        ("--dims", "100x200", "--transfer-dims", "10x20", "--order", "1x1"),
        "--order 1x1: each of the numbers 1 to 2 once",
    ),
    (
        ("--dims", "100x200", "--transfer-dims", "10x20", "--order", "1x3"),
        "--order 1x3: each of the numbers 1 to 2 once",
    ),
    (("--dims", "100x200", "--transfer-dims", "10x20", "--order", "1"), "--order 1: each of the numbers 1 to 2 once"),
    (("--dims", "100x200", "--transfer-dims", "10x20", "--order", "1x5"), "--order 5: out of range; allowed: 1 to 4"),
    (("--dims", "1x2x3x4x5"), "--dims 1x2x3x4x5: up to 4 numbers"),
    (("--dims", "100xx200"), "--dims 100xx200: up to 4 numbers"),
    (("--dims", "100,200"), "--dims 100,200: not a number"),
    (("--dims", "0x200", "--transfer-dims", "1x1"), "--dims 0: out of range"),
    (("--dims", "4Tx4T", "--transfer-dims", "1x1"), "more bytes than a file offset holds"),
    (("--transfer-dims", "10x20"), "--transfer-dims and --order: belong to --dims"),
    (("--order", "2x1"), "--transfer-dims and --order: belong to --dims"),
    (("--geometry", "2d", "--dims", "8x8", "--transfer-dims", "8x8"), "--geometry 2d: its square"),
    (
        ("--geometry", "2d", "--block", "64", "--transfer", "48"),
        "a transfer of 64x48 bytes does not divide the dataset of 64x64",
    ),
    (("--geometry", "3d"), "--geometry 3d: allowed: 1d|2d"),
    (
        ("--dims", "8x8", "--transfer-dims", "8x8", "--chunk", "8"),
        "--chunk 8: as many dimensions as the dataset of 8x8",
    ),
    (("--dims", "8x8", "--transfer-dims", "8x8", "--chunk", "9x8"), "--chunk: 9 elements in dimension 1, more than"),
    (("--chunk", "1001"), "--chunk 1001: not a multiple of 8"),
    (("--grow", "yes"), "--grow yes: needs --extendible yes and --chunk"),
    (("--extendible", "yes"), "--extendible yes: a chunked dataset is needed"),
    (("--driver", "sec3"), "--driver sec3: allowed: default|mpio|sec2"),
    (("--sweep", "transfer=128K|3"), "transfer=3: --transfer 3: out of range"),
    (("--interface", "mpiio", "--dims", "4G", "--transfer-dims", "4G"), "more than MPI's count holds"),
    (
        ("--interface", "mpiio", "--collective", "yes", "--dims", "4G", "--transfer-dims", "1M"),
        "4294967296 bytes in a transfer, or of a dimension moved collectively, are more than MPI's count holds",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_sizes_are_named_and_nothing_is_written(kernels, target, options, message):
    done = subprocess.run(
        [kernels / "segments", "--dir", target, *options],
        capture_output=True,
        text=True,
        env={**os.environ, **MPI_ENVIRONMENT},
    )
    assert done.returncode == 2, done.stderr
    assert "segments: error: " in done.stderr
    assert message in done.stderr
    assert list(target.iterdir()) == []


SHARED_BAD = [
    (
        ("--dims", "8x8", "--transfer-dims", "4x8"),
        "dimension 1 of the dataset of 8x8 bytes has 2 transfers of 4x8, which 3",
    ),
    (
        ("--dims", "9x8", "--transfer-dims", "3x4", "--layout", "interleaved"),
        "--layout interleaved: dimension 2 of the dataset of 9x8 bytes has 2 transfers of 3x4, which 3 ranks cannot share",
    ),
    (("--grow", "yes", "--extendible", "yes", "--chunk", "1M"), "--grow yes: 3 ranks share a file"),
    (("--driver", "core"), "only default, mpio and subfiling can share a file between ranks"),
]


@pytest.mark.parametrize(("options", "message"), SHARED_BAD)
def test_what_ranks_cannot_share_is_named(kernels, target, options, message):
    done = segments(kernels, target, *options, ranks=3)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("segments: error:") == 1
    assert list(target.iterdir()) == []


def test_a_changed_byte_of_a_box_is_found_and_named(kernels, target):
    options = ("--dims", "12x10x15", "--transfer-dims", "4x5x3", "--order", "2x3x1", "--interface", "posix")
    assert segments(kernels, target, *options, "--operation", "write", "--keep", "yes").returncode == 0
    path = kept_file(target)
    data = bytearray(path.read_bytes())
    data[777] ^= 1
    path.write_bytes(data)
    done = segments(kernels, target, *options, "--operation", "read")
    assert done.returncode == 3
    assert f"dataset_0, step 0, index 777: expected 0x{data[777] ^ 1:x}, found 0x{data[777]:x}" in done.stderr
