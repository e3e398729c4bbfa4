"""What one Darshan log says of the files of a case: validated, small enough to be kept with the measurement.

Counters have Darshan's own names (https://www.mcs.anl.gov/research/projects/darshan/docs/darshan-util.html). Sizes are
bytes, times seconds, rates MiB/s (2^20 bytes).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

#: Darshan's modules that see files, from the top of the stack to its bottom.
Module = Literal["H5D", "H5F", "MPI-IO", "POSIX", "STDIO"]
MODULES: tuple[Module, ...] = ("H5D", "H5F", "MPI-IO", "POSIX", "STDIO")

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Slowest(_Value):
    """Who spent the longest in a module, against the mean of all ranks; ``moved`` and ``mean_moved`` are bytes."""

    rank: Count
    seconds: Seconds
    mean_seconds: Seconds
    moved: Count
    mean_moved: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Layer(_Value):
    """One module, summed over the case's files and all ranks.

    ``counters`` are those that can be added up, without zeros. The times are sums over the ranks; ``aggregate_seconds`` is
    Darshan's estimate of what the slowest rank spent in the module: the slowest rank's time in files of its own, and each
    shared file's slowest rank's (``agg_time_by_slowest``). ``least_ranks`` and ``most_ranks`` say how many ranks used one
    file. ``rank_seconds`` holds every rank's time where the log tells the ranks apart, else it is empty.
    """

    files: Count
    least_ranks: Count
    most_ranks: Count
    counters: dict[str, Count]
    read_seconds: Seconds
    write_seconds: Seconds
    metadata_seconds: Seconds
    aggregate_seconds: Seconds
    slowest: Slowest | None
    rank_seconds: tuple[Seconds, ...] = ()
    #: Of POSIX: what an access has to be aligned to. Zero: not known.
    alignment_bytes: Count = 0
    #: The most frequent sizes of an access, in bytes, the most frequent first.
    common_sizes: tuple[Count, ...] = ()

    def __getitem__(self, counter: str) -> int:
        """A counter without its module's prefix; zero where Darshan counted none."""
        return next((value for name, value in self.counters.items() if name.partition("_")[2] == counter), 0)

    @property
    def calls(self) -> int:
        """Calls that move data."""
        if any(name.startswith("MPIIO_") for name in self.counters):
            kinds = ("INDEP", "COLL", "SPLIT", "NB")
            return sum(self[f"{kind}_{direction}"] for kind in kinds for direction in ("READS", "WRITES"))
        return self["READS"] + self["WRITES"]

    @property
    def bytes_read(self) -> int:
        """By all ranks."""
        return self["BYTES_READ"]

    @property
    def bytes_written(self) -> int:
        """By all ranks."""
        return self["BYTES_WRITTEN"]

    @property
    def seconds(self) -> float:
        """All that the ranks spent in the module, added up."""
        return self.read_seconds + self.write_seconds + self.metadata_seconds

    @property
    def aggregate_mib_s(self) -> float | None:
        """Darshan's ``agg_perf_by_slowest``; ``None`` without bytes or time."""
        moved = self.bytes_read + self.bytes_written
        return moved / 2**20 / self.aggregate_seconds if moved and self.aggregate_seconds else None


class Summary(_Value):
    """A log, reduced to the files that were asked for (``only``: a regular expression of their names; empty: all)."""

    schema_: Literal["iogauge.darshan/1"] = Field(default="iogauge.darshan/1", alias="schema")
    darshan: str
    ranks: Annotated[int, Field(gt=0)]
    started: datetime
    run_seconds: Seconds
    command: str
    only: str = ""
    layers: dict[Module, Layer]

    @model_validator(mode="after")
    def _ranks_exist(self) -> Summary:
        for module, layer in self.layers.items():
            if layer.most_ranks > self.ranks or len(layer.rank_seconds) not in (0, self.ranks):
                raise ValueError(f"{module}: more ranks than the log's {self.ranks}")
            if layer.slowest is not None and layer.slowest.rank >= self.ranks:
                raise ValueError(f"{module}: rank {layer.slowest.rank} of {self.ranks}")
        return self

    def top(self, interface: str | None = None) -> Module | None:
        """The module that sees what the application asks for through ``interface``; without one, the highest with data."""
        wanted: dict[str | None, tuple[Module, ...]] = {
            "hdf5": ("H5D",),
            "netcdf": ("H5D",),
            "mpiio": ("MPI-IO",),
            "posix": ("POSIX",),
        }
        modules = wanted.get(interface, MODULES)
        return next((m for m in modules if m in self.layers and self.layers[m].calls), None)
