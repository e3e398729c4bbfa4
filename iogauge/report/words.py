"""What a series and a site are called on the report's pages: verdicts worst first, in few words, with what to do next."""

from __future__ import annotations

import functools
import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from iogauge.assess.record import Assessment, Move, SeriesState, Timeline
from iogauge.judge import Row
from iogauge.night import NIGHTS_FOR_A_REFERENCE, Case, Night
from iogauge.terminal import STYLES
from iogauge.verdict import Told, of_file_system, percent, site_option, told

#: Verdicts, worst first: slower storage goes before what could not be measured.
_WORDS = (
    "shifted level",
    "regressed",
    "invalid",
    "transient",
    "drift",
    "too noisy",
    "improved",
    "no reference",
    "pass",
)
_ORDER = {word: number for number, word in enumerate(_WORDS)}
#: The word always stands beside its symbol.
SYMBOLS = {word: STYLES[word][0] for word in _WORDS}

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

    @functools.cached_property
    def told(self) -> Told:
        """The verdict. The night's record has a say in it, where it is tonight's."""
        state, found = self.state, self.evidence
        if found and found.night.night_date == state.date and found.row.fingerprint == state.fingerprint:
            young = f"{found.night.nights_of(state.key)} of {NIGHTS_FOR_A_REFERENCE} nights"
            return told(found.row, state, young)
        return Told(state.word, state.word, state.reason, state.alarm or state.word == "invalid")

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return self.told.word

    @property
    def reason(self) -> str:
        """Why, and what an operator said of it."""
        why = re.sub("; acknowledged by [^;]*", "", self.told.reason)  # said in full, behind it
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
        return self.told.alarm

    @property
    def slower(self) -> bool:
        """Is it slower than it was, whoever knows of it?"""
        return self.word in ("shifted level", "regressed")

    @property
    def known(self) -> bool:
        """Is it slower, and an operator has said that it is known, or asked for silence?"""
        return self.slower and not self.alarm

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
    return f"{percent(abs(move.drop))} {'slower' if move.slower else 'faster'}"


def change(drop: float | None) -> str:
    """``-19 %`` where a part of the rate is gone; empty: nothing to compare with."""
    return "" if drop is None else f"{-100 * drop:+.0f} %".replace("-0 %", "0 %").replace("+0 %", "0 %")


def drops(parts: Sequence[float]) -> str:
    """``20 %``, or ``15 to 23 %``."""
    least, most = percent(min(parts)), percent(max(parts))
    return most if least == most else f"{least.removesuffix(' %')} to {most}"


@dataclass(frozen=True)
class Banner:
    """The night in one line, the verdict whose colour it gets, and a line for each file system with something to say."""

    word: str
    text: str
    lines: tuple[str, ...]


def banner(
    assessment: Assessment, tonight: Sequence[Shown], *, invalid_cases: int = 0, causes: Iterable[str] = ()
) -> Banner:
    """What is wrong tonight, in words that are understood at once.

    ``invalid_cases`` are those that no series is known of; ``causes`` say why tonight's runs are not complete.
    """
    counts = Counter(shown.word for shown in tonight if shown.alarm)
    slower, invalid = counts["shifted level"] + counts["regressed"], counts["invalid"] + invalid_cases
    incomplete = tuple(f"Not all was measured: {cause}" for cause in causes)
    whole = [one.scope.text for one in assessment.slower_as_a_whole if one.scope is not None]
    if slower or whole or invalid:
        words = [f"{slower} of {len(tonight)} series slower"] if slower else [f"slower: {text}" for text in whole]
        words += [f"{invalid} invalid"] * bool(invalid)
        word, text = "shifted level" if slower or whole else "invalid", ", ".join(words)
        return Banner(word, text[:1].upper() + text[1:], (*incomplete, *_scopes(assessment, tonight)))
    if not tonight:
        return Banner("invalid", "Nothing was measured tonight", incomplete)
    if incomplete:
        return Banner("invalid", "Incomplete; nothing that was measured is slower", incomplete)
    if all(shown.word in ("no reference", "too noisy") for shown in tonight):
        return Banner("no reference", "Measured; nothing to compare with yet", ())
    known = sum(shown.known for shown in tonight)
    return Banner("pass", "Nothing is slower" + (f" but {known} series that are known" if known else ""), ())


def _scopes(assessment: Assessment, tonight: Iterable[Shown]) -> Iterator[str]:
    """A line for each file system of which something is slower that nobody knew of."""
    alarms = {shown.state.key for shown in tonight if shown.alarm}
    for one in assessment.file_systems:
        keys = set(one.scope.keys) if one.scope is not None else set()
        if alarms & keys or (not keys and one in assessment.slower_as_a_whole):
            line = of_file_system(assessment, one)
            yield line[:1].upper() + line[1:]


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
    key, at = shlex.quote(shown.state.key), site_option(site)
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
