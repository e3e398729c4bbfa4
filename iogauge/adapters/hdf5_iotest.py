"""hdf5_iotest: its INI, the cases that follow from it, and its CSV.

It ignores misspelt keys and starts its full product instead; a build without assertions does nothing and writes rows all
the same; ``restart`` leaves cases out, ``split`` writes rows that cannot be told apart. So an INI is read strictly before
anything runs, and every case that follows from it has to have exactly one row, with its sizes and a file of a believable size.

Of each case it times the phases, from creating or opening the file to closing it, and in them the H5Dwrite or H5Dread calls;
the slowest rank's times are taken. Nothing is synced. It reads right after it has written: what is in the page cache then is
looked at after the launch.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iogauge.adapters.upstream import Job, Launch, Printed, printed, record, repeat, whole
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement, Program, Repeat
from iogauge.validation import validate

_POSITIVE = Field(gt=0)

HDF5_META_BLOCK_BYTES = 2048


class Configuration(BaseModel):
    """What an INI says, under its own names. Keys that its loops overwrite are allowed: they have no effect."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    version: Literal[0]
    steps: int = _POSITIVE
    arrays: int = _POSITIVE
    rows: int = Field(gt=1)
    columns: int = Field(gt=1)
    process_rows: int = Field(gt=0, alias="process-rows")
    process_columns: int = Field(gt=0, alias="process-columns")
    scaling: Literal["weak", "strong"]
    alignment_increment: int = Field(gt=0, alias="alignment-increment")
    alignment_threshold: int = Field(ge=0, alias="alignment-threshold")
    meta_block_size: int = Field(gt=0, alias="meta-block-size")
    single_process: Literal["posix", "core", "mpi-io-uni"] = Field(alias="single-process")
    hdf5_file: str = Field(alias="hdf5-file", pattern=r"^[A-Za-z0-9_.-]+$")
    csv_file: str = Field(alias="csv-file", pattern=r"^[A-Za-z0-9_.-]+$")
    one_case: int = Field(default=0, ge=0, alias="one-case")
    gzip: int | None = Field(default=None, ge=0, le=9)
    asynchronous: Literal[0, 1] = Field(default=0, alias="async")
    restart: Literal[0] = 0
    split: Literal[0] = 0
    dataset_rank: int | None = Field(default=None, alias="dataset-rank")
    slowest_dimension: str | None = Field(default=None, alias="slowest-dimension")
    layout: str | None = None
    fill_values: str | None = Field(default=None, alias="fill-values")
    mpi_io: str | None = Field(default=None, alias="mpi-io")
    libver_bound_low: str | None = Field(default=None, alias="libver-bound-low")
    libver_bound_high: Literal["v18", "v110", "v112", "v114", "latest"] | None = Field(
        default=None, alias="libver-bound-high"
    )

    @property
    def ranks(self) -> int:
        """Of the process grid."""
        return self.process_rows * self.process_columns

    @property
    def logical_bytes(self) -> int:
        """Written, and read, by all ranks in each case."""
        tiles = self.ranks if self.scaling == "weak" else 1
        return self.steps * self.arrays * self.rows * self.columns * tiles * 8

    def text(self) -> str:
        """The INI."""
        values = self.model_dump(by_alias=True, exclude_none=True, exclude={"restart", "split"})
        for key in ("one-case", "async"):  # named at all, async is complained of by an older HDF5
            if not values[key]:
                del values[key]
        return "[DEFAULT]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())


class Case(BaseModel):
    """One of the product, under the names of the CSV's columns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rank: int
    slowdim: str
    layout: str
    fill: str
    alignment: int
    threshold: int
    meta_block: int
    fmt: str
    io: str

    def __str__(self) -> str:
        aligned = f" align {self.alignment}:{self.threshold}" if self.alignment != 1 else ""
        words = f"rank {self.rank} {self.slowdim} {self.layout} fill={self.fill}"
        return f"{words}{aligned} meta {self.meta_block} {self.fmt} {self.io}"


def cases_of(configuration: Configuration) -> list[Case]:
    """All cases in the program's order, or the one of ``one-case``."""
    alignments = list(dict.fromkeys([(1, 0), (configuration.alignment_increment, configuration.alignment_threshold)]))
    blocks = list(dict.fromkeys([HDF5_META_BLOCK_BYTES, configuration.meta_block_size]))
    modes = ["independent", "collective"] if configuration.ranks > 1 else [configuration.single_process]
    product = [
        Case(
            rank=rank,
            slowdim=slowest,
            layout=layout,
            fill=fill,
            alignment=alignment[0],
            threshold=alignment[1],
            meta_block=block,
            fmt=fmt,
            io=mode,
        )
        for rank, slowest, layout, fill, alignment, block, fmt, mode in itertools.product(
            (2, 3, 4), ("step", "array"), ("contiguous", "chunked"), ("true", "false"), alignments, blocks,
            ("earliest", "latest"), modes,
        )
    ]  # fmt: skip
    return product[configuration.one_case - 1 :][:1] if configuration.one_case else product


def read_ini(text: str, ranks: int, file: Path | str = "INI") -> Configuration:
    """A site's own INI. Raises :class:`InputError` with line, key and what is allowed: the program itself would go on."""
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        content = re.split(r"\s;", line, maxsplit=1)[0]
        if not content.strip() or content[0] in ";#":
            continue
        if heading := re.fullmatch(r"\[([^]]*)\]\s*", content):
            section = heading[1]
            continue
        if content[0].isspace():
            raise InputError(
                "the line begins with a blank: it is taken to go on with the one before", file=file, line=number
            )
        match = re.fullmatch(r"([^=:]+?)\s*[=:]\s*(.*?)\s*", content)
        if match is None:
            raise InputError(f"{content!r}: 'key = value' is expected", file=file, line=number)
        key, value = match.groups()
        if key in values:
            raise InputError(f"stands in line {lines[key]} already", file=file, line=number, key=key)
        if key == "version" and section != "DEFAULT":
            raise InputError("has to stand below [DEFAULT]", file=file, line=number, key=key)
        if key in ("delay", "szip"):
            raise InputError("is not understood here; leave it out", file=file, line=number, key=key)
        if key in ("restart", "split") and value != "0":
            why = "leaves cases out" if key == "restart" else "writes rows that cannot be told apart"
            raise InputError(f"{why}; allowed: 0", file=file, line=number, key=key)
        values[key], lines[key] = int(value) if re.fullmatch(r"-?\d{1,15}", value) else value, number

    def locate(location: tuple[str | int, ...]) -> int | None:
        return lines.get(str(location[0])) if location else None

    source = Path(file)
    configuration = validate(Configuration, values, file=source, locate=locate)
    for key, wrong in _contradictions(configuration, ranks):
        raise InputError(wrong, file=source, line=lines.get(key), key=key)
    return configuration


def _contradictions(configuration: Configuration, ranks: int) -> Iterator[tuple[str, str]]:
    grid = f"{configuration.process_rows} x {configuration.process_columns}"
    if configuration.ranks != ranks:
        yield "process-rows", f"the process grid {grid} is not the job's {ranks} ranks"
    if configuration.scaling == "strong" and (
        configuration.rows % configuration.process_rows or configuration.columns % configuration.process_columns
    ):
        yield "rows", f"{configuration.rows} x {configuration.columns} cannot be divided by the process grid {grid}"
    if configuration.one_case and not cases_of(configuration):
        count = len(cases_of(configuration.model_copy(update={"one_case": 0})))
        yield "one-case", f"{configuration.one_case} is none of the {count} cases"
    if configuration.hdf5_file == configuration.csv_file:
        yield "csv-file", "is the HDF5 file"


COLUMNS = (
    "steps,arrays,rows,cols,scaling,proc-rows,proc-cols,slowdim,rank,version,alignment-increment,alignment-threshold,"
    "meta-block-size,layout,fill,fmt,io, async, wall [s],fsize [B],write-phase-min [s],write-phase-max [s],creat-min [s],"
    "creat-max [s],write-min [s],write-max [s],read-phase-min [s],read-phase-max [s],read-min [s],read-max [s]"
)


def configuration_of(text: str) -> Configuration:
    """The configuration that a CSV is of, from its rows: all cases of a product, or one. It does not tell of compression.

    Raises :class:`Refusal`.
    """
    rows = _cells(text, "hdf5_iotest")
    if not rows:
        raise Refusal("hdf5_iotest: the CSV has no row")
    first = rows[0]
    whole_numbers = {
        "steps": "steps", "arrays": "arrays", "rows": "rows", "columns": "cols", "process-rows": "proc-rows",
        "process-columns": "proc-cols",
    }  # fmt: skip
    values: dict[str, Any] = {key: whole(first[name], f"hdf5_iotest: {name}") for key, name in whole_numbers.items()}
    aligned = {(row["alignment-increment"], row["alignment-threshold"]) for row in rows} - {("1", "0")}
    blocks = {row["meta-block-size"] for row in rows} - {str(HDF5_META_BLOCK_BYTES)}
    alignment, threshold = next(iter(aligned), ("1", "0"))
    single = first["io"] if first["io"] not in ("independent", "collective") else "posix"
    values |= {
        "version": 0,
        "scaling": first["scaling"],
        "alignment-increment": whole(alignment, "hdf5_iotest: alignment-increment"),
        "alignment-threshold": whole(threshold, "hdf5_iotest: alignment-threshold"),
        "meta-block-size": whole(next(iter(blocks), str(HDF5_META_BLOCK_BYTES)), "hdf5_iotest: meta-block-size"),
        "single-process": single,
        "async": 1 if first[" async"] == "true" else 0,
        "hdf5-file": "tiles.h5",
        "csv-file": "tiles.csv",
    }
    try:
        found = Configuration.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        raise Refusal(f"hdf5_iotest: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
    if len(rows) > 1:
        return found
    case = _row(first, 2, found, "hdf5_iotest").case
    if case not in (product := cases_of(found)):
        raise Refusal(f"hdf5_iotest: its only row is of {case}, which is no case of it")
    return found.model_copy(update={"one_case": product.index(case) + 1})


def ranks_of(text: str) -> int:
    """Of the process grid in a CSV. Raises :class:`Refusal`."""
    return configuration_of(text).ranks


_TIMES = ("write-phase", "creat", "write", "read-phase", "read")


class Row:
    """A row of the CSV, all of whose fields were looked at."""

    def __init__(self, case: Case, hdf5: str, file_bytes: int, times: Mapping[str, Printed]) -> None:
        self.case = case
        self.hdf5 = hdf5
        self.file_bytes = file_bytes
        self.times = times


def read_csv(text: str, configuration: Configuration, what: str = "hdf5_iotest") -> list[Row]:
    """One row for every case of the configuration, in its order. Raises :class:`Refusal` for anything else."""
    rows = [_row(cells, number, configuration, what) for number, cells in enumerate(_cells(text, what), start=2)]
    by_case: dict[Case, Row] = {}
    for row in rows:
        if row.case in by_case:
            raise Refusal(f"{what}: two rows of the case {row.case}")
        by_case[row.case] = row
    expected = cases_of(configuration)
    missing = [case for case in expected if case not in by_case]
    if missing:
        raise Refusal(f"{what}: {len(missing)} of {len(expected)} cases have no row, first {missing[0]}")
    if len(by_case) > len(expected):
        raise Refusal(f"{what}: {len(by_case)} rows, where the INI asks for {len(expected)} cases: is a key misspelt?")
    if len({row.hdf5 for row in rows}) > 1:
        raise Refusal(f"{what}: rows of different HDF5 versions")
    return [by_case[case] for case in expected]


def _cells(text: str, what: str) -> list[dict[str, str]]:
    """The CSV's rows by its columns. Raises :class:`Refusal`."""
    head, _, body = text.partition("\n")
    if head.rstrip("\r") != COLUMNS:
        raise Refusal(f"{what}: the CSV does not begin with hdf5_iotest's header")
    if body and not body.endswith("\n"):
        raise Refusal(f"{what}: the CSV's last line is cut")
    try:
        lines = list(csv.reader(io.StringIO(body), strict=True))
    except csv.Error as error:
        raise Refusal(f"{what}: no CSV: {error}") from error
    names = COLUMNS.split(",")
    for number, line in enumerate(lines, start=2):
        if len(line) != len(names):
            raise Refusal(f"{what}: line {number}: not {len(names)} columns")
    return [dict(zip(names, line, strict=True)) for line in lines]


def _row(cells: Mapping[str, str], number: int, configuration: Configuration, what: str) -> Row:
    where = f"{what}: line {number}"
    asked = {
        "steps": configuration.steps,
        "arrays": configuration.arrays,
        "rows": configuration.rows,
        "cols": configuration.columns,
        "scaling": configuration.scaling,
        "proc-rows": configuration.process_rows,
        "proc-cols": configuration.process_columns,
        " async": "true" if configuration.asynchronous else "false",
    }
    for name, value in asked.items():
        if cells[name] != str(value):
            raise Refusal(f"{where}: {name.strip()} is {cells[name][:20]!r}, {value} was asked for")
    if re.fullmatch(r"[1-9]\d?\.\d{1,3}\.\d{1,3}", cells["version"], re.ASCII) is None:
        raise Refusal(
            f"{where}: HDF5 version {cells['version'][:20]!r}: built without assertions, which hold its calls?"
        )
    case = Case(
        rank=whole(cells["rank"], f"{where}: rank"),
        slowdim=cells["slowdim"],
        layout=cells["layout"],
        fill=cells["fill"],
        alignment=whole(cells["alignment-increment"], f"{where}: alignment-increment"),
        threshold=whole(cells["alignment-threshold"], f"{where}: alignment-threshold"),
        meta_block=whole(cells["meta-block-size"], f"{where}: meta-block-size"),
        fmt=cells["fmt"],
        io=cells["io"],
    )
    file_bytes = whole(cells["fsize [B]"], f"{where}: fsize", 1)
    _check_size(file_bytes, case, configuration, where)
    times = {}
    for name in _TIMES:
        least = printed(cells[f"{name}-min [s]"], f"{where}: {name}-min")
        most = printed(cells[f"{name}-max [s]"], f"{where}: {name}-max")
        if least.value > most.value:
            raise Refusal(f"{where}: {name}-min is above {name}-max")
        times[name] = most
    wall = printed(cells[" wall [s]"], f"{where}: wall")
    if max(times["write-phase"].value, times["read-phase"].value) > wall.value * 1.01 + 0.01:
        raise Refusal(f"{where}: a phase is longer than the whole case")
    return Row(case, cells["version"], file_bytes, times)


def _check_size(file_bytes: int, case: Case, configuration: Configuration, where: str) -> None:
    compressed = configuration.gzip is not None and case.layout == "chunked" and case.io != "independent"
    objects = configuration.steps * configuration.arrays
    least = 1 if compressed else configuration.logical_bytes
    most = 2 * configuration.logical_bytes + objects * (case.alignment + 2 * case.meta_block) + (256 << 20)
    if not least <= file_bytes <= most:
        raise Refusal(
            f"{where}: a file of {file_bytes} bytes, where {configuration.logical_bytes} bytes were to be written: "
            f"was it really written? A build without assertions does nothing"
        )


def measurements(
    job: Job, launches: Sequence[Launch], configuration: Configuration, *, own: str = ""
) -> list[Measurement]:
    """Write and read of each case, a repeat for each launch. Raises :class:`Refusal`."""
    if not launches:
        raise Refusal("hdf5_iotest: no launch")
    job.check_ranks("hdf5_iotest", configuration.ranks)
    runs = []
    for launch in launches:
        # With async = 0 an older HDF5 says the last one too.
        asynchronous = [r"ASYNC only supported"] if configuration.asynchronous else []
        launch.check("hdf5_iotest", r"Can't load", r"Data verification enabled", *asynchronous)
        runs.append(read_csv(launch.text(configuration.csv_file), configuration, launch.name))
        _check_file(launch, configuration, runs[-1][-1])
    found = []
    for rows in zip(*runs, strict=True):
        for operation in ("write", "read"):
            repeats = [
                _repeat(row, operation, launch.cached_after, f"{launch.name}: {row.case}")
                for row, launch in zip(rows, launches, strict=True)
            ]
            found.append(_record(job, configuration, rows[0], operation, repeats, own))
    return found


def _check_file(launch: Launch, configuration: Configuration, last: Row) -> None:
    """The file of the last case stays: its size on disk is what the CSV says."""
    if launch.files is None:
        return
    size = launch.files.get(configuration.hdf5_file)
    if size is None:
        raise Refusal(f"{launch.name}: {configuration.hdf5_file} is not there")
    if size != last.file_bytes:
        raise Refusal(f"{launch.name}: {configuration.hdf5_file} has {size} bytes, the CSV says {last.file_bytes}")


def _repeat(row: Row, operation: str, cached_after: float | None, what: str) -> Repeat:
    return repeat(
        total=row.times[f"{operation}-phase"],
        transfer=row.times[operation],
        cached=(None, cached_after) if operation == "read" else (None, None),
        what=f"{what}: {operation}",
    )


def pattern_of(
    case: Case, configuration: Configuration, own: str = ""
) -> dict[str, str | bool | int | float | list[int]]:
    """In the words of the kernel ``tiles``."""
    pattern: dict[str, str | bool | int | float | list[int]] = {
        "rank": case.rank,
        "slowest": case.slowdim,
        "layout": case.layout,
        "scaling": configuration.scaling,
        "io": case.io,
        "fill": "value" if case.fill == "true" else "never",
        "libver": case.fmt,
        "alignment_bytes": 0 if case.alignment == 1 else case.alignment,
        "alignment_threshold_bytes": case.threshold,
        "meta_block_bytes": 0 if case.meta_block == HDF5_META_BLOCK_BYTES else case.meta_block,
        "steps": configuration.steps,
        "arrays": configuration.arrays,
        "rows": configuration.rows,
        "columns": configuration.columns,
        "process_rows": configuration.process_rows,
        "process_columns": configuration.process_columns,
    }
    if configuration.gzip is not None and case.layout == "chunked" and case.io != "independent":
        pattern |= {"compress": "gzip", "compress_level": configuration.gzip}
    if configuration.asynchronous:
        pattern["async"] = "explicit"
    if own:
        pattern["own"] = own
    return pattern


def _record(
    job: Job, configuration: Configuration, row: Row, operation: str, repeats: Sequence[Repeat], own: str
) -> Measurement:
    return record(
        job,
        Program(name="hdf5_iotest", version=None, verifies=False),
        repeats,
        benchmark="hdf5_iotest",
        operation=operation,
        interface="hdf5",
        collective=row.case.io == "collective",
        pattern=pattern_of(row.case, configuration, own),
        logical_bytes=configuration.logical_bytes,
        file_bytes=row.file_bytes,
        hdf5=row.hdf5,
    )


def grid_of(ranks: int) -> tuple[int, int]:
    """The process grid next to a square, rows first."""
    columns = next(n for n in range(math.isqrt(ranks), 0, -1) if ranks % n == 0)
    return ranks // columns, columns
