"""How fast the history is: a report of 2,000 cases taken in, and ten years of 500 series read. Prints what it measured.

    .venv/bin/python bench/history.py FOLDER [postgresql://USER@HOST/DATABASE]

FOLDER gets the report and the SQLite databases (about 1.5 GB); a PostgreSQL database has to be empty.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from run_reports import STARTED, entry, records, report, written
from sqlalchemy import Table, insert

from iogauge.errors import InputError
from iogauge.history.database import History
from iogauge.history.ingest import ingest
from iogauge.history.reading import list_series, read_measurements
from iogauge.history.schema import cases, evidence, measurements, runs, series, software

CASES = 2000
SERIES = 500
NIGHTS = 3650
REPEATS = 7
NAMES = [f"particles/write/fs{number}/4x16/CC/hdf5" for number in range(SERIES)]


def measured(what: str, work: Callable[[], Any]) -> Any:
    """Do it in a process of its own, and print its time, the CPU's, and the most memory that it had."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        begin = time.perf_counter()
        try:
            result = work()
        except InputError as error:
            print(error, file=sys.stderr)
            os._exit(2)
        seconds, busy = time.perf_counter() - begin, time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        os.write(writing, json.dumps([seconds, busy, peak, result]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        sys.exit(2)
    seconds, busy, peak, result = json.loads(text)
    print(f"{what:<70} {seconds:7.2f} s ({busy:5.2f} s of CPU)  {peak:6.0f} MiB at most", flush=True)
    return result


def big_report(path: Path) -> Path:
    """A report of CASES cases, each with a write and a read through three interfaces, REPEATS repeats."""
    if not path.exists():
        one = json.dumps(entry(records("write", "read", count=REPEATS), file_system="disk"))
        made = [json.loads(one.replace("/disk/", f"/disk{number}/")) for number in range(CASES)]
        for number, case in enumerate(made):
            case["file_system"] = f"disk{number}"
            case["display_name"] = f"ParticlesCheck {number}"
        written(path, report(made))
    print(f"{path}: {CASES} cases, {path.stat().st_size >> 20} MiB")
    return path


def fill(history: History, names: Sequence[str] = NAMES) -> None:
    """NIGHTS nights of the SERIES series ``names``, without ReFrame's reports."""
    begin = int(STARTED.timestamp()) - NIGHTS * 86400
    with history.writing() as connection:

        def add(table: Table, rows: list[dict[str, Any]]) -> None:
            connection.execute(insert(table), rows)

        add(
            software,
            [{"id": 1, "digest": "1", "versions": {"hdf5": "1.14.5", "mpi": "m", "suite": "s", "kernels": "k"}}],
        )
        common = {"site": "here", "fingerprint": "abcdef01", "unit": "MiB/s"}
        add(series, [{"id": i + 1, "key": n, "file_system": n.split("/")[2], **common} for i, n in enumerate(names)])
        for night in range(NIGHTS):
            number, started = night + 1, begin + night * 86400
            add(runs, [_run(number, started)])
            add(cases, [_case(number)])
            keys = [{"series_id": i + 1, "started": started + i, "case_id": number} for i in range(SERIES)]
            add(measurements, [key | _measurement(number, key["series_id"]) for key in keys])
            add(evidence, [key | _EVIDENCE for key in keys])


def _run(number: int, started: int) -> dict[str, Any]:
    night = date(2016, 1, 1) + timedelta(days=number)
    texts = dict.fromkeys(("cause", "host", "reframe", "report"), "") | {"site": "here", "suite": "nightly"}
    names = {"session": uuid.uuid4().hex, "content": uuid.uuid4().hex}
    times = {"night": night, "started": started, "finished": started + 3600, "ingested": started}
    return {"id": number, **names, **texts, **times, "complete": True, "selected": SERIES, "machine": None, "notes": []}


def _case(number: int) -> dict[str, Any]:
    texts = dict.fromkeys(("name", "file_system", "partition", "environ", "layout", "stage"), "")
    sizes = {"nodes": 4, "ranks_per_node": 16, "seconds": 1.0, "placement_id": None, "darshan": None}
    return {"id": number, "run_id": number, "verdict": "pass", "reasons": [], **texts, **sizes}


def _measurement(run: int, one: int) -> dict[str, Any]:
    seconds = [0.5 + ((run * 7919 + one * 104729 + repeat * 31) % 100003) / 1e6 for repeat in range(REPEATS)]
    words = {"role": "main", "verdict": "pass", "cached": False}
    return {
        "run_id": run,
        "software_id": 1,
        **words,
        "amount": 64.0,
        "observed": 64.0 / min(seconds),
        "total_seconds": seconds,
    }


_EVIDENCE: dict[str, Any] = {
    **{f"{phase}_seconds": [0.123456789] * REPEATS for phase in ("open", "transfer", "flush", "close", "prepare")},
    "least_total_seconds": [0.123456789] * REPEATS,
    "cached_fraction": None,
    "ratios": [
        {"name": "to_mpiio", "metric": "observed", "value": 0.9, "spread": 0.1, "pairs": [0.912345678] * REPEATS}
    ],
}


def read_all(history: History) -> int:
    """Every repeat of every night, series by series."""
    with history.reading() as connection:
        return sum(len(one.rates) for one in read_measurements(connection, list_series(connection)))


def read_one(history: History) -> int:
    """The nights of one series."""
    with history.reading() as connection:
        return sum(map(len, read_measurements(connection, list_series(connection)[:1])))


def _added(location: str, path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "a report taken in", lambda: ingest(History(location), path).measurements
    yield "the same report again", lambda: ingest(History(location), path).added


def main() -> None:
    """Measure."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    path = big_report(folder / "report.json")
    decade = folder / "decade.sqlite"
    small = folder / "small.sqlite"
    small.unlink(missing_ok=True)
    for what, work in _added(str(small), path):
        measured(f"SQLite: {what}", work)
    if not decade.exists():
        measured("SQLite: ten years made (not a promise)", lambda: fill(History(str(decade))))
    print(f"{decade}: {SERIES} series, {SERIES * NIGHTS} measurements, {decade.stat().st_size >> 20} MiB")
    measured("SQLite: ten years read", lambda: read_all(History(str(decade))))
    measured("SQLite: one series read", lambda: read_one(History(str(decade))))
    measured("SQLite: a report taken in beside ten years", lambda: ingest(History(str(decade)), path).added)
    for url in sys.argv[2:]:
        for what, work in _added(url, path):
            measured(f"PostgreSQL: {what}", work)


if __name__ == "__main__":
    main()
