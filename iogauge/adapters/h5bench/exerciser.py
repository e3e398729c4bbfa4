"""h5bench's kind ``exerciser``: a dataset written, closed, reopened, read and compared, ten times for each of its sizes.

It falls back to other blocks and another process grid than were asked for, with at most a warning; a comparison that fails is
a line on stdout and exit code 0; ``metacoll`` does nothing as h5bench builds it; the derived type is five times as large as
the doubles, not eight. Its median is none (it sorts beyond its array), so of the ten the fastest is taken, which stands there
twice: as a time and as a rate. Only H5Dwrite and H5Dread are timed apart from each other, on the slowest rank; nothing is
synced in them, and it reads what it has just written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iogauge.adapters.h5bench.benchmark import Announced, Benchmark, measured, own_pattern, size_on_disk, texts_of
from iogauge.adapters.upstream import Job, Launch, Pattern, Printed, agree, printed, repeat, whole
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement

#: Given as ``true``; all else is no for the runner.
SWITCHES = ("keepfile", "usechunked", "indepio", "addattr", "derivedtype")
_PER_DIMENSION = ("minels", "bufmult", "dimranks", "fileblocks", "filestrides")
_SINGLE = ("nsizes", "rshift", "maxcheck", "memblock", "memstride")
_KEYS = ("numdims", *_PER_DIMENSION, *_SINGLE, *SWITCHES)
_NO_BLOCKS = {"fileblocks": 0, "filestrides": 1, "minels": 8, "bufmult": 2, "dimranks": 1}

#: Of the derived type, in the file as in memory.
DERIVED_BYTES = 40

_STATISTICS = ("Min", "Med", "Max", "Avg", "Std")
_MOST_ELEMENTS = (1 << 31) - 1
_FILES = r"hdf5TestFile-\d+"


@dataclass(frozen=True)
class Size:
    """One of its sizes: elements of a rank along each dimension, and the blocks they lie in."""

    elements: tuple[int, ...]
    blocks: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def bytes_per_rank(self) -> int:
        """Of the doubles."""
        return 8 * math.prod(self.elements)


@dataclass(frozen=True)
class Exerciser(Benchmark):
    """``numbers`` are its options, one or one a dimension; ``switches`` those that are on; ``grid`` its process grid."""

    numbers: Mapping[str, tuple[int, ...]]
    switches: frozenset[str]
    grid: tuple[int, ...]
    file: str = ""
    kind: str = "exerciser"

    @property
    def program(self) -> str:
        """As h5bench installs it."""
        return "h5bench_exerciser"

    def words(self, configuration: str) -> list[str]:
        """Its file is always kept: its size is looked at."""
        found = []
        for key, values in self.numbers.items():  # numdims comes first
            found += [f"--{key}", *map(str, values)]
        return found + [f"--{switch}" for switch in SWITCHES if switch in self.switches or switch == "keepfile"]

    @property
    def before(self) -> list[str]:
        """Each launch makes a file with a name of its own."""
        return ["rm -f hdf5TestFile-*"]

    @property
    def reads_what_it_wrote(self) -> bool:
        """Each of the ten times."""
        return True

    def _one(self, key: str, default: int) -> int:
        return self.numbers.get(key, (default,))[0]

    def _each(self, key: str) -> tuple[int, ...]:
        return self.numbers.get(key, (_NO_BLOCKS[key],) * self._one("numdims", 1))

    @property
    def sizes(self) -> list[Size]:
        """One after the other."""
        found = []
        for turn in range(self._one("nsizes", 1)):
            elements = tuple(
                least * grow**turn for least, grow in zip(self._each("minels"), self._each("bufmult"), strict=True)
            )
            blocks = tuple(block or whole_ for block, whole_ in zip(self._each("fileblocks"), elements, strict=True))
            strides = tuple(max(*both) for both in zip(self._each("filestrides"), blocks, strict=True))
            found.append(Size(elements, blocks, strides))
        return found

    @property
    def ranks(self) -> int:
        """Of the process grid."""
        return math.prod(self.grid)

    @property
    def derived(self) -> bool:
        """With a dataset of structures beside that of doubles, which is not read."""
        return "derivedtype" in self.switches

    def moved(self, size: Size, operation: str) -> int:
        """Bytes of all ranks in each of the ten times."""
        structures = DERIVED_BYTES * math.prod(size.elements) if self.derived and operation == "write" else 0
        return (size.bytes_per_rank + structures) * self.ranks

    def compares(self, size: Size) -> bool:
        """Does it compare what it has read?"""
        return size.bytes_per_rank <= self._one("maxcheck", size.bytes_per_rank)

    def file_bytes(self, ranks: int) -> int:
        """Of the largest size, with the gaps between blocks."""
        most = 0
        for size in self.sizes:
            gaps = math.prod(s / b for s, b in zip(size.strides, size.blocks, strict=True))
            most = max(most, int(self.moved(size, "write") * gaps))
        return most + (1 << 20)

    def announced(self, own: str = "") -> list[Announced]:
        """Write and read of each size."""
        found = []
        for size in self.sizes:
            pattern: Pattern = {
                "kind": self.kind,
                "bytes_per_rank": size.bytes_per_rank,
                "dims": list(size.elements),
                "process_grid": list(self.grid),
                "chunked": "usechunked" in self.switches,
                "attributes": "addattr" in self.switches,
                "derived": self.derived,
                "rank_shift": self._one("rshift", 0),
            }
            if size.blocks != size.elements:
                pattern |= {"blocks": list(size.blocks), "strides": list(size.strides)}
            if "memblock" in self.numbers:
                pattern |= {"memory_block": self._one("memblock", 1), "memory_stride": self._one("memstride", 1)}
            pattern = own_pattern(pattern, own)
            found += [Announced(each, pattern, "indepio" not in self.switches) for each in ("write", "read")]
        return found

    def measurements(self, job: Job, launches: Sequence[Launch], *, own: str = "") -> list[Measurement]:
        """Write and read of each size."""
        job.check_ranks(self.program, self.ranks)
        runs = [self._run(launch) for launch in launches]
        file_bytes = max(
            size_on_disk(launch, _FILES, self.moved(self.sizes[-1], "write"), "its file") for launch in launches
        )
        found = []
        for number, series in enumerate(self.announced(own)):
            size = self.sizes[number // 2]
            bytes_ = self.moved(size, series.operation)
            compared = self.compares(size) and not (self.derived and series.operation == "write")
            repeats = [
                repeat(
                    total=run[size, series.operation],
                    verified_bytes=bytes_ if compared else 0,
                    cached=(None, launch.cached_after) if series.operation == "read" else (None, None),
                    what=f"{launch.name}: {series.operation} of {size.bytes_per_rank} bytes",
                )
                for run, launch in zip(runs, launches, strict=True)
            ]
            found.append(measured(job, series, repeats, logical_bytes=bytes_, file_bytes=file_bytes, verifies=compared))
        return found

    def _run(self, launch: Launch) -> dict[tuple[Size, str], Printed]:
        """The fastest of ten times of each size and operation. Raises :class:`Refusal`."""
        launch.check(self.program, r"\bERROR\b", r"WARNING!! - ndomains", r" failed with rc ", r" error - ")
        text = launch.stdout
        if not re.search(r"^All done -- Finishing normally\.$", text, re.MULTILINE):
            raise Refusal(f"{launch.name}: it does not say that it came to its end")
        self._check_heading(text, launch.name)
        rows = re.findall(rf"^({'|'.join(_STATISTICS)}) +(\S+)((?: +\S+){{11}})$", text, re.MULTILINE)
        if [row[0] for row in rows] != list(_STATISTICS) * len(self.sizes):
            raise Refusal(f"{launch.name}: {len(rows)} rows, {5 * len(self.sizes)} are expected, five a size")
        found = {}
        for number, size in enumerate(self.sizes):
            table = {}
            for name, bytes_, figures in rows[5 * number : 5 * number + 5]:
                if whole(bytes_, f"{launch.name}: Bufsize") != size.bytes_per_rank:
                    raise Refusal(f"{launch.name}: Bufsize {bytes_}, {size.bytes_per_rank} was asked for")
                table[name] = [printed(figure, f"{launch.name}: {name}") for figure in figures.split()]
            for operation, column in (("write", 0), ("read", 2)):
                found[size, operation] = self._fastest(size, operation, table, column, launch.name)
        return found

    def _fastest(
        self, size: Size, operation: str, table: Mapping[str, Sequence[Printed]], column: int, what: str
    ) -> Printed:
        """Times and rates mirror each other: the shortest time belongs to the highest rate."""
        what = f"{what}: {operation} of {size.bytes_per_rank} bytes"
        least, most = table["Min"][column], table["Max"][column]
        if not least.value <= table["Avg"][column].value <= most.value:
            raise Refusal(f"{what}: the mean time is not between the shortest and the longest")
        doubles = size.bytes_per_rank * self.ranks
        for time, rate in ((least, table["Max"][column + 1]), (most, table["Min"][column + 1])):
            if self.moved(size, operation) == doubles:
                agree(doubles, rate, time, what)
            elif (rate.value + rate.slack) * (time.value + time.slack) * 2**20 < doubles:
                # The rate is of the doubles, the time of both datasets.
                raise Refusal(f"{what}: {rate.value:g} MiB/s are too few for {doubles} bytes in {time.value:g} s")
        return least

    def _check_heading(self, text: str, what: str) -> None:
        """What it says that it does."""
        heading = re.search(r"^useMetaDataCollectives: (.*)$", text, re.MULTILINE)
        flags = [int(name in self.switches) for name in ("derivedtype", "addattr", "indepio")]
        expected = (
            "0 addDerivedTypeDataset: {} addAttributes: {} useIndependentIO: {} numDims: {} useChunked: {} rankShift: {}"
        ).format(*flags, self._one("numdims", 1), int("usechunked" in self.switches), self._one("rshift", 0))
        if heading is None or heading[1].strip() != expected:
            raise Refusal(f"{what}: it does not run with the options that were asked for")
        blocks = re.findall(r"^FileSpace: Dim= (\d+) Block= (\d+) Stride= (\d+) Count= (\d+)$", text, re.MULTILINE)
        asked = [
            (str(dimension), str(block), str(stride), str(elements // block))
            for size in self.sizes
            for dimension, (elements, block, stride) in enumerate(
                zip(size.elements, size.blocks, size.strides, strict=True)
            )
        ]
        if blocks != asked:
            raise Refusal(f"{what}: it fell back to other blocks in the file than were asked for")


def check(values: Mapping[str, Any], ranks: int, where: str) -> Exerciser:
    """Raises :class:`InputError`: the program itself would fall back to something else."""
    texts = texts_of(values, where)
    switches = frozenset(key for key in SWITCHES if _switch(key, texts.get(key, ""), where))
    numbers = {key: _numbers(key, text, where) for key, text in texts.items() if key not in SWITCHES}
    if next(iter(numbers), "") != "numdims":
        raise InputError("has to come first", file=where, key="numdims")
    dimensions = numbers["numdims"][0]
    if len(numbers["numdims"]) != 1 or dimensions not in (1, 2, 3, 4):
        raise InputError(f"{texts['numdims']}; allowed: 1, 2, 3, 4", file=where, key="numdims")
    for key, found in numbers.items():
        expected = dimensions if key in _PER_DIMENSION else 1
        if len(found) != expected:
            raise InputError(f"{texts[key]!r}: {expected} whole numbers are expected", file=where, key=key)
        if min(found) < (0 if key == "rshift" else 1):
            raise InputError(f"{texts[key]!r}: 1 or more is expected", file=where, key=key)
    if "dimranks" not in numbers and dimensions == 4:
        raise InputError("is needed for 4 dimensions", file=where, key="dimranks")
    grid = numbers.get("dimranks", (ranks,) + (1,) * (dimensions - 1))
    if math.prod(grid) != ranks:
        words = " x ".join(map(str, grid))
        raise InputError(
            f"{words} is not the job's {ranks} ranks: it would divide the first dimension only",
            file=where,
            key="dimranks",
        )
    if numbers.get("rshift", (0,))[0] >= ranks:
        raise InputError(f"{numbers['rshift'][0]}; below the number of ranks, {ranks}", file=where, key="rshift")
    if "dimranks" not in numbers:
        numbers["dimranks"] = grid
    found_ = Exerciser(numbers, switches, grid)
    for key, why in _contradictions(found_):
        raise InputError(why, file=where, key=key)
    return found_


def _switch(key: str, text: str, where: str) -> bool:
    if text.lower() not in ("", "true", "false"):
        raise InputError(f"{text!r} is no for h5bench's runner; allowed: true, false", file=where, key=key)
    return text.lower() == "true"


def _numbers(key: str, text: str, where: str) -> tuple[int, ...]:
    if key == "metacoll":
        raise InputError("does nothing as h5bench builds it, though it says so; leave it out", file=where, key=key)
    if key not in _KEYS:
        raise InputError(f"unknown key; allowed: {', '.join(_KEYS)}", file=where, key=key)
    if re.fullmatch(r"\d{1,12}(?: +\d{1,12})*", text, re.ASCII) is None:
        raise InputError(f"{text!r}: whole numbers with blanks between are expected", file=where, key=key)
    return tuple(map(int, text.split()))


def _contradictions(e: Exerciser) -> list[tuple[str, str]]:
    """What it would replace by something else, or could not do."""
    found = []
    if e._one("nsizes", 1) > 60:
        return [("nsizes", "60 at the most")]
    for size in e.sizes:
        words = " x ".join(map(str, size.elements))
        if math.prod(size.elements) * max(1, e._one("memstride", 1) // e._one("memblock", 1)) >= _MOST_ELEMENTS:
            found.append(("minels", f"a size of {words} elements; below {_MOST_ELEMENTS}"))
        if any(elements % block for elements, block in zip(size.elements, size.blocks, strict=True)):
            found.append(("fileblocks", f"{words} elements are not whole blocks: it would use others"))
        if math.prod(size.elements) % e._one("memblock", 1):
            found.append(("memblock", f"{words} elements are not whole blocks: it would use others"))
    for stride, block in (("memstride", "memblock"), ("filestrides", "fileblocks")):
        strides, blocks = e.numbers.get(stride), e.numbers.get(block, ())
        if strides is not None and (not blocks or any(s < b for s, b in zip(strides, blocks, strict=True))):
            found.append((stride, f"needs {block}, and has to be no less: it would use another one"))
    return found
