"""What a series and a site are called on the report's pages: verdicts worst first, in few words, with what to do next."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from iogauge.assess.record import FileSystemState, Move, SeriesState, Timeline
from iogauge.judge import Row
from iogauge.night import Case, Night

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


@dataclass(frozen=True)
class Evidence:
    """The newest run of a series."""

    night: Night
    case: Case
    row: Row


@dataclass(frozen=True)
class Shown:
    """A series with all that its pages tell. ``page`` is below the report's folder."""

    state: SeriesState
    line: Timeline
    evidence: Evidence | None
    page: str
    tonight: bool

    @property
    def _judged_by_one_night(self) -> bool:
        """Does the judge of one night decide? It does until there is a reference, and where a ratio inside one job is below
        its portable band: noise cancels in it."""
        if self.evidence is None or not self.tonight or self.state.word == "invalid":
            return False
        return self.state.word == "no reference" or any(ratio.place == "below" for ratio in self.evidence.row.ratios)

    @property
    def word(self) -> str:
        """The verdict."""
        return self.evidence.row.verdict if self.evidence and self._judged_by_one_night else self.state.word

    @property
    def reason(self) -> str:
        """Why, and what an operator said of it."""
        judged = self.evidence.row.reason if self.evidence and self._judged_by_one_night else ""
        why = judged or re.sub("; acknowledged by .*", "", self.state.reason)  # said in full, behind it
        return "; ".join(filter(None, (why, self.said)))

    @property
    def said(self) -> str:
        """Who said that it is known, and why; empty: nobody did."""
        state = self.state
        if state.muted is not None:
            return f"muted until {state.muted.until} by {state.muted.who}: {state.muted.why}"
        if state.move is not None and state.move.acknowledged is not None:
            said = state.move.acknowledged
            return f"acknowledged on {said.on} by {said.who}: {said.why}"
        return ""

    @property
    def alarm(self) -> bool:
        """Should somebody look at it? What an operator knows of is no alarm."""
        return self.word == "invalid" or self.state.alarm or (self.word == "regressed" and self.state.muted is None)

    @property
    def known(self) -> bool:
        """Is it slower, and an operator has said that it is known, or asked for silence?"""
        return self.word in ("shifted level", "regressed") and not self.alarm

    @property
    def notable(self) -> bool:
        """Is there something to tell that is no alarm?"""
        return self.word in ("transient", "drift", "improved")

    @property
    def suite(self) -> str:
        """The suite that measured it last; empty where that is not known."""
        return self.evidence.night.suite if self.evidence else ""

    @property
    def band(self) -> tuple[float, float] | None:
        """The site's band, where there is one."""
        limits = self.evidence.row.limits if self.evidence else None
        return None if limits is None else (limits.lowest, limits.highest)

    @property
    def badness(self) -> tuple[bool, bool, int, float, str]:
        """Sorts series: those of tonight, alarms first, then by verdict, then by how much is gone."""
        return not self.tonight, not self.alarm, _ORDER[self.word], -(self.state.drop or 0.0), self.state.key


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


def banner(tonight: Sequence[Shown], file_systems: Iterable[FileSystemState], causes: Iterable[str] = ()) -> Banner:
    """What is wrong tonight, in words that are understood at once. ``causes``: why tonight's runs are not complete."""
    counts = Counter(shown.word for shown in tonight if shown.alarm)
    slower = counts["shifted level"] + counts["regressed"]
    incomplete = tuple(f"Not all was measured: {cause}" for cause in causes)
    if not tonight:
        return Banner("invalid", "Nothing was measured tonight", incomplete)
    if slower or counts["invalid"]:
        words = [f"{slower} of {len(tonight)} series slower"] * bool(slower)
        words += [f"{counts['invalid']} invalid"] * bool(counts["invalid"])
        lines = filter(None, (_scope_line(one, tonight) for one in file_systems))
        return Banner("shifted level" if slower else "invalid", ", ".join(words), (*incomplete, *lines))
    if incomplete:
        return Banner("invalid", "Incomplete; nothing that was measured is slower", incomplete)
    if all(shown.word in ("no reference", "too noisy") for shown in tonight):
        return Banner("no reference", "Measured; nothing to compare with yet", ())
    known = sum(shown.known for shown in tonight)
    return Banner("pass", "Nothing is slower" + (f" but {known} series that are known" if known else ""), ())


def _scope_line(state: FileSystemState, tonight: Iterable[Shown]) -> str:
    """What of a file system is slower, how much, since when and since what; empty: nothing that is to be told."""
    if state.scope is None:
        return ""
    keys = set(state.scope.keys)
    slow = [shown for shown in tonight if shown.state.key in keys]
    if slow and not any(shown.alarm for shown in slow):
        return ""
    moves = [shown.state.move for shown in slow if shown.state.move is not None]
    words = [state.scope.text[:1].upper() + state.scope.text[1:]]
    if moves:
        words.append(f"{parts_of([move.drop for move in moves])} slower")
    if state.scope.began is not None:
        words.append(f"since {state.scope.began}")
    changes = Counter(change for move in moves for change in move.changes)
    if changes:
        words.append("with " + ", ".join(change for change, _ in changes.most_common(3)))
    return ", ".join(words)


def summary(series: Iterable[Shown]) -> str:
    """Counts by verdict, worst first, leaving out what there is none of."""
    counts = Counter(shown.word for shown in series)
    return ", ".join(f"{counts[word]} {word}" for word in _ORDER if counts[word]) or "none"


@dataclass(frozen=True)
class Step:
    """Something to do, and the command for it, if there is one."""

    text: str
    command: str = ""


_OTHERS = Step("Look whether the other series of this file system moved on the same day (its page)")
_WAIT = Step("One bad night: if it lasts, it is told as a shifted level")
_AGEING = Step("It went down slowly: compare with the anchor, and look for ageing, filling up, or more users")
_NOISE = Step("More repeats, or a second run at another hour", "scripts/nightly --repeat-later 6")


def next_steps(shown: Shown, site: str) -> list[Step]:
    """What to do next about a series, most useful first."""
    key, at = shlex.quote(shown.state.key), "" if site == "local" else f" --site {shlex.quote(site)}"
    move = shown.state.move
    look = [Step("See the evidence of the last night", f"iogauge show latest {key}")]
    look += [Step(f"The job's files are in {shown.evidence.case.stage}")] if shown.evidence else []
    ack = Step("It is known: no more alarm", f"iogauge history ack {key}{at} --why 'TICKET'")
    since = move.began if move else shown.state.date
    new_level = f"iogauge history bless {key}{at} --since {since} --why 'REASON'"
    bless = Step("It is meant to be so: judge by the new level", new_level)
    compare = _OTHERS
    if move and move.changes:
        compare = Step(f"Measure with the old version beside the new one (docs/spack.md): {', '.join(move.changes)}")
    return {
        "invalid": [Step("Mend what the reason says; the rates of such a night are not believed"), *look],
        "shifted level": [compare, *look, ack, bless],
        "regressed": [Step("Run it again: a single night can be noise, a ratio inside one job seldom is"), *look],
        "transient": [_WAIT, *look],
        "drift": [_AGEING, *look, bless],
        "too noisy": [_NOISE, *look],
        "improved": [Step("Nothing: after 30 nights it is the new normal"), bless],
        "no reference": [Step("Nothing: it gets a reference with the coming nights")],
    }.get(shown.word, [])
