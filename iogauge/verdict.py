"""The verdict on a series of one night, in the words that everything shows: the detector's once the series has a reference,
before that the one-night judge's."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from iogauge.assess.record import Assessment, FileSystemState, Move, Said, SeriesState
from iogauge.detect.verdicts import FOUND_WITHIN
from iogauge.judge import Row
from iogauge.judge import Verdict as Judged

Verdict = Judged | Literal["shifted level", "drift", "transient"]

#: Worst first.
VERDICTS: tuple[Verdict, ...] = (
    "invalid",
    "regressed",
    "shifted level",
    "drift",
    "transient",
    "skipped",
    "improved",
    "too noisy",
    "no reference",
    "pass",
)


@dataclass(frozen=True)
class Told:
    """``text`` is the verdict with what qualifies it, for a table; ``reason`` says why in full. ``alarm``: somebody should
    look at it. ``evidence``: what the detector's word rests on."""

    word: Verdict
    text: str
    reason: str
    alarm: bool = False
    evidence: str = ""


def told(row: Row, state: SeriesState | None, young: str) -> Told:
    """The verdict on a series that was measured; ``state`` is what the nights before make of this one, ``young`` how many
    nights there are, in words.

    A site band that the rate is outside of is evidence beside the detector's verdict: on shared storage normal series are
    below theirs on 20 nights a year. A ratio below its portable band is a verdict of its own, as noise cancels in it.
    """
    muted = state.muted if state else None
    if state is None or state.word == "no reference" or any(ratio.place == "below" for ratio in row.ratios):
        return Told(
            row.verdict, _judged(row, young) + _known(muted), row.reason, row.verdict == "regressed" and not muted
        )
    acknowledged = state.move.acknowledged if state.word == "shifted level" and state.move else None
    text = state.word + _qualified(state) + _beside(row) + _known(muted or acknowledged)
    reason = "; ".join(filter(None, (state.reason, row.reason)))
    return Told(state.word, text, reason, state.alarm or state.word == "invalid", evidence(state))


def _judged(row: Row, young: str) -> str:
    if row.verdict == "no reference":
        return f"no reference ({row.reason or young})"
    if row.verdict == "pass" and row.band_status != "found":
        return f"pass (ratios only, {young})"
    return row.verdict


def _qualified(state: SeriesState) -> str:
    """Since when, by how much, how often: what belongs to the word."""
    move = state.move
    if state.word in ("shifted level", "improved") and move is not None:
        return f" since {move.began}, {_moved(move)} {rate(move.before)} {state.unit}" + _since(move.changes)
    if state.word == "drift" and state.anchor is not None:
        return f", below its anchor of {rate(state.anchor)} {state.unit}"
    if state.word == "transient":
        return f" ({state.bad_nights} of {state.bad_of} nights)"
    if state.word == "too noisy":
        least = state.smallest_drop
        return f" (could find {'nothing' if least is None or least >= 1 else percent(least)})"
    if state.word == "invalid":
        return f" ({state.reason})"
    return ""


def _moved(move: Move) -> str:
    return f"{percent(abs(move.drop))} {'below' if move.slower else 'above'}"


def _since(changes: Sequence[str]) -> str:
    return f", since {', '.join(changes)}" if changes else ""


def _beside(row: Row) -> str:
    if row.limits is None or row.limits.lowest <= row.observed <= row.limits.highest:
        return ""
    return f"; {'below' if row.observed < row.limits.lowest else 'above'} its band"


def _known(said: Said | None) -> str:
    if said is None:
        return ""
    return f"; muted until {said.until} by {said.who}" if said.kind == "mute" else f"; acknowledged by {said.who}"


def evidence(state: SeriesState) -> str:
    """What the detector's verdict rests on, in a line."""
    parts = [f"{rate(state.reference)} {state.unit} from {state.nights} nights"] if state.reference is not None else []
    parts += [f"{state.bad_nights} of the last {state.bad_of} nights bad"] if state.bad_of else []
    least = state.smallest_drop
    parts += [f"could find a slowdown of {percent(least)} within {FOUND_WITHIN} nights"] if least and least < 1 else []
    return "; ".join(parts)


def of_file_systems(assessment: Assessment) -> Iterator[str]:
    """What of each file system is slower tonight, by how much and since when; nothing where nothing is."""
    for file_system in assessment.file_systems:
        if file_system.scope is not None and file_system.date == assessment.night:
            yield of_file_system(assessment, file_system)


def of_file_system(assessment: Assessment, file_system: FileSystemState) -> str:
    """The same of one of them; nothing where nothing of it is slower."""
    scope = file_system.scope
    if scope is None:
        return ""
    slow = [state for state in assessment.tonight if state.key in scope.keys]
    moves = [state.move for state in slow if state.move is not None]
    if not moves and file_system.move is not None:
        moves = [file_system.move]
    if not moves:
        return scope.text
    lost = f"{percent(median(move.drop for move in moves))} slower" + (f" since {scope.began}" if scope.began else "")
    common = [change for change in moves[0].changes if all(change in move.changes for move in moves)]
    news = any(state.alarm for state in slow) if slow else file_system in assessment.slower_as_a_whole
    known = "" if news or file_system.date != assessment.night else "; known"
    return f"{scope.text}{' is' if scope.whole else ':'} {lost}{_since(common)}{known}"


def rate(value: float | None) -> str:
    """A rate with as many digits as can be read."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def site_option(site: str) -> str:
    """What a command that is printed for people needs behind it, so that it means this site."""
    return "" if site == "local" else f" --site {shlex.quote(site)}"


def percent(fraction: float) -> str:
    """``22 %``, as in prose."""
    return f"{fraction * 100:.0f} %"
