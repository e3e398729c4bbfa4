"""What the detector is told: the nights of a series, maintenance, and what operators have said."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from iogauge.detect.bank import LEFT_OUT
from iogauge.detect.noise import Floats, Integers
from iogauge.errors import InputError

Dates = NDArray[np.datetime64]


@dataclass(frozen=True)
class Night:
    """One night of a series. ``rates``: all repeats in one unit; empty, with ``invalid`` saying why, where none is true."""

    date: datetime.date
    rates: tuple[float, ...]
    invalid: str = ""
    configuration: str = ""
    unit: str = "MiB/s"
    software: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class History:
    """All nights of one series in order of time; arrays have shape (nights,).

    ``rates`` is the best repeat of a night, NaN where no rate is true. ``software`` and ``configuration`` are numbers
    into ``versions`` and ``configurations``. ``slots`` are maintenance slots (``Calendar.slots``), ``invalid`` says by
    number of the night why it has no rate, ``notes`` what was put right in what came in.
    """

    key: str
    dates: Dates
    rates: Floats
    software: Integers
    versions: tuple[Mapping[str, str], ...]
    configuration: Integers
    configurations: tuple[str, ...]
    slots: Integers
    invalid: Mapping[int, str] = field(default_factory=dict)
    repeats: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.dates)


@dataclass(frozen=True)
class Calendar:
    """Maintenance of one file system.

    On ``days_of_month`` (1 to 31) and ``weekdays`` (Monday is 0) there usually is some: such nights weigh as much as the
    earlier ones of that day have earned. The nights of ``windows`` (first and last) are left out altogether.
    """

    days_of_month: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    windows: tuple[tuple[datetime.date, datetime.date], ...] = ()

    def __post_init__(self) -> None:
        for name, days, first, last in (
            ("days_of_month", self.days_of_month, 1, 31),
            ("weekdays", self.weekdays, 0, 6),
        ):
            wrong = sorted(day for day in days if not first <= day <= last)
            if wrong:
                raise InputError(f"{wrong[0]}; {first} to {last} are allowed", key=name)
        for begin, end in self.windows:
            if end < begin:
                raise InputError(f"{begin} to {end} ends before it begins", key="windows")

    def slots(self, dates: Dates) -> Integers:
        """The maintenance slot of each date, as ``Bank.step`` takes them."""
        days = dates.astype("datetime64[D]")
        of_month = (days - days.astype("datetime64[M]")).astype(np.int64) + 1
        of_week = (days.astype(np.int64) + 3) % 7
        slots = np.zeros(len(days), dtype=np.int64)
        weekly = np.isin(of_week, list(self.weekdays))
        slots[weekly] = 32 + of_week[weekly]
        monthly = np.isin(of_month, list(self.days_of_month))
        slots[monthly] = of_month[monthly]
        for begin, end in self.windows:
            slots[(days >= np.datetime64(begin)) & (days <= np.datetime64(end))] = LEFT_OUT
        return slots


NO_MAINTENANCE = Calendar()


@dataclass(frozen=True)
class Action:
    """What an operator said of a series: it holds from the first night after ``said``.

    ``ack``: known, no need to tell again. ``bless``: the level since ``since`` is the right one. ``mute``: tell nothing
    before ``until``. What ``fusion.said_together`` says of a whole file system is of what began by ``since``: ``ack``, or
    ``anew``: it is over.
    """

    kind: Literal["ack", "bless", "mute", "anew"]
    said: datetime.date
    who: str
    why: str
    since: datetime.date | None = None
    until: datetime.date | None = None

    def __post_init__(self) -> None:
        for name in ("who", "why"):
            if not getattr(self, name).strip():
                raise InputError("empty; those who come later need it", key=name)
        if self.kind == "mute" and (self.until is None or self.until <= self.said):
            raise InputError("a mute needs an end after the day on which it is said", key="until")


def history(key: str, nights: Sequence[Night], calendar: Calendar = NO_MAINTENANCE) -> History:
    """The history of ``key`` from nights in any order.

    Several entries of one date are one night with all their repeats: the best counts. A rate that is no positive number
    makes an entry invalid, and is told in ``notes``. Another unit is another configuration.
    """
    notes: list[str] = []
    dates = [night.date for night in nights]
    if dates != sorted(dates):
        notes.append("nights were not in order of time (a clock was set?); sorted by date")
    by_date: dict[datetime.date, list[Night]] = {}
    for night in sorted(nights, key=lambda one: one.date):
        by_date.setdefault(night.date, []).append(night)
    rates, invalid, repeats = [], {}, {}
    versions: dict[tuple[tuple[str, str], ...], int] = {}
    configurations: dict[str, int] = {}
    software, configuration = [], []
    for number, (date, entries) in enumerate(by_date.items()):
        last = entries[-1]
        same = [one for one in entries if (one.configuration, one.unit) == (last.configuration, last.unit)]
        if len(same) < len(entries):
            notes.append(f"{date}: entries of several configurations or units; only the last one's count")
        true, wrong = _true_rates(same)
        rates.append(max(true, default=np.nan))
        repeats[number] = tuple(true)
        if wrong:
            notes.append(f"{date}: {wrong}")
        if not true:
            invalid[number] = wrong or "no rate"
        software.append(versions.setdefault(tuple(sorted(last.software.items())), len(versions)))
        configuration.append(configurations.setdefault(f"{last.configuration} {last.unit}", len(configurations)))
    when = np.array(list(by_date), dtype="datetime64[D]")
    return History(
        key=key,
        dates=when,
        rates=np.array(rates, dtype=np.float64),
        software=np.array(software, dtype=np.int64),
        versions=tuple(map(dict, versions)),
        configuration=np.array(configuration, dtype=np.int64),
        configurations=tuple(name.strip() for name in configurations),
        slots=calendar.slots(when),
        invalid=invalid,
        repeats=repeats,
        notes=tuple(notes),
    )


def _true_rates(entries: Sequence[Night]) -> tuple[list[float], str]:
    """The rates of entries that are true, and what is wrong with the others."""
    true: list[float] = []
    wrong: list[str] = []
    for entry in entries:
        if entry.invalid:
            wrong.append(entry.invalid)
            continue
        for rate in entry.rates:
            if np.isfinite(rate) and rate > 0:
                true.append(float(rate))
            else:
                wrong.append(f"{rate:g} {entry.unit} is no rate; only numbers above 0 are")
    return true, "; ".join(dict.fromkeys(wrong))
