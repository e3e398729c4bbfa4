"""The original File Format Comparison (File-Format-Testing): its configuration, one CSV a format, milliseconds for an array.

Its reading times count the printing of the arrays, and the copy that it reads, made against caching, is in the cache: there is
no measurement of a read. netCDF4 opens its variables with the file, outside the times: there is none of its opening either.
Closing is not timed, so what is called *observed* here is the calls alone; the formats are not laid out alike (netCDF in
chunks of dimensions without a limit, HDF5 in one piece), so none is a baseline of another. It is serial, its data are other
ones each time, and it compares nothing: the arrays that it printed and its first files tell that they were there.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from iogauge.adapters.upstream import KEPT, Interface, Job, Launch, Pattern, Printed, printed, record, repeat
from iogauge.errors import Refusal
from iogauge.measurement import Measurement, Program, Repeat
from iogauge.validation import read_yaml, validate

FORMATS: dict[str, Interface] = {"HDF5": "hdf5", "netCDF4": "netcdf", "Zarr": "zarr"}
TRIALS = 5
COLUMNS = ("Dataset Creation Time", "Dataset Write Time", "Dataset Open Time", "Dataset Read Time")
_OPERATIONS = {"create": "Dataset Creation Time", "write": "Dataset Write Time", "open": "Dataset Open Time"}
_FLOAT_BYTES = 4

RUNNER = "runner.py"
FOLDER = "datasets_test"
_ENDINGS = {"HDF5": "hdf5", "netCDF4": "netc"}

#: netCDF's chunks of dimensions without a limit, by their number, in elements of each (4.10.1): at least one is written.
_NETCDF_CHUNK = {1: 1024, 2: 2048, 3: 161}

#: Run by its Python before it: what it needs is there, and which versions; as a JSON object, netCDF's HDF5 being another.
VERSIONS = """import json, sys
import h5py, matplotlib, netCDF4, numpy, pandas, yaml, zarr
if int(zarr.__version__.split(".")[0]) > 2:
    sys.exit(f"zarr {zarr.__version__}: File-Format-Testing needs zarr before 3")
print(json.dumps({"h5py": h5py.__version__, "h5py-hdf5": h5py.version.hdf5_version, "netCDF4": netCDF4.__version__,
    "netCDF4-hdf5": netCDF4.__hdf5libversion__, "netcdf-c": netCDF4.__netcdf4libversion__, "numpy": numpy.__version__,
    "python": sys.version.split()[0], "zarr": zarr.__version__}))
"""

_Positive = Annotated[int, Field(ge=1, le=1 << 40, strict=True)]


class Configuration(BaseModel):
    """Its YAML. ``CHUNK_SIZE`` and ``MIN_DATA_VALUE``, which are in its own samples, it does not look at."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(alias="FILE_NAME", pattern=r"^[^/\x00-\x1f]{1,200}$")]
    datasets: Annotated[_Positive, Field(alias="NUMBER_DATASETS")]
    elements: Annotated[tuple[_Positive, ...], Field(alias="NUMBER_ELEMENTS", min_length=1, max_length=3)]
    chunk_size: Annotated[Any, Field(alias="CHUNK_SIZE")] = None
    least_value: Annotated[Any, Field(alias="MIN_DATA_VALUE")] = None

    @property
    def logical_bytes(self) -> int:
        """Written to each format in a trial."""
        return _FLOAT_BYTES * math.prod(self.elements) * self.datasets

    @property
    def most_bytes(self) -> int:
        """On disk at one time: a file and its copy, in the largest format, netCDF."""
        chunk = _NETCDF_CHUNK[len(self.elements)]
        stored = _FLOAT_BYTES * math.prod(-(-length // chunk) * chunk for length in self.elements)
        return 2 * self.datasets * (stored + (16 << 10)) + (1 << 20)

    def result(self, name: str) -> str:
        """The CSV of a format."""
        return f"{FOLDER}/data/{name}_{self.datasets}_{list(self.elements)}.csv"

    @property
    def files(self) -> list[str]:
        """Of the formats whose file is one: names that are there before it begins keep what the first trial writes."""
        return [f"{FOLDER}/files/{self.name}.{ending}" for ending in _ENDINGS.values()]

    def text(self) -> str:
        """The YAML (which JSON is), for a configuration of ours."""
        return json.dumps(
            {"FILE_NAME": self.name, "NUMBER_DATASETS": self.datasets, "NUMBER_ELEMENTS": list(self.elements)}
        )


def read_configuration(path: Path) -> Configuration:
    """A site's own YAML. Raises :class:`iogauge.errors.InputError` with line, key and what is allowed."""
    document, locate = read_yaml(path)
    if isinstance(document, Mapping) and type(document.get("FILE_NAME")) is int:
        document = {**document, "FILE_NAME": str(document["FILE_NAME"])}
    return validate(Configuration, document, file=path, locate=locate)


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


def read_versions(launch: Launch) -> dict[str, str]:
    """Package to version, as :data:`VERSIONS` prints them. Raises :class:`Refusal`."""
    launch.check("Python", r"needs zarr before 3", _PYTHON_ERROR)
    try:
        found = json.loads(launch.stdout)
        return {str(name): str(version) for name, version in found.items()}
    except (ValueError, AttributeError) as error:
        raise Refusal(f"{launch.name}: no versions: {launch.stdout[:80]!r}") from error


_PYTHON_ERROR = r"^\w*(?:Error|Exception)\b: "


def check_arrays(stdout: str, configuration: Configuration, what: str) -> None:
    """Raises :class:`Refusal` unless all arrays were printed, and none of them is empty: it fills them with random numbers."""
    dimensions = len(configuration.elements)
    *arrays, rest = stdout.split("]" * dimensions + "\n")
    expected = len(FORMATS) * TRIALS * configuration.datasets
    if len(arrays) != expected or rest or not all(array.startswith("[" * dimensions) for array in arrays):
        raise Refusal(f"{what}: it read back {len(arrays)} arrays, {expected} were to be")
    if any("--" in array or re.search(r"[1-9]", array) is None for array in arrays):
        raise Refusal(f"{what}: an array that it read back was never written")


def measurements(
    job: Job, launches: Sequence[Launch], configuration: Configuration, *, versions: Mapping[str, str], own: str = ""
) -> list[Measurement]:
    """Create, write and open of each format, a repeat for each trial of each launch. Raises :class:`Refusal`."""
    if not launches:
        raise Refusal("File Format Comparison: no launch")
    job.check_ranks("File Format Comparison", 1)
    for launch in launches:
        launch.check("File Format Comparison", _PYTHON_ERROR)
        check_arrays(launch.stdout, configuration, launch.name)
    return [
        _measurement(job, launches, configuration, name, operation, versions, own)
        for name in FORMATS
        for operation in operations_of(name)
    ]


def operations_of(name: str) -> list[str]:
    """What can be told of a format."""
    return [operation for operation in _OPERATIONS if (name, operation) != ("netCDF4", "open")]


def pattern_of(configuration: Configuration, own: str = "") -> Pattern:
    """Of all formats."""
    pattern: Pattern = {
        "datasets": configuration.datasets,
        "elements": list(configuration.elements),
        "timed": "calls",
        "fsync": False,
    }
    return pattern | ({"own": own} if own else {})


def _measurement(
    job: Job,
    launches: Sequence[Launch],
    configuration: Configuration,
    name: str,
    operation: str,
    versions: Mapping[str, str],
    own: str,
) -> Measurement:
    moves = operation == "write"
    return record(
        job,
        Program(name="File-Format-Testing", version=None, verifies=False),
        [found for launch in launches for found in _repeats(launch, configuration, name, operation)],
        benchmark="fft",
        operation=operation,
        interface=FORMATS[name],
        collective=False,
        pattern=pattern_of(configuration, own),
        logical_bytes=configuration.logical_bytes if moves else 0,
        operations=0 if moves else configuration.datasets,
        file_bytes=_file_bytes(launches[-1], configuration, name),
        hdf5=versions.get(f"{'h5py' if name == 'HDF5' else name}-hdf5"),
        packages={package: version for package, version in versions.items() if not package.endswith("-hdf5")},
    )


def _repeats(launch: Launch, configuration: Configuration, name: str, operation: str) -> list[Repeat]:
    # The CSV has the mean of all arrays.
    scale = configuration.datasets / 1000
    found = []
    for time in read_csv(launch.text(configuration.result(name)), name, launch.name)[_OPERATIONS[operation]]:
        seconds = Printed(time.value * scale, time.slack * scale)
        found.append(repeat(total=seconds, transfer=seconds, what=f"{launch.name}: {name}: {operation}"))
    return found


def _file_bytes(launch: Launch, configuration: Configuration, name: str) -> int:
    """Of the first trial; 0: not known. Raises :class:`Refusal` when it is smaller than what was written."""
    if launch.files is None or name not in _ENDINGS:
        return 0
    size = launch.files.get(f"{FOLDER}/files/{configuration.name}.{_ENDINGS[name]}{KEPT}", 0)
    if size < configuration.logical_bytes:
        raise Refusal(
            f"{launch.name}: {name} left {size} bytes in its first file, {configuration.logical_bytes} were written"
        )
    return size
