"""From outputs that somebody kept to rows of the history: a site's past becomes its reference.

What is imported is marked so (``runs.origin``, with the file's name and SHA-256), has no placement and no verdict but *no
reference*: where its ranks were, and how it ended, nobody proves any more. Its rates follow from bytes and seconds all the
same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, select

from iogauge import __version__, layout
from iogauge.adapters import kept
from iogauge.adapters.upstream import Job
from iogauge.commands import Unreadable, run_briefly
from iogauge.errors import InputError, Refusal
from iogauge.history.database import History
from iogauge.history.ingest import Measured, Report, Rows, check_clock
from iogauge.history.schema import IMPORTED, runs
from iogauge.judge import Expectation, Judgement, unjudged
from iogauge.measurement import Measurement, Program, Repeat, Software
from iogauge.night import Case, night_of
from iogauge.sites import FileSystem

#: Files that are written in one transaction.
_BATCH = 200

_NOT_PROVEN = "imported: placement, exit code and page cache are not proven"


@dataclass(frozen=True)
class Given:
    """What the person who has the outputs says of them.

    ``date``: ``text`` (what the outputs tell), ``mtime`` (of the files), or a time for all. ``reads``: ``cold``, from the
    storage; ``cached``, from memory; ``auto``, from memory where there was one node. ``volume`` is what the job guard of a
    check would see of the file system (docs/import.md). ``arm``: whose series it goes into (:func:`iogauge.sites.arm_of`).
    """

    site: str
    file_system: str
    type: str
    volume: str = ""
    arm: str = ""
    nodes: int | None = None
    ranks_per_node: int | None = None
    date: Literal["text", "mtime"] | datetime = "text"
    reads: Literal["auto", "cold", "cached"] = "auto"
    configuration: str = ""
    own: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Imported:
    """One output, ready for the history. ``began_by``: where its time comes from. ``new``: it was not there before."""

    path: Path
    form: str
    report: Report
    began_by: str
    new: bool = True

    @property
    def digest(self) -> str:
        """SHA-256 of its files."""
        return str(self.report.run["sha256"])

    @property
    def measured(self) -> list[tuple[str, Measurement]]:
        """Its series with their measurements."""
        return [(row.key, m) for case in self.report.cases for row, m in case.rows]


@dataclass(frozen=True)
class Refused:
    """One that is not imported, and why."""

    path: Path
    reason: str


def volume_of(file_system: FileSystem) -> str:
    """What the job guard of a check notes of a file system, as this machine sees it. Raises :class:`Unreadable`: not from
    here, or only in a job."""
    if layout.can_be_read(file_system.type):
        raise Unreadable(f"the layout of files on {file_system.type} is part of it")
    code, out, errors = run_briefly(f'df --output=source,fstype,target -- "{file_system.path}"')
    if code:
        raise Unreadable(errors.strip() or f"df {file_system.path} failed")
    return out.splitlines()[-1].strip()


# --- which files ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chosen:
    """The files that are outputs, with their forms; those that were named and are none; how many others lie in the folders."""

    outputs: list[tuple[Path, str]]
    refused: list[Refused]
    others: int


def choose(paths: Sequence[Path]) -> Chosen:
    """Look into files and, at any depth, into folders. Files are known by their content."""
    outputs: dict[Path, str] = {}
    refused: list[Refused] = []
    others = 0
    for path in paths:
        if not path.exists():
            refused.append(Refused(path, "does not exist"))
        for file in _files(path):
            try:
                form = kept.form_of(file)
            except OSError as error:
                refused.append(Refused(file, f"cannot be read: {error.strerror}"))
                continue
            if form:
                outputs[file] = form
            elif path.is_dir():
                others += 1
            else:
                empty = "is empty" if not file.stat().st_size else "is no output that is known"
                refused.append(Refused(file, f"{empty}; known are {kept.KNOWN}"))
    return Chosen(list(outputs.items()), refused, others)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield from [path] if path.is_file() else []
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        yield from (file for name in sorted(names) if (file := Path(folder, name)).is_file())


# --- one output -------------------------------------------------------------------------------------------------------


def read(path: Path, form: str, given: Given) -> Imported:
    """What is in one output. Raises :class:`Refusal` with what is wrong with it or has to be said of it."""
    try:
        found = kept.read(path, form, given.configuration, own=given.own)
        digest = _digest(found[0].files)
        times = [_began(one, path, given) for one in found]
        measured = tuple(_measured(one, began, path, given) for one, (began, _) in zip(found, times, strict=True))
    except InputError as error:
        raise Refusal(str(error)) from error
    except OSError as error:
        raise Refusal(f"cannot be read: {error.strerror}") from error
    started = [int(began.timestamp()) for began, _ in times]
    run = {
        "session": f"import:{given.site}:{digest}",
        "content": f"import:{given.site}:{digest}",
        "site": given.site,
        "suite": "",
        "night": night_of(times[0][0]),
        "started": min(started),
        "finished": max(started),
        "complete": True,
        "cause": "",
        "selected": len(measured),
        "host": "",
        "reframe": "",
        "machine": None,
        "report": str(path.resolve()),
        "notes": [f"imported from {path.name}, {found[0].form}; its time is {times[0][1]}"],
        "origin": IMPORTED,
        "sha256": digest,
    }
    try:
        check_clock(run, path)
    except InputError as error:
        raise Refusal(f"{error.message.partition(';')[0]}; --date TIME says the right one") from error
    return Imported(path, found[0].form, Report(run, measured), times[0][1])


def _digest(files: Sequence[Path]) -> str:
    """Of a file's bytes; of several files together, in their order."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _began(found: kept.Found, path: Path, given: Given) -> tuple[datetime, str]:
    """When it was measured, in local time, and how that is known."""
    if isinstance(given.date, datetime):
        return given.date.astimezone(), "given"
    if given.date == "mtime":
        return datetime.fromtimestamp(path.stat().st_mtime).astimezone(), "the file's"
    if found.began is None:
        raise Refusal(
            f"{_of(found)}does not say when it was measured: give --date mtime (the file's own time), or --date TIME"
        )
    return found.began.astimezone(), "its own"


def _of(found: kept.Found) -> str:
    return f"{found.part}: " if found.part else ""


def _measured(found: kept.Found, began: datetime, path: Path, given: Given) -> Measured:
    nodes, ranks_per_node = _shape(found, given)
    cached = 1.0 if given.reads == "cached" or (given.reads == "auto" and nodes == 1) else None
    job = _job(nodes, ranks_per_node, began, given.versions)
    records = [_with_hdf5(record, given.versions) for record in found.measurements(job, cached)]
    expectation = Expectation(
        file_system=given.file_system,
        type=given.type,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        volume=given.volume,
        arm=given.arm,
    )
    rows = tuple(unjudged(record, expectation) for record in records)
    reasons = [_NOT_PROVEN, *(["not all of the data was verified"] if not all(r.verified for r in records) else [])]
    case = Case(
        name=" ".join(filter(None, (f"imported {found.form}", path.name, found.part))),
        file_system=given.file_system,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        judgement=Judgement(verdict="no reference", reasons=tuple(reasons), placement="", rows=rows),
        seconds=None,
        stage="",
    )
    summary = found.summary and found.summary.model_dump(mode="json", by_alias=True)
    return Measured(case, "", summary, tuple(zip(rows, records, strict=True)), placed=False)


def _with_hdf5(record: Measurement, versions: Mapping[str, str]) -> Measurement:
    """The version that was given, where an output through HDF5 does not tell it."""
    if record.interface != "hdf5" or record.software.hdf5 is not None:
        return record
    return record.model_copy(update={"software": record.software.model_copy(update={"hdf5": versions.get("hdf5")})})


def _shape(found: kept.Found, given: Given) -> tuple[int, int]:
    """Nodes and ranks per node: what the output tells, else what was given. Raises :class:`Refusal` where neither does."""
    ranks = found.ranks
    told = found.ranks_per_node or (found.nodes and -(-ranks // found.nodes))
    given_ranks = given.ranks_per_node or (given.nodes and -(-ranks // given.nodes))
    if not told and not given_ranks and ranks > 1:
        raise Refusal(f"{_of(found)}{ranks} ranks, on how many nodes is not told: give --nodes or --ranks-per-node")
    ranks_per_node = min(told or given_ranks or 1, ranks)
    nodes = -(-ranks // ranks_per_node)
    if not told and given.nodes and given.nodes != nodes:
        raise Refusal(
            f"{_of(found)}{ranks} ranks, {ranks_per_node} on a node, are on {nodes} nodes, not on {given.nodes}"
        )
    if nodes * ranks_per_node != ranks:
        raise Refusal(f"{_of(found)}{ranks} ranks do not fill {nodes} nodes with {ranks_per_node} each")
    return nodes, ranks_per_node


def _job(nodes: int, ranks_per_node: int, began: datetime, versions: Mapping[str, str]) -> Job:
    """Of so many ranks, somewhere: names of hosts and processes stand for what is not known, and are not kept."""
    ranks = range(nodes * ranks_per_node)
    hosts = {f"node{n}": [*range(n * ranks_per_node, (n + 1) * ranks_per_node)] for n in range(nodes)}
    nothing = Repeat(
        open_seconds=None, transfer_seconds=None, flush_seconds=None, close_seconds=None, total_seconds=1.0,
        prepare_seconds=None, least=None, verified_bytes=0, verified_operations=0, mismatches=0,
        cached_fraction_before_drop=None, cached_fraction=None,
    )  # fmt: skip
    return Job(
        Measurement.model_validate(
            {
                "schema": "iogauge.measurement/1", "sweep": None, "benchmark": "import", "operation": "write",
                "program": Program(name="import", version=None, verifies=False), "interface": "posix", "role": "main",
                "differs": {}, "collective": False, "pattern": {}, "logical_bytes": 1, "operations": 0, "file_bytes": 0,
                "ranks": len(ranks), "hosts": hosts, "read_shift": None, "seed": None, "started": began,
                "repeats": (nothing,),
                "placement": tuple(
                    {"rank": rank, "host": f"node{rank // ranks_per_node}", "pid": 1, "cpus": (), "cores": ()}
                    for rank in ranks
                ),
                "software": Software(
                    hdf5=None, mpi=versions.get("mpi"), suite=f"import {__version__}", kernels=None,
                    compiler=versions.get("compiler"),
                ),
            }
        )
    )  # fmt: skip


# --- all of them ------------------------------------------------------------------------------------------------------


def read_all(outputs: Iterable[tuple[Path, str]], given: Given, known: set[str]) -> Iterator[Imported | Refused | None]:
    """Each output in its turn; ``None`` for a file that belongs to one before it. ``known``: digests in the history."""
    seen = set(known)
    units: set[Path] = set()
    for path, form in outputs:
        unit = kept.unit_of(path, form)
        if unit in units:
            yield None
            continue
        units.add(unit)
        try:
            one = read(path, form, given)
        except Refusal as refusal:
            yield Refused(path, str(refusal))
            continue
        yield replace(one, new=one.digest not in seen)
        seen.add(one.digest)


def known_digests(history: History, site: str) -> set[str]:
    """Of what was imported for a site before."""
    if not history.exists():
        return set()
    with history.reading() as connection:
        return _digests(connection, site)


def store(history: History, found: Sequence[Imported], tell: Callable[[int], None] = lambda done: None) -> int:
    """Write them, some hundreds at a time, each of these whole or not at all; returns how many series were measured."""
    count = 0
    for begin in range(0, len(found), _BATCH):
        batch = {one.digest: one.report for one in found[begin : begin + _BATCH]}
        with history.writing() as connection:
            there = _digests(connection, found[0].report.run["site"], list(batch))
            new = [report for digest, report in batch.items() if digest not in there]
            if new:
                rows = Rows(connection, new)
                rows.insert()
                count += len(rows.measurements)
        tell(min(begin + _BATCH, len(found)))
    return count


def _digests(connection: Connection, site: str, among: list[str] | None = None) -> set[str]:
    """Of what was imported for a site before; with ``among`` only of those."""
    query = select(runs.c.sha256).where(runs.c.site == site, runs.c.origin == IMPORTED)
    return set(connection.execute(query if among is None else query.where(runs.c.sha256.in_(among))).scalars())
