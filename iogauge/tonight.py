"""What is known of a site's newest night: its assessment, its record, what somebody should look at, and what went wrong."""

from __future__ import annotations

import datetime
import fcntl
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from iogauge import nightly
from iogauge.assess.record import Assessment, FileSystemState, SeriesState
from iogauge.combined import read_night
from iogauge.errors import InputError
from iogauge.history.database import History
from iogauge.history.reading import list_series, read_measurements, read_runs
from iogauge.night import Night
from iogauge.verdict import VERDICTS, Told, Verdict

#: What an alarm is about, worst first.
AlarmWord = Literal["invalid", "regressed", "shifted level"]
ALARM_WORDS: tuple[AlarmWord, ...] = ("invalid", "regressed", "shifted level")

#: The folders of nights are named so.
_STAMP = "%Y%m%dT%H%M%SZ"

#: Nights that a sparkline or a row of nights is made of.
NIGHTS_SHOWN = 30


@dataclass(frozen=True)
class Alarm:
    """Something that somebody should look at: a series by its key, or an invalid case, which has no series, by its name."""

    name: str
    file_system: str
    word: AlarmWord
    text: str
    state: SeriesState | None = None

    @property
    def began(self) -> datetime.date | None:
        """The first slower night."""
        return self.state.move.began if self.state and self.state.move and self.word == "shifted level" else None


@dataclass(frozen=True)
class Tonight:
    """The newest night of ``site``. ``night`` is its record, where its folder is still there; ``unassessed`` says why it has
    no assessment; ``unfinished`` is the folder of a newer night that ended without a record."""

    site: str
    assessment: Assessment | None
    night: Night | None = None
    folder: Path | None = None
    unassessed: str = ""
    unfinished: Path | None = None

    @property
    def last(self) -> datetime.datetime:
        """When the newest night ended; without its record, the noon after it began."""
        if self.night is not None:
            return self.night.finished
        assert self.assessment is not None  # one of the two is there
        noon = datetime.datetime.combine(self.assessment.night, datetime.time(12)).astimezone()
        return min(noon + datetime.timedelta(days=1), self.assessment.made)

    @property
    def date(self) -> datetime.date:
        """The date on which the newest night began."""
        if self.assessment is not None:
            return self.assessment.night
        assert self.night is not None  # one of the two is there
        return self.night.night_date

    @property
    def problem(self) -> str:
        """Why the newest night could not be measured or not all of it could; empty: all is there."""
        if self.unfinished is not None:
            began = datetime.datetime.strptime(self.unfinished.name, _STAMP)
            return (
                f"the night begun {began:%Y-%m-%d %H:%M} UTC ended without a record: {self.unfinished / 'output.txt'}"
            )
        night = self.night
        if night is not None and night.build_failure:
            return night.build_failure
        if night is not None and not night.complete:
            return f"incomplete: {night.cause}; {len(night.cases)} of {night.selected} cases were measured"
        if night is not None and all(case.judgement.verdict == "skipped" for case in night.cases):
            return "nothing was measured: all cases were skipped"
        return self.unassessed

    @cached_property
    def alarms(self) -> tuple[Alarm, ...]:
        """Worst first: what is invalid, ratios below their bands, and slower series, those that lost most first."""
        return tuple(sorted(self._alarms(), key=lambda one: (ALARM_WORDS.index(one.word), -_drop(one), one.name)))

    def _alarms(self) -> Iterator[Alarm]:
        states = {state.key: state for state in self.tonight}
        for state in states.values():
            if state.word == "invalid":
                yield Alarm(state.key, state.file_system, "invalid", state.reason, state)
            elif state.alarm:
                yield Alarm(state.key, state.file_system, "shifted level", state.reason, state)
        for case in self.night.cases if self.night else ():
            judged = case.judgement
            reason = "; ".join(judged.reasons)
            of_series = any(one.word == "invalid" and one.reason and one.reason in reason for one in states.values())
            if judged.verdict == "invalid" and not judged.rows and not of_series:
                yield Alarm(case.name, case.file_system, "invalid", reason)
        for case, row, verdict in self.night.told if self.night else ():
            known = states.get(row.key)
            if verdict.word == "regressed" and verdict.alarm and not (known and known.alarm):
                yield Alarm(row.key, case.file_system, "regressed", verdict.reason, known)

    @cached_property
    def verdicts(self) -> Mapping[str, Told]:
        """The verdict on each series of the night by key: that of its record, else the detector's."""
        found = {state.key: Told(state.word, state.word, state.reason, state.alarm) for state in self.tonight}
        return found | {row.key: verdict for _, row, verdict in (self.night.told if self.night else ())}

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """Series by verdict, worst first; an invalid case that never measured any counts once, and so does a skipped one."""
        found = Counter(verdict.word for verdict in self.verdicts.values())
        found["invalid"] += sum(one.name not in self.verdicts for one in self.alarms)
        cases = self.night.cases if self.night else ()
        found["skipped"] += sum(case.judgement.verdict == "skipped" for case in cases)
        return {word: found[word] for word in VERDICTS}

    @cached_property
    def tonight(self) -> tuple[SeriesState, ...]:
        """The series that were measured on the newest night."""
        return self.assessment.tonight if self.assessment else ()

    @property
    def file_systems(self) -> tuple[FileSystemState, ...]:
        """Those that have enough series to be judged together."""
        return self.assessment.file_systems if self.assessment else ()

    @property
    def slower_as_a_whole(self) -> tuple[FileSystemState, ...]:
        """Those of which all is slower, which nobody has said to know."""
        return self.assessment.slower_as_a_whole if self.assessment else ()

    @property
    def exit_code(self) -> int:
        """As the night's: 0 nothing is slower, 1 there is an alarm, 2 it could not, or not all, be measured."""
        if self.unfinished is not None:
            return 2
        return max(self.night.exit_code if self.night else 0, int(bool(self.alarms or self.slower_as_a_whole)))

    def sentences(self, key: str) -> tuple[str, ...]:
        """What Darshan's counters say of a series on this night."""
        for case, row in self.night.rows if self.night else ():
            if row.key == key and case.judgement.profile is not None:
                return tuple(case.judgement.profile.sentences)
        return ()


def _drop(alarm: Alarm) -> float:
    return (alarm.state.move.drop if alarm.state and alarm.state.move else 0.0) if alarm.began else 0.0


def load(site: str) -> Tonight:
    """The newest night of ``site``: from its folder, or where nothing is kept there, from the history.

    Raises :class:`InputError` when there is none, or its record cannot be read.
    """
    folder, unfinished = _newest_folder(site)
    if folder is None:
        return Tonight(site, _assessed_now(site), unfinished=unfinished)
    night, unassessed = read_night(folder), ""
    if night.assessment is None:
        try:
            night = night.model_copy(update={"assessment": _assessed_now(site)})
        except InputError as problem:
            unassessed = f"not judged against the nights before: {problem}"
    return Tonight(site, night.assessment, night, folder, unassessed, unfinished)


def _assessed_now(site: str) -> Assessment:
    from iogauge.assess.reading import assess  # the database is not asked where the record lies beside the night

    return assess(History(), site, calendars=nightly.known_calendars(site)).assessment


def _newest_folder(site: str) -> tuple[Path | None, Path | None]:
    """The newest night of the site, and a newer folder without a record in which nobody works."""
    unfinished = None
    for folder in sorted((nightly.home() / "runs").glob("*"), reverse=True):
        if not folder.is_dir() or not _stamped(folder.name):
            continue
        record = folder / "night.json"
        if not record.exists():
            unfinished = unfinished or folder
        elif Night.load(record).site == site:
            return folder, None if unfinished is None or _in_work(unfinished.parent) else unfinished
    return None, None


def _stamped(name: str) -> bool:
    try:
        datetime.datetime.strptime(name, _STAMP)
    except ValueError:
        return False
    return True


def _in_work(runs: Path) -> bool:
    """Does a night run there? Its lock is only looked at, for a moment and as a reader."""
    try:
        with (runs / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def recent_rates(history: History, site: str, states: Iterable[SeriesState]) -> dict[str, dict[datetime.date, float]]:
    """The best rate of each of the last nights by key and date, in order of time, with the configuration of the last one.

    Raises :class:`InputError` when the history cannot be read.
    """
    wanted = {(state.key, state.fingerprint, state.unit): state for state in states}
    if not wanted:
        return {}
    first = min(state.date for state in wanted.values()) - datetime.timedelta(days=2 * NIGHTS_SHOWN)
    since = datetime.datetime.combine(first, datetime.time()).timestamp()
    found: dict[str, dict[datetime.date, float]] = {}
    with history.reading() as connection:
        series = [one for one in list_series(connection, site) if (one.key, one.fingerprint, one.unit) in wanted]
        nights = {number: run.night for number, run in read_runs(connection, site).items()}
        for measured in read_measurements(connection, series, since=int(since), main_only=True):
            by_night: dict[datetime.date, float] = {}
            for run, rate in zip(measured.run_id.tolist(), measured.observed.tolist(), strict=True):
                if np.isfinite(rate) and rate > 0:
                    by_night[nights[run]] = max(rate, by_night.get(nights[run], 0.0))
            found[measured.series.key] = dict(sorted(by_night.items())[-NIGHTS_SHOWN:])
    return found
