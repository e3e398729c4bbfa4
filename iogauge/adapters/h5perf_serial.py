"""h5perf_serial, HDF5's own serial benchmark: its report, read line by line, and refused when a line is not as it should be.

What it prints as MB/s are MiB/s (2^20 bytes). It ends with exit code 0 and prints rates also after a write that failed, so
its stderr is read as well: it is silent when all went well. It verifies nothing of what it reads back.

It prints rates alone, of all iterations together; one iteration a launch makes seconds of them again: bytes over rate.
*Observed* are its open-close rates, the others go from the dataset's creation or opening to its closing, with a pass over
the transfer buffer. It syncs nothing, and reads what it has just written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from iogauge.adapters.lines import Lines
from iogauge.adapters.upstream import Job, Launch, Pattern, Printed, record, repeat
from iogauge.errors import Refusal
from iogauge.measurement import Measurement, Program, Repeat

Interface = Literal["posix", "hdf5"]

_DRIVERS = ("sec2", "stdio", "core", "split", "multi", "family", "direct")

#: What both programs say of a failure; a network library's "failed" is none of theirs.
FAILED = (r"must be a multiple", r"^(?:HDF5 |MPI |MPI_File|POSIX |malloc ).*failed")

#: A printed rate has two decimals; no order or product is known better than that.
_PRINTED = 0.005


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Throughput(_Value):
    """MiB/s over the iterations; ``average`` is all bytes over all seconds, not the mean of the rates."""

    maximum: float
    average: float
    minimum: float


class Result(_Value):
    """One interface. ``write`` and ``read`` go from the dataset's creation or opening to its closing, and count the filling of
    the buffer; the ``open_close`` ones go from the file's creation or opening to its closing."""

    interface: Interface
    write: Throughput
    write_open_close: Throughput
    read: Throughput | None
    read_open_close: Throughput | None


class Case(_Value):
    """What is run. Dimensions are bytes, slowest first; ``order`` names them from 1, the first is traversed first."""

    dataset: tuple[int, ...]
    transfer: tuple[int, ...]
    order: tuple[int, ...]
    chunk: tuple[int, ...] = ()
    extendible: bool = False
    driver: str | None = "sec2"

    @property
    def logical_bytes(self) -> int:
        """Bytes of the dataset, written and read once an iteration."""
        return math.prod(self.dataset)

    def words(self, iterations: int) -> list[str]:
        """The arguments that ask for this."""

        def listed(numbers: Sequence[int]) -> str:
            return ",".join(map(str, numbers))

        sizes = ["-e", listed(self.dataset), "-x", listed(self.transfer), "-r", listed(self.order)]
        chunks = ["-c", listed(self.chunk)] if self.chunk else []
        chosen = ["-i", str(iterations), "-v", str(self.driver)]
        return ["-A", "posix,hdf5", *sizes, *chosen, *chunks, *["-t"] * self.extendible]

    def pattern(self) -> Pattern:
        """In the words of the kernel ``segments``."""
        return {
            "layout": "contiguous",
            "file_per_process": True,
            "datasets": 1,
            "files": 1,
            "dims": list(self.dataset),
            "transfer_dims": list(self.transfer),
            "order": list(self.order),
            "chunk_bytes": math.prod(self.chunk) if self.chunk else 0,
            "driver": str(self.driver),
            "extendible": self.extendible,
            "grow": self.extendible,
            "fsync": False,
        }


class Report(Case):
    """One run."""

    version: str
    iterations: int
    results: tuple[Result, ...]

    @property
    def case(self) -> Case:
        """What it says that it ran."""
        return Case.model_validate(self.model_dump(include=set(Case.model_fields)))

    def result(self, interface: str) -> Result:
        """The result of an interface. Raises :class:`Refusal` when it was not run."""
        for result in self.results:
            if result.interface == interface:
                return result
        raise Refusal(f"h5perf_serial: no result for {interface}")


def read_report(output: Path | str, errors: Path | str = "") -> Report:
    """The report from stdout and stderr, each a file (``Path``) or a text (``str``).

    Raises :class:`Refusal`, with the line, for whatever is not a complete and consistent report: a word on stderr, a missing,
    changed or additional line, a rate of 0, a maximum below the average, sizes that do not belong together.
    """
    said = [line for line in _text(errors).splitlines() if line.strip()]
    if said:
        raise Refusal(f"h5perf_serial: its stderr says: {said[0].strip()}")
    lines = Lines(_text(output), "h5perf_serial")
    report = _report(lines)
    lines.end()
    return report


def _text(source: Path | str) -> str:
    if isinstance(source, str):
        return source
    try:
        return source.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Refusal(f"h5perf_serial: {source.name} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"h5perf_serial: {source.name}: {error}") from error


UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def _sizes(lines: Lines, name: str) -> tuple[int, ...]:
    (text,) = lines.take(rf"{name}=((?:\d+(?:KB|MB|GB)?(?: |$))+)", f"{name}=")
    found = [re.fullmatch(r"(\d+)(\D*)", word) for word in text.split()]
    sizes = tuple(int(match[1]) * UNITS[match[2]] for match in found if match)
    if 0 in sizes:
        raise lines.refuse(f"{name} has a 0")
    return sizes


def _report(lines: Lines) -> Report:
    (version,) = lines.take(r"HDF5 Library: Version (\d+\.\d+\.\d+\S*)", "HDF5 Library: Version")
    lines.take("==== Parameters ====", "==== Parameters ====")
    (names,) = lines.take(r"IO API=((?:posix|hdf5|posix hdf5))", "IO API=")
    (iterations,) = lines.take(r"Number of iterations=([1-9]\d*)", "Number of iterations=")
    dataset = _sizes(lines, "Dataset size")
    transfer = _sizes(lines, "Transfer buffer size")
    lines.take("Page Aggregation Disabled", "Page Aggregation Disabled")
    order = _sizes(lines, "Dimension access order")
    chunk: tuple[int, ...] = ()
    extendible = False
    driver = None
    if "hdf5" in names:
        (storage,) = lines.take(r"HDF5 data storage method=(Contiguous|Chunked)", "HDF5 data storage method=")
        if storage == "Chunked":
            chunk = _sizes(lines, "HDF5 chunk size")
            extendible = lines.take(r"HDF5 dataset dimensions=(Extendable|Fixed)", "HDF5 dataset dimensions=") == (
                "Extendable",
            )
        (driver,) = lines.take(rf"HDF5 file driver=({'|'.join(_DRIVERS)})", "HDF5 file driver=")
    lines.take(r"Env HDF5_PREFIX=.+", "Env HDF5_PREFIX=")
    lines.take("==== End of Parameters ====", "==== End of Parameters ====")
    _check_dimensions(lines, dataset, transfer, order, chunk)
    (buffer,) = lines.take(r"Transfer Buffer Size \(bytes\): (\d+)", "Transfer Buffer Size (bytes):")
    if int(buffer) != math.prod(transfer):
        raise lines.refuse(f"a transfer buffer of {buffer} bytes, where its dimensions make {math.prod(transfer)}")
    (size,) = lines.take(r"File Size\(MB\): (\d+\.\d\d)", "File Size(MB):")
    if abs(float(size) - math.prod(dataset) / 2**20) > _PRINTED * 1.001:
        raise lines.refuse(f"a file of {size} MiB, where the dataset has {math.prod(dataset)} bytes")
    results = tuple(_result(lines, name, int(iterations)) for name in names.split())
    if len({result.read is None for result in results}) > 1:
        raise lines.refuse("one interface was read, the other was not")
    return Report(
        version=version,
        iterations=int(iterations),
        dataset=dataset,
        transfer=transfer,
        order=order,
        chunk=chunk,
        extendible=extendible,
        driver=driver,
        results=results,
    )


def _check_dimensions(
    lines: Lines, dataset: Sequence[int], transfer: Sequence[int], order: Sequence[int], chunk: Sequence[int]
) -> None:
    if len(transfer) != len(dataset) or len(order) != len(dataset) or (chunk and len(chunk) != len(dataset)):
        raise lines.refuse("dataset, transfer buffer, access order and chunk have not the same number of dimensions")
    if sorted(order) != list(range(1, len(dataset) + 1)):
        raise lines.refuse(f"access order {' '.join(map(str, order))} does not name each dimension once")
    if any(whole % part for whole, part in zip(dataset, transfer, strict=True)):
        raise lines.refuse("the transfer buffer does not divide the dataset")


def _result(lines: Lines, interface: str, iterations: int) -> Result:
    lines.take(rf"IO API = {interface.upper()}", f"IO API = {interface.upper()}")
    write = throughput(lines, "Write", iterations)
    write_open_close = throughput(lines, "Write Open-Close", iterations, within=write)
    read = read_open_close = None
    if lines.next().startswith("Read"):
        read = throughput(lines, "Read", iterations)
        read_open_close = throughput(lines, "Read Open-Close", iterations, within=read)
    return Result.model_validate(
        {
            "interface": interface,
            "write": write,
            "write_open_close": write_open_close,
            "read": read,
            "read_open_close": read_open_close,
        }
    )


def throughput(lines: Lines, name: str, iterations: int, within: Throughput | None = None) -> Throughput:
    """The next block of three rates; ``within``: the one without opening and closing. Raises :class:`Refusal`."""
    lines.take(rf"{name} \({iterations} iteration\(s\)\):", f"{name} ({iterations} iteration(s)):")
    found = {}
    for word in ("Maximum", "Average", "Minimum"):
        (text,) = lines.take(rf"{word} Throughput: +(\d+\.\d\d) MB/s", f"{word} Throughput: ... MB/s")
        found[word.lower()] = float(text)
        if found[word.lower()] == 0:
            raise lines.refuse(f"{name}: a rate of 0: it failed, or is too small for its two decimals")
    rates = Throughput(**found)
    if not rates.maximum >= rates.average >= rates.minimum:
        raise lines.refuse(f"{name}: maximum, average and minimum are not in this order")
    if iterations == 1 and rates.maximum != rates.minimum:
        raise lines.refuse(f"{name}: one iteration has two rates")
    if within is not None and rates.average > within.average + 2 * _PRINTED:
        raise lines.refuse(f"{name}: faster than without opening and closing")
    return rates


def seconds(bytes_: int, rate: Throughput) -> Printed:
    """Of one iteration."""
    value = bytes_ / 2**20 / rate.average
    return Printed(value, value * _PRINTED / rate.average)


def repeat_of(inside: Throughput, whole: Throughput, operation: str, bytes_: int, launch: Launch) -> Repeat:
    """Of one iteration: without and with the file's opening and closing. Raises :class:`Refusal`."""
    return repeat(
        total=seconds(bytes_, whole),
        transfer=seconds(bytes_, inside),
        cached=(None, launch.cached_after) if operation == "read" else (None, None),
        what=f"{launch.name}: {operation}",
    )


def measurements(job: Job, launches: Sequence[Launch], case: Case) -> list[Measurement]:
    """Write and read through HDF5, the case, and through POSIX, its baseline; a repeat for each launch of one iteration.

    Raises :class:`Refusal`.
    """
    if not launches:
        raise Refusal("h5perf_serial: no launch")
    job.check_ranks("h5perf_serial", 1)
    reports = [_read_launch(launch, case) for launch in launches]
    return [
        record(
            job,
            Program(name="h5perf_serial", version=reports[0].version, verifies=False),
            [
                repeat_of(*_rates(report.result(interface), operation), operation, case.logical_bytes, launch)
                for launch, report in zip(launches, reports, strict=True)
            ],
            benchmark="h5perf_serial",
            operation=operation,
            interface=interface,
            role="main" if interface == "hdf5" else "baseline",
            differs={} if interface == "hdf5" else {"interface": interface},
            collective=False,
            pattern=case.pattern(),
            logical_bytes=case.logical_bytes,
            file_bytes=case.logical_bytes,
            hdf5=reports[0].version,
        )
        for interface in ("hdf5", "posix")
        for operation in ("write", "read")
    ]


def _read_launch(launch: Launch, case: Case) -> Report:
    launch.check("h5perf_serial", *FAILED, r"^usage:")
    # Not all that is on its stderr is the program's: the launcher's words on networks are there too.
    report = read_report(launch.stdout)
    if report.case != case or report.iterations != 1:
        raise Refusal(
            f"{launch.name}: it ran {report.iterations} iterations of {report.case}, one of {case} was asked for"
        )
    _check_files(launch, case.logical_bytes)
    return report


def _rates(result: Result, operation: str) -> tuple[Throughput, Throughput]:
    if operation == "write":
        return result.write, result.write_open_close
    if result.read is None or result.read_open_close is None:
        raise Refusal("h5perf_serial: it did not read")
    return result.read, result.read_open_close


def _check_files(launch: Launch, bytes_: int) -> None:
    """It was told to leave its files, of which some drivers make several. Raises :class:`Refusal` when they are too small."""
    if launch.files is None:
        return
    mine = {name: size for name, size in launch.files.items() if name.startswith("#sio_tmp")}
    raw = mine.pop("#sio_tmp.posix", 0)
    for interface, size in (("hdf5", sum(mine.values())), ("posix", raw)):
        if size < bytes_:
            raise Refusal(f"{launch.name}: {interface} left {size} bytes in its files, {bytes_} were written")


def kept_measurements(job: Job, report: Report, cached: float | None = None) -> list[Measurement]:
    """Of a report that somebody kept: write and read through each interface that it has. Of several iterations only the
    fastest and the slowest are told: these are the repeats. ``cached``: the part of what is read that is in memory.

    Raises :class:`Refusal`.
    """
    job.check_ranks("h5perf_serial", 1)
    return [
        record(
            job,
            Program(name="h5perf_serial", version=report.version, verifies=False),
            _of_iterations(report, *_rates(result, operation), cached if operation == "read" else None, operation),
            benchmark="h5perf_serial",
            operation=operation,
            interface=result.interface,
            collective=False,
            pattern=report.case.pattern(),
            logical_bytes=report.logical_bytes,
            file_bytes=report.logical_bytes,
            hdf5=report.version,
        )
        for result in report.results
        for operation in ("write", "read")
        if operation == "write" or result.read is not None
    ]


def _of_iterations(
    report: Report, inside: Throughput, whole: Throughput, cached: float | None, operation: str
) -> list[Repeat]:
    def seconds(rate: float) -> Printed:
        value = report.logical_bytes / 2**20 / rate
        return Printed(value, value * _PRINTED / rate)

    rates = [(inside.maximum, whole.maximum), (inside.minimum, whole.minimum)][: report.iterations]
    return [
        repeat(
            total=seconds(total),
            # The fastest ones need not be of one iteration.
            transfer=seconds(transfer) if transfer >= total else None,
            cached=(None, cached),
            what=f"h5perf_serial: {operation}",
        )
        for transfer, total in rates
    ]
