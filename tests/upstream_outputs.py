"""Real outputs of the upstream benchmarks (tests/upstream), as launches; and the job that they are judged with."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import conftest

from iogauge.adapters import fft, h5bench, hdf5_iotest
from iogauge.adapters.upstream import KEPT, Job, Launch
from iogauge.measurement import Measurement

SAMPLES = Path(__file__).parent / "upstream"


@functools.cache
def text(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


@functools.cache
def job(ranks: int) -> Job:
    """Each rank on a core of its own, on one host."""
    record = copy.deepcopy(conftest._WRITE) | {"ranks": ranks, "hosts": {"n1": list(range(ranks))}}
    record["placement"] = [
        {"rank": rank, "host": "n1", "pid": 100 + rank, "cpus": [rank], "cores": [rank]} for rank in range(ranks)
    ]
    return Job(Measurement.model_validate(record))


def h5bench_configuration(name: str, kind: str, ranks: int = 4, **changes: Any) -> h5bench.Configuration:
    values = dict(line.split("=", 1) for line in text(f"h5bench/{name}.cfg").splitlines())
    values["CSV_FILE"] = "h5bench.csv"
    values |= changes
    return h5bench.check_configuration(kind, "particles.h5", values, ranks, name)


def h5bench_launch(name: str, **changes: Any) -> Launch:
    """What was kept of a run; its file is thought to be as large as it should be."""
    fields: dict[str, Any] = {
        "stdout": text(f"h5bench/{name}.out"),
        "stderr": text(f"h5bench/{name}.err") if (SAMPLES / f"h5bench/{name}.err").exists() else "",
        "exit_code": 0,
        "texts": {"h5bench.csv": text(f"h5bench/{name}.csv")},
        "files": {"particles.h5": 1 << 40},
        "name": name,
    }
    return Launch(**fields | changes)


FFT = fft.Configuration(FILE_NAME="arrays", NUMBER_DATASETS=2, NUMBER_ELEMENTS=(8, 8))


def fft_launch(**changes: Any) -> Launch:
    """A real run, with what its first trial left."""
    files = {f"{name}{KEPT}": size for name, size in zip(FFT.files, (2560, 33567856), strict=True)}
    fields: dict[str, Any] = {
        "stdout": text("fft/2x8x8.out"),
        "exit_code": 0,
        "texts": {FFT.result(name): text(f"fft/{name}.csv") for name in fft.FORMATS},
        "files": files,
        "name": "launch 1",
    }
    return Launch(**fields | changes)


def iotest_configuration(name: str, ranks: int) -> hdf5_iotest.Configuration:
    return hdf5_iotest.read_ini(ini(name), ranks, f"{name}.ini")


def ini(name: str) -> str:
    """With names for files as iogauge wants them."""
    lines = text(f"hdf5_iotest/{name}.ini").splitlines()
    names = {"hdf5-file": "tiles.h5", "csv-file": "tiles.csv"}
    return "".join(f"{key} = {names[key]}\n" if (key := line.split(" ")[0]) in names else f"{line}\n" for line in lines)


def iotest_launch(name: str, **changes: Any) -> Launch:
    table = text(f"hdf5_iotest/{name}.csv")
    size = table.splitlines()[-1].split(",")[19]
    fields: dict[str, Any] = {
        "stdout": text(f"hdf5_iotest/{name}.out") if (SAMPLES / f"hdf5_iotest/{name}.out").exists() else "",
        "exit_code": 0,
        "texts": {"tiles.csv": table},
        "files": {"tiles.h5": int(size)},
        "cached_after": 1.0,
        "name": name,
    }
    return Launch(**fields | changes)


#: Real runs on two ranks of h5bench's other kinds: what each was asked for, and the files it left.
H5BENCH_KINDS: dict[str, tuple[str, dict[str, Any], dict[str, int]]] = {
    "metadata": (
        "metadata",
        {
            "version": "0", "steps": "20", "arrays": "100", "rows": "16", "columns": "16", "process-rows": "1",
            "process-columns": "2", "scaling": "weak", "dataset-rank": "4", "slowest-dimension": "step",
            "layout": "contiguous", "mpi-io": "independent", "csv-file": "h5bench.csv",
        },
        {"particles.h5": 8194048},
    ),
    "exerciser": (
        "exerciser",
        {"numdims": "2", "minels": "8 256", "nsizes": "2", "bufmult": "2 1", "dimranks": "2 1"},
        {"hdf5TestFile-1818003590": 67968},
    ),
    "macsio": (
        "macsio",
        {"parallel_file_mode": "MIF 2", "part_size": "100K", "vars_per_part": "8", "num_dumps": "2"},
        {f"particles_hdf5_0000{rank}_00{dump}.h5": 768172 for rank in (0, 1) for dump in (0, 1)},
    ),
    "macsio_shared": (
        "macsio",
        {"parallel_file_mode": "SIF 1", "part_size": "100K", "vars_per_part": "8", "num_dumps": "2"},
        {f"particles_hdf5_00{dump}.h5": 1527384 for dump in (0, 1)},
    ),
    "e3sm": (
        "e3sm",
        {"r": "2", "map": "map_f_case_16p.h5"},
        {"particles_h0.h5.0000": 33952984, "particles_h1.h5.0000": 1459600},
    ),
    "openpmd": (
        "openpmd",
        {"operation": "write", "dim": "3", "minBlock": "1 512 256", "grid": "2 1 1", "encoding": "f"},
        {"8a_parallel_3Db_0000001.h5": 21018472},
    ),
}  # fmt: skip


def h5bench_kind(name: str, ranks: int = 2, **changes: Any) -> h5bench.Benchmark:
    kind, values, _ = H5BENCH_KINDS[name]
    return h5bench.check_benchmark(kind, "particles.h5", values | changes, ranks, name)


def kind_launch(name: str, **changes: Any) -> Launch:
    """What was kept of a run of another kind than the patterns."""
    results = {"metadata": ("h5bench.csv", "csv")} | dict.fromkeys(("macsio", "macsio_shared"), ("macsio.log", "log"))
    stdout = SAMPLES / f"h5bench_kinds/{name}.out"
    fields: dict[str, Any] = {
        "stdout": stdout.read_text(encoding="utf-8") if stdout.exists() else "",
        "exit_code": 0,
        "texts": {r: text(f"h5bench_kinds/{name}.{ext}") for r, ext in [results[name]]} if name in results else {},
        "files": H5BENCH_KINDS[name][2],
        "cached_after": 1.0,
        "name": name,
    }
    return Launch(**fields | changes)
