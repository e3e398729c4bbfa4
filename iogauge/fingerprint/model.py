"""What a fingerprint is: calls on the case's files by kind, and the layout of its HDF5 files. Sizes and offsets are bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator

#: How a file was opened when a call was made on it; by its name alone; Darshan does not tell.
Access = Literal["write", "read", "name", "any"]
ACCESSES: tuple[Access, ...] = ("write", "read", "name", "any")

#: Where what was seen comes from: the project's own counter, or a Darshan log.
Source = Literal["counter", "darshan"]

#: Darshan's bins of access sizes: the upper limits (inclusive), and their names; the last has none.
BINS = (
    (100, "0_100"),
    (1024, "100_1K"),
    (10 * 1024, "1K_10K"),
    (100 * 1024, "10K_100K"),
    (1024**2, "100K_1M"),
    (4 * 1024**2, "1M_4M"),
    (10 * 1024**2, "4M_10M"),
    (100 * 1024**2, "10M_100M"),
    (1024**3, "100M_1G"),
)
LARGEST_BIN = "1G_PLUS"

#: Exact sizes are told of so many, the most frequent ones; the bins hold all.
COMMON_SIZES = 16

#: An access or a dataset that begins at a multiple of these is told as aligned.
ALIGNMENTS = (4096, 1024**2)

Count = Annotated[int, Field(ge=0)]

#: What a case has several of, by which numbers are told.
Unit = Literal["dataset", "step"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Spread(_Value):
    """A number summed over the ranks, and the least and the most that one of them had; ``None``: that is not told, or not
    the same every time. In text ``17 (1 to 16 a rank)`` or ``32 (16 a rank)``.
    """

    total: Count
    least: Count | None = None
    most: Count | None = None

    @classmethod
    def of(cls, each: Sequence[int]) -> Spread:
        """Of one number a rank."""
        return cls(total=sum(each), least=min(each), most=max(each))

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if isinstance(value, int):
            return {"total": value}
        if not isinstance(value, str):
            return value
        match = re.fullmatch(r"(\d+)(?: \((\d+)(?: to (\d+))? a rank\))?", value)
        if match is None:
            raise ValueError("a number such as '32', '32 (16 a rank)' or '17 (1 to 16 a rank)' is allowed")
        return {"total": match[1], "least": match[2], "most": match[3] or match[2]}

    @model_serializer
    def _as_text(self) -> str | int:
        if self.least is None:
            return self.total
        range_ = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        return f"{self.total} ({range_} a rank)"

    def __add__(self, other: Spread) -> Spread:
        """The ranks' shares of a sum are known where one of both is all there is."""
        if not other.total or not self.total:
            return self if self.total else other
        return Spread(total=self.total + other.total)


class Calls(_Value):
    """One kind of call. Only those that move data have ``bytes``, those asked for, and what follows; what is ``None`` is not
    told, or not the same every time.

    ``sizes``: how many calls asked for so many bytes, of the most frequent sizes; ``bins``: the same by Darshan's bins, all
    calls; ``aligned``: how many began at a multiple of so many bytes.
    """

    calls: Spread | None = None
    bytes: Spread | None = None
    sizes: dict[int, Count] | None = None
    bins: dict[str, Count] | None = None
    aligned: dict[int, Count] | None = None


class File(_Value):
    """A file of the case, or those that differ in numbers in their names only (``count``, a ``*`` for each number).
    ``bytes``: their sizes when they were closed. ``calls`` by access and kind; of HDF5's files, POSIX calls that move data
    are told apart into ``, data`` (of datasets), ``, metadata`` (all else) and ``, both``.
    """

    count: Count | None = 1
    bytes: int | None = None
    calls: dict[Access, dict[str, Calls]] = {}


class Object(_Value):
    """A group, dataset or type in an HDF5 file. ``limit``: -1 is none. ``offset``: of a contiguous dataset's bytes;
    ``first_chunk``: of a chunked one's first chunk. Bytes that are ``None`` do not apply.
    """

    kind: Literal["group", "dataset", "type"]
    header_version: int | None = None
    header_messages: int | None = None
    header_bytes: int | None = None
    header_free_bytes: int | None = None
    attributes: int | None = None
    links: int | None = None
    link_storage: str | None = None
    type: str | None = None
    element_bytes: int | None = None
    extent: tuple[int, ...] | None = None
    limit: tuple[int, ...] | None = None
    layout: str | None = None
    offset: int | None = None
    chunk: tuple[int, ...] | None = None
    chunks: int | None = None
    first_chunk: int | None = None
    filters: tuple[str, ...] | None = None
    stored_bytes: int | None = None
    allocated: str | None = None
    filled: str | None = None


class Layout(_Value):
    """How HDF5 has laid out a file."""

    superblock_version: int | None = None
    superblock_bytes: int | None = None
    space_strategy: str | None = None
    page_bytes: int | None = None
    free_bytes: int | None = None
    objects: dict[str, Object] = {}

    @property
    def datasets(self) -> dict[str, Object]:
        """Those objects that are datasets."""
        return {name: o for name, o in self.objects.items() if o.kind == "dataset"}


class Fingerprint(_Value):
    """What ``kernel`` with ``options`` did on ``ranks`` ranks; ``pattern`` is the name of these options.

    ``environment``: variables that choose what MPI-IO and HDF5 make of their calls, where they are set.
    ``runs``: how often it was run; what was not the same each time is named in ``not_deterministic`` and left out.
    ``units``: how many steps and datasets a case has, by which numbers are told.
    """

    schema_: Literal["iogauge.fingerprint/1"] = Field(default="iogauge.fingerprint/1", alias="schema")
    source: Source
    kernel: str
    pattern: str
    options: tuple[str, ...] = ()
    ranks: Annotated[int, Field(gt=0)]
    hdf5: str | None
    mpi: str | None
    environment: dict[str, str] = {}
    runs: Annotated[int, Field(gt=0)]
    units: dict[Unit, Count] = {}
    files: dict[str, File]
    layouts: dict[str, Layout] = {}
    not_deterministic: tuple[str, ...] = ()

    @property
    def case(self) -> str:
        """``KERNEL/PATTERN``."""
        return f"{self.kernel}/{self.pattern}"


def is_mpi_io(call: str) -> bool:
    """A call of MPI-IO, not of POSIX."""
    return call.startswith("MPI_")


def bin_of(size: int) -> str:
    """Darshan's name for the bin of an access of ``size`` bytes."""
    return next((name for limit, name in BINS if size <= limit), LARGEST_BIN)


def calls_of(each: Iterable[Sequence[tuple[int, int, int]]], *, moves: bool, placed: bool) -> Calls:
    """Of calls of one kind: for each rank the offset, the bytes and how often. ``placed``: their offsets are known."""
    ranks = [list(rank) for rank in each]
    numbers = Spread.of([sum(times for _, _, times in rank) for rank in ranks])
    if not moves:
        return Calls(calls=numbers)
    sizes: dict[int, int] = {}
    for _, size, times in (one for rank in ranks for one in rank):
        sizes[size] = sizes.get(size, 0) + times
    common = sorted(sorted(sizes, key=lambda size: (-sizes[size], size))[:COMMON_SIZES])
    aligned = {
        alignment: sum(t for rank in ranks for offset, _, t in rank if offset % alignment == 0)
        for alignment in ALIGNMENTS
    }
    return Calls(
        calls=numbers,
        bytes=Spread.of([sum(size * times for _, size, times in rank) for rank in ranks]),
        sizes={size: sizes[size] for size in common},
        bins=binned(sizes),
        aligned=aligned if placed else None,
    )


def binned(sizes: Mapping[int, int]) -> dict[str, int]:
    """How many calls of each size, by Darshan's bins, in their order; empty bins are left out."""
    found: dict[str, int] = {}
    for size in sorted(sizes):
        found[bin_of(size)] = found.get(bin_of(size), 0) + sizes[size]
    return found
