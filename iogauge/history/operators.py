"""What operators say, with who, when and why: acknowledged, blessed, muted; maintenance; a file system's new name."""

from __future__ import annotations

import difflib
import fnmatch
import getpass
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from iogauge.errors import InputError
from iogauge.history.database import History, next_id
from iogauge.history.schema import actions, cases, marks, measurements, runs, series

Kind = Literal["ack", "bless", "mute"]

#: In the table of actions: ``target`` is the number of what was taken back.
_TAKEN_BACK = "unsay"

#: Before the number of a maintenance window, which is in a table of its own.
_OF_MARKS = "m"

#: A mute that nobody remembers hides a slow file system for good.
LONGEST_MUTE_DAYS = 366

#: And so does a maintenance window of years, which a mistyped year makes.
LONGEST_MAINTENANCE_DAYS = 366


@dataclass(frozen=True)
class Action:
    """What was said of the series whose keys fit ``target``. Times are Unix seconds; ``until`` belongs to ``mute``."""

    site: str
    kind: Kind
    target: str
    since: int
    until: int | None
    at: int
    who: str
    why: str

    def fits(self, key: str) -> bool:
        """Is it about the series with this key?"""
        return fnmatch.fnmatchcase(key, self.target)

    def about(self, key: str, file_system: str) -> bool:
        """The same, as a maintenance window is asked."""
        return self.fits(key)


@dataclass(frozen=True)
class Maintenance:
    """A window in which nights are no evidence, on one file system or (None) on all."""

    site: str
    file_system: str | None
    begins: int
    ends: int
    at: int
    who: str
    why: str

    def covers(self, file_system: str, when: int) -> bool:
        """Was ``file_system`` under maintenance then?"""
        return self.file_system in (None, file_system) and self.begins <= when < self.ends

    def about(self, key: str, file_system: str) -> bool:
        """Is it about the series with this key, on this file system?"""
        return self.file_system in (None, file_system)


@dataclass(frozen=True)
class Rename:
    """What was called ``old`` in runs before the moment ``before`` is called ``new``."""

    old: str
    new: str
    before: int


@dataclass(frozen=True)
class TakenBack:
    """Somebody took back what had been said; what was said stays in the history."""

    who: str
    at: int
    why: str


@dataclass(frozen=True)
class Said:
    """An action or a maintenance window with the number by which it can be taken back."""

    number: str
    what: Action | Maintenance
    taken_back: TakenBack | None


def operator() -> str:
    """Who is at the keyboard."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in a container; Python before 3.13 raises KeyError
        return f"uid {os.getuid()}"


def say(history: History, action: Action) -> int:
    """Record an action; returns how many series it is about. Raises :class:`InputError` when that is none, when it has no
    reason or nobody's name, its times cannot be meant, or it is a mute of what is muted so long already."""
    _check_signed(action.who, action.why)
    if (action.kind == "mute") != (action.until is not None):
        raise InputError("belongs to mute, and to every mute", key="until")
    if action.since > action.at:
        raise InputError(f"{_local(action.since)} has not come yet; no night is from then on", key="since")
    if action.until is not None:
        _check_until(action.until, action.at)
    with history.writing() as connection:
        fitting = _fitting(connection, action)
        if action.kind == "bless":
            _check_nights_since(connection, action)
        if action.kind == "mute":
            _check_not_muted(connection, action, fitting)
        connection.execute(insert(actions), [{"id": next_id(connection, actions), **vars(action)}])
    return len(fitting)


def _check_until(until: int, now: int) -> None:
    if until <= now:
        raise InputError(f"has to be later than now, and is {_local(until)}", key="until")
    if until - now > LONGEST_MUTE_DAYS * 86400:
        raise InputError(f"{_local(until)} is more than a year away; say it again then", key="until")


def _fitting(connection: Connection, action: Action) -> list[str]:
    """The keys that it is about, at least one."""
    keys = sorted(set(connection.execute(select(series.c.key).where(series.c.site == action.site)).scalars()))
    fitting = list(filter(action.fits, keys))
    if not fitting:
        alike = difflib.get_close_matches(action.target, keys, n=1, cutoff=0.8)
        meant = f"; {alike[0]} does" if alike else "; iogauge history series lists them"
        raise InputError(f"no series of site {action.site} fits {action.target!r}{meant}", key="KEY")
    return fitting


def _check_nights_since(connection: Connection, action: Action) -> None:
    """A level without a night is none."""
    query = select(series.c.key, func.max(measurements.c.started)).join(measurements)
    found = connection.execute(query.where(series.c.site == action.site).group_by(series.c.key))
    last = max((started for key, started in found if action.fits(key)), default=0)
    if last < action.since:
        raise InputError(f"{_local(action.since)}: the last night of what fits began {_local(last)}", key="since")


def _check_not_muted(connection: Connection, action: Action, fitting: Sequence[str]) -> None:
    """The same twice would have to be taken back twice."""
    for one in everything_said(connection, action.site):
        muted = one.what
        if one.taken_back or not isinstance(muted, Action) or muted.until is None or action.until is None:
            continue
        if muted.until >= action.until and all(map(muted.fits, fitting)):
            raise InputError(
                f"all {len(fitting)} series that fit are muted until {_local(muted.until)} already, by {muted.who}: "
                f"{muted.why}; iogauge history unsay {one.number} ends that",
                key="KEY",
            )


def said(connection: Connection, site: str) -> list[Action]:
    """The actions of a site that nobody took back, in the order in which they were said."""
    return [
        one.what for one in everything_said(connection, site) if isinstance(one.what, Action) and one.taken_back is None
    ]


def everything_said(connection: Connection, site: str) -> list[Said]:
    """All actions and maintenance windows of a site in the order in which they were said, those taken back, too."""
    rows = connection.execute(select(actions).where(actions.c.site == site).order_by(actions.c.id)).all()
    back = {row.target: TakenBack(row.who, row.at, row.why) for row in rows if row.kind == _TAKEN_BACK}
    found = [
        Said(str(row.id), _from_row(Action, row), back.get(str(row.id))) for row in rows if row.kind in get_args(Kind)
    ]
    windows = select(marks).where(marks.c.site == site, marks.c.kind == "maintenance").order_by(marks.c.id)
    for row in connection.execute(windows):
        number = f"{_OF_MARKS}{row.id}"
        found.append(Said(number, _from_row(Maintenance, row), back.get(number)))
    return sorted(found, key=lambda one: one.what.at)


def _from_row(form: Any, row: Row[Any]) -> Any:
    return form(**{name: row._mapping[name] for name in form.__dataclass_fields__})


def unsay(history: History, site: str, number: str, *, who: str, why: str) -> Said:
    """Take back what was said; it no longer counts, and stays in the history. Raises :class:`InputError`."""
    _check_signed(who, why)
    with history.writing() as connection:
        known = {one.number: one for one in everything_said(connection, site)}
        found = known.get(number)
        if found is None:
            have = ", ".join(known) or "none"
            raise InputError(f"{number!r}: nothing of that number was said at site {site}; there are: {have}", key="N")
        if found.taken_back is not None:
            back = found.taken_back
            raise InputError(f"{number} was taken back by {back.who} on {_local(back.at)}: {back.why}", key="N")
        now = int(time.time())
        row = {"site": site, "kind": _TAKEN_BACK, "target": number, "since": now, "until": None, "at": now}
        connection.execute(insert(actions), [row | {"id": next_id(connection, actions), "who": who, "why": why}])
    return found


def maintain(history: History, window: Maintenance) -> None:
    """Record a maintenance window, past or to come."""
    _check_signed(window.who, window.why)
    if window.ends <= window.begins:
        raise InputError("has to be later than its begin", key="end")
    if window.ends - window.begins > LONGEST_MAINTENANCE_DAYS * 86400:
        raise InputError(
            f"is more than {LONGEST_MAINTENANCE_DAYS} days after its begin; nothing would alarm", key="end"
        )
    with history.writing() as connection:
        if window.file_system is not None:
            _check_file_system(connection, window.site, window.file_system)
        row = {"id": next_id(connection, marks), "kind": "maintenance", **vars(window)}
        connection.execute(insert(marks), [row])


def maintenance(connection: Connection, site: str) -> list[Maintenance]:
    """The maintenance windows of a site that nobody took back, by their begin."""
    found = [
        one.what
        for one in everything_said(connection, site)
        if isinstance(one.what, Maintenance) and one.taken_back is None
    ]
    return sorted(found, key=lambda window: window.begins)


def renames(connection: Connection, site: str) -> list[Rename]:
    """All renamed file systems of a site, in their order."""
    query = select(marks.c.file_system, marks.c.new_name, marks.c.begins)
    found = connection.execute(query.where(marks.c.site == site, marks.c.kind == "rename").order_by(marks.c.id))
    return [Rename(*row) for row in found]


@dataclass(frozen=True)
class Renamed:
    """How many series go on under the new name: ``joined`` to nights that were measured under it before, or not."""

    moved: int
    joined: int


def rename(
    history: History, site: str, old: str, new: str, *, who: str, why: str, same_configuration: bool = False
) -> Renamed:
    """Let the series of file system ``old`` go on as ``new``, those of reports that come in later with it.

    Series of the two names with one configuration become one. With ``same_configuration`` so do those whose fingerprints
    differ (the mount point's name is in it), where there is no doubt which: one of each key, the new one begun after the last
    night of the old.
    """
    _check_signed(who, why)
    if not new or "/" in new or new == old:
        raise InputError(f"{new!r}; another name than {old!r}, without /, is expected", key="NEW")
    with history.writing() as connection:
        _check_file_system(connection, site, old)
        _check_never_together(connection, site, old, new)
        joined = moved = 0
        mine = series.c.site == site
        for row in connection.execute(select(series).where(mine, series.c.file_system == old)).all():
            words = row.key.split("/")
            words[2] = new
            target = _going_on(connection, row, "/".join(words), same_configuration)
            if target is None:
                values = {"key": "/".join(words), "file_system": new}
                connection.execute(update(series).where(series.c.id == row.id).values(values))
                moved += 1
            else:
                of_it = measurements.c.series_id == row.id
                connection.execute(update(measurements).where(of_it).values(series_id=target))  # evidence follows
                connection.execute(delete(series).where(series.c.id == row.id))
                joined += 1
        of_site = select(runs.c.id).where(runs.c.site == site)
        here = (cases.c.file_system == old, cases.c.run_id.in_(of_site))
        connection.execute(update(cases).where(*here).values(file_system=new))
        _rename_in_words(connection, site, old, new)
        now = int(time.time())
        mark = {"id": next_id(connection, marks), "site": site, "kind": "rename", "file_system": old, "new_name": new}
        connection.execute(insert(marks), [mark | {"begins": now, "at": now, "who": who, "why": why}])
    return Renamed(moved, joined)


def _check_never_together(connection: Connection, site: str, old: str, new: str) -> None:
    """Two names in one run are two file systems: joined, their nights could not be told apart any more."""
    of = [select(cases.c.run_id).where(cases.c.file_system == name) for name in (old, new)]
    both = select(func.max(runs.c.night)).where(runs.c.site == site, *(runs.c.id.in_(one) for one in of))
    night = connection.execute(both).scalar()
    if night is not None:
        raise InputError(
            f"{new!r}: it was measured beside {old!r}, on {night} last: these are two file systems; nothing was changed",
            key="NEW",
        )


def _going_on(connection: Connection, row: Row[Any], key: str, same_configuration: bool) -> int | None:
    """The number of the series that goes on where ``row`` ended, if there is one."""
    query = select(series.c.id, series.c.fingerprint).where(
        series.c.site == row.site, series.c.key == key, series.c.unit == row.unit
    )
    found = connection.execute(query).all()
    for other in found:
        if other.fingerprint == row.fingerprint:
            return int(other.id)
    same_key = connection.execute(
        select(func.count())
        .select_from(series)
        .where(series.c.site == row.site, series.c.key == row.key, series.c.unit == row.unit)
    ).scalar()
    if not same_configuration or len(found) != 1 or same_key != 1:
        return None
    ended = connection.execute(
        select(func.max(measurements.c.started)).where(measurements.c.series_id == row.id)
    ).scalar()
    begun = connection.execute(
        select(func.min(measurements.c.started)).where(measurements.c.series_id == found[0].id)
    ).scalar()
    return int(found[0].id) if ended is None or begun is None or ended < begun else None


def _rename_in_words(connection: Connection, site: str, old: str, new: str) -> None:
    for row in connection.execute(select(actions.c.id, actions.c.target).where(actions.c.site == site)).all():
        words = row.target.split("/")
        if len(words) > 2 and words[2] == old:
            words[2] = new
            connection.execute(update(actions).where(actions.c.id == row.id).values(target="/".join(words)))
    windows = (marks.c.site == site, marks.c.kind == "maintenance", marks.c.file_system == old)
    connection.execute(update(marks).where(*windows).values(file_system=new))


def _check_file_system(connection: Connection, site: str, name: str) -> None:
    query = select(series.c.file_system).where(series.c.site == site).distinct().order_by(series.c.file_system)
    known: Sequence[str] = connection.execute(query).scalars().all()
    if name not in known:
        have = ", ".join(known) or "none"
        raise InputError(f"no file system {name!r} in the history of site {site}; there are: {have}", key="file system")


def _check_signed(who: str, why: str) -> None:
    for name, value in (("by", who), ("why", why)):
        if not value.strip():
            raise InputError("empty; those who come later need it", key=name)


def _local(seconds: int) -> str:
    """A moment as people at the site write it."""
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
