"""What a series and a site are called on the report's pages: verdicts worst first, in few words, with what to do next."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from iogauge.assess.record import Assessment, FileSystemState, Move, SeriesState

#: Symbol of each verdict, worst first; the word always stands beside it.
SYMBOLS = {
    "shifted level": "▼",
    "regressed": "▼",
    "invalid": "!",
    "transient": "▽",
    "drift": "↘",
    "too noisy": "~",
    "improved": "▲",
    "no reference": "·",
    "pass": "✓",
}
_ORDER = {word: number for number, word in enumerate(SYMBOLS)}

#: The part of a file's name that is for people; the rest tells names apart where a file system folds or cuts them.
_READABLE_CHARACTERS = 80


def file_name(name: str) -> str:
    """A file's name, without its ending, for any key or file system: other names for other keys, safe everywhere."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:_READABLE_CHARACTERS]
    return f"{readable}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}".lstrip("-")


def is_alarm(state: SeriesState) -> bool:
    """Should somebody look at it? What an operator knows of is none."""
    return state.alarm or state.word in ("invalid", "regressed")


def is_known(state: SeriesState) -> bool:
    """Is it slower, and an operator has said that it is known, or asked for silence?"""
    return state.word == "shifted level" and not is_alarm(state)


def badness(state: SeriesState) -> tuple[bool, int, float, str]:
    """Sorts series: alarms first, then by verdict, then by how much is gone."""
    return not is_alarm(state), _ORDER[state.word], -(state.drop or 0.0), state.key


def why_known(state: SeriesState) -> str:
    """Who said it, and why; empty: nobody did."""
    if state.muted is not None:
        return f"muted until {state.muted.until} by {state.muted.who}: {state.muted.why}"
    if state.move is not None and state.move.acknowledged is not None:
        said = state.move.acknowledged
        return f"acknowledged on {said.on} by {said.who}: {said.why}"
    return ""


def moved(move: Move) -> str:
    """``20 % slower``."""
    return f"{abs(move.drop) * 100:.0f} % {'slower' if move.slower else 'faster'}"


def change(drop: float | None) -> str:
    """``-19 %`` where a part of the rate is gone; empty: nothing to compare with."""
    return "" if drop is None else f"{-100 * drop:+.0f} %".replace("-0 %", "0 %").replace("+0 %", "0 %")


def parts_of(drops: Sequence[float]) -> str:
    """``20 %``, or ``15 to 23 %``."""
    least, most = f"{min(drops) * 100:.0f}", f"{max(drops) * 100:.0f}"
    return f"{most} %" if least == most else f"{least} to {most} %"


@dataclass(frozen=True)
class Banner:
    """The night in one line, the verdict whose colour it gets, and a line for each file system with something to say."""

    word: str
    text: str
    lines: tuple[str, ...]


def banner(assessment: Assessment, causes: Iterable[str] = ()) -> Banner:
    """What is wrong tonight, in words that are understood at once. ``causes``: why tonight's runs are not complete."""
    tonight = assessment.tonight
    alarms = [one for one in tonight if is_alarm(one)]
    counts = Counter(one.word for one in alarms)
    incomplete = tuple(f"Not all was measured: {cause}" for cause in causes)
    lines = tuple(filter(None, (_scope_line(one, tonight) for one in assessment.file_systems)))
    slower = counts["shifted level"] + counts["regressed"]
    if not tonight:
        return Banner("invalid", "Nothing was measured tonight", incomplete)
    if slower or counts["invalid"]:
        words = [f"{slower} of {len(tonight)} series slower"] * bool(slower)
        words += [f"{counts['invalid']} invalid"] * bool(counts["invalid"])
        return Banner("shifted level" if slower else "invalid", ", ".join(words), (*incomplete, *lines))
    if incomplete:
        return Banner("invalid", "Incomplete; nothing that was measured is slower", incomplete)
    known = sum(map(is_known, tonight))
    judged = sum(one.word not in ("no reference", "too noisy") for one in tonight)
    if not judged:
        return Banner("no reference", "Measured; nothing to compare with yet", ())
    return Banner("pass", "Nothing is slower" + (f" but {known} series that are known" if known else ""), ())


def _scope_line(state: FileSystemState, tonight: Iterable[SeriesState]) -> str:
    """What of a file system is slower, how much, since when and since what; empty: nothing that is to be told."""
    if state.scope is None:
        return ""
    keys = set(state.scope.keys)
    slow = [one for one in tonight if one.key in keys and one.move is not None]
    if slow and not any(map(is_alarm, slow)):
        return ""
    words = [state.scope.text[:1].upper() + state.scope.text[1:]]
    drops = [one.move.drop for one in slow if one.move is not None]
    if drops:
        words.append(f"{parts_of(drops)} slower")
    if state.scope.began is not None:
        words.append(f"since {state.scope.began}")
    changes = Counter(change for one in slow if one.move is not None for change in one.move.changes)
    if changes:
        words.append("with " + ", ".join(change for change, _ in changes.most_common(3)))
    return ", ".join(words)


def summary(states: Iterable[SeriesState]) -> str:
    """Counts by verdict, worst first, leaving out what there is none of."""
    counts = Counter(one.word for one in states)
    return ", ".join(f"{counts[word]} {word}" for word in _ORDER if counts[word]) or "none"  # type: ignore[index]


@dataclass(frozen=True)
class Step:
    """Something to do, and the command for it, if there is one."""

    text: str
    command: str = ""


def next_steps(state: SeriesState, site: str, stage: str = "") -> list[Step]:
    """What to do next about a series; ``stage`` is where the files of its last job are."""
    key, at = shlex.quote(state.key), "" if site == "local" else f" --site {shlex.quote(site)}"
    evidence = [Step("See the evidence of the last night", f"iogauge show latest {key}")]
    evidence += [Step(f"The job's files are in {stage}")] if stage else []
    ack = Step("It is known: no more alarm", f"iogauge history ack {key}{at} --why 'TICKET'")
    move = state.move
    began = move.began if move is not None else state.date
    bless = Step(
        "It is meant to be so: judge by the new level",
        f"iogauge history bless {key}{at} --since {began} --why 'REASON'",
    )
    if state.word == "invalid":
        return [Step("Mend what the reason says; the rates of such a night are not believed"), *evidence]
    if state.word == "shifted level":
        back = [Step(f"Measure with the old version beside the new one (docs/spack.md): {', '.join(move.changes)}")]
        other = [Step("Look whether the other series of this file system moved on the same day (its page)")]
        return [*(back if move is not None and move.changes else other), *evidence, ack, bless]
    if state.word == "regressed":
        return [Step("Run it again: a single night can be noise, a ratio inside one job seldom is"), *evidence]
    if state.word in ("transient", "drift"):
        wait = "One bad night: if it lasts, it is told as a shifted level"
        slow = "It went down slowly: compare with the anchor, and look for ageing, filling up, or more users"
        return [
            Step(wait if state.word == "transient" else slow),
            *evidence,
            *([bless] if state.word == "drift" else []),
        ]
    if state.word == "too noisy":
        return [Step("More repeats, or a second run at another hour", "scripts/nightly --repeat-later 6"), *evidence]
    if state.word == "no reference":
        return [Step("Nothing: it gets a reference with the coming nights")]
    if state.word == "improved":
        return [Step("Nothing: after 30 nights it is the new normal"), bless]
    return [Step("Nothing")]
