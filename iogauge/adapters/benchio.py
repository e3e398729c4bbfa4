"""benchio: its arguments and its report, line by line.

It prints a rate, and ends with exit code 0, though the folder is missing and nothing was written; with ``global`` it cuts
sizes that its process grid does not divide; its indices overflow beyond 2^31 elements. So a line that does not belong to its
report is a refusal, the global size has to be the one asked for, and a launch before the measured ones proves that the bytes
get into files: they were made beforehand with a second name, which benchio does not know and so does not remove.

It times everything from before creating to after closing, barrier to barrier, once, without a sync, and verifies nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iogauge.adapters.lines import Lines
from iogauge.adapters.upstream import Interface, Job, Launch, Pattern, Printed, agree, printed, record, repeat, whole
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement, Program

#: Method to its interface and to who writes, in the words of the kernel ``blocks``.
METHODS: dict[str, tuple[Interface, str]] = {
    "serial": ("posix", "one"),
    "proc": ("posix", "process"),
    "node": ("posix", "node"),
    "mpiio": ("mpiio", "all"),
    "hdf5": ("hdf5", "all"),
    "netcdf": ("netcdf", "all"),
}
STRIPINGS = ("unstriped", "striped", "fullstriped")
_MOST_ELEMENTS = 2**31 - 1

#: The second name of a file: in the same folder, since some file systems have no links between folders.
KEPT = ".kept"


@dataclass(frozen=True)
class Arguments:
    """``size`` in elements, a rank's (``local``) or all ranks' (``global``); the first dimension varies fastest."""

    size: tuple[int, int, int]
    scope: str
    methods: tuple[str, ...]
    stripings: tuple[str, ...]

    def words(self) -> list[str]:
        """As the program wants them."""
        return [*map(str, self.size), self.scope, *self.methods, *self.stripings]

    def elements(self, ranks: int) -> int:
        """All ranks'."""
        return math.prod(self.size) * (ranks if self.scope == "local" else 1)

    def logical_bytes(self, ranks: int) -> int:
        """Written by each method."""
        return 8 * self.elements(ranks)


def process_grid(ranks: int) -> tuple[int, ...]:
    """As MPI_Dims_create makes it: next to a cube, here in benchio's order, the smallest first."""
    best: tuple[int, ...] = (1, 1, ranks)
    for a in range(1, ranks + 1):
        if ranks % a == 0:
            for b in range(a, ranks // a + 1):
                if ranks // a % b == 0 and ranks // a // b >= b and ranks // a // b < best[2]:
                    best = (a, b, ranks // a // b)
    return best


def check_arguments(text: str, ranks: int) -> Arguments:
    """The arguments after ``benchio``. Raises :class:`InputError`: the program itself would go on."""

    def wrong(why: str) -> InputError:
        return InputError(why, file="benchio's arguments")

    words = text.split()
    if len(words) < 6:
        raise wrong("n1 n2 n3 local|global METHOD... STRIPING... are expected")
    if any(re.fullmatch(r"[1-9]\d{0,9}", word, re.ASCII) is None for word in words[:3]):
        raise wrong(f"{' '.join(words[:3])}: three numbers of 1 or more are expected")
    if words[3] not in ("local", "global"):
        raise wrong(f"{words[3]!r}: taken for global; allowed: local, global")
    for word in words[4:]:
        if word not in METHODS and word not in STRIPINGS:
            raise wrong(f"{word!r}; allowed: {', '.join([*METHODS, *STRIPINGS])}")
    methods = tuple(method for method in METHODS if method in words)
    stripings = tuple(striping for striping in STRIPINGS if striping in words)
    if not methods or not stripings:
        raise wrong("at least one method and one striping are expected: without, it runs all of them")
    arguments = Arguments((int(words[0]), int(words[1]), int(words[2])), words[3], methods, stripings)
    if arguments.elements(ranks) > _MOST_ELEMENTS:
        raise wrong(f"{arguments.elements(ranks)} elements: its indices end at {_MOST_ELEMENTS}")
    grid = process_grid(ranks)
    if arguments.scope == "global" and any(n % p for n, p in zip(arguments.size, grid, strict=True)):
        raise wrong(f"{'x'.join(words[:3])} is not divided by the process grid {'x'.join(map(str, grid))}")
    return arguments


@dataclass(frozen=True)
class Result:
    """One method with one striping; the rate is MiB/s."""

    method: str
    file: str
    seconds: Printed
    rate: Printed


@dataclass(frozen=True)
class Report:
    """One run."""

    ranks: int
    nodes: int
    grid: tuple[int, ...]
    array: tuple[int, ...]
    size: tuple[int, ...]
    results: tuple[Result, ...]


_HEADINGS = {"Serial": "serial", "Proc": "proc", "Node": "node", "MPI-IO": "mpiio", "HDF5": "hdf5", "NetCDF": "netcdf"}
_TRIPLE = r"\(\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)"


def read_report(text: str, what: str = "benchio") -> Report:
    """The report, complete and with nothing else in it. Raises :class:`Refusal`."""
    lines = Lines(text, what)
    lines.take("Simple Parallel IO benchmark", "Simple Parallel IO benchmark")
    (ranks,) = lines.take(r"Running on +(\d+) +process\(es\)", "Running on N process(es)")
    (nodes,) = lines.take(r"Running on +(\d+) +nodes?", "Running on N node")
    for _ in range(whole(nodes, f"{what}: nodes", 1)):
        lines.take(r"Node number +\d+ +is +\S+ +with +\d+ +processe?s?", "Node number")
    grid = tuple(map(int, lines.take(rf"Process grid is +{_TRIPLE}", "Process grid is")))
    array = tuple(map(int, lines.take(rf"Array size is +{_TRIPLE}", "Array size is")))
    size = tuple(map(int, lines.take(rf"Global size is +{_TRIPLE}", "Global size is")))
    (amount,) = lines.take(r"Total amount of data = +(\S+) +GiB", "Total amount of data")
    lines.take(r"Clock resolution is +\S+ *, *usecs", "Clock resolution is")
    lines.take("Using the following IO methods", "Using the following IO methods")
    methods = list(_names(lines, METHODS))
    lines.take("Using the following stripings", "Using the following stripings")
    stripings = list(_names(lines, STRIPINGS))
    results = [
        _result(lines, method, striping, what) for method in methods for striping in _headed(lines, method, stripings)
    ]
    lines.take("Finished", "Finished")
    lines.end()
    bytes_ = 8 * math.prod(size)
    gib = printed(amount, f"{what}: amount of data")
    # Computed in single precision.
    if abs(gib.value - bytes_ / 2**30) > gib.slack + bytes_ / 2**30 * 1e-6:
        raise Refusal(f"{what}: {gib.value:g} GiB are not the {bytes_} bytes of its global size")
    for result in results:
        agree(bytes_, result.rate, result.seconds, f"{what}: {result.method}")
    if size != tuple(n * p for n, p in zip(array, grid, strict=True)) or math.prod(grid) != int(ranks):
        raise Refusal(f"{what}: its process grid, array and global size do not belong together")
    return Report(
        whole(ranks, f"{what}: processes", 1), whole(nodes, f"{what}: nodes", 1), grid, array, size, tuple(results)
    )


def _names(lines: Lines, known: Sequence[str] | dict[str, tuple[Interface, str]]) -> Iterator[str]:
    while lines.next() in known:
        yield lines.take(r"(\w+)", "a name")[0]


def _headed(lines: Lines, method: str, stripings: Sequence[str]) -> Iterator[str]:
    """A method's heading stands once, before its first striping."""
    for number, striping in enumerate(stripings):
        if number == 0:
            heading = next(heading for heading, name in _HEADINGS.items() if name == method)
            lines.take(re.escape(heading), heading)
        yield striping


def _result(lines: Lines, method: str, striping: str, what: str) -> Result:
    name = rf"{striping}/{method}(?:\d{{6}})?\.dat"
    (file,) = lines.take(rf"Writing to +({name})", f"Writing to {striping}/{method}")
    time, rate = lines.take(r"time = +(\S+) *, rate = +(\S+) +GiB/s", "time = ... , rate = ... GiB/s")
    gib_s = printed(rate, f"{what}: rate")
    return Result(method, file, printed(time, f"{what}: time"), Printed(gib_s.value * 1024, gib_s.slack * 1024))


def _read_launch(job: Job, launch: Launch, arguments: Arguments) -> Report:
    launch.check("benchio", r"\berror on rank\b", r"Illegal argument", r"netCDF error", r"not built")
    report = read_report(launch.stdout, launch.name)
    job.check_ranks("benchio", report.ranks)
    done = report.size if arguments.scope == "global" else report.array
    if done != arguments.size:
        raise Refusal(
            f"{launch.name}: {arguments.scope} size {'x'.join(map(str, done))}, "
            f"{'x'.join(map(str, arguments.size))} was asked for"
        )
    asked = [method for method in arguments.methods for _ in arguments.stripings]
    if [result.method for result in report.results] != asked:
        raise Refusal(f"{launch.name}: its results are not those of {', '.join(asked)}")
    return report


def files_of(arguments: Arguments, ranks: int, nodes: int) -> list[str]:
    """All files that it writes, below the working folder."""
    numbers = {"proc": range(ranks), "node": range(nodes)}
    return [
        f"{striping}/{method}{f'{n:06d}' if method in numbers else ''}.dat"
        for method in arguments.methods
        for striping in arguments.stripings
        for n in numbers.get(method, range(1))
    ]


def check_proof(launch: Launch, arguments: Arguments, ranks: int, nodes: int) -> None:
    """Raises :class:`Refusal` unless the launch before the measured ones wrote all bytes into the files with two names."""
    found = launch.files or {}
    for method in arguments.methods:
        one = Arguments(arguments.size, arguments.scope, (method,), arguments.stripings)
        size = sum(found.get(name + KEPT, 0) for name in files_of(one, ranks, nodes))
        least = arguments.logical_bytes(ranks) * len(arguments.stripings)
        if size < least:
            raise Refusal(f"{launch.name}: {method} left {size} bytes in its files, {least} should be there")


def pattern_of(arguments: Arguments, method: str, striping: str, own: str = "") -> Pattern:
    """In the words of the kernel ``blocks``."""
    pattern: Pattern = {
        "writers": METHODS[method][1],
        "halo": 1,
        "size_is": arguments.scope,
        "size": list(arguments.size),
        "striping": striping,
        "chunk": [],
        "fsync": method == "netcdf",
    }
    return pattern | ({"own": own} if own else {})


def measurements(
    job: Job, launches: Sequence[Launch], arguments: Arguments, *, proof: Launch | None, main: str = "", own: str = ""
) -> list[Measurement]:
    """The write of each method, a repeat for each launch; all but ``main`` are baselines of it, if there is one.

    ``proof``: the launch before them, into files with two names; none of outputs that somebody kept. Raises :class:`Refusal`.
    """
    if not launches:
        raise Refusal("benchio: no launch")
    if proof is not None:
        check_proof(proof, arguments, job.ranks, job.probe.nodes)
    reports = [_read_launch(job, launch, arguments) for launch in launches]
    found = []
    for number, first in enumerate(reports[0].results):
        interface, _ = METHODS[first.method]
        repeats = [
            repeat(total=report.results[number].seconds, what=f"{launch.name}: {first.method}")
            for launch, report in zip(launches, reports, strict=True)
        ]
        baseline = bool(main) and first.method != main
        found.append(
            record(
                job,
                Program(name="benchio", version=None, verifies=False),
                repeats,
                benchmark="benchio",
                operation="write",
                interface=interface,
                role="baseline" if baseline else "main",
                differs={"interface": interface} if baseline else {},
                collective=METHODS[first.method][1] == "all",
                pattern=pattern_of(arguments, first.method, first.file.partition("/")[0], own),
                logical_bytes=arguments.logical_bytes(job.ranks),
                file_bytes=arguments.logical_bytes(job.ranks),
                hdf5=None,
            )
        )
    return found
