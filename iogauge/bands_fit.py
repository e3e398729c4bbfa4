"""From the nights of a series to a band of its rates, or to the reason why there is none yet: pure functions.

A band judges one night alone, so it is made to answer for a loss of half in one night, and to be silent on most others; what
is smaller takes several nights to tell from noise. docs/bands.md has what this costs on a year of real nights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from iogauge.bands import Provenance, RateBand, SeriesBands
from iogauge.history.reading import Measurements, Run
from iogauge.history.schema import IMPORTED
from iogauge.night import NIGHTS_FOR_A_REFERENCE

#: Nights that a band is made from, the last ones: older ones are another machine.
NIGHTS_LOOKED_AT = 90

#: Width of a band on either side, in scales of that side's noise.
SCALES = 4

#: Least scale of log rates: a series is never taken to be steadier, for the next year is not.
LEAST_SCALE = 0.08

#: A band that begins lower than this part of its reference would miss the loss of half that it is made for.
LOWEST_OF_REFERENCE = 0.5

#: Medians of the window's halves that differ by more standard errors, and by more than this in log rate, are two levels.
LEVEL_MOVED_ERRORS = 4
LEVEL_MOVED_LEAST = 0.1

METHOD = (
    f"best of a run's repeats; median of the runs, limits {SCALES} scales of each side's log rates "
    f"(1.4826 x median deviation, with {LEAST_SCALE} in quadrature)"
)


@dataclass(frozen=True)
class Fitted:
    """A band that the history allows."""

    key: str
    bands: SeriesBands


@dataclass(frozen=True)
class Refused:
    """Why the history allows none; ``nights`` that count so far."""

    key: str
    nights: int
    reason: str


def fit(
    measured: Measurements,
    runs: dict[int, Run],
    software: dict[int, dict[str, str]],
    *,
    since: int = 0,
    in_maintenance: Callable[[str, int], bool] = lambda file_system, when: False,
) -> Fitted | Refused:
    """A band from the last nights of one series, from ``since`` (Unix seconds) on. Reads from the page cache and nights under
    maintenance are left out.
    """
    key, file_system = measured.series.key, measured.series.file_system
    usable = [
        number
        for number in range(len(measured))
        if not measured.cached[number]
        and measured.started[number] >= since
        and not in_maintenance(file_system, int(measured.started[number]))
    ]
    if not usable and measured.cached.any():
        return Refused(key, 0, "its reads come from the page cache, which no band is for")
    nights = [runs[int(measured.run_id[number])].night for number in usable]
    window = sorted(set(nights))[-NIGHTS_LOOKED_AT:]
    usable = [number for number, night in zip(usable, nights, strict=True) if night in set(window)]
    if len(window) < NIGHTS_FOR_A_REFERENCE:
        return Refused(key, len(window), f"{len(window)} of {NIGHTS_FOR_A_REFERENCE} nights")
    band = band_of(measured.observed[usable], measured.series.unit)
    if isinstance(band, str):
        return Refused(key, len(window), band)
    versions = software[int(measured.software_id[usable[-1]])]
    sources = [runs[int(measured.run_id[number])] for number in usable]
    imported = len({run.night for run in sources if run.origin == IMPORTED})
    return Fitted(key, _with_provenance(band, measured, window, len(usable), versions, imported))


def band_of(rates: NDArray[np.float64], unit: str) -> RateBand | str:
    """A band of rates in order of time, or why they are too unsteady for one."""
    logs = np.log(rates)
    halves = logs[: len(logs) // 2], logs[len(logs) // 2 :]
    moved = float(np.median(halves[1]) - np.median(halves[0]))
    noise = math.sqrt(sum(_scale(half - np.median(half)) ** 2 / len(half) for half in halves)) * math.sqrt(math.pi / 2)
    if abs(moved) > max(LEVEL_MOVED_LEAST, LEVEL_MOVED_ERRORS * noise):
        return f"its level moved by {math.expm1(moved):+.0%} in these nights; --since DATE takes those after it, or bless it"
    centre = float(np.median(logs))
    lower = math.expm1(-SCALES * _scale(logs[logs < centre] - centre))
    upper = math.expm1(SCALES * _scale(logs[logs > centre] - centre))
    if 1 + lower < LOWEST_OF_REFERENCE:
        return f"too unsteady: a band would begin {-lower:.0%} below the reference, and half would not be noticed"
    reference = float(f"{math.exp(centre):.4g}")
    return RateBand.model_validate(
        {"reference": reference, "lower": round(lower, 3), "upper": round(upper, 3), "unit": unit}
    )


def _scale(deviations: NDArray[np.float64]) -> float:
    """Of log rates, from deviations from the centre, on one side of it or on both."""
    median = float(np.median(np.abs(deviations))) if len(deviations) else 0.0
    return math.hypot(1.4826 * median, LEAST_SCALE)


def _with_provenance(
    band: RateBand,
    measured: Measurements,
    window: Sequence[date],
    runs: int,
    versions: dict[str, str],
    imported: int,
) -> SeriesBands:
    names = ("hdf5", "netcdf", "mpi", "suite", "kernels")
    provenance = Provenance(
        method=METHOD + (f"; {imported} nights imported, their placement not proven" if imported else ""),
        nights=len(window),
        runs=runs,
        first=window[0],
        last=window[-1],
        software={name: versions[name] for name in names if versions.get(name)},
    )
    return SeriesBands.model_validate(
        {"observed": band, "fingerprint": measured.series.fingerprint, "from": provenance}
    )
