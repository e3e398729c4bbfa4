"""What the preloaded counter left, one file a process, to the calls of a fingerprint."""

from __future__ import annotations

import bisect
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iogauge.errors import Refusal
from iogauge.fingerprint.model import Access, Calls, File, calls_of, is_mpi_io

#: The counter, beside the kernels.
COUNTER = "libiogauge_fingerprint.so"

#: Open MPI's locks and shared memory carry the names of data files too; they are none.
_NO_DATA = re.compile(r"\.locktest\.|_cid-|-\d+-\d+\.lock$")

#: Numbers in the names of more files than this are no names: of the metadata kernel's objects, say.
_MOST_NAMES = 8

#: POSIX and MPI-IO calls that move data.
_MOVES = re.compile(r"p?(read|write)v?|MPI_File_i?(read|write)_?\w*")


class _CountedFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    bytes: int | None


class Process(BaseModel):
    """What one process left. ``calls``: file, access, call, failed, offset (-1: none), bytes, how often."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["iogauge.calls/1"] = Field(alias="schema")
    rank: Annotated[int, Field(ge=-1)]
    ranks: Annotated[int, Field(ge=0)]
    host: str
    finalized: bool
    lost: int
    files: tuple[_CountedFile, ...]
    calls: tuple[tuple[int, Access, str, bool, int, int, int], ...]


#: Where the datasets of a file lie: begin and end of each, in order, apart from each other.
Extents = Sequence[tuple[int, int]]


def read_processes(folder: Path, ranks: int) -> list[Process]:
    """What all ranks left in ``folder``, in their order. Raises :class:`Refusal` where one of them is missing or did not end
    in good order, where several worlds ran, and where not everything was counted.
    """
    found = [_read(path) for path in sorted(folder.glob("rank*.json"))]
    if not found:
        raise Refusal(
            "the counter was in no process: the program is linked statically, runs with other rights than its own, or the "
            "launcher does not hand LD_PRELOAD on"
        )
    worlds = [process for process in found if process.rank >= 0]
    if not worlds and len(found) == 1 and ranks == 1:
        return found  # a program without MPI
    _all_there(worlds, ranks)
    lost = sum(process.lost for process in worlds)
    if lost:
        raise Refusal(f"{lost} calls were not counted: too many different accesses; take a smaller case")
    return sorted(worlds, key=lambda process: process.rank)


def _all_there(worlds: Sequence[Process], ranks: int) -> None:
    times = Counter(process.rank for process in worlds)
    twice = sorted(rank for rank, number in times.items() if number > 1)
    if twice:
        raise Refusal(
            f"{times[twice[0]]} processes say that they are rank {twice[0]}: does the launcher belong to the kernel's MPI?"
        )
    missing = sorted(set(range(ranks)) - set(times))
    if missing:
        raise Refusal(f"rank {_listed(missing)} of {ranks} left no counts: it was killed, or could not be preloaded")
    unfinished = sorted(process.rank for process in worlds if not process.finalized)
    if unfinished:
        raise Refusal(f"rank {_listed(unfinished)} of {ranks} ended before MPI_Finalize")


def _listed(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
    return ", ".join(map(str, numbers[:5])) + more


def _read(path: Path) -> Process:
    try:
        return Process.model_validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error.strerror
        raise Refusal(f"{path.name}: not what the counter writes: {reason}") from error


def plain_name(name: str, case: str) -> str:
    """A file's name without what changes from run to run: the case's folder's own name, and the number of its rank."""
    return re.sub(r"(?<=-rank)\d+", "*", name.removeprefix(f"{case}-"))


def files_of(processes: Sequence[Process], case: str, extents: Mapping[str, Extents]) -> dict[str, File]:
    """The calls on each data file, ranks together. ``case``: the name of the case's folder. ``extents``: where the datasets
    of HDF5's files lie, by the files' names; without them data and metadata are not told apart.
    """
    names = {f.name for process in processes for f in process.files if not _NO_DATA.search(f.name)}
    plain = {name: plain_name(name, case) for name in names}
    if len(set(plain.values())) > _MOST_NAMES:
        plain = {name: re.sub(r"\d+", "*", short) for name, short in plain.items()}
    found: defaultdict[tuple[str, Access, str], list[list[tuple[int, int, int]]]] = defaultdict(
        lambda: [[] for _ in processes]
    )
    for place, process in enumerate(processes):
        for file, access, call, failed, offset, size, times in process.calls:
            name = process.files[file].name
            if name in plain:
                kind = _kind(call, failed, offset, size, extents.get(name))
                found[plain[name], access, kind][place].append((offset, size, times))
    return {short: _file(short, plain, processes, found) for short in sorted(set(plain.values()))}


def _file(
    short: str,
    plain: Mapping[str, str],
    processes: Sequence[Process],
    found: Mapping[tuple[str, Access, str], list[list[tuple[int, int, int]]]],
) -> File:
    sizes: dict[str, int] = {}
    for file in (f for process in processes for f in process.files):
        if plain.get(file.name) == short and file.bytes is not None:
            sizes[file.name] = max(file.bytes, sizes.get(file.name, 0))
    calls: dict[Access, dict[str, Calls]] = {}
    for (name, access, kind), each in sorted(found.items(), key=lambda item: (is_mpi_io(item[0][2]), item[0])):
        if name == short:
            # MPI-IO's offsets count in units of a view.
            moves = bool(_MOVES.fullmatch(kind.partition(",")[0])) and not kind.endswith(_FAILED)
            calls.setdefault(access, {})[kind] = calls_of(each, moves=moves, placed=not is_mpi_io(kind))
    count = sum(other == short for other in plain.values())
    return File(count=count, bytes=sum(sizes.values()) if sizes else None, calls=calls)


_FAILED = ", failed"


def _kind(call: str, failed: bool, offset: int, size: int, extents: Extents | None) -> str:
    if failed:
        return f"{call}{_FAILED}"
    if extents is None or is_mpi_io(call) or not _MOVES.fullmatch(call) or size == 0:
        return call
    return f"{call}, {_part(offset, size, extents)}"


def _part(offset: int, size: int, extents: Extents) -> str:
    """Whether an access is of datasets' bytes, of none, or of some and others."""
    end = offset + size
    place = max(0, bisect.bisect_right(extents, (offset, offset)) - 1)
    covered = 0
    while place < len(extents) and extents[place][0] < end:
        covered += max(0, min(end, extents[place][1]) - max(offset, extents[place][0]))
        place += 1
    return "data" if covered == size else "both" if covered else "metadata"
