"""The forest plot of a comparison: a bar for each ratio, on one logarithmic axis that all rows have in common.

Places are percentages of a row's width: the picture is as wide as its cell on a phone as on a desk, and marks and words keep
their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from iogauge.compare.result import Comparison, Ratio, Result, in_words
from iogauge.compare.sequential import Finding

#: An interval that reaches further beyond all ratios than by this factor ends at the edge.
_REACH = 1.25

#: So many labels have room on a phone.
_MOST_TICKS = 7

#: Steps of a narrow axis, in percent; first digits on a wide one. The finest that fit are taken.
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
_DIGITS = ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))

#: An axis is wide from this factor on.
_WIDE_FROM = 2.5

#: Room on both sides, as a part of the axis.
_PAD = 0.04


class Tick(NamedTuple):
    """``at``: percent of the width."""

    at: float
    text: str


class Mark(NamedTuple):
    """One ratio: its interval from ``low`` to ``high`` and the ``pairs``' own ratios, in percent of the width. ``open_low``,
    ``open_high``: it goes on beyond the edge.
    """

    finding: Finding
    at: float
    low: float
    high: float
    open_low: bool
    open_high: bool
    pairs: tuple[float, ...]
    words: str


class Axis(NamedTuple):
    """From the ratio ``lowest`` to ``highest``."""

    lowest: float
    highest: float

    def at(self, ratio: float) -> float:
        """Percent of the width; what is beyond the axis is at its edge."""
        part = math.log(ratio / self.lowest) / math.log(self.highest / self.lowest)
        return round(100 * min(1.0, max(0.0, part)), 2)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Round changes in percent; on a wide axis round factors."""
        if self.highest / self.lowest > _WIDE_FROM:
            return self._fitting(_factor, (self._with_digits(digits) for digits in _DIGITS))
        return self._fitting(_change, (self._in_steps(step / 100) for step in _STEPS))

    def _fitting(self, words: Callable[[float], str], tries: Iterable[list[float]]) -> tuple[Tick, ...]:
        ratios: list[float] = []
        for ratios in tries:
            if len(ratios) <= _MOST_TICKS:
                break
        return tuple(Tick(self.at(ratio), words(ratio)) for ratio in ratios)

    def _in_steps(self, step: float) -> list[float]:
        first, last = math.ceil((self.lowest - 1) / step), math.floor((self.highest - 1) / step)
        return [1 + number * step for number in range(first, last + 1)]

    def _with_digits(self, digits: Sequence[float]) -> list[float]:
        powers = range(math.floor(math.log10(self.lowest)), math.ceil(math.log10(self.highest)) + 1)
        every = (digit * 10.0**power for power in powers for digit in digits)
        return [ratio for ratio in every if self.lowest <= ratio <= self.highest]


def _change(ratio: float) -> str:
    """``-10 %``; 0 is as fast."""
    return f"{100 * (ratio - 1):+.3g} %" if abs(ratio - 1) > 1e-9 else "0"


def _factor(ratio: float) -> str:
    """``0.5x``; 1 is as fast."""
    return f"{ratio:g}x" if abs(ratio - 1) > 1e-9 else "1"


def axis_of(comparison: Comparison) -> Axis:
    """Wide enough for all ratios, but for raw ones that are noise yet; 1 and the margin are always on it."""
    shown = [
        found
        for result in comparison.results
        for found in (result.observed, result.raw)
        if found is not None and (found is result.observed or found.finding != "undecided")
    ]
    ratios = [1.0, 1 - comparison.margin, *(found.ratio for found in shown)]
    least, most = min(ratios), max(ratios)
    limits = [limit for found in shown for limit in (found.lowest, found.highest) if limit is not None]
    least = min([least, *(max(limit, least / _REACH) for limit in limits)])
    most = max([most, *(min(limit, most * _REACH) for limit in limits)])
    pad = (most / least) ** _PAD
    return Axis(least / pad, most * pad)


def marks_of(result: Result, axis: Axis) -> Iterator[Mark]:
    """Open to close with its pairs, then the transfers alone."""
    pairs = tuple(axis.at(second / first) for first, second in zip(result.first, result.second, strict=True))
    yield _mark("open to close", result.observed, axis, pairs)
    if result.raw is not None:
        yield _mark("transfers only", result.raw, axis, ())


def _mark(name: str, found: Ratio, axis: Axis, pairs: Sequence[float]) -> Mark:
    low, high = found.lowest or 0.0, found.highest or math.inf
    return Mark(
        finding=found.finding,
        at=axis.at(found.ratio),
        low=axis.at(low) if low > axis.lowest else 0.0,
        high=axis.at(high) if high < axis.highest else 100.0,
        open_low=low < axis.lowest,
        open_high=high > axis.highest,
        pairs=tuple(pairs),
        words=f"{name}: {in_words(found)}",
    )
