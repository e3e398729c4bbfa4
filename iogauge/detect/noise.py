"""What a series does on ordinary nights: its reference, its scale, how often a night is bad, and the evidence for a slowdown.

All values are natural logarithms of rates, so that a slowdown of 20 % is the same step at any rate. Every function works
on many series at once: arrays have one row a series. docs/detection.md explains each number and where it comes from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

#: The reference: the median of the last 75 nights but 7, or of the last 10 but 4 where that is clearly lower.
LONG_NIGHTS, LONG_LAG = 75, 7
SHORT_NIGHTS, SHORT_LAG = 10, 4
#: Nights that a state keeps.
KEPT_NIGHTS = LONG_NIGHTS + LONG_LAG
#: A younger reference has no lag yet: it needs its nights.
LAG_FROM_NIGHTS = 20

#: No series is quieter than this: the clock, the allocation, the weather of a file system.
SCALE_FLOOR = 0.03
#: Where a scale starts from, and the nights that this counts for.
SCALE_PRIOR, SCALE_PRIOR_NIGHTS = 0.08, 15.0

#: Below this many scales a night is bad: a neighbour, not the core of the noise.
BAD_BELOW_SCALES = 3.0
#: How often nights are bad before any was seen, and the nights that this counts for.
BAD_PRIOR, BAD_PRIOR_NIGHTS = 0.15, 20.0

#: A first reference fell within its own nights when all its last ones but one, this many at least, are below the median
#: of those before, this many at least, by so much and so many scales.
FALL_NIGHTS, FALL_AFTER, FALL_LEAST, FALL_SCALES = 5, 3, -np.log(0.7), 3.0

#: The slowdowns looked for. Beside them a collapse: half of the rate is gone, or whatever more a night shows.
SLOWDOWNS = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
COLLAPSE = np.log(0.5)
#: The slowdowns that are looked for as ones that come and go, and the share of the nights that they hit.
COME_AND_GO = np.array([0.3, 0.4, 0.5, 0.4, 0.5, 0.6])
SHARE_HIT = np.array([0.5, 0.5, 0.5, 0.4, 0.4, 0.4])

_DIFFERENT = np.unique(np.concatenate(([0.0], SLOWDOWNS, COME_AND_GO)))
_STEPS = np.log1p(-_DIFFERENT)
_STEADY = np.append(np.searchsorted(_DIFFERENT, SLOWDOWNS), len(_DIFFERENT)) - 1
_OF_COME_AND_GO = np.searchsorted(_DIFFERENT, COME_AND_GO) - 1

#: sech(1.307 z) has a median absolute deviation of 1 / 1.4826, z in scales; a little narrower tells small steps better.
CORE = 1.4
#: Length of the tail of bad nights, in logarithms; the density that any night keeps.
TAIL, FLAT = 0.8, 1e-4

_TO_SCALE = 1.4826


def median(values: Floats) -> Floats:
    """The median of each row; NaN is no value, and the median of none is NaN."""
    return _middle(np.sort(values, axis=1))


def _middle(ordered: Floats) -> Floats:
    """The median of each row that is sorted."""
    most = ordered.shape[1]
    if np.isfinite(ordered[:, -1]).all():
        return np.asarray(0.5 * (ordered[:, (most - 1) // 2] + ordered[:, most // 2]))
    count = np.isfinite(ordered).sum(axis=1)
    rows = np.arange(len(ordered))
    lower, upper = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, most - 1)
    return np.asarray(0.5 * (ordered[rows, lower] + ordered[rows, upper]))


def _window(kept: Floats, nights: int, lag: Integers) -> Floats:
    """The last ``nights`` but ``lag`` of each row of ``kept`` (newest last); what is outside is NaN."""
    age = np.arange(kept.shape[1] - 1, -1, -1)
    inside = (age >= lag[:, None]) & (age < lag[:, None] + nights)
    return np.where(inside, kept, np.nan)


def long_reference(kept: Floats) -> tuple[Floats, Floats, Floats]:
    """Level, scale and share of bad nights of each row of ``kept``: shape (series, ``KEPT_NIGHTS``), newest last."""
    # Most rows are full, and without empty places all that follows takes a third of the time.
    full = _full(kept)
    if full.all():
        return _of_window(kept[:, :LONG_NIGHTS], LONG_NIGHTS)
    if full.any():
        found = np.empty((3, len(kept)))
        for rows in (full, ~full):
            found[:, rows] = long_reference(kept[rows])
        return found[0], found[1], found[2]
    nights = np.isfinite(kept).sum(axis=1)
    window = _window(kept, LONG_NIGHTS, np.clip(nights - LAG_FROM_NIGHTS, 0, LONG_LAG))
    return _of_window(window, np.isfinite(window).sum(axis=1))


def _full(kept: Floats) -> Bools:
    """Which rows have all their nights: the oldest are the first to be missing."""
    return np.asarray(np.isfinite(kept[:, 0]) & (kept.shape[1] == KEPT_NIGHTS))


def _of_window(window: Floats, count: Integers | int) -> tuple[Floats, Floats, Floats]:
    """Level, scale and share of bad nights of each row's reference nights, ``count`` of them."""
    level = median(window)
    residual = window - level[:, None]
    deviations, steps = np.abs(residual), np.abs(window[:, 1:] - window[:, :-1])
    deviations.sort(axis=1)
    steps.sort(axis=1)
    spread = _TO_SCALE * _middle(deviations)
    between_nights = _TO_SCALE * _middle(steps) / np.sqrt(2)
    measured = np.sqrt(spread * between_nights) + 1e-3
    prior = SCALE_PRIOR_NIGHTS * np.log(SCALE_PRIOR)
    scale = np.exp((count * np.log(measured) + prior) / (count + SCALE_PRIOR_NIGHTS))
    scale = np.hypot(scale, SCALE_FLOOR)
    bad = (residual < -BAD_BELOW_SCALES * scale[:, None]).sum(axis=1)
    share = (BAD_PRIOR * BAD_PRIOR_NIGHTS + bad) / (BAD_PRIOR_NIGHTS + count)
    return level, scale, np.minimum(share, 0.5)


def reference(kept: Floats, level: Floats, scale: Floats) -> Floats:
    """``level``, or the median of the last nights where it is lower by more than its own error."""
    recent = kept[:, -(SHORT_NIGHTS + SHORT_LAG) :]
    if _full(kept).all():
        short, count = recent[:, :SHORT_NIGHTS], np.asarray(SHORT_NIGHTS)
    else:
        nights = np.isfinite(kept).sum(axis=1)
        short = _window(recent, SHORT_NIGHTS, np.clip(nights - LAG_FROM_NIGHTS + 6, 0, SHORT_LAG))
        count = np.maximum(np.isfinite(short).sum(axis=1), 1)
    return np.asarray(np.fmin(level, median(short) + 1.25 * scale / np.sqrt(count)))


def fallen(kept: Floats) -> int:
    """How many of the last nights of one series lie below all that was before and stayed there; 0 where none do."""
    nights = kept[np.isfinite(kept)]
    for before in range(FALL_AFTER, len(nights) - FALL_NIGHTS + 1):
        level, scale, _ = long_reference(nights[None, :before])
        low = nights[before:] < level[0] - max(FALL_LEAST, FALL_SCALES * scale[0])
        if low[0] and low.sum() >= len(low) - 1:
            return len(low)
    return 0


def log_density(residual: Floats, scale: Floats, bad: Floats) -> Floats:
    """Of a night's residual: a narrow core (hyperbolic secant), and a long tail of bad nights below it."""
    e = np.exp(-CORE * np.abs(residual / scale))
    core = 2 * CORE / np.pi / scale * e / (1 + e * e)
    excess = np.where(
        residual < scale, np.minimum(residual + scale, 0) / TAIL, (scale - residual) / (0.3 * scale + 0.05)
    )
    tail = np.exp(excess) / (TAIL + 0.3 * scale + 0.05)
    return np.asarray(np.log((1 - bad) * core + bad * tail + FLAT))


def evidence(residual: Floats, scale: Floats, bad: Floats) -> Floats:
    """How much likelier each residual is with each of ``SLOWDOWNS``, with a collapse, and with those of ``COME_AND_GO``.

    Log ratios of shape (series, 12).
    """
    steps = np.column_stack((np.tile(_STEPS, (len(residual), 1)), np.fmin(residual, COLLAPSE)))
    density = log_density(residual[:, None] - steps, scale[:, None], bad[:, None])
    ratio = density[:, 1:] - density[:, :1]
    # Whether a night was hit is not known: the ratio is the mean of both. A good night then counts little against it.
    some = np.log1p(SHARE_HIT * np.expm1(ratio[:, _OF_COME_AND_GO]))
    return np.column_stack((ratio[:, _STEADY], some))
