"""Outputs of the upstream benchmarks that somebody kept: what a file is, by its content, and the measurements in it.

Nothing but the output is there: no exit code, no placement, nothing of the page cache, and not always the configuration. What
is neither in it nor said by the person who has it is refused, with what to say.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from iogauge.adapters import benchio, h5bench, h5perf, h5perf_serial, hdf5_iotest, ior
from iogauge.adapters.upstream import Job, Launch, Pattern, Printed, record, repeat
from iogauge.darshan.log import read_log
from iogauge.darshan.summary import MODULES, Layer, Module, Summary
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement, Program

#: By the first so many bytes a file is known; job scripts may have said something before.
HEAD_BYTES = 1 << 16

#: No benchmark's output is larger: what is, is data.
MOST_BYTES = 64 << 20

#: At the begin of every Darshan log, behind eight bytes for its version (darshan-log-format.h).
_DARSHAN_MAGIC = 6567223


@dataclass(frozen=True)
class Found:
    """What one file, with those beside it that belong to it, tells; ``nodes``, ``ranks_per_node`` and ``began`` (local time)
    where it does. ``part``: which of several reports in one file. ``measurements`` takes, besides the job, the part of what is
    read that is taken to be in the page cache."""

    form: str
    files: tuple[Path, ...]
    ranks: int
    measurements: Callable[[Job, float | None], list[Measurement]]
    nodes: int | None = None
    ranks_per_node: int | None = None
    began: datetime | None = None
    part: str = ""
    summary: Summary | None = None


def form_of(path: Path) -> str:
    """The name of the form of a file, by its content; empty: none that is known. Raises :class:`OSError`."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if len(head) >= 16 and _DARSHAN_MAGIC in (struct.unpack("<q", head[8:16]) + struct.unpack(">q", head[8:16])):
        return "Darshan"
    text = head.decode(errors="replace")
    return next((form for form, pattern in _FORMS.items() if re.search(pattern, text, re.MULTILINE)), "")


_FORMS = {
    "IOR": r"^IOR-\d\S*: MPI Coordinated Test of Parallel I/O|\A\s*\{\s*(?:\"\w+\": \"[^\"]*\",\s*)*\"Command line\": \"",
    "IOR CSV": r"\Aaccess,bw\(MiB/s\),",
    "h5bench CSV": r"\Ametric, value, unit\s*$",
    "h5bench": r"^=+ Performance Results =+\s*$",
    "hdf5_iotest": r"\Asteps,arrays,rows,cols,scaling,",
    "h5perf": r"^(?:rank 0: )?Number of processes=",
    "h5perf_serial": r"^HDF5 Library: Version ",
    "benchio": r"^\s*Simple Parallel IO benchmark\s*$",
}


def read(path: Path, form: str, configuration: str = "", *, own: bool = False) -> list[Found]:
    """All that a file of that form tells. ``configuration`` is what its benchmark was started with, where the output does not
    tell; ``own``: its series is that of the check which runs this configuration as the site's own.

    Raises :class:`Refusal` with what is wrong or has to be said, :class:`InputError` for a wrong ``configuration``.
    """
    if own and (form not in _WITH_OWN or not configuration):
        raise InputError(f"is for {', '.join(_WITH_OWN)}, with --configuration as the check has it", key="--own")
    if form != "Darshan" and path.stat().st_size > MOST_BYTES:
        raise Refusal(f"{path.stat().st_size} bytes: too large for an output")
    return list(_READERS[form](path, configuration, own))


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def unit_of(path: Path, form: str) -> Path:
    """A name for all the files that belong to one output: those of a folder of h5bench's runner, or of one name before the
    ending."""
    if not form.startswith("h5bench"):
        return path
    return path.parent if (path.parent / "h5bench.cfg").exists() else path.with_suffix("")


def _said_beside(path: Path) -> str:
    """What the program printed into other files than its report, if they lie beside it."""
    endings = ("stdout", "stderr", "out", "err")
    names = dict.fromkeys(f"{stem}.{ending}" for stem in (path.name, path.stem) for ending in endings)
    found = (path.parent / name for name in names if name != path.name)
    return "\n".join(_text(file) for file in found if file.is_file() and file.stat().st_size <= MOST_BYTES)


def _launch(path: Path, stdout: str = "", **fields: object) -> Launch:
    """What was kept; how it ended nobody knows."""
    return replace(Launch(stdout=stdout, exit_code=0, name=path.name, kept=True), **fields)  # type: ignore[arg-type]


def _time(text: str) -> datetime | None:
    """As ctime writes it, in local time."""
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y")
    except ValueError:
        return None


# --- the forms --------------------------------------------------------------------------------------------------------


def _ior(path: Path, configuration: str, own: bool) -> Iterator[Found]:
    text = _text(path)
    if text.lstrip().startswith("{"):
        parts = [text]
    else:
        starts = [match.start() for match in re.finditer(r"^IOR-\d\S*: MPI Coordinated", text, re.MULTILINE)]
        parts = [text[begin:end] for begin, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    for number, part in enumerate(parts, start=1):
        name = f"report {number} of {len(parts)}" if len(parts) > 1 else ""
        report = ior.read_report(part, name or "ior")
        yield _ior_found(path, part, report, None, own_name=_own_ior(report, configuration) if own else "", part=name)


def _own_ior(report: ior.Report, configuration: str) -> str:
    """The name of the check's own command line. Raises :class:`Refusal` where it is not what was run."""
    command = ior.check_command(configuration)
    asked = replace(report, command=command)
    same = (
        command.flags - {"k"} == report.command.flags - {"k"}
        and ior.size(command.values.get("b", "1m")) == report.block_bytes
        and ior.size(command.values.get("t", "256k")) == report.transfer_bytes
        and int(command.values.get("s", "1")) == report.segments
        and command.interface == ior.INTERFACES[asked.api]
    )
    if not same:
        raise Refusal(f"it was run as 'ior {' '.join(report.command.words)}', not as --configuration says")
    return command.name


def _ior_csv(path: Path, configuration: str, own: bool) -> Iterator[Found]:
    if not configuration:
        raise Refusal(
            "IOR's CSV does not say what was run: give --configuration 'THE COMMAND LINE' (as '-a MPIIO -c -w -r -b 4m -t 1m')"
        )
    text = _text(path)
    try:
        command = ior.read_command(configuration.removeprefix("ior "))
    except ValueError as error:
        raise InputError(str(error), key="--configuration") from error
    report = ior.read_csv(text, command)
    yield _ior_found(path, text, report, command, own_name=_own_ior(report, configuration) if own else "")


def _ior_found(
    path: Path, text: str, report: ior.Report, command: ior.CommandLine | None, *, own_name: str, part: str = ""
) -> Found:
    direct = "odirect" in " ".join(report.command.words).lower() or "B" in report.command.values

    def measurements(job: Job, cached: float | None) -> list[Measurement]:
        kept = None if direct else cached
        launch = _launch(
            path, text, stderr=_said_beside(path), cached_before_drop=kept, cached_fraction=kept, cached_after=kept
        )
        return ior.measurements(job, [launch], own=own_name, command=command)

    return Found(
        form=f"IOR {report.version}",
        files=(path,),
        ranks=report.tasks,
        measurements=measurements,
        ranks_per_node=min(report.ranks_per_node, report.tasks) or None,
        began=_time(report.began),
        part=part,
    )


def _h5bench(path: Path, configuration: str, own: bool) -> Iterator[Found]:
    """A CSV or what was printed, with the other one and the configuration beside it, as h5bench's runner leaves them in a
    folder each; or with names that differ in their endings alone."""
    is_csv = form_of(path) == "h5bench CSV"
    settings = _first(path, ("h5bench.cfg", f"{path.stem}.cfg"))
    values = _h5bench_values(_text(settings)) if settings else {}
    named = Path(values.get("CSV_FILE", "h5bench.csv")).name
    table = path if is_csv else _first(path, (named, f"{path.stem}.csv"))
    printed = _first(path, ("stdout", f"{path.stem}.out")) if is_csv else path
    errors = _first(path, ("stderr", f"{path.stem}.err"))
    stdout, csv = _text(printed) if printed else "", _text(table) if table else ""
    ranks = (h5bench.read_csv(csv)[1] if csv else h5bench.read_stdout(stdout)).ranks
    suite = h5bench.read_json(configuration, ranks, "--configuration") if configuration else None
    kind = _h5bench_kind(csv, stdout, values)
    ran = _h5bench_ran(kind, values, stdout, ranks) if values else None
    number, c = _of_suite(suite, kind, ran) if suite else (0, ran)
    if c is None:
        raise Refusal(
            "it does not say what was run: h5bench.cfg has to be beside it, or give --configuration FILE.json"
        )
    checked = replace(c, values={**c.values, "CSV_FILE": "h5bench.csv"}) if csv else c
    name = f"{_own_name(configuration, own)}.{number + 1}" if own else ""

    def measurements(job: Job, cached: float | None) -> list[Measurement]:
        texts = {"h5bench.csv": csv} if csv else {}
        stderr = _text(errors) if errors else ""
        launch = _launch(path, stdout, stderr=stderr, texts=texts, cached_before_drop=cached, cached_fraction=cached)
        return [h5bench.measurement(job, [launch], checked, own=name)]

    files = tuple(file for file in (printed, table, settings) if file is not None)
    yield Found(f"h5bench {kind}", files, ranks, measurements, began=_h5bench_began(path))


def _h5bench_ran(kind: str, values: dict[str, str], stdout: str, ranks: int) -> h5bench.Configuration:
    """By the file that the program read; its mode stands in what it printed."""
    mode = re.search(r"^Mode: (\w+)", stdout, re.MULTILINE)
    known = {key: value for key, value in values.items() if key != "CSV_FILE"} | ({"MODE": mode[1]} if mode else {})
    return h5bench.check_configuration(kind, "particles.h5", known, ranks, "its configuration")


def _of_suite(suite: h5bench.Suite, kind: str, ran: h5bench.Configuration | None) -> tuple[int, h5bench.Configuration]:
    """Which benchmark of a JSON it is: the one of its kind, with the values that are known to have been used."""

    def values(c: h5bench.Configuration) -> dict[str, str]:
        return {key: value for key, value in c.values.items() if key not in ("CSV_FILE", "IO_OPERATION", "MODE")}

    found = [
        (number, c)
        for number, c in enumerate(suite.benchmarks)
        if c.kind == kind and (ran is None or values(c) == values(ran))
    ]
    if len(found) != 1:
        raise Refusal(f"{len(found)} benchmarks of --configuration can be it ({kind}), where one is expected")
    return found[0]


def _first(path: Path, names: Sequence[str]) -> Path | None:
    return next((found for name in names if (found := path.parent / name) != path and found.is_file()), None)


def _h5bench_values(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line.strip()]
    if any("=" not in line for line in lines):
        raise Refusal("its configuration has lines that are not KEY=VALUE")
    return {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}


def _h5bench_kind(csv: str, stdout: str, values: dict[str, str]) -> str:
    """As h5bench's runner names it."""
    if csv:
        operation = h5bench.read_csv(csv)[0]
        return operation.replace(" ", "-") if operation == "write unlimited" else operation
    asked = values.get("IO_OPERATION", "WRITE").lower()
    if asked != "write":
        return asked
    if "Raw read time" in stdout:
        return "read"
    if re.search(r"^Number of particles in rank \d+ = ", stdout, re.MULTILINE):
        return "write_var_normal_dist"
    return "write" if "Start benchmark: h5bench_write" in stdout else "write-unlimited"


def _h5bench_began(path: Path) -> datetime | None:
    """When its runner began it, in the log that this keeps beside its configuration or its folder of results."""
    for log in [*path.parent.parent.glob("*-h5bench.log"), *path.parent.parent.parent.glob("*-h5bench.log")]:
        told = re.search(rf"^(\S+ [\d:]+),\d+ .* DIR: \S*/{re.escape(path.parent.name)}/\s*$", _text(log), re.MULTILINE)
        if told:
            return datetime.strptime(told[1], "%Y-%m-%d %H:%M:%S")
    return None


def _hdf5_iotest(path: Path, configuration: str, own: bool) -> Iterator[Found]:
    text = _text(path)
    if configuration:
        ini = re.sub(r"(?m)^(hdf5-file\s*[=:]\s*).*", r"\1tiles.h5", configuration)
        ini = re.sub(r"(?m)^(csv-file\s*[=:]\s*).*", r"\1tiles.csv", ini)
        settings = hdf5_iotest.read_ini(ini, hdf5_iotest.ranks_of(text), "--configuration")
    else:
        settings = hdf5_iotest.configuration_of(text)

    def measurements(job: Job, cached: float | None) -> list[Measurement]:
        launch = _launch(path, texts={settings.csv_file: text}, cached_after=cached)
        return hdf5_iotest.measurements(job, [launch], settings, own=_own_name(configuration, own))

    yield Found("hdf5_iotest", (path,), settings.ranks, measurements)


def _h5perf(path: Path, configuration: str, own: bool) -> Iterator[Found]:
    text = _text(path)
    report = h5perf.read_report(text)

    def measurements(job: Job, cached: float | None) -> list[Measurement]:
        main = "phdf5" if "phdf5" in report.results else next(iter(report.results))
        return h5perf.measurements(job, [_launch(path, text, cached_after=cached)], report.case, main=main)

    yield Found(f"h5perf {report.version}", (path,), report.ranks, measurements)


def _h5perf_serial(path: Path, configuration: str, own: bool) -> Iterator[Found]:
    report = h5perf_serial.read_report(_text(path))
    yield Found(
        f"h5perf_serial {report.version}",
        (path,),
        1,
        lambda job, cached: h5perf_serial.measurements(job, report, cached),
    )


def _benchio(path: Path, configuration: str, own: bool) -> Iterator[Found]:
    text = _text(path)
    report = benchio.read_report(text)
    if not configuration:
        size = " ".join(map(str, report.array))
        raise Refusal(
            f"benchio does not say whether its size was that of a rank or of all: give --configuration 'ITS ARGUMENTS' (as "
            f"'{size} local mpiio unstriped')"
        )
    arguments = benchio.check_arguments(configuration.removeprefix("benchio "), report.ranks)

    def measurements(job: Job, cached: float | None) -> list[Measurement]:
        name = _own_name(configuration, own)
        return benchio.measurements(job, [_launch(path, text)], arguments, proof=None, own=name)

    yield Found("benchio", (path,), report.ranks, measurements, nodes=report.nodes)


# --- Darshan ----------------------------------------------------------------------------------------------------------

_INTERFACES = {"H5D": "hdf5", "MPI-IO": "mpiio", "POSIX": "posix", "STDIO": "posix"}


def _darshan(path: Path, configuration: str, own: bool) -> Iterator[Found]:
    summary = read_log(path)
    moving = [m for m in MODULES if m in summary.layers and summary.layers[m].aggregate_mib_s is not None]
    if not moving:
        raise Refusal("its log has no bytes that were moved in a time that was told")

    def measurements(job: Job, cached: float | None) -> list[Measurement]:
        return [_of_log(job, path, summary, moving[0], cached)]

    began = summary.started.astimezone().replace(tzinfo=None)
    yield Found(f"Darshan {summary.darshan}", (path,), summary.ranks, measurements, began=began, summary=summary)


def _of_log(job: Job, path: Path, summary: Summary, module: Module, cached: float | None) -> Measurement:
    """All that a program moved in the uppermost module that moved any, in the time of its slowest rank (Darshan's
    ``agg_time_by_slowest``)."""
    layer = summary.layers[module]
    operation = "write" if not layer.bytes_read else "read" if not layer.bytes_written else "io"
    pattern: Pattern = {"program": _program(summary.command), "module": module}
    seconds = Printed(layer.aggregate_seconds, 1e-6)
    read = (cached, cached) if operation == "read" else (None, None)
    return record(
        job,
        Program(name="darshan", version=summary.darshan, verifies=False),
        [repeat(total=seconds, cached=read, what=path.name)],
        benchmark="darshan",
        operation=operation,
        interface=_INTERFACES[module],
        collective=_is_collective(summary.layers.get("MPI-IO")),
        pattern=pattern,
        logical_bytes=layer.bytes_read + layer.bytes_written,
        file_bytes=0,
        hdf5=None,
    )


def _program(command: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+]", "_", Path((command.split() or ["unknown"])[0]).name) or "unknown"


def _is_collective(layer: Layer | None) -> bool:
    return layer is not None and bool(layer["COLL_READS"] + layer["COLL_WRITES"])


_READERS: dict[str, Callable[[Path, str, bool], Iterator[Found]]] = {
    "Darshan": _darshan,
    "IOR": _ior,
    "IOR CSV": _ior_csv,
    "h5bench": _h5bench,
    "h5bench CSV": _h5bench,
    "hdf5_iotest": _hdf5_iotest,
    "h5perf": _h5perf,
    "h5perf_serial": _h5perf_serial,
    "benchio": _benchio,
}

#: The forms, for people.
KNOWN = ", ".join(_READERS)

#: Whose checks run a site's own configuration.
_WITH_OWN = ("IOR", "IOR CSV", "h5bench", "h5bench CSV", "hdf5_iotest", "benchio")


def _own_name(configuration: str, own: bool) -> str:
    """As the checks name it."""
    return hashlib.sha256(configuration.encode()).hexdigest()[:8] if own else ""
