"""One operation of one benchmark with all its repeats: what is true of it, and the rates that follow.

The fields are those of ``kernels/measurement.schema.json``. Sizes are bytes, times seconds, rates MiB/s (2^20 bytes).
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
PositiveBytes = Annotated[int, Field(gt=0)]
Text = Annotated[str, Field(min_length=1)]
Metric = Literal["observed", "raw"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Repeat(_Record):
    """Times of one repeat; each is the slowest rank's."""

    open_seconds: Seconds
    transfer_seconds: PositiveSeconds
    flush_seconds: Seconds
    close_seconds: Seconds
    total_seconds: PositiveSeconds
    prepare_seconds: Seconds
    verified_bytes: Bytes
    mismatches: Bytes
    cached_fraction_before_drop: Fraction | None
    cached_fraction: Fraction | None


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


class Software(_Record):
    """What the numbers depend on. ``kernels`` is a hash of the kernels' sources."""

    hdf5: str | None
    mpi: Text
    suite: Text
    kernels: Text
    compiler: Text


class Measurement(_Record):
    """A benchmark's operation, complete and consistent, or not constructed at all."""

    schema_: Literal["iogauge.measurement/1"] = Field(alias="schema")
    benchmark: Text
    operation: Literal["write", "read"]
    interface: Literal["hdf5", "mpiio", "posix"]
    role: Literal["main", "baseline"]
    differs: dict[str, str]
    collective: bool
    pattern: dict[str, str | bool | int | float | list[int]]
    logical_bytes: PositiveBytes
    file_bytes: PositiveBytes
    ranks: Annotated[int, Field(gt=0)]
    hosts: dict[str, list[int]]
    read_shift: ReadShift | None
    seed: Bytes
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
        if (self.operation == "read") != (self.read_shift is not None):
            raise ValueError("read_shift: belongs to reads, and to every read")
        if (self.role == "main") != (not self.differs):
            raise ValueError("differs: belongs to baselines, and to every baseline")
        for number, repeat in enumerate(self.repeats):
            phases = (
                repeat.open_seconds,
                repeat.transfer_seconds,
                repeat.flush_seconds,
                repeat.close_seconds,
            )
            # Each phase is the slowest rank's, and so is the total: it lies between the longest and the sum.
            if not max(phases) * (1 - 1e-6) <= repeat.total_seconds <= sum(phases) * (1 + 1e-6):
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
    def observed_mib_s(self) -> tuple[float, ...]:
        """Per repeat: logical bytes over open-to-close time, MiB/s."""
        return tuple(self.logical_bytes / MIB / repeat.total_seconds for repeat in self.repeats)

    @property
    def raw_mib_s(self) -> tuple[float, ...]:
        """Per repeat: logical bytes over transfer time, MiB/s."""
        return tuple(self.logical_bytes / MIB / repeat.transfer_seconds for repeat in self.repeats)

    def rates_mib_s(self, metric: Metric) -> tuple[float, ...]:
        """Per repeat, MiB/s."""
        return self.observed_mib_s if metric == "observed" else self.raw_mib_s

    @property
    def best_observed_mib_s(self) -> float:
        """Best of the repeats: noise on storage is one-sided, so the best is the steadiest figure."""
        return max(self.observed_mib_s)

    @property
    def best_raw_mib_s(self) -> float:
        """Best of the repeats."""
        return max(self.raw_mib_s)

    @property
    def cached_fraction(self) -> float | None:
        """Largest part of the pages read that was in memory already; ``None``: a write, or not known."""
        fractions = [r.cached_fraction for r in self.repeats if r.cached_fraction is not None]
        return max(fractions) if len(fractions) == len(self.repeats) else None

    @property
    def verified(self) -> bool:
        """Every byte of every repeat was read back and compared, and none differed."""
        return all(repeat.verified_bytes == self.logical_bytes and repeat.mismatches == 0 for repeat in self.repeats)


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
    if (main.benchmark, main.operation, main.ranks, len(main.repeats)) != (
        baseline.benchmark,
        baseline.operation,
        baseline.ranks,
        len(baseline.repeats),
    ):
        raise ValueError("the two cases are not of one job")
    pairs = tuple(
        ours / theirs for ours, theirs in zip(main.rates_mib_s(metric), baseline.rates_mib_s(metric), strict=True)
    )
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
