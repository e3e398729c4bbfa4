"""One operation of one benchmark with all its repeats: what is true of it, and the rates that follow.

The fields are those of ``kernels/measurement.schema.json``. Sizes are bytes, times seconds, rates MiB/s (2^20 bytes). What
an upstream benchmark measured has the same record; what it does not tell is ``None`` there, and only there.
*Raw* rates count the transfers only, *observed* rates everything from open to close with the flush between (the
terms of h5bench: Li et al., "h5bench: HDF5 I/O kernel suite for exercising HPC I/O patterns", CUG 2021).
"""

from __future__ import annotations

import statistics
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

MIB = 1 << 20

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Bytes = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(min_length=1)]
Metric = Literal["observed", "raw"]
Unit = Literal["MiB/s", "operations/s"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Least(_Record):
    """Times of the fastest rank."""

    open_seconds: Seconds
    transfer_seconds: Seconds
    flush_seconds: Seconds
    close_seconds: Seconds
    total_seconds: Seconds


class Repeat(_Record):
    """Times of one repeat; each is the slowest rank's. ``None``: an upstream benchmark that does not tell it."""

    open_seconds: Seconds | None
    transfer_seconds: PositiveSeconds | None
    flush_seconds: Seconds | None
    close_seconds: Seconds | None
    total_seconds: PositiveSeconds
    prepare_seconds: Seconds | None
    least: Least | None
    verified_bytes: Bytes
    verified_operations: Annotated[int, Field(ge=0)]
    mismatches: Bytes
    cached_fraction_before_drop: Fraction | None
    cached_fraction: Fraction | None

    @property
    def phases(self) -> tuple[float | None, ...]:
        """Open, transfer, flush, close."""
        return self.open_seconds, self.transfer_seconds, self.flush_seconds, self.close_seconds


class Program(_Record):
    """The upstream benchmark that a record is of. ``verifies``: it, or the job after it, compared what was read back."""

    name: Text
    version: Text | None
    verifies: bool


class Rank(_Record):
    """Where a rank ran: logical ``cpus`` it may use and the physical ``cores`` behind them."""

    rank: Annotated[int, Field(ge=0)]
    host: Text
    pid: Annotated[int, Field(gt=0)]
    cpus: tuple[int, ...] = Field(strict=False)
    cores: tuple[int, ...] = Field(strict=False)


class ReadShift(_Record):
    """Whose data was read: the rank ``ranks`` places on, host by host."""

    ranks: Annotated[int, Field(ge=0)]
    other_rank_fraction: Fraction
    other_host_fraction: Fraction


class Sweep(_Record):
    """Which case of a sweep a record is of: ``run`` is the same for all its records, ``case`` the swept options."""

    run: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    case: Annotated[dict[str, str], Field(min_length=1)]


class Software(_Record):
    """What the numbers depend on; null is built without, or not told by an upstream benchmark. ``kernels`` is a hash of the
    kernels' sources, ``packages`` are Python's, by name. ``spack`` is what Spack built the measured program from,
    ``NAME@VERSION/HASH`` with the DAG hash, and ``spack_arm`` its ``STACK/ARM``; null was not built by Spack."""

    hdf5: str | None
    netcdf: str | None = None
    mpi: Text | None
    suite: Text
    kernels: Text | None
    compiler: Text | None
    packages: dict[str, str] = {}
    spack: Text | None = None
    spack_arm: Text | None = None


#: What people call the interfaces.
INTERFACE_NAMES = {"hdf5": "HDF5", "mpiio": "MPI-IO", "posix": "POSIX", "netcdf": "netCDF-4", "zarr": "Zarr"}

#: What people call the parts of :class:`Software`, in the order in which a change of them is told.
SOFTWARE_NAMES = {
    "hdf5": "HDF5",
    "netcdf": "netCDF",
    "mpi": "MPI",
    "compiler": "compiler",
    "spack_arm": "Spack arm",
    "spack": "Spack spec",
    "kernels": "kernels",
    "suite": "iogauge",
}


class Measurement(_Record):
    """A benchmark's operation, complete and consistent, or not constructed at all. ``program``: none for the project's own
    kernels."""

    schema_: Literal["iogauge.measurement/1"] = Field(alias="schema")
    sweep: Sweep | None
    benchmark: Text
    program: Program | None = None
    operation: Annotated[str, Field(pattern="^[a-z][a-z0-9-]*$")]
    interface: Literal["hdf5", "mpiio", "posix", "netcdf", "zarr"]
    role: Literal["main", "baseline"]
    differs: dict[str, str]
    collective: bool
    pattern: dict[str, str | bool | int | float | list[int]]
    logical_bytes: Bytes
    operations: Annotated[int, Field(ge=0)]
    file_bytes: Bytes
    ranks: Annotated[int, Field(gt=0)]
    hosts: dict[str, list[int]]
    read_shift: ReadShift | None
    seed: Bytes | None
    started: Annotated[datetime, Field(strict=False)]
    repeats: tuple[Repeat, ...] = Field(min_length=1, strict=False)
    placement: tuple[Rank, ...] = Field(min_length=1, strict=False)
    software: Software

    @model_validator(mode="after")
    def _consistent(self) -> Measurement:
        everyone = list(range(self.ranks))
        if sorted(rank for ranks in self.hosts.values() for rank in ranks) != everyone:
            raise ValueError(f"hosts: do not hold each of the {self.ranks} ranks once")
        if [place.rank for place in self.placement] != everyone:
            raise ValueError(f"placement: does not list the {self.ranks} ranks in order")
        for place in self.placement:
            if place.rank not in self.hosts.get(place.host, []):
                raise ValueError(f"placement: rank {place.rank} is not on {place.host} in hosts")
        if (self.logical_bytes == 0) == (self.operations == 0):
            raise ValueError("logical_bytes, operations: one of them is 0, and only one")
        if self.operation == "write" and self.read_shift is not None:
            raise ValueError("read_shift: belongs to reads")
        if self.operation == "read" and self.read_shift is None and self.program is None:
            raise ValueError("read_shift: belongs to every read")
        if self.seed is None and self.program is None:
            raise ValueError("seed: missing")
        if (self.role == "main") != (not self.differs):
            raise ValueError("differs: belongs to baselines, and to every baseline")
        for number, repeat in enumerate(self.repeats):
            phases = [phase for phase in repeat.phases if phase is not None]
            if self.program is None and (len(phases) < 4 or repeat.prepare_seconds is None or repeat.least is None):
                raise ValueError(f"repeats[{number}]: a kernel tells every phase")
            # Each phase is the slowest rank's, and so is the total: it lies between the longest and the sum. What upstream
            # benchmarks time leaves gaps: there it is the longest alone that bounds it.
            most = sum(phases) if self.program is None else repeat.total_seconds
            if not max(phases, default=0) * (1 - 1e-6) <= repeat.total_seconds <= most * (1 + 1e-6):
                raise ValueError(
                    f"repeats[{number}]: total_seconds {repeat.total_seconds} is not between the longest phase "
                    f"and the sum of the phases"
                )
        return self

    @property
    def nodes(self) -> int:
        """Distinct hosts."""
        return len(self.hosts)

    @property
    def unit(self) -> Unit:
        """Of the rates: MiB/s, or operations/s where operations are counted."""
        return "operations/s" if self.operations else "MiB/s"

    @property
    def amount(self) -> float:
        """What one repeat did: MiB moved, or operations."""
        return float(self.operations) or self.logical_bytes / MIB

    @property
    def observed(self) -> tuple[float, ...]:
        """Per repeat: the amount over open-to-close time, in ``unit``."""
        amount = self.amount
        return tuple(amount / repeat.total_seconds for repeat in self.repeats)

    @property
    def raw(self) -> tuple[float, ...]:
        """Per repeat: the amount over transfer time, in ``unit``; empty where the transfers were not told apart."""
        times = [repeat.transfer_seconds for repeat in self.repeats]
        return () if None in times else tuple(self.amount / time for time in times if time is not None)

    def rates(self, metric: Metric) -> tuple[float, ...]:
        """Per repeat, in ``unit``."""
        return self.observed if metric == "observed" else self.raw

    @property
    def best_observed(self) -> float:
        """Best of the repeats: noise on storage is one-sided, so the best is the steadiest figure."""
        return max(self.observed)

    @property
    def best_raw(self) -> float | None:
        """Best of the repeats; ``None`` where the transfers were not told apart."""
        return max(self.raw, default=None)

    @property
    def cached_fraction(self) -> float | None:
        """Largest part of the pages read that was in memory already; ``None``: a write, or not known."""
        fractions = [r.cached_fraction for r in self.repeats if r.cached_fraction is not None]
        return max(fractions) if len(fractions) == len(self.repeats) else None

    @property
    def verified(self) -> bool:
        """Every byte (or operation) of every repeat was looked at afterwards, and none differed."""
        return all(
            repeat.verified_bytes == self.logical_bytes
            and repeat.verified_operations == self.operations
            and repeat.mismatches == 0
            for repeat in self.repeats
        )


class Ratio(_Record):
    """How the rate of one case stands to another's in the same job; dimensionless."""

    against: str
    metric: Metric
    value: float
    pairs: tuple[float, ...]
    spread: float


def ratio(main: Measurement, baseline: Measurement, metric: Metric = "observed") -> Ratio:
    """Rate of ``main`` to ``baseline``: the one place that says how two cases of a job are compared.

    ``pairs`` holds the quotient of every repeat. The two cases ran one after the other in each repeat, so what slows
    both cancels; ``value`` is the median of the pairs, ``spread`` their interquartile range over the median.

    Raises ``ValueError`` for cases that do not belong together.
    """
    if (main.benchmark, main.operation, main.sweep, len(main.repeats)) != (
        baseline.benchmark,
        baseline.operation,
        baseline.sweep,
        len(baseline.repeats),
    ):
        raise ValueError("the two cases are not of one job")
    pairs = tuple(ours / theirs for ours, theirs in zip(main.rates(metric), baseline.rates(metric), strict=True))
    value = statistics.median(pairs)
    quartiles = statistics.quantiles(pairs, n=4, method="inclusive") if len(pairs) > 1 else [0, 0, 0]
    against = ",".join(f"{name}={text}" for name, text in sorted(baseline.differs.items()))
    return Ratio(
        against=against,
        metric=metric,
        value=value,
        pairs=pairs,
        spread=(quartiles[2] - quartiles[0]) / value,
    )
