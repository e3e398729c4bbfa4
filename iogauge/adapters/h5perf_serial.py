"""h5perf_serial, HDF5's own serial benchmark: its report, read line by line, and refused when a line is not as it should be.

What it prints as MB/s are MiB/s (2^20 bytes). It ends with exit code 0 and prints rates also after a write that failed, so
its stderr is read as well: it is silent when all went well. It verifies nothing of what it reads back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from iogauge.adapters.lines import Lines
from iogauge.adapters.upstream import Job, Printed, record, repeat
from iogauge.errors import Refusal
from iogauge.measurement import Measurement, Program

Interface = Literal["posix", "hdf5"]

_DRIVERS = ("sec2", "stdio", "core", "split", "multi", "family", "direct")

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


class Report(_Value):
    """One run. Dimensions are bytes, slowest first; ``order`` names them from 1, the first is traversed first."""

    version: str
    iterations: int
    dataset: tuple[int, ...]
    transfer: tuple[int, ...]
    order: tuple[int, ...]
    chunk: tuple[int, ...]
    extendible: bool
    driver: str | None
    results: tuple[Result, ...]

    @property
    def logical_bytes(self) -> int:
        """Bytes of the dataset, written and read once an iteration."""
        return math.prod(self.dataset)

    def result(self, interface: str) -> Result:
        """The result of an interface. Raises :class:`Refusal` when it was not run."""
        for result in self.results:
            if result.interface == interface:
                return result
        raise Refusal(f"h5perf_serial: no result for {interface}")


def _seconds(bytes_: int, rate: float) -> Printed:
    value = bytes_ / 2**20 / rate
    return Printed(value, value * _PRINTED / rate)


def measurements(job: Job, report: Report, cached: float | None = None) -> list[Measurement]:
    """Write and read through each interface. Of several iterations only the fastest and the slowest are told: these are the
    repeats. ``cached``: the part of what is read that is in memory. Raises :class:`Refusal`."""
    found = []
    for result in report.results:
        by_operation = {"write": (result.write, result.write_open_close)}
        if result.read is not None and result.read_open_close is not None:
            by_operation["read"] = (result.read, result.read_open_close)
        for operation, (inside, whole) in by_operation.items():
            rates = list(zip((inside.maximum, inside.minimum), (whole.maximum, whole.minimum), strict=True))
            repeats = [
                repeat(
                    total=_seconds(report.logical_bytes, total),
                    # Of the fastest ones, which need not be of one iteration.
                    transfer=_seconds(report.logical_bytes, transfer) if transfer >= total else None,
                    cached=(None, cached) if operation == "read" else (None, None),
                    what=f"h5perf_serial: {operation}",
                )
                for transfer, total in rates[: report.iterations]
            ]
            found.append(
                record(
                    job,
                    Program(name="h5perf_serial", version=report.version, verifies=False),
                    repeats,
                    benchmark="h5perf_serial",
                    operation=operation,
                    interface=result.interface,
                    collective=False,
                    pattern={
                        "dims": list(report.dataset),
                        "transfer": list(report.transfer),
                        "order": list(report.order),
                        "chunk": list(report.chunk),
                        "extendible": report.extendible,
                        "vfd": report.driver or "sec2",
                    },
                    logical_bytes=report.logical_bytes,
                    file_bytes=report.logical_bytes,
                    hdf5=report.version if result.interface == "hdf5" else None,
                )
            )
    return found


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


_UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def _sizes(lines: Lines, name: str) -> tuple[int, ...]:
    (text,) = lines.take(rf"{name}=((?:\d+(?:KB|MB|GB)?(?: |$))+)", f"{name}=")
    found = [re.fullmatch(r"(\d+)(\D*)", word) for word in text.split()]
    sizes = tuple(int(match[1]) * _UNITS[match[2]] for match in found if match)
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
