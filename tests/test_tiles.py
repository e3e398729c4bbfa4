"""tiles, really run: hdf5_iotest's files and cases, its configuration, sweeps that resume, and bad input."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest
from conftest import CHECKOUT, MPI_ENVIRONMENT, PATIENCE_SECONDS, run_mpi, wait_until

from iogauge.adapters.kernel import read_records
from iogauge.sweep import case_of, name_of

SCHEMA = json.loads((CHECKOUT / "kernels" / "measurement.schema.json").read_text())
TINY = ("--repeats", "1", "--warmup", "0", "--steps", "2", "--arrays", "3", "--rows", "4", "--columns", "6")
INI = """[DEFAULT]
# hdf5_iotest's own keys

version = 0
steps = 2
arrays = 3
rows = 4
columns = 6
process-rows = 2
process-columns = 1
scaling = weak
alignment-increment = 1
alignment-threshold = 0
meta-block-size = 2048
single-process = posix
hdf5-file = iot.h5
csv-file = iot.csv
"""


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def tiles(kernels: Path, target: Path, *options: str | Path, ranks: int = 2, **kwargs):
    return run_mpi(ranks, kernels / "tiles", "--dir", target, *TINY, *options, **kwargs)


def with_ini(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "iotest.ini"
    path.write_text(text)
    return path


def test_the_product_is_hdf5_iotests_96_cases_once_each_in_its_order(kernels, target, tmp_path):
    done = tiles(kernels, target, "--suite", "product", "--json", tmp_path / "r.jsonl")
    assert done.returncode == 0, done.stderr
    measurements = read_records(tmp_path / "r.jsonl")
    names = [name_of(case_of(m)) for m in measurements if m.operation == "write"]
    order = itertools.product(
        ("2", "3", "4"),
        ("step", "array"),
        ("contiguous", "chunked"),
        ("value", "never"),
        ("earliest", "latest"),
        ("independent", "collective"),
    )
    keys = ("rank", "slowest", "layout", "fill", "libver", "io")
    assert names == [name_of(dict(zip(keys, case, strict=True))) for case in order]
    assert {m.logical_bytes for m in measurements} == {2 * 3 * 2 * 4 * 6 * 8}
    assert all(m.verified for m in measurements)
    for line in (tmp_path / "r.jsonl").read_text().splitlines():
        jsonschema.validate(json.loads(line), SCHEMA)
    assert list(target.iterdir()) == []


def test_a_single_process_has_48_cases_and_the_baseline_suite_its_three_drivers(kernels, target):
    one = read_records(tiles(kernels, target, "--suite", "product", ranks=1).stdout)
    assert len({name_of(case_of(m)) for m in one}) == 48
    done = tiles(kernels, target, "--suite", "baseline", "--cases", "*rank=2,slowest=step,layout=contiguous*")
    single = read_records(done.stdout)
    assert {case_of(m)["io"] for m in single} == {"posix", "core", "mpi-io-uni"}
    assert {(m.ranks, str(m.pattern["driver"])) for m in single} == {(1, "sec2"), (1, "core"), (1, "mpio")}


@pytest.mark.parametrize("slowest", ["step", "array"])
@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("scaling", ["weak", "strong"])
def test_the_file_is_what_hdf5_iotest_makes(kernels, target, rank, slowest, scaling):
    h5py = pytest.importorskip("h5py")
    grid = ("--process-rows", "2", "--process-columns", "2", "--scaling", scaling, "--layout", "chunked")
    done = tiles(kernels, target, *grid, "--rank", str(rank), "--slowest", slowest, "--keep", "yes", ranks=4)
    assert done.returncode == 0, done.stderr
    whole = (8, 12) if scaling == "weak" else (4, 6)
    tile = (4, 6) if scaling == "weak" else (2, 3)
    step_first = slowest == "step"
    (path,) = target.iterdir()
    with h5py.File(path) as file:
        found = {}
        file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
        shapes = {name: (item.shape, item.chunks, item.maxshape) for name, item in found.items()}
    if rank == 2:
        outer, inner = (("step", 2), ("array", 3)) if step_first else (("array", 3), ("step", 2))
        names = {f"{outer[0]}={i}/{inner[0]}={j}" for i in range(outer[1]) for j in range(inner[1])}
        assert shapes == dict.fromkeys(names, (whole, tile, whole))
    elif rank == 3:
        names = {f"step={i}" for i in range(2)} if step_first else {f"array={i}" for i in range(3)}
        inner = 3 if step_first else 2
        limit = (3, *whole) if step_first else (None, *whole)
        assert shapes == dict.fromkeys(names, ((inner, *whole), (1, *tile), limit))
    else:
        extent, chunk, limit = (
            ((2, 3, *whole), (1, 3, *tile), (None, 3, *whole))
            if step_first
            else ((3, 2, *whole), (3, 1, *tile), (3, None, *whole))
        )
        assert shapes == {"dataset": (extent, chunk, limit)}


def test_hdf5_iotests_configuration_is_read_with_comments_and_blank_lines(kernels, target, tmp_path):
    ini = with_ini(tmp_path, INI + "\none-case = 17\n\n")
    measurements = read_records(run_mpi(2, kernels / "tiles", "--dir", target, "--ini", ini, "--repeats", "1").stdout)
    # hdf5_iotest's own output for case 17: rk=2, slowest array, contiguous, fill, earliest, independent
    assert {name_of(case_of(m)) for m in measurements} == {
        "rank=2,slowest=array,layout=contiguous,fill=value,libver=earliest,io=independent"
    }
    assert {m.logical_bytes for m in measurements} == {2 * 3 * 2 * 4 * 6 * 8}


def test_alignment_and_metadata_block_double_the_cases_and_gzip_acts_where_it_can(kernels, target, tmp_path):
    text = INI.replace("alignment-increment = 1", "alignment-increment = 512").replace("2048", "4096") + "gzip = 3\n"
    options = ("--cases", "*rank=4,slowest=step*fill=never*libver=latest*", "--repeats", "1")
    done = run_mpi(2, kernels / "tiles", "--dir", target, "--ini", with_ini(tmp_path, text), *options)
    assert done.returncode == 0, done.stderr
    writes = [m for m in read_records(done.stdout) if m.operation == "write"]
    assert len(writes) == 2 * 2 * 2 * 2  # layout, alignment, metadata block, io
    assert {(m.pattern["alignment_bytes"], m.pattern["meta_block_bytes"]) for m in writes} == {
        (a, b) for a in (0, 512) for b in (2048, 4096)
    }
    for m in writes:
        can = m.pattern["layout"] == "chunked" and m.collective
        assert (m.pattern["compress"], m.pattern["compress_level"]) == (("gzip", 3) if can else ("none", 0))


def test_szip_that_could_not_be_read_again_is_refused_or_works(kernels, target):
    done = tiles(kernels, target, "--layout", "chunked", "--io", "collective", "--compress", "szip")
    if done.returncode == 0:  # HDF5 1.13.1 or newer
        assert {m.pattern["compress"] for m in read_records(done.stdout)} == {"szip"}
    else:
        assert done.returncode == 2
        assert "through MPI-IO this HDF5 writes what it cannot read again" in done.stderr
    assert list(target.iterdir()) == []


def test_szip_acts_on_the_chunked_cases_of_one_process(kernels, target, tmp_path):
    text = INI.replace("process-rows = 2", "process-rows = 1") + "szip = H5_SZIP_EC_OPTION_MASK, 16\n"
    done = run_mpi(
        1,
        kernels / "tiles",
        "--dir",
        target,
        "--ini",
        with_ini(tmp_path, text),
        "--cases",
        "*rank=3*fill=never*",
        "--repeats",
        "1",
    )
    assert done.returncode == 0, done.stderr
    found = {(m.pattern["layout"], m.pattern["compress"]) for m in read_records(done.stdout)}
    assert found == {("contiguous", "none"), ("chunked", "szip")}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("steps = 2", "stepz = 2"), "line 5: unknown key stepz"),
        (("steps = 2", "steps = two"), "line 5: steps = two"),
        (("steps = 2", "steps"), "line 5: steps: key = value is expected"),
        (("steps = 2", "steps = 2\nsteps = 3"), "line 6: key steps is given a second time"),
        (("scaling = weak", "scaling = weaker"), "allowed: weak|strong"),
        (("single-process = posix", "single-process = mpi"), "single-process = mpi: allowed: posix|core|mpi-io-uni"),
        (("[DEFAULT]", "[OTHER]"), "line 1: unknown section [OTHER]; allowed: [DEFAULT]"),
        (("process-rows = 2", "process-rows = 3"), "--process-rows 3 times --process-columns 1: is not the 2 ranks"),
        (("version = 0", "version = 1"), "version = 1: allowed: 0"),
        (("version = 0", "delay = 3 weeks"), "delay's unit = weeks: allowed: s|sec|m|min|ms|us"),
        (("version = 0", "szip = 8"), "szip = 8: MASK, PIXELS is expected"),
        (("version = 0", "split = 1"), "--driver split: ranks that share a file overwrite each other's data"),
        (("version = 0", "restart = 1"), "restart = 1: --json is needed"),
        (("version = 0", "one-case = 97"), "--cases 97: fits none of the 96 cases"),
    ],
)
def test_a_wrong_configuration_is_named_by_file_line_and_key(kernels, target, tmp_path, change, said):
    ini = with_ini(tmp_path, INI.replace(*change))
    done = run_mpi(2, kernels / "tiles", "--dir", target, "--ini", ini)
    assert done.returncode == 2
    assert said in done.stderr
    if "line" in said:
        assert str(ini) in done.stderr
    assert done.stderr.count("tiles: error:") == 1
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--process-rows", "2", "--process-columns", "2"), "is not the 2 ranks there are"),
        (("--scaling", "strong", "--rows", "7"), "--rows 7: --process-rows 2 does not divide it"),
        (("--rank", "5"), "--rank 5: out of range; allowed: 2 to 4"),
        (("--rows", "4503599627370496", "--columns", "4096"), "more bytes than a file offset holds"),
        (("--file-per-process", "yes"), "--file-per-process yes: the ranks of tiles share their arrays"),
        (("--compress", "gzip"), "--compress: a chunked dataset is needed"),
        (("--layout", "chunked", "--compress", "gzip"), "--collective yes"),
        (
            ("--layout", "chunked", "--io", "collective", "--compress", "szip"),
            "through MPI-IO this HDF5 writes what it",
        ),
        (("--driver", "core"), "only default, mpio and subfiling can share a file"),
        (("--sweep", "rank"), "--sweep rank: NAME=VALUE|VALUE"),
        (("--sweep", "rank=2|3", "--sweep", "rank=4"), "--sweep rank=4: rank=2|3 sweeps the same option"),
        (("--sweep", "rank=2|9"), "rank=9: --rank 9: out of range"),
        (("--sweep", "rang=2|3"), "--sweep rang=2: unknown option rang"),
        (("--suite", "product", "--cases", "*rank=7*"), "--cases *rank=7*: fits none of the 96 cases"),
        (("--cases", "*"), "there is no --sweep to choose from"),
        (("--resume", "yes"), "--json is needed"),
        (("--processes", "3"), "--processes 3: there are 2 ranks"),
        (("--ini", "/no/such.ini"), "/no/such.ini: No such file"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_written(kernels, target, options, said):
    done = tiles(kernels, target, *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("tiles: error:") == 1
    assert list(target.iterdir()) == []


SWEEP = ("--sweep", "rank=2|3|4", "--sweep", "layout=contiguous|chunked", "--baseline", "libver=latest")


def test_a_sweep_that_was_cut_off_goes_on_with_the_missing_cases_alone(kernels, target, tmp_path):
    whole = tmp_path / "r.jsonl"
    part = tmp_path / "r.jsonl.part"
    slow = ("--delay", "0.3", "--json", whole)
    process = subprocess.Popen(
        ["mpirun", "-np", "2", kernels / "tiles", "--dir", target, *TINY, *SWEEP, *slow],
        env={**os.environ, **MPI_ENVIRONMENT},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: part.exists() and part.read_text().count("\n") >= 8)
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=PATIENCE_SECONDS)
    done_before = part.read_text().splitlines()
    assert 8 <= len(done_before) < 24
    assert list(target.iterdir()) == []
    part.write_text("\n".join([*done_before, done_before[0][:100]]))  # a line that was being written
    assert "--resume yes goes on with it" in tiles(kernels, target, *SWEEP, *slow).stderr
    other = tiles(kernels, target, *SWEEP, *slow, "--resume", "yes", "--seed", "5")
    assert other.returncode == 2
    assert f"{part}, line 1: not a record of this sweep" in other.stderr
    assert part.read_text().splitlines()[:-1] == done_before

    resumed = tiles(kernels, target, *SWEEP, *slow, "--resume", "yes")
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.count(": measured before") == len(done_before) // 4
    lines = whole.read_text().splitlines()
    kept = done_before[: len(done_before) // 4 * 4]
    assert lines[: len(kept)] == kept
    assert len({name_of(case_of(m)) for m in read_records(whole)}) == 6
    assert len(lines) == 24
    assert not part.exists()


def test_another_word_in_the_file_is_found_with_its_place(kernels, target):
    h5py = pytest.importorskip("h5py")
    assert tiles(kernels, target, "--rank", "3", "--operation", "write", "--keep", "yes").returncode == 0
    (path,) = target.iterdir()
    with h5py.File(path, "r+") as file:
        file["step=1"][2, 5, 3] += 1
    done = tiles(kernels, target, "--rank", "3", "--operation", "read")
    assert done.returncode == 3
    assert f"data differ: dataset step=1, step 1, index {(2 * 8 + 5) * 6 + 3}:" in done.stderr
