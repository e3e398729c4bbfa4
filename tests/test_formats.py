"""The File Format Comparison in Python: the same bytes in the same chunks, measured in turn, verified, and nothing left."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import CHECKOUT, PATIENCE_SECONDS, data_left, needs_root
from test_reframe_checks import one, reframe, site, values, without_portable_bands  # noqa: F401

from iogauge import page_cache
from iogauge.adapters.kernel import read_records
from iogauge.bands import PortableBands, SiteBands
from iogauge.errors import InputError
from iogauge.judge import Expectation, judge
from iogauge.measurement import ratio

np = pytest.importorskip("numpy", reason="needs iogauge[formats]")
h5py = pytest.importorskip("h5py", reason="needs iogauge[formats]")
netCDF4 = pytest.importorskip("netCDF4", reason="needs iogauge[formats]")  # noqa: N816
zarr = pytest.importorskip("zarr", reason="needs iogauge[formats], and Python 3.11")

KERNEL = CHECKOUT / "kernels" / "formats"
SCHEMA = json.loads((CHECKOUT / "kernels" / "measurement.schema.json").read_text())
sys.path.insert(0, str(KERNEL))

import operations  # noqa: E402
import stores  # noqa: E402
from sizes import Sizes  # noqa: E402

INTERFACES = ("hdf5", "zarr", "netcdf")
SUFFIX = {"hdf5": "hdf5", "zarr": "zarr", "netcdf": "netc"}
SMALL = {"FILE_NAME": "small", "NUMBER_DATASETS": 3, "NUMBER_ELEMENTS": [20, 16], "CHUNK_ELEMENTS": [8, 16]}
GZIP = {"COMPRESSION": "gzip", "COMPRESSION_LEVEL": 2}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def write_config(target: Path, keys: dict[str, Any] | str) -> Path:
    path = target.parent / "sizes.yaml"
    path.write_text(keys if isinstance(keys, str) else json.dumps(keys))  # JSON is YAML
    return path


def formats(target: Path, keys: dict[str, Any] | str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, KERNEL, "--config", write_config(target, keys), "--dir", target, *options]
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)


def kept(target: Path, keys: dict[str, Any], *options: str) -> dict[str, Path]:
    """Files of all formats, left by a run."""
    done = formats(target, keys, "--operation", "write", "--repeats", "1", "--warmup", "0", "--keep", "yes", *options)
    assert done.returncode == 0, done.stderr
    return {name: target / "small" / f"small.{SUFFIX[name]}" for name in INTERFACES}


@pytest.fixture(scope="module")
def all_records(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What one run of all formats prints."""
    target = tmp_path_factory.mktemp("records") / "target"
    target.mkdir()
    done = formats(target, SMALL, "--repeats", "2")
    assert done.returncode == 0, done.stderr
    assert list(target.iterdir()) == []
    return done.stdout


def test_records_follow_the_schema_and_are_true(all_records):
    lines = [line for line in all_records.splitlines() if line.startswith("{")]
    for line in lines:
        jsonschema.validate(json.loads(line), SCHEMA)
    measurements = read_records(all_records)
    assert [(m.interface, m.operation) for m in measurements] == [
        *itertools.product(INTERFACES, ("create", "write", "open", "read"))
    ]
    for m in measurements:
        assert (m.role, m.differs) == (
            ("main", {}) if m.interface == "hdf5" else ("baseline", {"interface": m.interface})
        )
        moves = m.operation in ("write", "read")
        assert (m.logical_bytes, m.operations) == ((3 * 20 * 16 * 4, 0) if moves else (0, 3))
        assert m.verified
        assert len(m.repeats) == 2
        assert m.file_bytes >= (m.logical_bytes or 1)
        assert (m.software.mpi, m.software.hdf5) == (None, h5py.version.hdf5_version)
        assert m.software.netcdf == netCDF4.__netcdf4libversion__
        assert m.software.packages["zarr"] == zarr.__version__


def test_close_and_flush_are_in_the_observed_rate_and_making_data_in_none(all_records):
    for m in read_records(all_records):
        for repeat in m.repeats:
            parts = (repeat.open_seconds, repeat.transfer_seconds, repeat.flush_seconds, repeat.close_seconds)
            assert repeat.total_seconds == pytest.approx(sum(parts))
            assert repeat.close_seconds > 0
            assert (repeat.flush_seconds > 0) == (m.operation in ("create", "write"))


def test_the_judge_takes_the_ratio_to_each_other_format(all_records):
    measurements = read_records(all_records)
    judgement = judge(
        measurements,
        Expectation(file_system="disk", type="other", nodes=1, ranks_per_node=1),
        SiteBands.model_validate({"schema": "iogauge.bands/1", "site": "here"}),
        PortableBands.model_validate({"schema": "iogauge.portable/1", "from": {"method": "none"}, "bands": []}),
    )
    assert judgement.verdict == "no reference"
    assert [row.key for row in judgement.main_rows] == [
        f"formats/{operation}/disk/1x1/chunked-2d/hdf5" for operation in ("create", "write", "open", "read")
    ]
    for row in judgement.main_rows:
        assert [found.label for found in row.ratios] == ["HDF5 to Zarr", "HDF5 to netCDF-4"]
        main, other = (
            next(m for m in measurements if (m.operation, m.interface) == (row.operation, name))
            for name in ("hdf5", "zarr")
        )
        assert row.ratios[0].pairs == ratio(main, other).pairs


def test_rows_of_the_table_are_the_records(all_records):
    table = [line.split() for line in all_records.splitlines() if line.split()[1:2] and line.split()[1] in INTERFACES]
    measurements = read_records(all_records)
    for words, m in zip(table, measurements, strict=True):
        assert words[:2] == [m.operation, m.interface]
        assert f"{m.best_observed:.1f}" in words


def test_the_json_file_is_written_whole(target, tmp_path):
    done = formats(
        target, SMALL, "--repeats", "1", "--formats", "netcdf,hdf5", "--json", str(tmp_path / "records.jsonl")
    )
    assert done.returncode == 0, done.stderr
    assert "{" not in done.stdout
    assert [(m.interface, m.role) for m in read_records(tmp_path / "records.jsonl")] == [
        *[("netcdf", "main")] * 4,
        *[("hdf5", "baseline")] * 4,
    ]
    assert [path.name for path in tmp_path.glob("*records*")] == ["records.jsonl"]


@pytest.mark.parametrize(
    ("more", "chunks", "level"),
    [({}, (8, 16), None), (GZIP, (8, 16), 2), ({"CHUNK_ELEMENTS": [20, 16]} | GZIP, (20, 16), 2)],
)
def test_all_formats_hold_the_same_chunks_compressed_alike(target, more, chunks, level):
    keys = SMALL | more
    files = kept(target, keys)
    expected = operations.content(Sizes.model_validate(keys), 1)
    decompressed = zlib.decompress if level else bytes
    for name in ("hdf5", "netcdf"):  # netCDF-4 files are HDF5 files
        with h5py.File(files[name]) as file:
            dataset = file["Dataset_1"]
            assert (dataset.shape, dataset.dtype, dataset.chunks) == ((20, 16), np.dtype("float32"), chunks)
            properties = dataset.id.get_create_plist()
            filters = [properties.get_filter(i) for i in range(properties.get_nfilters())]
            assert [(code, options) for code, _, options, _ in filters] == ([(1, (level,))] if level else [])
            assert properties.get_fill_time() == h5py.h5d.FILL_TIME_NEVER
            assert dataset.id.get_num_chunks() == -(-20 // chunks[0])
            assert decompressed(dataset.id.read_direct_chunk((0, 0))[1]) == expected[: chunks[0]].tobytes()
    with netCDF4.Dataset(files["netcdf"]) as file:
        variable = file["Dataset_1"]
        assert tuple(variable.chunking()) == chunks
        assert not any(dimension.isunlimited() for dimension in variable.get_dims())
        assert (variable.filters()["zlib"], variable.filters()["shuffle"]) == (level is not None, False)
        assert "_FillValue" not in variable.ncattrs()
    array = zarr.open_group(files["zarr"], mode="r")["Dataset_1"]
    assert (array.metadata.zarr_format, array.shape, array.chunks, array.shards) == (3, (20, 16), chunks, None)
    assert [codec.to_dict() for codec in (*array.filters, *array.compressors)] == (
        [{"name": "gzip", "configuration": {"level": level}}] if level else []
    )
    stored = sorted((files["zarr"] / "Dataset_1" / "c").rglob("0"))
    assert len([path for path in stored if path.is_file()]) == -(-20 // chunks[0])
    first = (files["zarr"] / "Dataset_1" / "c" / "0" / "0").read_bytes()
    assert (gzip.decompress(first) if level else first) == expected[: chunks[0]].tobytes()


@pytest.mark.parametrize(("chunk", "cache_bytes"), [([8, 16], 8 * 16 * 4), ([20, 16], 0)])
def test_both_libraries_on_hdf5_have_the_same_chunk_cache(target, chunk, cache_bytes):
    sizes = Sizes.model_validate(SMALL | {"CHUNK_ELEMENTS": chunk})
    for interface, cache in (
        ("hdf5", lambda array: array.id.get_access_plist().get_chunk_cache()[1]),
        ("netcdf", lambda array: array.get_var_chunk_cache()[0]),
    ):
        case = operations.Case(interface, stores.FORMATS[interface], target / interface, sizes)
        operations.create(case, operations.Stopwatch())
        for mode in ("update", "read"):
            arrays = case.arrays(case.path, mode, sizes)
            assert cache(arrays.array("Dataset_0")) == cache_bytes, (interface, mode)
            arrays.close()


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("datatype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(("elements", "chunk"), [([7], [3]), ([5, 4], [5, 3]), ([4, 3, 5], [4, 3, 5])])
def test_every_type_and_rank_is_read_back_as_written(target, interface, datatype, elements, chunk):
    keys = SMALL | {"NUMBER_ELEMENTS": elements, "CHUNK_ELEMENTS": chunk, "DATATYPE": datatype}
    case = operations.Case(interface, stores.FORMATS[interface], target / "x", Sizes.model_validate(keys), fsync=False)
    for operation in operations.OPERATIONS:
        operations.measure(case, operation)
    case.remove()
    assert list(target.iterdir()) == []


def test_data_are_a_function_of_seed_and_array():
    sizes = Sizes.model_validate(SMALL)
    again = operations.content(sizes, 1)
    assert (operations.content(sizes, 1) == again).all()
    assert (operations.content(sizes, 2) != again).any()
    assert (operations.content(sizes.model_copy(update={"seed": 2}), 1) != again).any()


def change_byte(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("more", [{}, GZIP], ids=["plain", "gzip"])
def test_one_changed_byte_is_found_and_named_in_every_format(target, more):
    keys = SMALL | more
    files = kept(target, keys)
    for name in INTERFACES:
        if name == "zarr":
            chunk = files[name] / "Dataset_2" / "c" / "1" / "0"
            change_byte(chunk, chunk.stat().st_size // 2)
        else:
            with h5py.File(files[name]) as file:
                info = file["Dataset_2"].id.get_chunk_info(1)
            change_byte(files[name], info.byte_offset + info.size // 2)
        done = formats(target, keys, "--operation", "read", "--formats", name)
        assert done.returncode == 3, done.stderr
        assert (
            f"formats: error: data differ: {'' if not more else 'cannot be read back: '}{name}, Dataset_2"
            in done.stderr
        )
        if not more:
            assert "(1 elements differ)" in done.stderr
            assert "expected" in done.stderr
        assert "{" not in done.stdout, "no rate from false data"
        assert files[name].exists(), "it is not the reader's file to remove"


def test_a_lost_chunk_is_no_fill_value(target):
    (kept(target, SMALL)["zarr"] / "Dataset_0" / "c" / "2" / "0").unlink()
    done = formats(target, SMALL, "--operation", "read", "--formats", "zarr")
    assert done.returncode == 3
    assert "data differ: zarr, Dataset_0, index [16, 0]" in done.stderr


def test_arrays_stored_in_another_way_are_found(target):
    kept(target, SMALL)
    for name in INTERFACES:
        done = formats(target, SMALL | GZIP | {"CHUNK_ELEMENTS": [4, 16]}, "--operation", "read", "--formats", name)
        assert done.returncode == 3
        assert f"data differ: {name}, Dataset_0: expected Layout(" in done.stderr
        assert "chunks=(8, 16), gzip=None" in done.stderr


def test_the_cache_is_measured_before_and_after_it_is_asked_to_drop(target):
    keys = SMALL | {"NUMBER_ELEMENTS": [256, 256], "CHUNK_ELEMENTS": [64, 256]}
    runs = {
        drop: [
            m
            for m in read_records(formats(target, keys, "--repeats", "2", "--drop-cache", drop).stdout)
            if m.operation in ("open", "read")
        ]
        for drop in ("yes", "no")
    }
    assert len(runs["yes"]) == len(runs["no"]) == 6
    for m in runs["no"]:
        assert all(repeat.cached_fraction == 1 for repeat in m.repeats)
    for m in runs["yes"]:
        assert m.operation == "read" or all(repeat.cached_fraction_before_drop == 1 for repeat in m.repeats)
    stat = subprocess.run(["stat", "-f", "-c", "%T", target], capture_output=True, text=True, check=True)
    if stat.stdout.strip() == "tmpfs":
        pytest.skip("needs a temporary folder on a disk: nothing can be dropped from a file system in memory")
    for m in runs["yes"]:
        assert all(repeat.cached_fraction == 0 for repeat in m.repeats)


def test_both_ways_to_look_at_the_page_cache_agree(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(os.urandom(10 * 4096 + 1))
    (tmp_path / "empty").touch()
    assert page_cache.cached_fraction([path, tmp_path / "empty"]) == 1
    monkeypatch.setattr(page_cache, "_by_cachestat", lambda fd, length: None)
    assert page_cache.cached_fraction([path]) == 1
    page_cache.drop([path])
    by_mincore = page_cache.cached_fraction([path])
    monkeypatch.undo()
    assert page_cache.cached_fraction([path]) == by_mincore
    assert page_cache.cached_fraction([tmp_path / "empty"]) is None


def test_every_repeat_begins_with_another_format(target, monkeypatch):
    ran: list[str] = []

    def run_case(plan, case, last):
        ran.append(case.interface)
        return {}

    monkeypatch.setattr(operations, "run_case", run_case)
    plan = operations.Plan(
        sizes=Sizes.model_validate(SMALL),
        formats=INTERFACES,
        operations=operations.OPERATIONS,
        folder=target,
        json=None,
        repeats=3,
        warmup=1,
        fsync=True,
        drop_cache=True,
        keep=False,
    )
    operations.measure_all(plan)
    rounds = [tuple(ran[i : i + 3]) for i in range(0, 12, 3)]
    assert rounds[0] == INTERFACES
    assert rounds[1] == ("zarr", "netcdf", "hdf5")
    assert rounds[2] == ("netcdf", "hdf5", "zarr")
    assert rounds[3] == INTERFACES


def test_no_fsync_no_flush(target):
    done = formats(target, SMALL, "--repeats", "1", "--fsync", "no")
    measurements = read_records(done.stdout)
    assert {repeat.flush_seconds for m in measurements for repeat in m.repeats} == {0.0}
    assert {m.pattern["fsync"] for m in measurements} == {False}


def test_the_originals_files_are_read_as_they_are(target):
    text = "FILE_NAME: 2048_Vector\nNUMBER_DATASETS: 4\nNUMBER_ELEMENTS:\n  - 128\n"
    done = formats(target, text, "--repeats", "1")
    assert done.returncode == 0, done.stderr
    m = read_records(done.stdout)[0]
    assert (m.operations, m.pattern["elements"], m.pattern["chunk"]) == (4, [128], [128])
    assert (m.pattern["datatype"], m.pattern["compress"]) == ("float32", "none")


LINES = "FILE_NAME: a\nNUMBER_DATASETS: 2\nNUMBER_ELEMENTS: [4, 4]\n"
BAD_FILES = [
    ("", "a mapping with FILE_NAME, NUMBER_DATASETS, NUMBER_ELEMENTS is expected"),
    ("- 1\n", "a mapping with FILE_NAME"),
    ("FILE_NAME: [\n", ":2: not YAML"),
    ("FILE_NAME: a\nNUMBER_DATASETS: 2\n", "NUMBER_ELEMENTS: missing; it is required"),
    (LINES.replace("2", "two"), ":2: NUMBER_DATASETS: Input should be a valid integer, not 'two'"),
    (LINES.replace("2", "true"), ":2: NUMBER_DATASETS: Input should be a valid integer, not True"),
    (LINES.replace("2", "0"), ":2: NUMBER_DATASETS: Input should be greater than 0, not 0"),
    (LINES.replace("[4, 4]", "4"), ":3: NUMBER_ELEMENTS: Input should be a valid list, not 4"),
    (LINES.replace("[4, 4]", "[4, 0]"), ":3: NUMBER_ELEMENTS.1: Input should be greater than 0, not 0"),
    (LINES.replace("[4, 4]", "[4, 4.5]"), ":3: NUMBER_ELEMENTS.1: Input should be a valid integer"),
    (LINES.replace("[4, 4]", "[1, 2, 3, 4]"), ":3: NUMBER_ELEMENTS: List should have at most 3 items"),
    (LINES.replace("[4, 4]", "[]"), ":3: NUMBER_ELEMENTS: List should have at least 1 item"),
    (LINES.replace(": a", ": 1"), ":1: FILE_NAME: Input should be a valid string, not 1"),
    (LINES.replace(": a", ": ../a"), ":1: FILE_NAME: a plain file name without a folder is expected, not '../a'"),
    (LINES.replace(": a", ": .."), ":1: FILE_NAME: a plain file name"),
    (LINES.replace(": a", ": ''"), ":1: FILE_NAME: a plain file name"),
    (LINES + "CHUNK_SIZE: 0\n", ":4: CHUNK_SIZE: unknown key; allowed: CHUNK_ELEMENTS, COMPRESSION, COMPRESSION_LEVEL"),
    (LINES + "CHUNK_ELEMENTS: [4, 5]\n", ":4: CHUNK_ELEMENTS: a size for each of NUMBER_ELEMENTS, none larger than"),
    (LINES + "CHUNK_ELEMENTS: [4]\n", ":4: CHUNK_ELEMENTS: a size for each of NUMBER_ELEMENTS"),
    (LINES + "COMPRESSION: lz4\n", ":4: COMPRESSION: Input should be 'none' or 'gzip', not 'lz4'"),
    (
        LINES + "COMPRESSION: gzip\nCOMPRESSION_LEVEL: 10\n",
        ":5: COMPRESSION_LEVEL: Input should be less than or equal to 9",
    ),
    (LINES + "COMPRESSION_LEVEL: 4\n", ":4: COMPRESSION_LEVEL: belongs to COMPRESSION: gzip"),
    (LINES + "DATATYPE: float16\n", ":4: DATATYPE: Input should be 'float32', 'float64', 'int32' or 'int64'"),
    (LINES + "REPEATS: 0\n", ":4: REPEATS: Input should be greater than or equal to 1"),
    (LINES + "SEED: -1\n", ":4: SEED: Input should be greater than or equal to 0"),
    (LINES + "FILE_NAME: b\n", ":4: "),
    (LINES.replace("[4, 4]", "[40000, 40000]"), "a chunk of 6400000000 bytes; HDF5 allows 4294967295"),
    (LINES.replace("[4, 4]", "[4000000000, 4000000000]"), "more bytes than a file offset holds"),
    (
        LINES.replace("[4, 4]", "[16000, 1000000]\nCHUNK_ELEMENTS: [10, 10]").replace("2", "900"),
        "bytes are free, the case",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES)
def test_a_bad_file_is_named_with_line_and_key_and_nothing_is_written(target, text, message, capsys):
    path = write_config(target, text)
    assert formats_main().main(["--config", str(path), "--dir", str(target)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("formats: error: ")
    assert message in said
    assert "--dir" in said or str(path) in said
    assert list(target.iterdir()) == []


def formats_main() -> Any:
    """The kernel's entry, to call without a process of its own where it ends before it starts one."""
    spec = importlib.util.spec_from_file_location("formats_main", KERNEL / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BAD_OPTIONS = [
    (("--dir", "/no/such/folder"), "--dir /no/such/folder: no such folder"),
    (("--dir", "/etc/passwd"), "--dir /etc/passwd: no such folder"),
    (("--json", "/no/such/folder/x"), "--json /no/such/folder: no such folder"),
    (("--json", "/dev"), "--json /dev: is not a regular file"),
    (("--config", "/no/such/file"), "/no/such/file: cannot be read: "),
    (("--formats", "hdf5,csv"), "--formats: hdf5,csv: allowed: hdf5, zarr, netcdf"),
    (("--formats", "hdf5,hdf5"), "--formats: hdf5,hdf5: allowed: hdf5, zarr, netcdf, each once"),
    (("--repeats", "0"), "--repeats: 0: a whole number from 1 to 100000 is expected"),
    (("--seed", "-1"), "--seed: "),
    (("--keep", "maybe"), "--keep: invalid choice: 'maybe'"),
    (("--colour", "yes"), "unrecognized arguments: --colour yes"),
    (("--operation", "read"), "small.hdf5 does not exist; --operation write --keep yes makes it"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options_are_named_and_nothing_is_written(target, options, message):
    done = formats(target, SMALL, *options)
    assert done.returncode == 2, done.stderr
    assert "formats: error: " in done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("interface", "version", "message"),
    [
        ("hdf5", None, "--formats hdf5: package h5py is missing in "),
        ("netcdf", None, "--formats netcdf: package netCDF4 is missing in "),
        ("zarr", None, "--formats zarr: package zarr 3 (which needs Python 3.11) is missing in "),
        ("zarr", "2.18.7", "is missing (zarr 2.18.7 is installed)"),
    ],
)
def test_a_missing_package_is_named_and_so_is_what_can_be_done(monkeypatch, interface, version, message):
    module = formats_main()
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: version)
    monkeypatch.setattr(module.importlib.metadata, "version", lambda name: version)
    with pytest.raises(InputError, match=r"install iogauge\[formats\], or leave .* out of --formats") as caught:
        module.need_package(stores.FORMATS[interface].package, interface)
    assert message in str(caught.value)


def test_what_exists_is_not_overwritten(target):
    (target / "small").mkdir()
    (target / "small" / "small.hdf5").write_text("mine")
    done = formats(target, SMALL)
    assert done.returncode == 2
    assert "sizes.yaml:1: FILE_NAME: " in done.stderr
    assert "exists already and is never overwritten" in done.stderr
    assert (target / "small" / "small.hdf5").read_text() == "mine"


def test_what_another_run_made_in_the_same_moment_is_not_touched(target):
    """The look before finds nothing, and then the folder is there."""
    (target / "small").mkdir()
    (target / "small" / "small.hdf5").write_text("theirs")
    program = (
        "import os, runpy, sys; os.path.lexists = lambda path: False; "
        "sys.path.insert(0, sys.argv[1]); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    options = ["--config", write_config(target, SMALL), "--dir", target]
    command = [sys.executable, "-c", program, KERNEL, *options]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert f"{target}/small: File exists" in done.stderr
    assert (target / "small" / "small.hdf5").read_text() == "theirs"


@needs_root
def test_a_read_only_folder_is_named(target):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1M", "tmpfs", target], check=True)
    try:
        done = formats(target, SMALL)
    finally:
        subprocess.run(["umount", target], check=True)
    assert done.returncode == 2
    assert f"--dir {target}: cannot be written" in done.stderr


@needs_root
@pytest.mark.parametrize("interface", INTERFACES)
def test_a_file_system_that_fills_up_in_mid_write_is_named_and_left_clean(target, interface):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", target], check=True)
    try:
        assert os.path.ismount(target), "never fill anything else"
        keys = SMALL | {"NUMBER_DATASETS": 1000, "NUMBER_ELEMENTS": [4], "CHUNK_ELEMENTS": [4]}
        done = formats(target, keys, "--formats", interface)  # 16 KB of data, and more than 1 MB about them
        assert done.returncode == 2, done.stderr
        assert f"formats: error: {interface}, " in done.stderr
        assert "No space left on device" in done.stderr or interface == "netcdf"  # which says "HDF error"
        assert list(target.iterdir()) == []
    finally:
        subprocess.run(["umount", target], check=True)


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stopped_run_leaves_no_file_and_dies_of_the_signal(target, signal_):
    keys = SMALL | {"NUMBER_DATASETS": 2000, "REPEATS": 100000}
    command = [sys.executable, KERNEL, "--config", write_config(target, keys), "--dir", target]
    process = subprocess.Popen(
        [*map(str, command), "--formats", "zarr,hdf5"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal_]),
    )
    while not list(target.glob("small/small.zarr/Dataset_1*")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal_)
    assert process.wait(timeout=PATIENCE_SECONDS) == -signal_
    assert list(target.iterdir()) == []


def test_a_crash_of_the_measuring_process_leaves_no_file_and_is_no_measurement(target):
    keys = SMALL | {"REPEATS": 100000}
    command = [sys.executable, KERNEL, "--config", write_config(target, keys), "--dir", target, "--formats", "hdf5"]
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list(target.glob("small/*")) and process.poll() is None:
        time.sleep(0.01)
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGSEGV)
    out, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 2
    assert "the measuring process was ended by SIGSEGV" in errors
    assert "{" not in out
    assert list(target.iterdir()) == []


def test_the_help_has_an_example():
    done = subprocess.run([sys.executable, KERNEL, "--help"], capture_output=True, text=True, check=True)
    assert "example: " in done.stdout
    for key in ("FILE_NAME", "NUMBER_DATASETS", "NUMBER_ELEMENTS", "exit codes"):
        assert key in done.stdout


def test_the_check_runs_judges_and_cleans_up(site):  # noqa: F811
    without_portable_bands(site)
    done, entries = reframe(
        site,
        *("-r", "-S", "FormatsCheck.arrays=3", "-S", "repeats=2"),
        name="FormatsCheck %nodes=1 %ranks_per_node=1 %file_system=memory %storage=chunked-gzip",
    )
    assert done.returncode == 0, done.stdout
    entry = one(entries)
    assert (entry["verdict"], entry["band_status"]) == ("no reference", "missing")
    assert entry["band_key"] == "formats/create/memory/1x1/chunked-2d-gzip/hdf5"
    assert len(entry["measurements"]) == 12
    found = values(entry)
    assert found["create_observed"][4] == "operations/s"
    assert found["write_observed"][4] == "MiB/s"
    assert {"open_to_zarr", "read_to_netcdf", "read_raw"} <= set(found)
    assert data_left(site.parent / "run") == []


def test_the_check_is_invalid_where_the_kernel_fails(site):  # noqa: F811
    _, entries = reframe(
        site,
        *("-r", "-S", "FormatsCheck.chunk_rows=1000"),
        name="FormatsCheck %nodes=1 %ranks_per_node=1 %file_system=memory %storage=chunked",
    )
    entry = one(entries)
    assert entry["verdict"] == "invalid"
    assert "CHUNK_ELEMENTS: a size for each of NUMBER_ELEMENTS" in entry["judgement"]["reasons"][0]
