"""What is told: the records of the kernels in C (docs/kernels.md), and a table for people."""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import os
import platform
import socket
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from iogauge import __version__
from iogauge.measurement import Least, Measurement, Rank, ReadShift, Repeat, Software
from operations import Plan, Result, Results
from sizes import Sizes
from stores import FORMATS


def this_rank() -> Rank:
    """Where this process runs."""
    cpus = sorted(os.sched_getaffinity(0))
    return Rank(
        rank=0,
        host=socket.gethostname(),
        pid=os.getpid(),
        cpus=tuple(cpus),
        cores=tuple(sorted({core_of(cpu) for cpu in cpus})),
    )


def core_of(cpu: int) -> int:
    """The lowest logical processor of the physical core that ``cpu`` belongs to; itself where the system does not tell."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        digits = itertools.takewhile(str.isdigit, path.read_text(encoding="ascii"))
        return int("".join(digits))
    except (OSError, ValueError):
        return cpu


def this_software(formats: Sequence[str]) -> Software:
    """The versions that the numbers depend on. h5py and netCDF4 each carry an HDF5 of their own."""
    packages = {name: importlib.metadata.version(name) for name in ("numpy", *(FORMATS[f].package for f in formats))}
    hdf5 = netcdf = None
    if "netcdf" in formats:
        import netCDF4

        netcdf = str(netCDF4.__netcdf4libversion__)
        hdf5 = packages["netCDF4's HDF5"] = str(netCDF4.__hdf5libversion__)
    if "hdf5" in formats:
        import h5py

        hdf5 = str(h5py.version.hdf5_version)
    return Software(
        hdf5=hdf5,
        netcdf=netcdf,
        mpi=None,
        suite=__version__,
        kernels=hash_of_sources(),
        compiler=f"{platform.python_implementation()} {platform.python_version()}",
        packages=packages,
    )


def hash_of_sources() -> str:
    """Twelve hexadecimal digits of this kernel's files."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def measurements_of(plan: Plan, results: Results, started: datetime) -> list[Measurement]:
    """The records: the first format is the main case, the others are its baselines."""
    rank, software = this_rank(), this_software(plan.formats)
    return [
        measurement_of(plan, interface, operation, found, started, rank, software)
        for interface, operations in results.items()
        for operation, found in operations.items()
    ]


def measurement_of(
    plan: Plan,
    interface: str,
    operation: str,
    results: list[Result],
    started: datetime,
    rank: Rank,
    software: Software,
) -> Measurement:
    """One record."""
    sizes = plan.sizes
    moves = operation in ("write", "read")
    main = interface == plan.formats[0]
    return Measurement(
        schema="iogauge.measurement/1",
        sweep=None,
        benchmark="formats",
        operation=operation,
        interface=interface,  # type: ignore[arg-type]
        role="main" if main else "baseline",
        differs={} if main else {"interface": interface},
        collective=False,
        pattern={
            "datasets": sizes.datasets,
            "elements": sizes.elements,
            "chunk": sizes.chunks,
            "datatype": sizes.datatype,
            "compress": sizes.compress,
            "compress_level": sizes.gzip or 0,
            "fsync": plan.fsync,
            **FORMATS[interface].described(sizes),
        },
        logical_bytes=sizes.bytes if moves else 0,
        operations=0 if moves else sizes.datasets,
        file_bytes=results[-1].file_bytes,
        ranks=1,
        hosts={rank.host: [0]},
        read_shift=ReadShift(ranks=0, other_rank_fraction=0.0, other_host_fraction=0.0)
        if operation == "read"
        else None,
        seed=sizes.seed,
        started=started,
        repeats=tuple(repeat_of(sizes, moves, result) for result in results),
        placement=(rank,),
        software=software,
    )


def repeat_of(sizes: Sizes, moves: bool, result: Result) -> Repeat:
    """One repeat of a record: a mismatch ends the run before, so that everything is verified."""
    phases = {f"{phase}_seconds": seconds for phase, seconds in result.seconds.items()}
    prepare = phases.pop("prepare_seconds")
    phases["total_seconds"] = sum(phases.values())
    return Repeat(
        **phases,
        prepare_seconds=prepare,
        least=Least(**phases),
        verified_bytes=sizes.bytes if moves else 0,
        verified_operations=0 if moves else sizes.datasets,
        mismatches=0,
        cached_fraction_before_drop=result.cached_before_drop,
        cached_fraction=result.cached,
    )


def table(plan: Plan, measurements: Sequence[Measurement]) -> Iterator[str]:
    """Lines for people. ``ms/array`` is what the File Format Comparison prints: the mean time of the calls for one array."""
    sizes = plan.sizes
    compressed = f"gzip {sizes.gzip}" if sizes.gzip else "not compressed"
    yield (
        f"formats: {sizes.datasets} arrays of {by(sizes.elements)} {sizes.datatype} in chunks of {by(sizes.chunks)}, "
        f"{compressed}; {plan.repeats} repeats; MiB = 2^20 bytes; observed: open to close with the flush, "
        f"raw and ms/array: the calls only"
    )
    form = "{:<9} {:<9} {:>12} {:>12} {:>12} {:>12} {:>12} {:<12} {:>10} {:>8}".format
    yield form(
        *("operation", "interface", "moved", "observed max", "average", "min", "raw max", "unit", "ms/array", "cached")
    )
    for m in measurements:
        calls = sum(m.amount / rate for rate in m.raw) / len(m.raw)
        yield form(
            m.operation,
            m.interface,
            f"{m.amount:.1f}",
            f"{m.best_observed:.1f}",
            f"{sum(m.observed) / len(m.observed):.1f}",
            f"{min(m.observed):.1f}",
            f"{m.best_raw:.1f}",
            m.unit,
            f"{1000 * calls / sizes.datasets:.4f}",
            "-" if m.cached_fraction is None else f"{m.cached_fraction:.0%}",
        )


def by(lengths: Sequence[int]) -> str:
    """``128x64``."""
    return "x".join(map(str, lengths))
