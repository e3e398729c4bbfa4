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
