"""The kernels themselves, really run: true records, bad input, defects, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest
from conftest import CHECKOUT, MPI_ENVIRONMENT, PATIENCE_SECONDS, needs_mpich, needs_root, run_mpi, wait_until

from iogauge.adapters.kernel import read_records

SCHEMA = json.loads((CHECKOUT / "kernels" / "measurement.schema.json").read_text())
SMALL = ("--repeats", "2", "--warmup", "0")


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def kernel(kernels: Path, name: str, target: Path, *options: str, ranks: int = 2, **kwargs):
    return run_mpi(ranks, kernels / name, "--dir", target, *SMALL, *options, **kwargs)


@pytest.mark.parametrize("name", ["particles", "segments"])
def test_records_follow_the_schema_and_are_true(kernels, target, name):
    sizes = ("--particles", "64K") if name == "particles" else ("--block", "1M")
    done = kernel(kernels, name, target, *sizes, "--baseline", "interface=mpiio", "--baseline", "interface=posix")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == 6
    for line in lines:
        jsonschema.validate(json.loads(line), SCHEMA)
    measurements = read_records(done.stdout)
    assert {m.interface for m in measurements} == {"hdf5", "mpiio", "posix"}
    assert all(m.verified and len(m.repeats) == 2 for m in measurements)
    expected = 2 * (64 << 10) * 32 * 2 if name == "particles" else 2 << 20
    assert {m.logical_bytes for m in measurements} == {expected}
    assert all(m.file_bytes >= m.logical_bytes for m in measurements)
    assert list(target.iterdir()) == []


def test_rows_of_the_table_are_the_records(kernels, target):
    done = kernel(kernels, "segments", target, "--block", "1M")
    table = [line for line in done.stdout.splitlines() if line.startswith(("write", "read"))]
    measurements = read_records(done.stdout)
    assert len(table) == len(measurements) == 2
    for line, m in zip(table, measurements, strict=True):
        assert f"{m.best_observed:.1f}" in line.split()


def test_the_json_file_is_written_whole(kernels, target, tmp_path):
    done = kernel(kernels, "segments", target, "--block", "1M", "--json", str(tmp_path / "records.jsonl"))
    assert done.returncode == 0
    assert "{" not in done.stdout
    assert len(read_records(tmp_path / "records.jsonl")) == 2
    assert [p.name for p in tmp_path.glob("records*")] == ["records.jsonl"]


@pytest.mark.parametrize(
    ("options", "bytes_read"),
    [
        (("--selection", "partial", "--fraction", "0.25"), 0.25),
        (("--selection", "strided", "--stride", "64", "--block", "16"), 0.25),
        (("--dimensions", "3", "--selection", "partial", "--fraction", "0.5"), 0.5),
    ],
)
def test_a_selection_reads_that_part_and_the_write_is_verified_whole(kernels, target, options, bytes_read):
    done = kernel(kernels, "particles", target, "--particles", "64K", *options)
    write, read = read_records(done.stdout)
    assert read.logical_bytes == write.logical_bytes * bytes_read
    assert write.repeats[0].verified_bytes == write.logical_bytes


def test_reads_are_of_data_that_another_rank_wrote(kernels, target):
    read = read_records(kernel(kernels, "segments", target, "--block", "1M", ranks=3).stdout)[1]
    assert read.read_shift is not None
    assert (read.read_shift.ranks, read.read_shift.other_rank_fraction) == (1, 1.0)


def test_the_cache_is_measured_before_and_after_it_is_asked_to_drop(kernels, target):
    dropped = read_records(kernel(kernels, "segments", target, "--block", "4M").stdout)[1]
    kept = read_records(kernel(kernels, "segments", target, "--block", "4M", "--drop-cache", "no").stdout)[1]
    assert all(repeat.cached_fraction_before_drop == 1 for repeat in dropped.repeats)
    assert all(repeat.cached_fraction == 1 for repeat in kept.repeats)
    if (
        subprocess.run(["stat", "-f", "-c", "%T", target], capture_output=True, text=True, check=True).stdout.strip()
        == "tmpfs"
    ):
        pytest.skip("needs a temporary folder on a disk: nothing can be dropped from a file system in memory")
    assert all(repeat.cached_fraction == 0 for repeat in dropped.repeats)


def test_placement_names_host_and_cores_of_every_rank(kernels, target):
    cores = sorted(os.sched_getaffinity(0))[:1]
    done = kernel(kernels, "segments", target, "--block", "1M", launcher=f"taskset -c {cores[0]} mpirun --bind-to none")
    places = read_records(done.stdout)[0].placement
    assert [place.cpus for place in places] == [tuple(cores)] * 2
    assert {place.host for place in places} == {os.uname().nodename}


def test_flush_is_a_phase_of_its_own_and_can_be_left_out(kernels, target):
    with_flush = read_records(kernel(kernels, "segments", target, "--block", "1M", "--interface", "posix").stdout)[0]
    without = read_records(
        kernel(kernels, "segments", target, "--block", "1M", "--interface", "posix", "--fsync", "no").stdout
    )[0]
    # The best of the repeats: others may take the core between two looks at the clock.
    assert min(r.flush_seconds for r in without.repeats) < 1e-5
    assert with_flush.pattern["fsync"] is True
    assert min(r.flush_seconds for r in with_flush.repeats) > min(r.flush_seconds for r in without.repeats)


@pytest.mark.parametrize("interface", ["hdf5", "mpiio", "posix"])
def test_the_flush_reaches_the_disk(kernels, target, tmp_path, interface):
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    trace = tmp_path / "trace"
    wrapper = f"strace -f -e trace=fsync,fdatasync -o {trace}"
    for fsync, expected in (("yes", True), ("no", False)):
        options = (
            "--block",
            "64K",
            "--transfer",
            "64K",
            "--interface",
            interface,
            "--fsync",
            fsync,
            "--drop-cache",
            "no",
        )
        done = run_mpi(
            1, *wrapper.split(), kernels / "segments", "--dir", target, *SMALL, "--operation", "write", *options
        )
        assert done.returncode == 0, done.stderr
        assert ("sync(" in trace.read_text()) == expected, interface


@pytest.mark.parametrize(("name", "interface"), [("particles", "mpiio"), ("particles", "hdf5"), ("blocks", "netcdf")])
def test_hints_reach_the_library_below(kernels, target, name, interface):
    """ROMIO, which Open MPI has beside its own, prints the hints that are in effect when a file is opened."""
    sizes = ("--particles", "1K", "--steps", "1") if name == "particles" else ("--size", "4x4x4")
    hints = ("--mpi-info", "cb_buffer_size=65536;romio_cb_write=enable")
    romio = {"OMPI_MCA_io": "romio321", "ROMIO_PRINT_HINTS": "1"}
    done = kernel(kernels, name, target, *sizes, "--interface", interface, *hints, env=romio)
    if "built without netCDF-4" in done.stderr:
        pytest.skip("needs a parallel netCDF-4 (libnetcdf-mpi-dev)")
    assert done.returncode == 0, done.stderr
    printed = dict(re.findall(r"^key = (\S+)\s+value = (\S+)", done.stdout, re.MULTILINE))
    if not printed:
        pytest.skip("needs Open MPI with ROMIO, which prints hints")
    assert printed["cb_buffer_size"] == "65536"
    assert printed["romio_cb_write"] == "enable"
    records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert {record["pattern"]["mpi_info"] for record in records} == {hints[1]}


def test_emulated_computing_is_in_no_rate(kernels, target):
    begin = time.monotonic()
    done = kernel(kernels, "particles", target, "--particles", "1K", "--steps", "3", "--compute-seconds", "0.2")
    assert time.monotonic() - begin > 2 * 2 * 2 * 0.2
    # Computing would be in each repeat, between three steps; a busy machine is not in the best of them.
    assert all(min(r.total_seconds for r in m.repeats) < 2 * 0.2 for m in read_records(done.stdout))


BAD = [
    ("segments", ("--block", "10M", "--transfer", "3M"), "--transfer 3145728: does not divide --block 10485760"),
    ("segments", ("--block", "0"), "--block 0: out of range"),
    ("segments", ("--block", "4T", "--segments", "1M", "--files", "100"), "more bytes than a file offset holds"),
    ("segments", ("--block", "99999999T"), "--block 99999999T: out of range"),
    ("segments", ("--transfer", "12", "--block", "24"), "--transfer 12: not a multiple of 8"),
    ("segments", ("--block", "1T"), "the case writes"),
    ("segments", ("--interface", "netcdf"), "--interface netcdf: not for segments"),
    ("segments", ("--interface", "netcdfs"), "--interface netcdfs: allowed: hdf5|mpiio|posix|netcdf"),
    ("segments", ("--interface", "posix", "--collective", "yes"), "--collective yes: --interface posix"),
    ("segments", ("--collective", "yes", "--file-per-process", "yes"), "--collective yes"),
    ("segments", ("--chunk", "1G"), "--chunk: 134217728 elements in dimension 1, more than the dataset's 8388608"),
    ("segments", ("--json", "/no/such/folder/x"), "--json /no/such/folder/x: No such file"),
    ("segments", ("--json", "/dev"), "--json /dev: is not a regular file"),
    ("segments", ("--repeats", "0"), "--repeats 0: out of range"),
    ("segments", ("--colective", "yes"), "--colective: unknown option"),
    ("segments", ("--block",), "--block: a value is missing"),
    ("segments", ("--shift", "1"), "--shift 1: there are 1 ranks"),
    ("particles", ("--mpi-info", "cb_nodes"), "--mpi-info cb_nodes: KEY=VALUE[;KEY=VALUE...] is expected"),
    ("particles", ("--baseline", "mpi-info=a=1;=2"), "--mpi-info a=1;=2: KEY=VALUE"),
    ("particles", ("--particles", "7", "--dimensions", "2"), "--particles 7: cannot be laid out"),
    ("particles", ("--particles", "4503599627370496", "--steps", "1000"), "more bytes than a file offset holds"),
    ("particles", ("--selection", "partial", "--fraction", "0"), "--fraction 0"),
    ("particles", ("--selection", "partial", "--fraction", "1.5"), "--fraction 1.5: out of range"),
    ("particles", ("--selection", "strided", "--block", "9", "--stride", "3"), "--stride 3: smaller than --block 9"),
    ("particles", ("--baseline", "locality=XX"), "--locality XX: allowed: CC|CI|IC|II"),
    ("particles", ("--baseline", "seed=7"), "--baseline seed=7: a baseline shares"),
]


@pytest.mark.parametrize(("name", "options", "message"), BAD)
def test_bad_arguments_are_named_and_nothing_is_written(kernels, target, name, options, message):
    # Without a launcher: one rank, quick. That all ranks of several end is the next test's.
    done = subprocess.run(
        [kernels / name, "--dir", target, *options],
        capture_output=True,
        text=True,
        env={**os.environ, **MPI_ENVIRONMENT},
    )
    assert done.returncode == 2, done.stderr
    assert f"{name}: error: " in done.stderr
    assert message in done.stderr
    assert list(target.iterdir()) == []


def test_a_bad_argument_ends_every_rank_with_one_message(kernels, target):
    done = kernel(kernels, "segments", target, "--block", "10M", "--transfer", "3M", ranks=3)
    assert done.returncode == 2
    assert done.stderr.count("segments: error:") == 1


@pytest.mark.parametrize("folder", ["/no/such/folder", "/etc/passwd", ""])
def test_a_missing_folder_is_named(kernels, folder):
    done = run_mpi(2, kernels / "segments", "--dir", folder, "--block", "1M")
    assert done.returncode == 2
    assert f"--dir{' ' + folder if folder else ''}:" in done.stderr


def test_an_existing_file_is_not_overwritten(kernels, target):
    assert kernel(kernels, "segments", target, "--block", "1M", "--keep", "yes").returncode == 0
    kept = {path: path.read_bytes() for path in target.iterdir()}
    assert kept
    done = kernel(kernels, "segments", target, "--block", "1M")
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert {path: path.read_bytes() for path in target.iterdir()} == kept


@pytest.mark.parametrize("name", ["particles", "segments", "tiles", "blocks"])
def test_with_keep_empty_the_cases_last_file_stays_without_a_byte_and_no_baselines(kernels, target, name):
    done = kernel(kernels, name, target, "--keep-empty", "yes", "--baseline", "interface=posix")
    assert done.returncode == 0, done.stderr
    (kept,) = target.iterdir()
    assert (kept.suffix, kept.stat().st_size) == (".h5", 0)


@needs_root
def test_a_read_only_folder_is_named(kernels, target):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1M", "tmpfs", target], check=True)
    try:
        done = kernel(kernels, "segments", target, "--block", "64K", "--transfer", "64K")
    finally:
        subprocess.run(["umount", target], check=True)
    assert done.returncode == 2
    assert "Read-only file system" in done.stderr


@needs_root
@pytest.mark.parametrize("interface", ["hdf5", "mpiio", "posix"])
def test_a_file_system_that_fills_up_in_mid_write_is_named_and_left_clean(kernels, target, interface):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", target], check=True)
    try:
        assert os.path.ismount(target), "never fill anything else"
        # Sparse until written: the room that the kernel sees at its start is taken while it runs.
        command = [
            kernels / "segments",
            "--dir",
            target,
            "--interface",
            interface,
            "--block",
            "24M",
            "--repeats",
            "100000",
        ]
        process = subprocess.Popen(
            ["mpirun", "-np", "2", *map(str, command)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **MPI_ENVIRONMENT},
        )
        while not list(target.iterdir()) and process.poll() is None:
            time.sleep(0.01)
        # The kernel's file is gone for a moment between repeats: take every byte there is until it notices.
        with (target / "filler").open("wb", buffering=0) as filler:
            while process.poll() is None:
                try:
                    filler.write(bytes(1 << 20))
                except OSError:
                    time.sleep(0.005)
        errors = process.communicate(timeout=PATIENCE_SECONDS)[1]
        assert process.returncode == 2, errors
        assert "segments: error:" in errors
        assert [path.name for path in target.iterdir()] == ["filler"]
    finally:
        subprocess.run(["umount", target], check=True)


@pytest.mark.parametrize("interface", ["hdf5", "mpiio", "posix"])
@pytest.mark.parametrize(
    "options", [("--locality", "CC"), ("--locality", "II", "--dimensions", "2"), ("--locality", "CI")]
)
def test_one_changed_byte_is_found_and_named(kernels, target, interface, options):
    common = ("--particles", "64K", "--interface", interface, *options)
    assert kernel(kernels, "particles", target, *common, "--operation", "write", "--keep", "yes").returncode == 0
    (path,) = target.iterdir()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 3)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    done = kernel(kernels, "particles", target, *common, "--operation", "read")
    assert done.returncode == 3, done.stderr
    assert "data differ: dataset Timestep_" in done.stderr
    for word in ("index ", "expected 0x", "found 0x", "found 1 words that differ"):
        assert word in done.stderr
    assert "{" not in done.stdout, "no rate from false data"
    assert path.exists(), "it is not the reader's file to remove"


def test_a_killed_run_leaves_no_file(kernels, target):
    process = subprocess.Popen(
        ["mpirun", "-np", "2", kernels / "segments", "--dir", target, "--block", "64M", "--repeats", "100000"],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **MPI_ENVIRONMENT},
    )
    while not list(target.iterdir()) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=PATIENCE_SECONDS)
    wait_until(lambda: not list(target.iterdir()))


@needs_mpich
def test_a_launcher_of_another_mpi_starts_no_worlds_of_one(kernels, target, tmp_path):
    """mpirun of Open MPI with a binary of MPICH: each process believes to be alone."""
    build = tmp_path / "mpich"
    for command in (
        [
            "cmake",
            "-S",
            CHECKOUT / "kernels",
            "-B",
            build,
            "-DBUILD_TESTING=OFF",
            "-DCMAKE_C_COMPILER=mpicc.mpich",
            "-DIOGAUGE_HDF5=OFF",
        ],
        ["cmake", "--build", build, "--parallel", "2"],
    ):
        assert subprocess.run([*map(str, command)], capture_output=True, check=False).returncode == 0
    done = kernel(build, "segments", target, "--interface", "posix", launcher="mpirun.openmpi")
    assert done.returncode == 2
    assert "the launcher started 2 processes" in done.stderr
    assert "MPI's world has 1 rank" in done.stderr
    assert "{" not in done.stdout
    done = kernel(build, "segments", target, "--block", "1M", launcher="mpirun.mpich")
    assert done.returncode == 2, "built without HDF5, which is the default interface"
    assert "--interface hdf5: these kernels were built without HDF5" in done.stderr


def test_the_version_and_the_help_are_told(kernels):
    for name in ("blocks", "particles", "segments"):
        done = subprocess.run(
            [kernels / name, "--help"], capture_output=True, text=True, env={**os.environ, **MPI_ENVIRONMENT}
        )
        assert done.returncode == 0
        assert "example: mpirun" in done.stdout
        assert "--baseline" in done.stdout
