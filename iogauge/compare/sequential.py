"""A test of paired rates that is valid at every look, so that a comparison ends as soon as it knows.

A pair is one run of each arm, back to back, in an order drawn at random; ``d`` is the logarithm of its ratio of rates, B over
A. If the arms are equal, the random order makes ``d`` symmetric about 0, whatever the noise is like; if B's true ratio is
``r``, ``d - log r`` is. A gambler who stakes an odd, bounded function of ``d`` on its sign then plays a fair game: the
fortune is a test martingale, and by Ville's inequality it reaches ``1 / alpha`` with a probability of at most ``alpha``, ever
(J. Ville, "Étude critique de la notion de collectif", 1939; G. Shafer, "Testing by betting", J. R. Stat. Soc. A 184, 2021).
Nothing is assumed of the noise's size, tails or constancy: one awful pair loses one stake.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Finding = Literal["slower", "not slower", "faster", "undecided"]

#: The bets among which a fortune is spread: how large a deviation has to be to be trusted (1 / scale, in log ratio), and the
#: part of the fortune that is staked on it. They fit noise from 0.4 % to a factor; more of them change little.
_SCALES = np.geomspace(1.0, 256.0, 17)
_STAKES = np.array([0.5, 0.8, 0.95, 1.0])

#: Limits of an interval are looked for down to a hundredth of the lowest ratio, this exactly (log ratio).
_WIDEST, _PRECISION = math.log(100.0), 1e-4


def fortune(d: Sequence[float] | Floats, centre: float | Floats = 0.0) -> Floats:
    """The logarithm of the fortune after each pair, betting that ``d`` is above ``centre``.

    ``d``: log ratios, shape (pairs,). ``centre``: log ratios to be tested, any shape; the result has shape (*centre, pairs).
    Bets against it: ``fortune(-d, -centre)``.
    """
    deviations = np.asarray(d, np.float64) - np.asarray(centre, np.float64)[..., None]
    bets = np.tanh(_SCALES[:, None] * deviations[..., None, :])[..., None, :] * _STAKES[:, None]
    with np.errstate(divide="ignore"):
        summed = np.cumsum(np.log1p(bets), axis=-1)
    best = summed.max(axis=(-3, -2), keepdims=True)
    shared = np.log(np.mean(np.exp(summed - best), axis=(-3, -2)))
    return np.asarray(shared + best[..., 0, 0, :])


def anytime_p(d: Sequence[float] | Floats, centre: float = 0.0) -> float:
    """A bound on the probability of ever seeing so much evidence that the ratio is above ``centre``, if it is not."""
    if len(d) == 0:
        return 1.0
    return float(min(1.0, np.exp(-fortune(d, centre).max())))


def interval(d: Sequence[float] | Floats, alpha: float) -> tuple[float, float]:
    """Log ratios that are not refuted, lowest and highest: at every look at once they hold the true one with 1 - ``alpha``.

    Infinite where nothing is known. Shape of ``d``: (pairs,).
    """
    values = np.asarray(d, np.float64)
    limit = math.log(2 / alpha)
    return _lowest(values, limit), -_lowest(-values, limit)


def _lowest(d: Floats, limit: float) -> float:
    """The least centre that is not refuted; the fortune falls as the centre rises."""
    if not d.size or fortune(d, float(d.min()) - _WIDEST).max() < limit:
        return -math.inf
    refuted, kept = float(d.min()) - _WIDEST, float(d.max())
    while kept - refuted > _PRECISION:
        middle = (refuted + kept) / 2
        if fortune(d, middle).max() >= limit:
            refuted = middle
        else:
            kept = middle
    return refuted


@dataclass(frozen=True)
class Outcome:
    """What the pairs of one pattern say of B against A; ratios of rates, below 1: B is slower.

    ``lowest`` and ``highest`` hold the true ratio for all patterns at once with the probability 1 - alpha. ``provable`` is the
    least margin for which *not slower* holds already.
    """

    finding: Finding
    pairs: int
    ratio: float
    lowest: float
    highest: float

    @property
    def provable(self) -> float:
        """As a fraction of A's rate; 1: none."""
        return max(0.0, 1.0 - self.lowest)


def judge(pairs: Mapping[str, Sequence[float]], *, margin: float, alpha: float = 0.05) -> dict[str, Outcome]:
    """The outcome of each pattern from its log ratios, all together (Holm).

    With a probability of at least 1 - ``alpha`` no pattern is called slower or faster that is not, whenever one looks; and
    likewise none *not slower* that is slower by more than ``margin`` (a fraction of A's rate). Raises ValueError for a margin
    or alpha outside 0 to 1, and for ratios that are not finite.
    """
    for name, value in (("margin", margin), ("alpha", alpha)):
        if not 0 < value < 1:
            raise ValueError(f"{name}: {value} is not between 0 and 1")
    if any(not math.isfinite(value) for d in pairs.values() for value in d):
        raise ValueError("a log ratio is not finite")
    within = math.log1p(-margin)
    different = {("slower", name): anytime_p(np.negative(d)) for name, d in pairs.items()}
    different |= {("faster", name): anytime_p(d) for name, d in pairs.items()}
    found = _holm(different, alpha)
    equal = _holm({("not slower", name): anytime_p(d, within) for name, d in pairs.items()}, alpha)
    outcomes = {}
    for name, d in pairs.items():
        words: tuple[Finding, ...] = ("slower", "faster", "not slower")
        finding: Finding = next((word for word in words if (word, name) in found | equal), "undecided")
        lowest, highest = _as_found(finding, within, *interval(d, alpha / max(1, len(pairs))))
        ratio = math.exp(float(np.median(d))) if len(d) else math.nan
        outcomes[name] = Outcome(finding, len(d), ratio, math.exp(lowest), math.exp(highest))
    return outcomes


def _as_found(finding: Finding, within: float, lowest: float, highest: float) -> tuple[float, float]:
    """The interval is as if each ratio were judged with its part of alpha; what was found with more of it bounds it, too.

    (O. Guilbaud, "Simultaneous confidence regions corresponding to Holm's step-down procedure", Biom. J. 50, 2008.)
    """
    if finding == "slower":
        return lowest, min(highest, 0.0)
    known = {"faster": 0.0, "not slower": within}.get(finding, lowest)
    return max(lowest, known), highest


def _holm(p: Mapping[tuple[str, str], float], alpha: float) -> set[tuple[str, str]]:
    """Those that are rejected (S. Holm, "A simple sequentially rejective ... procedure", Scand. J. Stat. 6, 1979)."""
    rejected: set[tuple[str, str]] = set()
    for number, (name, value) in enumerate(sorted(p.items(), key=lambda entry: entry[1])):
        if value > alpha / (len(p) - number):
            break
        rejected.add(name)
    return rejected
