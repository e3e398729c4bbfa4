"""What is known of a site's series after a night, with the evidence: plain values, kept as JSON beside the night."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from iogauge.detect import History, Track
from iogauge.detect.nights import Dates
from iogauge.detect.verdicts import WORDS, Word
from iogauge.measurement import Unit
from iogauge.validation import read_record


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Said(_Value):
    """What an operator said (``ack``, ``bless``, ``mute``), who, why; ``on``: after which night. A mute ends on ``until``."""

    kind: Literal["ack", "bless", "mute"]
    who: str
    why: str
    on: datetime.date
    until: datetime.date | None = None


class Move(_Value):
    """A level that moved from the night ``began`` on, told on ``found``; ``ended`` is none while it lasts.

    ``before`` and ``after`` are rates in the series' unit (1 is the usual level for a file system). ``changes`` of software
    came with it, as ``HDF5 1.14.3 -> 1.14.5``.
    """

    slower: bool
    began: datetime.date
    found: datetime.date
    before: float
    after: float
    changes: tuple[str, ...] = ()
    acknowledged: Said | None = None
    ended: datetime.date | None = None
    how: str = ""

    @property
    def drop(self) -> float:
        """The part of the rate that is gone; negative for a rise."""
        return 1 - self.after / self.before


class _State(_Value):
    """The verdict of the detector (docs/detection.md) on the last night that was measured, ``date``, with its evidence."""

    word: Word
    reason: str
    date: datetime.date
    drop: float | None = None
    score: float = 0.0
    threshold: float
    smallest_drop: float | None = None
    moves: tuple[Move, ...] = ()

    @property
    def move(self) -> Move | None:
        """The move of the level that has not ended."""
        return self.moves[-1] if self.moves and self.moves[-1].ended is None else None


class SeriesState(_State):
    """One series. Rates are in ``unit``; ``rate`` is the best of the night's ``repeats``, all runs of the night together.

    ``arm`` is the environ where it is not the partition's usual one. ``nights`` are those that the reference could rest on;
    ``bad_nights`` of the last ``bad_of`` were bad. ``smallest_drop``: the least slowdown that would be found within 14 nights.
    """

    key: str
    fingerprint: str
    unit: Unit
    benchmark: str
    operation: str
    file_system: str
    nodes: int
    ranks_per_node: int
    pattern: str
    interface: str
    arm: str = ""
    rate: float | None = None
    repeats: tuple[float, ...] = ()
    reference: float | None = None
    anchor: float | None = None
    nights: int = 0
    bad_nights: int = 0
    bad_of: int = 0
    maintenance: bool = False
    changes: tuple[str, ...] = ()
    muted: Said | None = None
    notes: tuple[str, ...] = ()

    @property
    def alarm(self) -> bool:
        """Is it slower, and nobody has said that it is known?"""
        if self.word != "shifted level" or self.muted is not None:
            return False
        return self.move is None or self.move.acknowledged is None


class Scope(_Value):
    """What of a file system is slower: ``text`` for people, the keys it is about, and since when."""

    text: str
    keys: tuple[str, ...]
    began: datetime.date | None
    whole: bool


class FileSystemState(_State):
    """All series of a file system together. Rates are relative: 1 is the usual level. ``hints``: days that look like
    maintenance and are not in the site's calendar."""

    name: str
    scope: Scope | None = None
    hints: tuple[str, ...] = ()


class Assessment(_Value):
    """A site on one night: every series ever measured with its last verdict, those of tonight have ``date == night``.

    ``file_systems`` are those with enough series to be judged together. ``notes`` say what was odd in the history.
    """

    schema_: Literal["iogauge.assessment/1"] = Field(default="iogauge.assessment/1", alias="schema")
    site: str
    night: datetime.date
    made: AwareDatetime
    series: tuple[SeriesState, ...]
    file_systems: tuple[FileSystemState, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: Path) -> Assessment:
        """Read a record. Raises :class:`InputError` for what is not one."""
        return read_record(cls, path, "an assessment")

    @property
    def tonight(self) -> tuple[SeriesState, ...]:
        """The series that were measured on this night."""
        return tuple(one for one in self.series if one.date == self.night)

    @property
    def counts(self) -> dict[Word, int]:
        """Tonight's series by verdict, all words, worst first."""
        found = Counter(one.word for one in self.tonight)
        return {word: found[word] for word in WORDS}

    @property
    def alarms(self) -> tuple[SeriesState, ...]:
        """The series that somebody should look at."""
        return tuple(one for one in self.tonight if one.alarm)

    @property
    def slower_as_a_whole(self) -> tuple[FileSystemState, ...]:
        """The file systems of which all is slower, and nobody has said that it is known: an alarm also where only the
        evidence of all their series together tells it, and none of them alone."""
        return tuple(one for one in self.file_systems if one.date == self.night and self._is_whole_and_news(one))

    def _is_whole_and_news(self, one: FileSystemState) -> bool:
        if one.scope is None or not one.scope.whole:
            return False
        mine = [state for state in self.tonight if state.file_system == one.name]
        if one.scope.keys:
            return any(state.alarm for state in mine)
        known = one.move is not None and one.move.acknowledged is not None
        return not known and not all(state.muted for state in mine)


@dataclass(frozen=True)
class Timeline:
    """All nights of one series in order of time, for plots; arrays have shape (nights,), rates are in the series' unit.

    ``rates`` are the best of each night, NaN where none was true; ``reference`` and ``level`` what the detector compared it
    with, NaN before there was one. ``repeats`` by number of the night: all of them. ``invalid`` by number of the night: why.
    ``software`` and ``configuration`` by number of the night on which they changed: in words.
    """

    key: str
    dates: Dates
    rates: NDArray[np.float64]
    reference: NDArray[np.float64]
    level: NDArray[np.float64]
    score: NDArray[np.float64]
    maintenance: NDArray[np.bool_]
    repeats: Mapping[int, tuple[float, ...]]
    invalid: Mapping[int, str]
    software: Mapping[int, tuple[str, ...]]
    configuration: Mapping[int, str]


@dataclass(frozen=True)
class Assessed:
    """The record, and the time line of each of its series in their order (empty where only the new nights were judged)."""

    assessment: Assessment
    timelines: tuple[Timeline, ...]
    histories: tuple[History, ...] = ()
    tracks: tuple[Track, ...] = ()
