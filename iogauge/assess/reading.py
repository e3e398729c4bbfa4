"""From the history to the nights of a site's series, as the detector takes them, and on to the assessment.

All runs of a night are one night of a series with all their repeats. Millions of nights are worked on as arrays.
"""

from __future__ import annotations

import datetime
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from sqlalchemy import Connection, select

from iogauge import detect
from iogauge.assess.record import Assessed
from iogauge.assess.site import Nights, assess_nights
from iogauge.detect.bank import LEFT_OUT
from iogauge.detect.nights import NO_MAINTENANCE, Dates
from iogauge.detect.noise import Bools, Floats, Integers
from iogauge.errors import InputError
from iogauge.history import operators
from iogauge.history.database import History
from iogauge.history.reading import (
    Measurements,
    Series,
    driver_rows,
    list_series,
    read_measurements,
    read_runs,
    read_software,
)
from iogauge.history.schema import cases, runs
from iogauge.measurement import SOFTWARE_NAMES, Unit
from iogauge.night import night_of

#: So many keys are asked for at a time.
KEYS_AT_A_TIME = 50

#: The last so many notes on a series are kept.
NOTES_KEPT = 10

#: Parts of the software that are no cause of a slowdown: kernels have a hash of their own, arms are in the key.
_NO_CAUSE = ("suite", "spack_arm")

_DAY = np.timedelta64(1, "D")


def assess(
    history: History,
    site: str,
    *,
    calendars: Mapping[str, detect.Calendar] | None = None,
    night: datetime.date | None = None,
) -> Assessed:
    """Judge every night of every series of ``site`` up to ``night``; without, up to its newest that is not in the future.

    ``calendars`` are by file system. Raises :class:`InputError` when there is no such night.
    """
    with history.reading() as connection:
        source = read_source(connection, site, calendars or {}, night)
        names = read_case_names(connection, source)
        series = list(read_nights(connection, source, names))
    actions = {one.key: source.actions_on(one.key) for one in series}
    notes = source.notes(names, series)
    return assess_nights(site, source.night, [one.nights for one in series], actions, notes=notes)


class CaseName(NamedTuple):
    """What a case is called from night to night."""

    partition: str
    environ: str
    name: str


class InvalidCase(NamedTuple):
    """A case whose measurement was refused, on the night of its run."""

    night: np.datetime64
    reason: str


@dataclass(frozen=True)
class Source:
    """What is the same for all series of a site, or asked for once; arrays have shape (runs,), sorted by ``run_ids``.

    ``software`` are the versions of each number of the history as a number into ``versions``.
    """

    site: str
    night: datetime.date
    calendars: Mapping[str, detect.Calendar]
    run_ids: Integers
    run_nights: Dates
    run_started: Integers
    series: Mapping[str, Sequence[Series]]
    software: Mapping[int, int]
    versions: tuple[Mapping[str, str], ...]
    said: Sequence[operators.Action]
    windows: Sequence[operators.Maintenance]
    renames: Sequence[operators.Rename]

    def nights_of(self, run_ids: Integers) -> Dates:
        """The night of each run."""
        return self.run_nights[np.searchsorted(self.run_ids, run_ids)]

    def windows_on(self, file_system: str) -> list[operators.Maintenance]:
        """The maintenance windows of a file system."""
        return [window for window in self.windows if window.file_system in (None, file_system)]

    def actions_on(self, key: str) -> list[detect.Action]:
        """What operators said of a series by ``night``, each after the last night that had begun by then."""
        found = []
        for action in self.said:
            said = self._last_night_by(action.at)
            if said <= self.night and action.fits(key):
                since = until = None
                if action.kind == "bless":
                    since = self._first_night_from(action.since)
                if action.until is not None:
                    until = max(self._first_night_from(action.until), said + datetime.timedelta(days=1))
                found.append(detect.Action(action.kind, said, action.who, action.why, since, until))
        return found

    def notes(self, names: CaseNames, series: Iterable[SeriesNights]) -> list[str]:
        """What is odd on the whole site."""
        today = np.datetime64(max(datetime.date.today(), self.night))
        future = np.unique(self.run_nights[self.run_nights > today])
        found = [f"nights in the future, left out: {', '.join(map(str, future))}"] if future.size else []
        measured = {name for one in series for name in one.known.measured}
        for name, refused in names.invalid.items():
            if name not in measured and refused[-1].night == np.datetime64(self.night):
                found.append(f"{name.name}: never measured yet, and invalid: {refused[-1].reason}")
        return found

    def _last_night_by(self, when: int) -> datetime.date:
        begun = self.run_nights[self.run_started <= when]
        return begun.max().item() if begun.size else night_of(datetime.datetime.fromtimestamp(when).astimezone())

    def _first_night_from(self, when: int) -> datetime.date:
        later = self.run_nights[self.run_started >= when]
        return later.min().item() if later.size else night_of(datetime.datetime.fromtimestamp(when).astimezone())


def read_source(
    connection: Connection, site: str, calendars: Mapping[str, detect.Calendar], night: datetime.date | None
) -> Source:
    """Raises :class:`InputError` when the site has no night up to ``night``."""
    found = sorted(read_runs(connection, site).values(), key=lambda run: run.id)
    nights = np.array([run.night for run in found], "datetime64[D]")
    until = np.datetime64(night or datetime.date.today())
    if not (nights <= until).any():
        raise InputError(_no_night(connection, site, nights, until), key="site" if not nights.size else "night")
    series: dict[str, list[Series]] = defaultdict(list)
    for one in list_series(connection, site):
        series[one.key].append(one)
    versions: dict[tuple[tuple[str, str], ...], int] = {}
    software = {
        number: versions.setdefault(tuple(_named(parts).items()), len(versions))
        for number, parts in read_software(connection).items()
    }
    return Source(
        site=site,
        night=night or nights[nights <= until].max().item(),
        calendars=calendars,
        run_ids=np.array([run.id for run in found], np.int64),
        run_nights=nights,
        run_started=np.array([run.started for run in found], np.int64),
        series=series,
        software=software,
        versions=tuple(map(dict, versions)),
        said=operators.said(connection, site),
        windows=operators.maintenance(connection, site),
        renames=operators.renames(connection, site),
    )


def _no_night(connection: Connection, site: str, nights: Dates, until: np.datetime64) -> str:
    if nights.size:
        return f"none of site {site!r} up to {until}; the first is {nights.min()}"
    known = connection.execute(select(runs.c.site).distinct().order_by(runs.c.site)).scalars().all()
    return f"no night of {site!r} in the history; it has those of: {', '.join(known) or 'none'}"


def _named(parts: Mapping[str, Any]) -> dict[str, str]:
    """Versions by the names that people use, without what is no cause."""
    found = {SOFTWARE_NAMES[name]: parts.get(name) for name in SOFTWARE_NAMES if name not in _NO_CAUSE}
    return {name: str(value) for name, value in {**found, **(parts.get("packages") or {})}.items() if value}


@dataclass(frozen=True)
class CaseNames:
    """What the cases of a site are called: ``ids`` (sorted) with a number each into ``names``; those that are invalid.

    Only its name tells which series an invalid case would have measured: those that it has measured before.
    """

    ids: Integers
    numbers: Integers
    names: tuple[CaseName, ...]
    invalid: Mapping[CaseName, Sequence[InvalidCase]]

    def of(self, case_ids: Integers) -> Integers:
        """The number of the name of each case; -1 where it is not among those that were read."""
        if not self.ids.size:
            return np.full(len(case_ids), -1)
        place = np.minimum(np.searchsorted(self.ids, case_ids), len(self.ids) - 1)
        return np.where(self.ids[place] == case_ids, self.numbers[place], -1)


def read_case_names(connection: Connection, source: Source, since: datetime.date | None = None) -> CaseNames:
    """The cases of all nights up to the source's, or of those from ``since`` on."""
    asked = [runs.c.id == cases.c.run_id, runs.c.site == source.site, runs.c.night <= source.night]
    if since is not None:
        asked.append(runs.c.night >= since)
    name_of = (cases.c.partition, cases.c.environ, cases.c.name)
    numbers: dict[tuple[str, ...], int] = {}
    table = np.array(
        [
            (case_id, numbers.setdefault(tuple(name), len(numbers)))
            for case_id, *name in driver_rows(connection, select(cases.c.id, *name_of).where(*asked))
        ],
        np.int64,
    ).reshape(-1, 2)
    table = table[table[:, 0].argsort()]
    invalid: dict[CaseName, list[InvalidCase]] = defaultdict(list)
    refused = select(*name_of, runs.c.night, cases.c.reasons).where(*asked, cases.c.verdict == "invalid")
    for *name, night, reasons in connection.execute(refused.order_by(cases.c.id)):
        invalid[CaseName(*name)].append(InvalidCase(np.datetime64(night), "; ".join(reasons) or "invalid"))
    return CaseNames(table[:, 0], table[:, 1], tuple(itertools.starmap(CaseName, numbers)), invalid)


#: What is told of a night.
Told = tuple[np.datetime64, str]


@dataclass(frozen=True)
class Known:
    """What is known of a series' nights up to ``night`` beside its measurements: the cases that had measured it, each since
    when; its invalid cases; and what was odd."""

    night: np.datetime64
    measured: Mapping[CaseName, np.datetime64]
    invalid: Sequence[InvalidCase]
    notes: Sequence[Told]


_NOTHING_KNOWN = Known(np.datetime64("0001-01-01"), {}, (), ())


@dataclass(frozen=True)
class SeriesNights:
    """One series up to the source's night."""

    nights: Nights
    known: Known

    @property
    def key(self) -> str:
        """Its key."""
        return self.nights.history.key


def read_nights(
    connection: Connection,
    source: Source,
    names: CaseNames,
    keys: Iterable[str] | None = None,
    *,
    since: datetime.date | None = None,
    known: Mapping[str, Known] | None = None,
) -> Iterator[SeriesNights]:
    """The nights of each of ``keys`` (all) that has any, in their order.

    With ``since``, of those from then on alone, and ``known`` says by key what is known of the nights before.
    """
    wanted = list(source.series if keys is None else keys)
    for begin in range(0, len(wanted), KEYS_AT_A_TIME):
        some = wanted[begin : begin + KEYS_AT_A_TIME]
        rows: dict[str, list[Measurements]] = defaultdict(list)
        every = [each for key in some for each in source.series[key]]
        for one in read_measurements(connection, every, since=_seconds_before(since), main_only=True):
            rows[one.series.key].append(one)
        for key in some:
            measured = rows.pop(key, [])
            entries = _entries(source, measured, since) if measured else None
            if entries is not None and len(entries):
                yield _SeriesReader(source, names, key, (known or {}).get(key, _NOTHING_KNOWN)).read(entries)


def _seconds_before(night: datetime.date | None) -> int:
    """A moment before anything of that night was measured, in whatever time zone."""
    return 0 if night is None else int((np.datetime64(night) - _DAY).astype("datetime64[s]").astype(np.int64))


@dataclass(frozen=True)
class _Entries:
    """Measurements of one key by night and time, with ``counts`` repeats each; arrays have shape (entries,), but ``rates`` has
    all repeats one after the other."""

    night: Dates
    started: Integers
    series: Integers
    software: Integers
    case: Integers
    counts: Integers
    rates: Floats

    def __len__(self) -> int:
        return len(self.night)

    def take(self, which: Integers) -> _Entries:
        """Some of them, in another order perhaps."""
        if np.array_equal(which, np.arange(len(self))):
            return self
        counts = self.counts[which]
        first = (np.cumsum(self.counts) - self.counts)[which]
        repeats = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        return _Entries(
            night=self.night[which],
            started=self.started[which],
            series=self.series[which],
            software=self.software[which],
            case=self.case[which],
            counts=counts,
            rates=self.rates[repeats],
        )


def _entries(source: Source, rows: Sequence[Measurements], since: datetime.date | None) -> _Entries:
    """What counts of ``rows``: no read from the page cache, and nothing after the source's night."""
    run_ids, cached = (np.concatenate([getattr(one, name) for one in rows]) for name in ("run_id", "cached"))
    every = _Entries(
        night=source.nights_of(run_ids),
        started=np.concatenate([one.started for one in rows]),
        series=np.repeat([one.series.id for one in rows], list(map(len, rows))),
        software=np.concatenate([one.software_id for one in rows]),
        case=np.concatenate([one.case_id for one in rows]),
        counts=np.concatenate([np.diff(one.first, append=len(one.rates)) for one in rows]),
        rates=np.concatenate([one.rates for one in rows]),
    )
    order = np.lexsort((every.case, every.started, every.night))
    counted = ~cached & (every.night <= np.datetime64(source.night))
    if since is not None:
        counted &= every.night >= np.datetime64(since)
    return every.take(order[counted[order]])


class _Repeats(Mapping[int, tuple[float, ...]]):
    """The true rates of each night, made when they are asked for: there are millions. ``first`` has shape (nights + 1,)."""

    def __init__(self, rates: Floats, first: Integers) -> None:
        self._rates, self._first = rates, first

    def __getitem__(self, number: int) -> tuple[float, ...]:
        if not 0 <= number < len(self):
            raise KeyError(number)
        return tuple(self._rates[self._first[number] : self._first[number + 1]].tolist())

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self._first) - 1


class _SeriesReader:
    """Makes the history of one key, of which ``known`` is known."""

    def __init__(self, source: Source, names: CaseNames, key: str, known: Known) -> None:
        self.source, self.names, self.key, self.known = source, names, key, known
        self.series = {one.id: one for one in source.series[key]}
        self.file_system = source.series[key][0].file_system
        self.windows = source.windows_on(self.file_system)
        self.notes: list[Told] = []

    def read(self, entries: _Entries) -> SeriesNights:
        """From its measurements."""
        measured = self._measured(entries)
        invalid = self._invalid(measured)
        self._note_clocks(entries)
        entries = self._of_one_configuration(entries)
        entries, under_maintenance = self._outside_maintenance(entries)
        history = self._history(entries, invalid, under_maintenance)
        last = self.series[int(entries.series[-1])]
        notes = sorted([*self.known.notes, *(note for note in self.notes if note[0] > self.known.night)])
        history = replace(history, notes=tuple(f"{night}: {text}" for night, text in notes[-NOTES_KEPT:]))
        return SeriesNights(
            Nights(history, cast(Unit, last.unit), last.fingerprint),
            Known(np.datetime64(self.source.night), measured, invalid, notes),
        )

    def _measured(self, entries: _Entries) -> dict[CaseName, np.datetime64]:
        numbers, first = np.unique(self.names.of(entries.case), return_index=True)
        pairs = zip(numbers.tolist(), entries.night[first], strict=True)
        here = {self.names.names[number]: night for number, night in pairs if number >= 0}
        return {**here, **self.known.measured}

    def _invalid(self, measured: Mapping[CaseName, np.datetime64]) -> list[InvalidCase]:
        """A case is of the series that it had measured by then."""
        found = list(self.known.invalid)
        for name, first in measured.items():
            after = max(first, self.known.night + _DAY)
            found += [case for case in self.names.invalid.get(name, ()) if case.night >= after]
        return sorted(found, key=lambda case: case.night)

    def _note(self, nights: Dates, text: str) -> None:
        self.notes += [(night, text) for night in nights[-NOTES_KEPT:]]

    def _note_clocks(self, entries: _Entries) -> None:
        nights, begin = np.unique(entries.night, return_index=True)
        began = np.minimum.reduceat(entries.started, begin)
        ended = np.maximum.reduceat(entries.started, begin)
        self._note(nights[1:][began[1:] < ended[:-1]], "measured before the night before it: a clock was set?")

    def _of_one_configuration(self, entries: _Entries) -> _Entries:
        """On a night with several, the one that is known longest counts."""
        if len(self.series) == 1:
            return entries
        _, begin, which = np.unique(entries.night, return_index=True, return_inverse=True)
        counted = entries.series == np.minimum.reduceat(entries.series, begin)[which]
        self._note(
            np.unique(entries.night[~counted]), "measured with several configurations: the older one's rates count"
        )
        kept = entries.take(np.flatnonzero(counted))
        units = np.array([self.series[number].unit for number in kept.series.tolist()])
        for number in (np.flatnonzero(units[1:] != units[:-1]) + 1).tolist():
            self._note(kept.night[[number]], f"in {units[number]} from here on, in {units[number - 1]} before")
        return kept

    def _outside_maintenance(self, entries: _Entries) -> tuple[_Entries, Dates]:
        """Without what was measured in a window, on a night with other runs; and the nights all in one."""
        if not self.windows:
            return entries, entries.night[:0]
        inside = self._covered(entries.started)
        outside = np.unique(entries.night[~inside])
        counted = ~inside | ~np.isin(entries.night, outside)
        return entries.take(np.flatnonzero(counted)), np.unique(entries.night[counted & inside])

    def _covered(self, started: Integers) -> Bools:
        inside = np.zeros(len(started), bool)
        for window in self.windows:
            inside |= (started >= window.begins) & (started < window.ends)
        return inside

    def _history(self, entries: _Entries, refused: Sequence[InvalidCase], under: Dates) -> detect.History:
        """``refused``: its invalid cases; ``under``: nights under maintenance."""
        nights, begin = np.unique(entries.night, return_index=True)
        last = np.append(begin[1:], len(entries)) - 1
        true = np.isfinite(entries.rates) & (entries.rates > 0)
        first = (np.cumsum(entries.counts) - entries.counts)[begin]
        best = np.maximum.reduceat(np.where(true, entries.rates, -np.inf), first)
        counts = np.add.reduceat(true, first, dtype=np.int64)

        refused = [case for case in refused if case.night >= nights[0]]
        dates = np.union1d(nights, np.array([case.night for case in refused], "datetime64[D]"))
        place = np.searchsorted(dates, nights)
        before = np.searchsorted(nights, dates, side="right") - 1  # the last one that was measured
        rates, repeats = np.full(len(dates), np.nan), np.zeros(len(dates), np.int64)
        rates[place] = np.where(counts > 0, best, np.nan)
        repeats[place] = counts
        slots = self.source.calendars.get(self.file_system, NO_MAINTENANCE).slots(dates)
        slots[np.isin(dates, under)] = LEFT_OUT

        wrong = self._no_rates(entries, true, nights[counts < np.add.reduceat(entries.counts, begin)])
        for case in refused:
            wrong.setdefault(case.night, []).append(case.reason)
        invalid = {}
        for night, reasons in wrong.items():
            number, reason = int(np.searchsorted(dates, night)), "; ".join(dict.fromkeys(reasons))
            if np.isnan(rates[number]):
                invalid[number] = reason
            else:
                self.notes.append((night, reason))
        return detect.History(
            key=self.key,
            dates=dates,
            rates=rates,
            software=np.array([self.source.software[n] for n in entries.software[last].tolist()], np.int64)[before],
            versions=self.source.versions,
            configuration=np.searchsorted(list(self.series), entries.series[last])[before],
            configurations=tuple(f"{one.fingerprint} {one.unit}" for one in self.series.values()),
            slots=slots,
            invalid=invalid,
            repeats=_Repeats(entries.rates[true], np.append(0, np.cumsum(repeats))),
        )

    def _no_rates(self, entries: _Entries, true: Bools, nights: Dates) -> dict[np.datetime64, list[str]]:
        """What was measured on ``nights`` and is no rate."""
        number_of = np.repeat(np.arange(len(entries)), entries.counts)
        found: dict[np.datetime64, list[str]] = {night: [] for night in nights}
        for repeat in np.flatnonzero(~true).tolist():
            entry = number_of[repeat]
            unit = self.series[int(entries.series[entry])].unit
            found[entries.night[entry]].append(f"{entries.rates[repeat]:g} {unit} is no rate; only numbers above 0 are")
        return found
