"""From the histories of series to verdicts: a pure function over all of them at once.

Each series goes through its nights with its online state; what outlasts a night (a slowdown that was told and has not
ended, the level that was blessed) is kept beside it. docs/detection.md explains every verdict.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter

from iogauge.detect import noise
from iogauge.detect.bank import LEAST, LEAST_NIGHTS, LEFT_OUT, MOST, RISE_SCALES, THRESHOLD, Bank, Step, needed
from iogauge.detect.nights import Action, Dates, History
from iogauge.detect.noise import Bools, Floats, Integers

Word = Literal[
    "invalid", "no reference", "shifted level", "too noisy", "improved", "drift", "transient", "pass"
]  # fmt: skip
#: First match wins.
WORDS: tuple[Word, ...] = (
    "invalid",
    "no reference",
    "shifted level",
    "too noisy",
    "improved",
    "drift",
    "transient",
    "pass",
)

#: Up to here a reference is called provisional.
PROVISIONAL_NIGHTS = 30
#: A series in which no slowdown up to this could be found within ``FOUND_WITHIN`` nights is too noisy.
TOO_NOISY_ABOVE = 0.3
FOUND_WITHIN = 14
#: A slowdown has ended when the median of so many nights is back above half of it; one that comes and goes, when all of so
#: many nights are but one.
END_NIGHTS, END_SOME_NIGHTS = 5, 10
_BACK = "back at its level"
#: A series that was slower and came back so often in so many days is restless: it has to be slower, or for longer, than then,
#: by so much (in logarithms) and so many days: a move is not measured any better.
RESTLESS_MOVES, RESTLESS_DAYS = 3, 180
RESTLESS_DEEPER, RESTLESS_LONGER = 1.2, datetime.timedelta(days=3)
#: A rise is taken as the new normal after so many nights; a slowdown never is, but by an operator's word.
ACCEPTED_AFTER = 30
#: Drift: the median of so many nights is below the anchor by more than this part of it and so many scales.
DRIFT_NIGHTS, DRIFT_LEAST, DRIFT_SCALES = 20, 0.1, 2.0
#: A bad night: below the reference by more than this part of it and so many scales; n of the last k are told.
BAD_LEAST, BAD_SCALES, BAD_LOOKED_AT = 0.1, 3.0, 7
#: Nights that are looked back at from the first one judged.
LOOKED_BACK = 120
#: A change of software so many nights before a slowdown began is named with it.
CHANGE_NIGHTS = 3


@dataclass(frozen=True)
class Change:
    """Another version of software from ``date`` on; None: not there."""

    date: datetime.date
    name: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        return f"{self.name} {self.old or 'none'} -> {self.new or 'none'}"


@dataclass(frozen=True)
class Finding:
    """A level that has moved: the rate was ``before`` until ``began`` and ``after`` since; told on ``found``.

    Where it ``comes_and_goes``, ``after`` is the rate of its slow nights alone.
    """

    slower: bool
    began: datetime.date
    found: datetime.date
    before: float
    after: float
    changes: tuple[Change, ...] = ()
    acknowledged: Action | None = None
    ended: datetime.date | None = None
    how: str = ""
    comes_and_goes: bool = False

    @property
    def drop(self) -> float:
        """The part of the rate that is gone; negative for a rise."""
        return 1 - self.after / self.before


_FORM = "iogauge.series/1"
_FINDINGS: TypeAdapter[list[Finding]] = TypeAdapter(list[Finding])


@dataclass(frozen=True)
class SeriesVerdict:
    """The verdict on the last night of a series, with its evidence. Rates are in the series' unit.

    ``score`` of ``threshold`` is the evidence for a slowdown; ``smallest_drop`` the least slowdown that would be found
    within 14 nights; ``findings`` all that were ever told, the open one last.
    """

    key: str
    date: datetime.date
    word: Word
    reason: str
    rate: float | None = None
    repeats: tuple[float, ...] = ()
    reference: float | None = None
    anchor: float | None = None
    drop: float | None = None
    score: float = 0.0
    threshold: float = THRESHOLD
    smallest_drop: float | None = None
    nights: int = 0
    bad_nights: int = 0
    maintenance: bool = False
    findings: tuple[Finding, ...] = ()
    changes: tuple[Change, ...] = ()
    muted: Action | None = None
    notes: tuple[str, ...] = ()

    @property
    def finding(self) -> Finding | None:
        """The move of the level that has not ended."""
        return self.findings[-1] if self.findings and self.findings[-1].ended is None else None

    @property
    def provisional(self) -> bool:
        """Is the reference still young?"""
        return self.nights < PROVISIONAL_NIGHTS

    @property
    def new(self) -> bool:
        """Was the open finding told on this very night?"""
        return self.finding is not None and self.finding.found == self.date


@dataclass(frozen=True)
class Track:
    """What every night of a series showed, for plots and fusion: logarithms of rates, NaN where there is none.

    ``changed`` are the nights that are of another configuration than those before.
    """

    key: str
    dates: Dates
    rates: Floats
    reference: Floats
    level: Floats
    scale: Floats
    score: Floats
    slots: Integers
    changed: Dates
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Judged:
    """One of each a series, in the order of the histories; ``states`` are JSON values, from which ``judge`` goes on."""

    verdicts: tuple[SeriesVerdict, ...]
    tracks: tuple[Track, ...]
    states: tuple[dict[str, Any], ...]


def judge(
    histories: Sequence[History],
    actions: Mapping[str, Sequence[Action]] | None = None,
    *,
    states: Mapping[str, dict[str, Any]] | None = None,
    threshold: float = THRESHOLD,
    least_slowdown: float = 0.0,
) -> Judged:
    """Judge every night of each series; the verdicts are on the last ones. ``actions`` and ``states`` are by key.

    A slowdown is told at ``threshold``; steady ones below ``least_slowdown`` are not looked for.

    A series with a state goes on from it: only the nights after the state's are judged. Its history then has to hold, for
    looking back, the last ``LOOKED_BACK`` nights before these, or all of them; tracks are empty before. Raises ValueError for
    a history without a night and for a state of another form.
    """
    if any(not len(one) for one in histories):
        empty = next(one.key for one in histories if not len(one))
        raise ValueError(f"{empty}: a history without a night")
    run = _Run(histories, actions or {}, states or {}, Bank(len(histories), threshold, least_slowdown))
    for night in range(int(run.first.min(initial=run.nights)), run.nights):
        run.night(night)
    run.afterwards()
    columns = range(len(histories))
    return Judged(tuple(map(run.verdict, columns)), tuple(map(run.track, columns)), tuple(map(run.state, columns)))


@dataclass
class _Open:
    """The state of each series' finding, as arrays over series."""

    slower: Bools
    faster: Bools
    #: The level is back (slower) or gone again (faster) beyond this.
    halfway: Floats
    nights: Integers

    @classmethod
    def none(cls, series: int) -> _Open:
        return cls(np.zeros(series, bool), np.zeros(series, bool), np.full(series, np.nan), np.zeros(series, np.int64))


@dataclass
class _Row:
    """What is kept of one series beside its arrays."""

    history: History
    pending: list[tuple[int, Action]]
    findings: list[Finding] = field(default_factory=list)


class _Run:
    """All series night by night; night ``i`` is the ``i``-th of each series, whatever its date."""

    def __init__(
        self,
        histories: Sequence[History],
        actions: Mapping[str, Sequence[Action]],
        states: Mapping[str, dict[str, Any]],
        bank: Bank,
    ) -> None:
        count = len(histories)
        self.nights = max(map(len, histories), default=0)
        self.bank = bank
        self.rows = [_Row(one, _by_night(one, actions.get(one.key, ()))) for one in histories]
        self.open = _Open.none(count)
        self.anchor: Floats = np.full(count, np.nan)
        self.anchored: Bools = np.zeros(count, bool)
        shape = (self.nights, count)
        self.rates: Floats = np.full(shape, np.nan)
        self.slots: Integers = np.zeros(shape, np.int64)
        changes: dict[int, set[int]] = {}
        for column, one in enumerate(histories):
            with np.errstate(divide="ignore", invalid="ignore"):
                self.rates[: len(one), column] = np.where(one.rates > 0, np.log(one.rates), np.nan)
            self.slots[: len(one), column] = one.slots
            for night in (np.flatnonzero(np.diff(one.configuration)) + 1).tolist():
                changes.setdefault(night, set()).add(column)
            for after, _ in self.rows[column].pending:
                changes.setdefault(self.nights if after == len(one) else after, set()).add(column)
        self.rates[~np.isfinite(self.rates)] = np.nan
        self.events = changes
        self.kept = {
            name: np.full(shape, np.nan) for name in ("residual", "reference", "level", "scale", "bad", "score")
        }
        self.scales = self.kept["scale"]
        self.first: Integers = np.zeros(count, np.int64)
        for column, one in enumerate(histories):
            if one.key in states:
                self._resume(column, states[one.key])

    def _resume(self, column: int, state: dict[str, Any]) -> None:
        """Take up a series where ``state`` was written."""
        if state.get("form") != _FORM:
            raise ValueError(f"a state of form {state.get('form')!r}; {_FORM} is known")
        one = self.rows[column].history
        first = int(np.searchsorted(one.dates, np.datetime64(state["night"]), side="right"))
        self.first[column] = first
        self.bank.put(column, state["detector"])
        self.rows[column].findings = _FINDINGS.validate_python(state["findings"])
        self.anchor[column] = np.nan if state["anchor"] is None else state["anchor"]
        self.anchored[column] = state["anchored"]
        if state["open"] is not None:
            finding = self.rows[column].findings[-1]
            self.open.slower[column], self.open.faster[column] = finding.slower, not finding.slower
            self.open.halfway[column], self.open.nights[column] = state["open"]
        for back, values in enumerate(reversed(state["recent"]), start=1):
            if back <= first:
                for name, value in values.items():
                    self.kept[name][first - back, column] = np.nan if value is None else value

    def state(self, column: int) -> dict[str, Any]:
        """What ``_resume`` takes up."""
        one = self.rows[column].history
        judged = np.flatnonzero(np.isfinite(self.kept["residual"][: len(one), column]))
        is_open = self._is_open(column)
        return {
            "form": _FORM,
            "night": str(_date(one, len(one) - 1)),
            "detector": self.bank.row(column),
            "findings": _FINDINGS.dump_python(self.rows[column].findings, mode="json"),
            "anchor": _number(self.anchor[column]),
            "anchored": bool(self.anchored[column]),
            "open": [float(self.open.halfway[column]), int(self.open.nights[column])] if is_open else None,
            "recent": [
                {name: _number(values[night, column]) for name, values in self.kept.items()}
                for night in range(judged[-BAD_LOOKED_AT:].min(initial=len(one) - 1), len(one))
            ],
        }

    def night(self, night: int) -> None:
        """One night of all series: operators first, then the detector, then what has begun or ended."""
        for column in sorted(self.events.get(night, ())):
            if night >= self.first[column]:
                self._event(column, night)
        new = night >= self.first
        step = self.bank.step(np.where(new, self.rates[night], np.nan), self.slots[night])
        for name, values in self.kept.items():
            values[night] = np.where(new, getattr(step, name), values[night])
        told = np.isfinite(step.residual) & (step.score >= self.bank.threshold)
        self._end(night)
        for column in np.flatnonzero(told).tolist():
            self._begin_slower(column, night, step)
        for column in np.flatnonzero(step.rose).tolist():
            self._begin_faster(column, night, step)
        self.bank.ack(told)
        self._anchor()

    def afterwards(self) -> None:
        """What operators have said since the last night of each series: no night has shown its scale since."""
        self.scales = self.kept["scale"].copy()
        for column in sorted(self.events.get(self.nights, ())):
            self._event(column, len(self.rows[column].history))

    def _event(self, column: int, night: int) -> None:
        row, one = self.rows[column], self.rows[column].history
        rows = self._only(column)
        if 0 < night < len(one) and one.configuration[night] != one.configuration[night - 1]:
            self._close(column, night, "another configuration")
            self._restart(rows)
        for when, action in row.pending:
            if when != night:
                continue
            if action.kind == "ack":
                self.bank.ack(rows)
                if self._began_by(column, action.since):
                    row.findings[-1] = replace(row.findings[-1], acknowledged=action)
            elif action.kind == "anew":
                self.bank.ack(rows)
                if self._began_by(column, action.since):
                    began = row.findings[-1].began
                    self._close(column, min(night, len(one) - 1), action.why)
                    self.bank.leave_out(column, self._nights_since(column, night, began))
                    if night == len(one):
                        self.kept["residual"][night - 1, column] = self.kept["score"][night - 1, column] = 0.0
            elif action.kind == "bless":
                self._close(column, min(night, len(one) - 1), f"blessed by {action.who}: {action.why}")
                self._restart(rows, self._nights_since(column, night, action.since or action.said))
                if night == len(one):
                    self._seen_anew(column)

    def _began_by(self, column: int, since: datetime.date | None) -> bool:
        """Is a finding open, and did it begin by ``since``, if that matters?"""
        return self._is_open(column) and (since is None or self.rows[column].findings[-1].began <= since)

    def _seen_anew(self, column: int) -> None:
        """The last night of a series against the reference that it has been given since."""
        last = len(self.rows[column].history) - 1
        rows = slice(column, column + 1)
        reference = noise.reference(self.bank.kept[rows], self.bank.level[rows], self.bank.scale[rows])[0]
        self.kept["reference"][last, column] = reference
        self.kept["residual"][last, column] = self.rates[last, column] - reference
        self.kept["scale"][last, column] = self.bank.scale[column]
        self.kept["score"][last, column] = 0.0

    def _nights_since(self, column: int, night: int, since: datetime.date) -> int:
        """How many nights that the reference keeps are from ``since`` on."""
        one = self.rows[column].history
        rates, slots = self.rates[:night, column], self.slots[:night, column]
        counted = np.isfinite(rates) & (slots == 0) & (one.dates[:night] >= np.datetime64(since))
        return min(int(counted.sum()), noise.KEPT_NIGHTS)

    def _restart(self, rows: Bools, keep_nights: int = 0) -> None:
        self.bank.restart(rows, keep_nights)
        self.anchored[rows] = False
        self.anchor[rows] = self.bank.level[rows]

    def _begin_slower(self, column: int, night: int, step: Step) -> None:
        row, since = self.rows[column], max(int(step.nights[column]), 1)
        rates = self.rates[: night + 1, column]
        began = np.flatnonzero(np.isfinite(rates))[-since:][0]
        share = float(step.share[column])
        some = share < 1
        slow = np.sort(rates[began:][np.isfinite(rates[began:])])
        slow = slow[: int(np.ceil(share * len(slow)))]
        before, after = float(step.before[column]), float(np.median(slow))
        if after >= before:
            return
        if self._is_open(column):
            if row.findings[-1].slower:
                # It went on, or got worse: the same finding, from the level before the first step.
                first = row.findings[-1]
                lowest = min(first.after, float(np.exp(after)))
                row.findings[-1] = replace(first, after=lowest, comes_and_goes=some)
                return
            self._close(column, night, "slower again")
        finding = Finding(
            slower=True,
            began=_date(row.history, int(began)),
            found=_date(row.history, night),
            before=float(np.exp(before)),
            after=float(np.exp(after)),
            changes=changes(row.history, int(began) - CHANGE_NIGHTS, int(began)),
            comes_and_goes=some,
        )
        self._put(column, finding, 0.5 * (before + after))

    def _begin_faster(self, column: int, night: int, step: Step) -> None:
        row = self.rows[column]
        if self._is_open(column) and row.findings[-1].slower:
            return
        ordinary = np.isfinite(self.rates[: night + 1, column]) & (self.slots[: night + 1, column] == 0)
        began = int(np.flatnonzero(ordinary)[-noise.SHORT_NIGHTS :][0]) if ordinary.any() else night
        before, after = float(step.level[column]), float(self.bank.level[column])
        high = self.rates[began : night + 1, column] > 0.5 * (before + after)
        began += int(np.argmax(high))
        if after <= self.anchor[column] + RISE_SCALES * step.scale[column]:
            return  # Back where it belongs is no improvement.
        if self._is_open(column):
            before = np.log(row.findings[-1].before)
            self._close(column, night, "faster still")
        finding = Finding(
            slower=False,
            began=_date(row.history, began),
            found=_date(row.history, night),
            before=float(np.exp(before)),
            after=float(np.exp(after)),
            changes=changes(row.history, began - CHANGE_NIGHTS, began),
        )
        self._put(column, finding, 0.5 * (before + after))

    def _put(self, column: int, finding: Finding, halfway: float) -> None:
        self.rows[column].findings.append(finding)
        self.open.slower[column], self.open.faster[column] = finding.slower, not finding.slower
        self.open.halfway[column] = halfway
        self.open.nights[column] = 0

    def _end(self, night: int) -> None:
        """Close what is over: slow series that are back, fast ones that are gone again or have become normal."""
        some = np.flatnonzero(self.open.slower | self.open.faster)
        if not some.size:
            return
        new = night >= self.first[some]
        now = new & np.isfinite(self.rates[night, some]) & (self.slots[night, some] == 0)
        self.open.nights[some] += now
        recent = noise.median(self.bank.kept[some, -END_NIGHTS:])
        higher = recent > self.open.halfway[some]
        settled = now & (self.open.nights[some] >= END_NIGHTS)
        slower = self.open.slower[some]
        ended = settled & slower & higher
        for row in np.flatnonzero(ended):
            if self.rows[some[row]].findings[-1].comes_and_goes:
                last = self.bank.kept[some[row], -END_SOME_NIGHTS:]
                low = (last < self.open.halfway[some[row]]).sum()
                ended[row] = self.open.nights[some[row]] >= END_SOME_NIGHTS and low <= 1
        for column in some[ended]:
            self._close(int(column), night, _BACK)
        for column in some[settled & ~slower & ~higher]:
            self._close(int(column), night, _BACK)
        for column in some[settled & ~slower & higher & (self.open.nights[some] >= ACCEPTED_AFTER)]:
            self._close(int(column), night, f"normal after {ACCEPTED_AFTER} nights")
            self.anchor[column] = self.bank.level[column]

    def _close(self, column: int, night: int, how: str) -> None:
        if self._is_open(column):
            findings = self.rows[column].findings
            findings[-1] = replace(findings[-1], ended=_date(self.rows[column].history, night), how=how)
            self.open.slower[column] = self.open.faster[column] = False

    def _is_open(self, column: int) -> bool:
        return bool(self.open.slower[column] or self.open.faster[column])

    def _anchor(self) -> None:
        """The anchor is the first reference that is no longer provisional; it moves by an operator's word alone."""
        young = ~self.anchored & ~self.open.slower
        self.anchor = np.where(young, self.bank.level, self.anchor)
        self.anchored |= young & np.isfinite(self.bank.kept[:, -PROVISIONAL_NIGHTS])

    def _only(self, column: int) -> Bools:
        rows = np.zeros(len(self.rows), bool)
        rows[column] = True
        return rows

    def track(self, column: int) -> Track:
        """All nights of one series."""
        row = self.rows[column]
        nights = slice(len(row.history))
        return Track(
            row.history.key,
            row.history.dates,
            self.rates[nights, column],
            reference=self.kept["reference"][nights, column],
            level=self.kept["level"][nights, column],
            scale=self.scales[nights, column],
            score=self.kept["score"][nights, column],
            slots=self.slots[nights, column],
            changed=row.history.dates[1:][np.diff(row.history.configuration) != 0],
            findings=tuple(row.findings),
        )

    def verdict(self, column: int) -> SeriesVerdict:
        """The last night of one series."""
        row, one = self.rows[column], self.rows[column].history
        last = len(one) - 1
        at: dict[str, Any] = {name: float(values[last, column]) for name, values in self.kept.items()}
        finding = row.findings[-1] if self._is_open(column) else None
        reference = None if np.isnan(at["reference"]) else float(np.exp(at["reference"]))
        if finding is not None:
            reference = finding.before
        rate = self.rates[last, column]
        judged = np.flatnonzero(np.isfinite(self.kept["residual"][: len(one), column]))[-BAD_LOOKED_AT:]
        limit = -np.maximum(-np.log1p(-BAD_LEAST), BAD_SCALES * self.kept["scale"][judged, column])
        bad = self.kept["residual"][judged, column] < limit
        word, reason = self._word(column, last, at, bad, finding)
        muted = [action for _, action in row.pending if action.kind == "mute" and _holds(action, one.dates[last])]
        return SeriesVerdict(
            key=one.key,
            date=_date(one, last),
            word=word,
            reason=reason,
            rate=None if np.isnan(rate) else float(one.rates[last]),
            repeats=tuple(one.repeats.get(last, ())),
            reference=reference,
            anchor=None if np.isnan(self.anchor[column]) else float(np.exp(self.anchor[column])),
            drop=None if np.isnan(rate) or reference is None else float(1 - np.exp(rate) / reference),
            score=0.0 if np.isnan(at["score"]) else at["score"],
            threshold=self.bank.threshold,
            smallest_drop=self._smallest(column),
            nights=int(self.bank.nights()[column]),
            bad_nights=int(bad.sum()),
            maintenance=bool(one.slots[last]),
            findings=tuple(row.findings),
            changes=changes(one, last - FOUND_WITHIN, last),
            muted=muted[-1] if muted else None,
            notes=one.notes,
        )

    def _smallest(self, column: int) -> float | None:
        scale, bad = float(self.bank.scale[column]), float(self.bank.bad[column])
        # Two digits are enough, and many series share them.
        return (
            None
            if np.isnan(scale)
            else smallest_drop(round(scale, 2), round(bad, 2), self.bank.threshold, self.bank.least_slowdown)
        )

    def _word(
        self, column: int, last: int, at: dict[str, float], bad: Bools, finding: Finding | None
    ) -> tuple[Word, str]:
        one = self.rows[column].history
        if last in one.invalid or np.isnan(self.rates[last, column]):
            return "invalid", one.invalid.get(last, "no rate")
        have = int(self.bank.nights()[column])
        if finding is not None and finding.slower:
            return _usual(self.rows[column].findings, _date(one, last)) or ("shifted level", _told(finding))
        if one.slots[last] == LEFT_OUT:
            return "pass", "in a maintenance window: not judged"
        if np.isnan(at["reference"]):
            return "no reference", f"{have} of {LEAST_NIGHTS} nights"
        smallest = self._smallest(column)
        if smallest is None or smallest > TOO_NOISY_ABOVE:
            least = "none" if smallest is None or smallest >= 1 else f"{smallest:.0%}"
            return "too noisy", f"smallest slowdown that could be found within {FOUND_WITHIN} nights: {least}"
        if finding is not None:
            return "improved", _told(finding)
        drifted = self._drift(column)
        if drifted:
            return "drift", drifted
        if bad.size and bad[-1]:
            reason = f"{1 - np.exp(at['residual']):.0%} below the reference; {bad.sum()} of {len(bad)} nights"
            return "transient", reason + (", in a maintenance window" if one.slots[last] else "")
        return "pass", "in a maintenance window" if one.slots[last] else ""

    def _drift(self, column: int) -> str:
        recent = float(noise.median(self.bank.kept[column : column + 1, -DRIFT_NIGHTS:])[0])
        gone = self.anchor[column] - recent
        least = max(-np.log1p(-DRIFT_LEAST), DRIFT_SCALES * self.bank.scale[column])
        if not self.anchored[column] or not gone > least:
            return ""
        anchor = np.exp(self.anchor[column])
        return f"the median of {DRIFT_NIGHTS} nights is {1 - np.exp(-gone):.0%} below the anchor, {anchor:.4g}"


@functools.lru_cache(maxsize=4096)
def smallest_drop(scale: float, bad: float, threshold: float = THRESHOLD, least_slowdown: float = 0.0) -> float | None:
    """The least slowdown that is found within 14 nights four times in five, for this noise; None: not even 90 %."""
    quantiles = (np.arange(40) + 0.5) / 40
    core = scale / noise.CORE * np.log(np.tan(0.5 * np.pi * quantiles))
    tail = -scale + noise.TAIL * np.log1p(-quantiles)
    noise_of = np.concatenate((core, tail))
    weight = np.repeat([1 - bad, bad], 40) / 40
    drops = np.arange(0.02, 0.91, 0.01)
    residual = (noise_of + np.log1p(-drops)[:, None]).ravel()
    each = noise.evidence(residual, np.full(residual.size, scale), np.full(residual.size, bad))
    counted = np.clip(each / needed(threshold, least_slowdown), LEAST, MOST).reshape(len(drops), len(weight), -1)
    mean = np.einsum("dnl,n->dl", counted, weight)
    spread = np.sqrt(np.einsum("dnl,n->dl", (np.clip(counted, -1, None) - mean[:, None]) ** 2, weight))
    surely = FOUND_WITHIN * mean - 0.84 * np.sqrt(FOUND_WITHIN) * spread >= 1
    found = surely.any(axis=1)
    return float(drops[np.argmax(found)]) if found.any() else None


def _usual(findings: Sequence[Finding], date: datetime.date) -> tuple[Word, str] | None:
    """The verdict on an open slowdown that is no more than the series did by itself lately; None where it is news."""
    now, lately = findings[-1], date - datetime.timedelta(days=RESTLESS_DAYS)
    moves = [f for f in findings[:-1] if f.slower and f.how == _BACK and f.ended and f.ended >= lately]
    moves = [f for f in moves if f.acknowledged is None]
    if len(moves) < RESTLESS_MOVES:
        return None
    deepest, longest = max(f.drop for f in moves), max(f.ended - f.found for f in moves if f.ended)
    deeper = np.log1p(-now.drop) < RESTLESS_DEEPER * np.log1p(-deepest)
    if deeper or date - now.found > longest + RESTLESS_LONGER:
        return None
    often = f"{len(moves)} times in {RESTLESS_DAYS} days it was slower and came back, by up to {deepest:.0%}"
    return "too noisy", f"{often} and for {longest.days} days; now {_told(now)}"


def _told(finding: Finding) -> str:
    often = "on many nights " if finding.comes_and_goes else ""
    moved = f"{abs(finding.drop):.0%} {'slower' if finding.slower else 'faster'} {often}since {finding.began}"
    software = f", since {', '.join(map(str, finding.changes))}" if finding.changes else ""
    known = f"; acknowledged by {finding.acknowledged.who}" if finding.acknowledged else ""
    return f"{moved}{software} ({finding.before:.4g} -> {finding.after:.4g}; told {finding.found}){known}"


def changes(one: History, first: int, last: int) -> tuple[Change, ...]:
    """Changes of software between the nights ``first`` and ``last``, the newest of each name."""
    found: dict[str, Change] = {}
    for night in range(max(first, 1), last + 1):
        old, new = (one.versions[one.software[n]] for n in (night - 1, night))
        if old is new:
            continue
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                found[name] = Change(_date(one, night), name, old.get(name), new.get(name))
    return tuple(found.values())


def _by_night(one: History, actions: Sequence[Action]) -> list[tuple[int, Action]]:
    """Actions with the first night after each; one that no night has followed yet holds from the last one."""
    placed = []
    for action in sorted(actions, key=lambda each: each.said):
        night = int(np.searchsorted(one.dates, np.datetime64(action.said), side="right"))
        placed.append((night, action))
    return placed


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _holds(action: Action, date: np.datetime64) -> bool:
    return action.until is not None and bool(date < np.datetime64(action.until))


def _date(one: History, night: int) -> datetime.date:
    date: datetime.date = one.dates[night].astype("datetime64[D]").item()
    return date
