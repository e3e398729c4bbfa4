"""A site that never was, for tests of what is made of its assessment: series with noise, nights and a slowdown."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from iogauge.assess.record import Assessed
from iogauge.assess.site import Nights, assess_nights
from iogauge.detect import Action, Calendar, Night, history

LAST_NIGHT = datetime.date(2026, 11, 20)

#: What may happen to a series: 20 % slower for its last ``nights`` nights, one bad last night, nothing.
Event = Literal["shift", "bad", "steady", "invalid", "new", "improved"]


def keys(file_systems: Sequence[str], count: int) -> list[str]:
    """``count`` keys over patterns, interfaces, operations, nodes and ranks of the kernels, the same every time."""
    points = [(n, p) for n in (1, 2, 4, 8) for p in (1, 4, 16)]
    patterns = ["CC", "CI", "IC", "II", "CC-2d", "CC-3d", "CC-partial", "CC-collective"]
    made = [
        f"particles/{operation}/{file_system}/{n}x{p}/{pattern}/{interface}"
        for (n, p), pattern, interface, operation, file_system in itertools.product(
            points, patterns, ("hdf5", "mpiio", "posix"), ("write", "read"), file_systems
        )
    ]
    return made[:count]


def site(
    series: Mapping[str, Event],
    *,
    nights: int = 60,
    slowed_nights: int = 4,
    repeats: int = 3,
    upgrade: bool = True,
    actions: Mapping[str, Sequence[Action]] | None = None,
    last: datetime.date = LAST_NIGHT,
) -> Assessed:
    """The assessment of ``series``, each with what happened to it; HDF5 is upgraded when the slowdowns begin."""
    dates = [last - datetime.timedelta(days=back) for back in reversed(range(nights))]
    made = []
    for number, (key, event) in enumerate(series.items()):
        random = np.random.default_rng(number)
        usual = 400.0 * (1 + number % 7)
        rates = usual * np.exp(0.04 * random.standard_normal((nights, repeats)) - 0.02)
        if event == "shift":
            rates[-slowed_nights:] *= 0.8
        elif event == "improved":
            rates[-2 * slowed_nights :] *= 1.4
        elif event == "bad":
            rates[-1] *= 0.6
        begin = nights - 5 if event == "new" else 0
        rows = [
            Night(
                date,
                () if event == "invalid" and number_of_night == nights - 1 else tuple(rates[number_of_night].tolist()),
                invalid="2 ranks share core 0 of n1" if event == "invalid" and number_of_night == nights - 1 else "",
                configuration="17982ea9",
                software={
                    "HDF5": "1.14.5" if upgrade and number_of_night >= nights - slowed_nights else "1.14.3",
                    "MPI": "Open MPI v4.1.4",
                },
            )
            for number_of_night, date in enumerate(dates)
            if number_of_night >= begin
        ]
        calendar = Calendar(days_of_month=frozenset({1}))
        made.append(Nights(history(key, rows, calendar), "MiB/s", "17982ea9"))
    return assess_nights("test", last, made, actions or {})
