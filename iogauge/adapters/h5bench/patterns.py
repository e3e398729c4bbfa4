"""h5bench's own access patterns (write, read, overwrite, append): their configurations, and what they print.

They end with exit code 0 after a configuration they did not read, after a failed read and after one that read nothing, and
then print rates of sizes that never were. So a configuration is checked before the run, and the size printed has to be the
size that follows from it; units scale by themselves (1024, though they are called KB, MB, GB), times have three decimals.

Only *observed* is true of all ranks (from barrier to barrier); the other times are rank 0's, and are told on one rank only.
The emulated computing is taken out of it. Nothing is verified.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iogauge.adapters.h5bench.benchmark import Announced, Benchmark, measured, own_pattern, plain_name, size_on_disk
from iogauge.adapters.upstream import Job, Launch, Pattern, Printed, agree, printed, repeat, whole
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement

#: What a particle has: seven floats and an integer.
PARTICLE_BYTES = 32

#: Kind, as its runner names it, to the program and to the operation.
KINDS = {
    "write": ("h5bench_write", "write"),
    "write-unlimited": ("h5bench_write_unlimited", "write"),
    "write_var_normal_dist": ("h5bench_write_var_normal_dist", "write"),
    "overwrite": ("h5bench_overwrite", "overwrite"),
    "append": ("h5bench_append", "append"),
    "read": ("h5bench_read", "read"),
}

READ_OPTIONS = ("FULL", "PARTIAL", "STRIDED", "LDC", "RDC", "PRL", "CS")
#: Read by rank 0 alone, while the size printed counts all ranks.
RANK_0_OPTIONS = ("LDC", "RDC", "PRL", "CS")

_CHOICES = {
    "MEM_PATTERN": ("CONTIG", "INTERLEAVED"),
    "FILE_PATTERN": ("CONTIG", "INTERLEAVED", "STRIDED"),
    "READ_OPTION": READ_OPTIONS,
    "MODE": ("SYNC", "ASYNC"),
    **dict.fromkeys(
        ("COLLECTIVE_DATA", "COLLECTIVE_METADATA", "COMPRESS", "FILE_PER_PROC", "SUBFILING", "ALIGN"), ("YES", "NO")
    ),
}
_NUMBERS = (
    "TIMESTEPS", "DELAYED_CLOSE_TIMESTEPS", "NUM_DIMS", "DIM_1", "DIM_2", "DIM_3", "CHUNK_DIM_1", "CHUNK_DIM_2",
    "CHUNK_DIM_3", "TO_READ_NUM_PARTICLES", "NUM_PARTICLES", "STRIDE_SIZE", "STRIDE_SIZE_2", "STRIDE_SIZE_3", "BLOCK_SIZE",
    "BLOCK_SIZE_2", "BLOCK_SIZE_3", "BLOCK_CNT", "ALIGN_THRESHOLD", "ALIGN_LEN", "STDEV_DIM_1", "IO_MEM_LIMIT",
)  # fmt: skip
_TEXTS = ("CSV_FILE", "ENV_METADATA_FILE", "EMULATED_COMPUTE_TIME_PER_TIMESTEP", "IO_OPERATION")
_KEYS = (*_CHOICES, *_NUMBERS, *_TEXTS)
_NEEDED = ("TIMESTEPS", "NUM_DIMS", "DIM_1")

_SCALE = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def number(text: str) -> int:
    """``16 M`` as 16 * 2^20; the blank is needed. Raises ``ValueError``."""
    match = re.fullmatch(r"(\d{1,15})(?: ([KMGT]))?", text.strip(), re.ASCII)
    if match is None:
        raise ValueError("a number is expected, with a blank before K, M, G or T")
    return int(match[1]) << 10 * _SCALE[match[2] or ""]


def seconds(text: str) -> float:
    """``100 ms``; the blank is needed. Raises ``ValueError``."""
    match = re.fullmatch(r"(\d{1,9})(?: (s|ms|us))?", text.strip(), re.ASCII)
    if match is None:
        raise ValueError("a number is expected, with a blank before s, ms or us")
    return int(match[1]) * {"s": 1.0, "ms": 1e-3, "us": 1e-6}[match[2] or "s"]


@dataclass(frozen=True)
class Configuration(Benchmark):
    """A pattern: its ``kind``, the ``file`` it works on, and the keys of its configuration in their order."""

    kind: str
    file: str
    values: Mapping[str, str]

    @property
    def program(self) -> str:
        """The executable's name."""
        return KINDS[self.kind][0]

    @property
    def operation(self) -> str:
        """In our words."""
        return KINDS[self.kind][1]

    def get(self, key: str, default: int = 1) -> int:
        """A number."""
        return number(self.values[key]) if key in self.values else default

    def chosen(self, key: str) -> bool:
        """YES?"""
        return self.values.get(key, "NO") == "YES"

    @property
    def result(self) -> str:
        """The CSV's name; empty: none."""
        return self.values.get("CSV_FILE", "")

    @property
    def results(self) -> list[str]:
        """The CSV, where one is asked for."""
        return [self.result] if self.result else []

    @property
    def reads_what_was_there(self) -> bool:
        """Reads alone: the others change it."""
        return self.kind == "read"

    @property
    def dims(self) -> list[int]:
        """Of a rank's block."""
        return [self.get(f"DIM_{n}") for n in range(1, self.get("NUM_DIMS") + 1)]

    @property
    def steps(self) -> int:
        """Time steps."""
        return self.get("TIMESTEPS")

    @property
    def strided(self) -> bool:
        """Along one dimension."""
        return self.values.get("FILE_PATTERN") == "STRIDED"

    @property
    def asynchronous(self) -> bool:
        """Through a connector."""
        return self.values.get("MODE", "SYNC") == "ASYNC"

    @property
    def compute_seconds(self) -> float:
        """Between time steps."""
        return seconds(self.values.get("EMULATED_COMPUTE_TIME_PER_TIMESTEP", "0 s"))

    @property
    def selection(self) -> str:
        """Of a read, in small letters; what all others have is full."""
        return "strided" if self.strided else self.values.get("READ_OPTION", "FULL").lower()

    def particles(self) -> int:
        """That rank 0 moves in a step; of variable-size writes, the mean."""
        if self.strided:
            return self.get("BLOCK_SIZE") * self.get("BLOCK_CNT")
        if self.kind == "read" and self.get("TO_READ_NUM_PARTICLES", 0):
            return self.get("TO_READ_NUM_PARTICLES")
        if self.kind == "read" and self.values.get("READ_OPTION") in RANK_0_OPTIONS:
            return self._elements()
        return math.prod(self.dims)

    def _elements(self) -> int:
        """Of the selections that rank 0 alone reads: two corners, a frame, a diagonal of blocks."""
        rows, columns = self.dims
        height, width = self.get("BLOCK_SIZE"), self.get("BLOCK_SIZE_2")
        option = self.values["READ_OPTION"]
        if option in ("LDC", "RDC"):
            return 2 * height * width
        if option == "PRL":
            return 2 * rows * width + 2 * height * (columns - 2 * width)
        down, across = self.get("STRIDE_SIZE"), self.get("STRIDE_SIZE_2")
        count = 1
        while count * down + height < rows and count * across + width < columns:
            count += 1
        overlap = max(0, height - down) * max(0, width - across)
        return count * height * width - (count - 1) * overlap

    def logical_bytes(self, ranks: int) -> int:
        """Moved by all ranks in all steps, as far as it follows from the configuration."""
        return PARTICLE_BYTES * self.particles() * ranks * self.steps

    def file_bytes(self, ranks: int) -> int:
        """About what its file has at the end."""
        if self.operation not in ("write", "append"):
            return 0
        copies = ranks if self.chosen("FILE_PER_PROC") else 1
        return int(PARTICLE_BYTES * math.prod(self.dims) * ranks * self.steps * copies * 1.05) + (1 << 20)

    def words(self, configuration: str) -> list[str]:
        """Without a folder in the name, files per process would go to the root folder."""
        return [configuration, f"./{self.file}"]

    def announced(self, own: str = "") -> list[Announced]:
        """One series."""
        return [Announced(self.operation, pattern_of(self, own), is_collective(self))]

    def measurements(self, job: Job, launches: Sequence[Launch], *, own: str = "") -> list[Measurement]:
        """One measurement."""
        return [measurement(job, launches, self, own=own)]

    def text(self) -> str:
        """For the program: no blank line, no key that only the runner knows."""
        operation = {"read": "READ", "overwrite": "OVERWRITE", "append": "APPEND"}.get(self.kind, "WRITE")
        lines = [f"IO_OPERATION={operation}"]
        lines += [f"{key}={value}" for key, value in self.values.items() if key not in ("MODE", "IO_OPERATION")]
        return "\n".join(lines) + "\n"


def check_configuration(kind: str, file: str, values: Mapping[str, Any], ranks: int, where: str) -> Configuration:
    """A configuration that its program will understand and that can be judged. Raises :class:`InputError` with the key."""

    def wrong(key: str | None, why: str) -> InputError:
        return InputError(why, file=where, key=key)

    if kind not in KINDS:
        raise wrong("benchmark", f"{kind!r} is not known; allowed: {', '.join(KINDS)}")
    plain_name(file, where)
    texts: dict[str, str] = {}
    for key, value in values.items():
        if key not in _KEYS:
            raise wrong(key, f"unknown key; allowed: {', '.join(sorted(_KEYS))}")
        text = str(value).strip()
        if not text or "\n" in text or "=" in text or "#" in text:
            raise wrong(key, f"{text!r}: a value on one line, without = or #, is expected")
        texts[key] = text.upper() if key in _CHOICES else text
    for key, text in texts.items():
        if key in _CHOICES and text not in _CHOICES[key]:
            raise wrong(key, f"{text!r}; allowed: {', '.join(_CHOICES[key])}")
        try:
            if key in _NUMBERS:
                number(text)
            if key == "EMULATED_COMPUTE_TIME_PER_TIMESTEP":
                seconds(text)
        except ValueError as error:
            raise wrong(key, f"{text!r}: {error}") from error
    for key in _NEEDED:
        if number(texts.get(key, "0")) < 1:
            raise wrong(key, "a number of 1 or more is needed")
    csv = texts.get("CSV_FILE", "")
    if csv and re.fullmatch(r"[A-Za-z0-9_.-]+", csv) is None:
        raise wrong("CSV_FILE", f"{csv!r}: a name without a folder is expected")
    configuration = Configuration(kind, file, texts)
    for key, why in _contradictions(configuration, ranks):
        raise wrong(key, why)
    return configuration


def _contradictions(c: Configuration, ranks: int) -> list[tuple[str, str]]:
    """What its program would not do, or do otherwise than it says."""
    found: list[tuple[str, str]] = []
    dimensions = c.get("NUM_DIMS")
    order = list(c.values)
    localities = (c.values.get("MEM_PATTERN", "CONTIG"), c.values.get("FILE_PATTERN", "CONTIG"))
    if dimensions not in (1, 2, 3):
        return [("NUM_DIMS", f"{dimensions}; allowed: 1, 2, 3")]
    for key in ("DIM_2", "DIM_3", "CHUNK_DIM_2", "CHUNK_DIM_3"):
        if key in order and order.index(key) < order.index("NUM_DIMS"):
            found.append((key, "stands before NUM_DIMS, and would be ignored"))
    for n in range(1, dimensions + 1):
        if c.get(f"DIM_{n}", 0) < 1:
            found.append((f"DIM_{n}", "a number of 1 or more is needed"))
    if "INTERLEAVED" in localities and dimensions == 3:
        found.append(("NUM_DIMS", "3 dimensions are only there with CONTIG in memory and file"))
    if c.kind != "write" and "INTERLEAVED" in localities and c.kind != "write-unlimited":
        found.append(("FILE_PATTERN", f"{c.kind} works on contiguous data only"))
    if c.kind in ("write-unlimited", "overwrite", "append", "write_var_normal_dist") and dimensions != 1:
        found.append(("NUM_DIMS", f"{c.kind} is sound along one dimension only"))
    if c.kind == "write-unlimited" and not c.chosen("COMPRESS"):
        found.append(("COMPRESS", "write-unlimited needs YES"))
    if c.kind == "write_var_normal_dist" and c.get("STDEV_DIM_1", 0) < 1:
        found.append(("STDEV_DIM_1", "a number of 1 or more is needed"))
    if c.chosen("COMPRESS") and any(c.get(f"CHUNK_DIM_{n}") < 1 for n in range(1, dimensions + 1)):
        found.append(("CHUNK_DIM_1", "with COMPRESS a chunk of 0 is none"))
    if c.kind == "append" and ranks > 1:
        found.append(
            ("benchmark", f"on {ranks} ranks append writes one and the same part from each; allowed: one rank")
        )
    if c.strided:
        length = (c.get("STRIDE_SIZE", 0) + c.get("BLOCK_SIZE", 0)) * c.get("BLOCK_CNT", 0)
        if dimensions != 1 or not 0 < length <= c.dims[0] or c.get("BLOCK_SIZE") > c.get("STRIDE_SIZE"):
            found.append(
                ("STRIDE_SIZE", "(STRIDE_SIZE + BLOCK_SIZE) x BLOCK_CNT within DIM_1, BLOCK_SIZE within STRIDE_SIZE")
            )
    return found + (_read_contradictions(c, ranks) if c.kind == "read" else [])


def _read_contradictions(c: Configuration, ranks: int) -> list[tuple[str, str]]:
    option = c.values.get("READ_OPTION", "FULL")
    # Without that number it reads as FULL does.
    if option == "PARTIAL" and not 0 < c.get("TO_READ_NUM_PARTICLES", math.prod(c.dims)) <= math.prod(c.dims):
        return [("TO_READ_NUM_PARTICLES", f"1 to {math.prod(c.dims)}, the particles of a rank, for PARTIAL")]
    if option != "PARTIAL" and "TO_READ_NUM_PARTICLES" in c.values:
        return [("TO_READ_NUM_PARTICLES", "belongs to READ_OPTION=PARTIAL")]
    if (option == "STRIDED") != c.strided:
        return [("FILE_PATTERN", "STRIDED belongs to READ_OPTION=STRIDED, and the other way round")]
    if option not in RANK_0_OPTIONS:
        return []
    if ranks > 1:
        return [("READ_OPTION", f"{option} is read by rank 0 alone, and counted for all {ranks}; allowed: one rank")]
    if c.get("NUM_DIMS") != 2:
        return [("NUM_DIMS", f"2 is expected for {option}")]
    if option == "CS":
        if not 0 < c.get("STRIDE_SIZE_2", 0) < c.get("STRIDE_SIZE", 0):
            return [("STRIDE_SIZE_2", "has to be below STRIDE_SIZE for CS")]
        return []
    for dimension, block in (("DIM_1", "BLOCK_SIZE"), ("DIM_2", "BLOCK_SIZE_2")):
        least, most = c.get(dimension) // 10, c.get(dimension) // 5
        if not max(1, least) <= c.get(block, 0) <= most:
            return [
                (block, f"{max(1, least)} to {most}, a tenth to a fifth of {dimension}: else it reads nothing at all")
            ]
    return []


@dataclass(frozen=True)
class Size:
    """A size as printed: the number, and the bytes of its unit."""

    number: Printed
    unit: int

    def is_(self, bytes_: int) -> bool:
        """Can it have been printed for so many bytes?"""
        missing = bytes_ - self.number.value * self.unit
        return -self._slack <= missing <= self._slack + self._cut

    @property
    def _slack(self) -> float:
        return self.number.slack * self.unit * 1.001 + 1

    @property
    def _cut(self) -> float:
        """It scales by whole divisions: what is below the next smaller unit is lost on the way."""
        return self.unit / 1024 if self.unit > 1 else 0.0

    @property
    def mib(self) -> Printed:
        """In MiB."""
        return Printed(self.number.value * self.unit / 2**20, (self._slack + self._cut) / 2**20)


@dataclass(frozen=True)
class Result:
    """What a run printed; ``mode`` only stdout tells. Times in seconds, rates by second."""

    ranks: int
    compute: Printed
    size: Size
    raw: Printed
    raw_rate: Size
    metadata: Printed
    observed: Printed
    observed_rate: Size
    mode: str = ""

    @property
    def figures(self) -> tuple[object, ...]:
        """What the CSV tells too."""
        return (
            self.ranks,
            self.compute,
            self.size,
            self.raw,
            self.raw_rate,
            self.metadata,
            self.observed,
            self.observed_rate,
        )


_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


def _size(text: str, unit: str, what: str) -> Size:
    if unit not in _UNITS:
        raise Refusal(f"{what}: an unknown unit {unit[:10]!r}")
    return Size(printed(text, what), _UNITS[unit])


_STDOUT = {
    "ranks": r"Total number of ranks: +(\S+)",
    "compute": r"Total emulated compute time: +(\S+) s",
    "size": r"Total (?:write|read|modify) size: +(\S+) +(\S+)",
    "raw": r"Raw (?:write|read|modify) time: +(\S+) s",
    "metadata": r"Metadata time: +(\S+) s",
    "observed": r"Observed (?:read |modify |write )?completion time: +(\S+) s",
    "raw_rate": r"(SYNC|ASYNC) Raw (?:write|read|modify) rate: +(\S+) +(\S+)/s",
    "observed_rate": r"(SYNC|ASYNC) Observed (?:write|read|modify) rate: +(\S+) +(\S+)/s",
}


def read_stdout(text: str, what: str = "h5bench") -> Result:
    """The results at the end of stdout. Raises :class:`Refusal`."""
    _, heading, results = text.partition("== Performance Results ==")
    if not heading:
        raise Refusal(f"{what}: it printed no results")
    if "== Performance Results ==" in results:
        raise Refusal(f"{what}: two runs' results")
    lines = [line.strip() for line in results.splitlines()]
    if not any(re.fullmatch("={40,}", line) for line in lines[1:]):
        raise Refusal(f"{what}: its results have no end")
    found: dict[str, tuple[str, ...]] = {}
    for name, pattern in _STDOUT.items():
        matches = [match for match in (re.fullmatch(pattern, line) for line in lines) if match]
        if len(matches) != 1:
            raise Refusal(f"{what}: {len(matches)} lines tell {name.replace('_', ' ')}, where one is expected")
        found[name] = matches[0].groups()
    (mode, *raw_rate), (mode_again, *observed_rate) = found["raw_rate"], found["observed_rate"]
    if mode != mode_again:
        raise Refusal(f"{what}: both SYNC and ASYNC")
    asked = re.search(r"^Mode: (\w+)$", text, re.MULTILINE)
    if asked is not None and asked[1] != mode:
        raise Refusal(f"{what}: Mode: {asked[1]} at its beginning, {mode} at its end")
    return _result(found | {"raw_rate": tuple(raw_rate), "observed_rate": tuple(observed_rate)}, what, mode)


_CSV = {
    "ranks": "ranks",
    "compute": "total compute time",
    "size": "total size",
    "raw": "raw time",
    "raw_rate": "raw rate",
    "metadata": "metadata time",
    "observed": "observed time",
    "observed_rate": "observed rate",
}


def read_csv(text: str, what: str = "h5bench") -> tuple[str, Result]:
    """The CSV: the operation as it names it, and the results. Raises :class:`Refusal`."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "metric, value, unit":
        raise Refusal(f"{what}: the CSV does not begin with 'metric, value, unit'")
    if not text.endswith("\n"):
        raise Refusal(f"{what}: the CSV's last line is cut")
    cells: dict[str, tuple[str, str]] = {}
    for line in lines[1:]:
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3:
            raise Refusal(f"{what}: a line of the CSV has not three columns: {line[:60]!r}")
        if parts[0] in cells:
            raise Refusal(f"{what}: the CSV tells {parts[0]} twice")
        cells[parts[0]] = (parts[1], parts[2])
    missing = [name for name in ("operation", *_CSV.values()) if name not in cells]
    if missing:
        raise Refusal(f"{what}: the CSV does not tell {missing[0]}")
    found: dict[str, tuple[str, ...]] = {}
    for name, column in _CSV.items():
        value, unit = cells[column]
        expected = {"ranks": "", "size": None, "raw_rate": None, "observed_rate": None}.get(name, "seconds")
        if expected is not None and unit != expected:
            raise Refusal(f"{what}: {column} in {unit[:20]!r}")
        found[name] = (value, unit.removesuffix("/s")) if expected is None else (value,)
    return cells["operation"][0], _result(found, what, "")


def _result(found: Mapping[str, tuple[str, ...]], what: str, mode: str) -> Result:
    def time(name: str) -> Printed:
        return printed(found[name][0], f"{what}: {name} time")

    def scaled(name: str) -> Size:
        return _size(found[name][0], found[name][1], f"{what}: {name.replace('_', ' ')}")

    return Result(
        ranks=whole(found["ranks"][0], f"{what}: ranks", 1),
        compute=time("compute"),
        size=scaled("size"),
        raw=time("raw"),
        raw_rate=scaled("raw_rate"),
        metadata=time("metadata"),
        observed=time("observed"),
        observed_rate=scaled("observed_rate"),
        mode=mode,
    )


_OPERATIONS = {"write_var_normal_dist": "write_var_normal_dist", "write-unlimited": "write unlimited"}


def _check_result(job: Job, launch: Launch, c: Configuration) -> tuple[Result, int]:
    """What one launch did: its results, and the bytes that it really moved."""
    launch.check(
        c.program, r"Configuration file read failed", r"\bfailed on line\b", r"unsupported value", r"^\s*Failed\b",
        r"Failed to ", r"Make sure ", r"^Invalid (?!time unit)", r"\bERROR\b",
    )  # fmt: skip
    asked = "ASYNC" if c.asynchronous else "SYNC"
    table = _read_table(launch, c) if c.result else None
    if launch.kept and table is not None and not launch.stdout:
        result = dataclasses.replace(table, mode=asked)
    else:
        result = read_stdout(launch.stdout, launch.name)
    job.check_ranks(c.program, result.ranks)
    if table is not None and table.figures != result.figures:
        raise Refusal(f"{launch.name}: stdout and {c.result} tell different results")
    if result.mode != asked:
        raise Refusal(f"{launch.name}: it ran {result.mode}, {asked} was asked for")
    moved = c.logical_bytes(result.ranks)
    counted = moved
    if c.kind == "write_var_normal_dist":
        # It counts rank 0's particles for every rank.
        particles = _particles_of_ranks(launch.stdout, result.ranks, launch.name)
        counted = PARTICLE_BYTES * particles[0] * result.ranks * c.steps
        moved = PARTICLE_BYTES * sum(particles) * c.steps
    if not result.size.is_(counted):
        raise Refusal(
            f"{launch.name}: it says that it moved {result.size.number.value:g} x {result.size.unit} bytes, its "
            f"configuration makes {counted}"
        )
    if abs(result.compute.value - c.compute_seconds * (c.steps - 1)) > result.compute.slack * 1.001:
        raise Refusal(f"{launch.name}: it computed for {result.compute.value:g} s, which was not asked for")
    total = _total(result)
    if result.raw.known:
        agree(counted, result.raw_rate.mib, result.raw, f"{launch.name}: raw")
    if total.known:
        agree(counted, result.observed_rate.mib, total, f"{launch.name}: observed")
    if result.raw.value + result.metadata.value > total.value + total.slack + result.raw.slack + result.metadata.slack:
        raise Refusal(f"{launch.name}: its transfers and metadata took longer than everything together")
    return result, moved


def _read_table(launch: Launch, c: Configuration) -> Result:
    operation, table = read_csv(launch.text(c.result), launch.name)
    expected = _OPERATIONS.get(c.kind, c.kind)
    if operation != expected:
        raise Refusal(f"{launch.name}: the CSV is of {operation[:30]!r}, not of {expected}")
    return table


def _total(result: Result) -> Printed:
    """Observed, without the emulated computing."""
    computed = result.compute.slack if result.compute.value else 0.0  # none was asked for, and none there was
    return Printed(result.observed.value - result.compute.value, result.observed.slack + computed)


def _particles_of_ranks(text: str, ranks: int, what: str) -> list[int]:
    found = dict(re.findall(r"Number of particles in rank (\d{1,9}) = (\d{1,15})\b", text))
    if sorted(found, key=int) != [str(rank) for rank in range(ranks)]:
        raise Refusal(f"{what}: it tells the particles of {len(found)} of {ranks} ranks")
    return [int(found[str(rank)]) for rank in range(ranks)]


def pattern_of(c: Configuration, own: str = "") -> Pattern:
    """In the words of the kernel ``particles``, as far as it has them."""
    memory, in_file = (c.values.get(key, "CONTIG")[0] for key in ("MEM_PATTERN", "FILE_PATTERN"))
    pattern: Pattern = {
        "kind": c.kind,
        "locality": memory + ("C" if in_file == "S" else in_file),
        "dimensions": c.get("NUM_DIMS"),
        "dims": c.dims,
        "steps": c.steps,
        "selection": c.selection,
        "particles": c.particles(),
        "file_per_process": c.chosen("FILE_PER_PROC"),
        "collective_metadata": c.chosen("COLLECTIVE_METADATA"),
        "alignment_bytes": c.get("ALIGN_LEN", 0) if c.chosen("ALIGN") else 0,
    }
    if c.chosen("COMPRESS"):
        pattern |= {"compress": "gzip", "compress_level": 9}
        pattern["chunk"] = [c.get(f"CHUNK_DIM_{n}") for n in range(1, c.get("NUM_DIMS") + 1)]
    if c.chosen("SUBFILING"):
        pattern["driver"] = "subfiling"
    if c.asynchronous:
        pattern["async"] = "explicit"
    if c.kind == "write_var_normal_dist":
        pattern["stdev"] = c.get("STDEV_DIM_1")
    return own_pattern(pattern, own)


def is_collective(c: Configuration) -> bool:
    """Compressed writes are it always."""
    return c.chosen("COLLECTIVE_DATA") or (c.chosen("COMPRESS") and c.operation == "write")


def measurement(job: Job, launches: Sequence[Launch], configuration: Configuration, *, own: str = "") -> Measurement:
    """One configuration, a repeat for each launch. Raises :class:`Refusal`.

    The sizes of a variable-size write are drawn anew each time: its times are scaled to those of the mean size.
    """
    if not launches:
        raise Refusal("h5bench: no launch")
    c = configuration
    nominal, file_bytes = c.logical_bytes(job.ranks), 0
    repeats = []
    for launch in launches:
        result, moved = _check_result(job, launch, c)
        file_bytes = _file_bytes(launch, c, moved)
        total, raw = (Printed(p.value * nominal / moved, p.slack) for p in (_total(result), result.raw))
        repeats.append(
            repeat(
                total=total,
                transfer=raw if job.ranks == 1 else None,
                cached=(launch.cached_before_drop, launch.cached_fraction) if c.kind == "read" else (None, None),
                what=launch.name,
            )
        )
    return measured(
        job,
        Announced(c.operation, pattern_of(c, own), is_collective(c)),
        repeats,
        logical_bytes=nominal,
        file_bytes=file_bytes,
    )


def _file_bytes(launch: Launch, c: Configuration, moved: int) -> int:
    """Size on disk; what was written uncompressed cannot be in a smaller file. Raises :class:`Refusal`."""
    least = 1 if c.chosen("COMPRESS") or c.kind == "append" else moved
    return size_on_disk(launch, rf"(?:rank_\d+_)?{re.escape(c.file)}(?:\.subfile.*)?", least, c.file)
