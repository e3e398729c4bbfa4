"""From a Darshan log to a :class:`Summary`, by way of PyDarshan, or a refusal with the reason."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

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


def read_log(path: Path, *, only: str = "", needs: tuple[Module, ...] = ()) -> Summary:
    """The summary of a log; ``only`` the files whose names match this regular expression.

    Raises :class:`Refusal` for a log that is missing, cut off or no log, that Darshan itself marked as partial, or that has
    nothing of a module in ``needs``; :class:`InputError` without PyDarshan.
    """
    report = _open(path)
    partial = sorted(name for name, module in report.modules.items() if module.get("partial_flag"))
    if partial:
        raise Refusal(
            f"Darshan's log {path.name} is partial: no memory was left for all records of {', '.join(partial)} "
            f"(MAX_RECORDS, MODMEM and NAMEMEM of the runtime)"
        )
    try:
        summary = _summary(report, only)
    except (ValidationError, ValueError, KeyError, RuntimeError) as error:
        raise Refusal(f"Darshan's log {path.name} cannot be read: {' '.join(str(error).split())}") from error
    for module in needs:
        if module not in summary.layers:
            others = ", ".join(summary.layers) or "no module"
            raise Refusal(f"Darshan's log {path.name} has no {module} records of the case's files, only of {others}")
    return summary


def _open(path: Path) -> Any:
    """PyDarshan's report of a file that is one."""
    if not path.is_file():
        raise Refusal(f"Darshan left no log: {path.name} does not exist")
    if path.stat().st_size == 0:
        raise Refusal(f"Darshan's log {path.name} is empty")
    try:
        import darshan
    except ImportError as error:
        raise InputError(f"Darshan's logs are read with PyDarshan: pip install 'iogauge[darshan]' ({error})") from error
    try:
        return darshan.DarshanReport(str(path), read_all=False)
    except (RuntimeError, ValueError, KeyError, UnicodeDecodeError) as error:
        raise Refusal(f"{path.name} is no complete Darshan log: {error}") from error


def _summary(report: Any, only: str) -> Summary:
    report.read_name_records()
    names = {number: name for number, name in report.name_records.items() if _chosen(name, only)}
    job = report.metadata["job"]
    ranks = int(job["nprocs"])
    layers = {}
    for module in MODULES:
        if module in report.modules:
            report.mod_read_all_records(module)
            if len(report.records[module]):
                layer = _layer(module, report.records[module].to_df(), set(names), ranks)
                if layer is not None:
                    layers[module] = layer
    return Summary(
        darshan=str(job["metadata"].get("lib_ver", "unknown")),
        ranks=ranks,
        started=datetime.fromtimestamp(job["start_time_sec"], timezone.utc),
        run_seconds=job["run_time"],
        command=report.metadata["exe"],
        only=only,
        layers=layers,
    )


def _chosen(name: str, only: str) -> bool:
    return bool(re.search(only, name)) if only else not _NO_FILES.search(name)


def _layer(module: Module, records: dict[str, pd.DataFrame], ids: set[int], ranks: int) -> Layer | None:
    counters, times = (table[table["id"].isin(ids)] for table in (records["counters"], records["fcounters"]))
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
    sharing = _ranks_of_files(counters, ranks)
    rank_of = counters["rank"].to_numpy()
    shared = rank_of < 0
    # H5F has no time of the slowest rank: all of them are taken to be alike.
    by_slowest = seconds("SLOWEST_RANK") if f"{prefix}_F_SLOWEST_RANK_TIME" in times else total / ranks
    each = tuple(float(total[rank_of == rank].sum()) for rank in range(ranks)) if not shared.all() else (0.0,) * ranks
    return Layer(
        files=len(sharing),
        least_ranks=min(sharing.values()),
        most_ranks=max(sharing.values()),
        counters={name: value for name, value in sums.items() if value},
        read_seconds=read.sum(),
        write_seconds=write.sum(),
        metadata_seconds=metadata.sum(),
        aggregate_seconds=by_slowest[shared].sum() + max(each),
        slowest=_slowest(prefix, counters[shared], by_slowest[shared], each, total.sum() / ranks),
        rank_seconds=() if shared.any() else each,
        alignment_bytes=max(0, int(counters["POSIX_FILE_ALIGNMENT"].max())) if module == "POSIX" else 0,
        common_sizes=_common_sizes(prefix, counters),
    )


def _ranks_of_files(counters: pd.DataFrame, ranks: int) -> dict[int, int]:
    """File to the number of ranks that have a record of it; rank -1 stands for all."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for number, rank in zip(counters["id"], counters["rank"], strict=True):
        found[number] |= {rank} if rank >= 0 else set(range(ranks))
    return {number: len(members) for number, members in found.items()}


def _slowest(
    prefix: str, shared: pd.DataFrame, shared_seconds: np.ndarray[Any, Any], each: tuple[float, ...], mean: float
) -> Slowest | None:
    """The rank that spent the longest: in files of its own and in those shared ones where it was the slowest."""
    spent = dict(enumerate(each))
    if f"{prefix}_SLOWEST_RANK" in shared:
        for rank, seconds in zip(shared[f"{prefix}_SLOWEST_RANK"], shared_seconds, strict=True):
            spent[int(rank)] += float(seconds)
    elif len(shared):
        return None
    rank = max(spent, key=lambda number: spent[number])
    return Slowest(rank=rank, seconds=spent[rank], mean_seconds=float(mean))


def _common_sizes(prefix: str, counters: pd.DataFrame) -> tuple[int, ...]:
    """Darshan keeps the four most frequent sizes of a record; of all records together, the four that come first."""
    found: Counter[int] = Counter()
    for place in range(1, 5):
        if f"{prefix}_ACCESS{place}_ACCESS" in counters:
            sizes, counts = counters[f"{prefix}_ACCESS{place}_ACCESS"], counters[f"{prefix}_ACCESS{place}_COUNT"]
            for size, count in zip(sizes, counts, strict=True):
                found[int(size)] += max(0, int(count))
    return tuple(size for size, count in found.most_common(4) if count)
