"""The history as one table with a row for each repeat, for other programs: Parquet or CSV."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyarrow import csv, parquet
from sqlalchemy import Connection, select

from iogauge.errors import InputError
from iogauge.history.reading import list_series
from iogauge.history.schema import cases, evidence, measurements, placements, runs, series, software

#: Measurements that are made into rows at a time.
_BATCH = 5_000

_PHASES = ("open_seconds", "transfer_seconds", "flush_seconds", "close_seconds", "prepare_seconds")

TABLE = pa.schema(
    [
        ("site", pa.string()),
        ("suite", pa.string()),
        ("night", pa.date32()),
        ("started", pa.timestamp("s", tz="UTC")),
        ("session", pa.string()),
        ("origin", pa.string()),
        ("key", pa.string()),
        ("fingerprint", pa.string()),
        ("role", pa.string()),
        ("verdict", pa.string()),
        ("cached", pa.bool_()),
        ("hosts", pa.int32()),
        ("ranks", pa.int32()),
        ("hdf5", pa.string()),
        ("mpi", pa.string()),
        ("iogauge", pa.string()),
        ("kernels", pa.string()),
        ("spack", pa.string()),
        ("spack_arm", pa.string()),
        ("unit", pa.string()),
        ("amount", pa.float64()),
        ("repeat", pa.int32()),
        ("observed", pa.float64()),
        ("raw", pa.float64()),
        ("total_seconds", pa.float64()),
        *((name, pa.float64()) for name in _PHASES),
        ("least_total_seconds", pa.float64()),
        ("cached_fraction", pa.float64()),
    ]
)


def export(connection: Connection, path: Path, site: str | None = None) -> int:
    """Write every repeat of every measurement to ``path`` (``.parquet`` or ``.csv``), whole or not at all; returns the rows.

    Columns are those of ``TABLE``; rates in ``unit``. Invalid and skipped cases have no rates, and no rows.
    """
    writers = {".parquet": parquet.ParquetWriter, ".csv": csv.CSVWriter}
    if path.suffix not in writers:
        raise InputError("a name that ends in .parquet or .csv is expected", file=path)
    if site is not None and not list_series(connection, site):
        known = ", ".join(sorted({one.site for one in list_series(connection)})) or "none"
        raise InputError(f"no series of {site!r} in the history; it has those of: {known}", key="--site")
    count = 0
    with _whole(path) as file, writers[path.suffix](file, TABLE) as writer:
        for rows in _batches(connection, site):
            writer.write_table(pa.Table.from_pylist(rows, TABLE))
            count += len(rows)
    return count


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` when all went well; a link stays one."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise InputError("is not a regular file; it or a new one is expected", file=path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from error
    with os.fdopen(handle, "wb") as file:
        try:
            yield file
            file.close()
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _batches(connection: Connection, site: str | None) -> Iterator[list[dict[str, Any]]]:
    names = {row.id: row for row in list_series(connection, site)}
    versions = {row.id: row.versions for row in connection.execute(select(software))}
    by_run = {row.id: row for row in connection.execute(select(runs))}
    ranks = {row.id: list(row.hosts.values()) for row in connection.execute(select(placements))}
    same = (
        (measurements.c.series_id == evidence.c.series_id)
        & (measurements.c.started == evidence.c.started)
        & (measurements.c.case_id == evidence.c.case_id)
    )
    query = (
        select(measurements, evidence, cases.c.placement_id, cases.c.nodes, cases.c.ranks_per_node)
        .join(evidence, same)
        .join(cases, cases.c.id == measurements.c.case_id)
        .order_by(measurements.c.series_id, measurements.c.started, measurements.c.case_id)
    )
    if site is not None:
        query = query.where(measurements.c.series_id.in_(select(series.c.id).where(series.c.site == site)))
    result = connection.execution_options(stream_results=True).execute(query)
    for batch in iter(lambda: result.fetchmany(_BATCH), []):
        yield [
            repeat
            for row in batch
            for repeat in _repeats(
                row,
                names[row.series_id],
                by_run[row.run_id],
                versions[row.software_id],
                ranks.get(row.placement_id, [row.ranks_per_node] * row.nodes),
            )
        ]


def _repeats(row: Any, one: Any, run: Any, versions: dict[str, Any], ranks: list[int]) -> Iterator[dict[str, Any]]:
    common = {
        "site": one.site,
        "suite": run.suite,
        "night": run.night,
        "started": row.started,
        "session": run.session,
        "origin": run.origin,
        "key": one.key,
        "fingerprint": one.fingerprint,
        "role": row.role,
        "verdict": row.verdict,
        "cached": row.cached,
        "hosts": len(ranks),
        "ranks": sum(ranks),
        "hdf5": versions["hdf5"],
        "mpi": versions["mpi"],
        "iogauge": versions["suite"],
        "kernels": versions["kernels"],
        "spack": versions.get("spack"),  # unknown to nights that were taken in before it was told
        "spack_arm": versions.get("spack_arm"),
        "unit": one.unit,
        "amount": row.amount,
    }
    for number, total in enumerate(row.total_seconds):
        transfer = row.transfer_seconds[number]  # upstream benchmarks do not all tell it
        yield common | {
            "repeat": number,
            "observed": row.amount / total,
            "raw": None if transfer is None else row.amount / transfer,
            "total_seconds": total,
            **{name: getattr(row, name)[number] for name in _PHASES},
            "least_total_seconds": row.least_total_seconds[number],
            "cached_fraction": row.cached_fraction[number] if row.cached_fraction else None,
        }
