"""A rank holds the buffers that its pattern needs and 64 MiB: MPI, HDF5, and nothing that grows with the data."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import in_memory, run_mpi

MIB = 1 << 20
PEAK = (
    "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
    "sys.stderr.write('peak %d\\n' % (resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)); sys.exit(code)"
)

#: Options of a case that writes much more than its buffers hold, and the buffers' bytes.
CASES = {
    "particles": (("--particles", "1M", "--steps", "3"), 32 * MIB),
    "particles-CI-posix": (("--particles", "1M", "--steps", "3", "--locality", "CI", "--interface", "posix"), 64 * MIB),
    "particles-limited": (("--particles", "1M", "--steps", "3", "--memory-limit", "4M"), 4 * MIB),
    "segments": (("--block", "64M", "--transfer", "1M"), MIB),
    "segments-large": (("--block", "64M", "--transfer", "16M", "--interface", "mpiio"), 16 * MIB),
    "tiles": (("--rows", "512", "--columns", "512", "--steps", "8", "--arrays", "8"), 2 * MIB),
    "blocks": (("--size", "128x128x128"), 130 * 130 * 130 * 8),
    "blocks-one-writer": (("--size", "128x128x128", "--writers", "one"), 130 * 130 * 130 * 8 + 2 * MIB),
    "metadata": (("--objects", "20000"), 8 * MIB),
    "metadata-hdf5": (("--objects", "2000", "--interface", "hdf5"), 8 * MIB),
}


def peaks(kernel: Path, folder: Path, *options: str) -> list[int]:
    """The most bytes that each of two ranks had at once."""
    once = ("--repeats", "1", "--warmup", "0", "--fsync", "no", "--drop-cache", "no")
    done = run_mpi(2, sys.executable, "-c", PEAK, kernel, "--dir", folder, *once, *options, timeout=600)
    assert done.returncode == 0, done.stderr
    return [int(line.split()[1]) for line in done.stderr.splitlines() if line.startswith("peak")]


@pytest.fixture
def folder(tmp_path: Path, name: str) -> Iterator[Path]:
    """On the disk; many small files, which hold no data, in memory."""
    if name != "metadata":
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="iogauge-metadata-", dir=in_memory()) as folder:
        yield Path(folder)


@pytest.mark.parametrize("name", CASES)
def test_a_rank_needs_its_buffers_and_64_mib(kernels, folder, name):
    options, buffers = CASES[name]
    found = peaks(kernels / name.partition("-")[0], folder, *options)
    assert len(found) == 2
    assert max(found) <= buffers + 64 * MIB
