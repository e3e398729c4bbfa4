"""``NightlyDetector``: one series, one night at a time."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from iogauge.detect.bank import THRESHOLD, Bank, Step
from iogauge.detect.noise import Bools, Floats, Integers


class Verdict(NamedTuple):
    """``score`` is the evidence for a slowdown; it is told when ``score >= NightlyDetector.h``."""

    status: str
    score: float


class NightlyDetector:
    """Finds the nights from which a series is slower, from its own past.

    ``ctx`` is a mapping with ``maint`` (does the night lie in a maintenance window?) and ``dom`` (day of the month) or
    ``date``; nothing else of it is used. Values are rates in any one unit; what is no positive number is left out.
    """

    #: Range in which a threshold can be looked for.
    h_range = (0.5, 60.0)

    def __init__(self, h: float = THRESHOLD) -> None:
        self._bank = Bank(1, h)

    @property
    def h(self) -> float:
        """The evidence at which a slowdown is told; the cap on one night's evidence moves with it."""
        return self._bank.threshold

    @h.setter
    def h(self, value: float) -> None:
        self._bank.threshold = value

    def fit(self, values: Sequence[float], ctx: Sequence[Mapping[str, Any]]) -> None:
        """Start anew with the reference nights, oldest first."""
        self._bank = Bank(1, self.h)
        rates = np.array([_log(value) for value in values]).reshape(-1, 1)
        self._bank.learn(rates, np.array([_slot(night) for night in ctx]).reshape(-1, 1))

    def update(self, value: float, ctx: Mapping[str, Any]) -> Verdict:
        """Judge one night: ``regression``, ``transient`` (a bad night), ``pass``, or ``invalid`` (no rate, no evidence)."""
        step = self._bank.step(_log(value), _slot(ctx))
        score = float(step.score[0])
        return Verdict(_status(step, score >= self.h) if math.isfinite(value) and value > 0 else "invalid", score)

    def ack(self) -> None:
        """Forget the evidence, keep the reference: an operator has dismissed the alarm."""
        self._bank.ack(_ROW)


_ROW: Bools = np.ones(1, dtype=bool)


def _status(step: Step, told: bool) -> str:
    if told:
        return "regression"
    return "transient" if step.residual[0] < -3 * step.scale[0] else "pass"


def _log(value: float) -> Floats:
    return np.array([math.log(value) if math.isfinite(value) and value > 0 else math.nan])


def _slot(ctx: Mapping[str, Any]) -> Integers:
    if not ctx.get("maint", False):
        return np.zeros(1, dtype=np.int64)
    day = ctx.get("dom")
    if day is None:
        date: datetime.date = ctx["date"]
        day = date.day
    return np.array([int(day)])
