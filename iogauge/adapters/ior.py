"""IOR: its command line, and its report as text or as JSON.

It may end with exit code 0 after bad transfers (their number is cut to eight bits), writes a clean JSON beside a wrong read,
and invalid JSON with ``-v``. So: the streams are searched for warnings, whatever the exit code, and each printed bandwidth has
to be the bytes of the case over its seconds. A run that moved other bytes than asked (stonewalling) is refused.

The clocks are global: the first rank's begin to the last rank's end, for each phase and for the whole; phases may overlap.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from iogauge.adapters.upstream import Interface, Job, Launch, Printed, agree, printed, record, repeat, whole
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement, Program

_FLAGS = "ceCEFgkKmrRuvwWxyYzZ"
_WITH_VALUE = "aAbdDfGijlMNoOQstTX"
_LONG_FLAG = re.compile(r"--(warningAsErrors|collective|(?:posix|hdf5|mpiio)\.[A-Za-z]+(?:=\S+)?)")

#: What makes the bytes moved another number than the sizes say, or the output unreadable.
_REFUSED = {
    "D": "stops early: the bytes moved are no longer those of the sizes",
    "T": "stops early: repetitions are missing then",
    "N": "fewer tasks than the job has ranks",
    "f": "a script's tests are many; give one command line",
    "M": "fills the memory",
    "m": "writes a file for each repetition",
}
_KNOWN_DIRECTIVES = {"summaryFormat", "summaryFile", "checkRead", "checkWrite", "warningAsErrors"}

INTERFACES: dict[str, Interface] = {"HDF5": "hdf5", "MPIIO": "mpiio", "POSIX": "posix"}

_SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class CommandLine:
    """The options that iogauge has to know; sizes in bytes."""

    words: tuple[str, ...]
    flags: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)
    directives: Mapping[str, str] = field(default_factory=dict)

    def without(self, flag: str) -> CommandLine:
        """The same, but for a flag that IOR said it leaves aside."""
        return dataclasses.replace(self, flags=self.flags - {flag})

    @property
    def name(self) -> str:
        """Of the series of a site's own command line."""
        return hashlib.sha256(" ".join(self.words).encode()).hexdigest()[:8]

    @property
    def interface(self) -> Interface:
        """Of ``-a``."""
        return INTERFACES[self.values.get("a", "POSIX").upper()]

    @property
    def file(self) -> str:
        """Of ``-o``."""
        return self.values.get("o", "testFile")

    @property
    def result(self) -> str:
        """The file with the report; empty: stdout."""
        return self.directives.get("summaryFile", "")

    @property
    def writes(self) -> bool:
        """Without any of the four IOR writes and reads."""
        return "w" in self.flags or not self.flags & set("wrWR")

    @property
    def reads(self) -> bool:
        """With ``-R`` too: it is a read that compares."""
        return bool(self.flags & set("rR")) or not self.flags & set("wrWR")

    @property
    def compares(self) -> bool:
        """Is what was written read back and compared?"""
        return bool(self.flags & set("WR"))

    def bytes_of_rank(self) -> int:
        """What one rank writes in one repetition."""
        return size(self.values.get("b", "1m")) * int(self.values.get("s", "1"))

    def bytes(self, ranks: int) -> int:
        """What all ranks write in one repetition."""
        return ranks * self.bytes_of_rank()


def size(text: str) -> int:
    """``4m`` as bytes. Raises ``ValueError``."""
    match = re.fullmatch(r"([1-9]\d{0,15})([kmgt]?)", text.lower(), re.ASCII)
    if match is None:
        raise ValueError(f"{text!r} is no size; allowed: a number with k, m, g or t")
    return int(match[1]) * _SUFFIXES[match[2]]


def read_command(text: str) -> CommandLine:
    """The options after ``ior``. Unknown ones are left aside. Raises ``ValueError`` for unclosed quotes."""
    words = shlex.split(text)
    flags: set[str] = set()
    values: dict[str, str] = {}
    rest = list(words)
    directives: dict[str, str] = {}
    while rest:
        word = rest.pop(0)
        if re.fullmatch(rf"-[{_FLAGS}]+", word):
            flags |= set(word[1:])
        elif word[:1] == "-" and word[1:2] in _WITH_VALUE and word[1:2]:
            value = word[2:].removeprefix("=") or (rest.pop(0) if rest else "")
            if word[1] == "O":
                directives |= dict(part.partition("=")[::2] for part in value.split(","))
            else:
                values[word[1]] = value
        elif word in ("--collective", "--warningAsErrors"):
            flags.add("c" if word == "--collective" else word)
    flags |= {flag for flag, name in (("R", "checkRead"), ("W", "checkWrite")) if directives.get(name, "0") != "0"}
    return CommandLine(tuple(words), frozenset(flags), values, directives)


def check_command(text: str) -> CommandLine:
    """A site's own command line, looked at before anything runs. Raises :class:`InputError` with what is allowed."""

    def wrong(why: str) -> InputError:
        return InputError(why, file="ior's command line")

    try:
        command = read_command(text)
    except ValueError as error:
        raise wrong(str(error)) from error
    rest = list(command.words)
    while rest:
        word = rest.pop(0)
        if word[:1] == "-" and word[1:2] in _WITH_VALUE and word[1:2]:
            if word[1] in _REFUSED:
                raise wrong(f"{word}: {_REFUSED[word[1]]}")
            if not word[2:] and not rest:
                raise wrong(f"{word}: a value is missing")
            if not word[2:]:
                rest.pop(0)
        elif re.fullmatch(rf"-[{_FLAGS}]+", word):
            if "m" in word:
                raise wrong(f"{word}: {_REFUSED['m']}")
        elif not _LONG_FLAG.fullmatch(word):
            raise wrong(f"{word}: unknown option; allowed: those of ior -h")
    if command.values.get("a", "POSIX").upper() not in INTERFACES:
        raise wrong(f"-a {command.values['a']}: allowed: {', '.join(INTERFACES)}")
    for number in ("i", "s"):
        if re.fullmatch(r"[1-9]\d{0,8}", command.values.get(number, "1"), re.ASCII) is None:
            raise wrong(f"-{number} {command.values[number]}: a number of 1 or more is expected")
    try:
        block, transfer = size(command.values.get("b", "1m")), size(command.values.get("t", "256k"))
    except ValueError as error:
        raise wrong(str(error)) from error
    if block % transfer:
        raise wrong(f"-b {block} is no multiple of -t {transfer}")
    for name in (command.file, command.result):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise wrong(f"{name}: a relative name is expected; it is made in the case's own folder")
    if unknown := sorted(set(command.directives) - _KNOWN_DIRECTIVES):
        raise wrong(f"-O {unknown[0]}: allowed: {', '.join(sorted(_KNOWN_DIRECTIVES))}")
    form = command.directives.get("summaryFormat", "default")
    if form not in ("default", "JSON"):
        raise wrong(f"-O summaryFormat={form}: allowed: default, JSON (CSV does not tell what was measured)")
    if form == "JSON" and ("v" in command.flags or not command.result):
        raise wrong("-O summaryFormat=JSON: is valid only without -v and with -O summaryFile=NAME")
    if command.reads and not command.writes and "E" not in command.flags:
        raise wrong("reads without -w: there is no file in the case's own folder")
    return command


def command(
    interface: Interface,
    operation: str,
    *,
    collective: bool,
    file_per_process: bool,
    block_bytes: int,
    transfer_bytes: int,
    segments: int,
    file: str,
    result: str,
) -> list[str]:
    """The arguments of one launch: ``write``, ``read`` (of what another rank wrote), or ``check`` (a read that compares)."""
    api = {name: word for word, name in INTERFACES.items()}[interface]
    flags = {"write": ["-w", "-e"], "read": ["-r"], "check": ["-r", "-R"]}[operation]
    flags += ["-C"] + ["-c"] * (collective and interface != "posix") + ["-F"] * file_per_process
    sizes = ["-b", str(block_bytes), "-t", str(transfer_bytes), "-s", str(segments)]
    words = ["-a", api, *flags, *sizes, "-i", "1", "-k", "-G", "20261121", "--warningAsErrors", "-o", file]
    return [*words, "-O", "summaryFormat=JSON", "-O", f"summaryFile={result}"]


@dataclass(frozen=True)
class Row:
    """One operation of one repetition. The bandwidth is MiB/s; ``operations_s`` are transfers by second, since IOR 3.3."""

    operation: str
    bandwidth: Printed
    open: Printed
    transfer: Printed
    close: Printed
    total: Printed
    operations_s: Printed | None


@dataclass(frozen=True)
class Report:
    """One run; sizes in bytes."""

    version: str
    api: str
    api_version: str
    command: CommandLine
    tasks: int
    segments: int
    block_bytes: int
    transfer_bytes: int
    repetitions: int
    file_per_process: bool
    collective: bool
    rows: tuple[Row, ...]
    ranks_per_node: int = 0  # of the first node; 0: it does not tell
    began: str = ""  # local time, in the words of ctime

    @property
    def logical_bytes(self) -> int:
        """Moved by all tasks in one operation."""
        return self.tasks * self.segments * self.block_bytes

    @property
    def configuration(self) -> tuple[object, ...]:
        """What reports of one case have in common."""
        return (self.version, self.api, self.tasks, self.segments, self.block_bytes, self.transfer_bytes,
                self.file_per_process, self.collective)  # fmt: skip


def read_report(text: str, what: str = "ior") -> Report:
    """The report, text or JSON. Raises :class:`Refusal` for all that is not complete and consistent."""
    return _checked(_from_json(text, what) if text.lstrip().startswith("{") else _from_text(text, what), what)


def _checked(report: Report, what: str) -> Report:
    if report.api not in INTERFACES:
        raise Refusal(f"{what}: an interface {report.api[:20]!r} is not known")
    operations = [row.operation for row in report.rows]
    if not operations:
        raise Refusal(f"{what}: the report has no result")
    for operation in dict.fromkeys(operations):
        if operations.count(operation) != report.repetitions:
            raise Refusal(f"{what}: {operations.count(operation)} of {report.repetitions} results of {operation}")
    for row in report.rows:
        agree(report.logical_bytes, row.bandwidth, row.total, f"{what}: {row.operation}")
        if row.operations_s is not None and row.transfer.known:
            mib = report.transfer_bytes / 2**20
            rate = Printed(row.operations_s.value * mib, row.operations_s.slack * mib)
            agree(report.logical_bytes, rate, row.transfer, f"{what}: {row.operation}: IOPS")
    return report


def _positive(value: int, what: str) -> int:
    if value < 1:
        raise Refusal(f"{what}: {value}")
    return value


def _report(
    what: str, version: str, command: str, options: Mapping[str, str], summary: Mapping[str, str], rows: Sequence[Row]
) -> Report:
    """``options`` as IOR prints them, ``summary`` by the names of its JSON."""
    try:
        tasks, block = whole(options["tasks"], f"{what}: tasks", 1), whole(summary["blockSize"], f"{what}: block", 1)
        segments = whole(summary["segmentCount"], f"{what}: segments", 1)
        transfer = whole(summary["transferSize"], f"{what}: transfer", 1)
        if whole(summary["numTasks"], f"{what}: tasks", 1) != tasks:
            raise Refusal(f"{what}: {tasks} tasks at its beginning, {summary['numTasks']} at its end")
        return Report(
            version=version,
            api=options["api"].partition("-")[0],
            api_version=options.get("apiVersion", ""),
            command=read_command(command.partition(" ")[2]),
            tasks=tasks,
            segments=segments,
            block_bytes=block,
            transfer_bytes=transfer,
            repetitions=whole(options["repetitions"], f"{what}: repetitions", 1),
            file_per_process={"single-shared-file": False, "file-per-process": True}[options["access"]],
            collective={"independent": False, "collective": True}[options["type"]],
            rows=tuple(rows),
            ranks_per_node=whole(options.get("clients per node", "0"), f"{what}: clients per node"),
            began=options.get("Began", ""),
        )
    except KeyError as error:
        raise Refusal(f"{what}: {error} is missing or unknown in the report") from error
    except ValueError as error:
        raise Refusal(f"{what}: its command line: {error}") from error


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _from_json(text: str, what: str) -> Report:
    try:
        document: Any = json.loads(text, parse_float=str, parse_int=str, parse_constant=_no_constant)
        (test,) = document["tests"]
        summaries: dict[str, dict[str, str]]
        # Before 4.0 each repetition has a list of its own.
        results = [r for entry in test["Results"] for r in (entry if isinstance(entry, list) else [entry])]
        rows = [_json_row(result, what) for result in results if result["access"] in ("write", "read")]
        summaries = {entry["operation"]: entry for entry in document["summary"]}
        document["Finished"]
        if test["Parameters"]["deadlineForStonewall"] != "0":
            raise Refusal(f"{what}: stopped by a deadline: the bytes moved are not those of its sizes")
        if set(summaries) != {row.operation for row in rows}:
            raise Refusal(f"{what}: its summary is of {', '.join(sorted(summaries))}")
        summary = next(iter(summaries.values()), {})
        options = test["Options"] | {"Began": document.get("Began", "")}
        report = _report(what, document["Version"], document["Command line"], options, summary, rows)
        for entry in summaries.values():
            mib = printed(entry["xsizeMiB"], f"{what}: xsizeMiB")
            if abs(mib.value - report.logical_bytes / 2**20) > mib.slack * 1.001:
                raise Refusal(f"{what}: {mib.value:g} MiB moved, {report.logical_bytes} bytes were to be")
        return report
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{what}: its report is not JSON: {str(error)[:200]}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"{what}: its report lacks {error!s:.100}, or has it otherwise") from error


def _json_row(result: Mapping[str, str], what: str) -> Row:
    keys = ("bwMiB", "openTime", "wrRdTime", "closeTime", "totalTime")
    operations_s = printed(result["iops"], f"{what}: iops") if "iops" in result else None
    bandwidth, *times = (printed(result[key], f"{what}: {key}") for key in keys)
    return Row(result["access"], bandwidth, times[0], times[1], times[2], times[3], operations_s)


_COLUMNS = {"bw": "bandwidth", "open": "open", "wr/rd": "transfer", "close": "close", "total": "total"}
_SUMMARY_COLUMNS = {"#Tasks": "numTasks", "segcnt": "segmentCount", "blksiz": "blockSize", "xsize": "transferSize"}


def _from_text(text: str, what: str) -> Report:
    lines = text.splitlines()
    said = next((line for line in lines if line.startswith(("WARNING: ", "ERROR: "))), "")
    if said:
        raise Refusal(f"{what}: it says: {said[:120]}")
    version = next((line[4:].partition(":")[0] for line in lines if line.startswith("IOR-")), "")
    if not version:
        raise Refusal(f"{what}: no report: 'IOR-VERSION' stands in no line")
    if not any(re.match(r"Finished\s*:", line) for line in lines[-5:]):
        raise Refusal(f"{what}: the report has no end")
    options: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon and name.strip() and not name.startswith(" "):
            options.setdefault(name.strip(), value.strip())
    if "Command line used" in options:
        options |= _old_options(lines, options["Command line used"])
    if options.get("stonewallingTime", "0") != "0":
        raise Refusal(f"{what}: stopped by a deadline: the bytes moved are not those of its sizes")
    rows = [_text_row(cells, what) for cells in _table(lines, "access", "iter", what)]
    summary_rows = _table(lines, "Operation", "xsize", what)
    if not summary_rows:
        raise Refusal(f"{what}: the report has no summary")
    summaries = [{new: cells[old] for old, new in _SUMMARY_COLUMNS.items() if old in cells} for cells in summary_rows]
    if any(summary != summaries[0] for summary in summaries):
        raise Refusal(f"{what}: the operations in its summary are of different sizes")
    if {cells["Operation"] for cells in summary_rows} != {row.operation for row in rows}:
        raise Refusal(f"{what}: its summary is of other operations than its results")
    report = _report(what, version, options.get("Command line", ""), options, summaries[0], rows)
    if any("fsync() only available in POSIX" in line for line in lines):
        return dataclasses.replace(report, command=report.command.without("e"))
    return report


def _old_options(lines: Sequence[str], command: str) -> dict[str, str]:
    """The options of IOR before 3.2, under their later names; whether it is collective only the command line tells."""
    found = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if equals and line.startswith("\t"):
            found[name.strip()] = value.strip()
    api, _, version = found.get("api", "").partition(" ")[0].partition("-")
    tasks = re.fullmatch(r"(\d+) \((\d+) per node\)", found.get("clients", ""))
    collective = "c" in read_command(command).flags and api != "POSIX"
    return {
        "Command line": command,
        "api": api,
        "apiVersion": version,
        "access": found.get("access", "").partition(",")[0],
        "type": "collective" if collective else "independent",
        "tasks": tasks[1] if tasks else "",
        "clients per node": tasks[2] if tasks else "",
        "repetitions": found.get("repetitions", ""),
        "stonewallingTime": found.get("Using stonewalling", "0"),
    }


_CSV = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter"


def is_csv(text: str) -> bool:
    """Does it begin as IOR's CSV does?"""
    return text.startswith(_CSV)


def read_csv(text: str, command: CommandLine, what: str = "ior") -> Report:
    """IOR's CSV, since 4.0; what it does not tell, its command line does. Raises :class:`Refusal` for all that is not complete
    and consistent."""
    if not text.endswith("\n"):
        raise Refusal(f"{what}: the CSV's last line is cut")
    names = _CSV.replace("(MiB/s)", "").replace("(KiB)", "").replace("(s)", "").split(",")
    lines = text.splitlines()
    if lines[0] != _CSV or any(len(line.split(",")) != len(names) for line in lines[1:]):
        raise Refusal(f"{what}: not every line of the CSV has the {len(names)} columns of IOR 4")
    cells = [dict(zip(names, line.split(","), strict=True)) for line in lines[1:]]
    sizes = {(c["numTasks"], c["block"], c["xfer"]) for c in cells}
    if len(sizes) != 1:
        raise Refusal(f"{what}: {len(sizes)} different sizes in the CSV, where one is expected")
    ((tasks, block, transfer),) = sizes
    summary = {"numTasks": tasks, "segmentCount": command.values.get("s", "1"),
               "blockSize": _kib(block, what), "transferSize": _kib(transfer, what)}  # fmt: skip
    asked = [("-b", "block", "b", "1m", "blockSize"), ("-t", "transfer", "t", "256k", "transferSize")]
    for option, word, letter, default, name in asked:
        if str(size(command.values.get(letter, default))) != summary[name]:
            raise Refusal(f"{what}: a {word} of {summary[name]} bytes, the command line's {option} is another")
    options = {
        "tasks": tasks,
        "api": command.values.get("a", "POSIX").upper(),
        "repetitions": command.values.get("i", "1"),
        "access": "file-per-process" if "F" in command.flags else "single-shared-file",
        "type": "collective" if "c" in command.flags else "independent",
    }
    rows = [_text_row(c, what) for c in cells]
    return _checked(_report(what, "4", f"ior {shlex.join(command.words)}", options, summary, rows), what)


def _kib(text: str, what: str) -> str:
    """Printed KiB in bytes."""
    return str(round(printed(text, f"{what}: size").value * 1024))


def _table(lines: Sequence[str], first: str, last: str, what: str) -> list[dict[str, str]]:
    """The rows below the header that begins with ``first``, by the header's words without units."""
    starts = [
        number for number, line in enumerate(lines) if line.split()[:1] == [first] and not re.search("[:=]", line)
    ]
    if len(starts) != 1:
        raise Refusal(f"{what}: {len(starts)} tables that begin with {first!r}, where one is expected")
    header = [re.sub(r"\(\w+(?:/s)?\)", "", word) if first == "access" else word for word in lines[starts[0]].split()]
    if last not in header:
        raise Refusal(f"{what}: the table that begins with {first!r} has no column {last!r}")
    found = []
    for line in lines[starts[0] + 1 :]:
        words = line.split()
        if words[:1] in (["write"], ["read"]):
            if len(words) < header.index(last) + 1:
                raise Refusal(f"{what}: a line of results is cut: {line.strip()[:60]!r}")
            found.append(dict(zip(header, words, strict=False)))
        elif words[:1] != ["remove"] and (not words or (found and words[0].strip("-"))):
            break
    return found


def _text_row(cells: Mapping[str, str], what: str) -> Row:
    try:
        figures = {new: printed(cells[old], f"{what}: {old}") for old, new in _COLUMNS.items()}
    except KeyError as error:
        raise Refusal(f"{what}: the results have no column {error}") from error
    operations_s = printed(cells["IOPS"], f"{what}: IOPS") if "IOPS" in cells else None
    return Row(cells["access"], operations_s=operations_s, **figures)


def _read_launch(job: Job, launch: Launch, result: str, command: CommandLine | None) -> Report:
    # As IOR says it: a network library's warning on stderr looks otherwise.
    launch.check("ior", r"[Ii]ncorrect data", r"^(?:ior )?ERROR: ", r"^(?:ior )?WARNING: (?!fsync\(\) only)")
    text = launch.text(result) if result else launch.stdout
    table = command if is_csv(text) else None
    report = read_report(text, launch.name) if table is None else read_csv(text, table, launch.name)
    job.check_ranks("ior", report.tasks)
    return report


def measurements(
    job: Job,
    launches: Sequence[Launch],
    *,
    result: str = "",
    checks: Sequence[Launch] = (),
    own: str = "",
    differs: Mapping[str, str] | None = None,
    command: CommandLine | None = None,
) -> list[Measurement]:
    """Write and read, as far as they were run, with one repeat for each repetition of all launches.

    ``result`` is the file with the report (empty: stdout), ``checks`` are launches that only compare, one for each that
    writes; ``own`` names a site's own command line, ``differs`` a baseline; with ``command`` the report may be a CSV. Raises
    :class:`Refusal`.
    """
    if not launches:
        raise Refusal("ior: no launch")
    reports = [_read_launch(job, launch, result, command) for launch in launches]
    checked = [_read_launch(job, launch, result, command) for launch in checks]
    first = reports[0]
    for report in reports + checked:
        if report.configuration != first.configuration:
            raise Refusal("ior: reports of different configurations")
    if any(not report.command.compares or {r.operation for r in report.rows} != {"read"} for report in checked):
        raise Refusal("ior: what should have compared the data did not read, or did not compare")
    writing = [report for report in reports if any(row.operation == "write" for row in report.rows)]
    compared = all(report.command.compares for report in reports) or (
        bool(checked)
        and len(checked) >= len(writing) > 0
        and all(r.logical_bytes == first.logical_bytes for r in checked)
    )
    verified = first.logical_bytes if compared else 0
    file_bytes = _file_bytes(launches, reports)
    found = []
    for operation in dict.fromkeys(row.operation for report in reports for row in report.rows):
        repeats = [
            repeat(
                total=row.total,
                transfer=row.transfer,
                phases={"open": row.open, "close": row.close},
                verified_bytes=verified,
                cached=_cached(launch, report) if operation == "read" else (None, None),
                what=f"{launch.name}: {operation}",
            )
            for launch, report in zip(launches, reports, strict=True)
            for row in report.rows
            if row.operation == operation
        ]
        found.append(
            record(
                job,
                Program(name="ior", version=first.version, verifies=compared),
                repeats,
                benchmark="ior",
                operation=operation,
                interface=INTERFACES[first.api],
                role="baseline" if differs else "main",
                differs=dict(differs or {}),
                collective=first.collective,
                pattern={
                    "file_per_process": first.file_per_process,
                    "segments": first.segments,
                    "block_bytes": first.block_bytes,
                    "transfer_bytes": first.transfer_bytes,
                    "fsync": "e" in writing[0].command.flags if writing else False,
                    "reorder": "C" in reports[-1].command.flags,
                    **({"own": own} if own else {}),
                },
                logical_bytes=first.logical_bytes,
                file_bytes=file_bytes,
                hdf5=first.api_version.partition(" ")[0] if first.api == "HDF5" else None,
            )
        )
    return found


def _cached(launch: Launch, report: Report) -> tuple[float | None, float | None]:
    """What was written by the same launch was in memory when it was read, as far as it still is afterwards."""
    if any(row.operation == "write" for row in report.rows):
        return None, launch.cached_after
    return launch.cached_before_drop, launch.cached_fraction


def _file_bytes(launches: Sequence[Launch], reports: Sequence[Report]) -> int:
    """Size of the files that the last writing launch left. Raises :class:`Refusal` when it kept fewer bytes than it moved."""
    found = 0
    for launch, report in zip(launches, reports, strict=True):
        kept = "k" in report.command.flags and any(row.operation == "write" for row in report.rows)
        if launch.files is None or not kept:
            continue
        name = re.compile(re.escape(report.command.file) + r"(\.\d{8})?")
        found = sum(size for file, size in launch.files.items() if name.fullmatch(file))
        if found < report.logical_bytes:
            raise Refusal(f"{launch.name}: {found} bytes are in its files, {report.logical_bytes} were written")
    return found
