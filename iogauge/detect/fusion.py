"""What the series of one file system say together: is it the whole file system, or only one kind of I/O?"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from iogauge.detect.nights import Dates, History
from iogauge.detect.noise import Floats, Integers
from iogauge.detect.verdicts import SeriesVerdict, Track, judge

#: The evidence at which a file system is told to be slower: its noise is that of many series, and there are few of it.
FUSED_THRESHOLD = 4.0
#: The median of many series is so quiet that every wave of the file system is seen: steady slowdowns below this are one.
FUSED_LEAST = 0.2
#: Fewer series are no file system.
LEAST_SERIES = 3
#: All is slow when this part of the series is.
WHOLE_FROM = 0.75
#: Findings that began within so many days are one event.
SAME_EVENT_DAYS = 10

#: A day of the month on which so large a part of the nights was bad, on at least so many of them, looks like maintenance.
HINT_SHARE, HINT_NIGHTS = 0.5, 3
#: By chance alone it would be so in this part of the days.
HINT_SIGNIFICANCE = 1e-3
#: A night of a file system is bad when the median of its series is so many scales low.
HINT_SCALES = 1.5


@dataclass(frozen=True)
class Fused:
    """The median of the standardised levels of several series; ``z`` is in scales, NaN where too few have a value."""

    dates: Dates
    z: Floats
    scale: float
    slots: Integers


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
    table = np.full((len(dates), len(tracks)), np.nan)
    slots = np.zeros(len(dates), np.int64)
    for column, track in enumerate(tracks):
        rows = np.searchsorted(dates, track.dates)
        table[rows, column] = (track.rates - track.level) / track.scale
        slots[rows] = np.where(track.slots != 0, track.slots, slots[rows])
    enough = np.isfinite(table).sum(axis=1) >= LEAST_SERIES
    z = np.full(len(dates), np.nan)
    if enough.any():
        z[enough] = np.nanmedian(table[enough], axis=1)
    scales = [np.nanmedian(track.scale) for track in tracks if np.isfinite(track.scale).any()]
    return Fused(dates, z, float(np.median(scales)) if scales else np.nan, slots)


def judge_file_system(
    name: str, tracks: Sequence[Track], *, threshold: float = FUSED_THRESHOLD
) -> SeriesVerdict | None:
    """The verdict on all series of a file system at once; None with fewer than three series that have a reference.

    Its rates are relative: 1 is the usual level.
    """
    fused = fuse(tracks)
    rates = np.exp(fused.z * fused.scale)
    first = np.flatnonzero(np.isfinite(rates))
    if not first.size:
        return None
    nights = slice(int(first[0]), None)
    nothing = np.zeros(len(rates[nights]), np.int64)
    series = History(name, fused.dates[nights], rates[nights], nothing, ({},), nothing, ("",), fused.slots[nights])
    return judge([series], threshold=threshold, least_slowdown=FUSED_LEAST).verdicts[0]


def scope(
    file_system: str,
    verdicts: Sequence[SeriesVerdict],
    attributes: Mapping[str, Mapping[str, str]],
    together: SeriesVerdict | None = None,
) -> Scope | None:
    """Name what is slower on a file system; None when nothing is.

    ``attributes`` of each key, such as ``{"interface": "HDF5", "access": "collective", "operation": "write"}``; their
    order is that of the words in the text. ``together`` is the verdict on all series at once.
    """
    judged = [one for one in verdicts if one.word not in ("no reference", "invalid")]
    slow = [one for one in judged if one.word == "shifted level" and one.finding is not None]
    all_slow = together is not None and together.word == "shifted level" and together.finding is not None
    if not slow and not all_slow:
        return None
    began = _latest_event(slow)
    if began is None and together is not None and together.finding is not None:
        began = together.finding.began
    slow_keys = {one.key for one in slow}
    whole = len(slow) >= WHOLE_FROM * len(judged) and len(judged) >= LEAST_SERIES
    if whole or (all_slow and not _words(slow_keys, {one.key for one in judged}, attributes)):
        return Scope(f"the whole file system {file_system}", tuple(sorted(slow_keys)), began, True)
    words = _words(slow_keys, {one.key for one in judged}, attributes)
    text = f"only {words}" if words else f"{len(slow)} of {len(judged)} series, of several kinds"
    return Scope(f"{text} on {file_system}", tuple(sorted(slow_keys)), began, False)


def _latest_event(slow: Sequence[SeriesVerdict]) -> datetime.date | None:
    """When the latest group of findings began: the earliest of those close to the last one."""
    began = sorted(one.finding.began for one in slow if one.finding is not None)
    if not began:
        return None
    return next(date for date in began if (began[-1] - date).days <= SAME_EVENT_DAYS)


def _words(slow: set[str], judged: set[str], attributes: Mapping[str, Mapping[str, str]]) -> str:
    """The fewest attributes that hold for the slow series and no others, in words; empty when there are none."""
    if not slow or len(slow) == len(judged):
        return ""
    names = list(dict.fromkeys(name for key in judged for name in attributes.get(key, {})))
    common = {
        name: values.pop()
        for name in names
        if len(values := {attributes.get(key, {}).get(name, "") for key in slow}) == 1
    }
    for count in range(1, len(common) + 1):
        for chosen in itertools.combinations([name for name in names if name in common], count):
            fits = {key for key in judged if all(attributes.get(key, {}).get(n, "") == common[n] for n in chosen)}
            if fits == slow:
                return " ".join(common[name] for name in names if name in chosen and common[name])
    return ", ".join(sorted(slow)) if len(slow) == 1 else ""


def maintenance_hints(tracks: Sequence[Track]) -> tuple[Hint, ...]:
    """Days of the month on which a file system was bad too often for chance, from nights outside known maintenance."""
    fused = fuse(tracks)
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
