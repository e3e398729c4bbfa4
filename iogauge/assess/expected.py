"""A slowdown that came with an upgrade, and was measured before by ``iogauge compare``: it is known, as if somebody had
acknowledged it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from iogauge.assess.record import Assessment, Move, Said, SeriesState
from iogauge.history.comparisons import Compared, Step

#: A night's level is not as exact as pairs are: it may be so much lower than what the comparison did not refute.
TOLERANCE = 0.05

WHO = "iogauge compare"


def with_expected(assessment: Assessment, compared: Sequence[Compared]) -> Assessment:
    """Acknowledge the slowdowns that are no larger than was measured for their series, file system and change of software."""
    if not compared:
        return assessment
    series = tuple(_with_expected(state, compared) for state in assessment.series)
    return assessment.model_copy(update={"series": series})


def _with_expected(state: SeriesState, compared: Sequence[Compared]) -> SeriesState:
    move = state.move
    if move is None or not move.slower or move.acknowledged is not None:
        return state
    found = next(filter(None, (_measured(state, move, one) for one in reversed(compared))), None)
    if found is None:
        return state
    day, step = found
    said = f"measured on {day}: {_in_words(step)}"
    if step.lowest is None or move.after / move.before < step.lowest - TOLERANCE:
        return state.model_copy(update={"notes": (*state.notes, f"more than {WHO} {said}")})
    known = move.model_copy(update={"acknowledged": Said(kind="ack", who=WHO, why=said, on=day)})
    return state.model_copy(update={"moves": (*state.moves[:-1], known)})


def _measured(state: SeriesState, move: Move, one: Compared) -> tuple[datetime.date, Step] | None:
    """What a comparison says of a move, if it is of the same series and the same change."""
    key = f"{state.benchmark}/{state.operation}/{state.pattern}/{state.interface}"
    changes = {f"{name} {before} -> {after}" for name, (before, after) in one.versions.items()}
    if one.file_system != state.file_system or key not in one.results or not changes & set(move.changes):
        return None
    day = datetime.datetime.fromtimestamp(one.at, datetime.timezone.utc).date()
    return day, one.results[key]


def _in_words(step: Step) -> str:
    change = f"{abs(1 - step.ratio):.0%} {'slower' if step.ratio < 1 else 'faster'}"
    return change + (f", at most {max(0.0, 1 - step.lowest):.0%} slower" if step.lowest is not None else "")
