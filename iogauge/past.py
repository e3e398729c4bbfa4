"""What a night asks of the history when it ends: the nights before, and the last good one of each series.

The history is asked by a process of its own with a time limit: a database that hangs, is full or broken is told in the
night's notes, and neither loses the night nor holds it.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from iogauge.assess.record import Assessment
from iogauge.commands import Unreadable, run_briefly
from iogauge.darshan.summary import Summary
from iogauge.judge import Verdict
from iogauge.measurement import Software, Unit

#: So long a night waits for the history at its end, and so long of this it takes in earlier nights that are not there yet.
ANSWER_SECONDS = 180
EARLIER_SECONDS = 60


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Good(_Value):
    """One series on an earlier night that was good. Rates are in ``unit``, ``observed`` is the best of the repeats' ``rates``;
    ``summary`` is of the case's Darshan log, and none where it was not profiled."""

    night: date
    started: int
    suite: str
    case: str
    verdict: Verdict
    unit: Unit
    observed: float
    rates: tuple[float, ...]
    software: Software
    summary: Summary | None


class Past(_Value):
    """``earlier_nights`` by key: on how many nights before this one it was measured with the same configuration; ``None``: the
    history could not be asked. ``good`` by key: the last good night. ``assessment``: what all nights up to this one make of
    each series; none where they could not be asked. ``notes``: what went wrong with the history."""

    earlier_nights: dict[str, int] | None = None
    good: dict[str, Good] = {}
    assessment: Assessment | None = None
    notes: tuple[str, ...] = ()


def look_back(folder: Path, seconds: float = ANSWER_SECONDS) -> Past:
    """Take the night in ``folder`` into the history, with those before it that are not there yet, and ask what was before."""
    command = [sys.executable, "-m", "iogauge.history.past", str(folder)]
    try:
        code, out, errors = run_briefly(command, seconds)
    except Unreadable as problem:
        return _untold(f"{problem}. Later: iogauge history ingest")
    except OSError as problem:
        return _untold(str(problem))
    try:
        return Past.model_validate_json(out)
    except ValidationError:
        last = [line.strip() for line in errors.splitlines() if line.strip()][-1:]
        return _untold(last[0] if last else f"exit code {code}")


def _untold(why: str) -> Past:
    return Past(notes=(f"the history was not asked, and this night is not in it: {why}",))
