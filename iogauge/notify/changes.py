"""What is new since somebody was told last: a pure function of what was told and what is known now."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from iogauge.assess.record import FileSystemState, SeriesState
from iogauge.detect.fusion import SAME_EVENT_DAYS
from iogauge.tonight import Alarm, AlarmWord, Tonight
from iogauge.verdict import of_file_system

Kind = Literal["whole file system", "slower", "regressed", "invalid", "no night", "ended"]

#: The order in a message, worst first.
KINDS: tuple[Kind, ...] = ("whole file system", "slower", "regressed", "invalid", "no night", "ended")

_KIND_OF: dict[AlarmWord, Kind] = {"shifted level": "slower", "regressed": "regressed", "invalid": "invalid"}


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Change(_Value):
    """One thing to tell: of a series, an invalid case, a file system, or (without a name) the night itself."""

    kind: Kind
    name: str
    text: str


class ToldAlarm(_Value):
    """An alarm that was told on ``night``; ``known``: somebody acknowledged it since."""

    name: str
    file_system: str
    word: AlarmWord
    night: datetime.date
    known: bool = False


class Told(_Value):
    """What a target was told and has not been told the end of. ``whole``: file systems that are slower as a whole, with the
    night on which that was told. ``muted``: slower series that were muted then. ``problem`` of the newest night."""

    alarms: tuple[ToldAlarm, ...] = ()
    whole: Mapping[str, datetime.date] = {}
    muted: tuple[str, ...] = ()
    problem: str = ""


def compare(told: Told, tonight: Tonight, missing: str = "") -> tuple[tuple[Change, ...], Told]:
    """What has to be told now, worst first, and what will have been told then.

    ``missing`` says that a night is overdue. What was not measured tonight stays as it was told; muted series tell nothing.
    """
    known = _Known(told, tonight, missing)
    changes = [*known.file_systems(), *known.began(), *known.ended(), *known.problem()]
    return tuple(sorted(changes, key=lambda one: KINDS.index(one.kind))), known.told()


class _Known:
    """The two sides that are compared."""

    def __init__(self, told: Told, tonight: Tonight, missing: str) -> None:
        self.before = told
        self.tonight = tonight
        self.now_wrong = missing or tonight.problem
        self.overdue = bool(missing)
        self.states = {state.key: state for state in tonight.tonight}
        self.measured = {row.key for _, row in tonight.night.rows} if tonight.night else set()
        aloud = [one for one in tonight.alarms if one.state is None or one.state.muted is None]
        self.alarms = {(one.word, one.name): one for one in aloud}
        self.already = {(one.word, one.name): one for one in told.alarms}
        self.together = {one.name: one for one in tonight.file_systems}
        self.whole = {one.name: one for one in tonight.slower_as_a_whole}

    def file_systems(self) -> Iterator[Change]:
        """Those that are slower as a whole now, or are no longer."""
        for name, one in self.whole.items():
            on = self.before.whole.get(name)
            if on is None or _began_after(one, on):
                yield Change(kind="whole file system", name=name, text=self._extent(one))
        for name in self.before.whole:
            if not self._stays_whole(name):
                mine = [alarm for alarm in self.alarms.values() if alarm.file_system == name]
                slower = sum(alarm.word == "shifted level" for alarm in mine)
                left = f"; {slower} of its series still are" if slower else ""
                if not self._all_muted(name):
                    yield Change(kind="ended", name=name, text=f"no longer slower as a whole{left}")

    def _extent(self, one: FileSystemState) -> str:
        assert one.scope is not None  # otherwise it is not whole
        assert self.tonight.assessment is not None
        mine = [state for state in self.states.values() if state.file_system == one.name]
        judged = sum(state.word not in ("no reference", "invalid") for state in mine)
        alone = f"{len(one.scope.keys)} of its {judged} series by themselves, too"
        return f"{of_file_system(self.tonight.assessment, one)}; {alone}"

    def _stays_whole(self, name: str) -> bool:
        """Is it still so, or was it not looked at, or is it only that somebody knows?"""
        one = self.together.get(name)
        if name in self.whole or one is None or one.date != self.tonight.date:
            return True
        return one.scope is not None and one.scope.whole and not self._all_muted(name)

    def _all_muted(self, name: str) -> bool:
        mine = [state for state in self.states.values() if state.file_system == name]
        slow = [state for state in mine if state.word == "shifted level"] or mine
        return bool(slow) and all(state.muted for state in slow)

    def _covered(self, file_system: str, began: datetime.date | None) -> bool:
        """Is it told by what is said of the whole file system?"""
        one = self.whole.get(file_system)
        if one is None or one.scope is None:
            return False
        first = one.scope.began
        return began is None or first is None or abs((began - first).days) <= SAME_EVENT_DAYS

    def began(self) -> Iterator[Change]:
        """Alarms that are new."""
        for key, alarm in self.alarms.items():
            if self._is_told(key, alarm) or (
                alarm.word == "shifted level" and self._covered(alarm.file_system, alarm.began)
            ):
                continue
            text = alarm.text
            if alarm.name in self.before.muted:
                text = f"its mute has ended: {text}"
            yield Change(kind=_KIND_OF[alarm.word], name=alarm.name, text=text)

    def _is_told(self, key: tuple[AlarmWord, str], alarm: Alarm) -> bool:
        old = self.already.get(key)
        return old is not None and not old.known and (alarm.began is None or alarm.began <= old.night)

    def ended(self) -> Iterator[Change]:
        """Alarms that were told and are over."""
        for key, old in self.already.items():
            if key in self.alarms or self._stays(old) or self._superseded(old):
                continue
            if old.word == "shifted level" and old.file_system in {*self.before.whole, *self.whole}:
                continue  # what is said of the whole file system tells it
            state = self.states.get(old.name)
            if state is None or not state.muted:
                yield Change(kind="ended", name=old.name, text=self._how_ended(old, state))

    def _stays(self, old: ToldAlarm) -> bool:
        """Not measured tonight, or slower still and acknowledged."""
        if old.word == "invalid" and old.name not in self.states:
            return old.name not in self._true_cases()
        state = self.states.get(old.name)
        if old.word == "regressed":
            return old.name not in self.measured
        if state is None:
            return True
        return old.word == "shifted level" and state.muted is None and state.word in ("invalid", "shifted level")

    def _superseded(self, old: ToldAlarm) -> bool:
        """A ratio below its band that has become a slower series."""
        return old.word == "regressed" and ("shifted level", old.name) in self.alarms

    def _true_cases(self) -> set[str]:
        cases = self.tonight.night.cases if self.tonight.night else ()
        return {case.name for case in cases if case.judgement.verdict not in ("invalid", "skipped")}

    def _how_ended(self, old: ToldAlarm, state: SeriesState | None) -> str:
        if old.word == "invalid":
            return f"measured again: {state.word}" if state else "measured again"
        if old.word == "regressed":
            return "its ratios are no longer below their bands"
        assert state is not None  # otherwise it stays
        how = state.moves[-1].how if state.moves else ""
        return f"no longer slower: {how or state.word}"

    def problem(self) -> Iterator[Change]:
        """The newest night is overdue, broke off, or is whole again."""
        if self.now_wrong and not self._same_problem():
            yield Change(kind="no night", name="", text=self.now_wrong)
        if self.before.problem and not self.now_wrong:
            yield Change(kind="ended", name="", text=f"the night of {self.tonight.date} is there and whole")

    def _same_problem(self) -> bool:
        if self.overdue:
            return self.before.problem == self.now_wrong
        return _without_numbers(self.before.problem) == _without_numbers(self.now_wrong)

    def told(self) -> Told:
        """After the message."""
        tonight = self.tonight.date
        alarms = {
            key: ToldAlarm(name=one.name, file_system=one.file_system, word=one.word, night=tonight)
            for key, one in self.alarms.items()
        }
        for key, old in self.already.items():
            if key in self.alarms:
                if self._is_told(key, self.alarms[key]):
                    alarms[key] = old
            elif self._stays(old):
                state = self.states.get(old.name)
                known = old.known or (state is not None and state.word == "shifted level")
                alarms[key] = old.model_copy(update={"known": known and old.word == "shifted level"})
        whole = dict.fromkeys(self.whole, tonight)
        for name, on in self.before.whole.items():
            if self._stays_whole(name) and not (name in self.whole and _began_after(self.whole[name], on)):
                whole[name] = on
        muted = {key for key, state in self.states.items() if state.muted and state.word == "shifted level"}
        muted |= {key for key in self.before.muted if key not in self.states}
        return Told(
            alarms=tuple(alarms[key] for key in sorted(alarms)),
            whole=dict(sorted(whole.items())),
            muted=tuple(sorted(muted)),
            problem=self.now_wrong,
        )


def _began_after(one: FileSystemState, night: datetime.date) -> bool:
    return one.scope is not None and one.scope.began is not None and one.scope.began > night


def _without_numbers(text: str) -> str:
    """Counts and times differ from night to night; the cause is the same."""
    return re.sub(r"\d+", "0", text)
