"""ReFrame's run reports as our checks make them, of any size, from records like the kernels'."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from samples import baseline, judgement, record

from iogauge.darshan.profile import Profile
from iogauge.darshan.summary import Layer, Summary
from iogauge.darshan.witness import Witness
from iogauge.judge import Judgement, invalid

STARTED = datetime(2026, 3, 1, 2, 0, tzinfo=timezone.utc)


def records(
    *operations: str, started: datetime = STARTED, software: dict[str, str] | None = None, **changes: Any
) -> list[dict[str, Any]]:
    """Records of a case with its MPI-IO and POSIX baselines; ``changes`` as of :func:`samples.record`."""
    made = []
    for operation in operations:
        main = record(operation, **changes)
        made += [main, baseline(main, interface="mpiio", slower=0.9), baseline(main, interface="posix", slower=0.8)]
    for one in made:
        one["started"] = started.strftime("%Y-%m-%dT%H:%M:%SZ")
        one["software"] = one["software"] | (software or {})
    return made


def entry(
    made: Sequence[dict[str, Any]], *, file_system: str = "disk", name: str = "", judged: Judgement | None = None
) -> dict[str, Any]:
    """A test case of a run report, as the check leaves it."""
    found = judged or judgement(*made, file_system=file_system)
    return {
        "display_name": name or f"ParticlesCheck %file_system={file_system}",
        "fixture": False,
        "result": "pass" if found.verdict not in ("invalid", "regressed") else "fail",
        "system": "here",
        "partition": "default",
        "environ": "default",
        "file_system": file_system,
        "nodes": 1,
        "ranks_per_node": 2,
        "measurements": list(made),
        "judgement": found.model_dump(mode="json"),
        "time_run": 2.5,
        "stagedir": "/runs/stage/case",
        "outputdir": "/runs/output/case",
        "fail_phase": None,
        "fail_reason": None,
    }


def profiled(case: dict[str, Any], seconds: float = 1.0) -> dict[str, Any]:
    """The case, run under Darshan: it wrote for so many seconds."""
    layer = Layer(
        files=1,
        least_ranks=2,
        most_ranks=2,
        counters={"POSIX_WRITES": 64, "POSIX_BYTES_WRITTEN": 1 << 26},
        read_seconds=0,
        write_seconds=seconds,
        metadata_seconds=0,
        aggregate_seconds=seconds,
        slowest=None,
    )
    summary = Summary.model_validate(
        {
            "darshan": "3.5.0",
            "ranks": 2,
            "started": STARTED,
            "run_seconds": 2,
            "command": "particles",
            "layers": {"POSIX": layer},
        }
    )
    profile = Profile(log="case.darshan", summary=summary, findings=(), witness=Witness(agrees=None, text="none"))
    case["judgement"]["profile"] = profile.model_dump(mode="json", by_alias=True)
    return case


def skipped_entry(reason: str = "12 GiB do not fit", name: str = "Skipped") -> dict[str, Any]:
    """A case that was not submitted."""
    return entry([], name=name, judged=invalid([])) | {"result": "skip", "skip_reason": reason, "judgement": {}}


def invalid_entry(reason: str = "ranks 0 and 1 share core 0 of n1", name: str = "Invalid") -> dict[str, Any]:
    """A case whose measurement was refused."""
    return entry([], name=name, judged=invalid([reason]))


def report(
    entries: Sequence[dict[str, Any]], *, started: datetime = STARTED, session: str = "", **info: Any
) -> dict[str, Any]:
    """A run report of five minutes."""
    finished = started + timedelta(minutes=5)
    session_info = {
        "data_version": "4.2",
        "hostname": "n0",
        "uuid": session or str(uuid.uuid4()),
        "time_start": started.strftime("%Y%m%dT%H%M%S%z"),
        "time_start_unix": started.timestamp(),
        "time_end": finished.strftime("%Y%m%dT%H%M%S%z"),
        "time_end_unix": finished.timestamp(),
        "version": "4.10.4",
        "num_aborted": 0,
    }
    return {"session_info": session_info | info, "runs": [{"testcases": list(entries)}], "restored_cases": []}


def written(path: Path, document: dict[str, Any]) -> Path:
    """The report as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def one_night(
    number: int = 0, *, file_system: str = "disk", hour: int = 2, session: str = "", **changes: Any
) -> dict[str, Any]:
    """The report of the night of that number: one case with a write and a read; ``changes`` are of its records."""
    started = STARTED + timedelta(days=number, hours=hour - 2)
    case = entry(records("write", "read", started=started, **changes), file_system=file_system)
    return report([case], started=started, session=session)
