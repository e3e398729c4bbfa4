"""h5perf, HDF5's own parallel benchmark: its command and its report, line by line.

It prints rates alone, the slowest rank's; one iteration a launch makes seconds of them again: bytes over rate. After a set-up
that failed it prints 0.00 and ends with exit code 0: a rate of 0 is a refusal. *Observed* are its open-close rates; its other
ones go from the dataset's creation or opening to its closing. It syncs nothing, reads what it has just written, and its
verification is not used: it would be inside the times.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from iogauge.adapters.h5perf_serial import FAILED, UNITS, Throughput, repeat_of, throughput
from iogauge.adapters.lines import Lines
from iogauge.adapters.upstream import Interface, Job, Launch, record, whole
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement, Program, Repeat

#: As it names them, in the order in which it runs them.
INTERFACES: dict[str, Interface] = {"posix": "posix", "mpiio": "mpiio", "phdf5": "hdf5"}
_HEADINGS = {"posix": "POSIX", "mpiio": "MPIO", "phdf5": "PHDF5 (w/MPI-IO driver)"}


@dataclass(frozen=True)
class Case:
    """``bytes_of_rank`` in a dataset, moved in ``transfer_bytes`` of ``block_bytes``; each a multiple of the next."""

    bytes_of_rank: int
    transfer_bytes: int
    block_bytes: int
    interleaved: bool = False
    collective: bool = False
    chunked: bool = False

    def check(self) -> None:
        """Raises :class:`InputError` for sizes with which it would print rates of 0."""
        sizes = (self.bytes_of_rank, self.transfer_bytes, self.block_bytes)
        if min(sizes) < 1 or any(whole % part for whole, part in itertools.pairwise(sizes)):
            raise InputError(
                f"{sizes[0]} bytes of a rank, transfers of {sizes[1]} and blocks of {sizes[2]}: each has to be a multiple of "
                f"the next",
                file="h5perf's sizes",
            )

    def words(self, ranks: int) -> list[str]:
        """The arguments of a launch that measures this and nothing else."""
        sizes = ["-e", self.bytes_of_rank, "-x", self.transfer_bytes, "-X", self.transfer_bytes, "-B", self.block_bytes]
        flags = ["-I"] * self.interleaved + ["-C"] * self.collective + ["-c"] * self.chunked
        return ["-p", str(ranks), "-P", str(ranks), "-i", "1", *map(str, sizes), *flags]


@dataclass(frozen=True)
class Result:
    """One interface."""

    write: Throughput
    write_open_close: Throughput
    read: Throughput
    read_open_close: Throughput


@dataclass(frozen=True)
class Report:
    """One launch; sizes in bytes."""

    version: str
    ranks: int
    case: Case
    results: dict[str, Result]


_SIZE = r"\d{1,15}(?:KB|MB|GB)?"


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)(\D*)", text)
    return int(match[1]) * UNITS[match[2]] if match else 0


def read_report(text: str, what: str = "h5perf") -> Report:
    """The report of one launch as :meth:`Case.words` asks for it. Raises :class:`Refusal` for anything else."""
    lines = Lines(text, what)

    def parameter(name: str, pattern: str) -> str:
        return lines.take(rf"(?:rank 0: )?{re.escape(name)}=({pattern}) ?", f"{name}=")[0]

    (version,) = lines.take(r"HDF5 Library: Version (\d+\.\d+\.\d+\S*)", "HDF5 Library: Version")
    lines.take(r"(?:rank 0: )?==== Parameters ====", "==== Parameters ====")
    names = parameter("IO API", "(?:posix|mpiio|phdf5)(?: (?:posix|mpiio|phdf5))*").split()
    for single in ("Number of files", "Number of datasets", "Number of iterations"):
        parameter(single, "1")
    ranks = whole(parameter("Number of processes", r"(?P<n>\d+):(?P=n)").split(":")[0], f"{what}: processes", 1)
    of_rank = _bytes(parameter("Number of bytes per process per dataset", _SIZE))
    dataset = _bytes(parameter("Size of dataset(s)", rf"(?P<s>{_SIZE}):(?P=s)").split(":")[0])
    file = _bytes(parameter("File size", rf"(?P<s>{_SIZE}):(?P=s)").split(":")[0])
    transfer = _bytes(parameter("Transfer buffer size", rf"(?P<s>{_SIZE}):(?P=s)").split(":")[0])
    case = Case(
        bytes_of_rank=of_rank,
        transfer_bytes=transfer,
        block_bytes=_bytes(parameter("Block size", _SIZE)),
        interleaved=parameter("Block Pattern in Dataset", "Contiguous|Interleaved") == "Interleaved",
        collective=parameter("I/O Method for MPI and HDF5", "Independent|Collective") == "Collective",
        chunked=(parameter("Geometry", "1D"), parameter("VFL used for HDF5 I/O", "MPI-IO driver"),
                 parameter("Data storage method in HDF5", "Contiguous|Chunked"))[2] == "Chunked",
    )  # fmt: skip
    parameter("Env HDF5_PARAPREFIX", ".*")
    lines.take(r"(?:rank 0: )?Dumping MPI Info Object.*", "Dumping MPI Info Object")
    while lines.next() and "====" not in lines.next():
        lines.take(".*", "an item of the MPI Info object")
    lines.take(r"(?:rank 0: )?==== End of Parameters ====", "==== End of Parameters ====")
    if not dataset == file == of_rank * ranks or not of_rank:
        raise lines.refuse(f"{of_rank} bytes of each of {ranks} processes do not make a file of {file} bytes")
    lines.take(rf"Number of processors = {ranks}", f"Number of processors = {ranks}")
    mib = f"{file / 2**20:.2f}"
    lines.take(
        rf"Transfer Buffer Size: {transfer} bytes, File size: {re.escape(mib)} MB",
        f"Transfer Buffer Size: {transfer} bytes",
    )
    lines.take(
        rf"# of files: 1, # of datasets: 1, dataset size: {re.escape(mib)} MB", "# of files: 1, # of datasets: 1"
    )
    results = {}
    for name in (name for name in INTERFACES if name in names):
        lines.take(re.escape(f"IO API = {_HEADINGS[name]}"), f"IO API = {_HEADINGS[name]}")
        write = throughput(lines, "Write", 1)
        write_open_close = throughput(lines, "Write Open-Close", 1, within=write)
        read = throughput(lines, "Read", 1)
        results[name] = Result(write, write_open_close, read, throughput(lines, "Read Open-Close", 1, within=read))
    lines.end()
    return Report(version, ranks, case, results)


def measurements(job: Job, launches: Sequence[Launch], case: Case, *, main: str = "phdf5") -> list[Measurement]:
    """Write and read through each interface, a repeat for each launch; ``main`` is the case, the others are its baselines.

    Raises :class:`Refusal`.
    """
    if not launches:
        raise Refusal("h5perf: no launch")
    reports = []
    for launch in launches:
        launch.check("h5perf", *FAILED)
        report = read_report(launch.stdout, launch.name)
        job.check_ranks("h5perf", report.ranks)
        if report.case != case:
            raise Refusal(f"{launch.name}: it ran {report.case}, {case} was asked for")
        _check_files(launch, case.bytes_of_rank * report.ranks)
        reports.append(report)
    bytes_ = case.bytes_of_rank * job.ranks
    found = []
    for name in reports[0].results:
        interface = INTERFACES[name]
        for operation in ("write", "read"):
            repeats = [
                _repeat(report.results[name], operation, bytes_, launch)
                for launch, report in zip(launches, reports, strict=True)
            ]
            found.append(
                record(
                    job,
                    Program(name="h5perf", version=reports[0].version, verifies=False),
                    repeats,
                    benchmark="h5perf",
                    operation=operation,
                    interface=interface,
                    role="main" if name == main else "baseline",
                    differs={} if name == main else {"interface": interface},
                    collective=case.collective,
                    pattern={
                        "layout": "interleaved" if case.interleaved else "contiguous",
                        "file_per_process": False,
                        "datasets": 1,
                        "files": 1,
                        "block_bytes": case.block_bytes,
                        "transfer_bytes": case.transfer_bytes,
                        "chunk_bytes": case.block_bytes if case.chunked else 0,
                        "fsync": False,
                    },
                    logical_bytes=bytes_,
                    file_bytes=bytes_,
                    hdf5=reports[0].version,
                )
            )
    return found


def _repeat(result: Result, operation: str, bytes_: int, launch: Launch) -> Repeat:
    inside, whole_ = (
        (result.write, result.write_open_close) if operation == "write" else (result.read, result.read_open_close)
    )
    return repeat_of(inside, whole_, operation, bytes_, launch)


def _check_files(launch: Launch, bytes_: int) -> None:
    """It was told to leave its files. Raises :class:`Refusal` when one is too small."""
    for name, size in (launch.files or {}).items():
        if name.startswith("#pio_tmp") and size < bytes_:
            raise Refusal(f"{launch.name}: {name} has {size} bytes, {bytes_} were written")
    if launch.files is not None and not any(name.startswith("#pio_tmp") for name in launch.files):
        raise Refusal(f"{launch.name}: it left no file")
