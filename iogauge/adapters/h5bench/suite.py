"""The JSON of h5bench's runner: which kinds there are, their order, and the connector for what is asynchronous.

The runner goes on after a benchmark that failed or that it does not know, and ends with exit code 0. So all of a JSON is
looked at before anything runs. Its launcher and folder are left aside: they are the job's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iogauge.adapters.h5bench import e3sm, exerciser, macsio, metadata, openpmd, patterns
from iogauge.adapters.h5bench.benchmark import Benchmark
from iogauge.adapters.h5bench.patterns import Configuration
from iogauge.errors import InputError

#: As the runner names them.
KINDS = (*patterns.KINDS, "metadata", "exerciser", "openpmd", "e3sm", "macsio")

#: Known to the runner, but nothing can be measured of them: why.
REFUSED_KINDS = {"amrex": "amrex prints no time and no bytes: there is nothing that a rate could follow from"}


@dataclass(frozen=True)
class Suite:
    """What h5bench's own runner takes: the benchmarks in their order, and the connector's environment for ASYNC."""

    benchmarks: tuple[Benchmark, ...]
    environment: Mapping[str, str]


def check_benchmark(
    kind: str,
    file: str,
    values: Mapping[str, Any],
    ranks: int,
    where: str,
    *,
    before: Sequence[Benchmark] = (),
    folder: Path = Path(),
) -> Benchmark:
    """One benchmark of any kind; ``before`` are those that come before it in its suite, ``folder`` is what its files' names
    are relative to. Raises :class:`InputError` with the key and what is allowed."""
    if kind in patterns.KINDS:
        return patterns.check_configuration(kind, file, values, ranks, where)
    if kind == "metadata":
        return metadata.check(file, values, ranks, where)
    if kind == "exerciser":
        return exerciser.check(values, ranks, where)
    if kind == "openpmd":
        return openpmd.check(values, ranks, where, [b for b in before if isinstance(b, openpmd.OpenpmdWrite)])
    if kind == "macsio":
        return macsio.check(file, values, where)
    if kind == "e3sm":
        return e3sm.check(file, values, where, folder)
    if kind in REFUSED_KINDS:
        raise InputError(f"{REFUSED_KINDS[kind]}; allowed: {', '.join(KINDS)}", file=where)
    raise InputError(f"{kind!r} is not known; allowed: {', '.join(KINDS)}", file=where, key="benchmark")


def read_json(text: str, ranks: int, file: Path | str = "JSON") -> Suite:
    """A site's own JSON. Raises :class:`InputError` with the benchmark, the key and what is allowed."""
    try:
        document = json.loads(text)
        benchmarks = document["benchmarks"]
        vol = document.get("vol", {})
        folder = Path(file).parent / str(document.get("directory", ""))
        entries = [(str(e["benchmark"]), str(e.get("file", "")), dict(e["configuration"])) for e in benchmarks]
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=file, line=getattr(error, "lineno", None)) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"a benchmark with benchmark, file and configuration is expected ({error!r})", file=file
        ) from error
    found: list[Benchmark] = []
    for number, (kind, name, values) in enumerate(entries, start=1):
        where = f"{file}: benchmark {number} ({kind})"
        benchmark = check_benchmark(kind, name, values, ranks, where, before=found, folder=folder)
        if isinstance(benchmark, Configuration):
            _check_needs(benchmark, [before for before in found if isinstance(before, Configuration)], where)
        found.append(benchmark)
    if not found:
        raise InputError("no benchmark", file=file, key="benchmarks")
    return Suite(tuple(found), _environment(vol, file, needed=any(b.asynchronous for b in found)))


def _check_needs(c: Configuration, before: Sequence[Configuration], where: str) -> None:
    """A file that is read, overwritten or appended to was written before, and as it has to be."""
    if c.operation == "write":
        return
    written = [other for other in before if other.file == c.file and other.operation == "write"]
    if not written:
        raise InputError(f"{c.file} is written by no benchmark before", file=where, key="file")
    last = written[-1]
    if c.kind == "append" and last.kind != "write-unlimited":
        raise InputError("append needs a file of write-unlimited", file=where, key="file")
    if "INTERLEAVED" in (last.values.get("MEM_PATTERN"), last.values.get("FILE_PATTERN")):
        raise InputError(f"{c.file} was written interleaved: no other benchmark can read it", file=where, key="file")
    if len(last.dims) != len(c.dims) or any(mine > there for mine, there in zip(c.dims, last.dims, strict=True)):
        raise InputError(f"dimensions {c.dims} are not within those written, {last.dims}", file=where, key="DIM_1")
    if c.steps > last.steps:
        raise InputError(f"{c.steps} steps, {last.steps} were written", file=where, key="TIMESTEPS")


def _environment(vol: Mapping[str, Any], file: Path | str, *, needed: bool) -> dict[str, str]:
    if not needed:
        return {}
    if not isinstance(vol, Mapping) or not vol.get("path") or not vol.get("connector"):
        raise InputError("ASYNC needs path and connector", file=file, key="vol")
    return async_environment(str(vol["path"]), str(vol["connector"]))


def async_environment(path: str, connector: str = "async under_vol=0;under_info={}") -> dict[str, str]:
    """For a launch through a connector whose plug-in lies in the folder ``path``."""
    return {"HDF5_PLUGIN_PATH": path, "HDF5_VOL_CONNECTOR": connector}
