"""The original File Format Comparison (File-Format-Testing): one CSV a format, milliseconds for an array, mean of all arrays.

Its reading times count the printing of the arrays, and the copy that it reads, made against caching, is in the cache: there is
no measurement of a read. Closing is not timed, so what is called *observed* here is the calls alone; the formats are not laid
out alike (netCDF in chunks, HDF5 in one piece), so none is a baseline of another. It is serial and verifies nothing.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence

from iogauge.adapters.upstream import Interface, Job, Launch, Printed, printed, record, repeat
from iogauge.errors import Refusal
from iogauge.measurement import Measurement, Program

FORMATS: dict[str, Interface] = {"HDF5": "hdf5", "netCDF4": "netcdf", "Zarr": "zarr"}
TRIALS = 5
COLUMNS = ("Dataset Creation Time", "Dataset Write Time", "Dataset Open Time", "Dataset Read Time")
_OPERATIONS = {"create": "Dataset Creation Time", "write": "Dataset Write Time", "open": "Dataset Open Time"}
_FLOAT_BYTES = 4


def read_csv(text: str, name: str, what: str = "File Format Comparison") -> dict[str, list[Printed]]:
    """Column to the milliseconds of all trials. Raises :class:`Refusal` for what is not complete and consistent."""
    if not text.endswith("\n"):
        raise Refusal(f"{what}: the CSV of {name} is empty, or its last line is cut")
    try:
        rows = list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as error:
        raise Refusal(f"{what}: no CSV: {error}") from error
    if not rows or rows[0] != [name, *COLUMNS]:
        raise Refusal(f"{what}: the CSV does not begin with {name}'s header")
    labels = [row[0] if row else "" for row in rows[1:]]
    expected = [f"Trial {n}" for n in range(1, TRIALS + 1)]
    if labels not in (expected, [*expected, "Average"]):
        raise Refusal(f"{what}: the rows of {name} are not those of {TRIALS} trials")
    found: dict[str, list[Printed]] = {column: [] for column in COLUMNS}
    for row in rows[1:]:
        if len(row) != len(COLUMNS) + 1:
            raise Refusal(f"{what}: {row[0]} of {name} has not {len(COLUMNS)} times")
        for column, cell in zip(COLUMNS, row[1:], strict=True):
            found[column].append(printed(cell, f"{what}: {name}: {row[0]}: {column}"))
    for column, times in found.items():
        trials, mean = times[:TRIALS], times[TRIALS:]
        if any(time.value <= 0 for time in trials):
            raise Refusal(f"{what}: {name}: {column} of 0")
        if mean and not math.isclose(mean[0].value, sum(t.value for t in trials) / TRIALS, rel_tol=1e-6):
            raise Refusal(f"{what}: {name}: the average of {column} is not that of the trials")
        del times[TRIALS:]
    return found


def measurements(
    job: Job, launch: Launch, results: Mapping[str, str], *, datasets: int, elements: Sequence[int]
) -> list[Measurement]:
    """Create, write and open of each format in ``results`` (format to its CSV's name), a repeat for each trial.

    Raises :class:`Refusal`.
    """
    launch.check("File Format Comparison", r"^Traceback", r"\bError: ")
    job.check_ranks("File Format Comparison", 1)
    found = []
    for name, file in results.items():
        times = read_csv(launch.text(file), name, launch.name)
        for operation, column in _OPERATIONS.items():
            repeats = []
            for time in times[column]:
                seconds = Printed(time.value * datasets / 1000, time.slack * datasets / 1000)
                repeats.append(repeat(total=seconds, transfer=seconds, what=f"{launch.name}: {name}: {operation}"))
            found.append(
                record(
                    job,
                    Program(name="File-Format-Testing", version=None, verifies=False),
                    repeats,
                    benchmark="fft",
                    operation=operation,
                    interface=FORMATS[name],
                    collective=False,
                    pattern={"datasets": datasets, "elements": list(elements), "timed": "calls"},
                    logical_bytes=_FLOAT_BYTES * math.prod(elements) * datasets if operation == "write" else 0,
                    operations=0 if operation == "write" else datasets,
                    file_bytes=0,
                    hdf5=None,
                )
            )
    return found
