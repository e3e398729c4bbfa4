"""From a Darshan log to a :class:`Summary`, by way of PyDarshan, or a refusal with the reason."""

from __future__ import annotations

import multiprocessing
import os
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timezone
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iogauge.darshan.summary import MODULES, Layer, Module, Slowest, Summary
from iogauge.errors import InputError, Refusal

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

#: Counters that can be added up over files and ranks; the others are sizes, ranks, times of day and the like.
_ADDITIVE = re.compile(
    r"_(OPENS|READS|WRITES|SEEKS|STATS|MMAPS|FSYNCS|FDSYNCS|SYNCS|FLUSHES|VIEWS|BYTES_READ|BYTES_WRITTEN"
    r"|RW_SWITCHES|\w+_NOT_ALIGNED|SIZE_\w+|\w+_SELECTS|USE_MPIIO|USE_MPIIO_COLLECTIVE)$"
)

#: What a process has besides the files that it works on.
_NO_FILES = re.compile(r"^<|^(?:/dev|/proc|/sys)/(?!shm/)")


#: A log is read within this time, or it is none.
_READING_SECONDS = 120


def read_log(*paths: Path, only: str = "", needs: tuple[Module, ...] = ()) -> Summary:
    """The summary of a log, or of the logs of programs that ran one after the other, as if they had been one; ``only`` the
    files whose names match this regular expression.

    Raises :class:`Refusal` for a log that is missing, cut off or no log, that Darshan itself marked as partial, or that has
    nothing of a module in ``needs``; and for logs of different numbers of ranks. :class:`InputError` without PyDarshan.
    """
    for path in paths:
        if not path.is_file():
            raise Refusal(f"Darshan left no log: {path.name} does not exist")
        if path.stat().st_size == 0:
            raise Refusal(f"Darshan's log {path.name} is empty")
    _import_darshan()
    each = [_read_one(path, only, needs) for path in paths]
    if len({summary.ranks for summary in each}) > 1:
        ranks = ", ".join(f"{s.ranks} in {p.name}" for s, p in zip(each, paths, strict=True))
        raise Refusal(f"Darshan's logs are of different numbers of ranks: {ranks}")
    return each[0] if len(each) == 1 else _read_apart(paths, only)


def _read_one(path: Path, only: str, needs: tuple[Module, ...]) -> Summary:
    summary = _read_apart([path], only)
    for module in needs:
        if module not in summary.layers:
            others = ", ".join(summary.layers) or "no module"
            raise Refusal(f"Darshan's log {path.name} has no {module} records of the case's files, only of {others}")
    return summary


def _import_darshan() -> Any:
    try:
        import darshan
    except ImportError as error:
        raise InputError(f"Darshan's logs are read with PyDarshan: pip install 'iogauge[darshan]' ({error})") from error
    return darshan


def _read_apart(paths: Sequence[Path], only: str) -> Summary:
    """Read them in a process of its own: Darshan's library crashes on some logs that are damaged."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryFile() as errors:
        child = context.Process(target=_answer, args=(sender, errors.fileno(), paths, only))
        child.start()
        sender.close()
        try:
            answer = receiver.recv() if receiver.poll(_READING_SECONDS) else None
        except EOFError:
            answer = None
        if child.is_alive() and answer is None:
            child.kill()
        child.join()
        errors.seek(0)
        said = [line.strip() for line in errors.read().decode(errors="replace").splitlines() if "Error:" in line]
    # The library says what it could not read, and goes on with less.
    problem = said[0].removeprefix("Error: ") if said else answer if isinstance(answer, str) else ""
    if not problem and answer is None:
        problem = f"reading it ended with exit code {child.exitcode}"
    if problem:
        raise Refusal(f"Darshan's log {' '.join(p.name for p in paths)} cannot be read: {problem}")
    assert isinstance(answer, Summary)
    return answer


def _answer(sender: Connection, errors: int, paths: Sequence[Path], only: str) -> None:
    """In the process of its own: send a summary, or why there is none."""
    os.dup2(errors, 2)
    try:
        reports = [_import_darshan().DarshanReport(str(path), read_all=False) for path in paths]
        partial = sorted(
            {n for report in reports for n, module in report.modules.items() if module.get("partial_flag")}
        )
        if partial:
            sender.send(
                f"it is partial, no memory was left for all records of {', '.join(partial)} (the runtime's MAX_RECORDS, "
                f"MODMEM and NAMEMEM)"
            )
        else:
            for report in reports:
                if "HEATMAP" in report.modules:
                    report.read_all_heatmap_records()  # the last part of a log: it tells whether the end is there
            sender.send(_summary(reports, only))
    except Exception as error:  # whatever a damaged log makes PyDarshan stumble over is the answer
        sender.send(" ".join(f"{type(error).__name__}: {error}".split()))


def _summary(reports: Sequence[Any], only: str) -> Summary:
    names = set()
    for report in reports:
        report.read_name_records()
        names |= {number for number, name in report.name_records.items() if _chosen(name, only)}
    job = reports[0].metadata["job"]
    ranks = int(job["nprocs"])
    layers = {}
    for module in MODULES:
        records = _records(reports, module)
        layer = _layer(module, records, names, ranks) if records else None
        if layer is not None:
            layers[module] = layer
    return Summary(
        darshan=str(job["metadata"].get("lib_ver", "unknown")),
        ranks=ranks,
        started=datetime.fromtimestamp(job["start_time_sec"], timezone.utc),
        run_seconds=sum(report.metadata["job"]["run_time"] for report in reports),
        command="; ".join(report.metadata["exe"] for report in reports),
        only=only,
        layers=layers,
    )


def _records(reports: Sequence[Any], module: Module) -> dict[str, pd.DataFrame]:
    """Of all logs; a file has the same number in each. Empty: none."""
    import pandas as pd

    found = []
    for report in reports:
        if module in report.modules:
            report.mod_read_all_records(module)
            if len(report.records[module]):
                found.append(report.records[module].to_df())
    return {kind: pd.concat([r[kind] for r in found], ignore_index=True) for kind in ("counters", "fcounters") if found}


def _chosen(name: str, only: str) -> bool:
    return bool(re.search(only, name)) if only else not _NO_FILES.search(name)


def _layer(module: Module, records: dict[str, pd.DataFrame], ids: set[int], ranks: int) -> Layer | None:
    # Identifiers have 64 bits without a sign, which a comparison by columns would lose.
    chosen = [int(number) in ids for number in records["counters"]["id"]]
    counters, times = records["counters"][chosen], records["fcounters"][chosen]
    if counters.empty:
        return None
    prefix = {"MPI-IO": "MPIIO"}.get(module, module)
    sums = {
        name: int(counters[name].clip(lower=0).sum())  # Darshan writes -1 where it does not know
        for name in counters.columns
        if _ADDITIVE.search(name) and not name.endswith("_RANK_BYTES")
    }

    def seconds(kind: str) -> np.ndarray[Any, Any]:
        name = f"{prefix}_F_{kind}_TIME"
        found: np.ndarray[Any, Any] = (times[name] if name in times else times["rank"] * 0.0).to_numpy()
        return found.clip(min=0)

    read, write, metadata = seconds("READ"), seconds("WRITE"), seconds("META")
    total = read + write + metadata
    rank_of, moved = counters["rank"].to_numpy(), _moved(prefix, counters)
    shared = rank_of < 0
    # H5F has no time of the slowest rank: all of them are taken to be alike.
    by_slowest = seconds("SLOWEST_RANK") if f"{prefix}_F_SLOWEST_RANK_TIME" in times else total / ranks
    each = tuple(float(total[rank_of == rank].sum()) for rank in range(ranks))
    sharing = _ranks_of_files(counters["id"].tolist(), rank_of.tolist(), moved, ranks)
    return Layer(
        files=counters["id"].nunique(),
        least_ranks=min(sharing),
        most_ranks=max(sharing),
        counters={name: value for name, value in sums.items() if value},
        read_seconds=read.sum(),
        write_seconds=write.sum(),
        metadata_seconds=metadata.sum(),
        aggregate_seconds=by_slowest[shared].sum() + max(each),
        slowest=_slowest(prefix, counters, moved, by_slowest, each, float(total.sum()) / ranks),
        rank_seconds=() if shared.any() else each,
        alignment_bytes=max(0, int(counters["POSIX_FILE_ALIGNMENT"].max())) if module == "POSIX" else 0,
        common_sizes=_common_sizes(prefix, counters),
    )


def _moved(prefix: str, counters: pd.DataFrame) -> list[int]:
    """Bytes of each record; H5F counts none."""
    if f"{prefix}_BYTES_READ" not in counters:
        return [0] * len(counters)
    read, written = (counters[f"{prefix}_BYTES_{direction}"].clip(lower=0) for direction in ("READ", "WRITTEN"))
    found: list[int] = (read + written).tolist()
    return found


#: A file with less than this part of all bytes is no data file (locks, settings) and says nothing about sharing.
_DATA_FRACTION = 0.01


def _ranks_of_files(files: list[int], rank_of: list[int], moved: list[int], ranks: int) -> list[int]:
    """How many ranks moved bytes of each data file; rank -1 stands for all. Without any bytes, who has a record."""
    users: defaultdict[int, set[int]] = defaultdict(set)
    amount: Counter[int] = Counter()
    for file, rank, count in zip(files, rank_of, moved, strict=True):
        amount[file] += count
        if count or not any(moved):
            users[file] |= {rank} if rank >= 0 else set(range(ranks))
    least = _DATA_FRACTION * sum(moved)
    return [len(members) for file, members in users.items() if amount[file] >= least]


def _slowest(
    prefix: str,
    counters: pd.DataFrame,
    moved: list[int],
    by_slowest: np.ndarray[Any, Any],
    each: tuple[float, ...],
    mean_seconds: float,
) -> Slowest | None:
    """The rank that spent the longest: in files of its own and in those shared ones where it was the slowest.

    Of a shared file the log has no more than that; the other ranks' times are in the mean alone.
    """
    ranks = len(each)
    shared = counters["rank"].to_numpy() < 0
    if shared.any() and f"{prefix}_SLOWEST_RANK" not in counters:
        return None
    seconds, amount = list(each), [0] * ranks
    for number, rank in enumerate(counters["rank"]):
        if rank >= 0:
            amount[rank] += moved[number]
        else:
            rank = int(counters[f"{prefix}_SLOWEST_RANK"].iloc[number])
            seconds[rank] += float(by_slowest[number])
            amount[rank] += max(0, int(counters[f"{prefix}_SLOWEST_RANK_BYTES"].iloc[number]))
    slowest = max(range(ranks), key=lambda rank: seconds[rank])
    return Slowest(
        rank=slowest,
        seconds=seconds[slowest],
        mean_seconds=mean_seconds,
        moved=amount[slowest],
        mean_moved=sum(moved) / ranks,
    )


def _common_sizes(prefix: str, counters: pd.DataFrame) -> tuple[int, ...]:
    """Darshan keeps the four most frequent sizes of a record; of all records together, the four that come first."""
    found: Counter[int] = Counter()
    for place in range(1, 5):
        if f"{prefix}_ACCESS{place}_ACCESS" in counters:
            sizes, counts = counters[f"{prefix}_ACCESS{place}_ACCESS"], counters[f"{prefix}_ACCESS{place}_COUNT"]
            for size, count in zip(sizes, counts, strict=True):
                found[int(size)] += max(0, int(count))
    return tuple(size for size, count in found.most_common(4) if count)
