"""h5bench's kind ``metadata``, an old fork of hdf5_iotest: one case, an INI, a CSV of 27 columns with one row.

It ignores unknown keys, runs on with whatever stands in memory for missing ones, and ends with exit code 0 when it cannot make
its files; a build without assertions does nothing and prints a row. Its rates are *one rank's* bytes over a rank's time. Times
have two decimals. Each phase is the slowest rank's, from creating or opening the file to closing it; nothing is synced or
verified, and it reads right after it has written.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from iogauge.adapters.h5bench.benchmark import (
    Announced,
    Benchmark,
    measured,
    own_pattern,
    plain_name,
    size_on_disk,
    texts_of,
)
from iogauge.adapters.upstream import Job, Launch, Pattern, Printed, agree, printed, repeat, whole
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement
from iogauge.validation import validate

_POSITIVE = Field(gt=0)


class Values(BaseModel):
    """Its INI, under its own names; it needs every one of them."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    version: Literal[0]
    steps: int = _POSITIVE
    arrays: int = _POSITIVE
    rows: int = Field(gt=1)
    columns: int = Field(gt=1)
    process_rows: int = Field(gt=0, alias="process-rows")
    process_columns: int = Field(gt=0, alias="process-columns")
    scaling: Literal["weak", "strong"]
    dataset_rank: Literal[2, 3, 4] = Field(alias="dataset-rank")
    slowest_dimension: Literal["step", "array"] = Field(alias="slowest-dimension")
    layout: Literal["contiguous", "chunked"]
    mpi_io: Literal["independent", "collective"] = Field(alias="mpi-io")
    csv_file: str = Field(alias="csv-file", pattern=r"^[A-Za-z0-9_.-]+$")


@dataclass(frozen=True)
class Metadata(Benchmark):
    """One case of the old hdf5_iotest."""

    file: str
    values: Values
    kind: str = "metadata"

    @property
    def program(self) -> str:
        """As h5bench installs it."""
        return "h5bench_hdf5_iotest"

    def words(self, configuration: str) -> list[str]:
        """The INI."""
        return [configuration]

    def text(self) -> str:
        """The INI."""
        values = self.values.model_dump(by_alias=True) | {"hdf5-file": self.file}
        return "[DEFAULT]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())

    @property
    def results(self) -> list[str]:
        """The CSV."""
        return [self.values.csv_file]

    @property
    def reads_what_it_wrote(self) -> bool:
        """In its second phase."""
        return True

    @property
    def ranks(self) -> int:
        """Of the process grid."""
        return self.values.process_rows * self.values.process_columns

    @property
    def logical_bytes(self) -> int:
        """Written, and read, by all ranks."""
        tiles = self.ranks if self.values.scaling == "weak" else 1
        return self.values.steps * self.values.arrays * self.values.rows * self.values.columns * tiles * 8

    def file_bytes(self, ranks: int) -> int:
        """Many small datasets have their headers."""
        objects = self.values.steps * self.values.arrays if self.values.dataset_rank == 2 else self.values.steps
        return int(self.logical_bytes * 1.1) + 4096 * objects + (1 << 20)

    def announced(self, own: str = "") -> list[Announced]:
        """Write and read."""
        v = self.values
        pattern: Pattern = {
            "kind": self.kind,
            "rank": v.dataset_rank,
            "slowest": v.slowest_dimension,
            "layout": v.layout,
            "scaling": v.scaling,
            "io": v.mpi_io,
            "steps": v.steps,
            "arrays": v.arrays,
            "rows": v.rows,
            "columns": v.columns,
            "process_rows": v.process_rows,
            "process_columns": v.process_columns,
        }
        pattern = own_pattern(pattern, own)
        return [Announced(operation, pattern, v.mpi_io == "collective") for operation in ("write", "read")]

    def measurements(self, job: Job, launches: Sequence[Launch], *, own: str = "") -> list[Measurement]:
        """Write and read."""
        job.check_ranks(self.program, self.ranks)
        rows = []
        for launch in launches:
            launch.check(self.program, r"Config file not found", r"Can't load", r"Failed to (?:create|open) file")
            if "Config loaded from" not in launch.stdout:
                raise Refusal(f"{launch.name}: it does not say that it loaded its configuration")
            table = launch.text(self.values.csv_file)
            rows.append(read_csv(table, self, launch.name))
            if figures(launch.stdout) != table.strip().split(",")[-_FIGURES:]:
                raise Refusal(f"{launch.name}: stdout and {self.values.csv_file} tell different results")
        found = []
        for series in self.announced(own):
            repeats = [
                repeat(
                    total=row.times[f"{series.operation}-phase"],
                    transfer=row.times[series.operation],
                    cached=(None, launch.cached_after) if series.operation == "read" else (None, None),
                    what=f"{launch.name}: {series.operation}",
                )
                for row, launch in zip(rows, launches, strict=True)
            ]
            found.append(
                measured(
                    job,
                    series,
                    repeats,
                    logical_bytes=self.logical_bytes,
                    file_bytes=max(self._check_file(r, at) for r, at in zip(rows, launches, strict=True)),
                )
            )
        return found

    def _check_file(self, row: Row, launch: Launch) -> int:
        """What the CSV says is on disk."""
        size = size_on_disk(launch, re.escape(self.file), self.logical_bytes, self.file)
        if launch.files is not None and size != row.file_bytes:
            raise Refusal(f"{launch.name}: {self.file} has {size} bytes, the CSV says {row.file_bytes}")
        return row.file_bytes


def check(file: str, values: Mapping[str, Any], ranks: int, where: str) -> Metadata:
    """Raises :class:`InputError`: the program itself would go on with what it makes of a mistake."""
    texts = texts_of(values, where)
    numbers = {key: int(text) if re.fullmatch(r"-?\d{1,15}", text) else text for key, text in texts.items()}
    try:
        found = Metadata(plain_name(file, where), validate(Values, numbers))
    except InputError as error:
        raise InputError(error.message, file=where, key=error.key) from error
    v = found.values
    if found.ranks != ranks:
        raise InputError(
            f"the process grid {v.process_rows} x {v.process_columns} is not the job's {ranks} ranks",
            file=where,
            key="process-rows",
        )
    if v.scaling == "strong" and (v.rows % v.process_rows or v.columns % v.process_columns):
        raise InputError(
            f"{v.rows} x {v.columns} cannot be divided by the process grid {v.process_rows} x {v.process_columns}",
            file=where,
            key="rows",
        )
    if v.csv_file == file:
        raise InputError("is the HDF5 file", file=where, key="csv-file")
    return found


COLUMNS = (
    "steps,arrays,rows,cols,scaling,proc-rows,proc-cols,slowdim,rank,layout,mpi-io,wall [s],fsize [B],write-phase-min [s],"
    "write-phase-max [s],creat-min [s],creat-max [s],write-min [s],write-max [s],write-rate-min [MiB/s],"
    "write-rate-max [MiB/s],read-phase-min [s],read-phase-max [s],read-min [s],read-max [s],read-rate-min [MiB/s],"
    "read-rate-max [MiB/s]"
)
_FIGURES = 16  # measured, at the end of the row
_TIMES = ("write-phase", "creat", "write", "read-phase", "read")


@dataclass(frozen=True)
class Row:
    """The CSV's row, all of whose fields were looked at; ``times``: the slowest rank's."""

    file_bytes: int
    times: Mapping[str, Printed]


def read_csv(text: str, asked: Metadata, what: str = "h5bench") -> Row:
    """The one row. Raises :class:`Refusal` for anything but the case that was asked for."""
    head, _, body = text.partition("\n")
    if head.rstrip("\r") != COLUMNS:
        raise Refusal(f"{what}: the CSV does not begin with the header of h5bench's metadata")
    if not body.endswith("\n") or body.count("\n") != 1:
        raise Refusal(f"{what}: the CSV has not one whole row")
    names = COLUMNS.split(",")
    cells = next(csv.reader(io.StringIO(body)), [])
    if len(cells) != len(names):
        raise Refusal(f"{what}: {len(cells)} columns, {len(names)} are expected")
    row = dict(zip(names, cells, strict=True))
    v = asked.values
    expected = (
        v.steps, v.arrays, v.rows, v.columns, v.scaling, v.process_rows, v.process_columns, v.slowest_dimension,
        v.dataset_rank, v.layout, v.mpi_io,
    )  # fmt: skip
    for name, value in zip(names, expected, strict=False):
        if row[name] != str(value):
            raise Refusal(f"{what}: {name} is {row[name][:20]!r}, {value} was asked for")
    times = {name: _slowest(row, name, what) for name in _TIMES}
    wall = printed(row["wall [s]"], f"{what}: wall")
    if times["write-phase"].value + times["read-phase"].value > wall.value * 1.01 + 0.03:
        raise Refusal(f"{what}: the phases are longer than everything together")
    for operation in ("write", "read"):
        _check_rates(row, operation, asked, what)
    return Row(whole(row["fsize [B]"], f"{what}: fsize", 1), times)


def figures(stdout: str) -> list[str]:
    """What it measured, as stdout tells it, in the order of the CSV."""
    return re.findall(r"^(?:[A-Z][a-z]+ [a-z]+ \[[^]]+\]:)?\t+[_^]?(\S+)$", stdout, re.MULTILINE)[-_FIGURES:]


def _slowest(row: Mapping[str, str], name: str, what: str) -> Printed:
    least, most = (printed(row[f"{name}-{end} [s]"], f"{what}: {name}-{end}") for end in ("min", "max"))
    if least.value > most.value:
        raise Refusal(f"{what}: {name}-min is above {name}-max")
    return most


def _check_rates(row: Mapping[str, str], operation: str, asked: Metadata, what: str) -> None:
    """One rank's bytes over the slowest and the fastest rank's time."""
    for rate, time in (("min", "max"), ("max", "min")):
        agree(
            asked.logical_bytes // asked.ranks,
            printed(row[f"{operation}-rate-{rate} [MiB/s]"], f"{what}: {operation}-rate-{rate}"),
            printed(row[f"{operation}-{time} [s]"], f"{what}: {operation}-{time}"),
            f"{what}: {operation}-rate-{rate}",
        )
