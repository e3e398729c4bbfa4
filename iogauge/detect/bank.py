"""The online state of many series at once: what each remembers from night to night, and one step forward.

A series is a row. ``Bank.step`` takes tonight's value of every row; ``Bank.row`` and ``Bank.from_rows`` take states out
and put them back as plain JSON values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from iogauge.detect import noise
from iogauge.detect.noise import Bools, Floats, Integers

#: Evidence (natural logarithm of a likelihood ratio) at which a slowdown is told.
THRESHOLD = 7.0
#: The evidence that each of ``noise.SLOWDOWNS``, a collapse, and each of ``noise.COME_AND_GO`` needs, in thresholds.
WEIGHTS = np.array([1.0, 0.95, 1.0, 1.0, 1.0, 1.0, 1.5, 1.5, 1.5, 1.9, 1.9, 1.9])
#: The share of the nights that each hits.
_SHARES = np.concatenate((np.ones(len(noise.SLOWDOWNS) + 1), noise.SHARE_HIT))
#: The most that one night counts for, as a part of that: two nights can never tell, three can. Three awful nights in a row
#: are still no rarity, so a collapse needs four, and so does what comes and goes.
MOST = np.array([0.45, 0.45, 0.45, 0.45, 0.45, 0.26, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3])
#: The most that one night counts against: a collapse that has its good nights is one all the same.
LEAST = np.where(np.arange(len(WEIGHTS)) == len(noise.SLOWDOWNS), -0.26, -np.inf)

#: So many nights this far above the level, with at most as many others between them as have just been seen: a new level.
RISE_NIGHTS, RISE_SCALES = 7, 2.0
#: Fewer nights are no reference, unless they are given as one.
LEAST_NIGHTS = 14

#: A night in a maintenance slot is bad with this probability, counted as half a night, until the slot has shown itself.
SLOT_BAD_PRIOR, SLOT_PRIOR_NIGHTS = 0.8, 0.5
#: Below this many scales a night in a slot counts as bad.
SLOT_BAD_SCALES = 2.5
#: Slot 0: an ordinary night. 1 to 31: days of the month; 32 to 38: days of the week, Monday first.
SLOTS = 39
#: A night of this slot is left out.
LEFT_OUT = -1

_FORM = "iogauge.detector/3"


def needed(threshold: float, least_slowdown: float = 0.0) -> Floats:
    """The evidence at which each sum tells; slowdowns below ``least_slowdown`` never do. Shape (sums,)."""
    looked_for = np.ones(len(WEIGHTS), bool)
    looked_for[: len(noise.SLOWDOWNS)] = least_slowdown <= noise.SLOWDOWNS
    return np.where(looked_for, threshold * WEIGHTS, np.inf)


class Step(NamedTuple):
    """What one night showed, a value a series."""

    score: Floats  # evidence, to be compared with the threshold
    residual: Floats  # logarithm of the rate over the reference; NaN where there was no rate or no reference
    reference: Floats  # logarithm of a rate
    level: Floats  # the slow reference alone
    scale: Floats
    bad: Floats  # probability that a night like this is bad without a slowdown
    nights: Integers  # nights since the evidence began
    before: Floats  # the reference of the night before it began
    rose: Bools  # a new, higher level was taken
    share: Floats  # of the nights that the slowdown hits for which this is the evidence: below 1 it comes and goes


class Bank:
    """Online states of ``series`` series. Rates enter as natural logarithms."""

    def __init__(self, series: int, threshold: float = THRESHOLD, least_slowdown: float = 0.0) -> None:
        lanes = len(WEIGHTS)
        self.threshold = threshold
        self.least_slowdown = least_slowdown
        self.kept: Floats = np.full((series, noise.KEPT_NIGHTS), np.nan)
        self.level: Floats = np.full(series, np.nan)
        self.scale: Floats = np.full(series, np.nan)
        self.bad: Floats = np.full(series, np.nan)
        self.evidence: Floats = np.zeros((series, lanes))
        self.since: Integers = np.zeros((series, lanes), dtype=np.int64)
        self.before: Floats = np.full((series, lanes), np.nan)
        self.high: Integers = np.zeros(series, dtype=np.int64)
        self.not_high: Integers = np.zeros(series, dtype=np.int64)
        self.slot_nights: Floats = np.zeros((series, SLOTS))
        self.slot_bad: Floats = np.zeros((series, SLOTS))

    def nights(self) -> Integers:
        """How many nights each series' reference could rest on."""
        return np.asarray(np.isfinite(self.kept).sum(axis=1))

    def learn(self, rates: Floats, slot: Integers) -> None:
        """Take nights, oldest first, as the reference without judging them; shape (nights, series) each."""
        for tonight, where in zip(rates, slot, strict=True):
            self._keep(np.isfinite(tonight) & (where == 0), tonight)
        everyone = np.ones(len(self.level), dtype=bool)
        self._estimate(everyone)
        last = self.kept[:, -RISE_NIGHTS:]
        high = last > (self.level + RISE_SCALES * self.scale)[:, None]
        risen = (high.sum(axis=1) >= RISE_NIGHTS - 1) & (self.nights() > noise.LAG_FROM_NIGHTS)
        self.restart(risen, RISE_NIGHTS)
        self._leave_out_fall(everyone)
        reference = noise.reference(self.kept, self.level, self.scale)
        for tonight, where in zip(rates, slot, strict=True):
            self._count_slot(tonight - reference, where)

    def step(self, rates: Floats, slot: Integers) -> Step:
        """Judge one night: ``rates`` (NaN: none) and maintenance slots, one a series."""
        rates = np.where(slot == LEFT_OUT, np.nan, rates)
        present = np.isfinite(rates)
        reference = noise.reference(self.kept, self.level, self.scale)
        residual = rates - reference
        known = np.isfinite(residual)
        in_slot = slot > 0
        bad = np.where(in_slot, self._slot_share(slot), self.bad)
        told_at = needed(self.threshold, self.least_slowdown)
        tonight = np.minimum(np.maximum(noise.evidence(residual, self.scale, bad) / told_at, LEAST), MOST)
        fresh = self.evidence <= 0
        starts = fresh & (tonight > 0) & known[:, None]
        self.before = np.where(starts, reference[:, None], self.before)
        summed = np.maximum(0.0, self.evidence + tonight)
        self.evidence = np.where(known[:, None], summed, self.evidence)
        self.since = np.where(self.evidence > 0, self.since + known[:, None], 0)
        lane = self.evidence.argmax(axis=1)
        rows = np.arange(len(rates))
        result = Step(
            score=self.threshold * self.evidence[rows, lane],
            residual=residual,
            reference=reference,
            level=self.level.copy(),
            scale=self.scale.copy(),
            bad=bad,
            nights=self.since[rows, lane],
            before=self.before[rows, lane],
            rose=np.zeros(len(rates), dtype=bool),
            share=_SHARES[lane],
        )
        self._count_slot(residual, slot)
        ordinary = present & ~in_slot
        self._keep(ordinary, rates)
        self._rise(ordinary, rates, result.rose)
        self._renew(ordinary)
        return result

    def ack(self, rows: Bools) -> None:
        """Forget the evidence of ``rows``, keep their reference."""
        self.evidence[rows] = 0.0
        self.since[rows] = 0

    def restart(self, rows: Bools, keep_nights: int = 0) -> None:
        """Forget the reference of ``rows`` but its last nights."""
        self.kept[rows, : noise.KEPT_NIGHTS - keep_nights] = np.nan
        self.high[rows] = 0
        self.not_high[rows] = 0
        self.ack(rows)
        self._estimate(rows)

    def leave_out(self, row: int, nights: int) -> None:
        """Take the last ``nights`` out of the reference of ``row``."""
        self.kept[row] = np.concatenate((np.full(nights, np.nan), self.kept[row, : len(self.kept[row]) - nights]))
        self._estimate(np.arange(len(self.kept)) == row)

    def _keep(self, rows: Bools, rates: Floats) -> None:
        self.kept[rows, :-1] = self.kept[rows, 1:]
        self.kept[rows, -1] = rates[rows]

    def _renew(self, rows: Bools) -> None:
        known = rows & np.isfinite(self.kept[:, -LEAST_NIGHTS])
        first = known & np.isnan(self.level)
        self._estimate(known)
        self._leave_out_fall(first)

    def _leave_out_fall(self, rows: Bools) -> None:
        """A first reference that fell within its own nights, and stayed down, is that of the nights before."""
        for row in np.flatnonzero(rows).tolist():
            fallen = noise.fallen(self.kept[row])
            if fallen:
                self.leave_out(row, fallen)

    def _estimate(self, rows: Bools) -> None:
        if rows.any():
            self.level[rows], self.scale[rows], self.bad[rows] = noise.long_reference(self.kept[rows])

    def _rise(self, rows: Bools, rates: Floats, rose: Bools) -> None:
        """A level that has risen takes its reference from the nights since then."""
        high = rows & (rates > self.level + RISE_SCALES * self.scale)
        other = rows & ~high & (self.high > 0)
        # One night between high ones is forgiven once; a second one ends the count.
        ended = other & (self.not_high > 0)
        self.high = np.where(ended, 0, self.high + high)
        self.not_high = np.where(ended, 0, self.not_high + other)
        rose |= self.high + self.not_high >= RISE_NIGHTS
        if rose.any():
            self.restart(rose, RISE_NIGHTS)

    def _slot_share(self, slot: Integers) -> Floats:
        rows = np.arange(len(slot))
        bad = SLOT_BAD_PRIOR * SLOT_PRIOR_NIGHTS + self.slot_bad[rows, slot]
        return np.asarray(bad / (SLOT_PRIOR_NIGHTS + self.slot_nights[rows, slot]))

    def _count_slot(self, residual: Floats, slot: Integers) -> None:
        each = np.flatnonzero(np.isfinite(residual) & (slot > 0))
        self.slot_nights[each, slot[each]] += 1
        self.slot_bad[each, slot[each]] += residual[each] < -SLOT_BAD_SCALES * self.scale[each]

    def row(self, index: int) -> dict[str, Any]:
        """The state of one series as JSON values; NaN is null."""
        state: dict[str, Any] = {"form": _FORM}
        for name, values in self._arrays().items():
            state[name] = _plain(values[index])
        return state

    @classmethod
    def from_rows(cls, rows: Sequence[dict[str, Any]], threshold: float = THRESHOLD) -> Bank:
        """A bank of states taken by ``row``; raises ValueError on a state of another form."""
        bank = cls(len(rows), threshold)
        for index, state in enumerate(rows):
            bank.put(index, state)
        return bank

    def put(self, index: int, state: dict[str, Any]) -> None:
        """Set the state of one series to one taken by ``row``; raises ValueError on a state of another form."""
        if state.get("form") != _FORM:
            raise ValueError(f"a detector's state of form {state.get('form')!r}; {_FORM} is known")
        for name, values in self._arrays().items():
            values[index] = np.array(state[name], values.dtype)

    def _arrays(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}


def _plain(value: Any) -> Any:
    """Numbers or lists of them; NaN is null."""
    if value.dtype != np.float64 or not np.isnan(value).any():
        return value.tolist()
    return np.asarray(np.where(np.isnan(value), None, value)).tolist()
