"""What the series of one file system say together: is it the whole file system, or only one kind of I/O?"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np

from iogauge.detect.nights import Action, Dates, History
from iogauge.detect.noise import Floats, Integers
from iogauge.detect.verdicts import Judged, SeriesVerdict, Track, judge

#: The evidence at which a file system is told to be slower: its noise is that of many series, and there are few of it.
FUSED_THRESHOLD = 3.75
#: The median of many series is so quiet that every wave of the file system is seen: steady slowdowns below this are one.
FUSED_LEAST = 0.2
#: Fewer series are no file system.
LEAST_SERIES = 3
#: All is slow when this part of the series is.
WHOLE_FROM = 0.75
#: With the evidence of all series together, one leans to a slowdown from this part of its threshold on.
LEANING = 0.3
#: Series with these verdicts could not have told a slowdown.
_NOT_TOLD = ("no reference", "invalid", "too noisy")
#: Findings that began within so many days are one event.
SAME_EVENT_DAYS = 10

#: What was said of its series within so many days was said of a file system.
TOGETHER_DAYS = 60
_DAY = datetime.timedelta(days=1)

#: A day of the month on which so large a part of the nights was bad, on at least so many of them, looks like maintenance.
HINT_SHARE, HINT_NIGHTS = 0.5, 3
#: By chance alone it would be so in this part of the days.
HINT_SIGNIFICANCE = 1e-3
#: A night of a file system is bad when the median of its series is so many scales low.
HINT_SCALES = 1.5


@dataclass(frozen=True)
class Fused:
    """The median of the standardised levels of several series; arrays have shape (nights,).

    ``z`` is in scales, NaN where too few have a value; ``scale`` is the median of the series' scales.
    """

    dates: Dates
    z: Floats
    scale: Floats
    slots: Integers

    def history(self, name: str) -> History | None:
        """The file system as a series with relative rates, from the first night with one to the last; None without any."""
        known = np.flatnonzero(np.isfinite(self.z))
        if not known.size:
            return None
        nights = slice(int(known[0]), int(known[-1]) + 1)
        rates = np.exp(self.z[nights] * self.scale[nights])
        nothing = np.zeros(len(rates), np.int64)
        return History(name, self.dates[nights], rates, nothing, ({},), nothing, ("",), self.slots[nights])


@dataclass(frozen=True)
class Scope:
    """What is slower: ``text`` for people, the keys it is about, and since when."""

    text: str
    keys: tuple[str, ...]
    began: datetime.date | None
    whole: bool


@dataclass(frozen=True)
class Hint:
    """A day of the month that is often bad: was there maintenance?"""

    day_of_month: int
    bad_nights: int
    nights: int

    def __str__(self) -> str:
        return (
            f"day {self.day_of_month} of the month was bad on {self.bad_nights} of {self.nights} nights: maintenance?"
        )


def fuse(tracks: Sequence[Track]) -> Fused:
    """Put the series of one file system together, night by night, as deviations from each one's level in its scales."""
    dates = np.unique(np.concatenate([track.dates for track in tracks])) if tracks else np.array([], "datetime64[D]")
    table, scales = np.full((2, len(dates), len(tracks)), np.nan)
    slots = np.zeros(len(dates), np.int64)
    for column, track in enumerate(tracks):
        rows = np.searchsorted(dates, track.dates)
        table[rows, column] = (track.rates - track.level) / track.scale
        scales[rows, column] = track.scale
        slots[rows] = np.where(track.slots != 0, track.slots, slots[rows])
    enough = np.isfinite(table).sum(axis=1) >= LEAST_SERIES
    z, scale = np.full((2, len(dates)), np.nan)
    if enough.any():
        z[enough] = np.nanmedian(table[enough], axis=1)
        scale[enough] = np.nanmedian(scales[enough], axis=1)
    return Fused(dates, z, scale, slots)


def said_together(fused: Fused, tracks: Sequence[Track], actions: Mapping[str, Sequence[Action]]) -> list[Action]:
    """What was said of a file system as a whole, because it was said of its series one by one; ``actions`` are by key.

    What began before most of the series of its last night have begun anew, blessed or of another configuration, is over
    (``anew``). What began before all of them were acknowledged is known (``ack``).
    """
    anew = [_begun_anew(track, actions.get(track.key, ())) for track in tracks]
    acks = [[one for one in actions.get(track.key, ()) if one.kind == "ack"] for track in tracks]
    if not any(map(any, (anew, acks))):
        return []
    nights = fused.dates[np.isfinite(fused.z)]
    measured = [track.dates[np.isfinite(track.rates)] for track in tracks]
    found = []
    for said, most in ((anew, True), (acks, False)):
        for day in sorted({one.said for some in said for one in some}):
            last = nights[nights <= np.datetime64(day)][-1:]
            mine = [some for some, dates in zip(said, measured, strict=True) if np.isin(last, dates).any()]
            enough = len(mine) // 2 + 1 if most else len(mine)
            since, before = (_said_of(mine, enough, day - _DAY * back) for back in (0, 1))
            if since is not None and since != before:
                one = next(one for some in mine for one in some if one.said == day)
                found.append(replace(one, since=since))
    return sorted(found, key=lambda one: one.said)


def _begun_anew(track: Track, actions: Sequence[Action]) -> list[Action]:
    """When the reference of a series began anew."""
    blessed = [
        Action("anew", one.said, one.who, f"blessed by {one.who}: {one.why}") for one in actions if one.kind == "bless"
    ]
    return blessed + [Action("anew", day - _DAY, "iogauge", "another configuration") for day in track.changed.tolist()]


def _said_of(series: Sequence[Sequence[Action]], enough: int, day: datetime.date) -> datetime.date | None:
    """Since when something had been said of ``enough`` series by ``day``; none: it had not, or long before."""
    last = [max(said, default=None) for some in series if (said := [one.said for one in some if one.said <= day])]
    since = sorted((one for one in last if one is not None and one > day - TOGETHER_DAYS * _DAY), reverse=True)
    return since[enough - 1] if 0 < enough <= len(since) else None


def judge_together(
    histories: Sequence[History],
    actions: Mapping[str, Sequence[Action]] | None = None,
    *,
    states: Mapping[str, dict[str, Any]] | None = None,
    threshold: float = FUSED_THRESHOLD,
) -> Judged:
    """Judge file systems by the histories of their fused series (``Fused.history``), with the thresholds of such.

    ``actions`` are those of ``said_together``, by file system.
    """
    return judge(histories, actions, states=states, threshold=threshold, least_slowdown=FUSED_LEAST)


def judge_file_system(
    name: str, tracks: Sequence[Track], *, threshold: float = FUSED_THRESHOLD
) -> SeriesVerdict | None:
    """The verdict on all series of a file system at once; None with fewer than three series that have a reference.

    Its rates are relative: 1 is the usual level.
    """
    series = fuse(tracks).history(name)
    return None if series is None else judge_together([series], threshold=threshold).verdicts[0]


def scope(
    file_system: str,
    verdicts: Sequence[SeriesVerdict],
    attributes: Mapping[str, Mapping[str, str]],
    together: SeriesVerdict | None = None,
) -> Scope | None:
    """Name what is slower on a file system; None when nothing is.

    ``attributes`` of each key, such as ``{"interface": "HDF5", "access": "collective", "operation": "write"}``; their
    order is that of the words in the text, and empty is no word. ``together`` is the verdict on all series at once.
    """
    judged = [one for one in verdicts if one.word not in _NOT_TOLD]
    slow = [one for one in judged if one.word == "shifted level" and one.finding is not None]
    all_slow = together is not None and together.word == "shifted level" and together.finding is not None
    if not slow and not all_slow:
        return None
    began = _latest_event(slow)
    if began is None and together is not None and together.finding is not None:
        began = together.finding.began
    slow_keys = {one.key for one in slow}
    # One is found sooner than another: with the evidence of all of them, those that lean to it count.
    leaning = [one for one in judged if all_slow and one.score >= LEANING * one.threshold]
    affected = slow_keys | {one.key for one in leaning}
    words = _words(slow_keys, {one.key for one in judged}, attributes)
    whole = len(affected) >= WHOLE_FROM * len(judged) and len(judged) >= LEAST_SERIES
    if whole or (all_slow and not words):
        return Scope(f"the whole file system {file_system}", tuple(sorted(slow_keys)), began, True)
    text = f"only {words}" if words else f"{len(slow)} of {len(judged)} series, of several kinds"
    return Scope(f"{text} on {file_system}", tuple(sorted(slow_keys)), began, False)


def _latest_event(slow: Sequence[SeriesVerdict]) -> datetime.date | None:
    """When the latest group of findings began: the earliest of those close to the last one."""
    began = sorted(one.finding.began for one in slow if one.finding is not None)
    if not began:
        return None
    return next(date for date in began if (began[-1] - date).days <= SAME_EVENT_DAYS)


def _words(slow: set[str], judged: set[str], attributes: Mapping[str, Mapping[str, str]]) -> str:
    """The fewest attributes that hold for the slow series and no others, or for few others, in words; empty without any."""
    if not slow or len(slow) == len(judged):
        return ""
    keys = sorted(judged)
    names = list(dict.fromkeys(name for key in keys for name in attributes.get(key, {})))
    one = attributes.get(next(iter(slow)), {})
    holds = {name: np.array([attributes.get(key, {}).get(name) == one.get(name) for key in keys]) for name in names}
    is_slow = np.array([key in slow for key in keys])
    # Of as many words, those that stand last say most: the operation is more than the benchmark that tried it.
    common = [name for name in reversed(names) if one.get(name) and holds[name][is_slow].all()]
    for part in (1.0, WHOLE_FROM):
        for count in range(1, len(common) + 1):
            for chosen in itertools.combinations(common, count):
                fits = int(np.logical_and.reduce([holds[name] for name in chosen]).sum())
                if len(slow) >= part * fits and fits < len(keys):
                    return _phrase(names, {name: one[name] for name in chosen})
    return ", ".join(sorted(slow)) if len(slow) == 1 else ""


def _phrase(names: Sequence[str], chosen: Mapping[str, str]) -> str:
    """The words of what was chosen of ``names``, in their order; what does I/O alone needs no noun."""
    noun = "" if chosen.keys() & {"operation", "kind"} or chosen.keys() == {"benchmark"} else "I/O"
    words = (chosen.get(name, noun if name == "operation" else "") for name in names)
    return " ".join(word for word in words if word)


def maintenance_hints(fused: Fused) -> tuple[Hint, ...]:
    """Days of the month on which a file system was bad too often for chance, from nights outside known maintenance."""
    known = np.isfinite(fused.z) & (fused.slots == 0)
    bad = fused.z[known] < -HINT_SCALES
    if not bad.any():
        return ()
    dates = fused.dates[known]
    days = (dates - dates.astype("datetime64[M]")).astype(np.int64) + 1
    hints = []
    for day in range(1, 32):
        nights, of_day = int((days == day).sum()), int(bad[days == day].sum())
        others = (bad.sum() - of_day + 1) / (len(bad) - nights + 2)
        if nights < HINT_NIGHTS or of_day < HINT_SHARE * nights:
            continue
        if _at_least(of_day, nights, others) < HINT_SIGNIFICANCE:
            hints.append(Hint(day, of_day, nights))
    return tuple(hints)


def _at_least(successes: int, trials: int, probability: float) -> float:
    """The chance of so many successes or more."""
    return sum(
        comb(trials, n) * probability**n * (1 - probability) ** (trials - n) for n in range(successes, trials + 1)
    )
