"""One series at length: since when it is slower, on which nights, what came with it, what Darshan saw, and what to do next."""

from __future__ import annotations

import datetime
import fnmatch
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from iogauge.assess.record import FileSystemState, Move, SeriesState
from iogauge.detect.verdicts import FOUND_WITHIN, PROVISIONAL_NIGHTS
from iogauge.errors import InputError
from iogauge.plain import one_line
from iogauge.status import sparkline
from iogauge.terminal import STYLES
from iogauge.tonight import Alarm, Tonight
from iogauge.verdict import Told, Verdict, percent, rate, site_option

#: Nights shown before the level moved, and since.
NIGHTS_BEFORE, NIGHTS_SINCE = 6, 8

#: More series than these are listed, not told at length.
MOST_AT_LENGTH = 12

_TITLE = 12

#: Where the text of a row goes on.
HANG = _TITLE


def find(tonight: Tonight, key: str) -> tuple[SeriesState, ...]:
    """The series called so; else those whose keys fit the pattern, or have it in them. Raises :class:`InputError`."""
    known = tonight.assessment.series if tonight.assessment else ()
    exact = tuple(state for state in known if state.key == key)
    found = exact or tuple(state for state in known if fnmatch.fnmatchcase(state.key, key) or key in state.key)
    if not found:
        everything = f"iogauge status --all{site_option(tonight.site)}"
        raise InputError(f"no series of site {tonight.site} has {key!r} in its key; {everything} lists them", key="KEY")
    return found


def lines(tonight: Tonight, state: SeriesState, rates: Mapping[datetime.date, float]) -> Iterator[Text]:
    """Everything about one series. ``rates`` are the best of its last nights by date."""
    told = _told(tonight, state)
    yield Text(state.key, style="bold", overflow="fold")
    if state.date != tonight.date:
        yield Text(f"not measured on this night; what follows is of {state.date}", style="yellow")
    symbol, style = STYLES[_word(state, told)]
    yield Text(f"{symbol} {verdict(tonight, state, rates)}", style=style, overflow="fold")
    regressed = next((one for one in tonight.alarms if one.name == state.key and one.word == "regressed"), None)
    for title, text in _rows(tonight, state, rates, regressed):
        yield Text(f"  {title:{_TITLE}}{one_line(text)}", overflow="fold")


def verdict(tonight: Tonight, state: SeriesState, rates: Mapping[datetime.date, float]) -> str:
    """The verdict with since when, by how much, and whether the file system is slower, too."""
    move, told = state.move, _told(tonight, state)
    if move is None or _word(state, told) not in ("shifted level", "improved"):
        if told.reason.startswith(told.text):
            return one_line(told.reason)
        return one_line(told.text + (f": {told.reason}" if told.reason and told.reason not in told.text else ""))
    beyond = [value < _halfway(move) if move.slower else value > _halfway(move) for value in _since(rates, move)]
    nights = f" ({sum(beyond)} nights of {len(beyond)})" if beyond else ""
    side = "below" if move.slower else "above"
    moved = (
        f"{state.word} since {move.began}{nights}, {percent(abs(move.drop))} {side} {rate(move.before)} {state.unit}"
    )
    around = _around(tonight, state) if move.slower else ""
    beside = f"; and regressed: {told.reason}" if told.word == "regressed" else ""
    return one_line(moved + (f"; {around}" if around else "") + beside)


def _told(tonight: Tonight, state: SeriesState) -> Told:
    """The night's verdict, where it was measured then."""
    found = tonight.verdicts.get(state.key) if state.date == tonight.date else None
    return found or Told(state.word, state.word, state.reason, state.alarm)


def _word(state: SeriesState, told: Told) -> Verdict:
    """A level that moved says more than a ratio."""
    return state.word if state.word == "shifted level" else told.word


def _halfway(move: Move) -> float:
    return math.sqrt(move.before * move.after)


def _since(rates: Mapping[datetime.date, float], move: Move) -> list[float]:
    return [value for night, value in rates.items() if night >= move.began]


def _around(tonight: Tonight, state: SeriesState) -> str:
    """How the rest of the file system fares."""
    together: FileSystemState | None = next((f for f in tonight.file_systems if f.name == state.file_system), None)
    if together is None:
        return ""
    scope = together.scope
    if scope is not None and (scope.whole or (state.key in scope.keys and len(scope.keys) > 1)):
        return scope.text
    others = [s for s in tonight.tonight if s.file_system == state.file_system and s.word == "shifted level"]
    if len(others) > 1:
        return f"{len(others)} series of {state.file_system} are slower"
    return "this series only, the file system is steady" if together.word != "shifted level" else "the file system, too"


def _rows(
    tonight: Tonight, state: SeriesState, rates: Mapping[datetime.date, float], regressed: Alarm | None
) -> Iterator[tuple[str, str]]:
    move = state.move
    if rates:
        yield "nights", _nights(rates, move)
        yield "", sparkline(tuple(rates.values()))
    if state.repeats:
        yield "repeats", f"{' '.join(map(rate, state.repeats))} {state.unit}, of {state.date}"
    if state.reference is not None:
        young = ", provisional" if state.nights < PROVISIONAL_NIGHTS else ""
        anchor = f"; anchor {rate(state.anchor)}" if state.anchor is not None else ""
        yield "reference", f"{rate(state.reference)} {state.unit} from {state.nights} nights{young}{anchor}"
    came = move.changes if move is not None else state.changes
    if came:
        yield "coincides", ", ".join(came)
    if state.maintenance:
        yield "calendar", "a night of maintenance"
    for said in (move.acknowledged if move else None, state.muted):
        if said is not None:
            until = f" until {said.until}" if said.until else ""
            kind = {"ack": "acknowledged", "mute": "muted", "bless": "blessed"}[said.kind]
            yield kind[:_TITLE], f"{kind}{until} by {said.who} on {said.on}: {said.why}"
    for sentence in tonight.sentences(state.key):
        yield "Darshan", sentence
    if state.bad_of:
        yield "bad nights", f"{state.bad_nights} of the last {state.bad_of}"
    if state.smallest_drop is not None and state.smallest_drop < 1:
        yield "could find", f"a slowdown of {percent(state.smallest_drop)} within {FOUND_WITHIN} nights on this series"
    for old in [one for one in state.moves if one.ended is not None][-3:]:
        side = "slower" if old.slower else "faster"
        yield "earlier", f"{percent(abs(old.drop))} {side} from {old.began} to {old.ended}: {old.how}"
    for note in state.notes:
        yield "note", note
    if tonight.folder is not None and state.date == tonight.date:
        yield "evidence", f"iogauge show {tonight.folder.name} {shlex.quote(state.key)}"
    yield "next", what_next(tonight, state, regressed)


def _nights(rates: Mapping[datetime.date, float], move: Move | None) -> str:
    """The best rates: those before the move, a bar, those since."""
    if move is None:
        return " ".join(rate(value) for value in list(rates.values())[-NIGHTS_SINCE - NIGHTS_BEFORE :])
    before = [value for night, value in rates.items() if night < move.began][-NIGHTS_BEFORE:]
    return f"{_row(before)} | {_row(_since(rates, move)[-NIGHTS_SINCE:])}"


def _row(values: Sequence[float]) -> str:
    return " ".join(map(rate, values))


def what_next(tonight: Tonight, state: SeriesState, regressed: Alarm | None = None) -> str:
    """What a person does now."""
    move, at = state.move, site_option(tonight.site)
    began = move.began if move is not None else state.date
    bless = f"iogauge history bless {shlex.quote(state.key)}{at} --since {began} --why REASON"
    if state.word == "invalid":
        return "mend the cause; of this night no rate is known"
    if state.muted is not None:
        return f"nothing until {state.muted.until}; it alarms then if it is still slower"
    if state.word == "shifted level" and move is not None:
        if move.acknowledged is not None:
            return f"wanted? {bless}; else wait for its end"
        if move.changes:
            return f"measure both side by side: iogauge compare ARM_A ARM_B; meant to be so? {bless}"
        ack = f"iogauge history ack {shlex.quote(state.key)}{at} --why REASON"
        return f"look at {_where(tonight, state)}; known? {ack}"
    if regressed is not None:
        return f"run it again: scripts/nightly --name REGEX; the pairs: iogauge show latest {shlex.quote(state.key)}"
    return {
        "too noisy": "more repeats (--set repeats=N), a larger volume, or a second run on another hour",
        "drift": f"compare with the anchor: did the file system fill up, or its use change? Right so? {bless}",
        "transient": "nothing yet: another such night or two and it is a shifted level",
        "improved": f"nothing: after 30 nights it is the new normal, or at once by {bless}",
        "no reference": "nothing: it is judged from 14 nights on",
    }.get(state.word, "nothing")


def _where(tonight: Tonight, state: SeriesState) -> str:
    around = _around(tonight, state)
    if "whole file system" in around:
        return f"the file system {state.file_system} itself (fill level, rebuilds, servers) on that date"
    return "what is special to this pattern: the layout of its files, its nodes, its library"
