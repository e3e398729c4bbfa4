"""The part of a fingerprint that Darshan's logs have in common with the counter: numbers and bytes of calls by Darshan's
kinds, files together, and access sizes by its bins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from iogauge.darshan.log import read_log
from iogauge.darshan.summary import Summary
from iogauge.errors import InputError, Refusal
from iogauge.fingerprint.model import Calls, File, Fingerprint, Spread

#: The name that all files of a case have together.
ALL_FILES = "all files"

#: Darshan's counters by our kinds of calls, and the calls of the counter that are of this kind. Stats are left out: with the
#: C library's newer names for them Darshan counts none.
_KINDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "open": (("POSIX_OPENS",), r"open|open to create|creat"),
    "read": (("POSIX_READS",), r"p?readv?"),
    "write": (("POSIX_WRITES",), r"p?writev?"),
    "lseek": (("POSIX_SEEKS",), r"lseek"),
    "mmap": (("POSIX_MMAPS",), r"mmap"),
    "fsync": (("POSIX_FSYNCS",), r"fsync"),
    "fdatasync": (("POSIX_FDSYNCS",), r"fdatasync"),
    "MPI_File_open": (("MPIIO_INDEP_OPENS", "MPIIO_COLL_OPENS"), r"MPI_File_open"),
    "MPI_File_read": (("MPIIO_INDEP_READS",), r"MPI_File_read(_at|_shared)?"),
    "MPI_File_read_all": (("MPIIO_COLL_READS",), r"MPI_File_read(_at_all|_all|_ordered)"),
    "MPI_File_read_all_begin": (("MPIIO_SPLIT_READS",), r"MPI_File_read\w*_begin"),
    "MPI_File_iread": (("MPIIO_NB_READS",), r"MPI_File_iread\w*"),
    "MPI_File_write": (("MPIIO_INDEP_WRITES",), r"MPI_File_write(_at|_shared)?"),
    "MPI_File_write_all": (("MPIIO_COLL_WRITES",), r"MPI_File_write(_at_all|_all|_ordered)"),
    "MPI_File_write_all_begin": (("MPIIO_SPLIT_WRITES",), r"MPI_File_write\w*_begin"),
    "MPI_File_iwrite": (("MPIIO_NB_WRITES",), r"MPI_File_iwrite\w*"),
    "MPI_File_sync": (("MPIIO_SYNCS",), r"MPI_File_sync"),
    "MPI_File_set_view": (("MPIIO_VIEWS",), r"MPI_File_set_view"),
}

#: Of POSIX alone Darshan's bytes and bins are of one kind of call. Those of reads are left out: Darshan counts what was there,
#: the counter what was asked for, and at the end of a file that another rank is writing the former is another each time.
_BYTES = {"write": "WRITTEN"}


def from_logs(paths: Sequence[Path], *, only: str, kernel: str, pattern: str, hdf5: str | None) -> Fingerprint:
    """Of the logs of one run; ``only``: files whose names match. Raises :class:`InputError` for what is no complete log."""
    try:
        summary = read_log(*paths, only=only)
    except Refusal as refusal:
        raise InputError(str(refusal), file=paths[0]) from refusal
    if not summary.layers:
        raise InputError("has no records of such files", file=paths[0])
    return from_summary(summary, kernel=kernel, pattern=pattern, hdf5=hdf5)


def from_summary(summary: Summary, *, kernel: str, pattern: str, hdf5: str | None) -> Fingerprint:
    """Of what was read from a log."""
    counters = {name: value for layer in summary.layers.values() for name, value in layer.counters.items()}
    calls = {}
    for kind, (names, _) in _KINDS.items():
        total = sum(counters.get(name, 0) for name in names)
        if total:
            calls[kind] = _calls(kind, total, counters)
    posix = summary.layers.get("POSIX")
    return Fingerprint(
        source="darshan",
        kernel=kernel,
        pattern=pattern,
        ranks=summary.ranks,
        hdf5=hdf5,
        mpi=None,
        runs=1,
        files={ALL_FILES: File(count=posix.files if posix else None, calls={"any": calls})},
    )


def _calls(kind: str, total: int, counters: Mapping[str, int]) -> Calls:
    if kind not in _BYTES:
        return Calls(calls=Spread(total=total))
    prefix = f"POSIX_SIZE_{kind.upper()}_"
    bins = {name.removeprefix(prefix): value for name, value in counters.items() if name.startswith(prefix) and value}
    return Calls(
        calls=Spread(total=total), bytes=Spread(total=counters.get(f"POSIX_BYTES_{_BYTES[kind]}", 0)), bins=bins
    )


def as_darshan_tells(fingerprint: Fingerprint) -> Fingerprint:
    """A fingerprint of the counter, as Darshan would tell of it: what both have in common can be compared then."""
    if fingerprint.source == "darshan":
        return fingerprint
    merged: dict[str, Calls] = {}
    for file in fingerprint.files.values():
        for name, calls in (item for each in file.calls.values() for item in each.items()):
            kind = _kind(name)
            if kind is not None and calls.calls is not None:
                merged[kind] = _added(merged.get(kind), calls, kind)
    numbers = [file.count for file in fingerprint.files.values() if file.count is not None]
    return fingerprint.model_copy(
        update={
            "files": {ALL_FILES: File(count=sum(numbers), calls={"any": dict(sorted(merged.items()))})},
            "layouts": {},
        }
    )


def _kind(name: str) -> str | None:
    call, _, part = name.partition(", ")
    if part.startswith("failed"):
        return None
    return next((kind for kind, (_, calls) in _KINDS.items() if re.fullmatch(calls, call)), None)


def _added(before: Calls | None, calls: Calls, kind: str) -> Calls:
    """Numbers of the same kind; sizes where Darshan has them, too."""
    mine = before or Calls(calls=Spread(total=0), bytes=Spread(total=0), bins={})
    assert mine.calls is not None
    assert calls.calls is not None
    number = Spread(total=mine.calls.total + calls.calls.total)
    if kind not in _BYTES or None in (mine.bytes, calls.bytes, mine.bins, calls.bins):
        return Calls(calls=number)
    assert mine.bytes is not None
    assert calls.bytes is not None
    assert mine.bins is not None
    assert calls.bins is not None
    bins = {name: mine.bins.get(name, 0) + calls.bins.get(name, 0) for name in (*mine.bins, *calls.bins)}
    return Calls(calls=number, bytes=Spread(total=mine.bytes.total + calls.bytes.total), bins=bins)
