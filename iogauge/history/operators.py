"""What operators say, with who, when and why: acknowledged, blessed, muted; maintenance; a file system's new name."""

from __future__ import annotations

import fnmatch
import getpass
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from iogauge.errors import InputError
from iogauge.history.database import History, next_id
from iogauge.history.schema import actions, cases, marks, measurements, runs, series

Kind = Literal["ack", "bless", "mute"]


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


@dataclass(frozen=True)
class Rename:
    """What was called ``old`` in runs before the moment ``before`` is called ``new``."""

    old: str
    new: str
    before: int


def operator() -> str:
    """Who is at the keyboard."""
    return getpass.getuser()


def say(history: History, action: Action) -> int:
    """Record an action; returns how many series it is about. Raises :class:`InputError` when that is none."""
    _check_why(action.why)
    if (action.kind == "mute") != (action.until is not None):
        raise InputError("belongs to mute, and to every mute", key="until")
    if action.until is not None and action.until <= max(action.since, action.at):
        raise InputError("has to be later than now, and than since", key="until")
    with history.writing() as connection:
        keys = connection.execute(select(series.c.key).where(series.c.site == action.site)).scalars().all()
        fitting = sum(map(action.fits, keys))
        if not fitting:
            raise InputError(
                f"no series of site {action.site} fits {action.target!r}; iogauge history series lists them", key="KEY"
            )
        connection.execute(insert(actions), [{"id": next_id(connection, actions), **vars(action)}])
    return fitting


def said(connection: Connection, site: str) -> list[Action]:
    """All actions of a site, in the order in which they were said."""
    columns = [actions.c[name] for name in Action.__dataclass_fields__]
    found = connection.execute(select(*columns).where(actions.c.site == site).order_by(actions.c.id))
    return [Action(**row) for row in found.mappings()]


def maintain(history: History, window: Maintenance) -> None:
    """Record a maintenance window."""
    _check_why(window.why)
    if window.ends <= window.begins:
        raise InputError("has to be later than its begin", key="end")
    with history.writing() as connection:
        if window.file_system is not None:
            _check_file_system(connection, window.site, window.file_system)
        row = {"id": next_id(connection, marks), "kind": "maintenance", **vars(window)}
        connection.execute(insert(marks), [row])


def maintenance(connection: Connection, site: str) -> list[Maintenance]:
    """All maintenance windows of a site, in their order."""
    columns = [marks.c[name] for name in Maintenance.__dataclass_fields__]
    query = select(*columns).where(marks.c.site == site, marks.c.kind == "maintenance").order_by(marks.c.begins)
    return [Maintenance(**row) for row in connection.execute(query).mappings()]


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
    _check_why(why)
    if not new or "/" in new or new == old:
        raise InputError(f"{new!r}; another name than {old!r}, without /, is expected", key="NEW")
    with history.writing() as connection:
        _check_file_system(connection, site, old)
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


def _check_why(why: str) -> None:
    if not why.strip():
        raise InputError("empty; those who come later need a reason", key="why")
