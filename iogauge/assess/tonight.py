"""One more night of a site, from what the detector remembers of those before: the same as judging all of them, in no time.

What is remembered of a file system's series is kept in the history (its table ``states``), up to the night before the one
that is asked for, so that a night may get more runs. When anything that it rests on has changed, all nights are judged anew.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from iogauge import detect
from iogauge.assess.expected import with_expected
from iogauge.assess.reading import (
    KEYS_AT_A_TIME,
    NOTES_KEPT,
    CaseName,
    InvalidCase,
    Known,
    SeriesNights,
    Source,
    read_case_names,
    read_nights,
    read_source,
)
from iogauge.assess.record import Assessment
from iogauge.assess.site import Together, assessment_of, file_system_of
from iogauge.detect.nights import NO_MAINTENANCE
from iogauge.detect.noise import KEPT_NIGHTS, Floats
from iogauge.errors import InputError
from iogauge.history.comparisons import recorded
from iogauge.history.database import History
from iogauge.history.schema import cases, states

_DAY = datetime.timedelta(days=1)

#: A state looks back on so many ordinary nights, and on some more.
_ORDINARY_NIGHTS, _MORE_NIGHTS = KEPT_NIGHTS, 10


def assess_tonight(
    history: History, site: str, night: datetime.date, *, calendars: Mapping[str, detect.Calendar] | None = None
) -> Assessment:
    """The assessment of ``night``, as :func:`iogauge.assess.reading.assess` gives it.

    What is remembered is brought up to the night before. A history that cannot be written to is judged all the same, which is
    told in the notes. Raises :class:`InputError` when ``site`` has no night up to this one.
    """
    with history.reading() as connection:
        source = read_source(connection, site, calendars or {}, night)
        kept = _read_kept(connection, source)
        usable = {one.file_system: one for one in kept if one.rests_on(connection, source)}
        names = read_case_names(connection, source, _first_new(source, usable))
        found = {}
        for keys, since, known in _to_read(source, usable):
            found.update(
                {one.key: one for one in read_nights(connection, source, names, keys, since=since, known=known)}
            )
        compared = recorded(connection, site)
    series = [found[key] for key in source.series if key in found]
    judged = _Judged(source, series, usable)
    notes = source.notes(names, series)
    if not any(one.night >= night for one in kept):
        notes += _save(history, source, judged, usable)
    assessment = assessment_of(
        site, night, [one.nights for one in series], judged.verdicts, judged.file_systems(), judged.actions, notes=notes
    )
    return with_expected(assessment, compared)


@dataclass(frozen=True)
class _Kept:
    """A row of the table. ``state["series"]`` has by key what :func:`_series_state` made, ``state["fused"]`` what
    :meth:`_FileSystem.kept` did."""

    file_system: str
    night: datetime.date
    last_run: int
    basis: str
    state: Mapping[str, Any]

    def rests_on(self, connection: Connection, source: Source) -> bool:
        """Is all that it follows from as it was?"""
        series = self.state["series"]
        if self.night >= source.night or not series.keys() <= source.series.keys():
            return False
        late = source.run_ids[(source.run_ids > self.last_run) & (source.run_nights <= np.datetime64(self.night))]
        if self.file_system in _file_systems_of(connection, late.tolist()):
            return False
        ends = {key: datetime.date.fromisoformat(one["detector"]["night"]) for key, one in series.items()}
        return self.basis == _basis(source, self.file_system, self.night, ends)


def _read_kept(connection: Connection, source: Source) -> list[_Kept]:
    columns = (states.c.file_system, states.c.night, states.c.last_run, states.c.basis, states.c.state)
    return [_Kept(*row) for row in connection.execute(select(*columns).where(states.c.site == source.site))]


def _file_systems_of(connection: Connection, run_ids: Sequence[int]) -> set[str]:
    if not run_ids:
        return set()
    query = select(cases.c.file_system).where(cases.c.run_id.in_(run_ids)).distinct()
    return set(connection.execute(query).scalars())


def _basis(source: Source, file_system: str, night: datetime.date, ends: Mapping[str, datetime.date]) -> str:
    """A digest of what states up to ``night`` follow from beside what was measured; ``ends`` are the last nights by key."""
    calendar = source.calendars.get(file_system, NO_MAINTENANCE)
    until = source.run_started[source.run_nights <= np.datetime64(night)].max(initial=0)
    follows_from = {
        "program": _program(),
        "calendar": [sorted(calendar.days_of_month), sorted(calendar.weekdays), sorted(calendar.windows)],
        "windows": sorted((one.begins, one.ends) for one in source.windows_on(file_system) if one.begins <= until),
        "renames": [(one.old, one.before) for one in source.renames if one.new == file_system],
        "actions": {
            key: [vars(one) for one in _said_before(source.actions_on(key), end) if one.kind != "mute"]
            for key, end in sorted(ends.items())
        },
    }
    return hashlib.sha256(json.dumps(follows_from, sort_keys=True, default=str).encode()).hexdigest()


@functools.cache
def _program() -> str:
    """A digest of the code that states depend on."""
    package = Path(__file__).parents[1]
    files = [*(package / "detect").glob("*.py"), *(package / "assess").glob("*.py"), package / "history" / "reading.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()


def _said_before(actions: Iterable[detect.Action], night: datetime.date) -> list[detect.Action]:
    """Actions that hold from ``night`` or before."""
    return [one for one in actions if one.said < night]


def _first_new(source: Source, usable: Mapping[str, _Kept]) -> datetime.date | None:
    """The first night of which something is not remembered; none: all of them."""
    file_systems = set(map(file_system_of, source.series))
    if not file_systems <= usable.keys():
        return None
    return min((usable[name].night + _DAY for name in file_systems), default=None)


def _to_read(
    source: Source, usable: Mapping[str, _Kept]
) -> Iterator[tuple[list[str], datetime.date | None, dict[str, Known]]]:
    """Keys that begin at about the same night, from which one they have to be read (none: the first), and what is known."""
    known, since = {}, {}
    for key in source.series:
        kept = usable.get(file_system_of(key))
        if kept is None:
            since[key] = datetime.date.min
        elif key in kept.state["series"]:
            state = kept.state["series"][key]
            since[key] = datetime.date.fromisoformat(state["since"])
            known[key] = _known(state, kept.night)
        else:
            since[key] = kept.night + _DAY
    ordered = sorted(since, key=lambda key: since[key])
    for begin in range(0, len(ordered), KEYS_AT_A_TIME):
        some = ordered[begin : begin + KEYS_AT_A_TIME]
        first = since[some[0]]
        yield some, None if first == datetime.date.min else first, known


def _known(state: Mapping[str, Any], night: datetime.date) -> Known:
    return Known(
        np.datetime64(night),
        {CaseName(*name): np.datetime64(first) for *name, first in state["measured"]},
        [InvalidCase(np.datetime64(night), reason) for night, reason in state["invalid"]],
        [(np.datetime64(night), text) for night, text in state["notes"]],
        np.datetime64(state["since"]),
        state["configuration"],
    )


class _Judged:
    """All series of a site up to the night before, and then that night."""

    def __init__(self, source: Source, series: Sequence[SeriesNights], usable: Mapping[str, _Kept]) -> None:
        self.night = np.datetime64(source.night)
        self.series = {one.key: one for one in series}
        histories = [one.nights.history for one in series]
        self.actions = {one.key: source.actions_on(one.key) for one in histories}
        remembered = {key: state["detector"] for kept in usable.values() for key, state in kept.state["series"].items()}
        self.before = [part for one in histories if len(part := _before(one, self.night))]
        ends = {one.key: one.dates[-1].item() for one in self.before}
        earlier = detect.judge(
            self.before, {key: _said_before(self.actions[key], end) for key, end in ends.items()}, states=remembered
        )
        self.states = dict(zip(ends, earlier.states, strict=True))
        judged = detect.judge(histories, self.actions, states=self.states)
        self.verdicts = judged.verdicts
        self.fused = _fused(usable, earlier.tracks, judged.tracks, self.actions, self.night)

    def file_systems(self) -> dict[str, Together]:
        """The verdict on each file system with enough series."""
        judged = detect.judge_together(
            [one.history for one in self.fused.values() if one.history is not None],
            {name: one.said for name, one in self.fused.items()},
            states={name: one.state for name, one in self.fused.items() if one.state is not None},
        )
        return {one.key: Together(one, detect.maintenance_hints(self.fused[one.key].all)) for one in judged.verdicts}

    def state_of(self, file_system: str) -> dict[str, Any]:
        """What is to be remembered of a file system."""
        mine = [one for one in self.before if file_system_of(one.key) == file_system]
        made = {one.key: _series_state(self.series[one.key], one, self.states[one.key]) for one in mine}
        fused = self.fused.get(file_system)
        return {"series": made, "fused": None if fused is None else fused.kept()}


def _before(one: detect.History, night: np.datetime64) -> detect.History:
    """The nights before ``night``."""
    return _cut(one, slice(int(np.searchsorted(one.dates, night))))


def _cut(one: detect.History, nights: slice) -> detect.History:
    arrays = {name: getattr(one, name)[nights] for name in ("dates", "rates", "software", "configuration", "slots")}
    return replace(one, **arrays)


def _series_state(one: SeriesNights, before: detect.History, state: Mapping[str, Any]) -> dict[str, Any]:
    begin = _looks_back_to(before, state)
    while begin and begin in before.invalid and not before.repeats.get(begin):
        begin -= 1  # an invalid case tells nothing of the configuration
    since, until = before.dates[begin], before.dates[-1]
    return {
        "detector": state,
        "since": str(since),
        "configuration": before.configurations[before.configuration[begin]],
        "measured": [[*name, str(first)] for name, first in one.known.measured.items() if first <= until],
        "invalid": [[str(night), reason] for night, reason in one.known.invalid if since <= night <= until],
        "notes": [[str(night), text] for night, text in one.known.notes if night <= until][-NOTES_KEPT:],
    }


def _looks_back_to(one: detect.History, state: Mapping[str, Any]) -> int:
    """The first night that going on from ``state`` needs, as a number."""
    measured = np.flatnonzero(np.isfinite(one.rates))
    ordinary = measured[one.slots[measured] == 0]
    evidence = max(state["detector"]["since"], default=0)
    needed = [len(one) - detect.LOOKED_BACK, len(one) - len(state["recent"])]
    needed += [int(some[-count]) if count <= len(some) else 0
               for some, count in ((ordinary, _ORDINARY_NIGHTS), (measured, max(evidence, 1)))]  # fmt: skip
    return max(0, min(needed) - _MORE_NIGHTS)


@dataclass(frozen=True)
class _FileSystem:
    """A file system's series together: ``before`` the night, and ``all``; the history as far as ``state`` needs it.

    ``said`` is what was said of all of them.
    """

    before: detect.Fused
    all: detect.Fused
    said: Sequence[detect.Action]
    history: detect.History | None
    state: dict[str, Any] | None

    def kept(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "detector": self.state,
            "dates": self.before.dates.astype(str).tolist(),
            "z": _plain(self.before.z),
            "scale": _plain(self.before.scale),
            "slots": self.before.slots.tolist(),
        }


def _plain(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _fused(
    usable: Mapping[str, _Kept],
    earlier: Sequence[detect.Track],
    tonight: Sequence[detect.Track],
    actions: Mapping[str, Sequence[detect.Action]],
    night: np.datetime64,
) -> dict[str, _FileSystem]:
    by_name: dict[str, tuple[list[detect.Track], list[detect.Track]]] = defaultdict(lambda: ([], []))
    for which, tracks in enumerate((earlier, tonight)):
        for track in tracks:
            by_name[file_system_of(track.key)][which].append(track)
    parts, histories, remembered, said = {}, [], {}, {}
    for name, (old, new) in by_name.items():
        kept = usable[name].state["fused"] if name in usable else None
        before = _joined(*_remembered(kept), *_between(detect.fuse(old), usable[name].night if kept else None))
        parts[name] = before, _joined(before, *_between(detect.fuse(new), night - np.timedelta64(1, "D")))
        if kept and kept["detector"]:
            remembered[name] = kept["detector"]
        history = _tail(before.history(name), remembered.get(name))
        if history is not None:
            histories.append(history)
            said[name] = _said_before(detect.said_together(before, old, actions), history.dates[-1].item())
    judged = detect.judge_together(histories, said, states=remembered)
    state_of = {one.key: state for one, state in zip(histories, judged.states, strict=True)}
    return {
        name: _FileSystem(
            before,
            both,
            detect.said_together(both, by_name[name][1], actions),
            _tail(both.history(name), state_of.get(name)),
            state_of.get(name),
        )
        for name, (before, both) in parts.items()
    }


def _remembered(kept: Mapping[str, Any] | None) -> Iterator[detect.Fused]:
    if kept:
        z, scale = (np.array(kept[name], np.float64) for name in ("z", "scale"))
        dates, slots = np.array(kept["dates"], "datetime64[D]"), np.array(kept["slots"], np.int64)
        yield detect.Fused(dates, z, scale, slots)


def _between(one: detect.Fused, after: datetime.date | np.datetime64 | None) -> Iterator[detect.Fused]:
    """Its nights after another one, if there are any."""
    new = slice(0 if after is None else int(np.searchsorted(one.dates, np.datetime64(after), side="right")), None)
    if one.dates[new].size:
        yield detect.Fused(one.dates[new], one.z[new], one.scale[new], one.slots[new])


def _joined(*parts: detect.Fused) -> detect.Fused:
    every = parts or (detect.fuse([]),)
    return detect.Fused(
        *(np.concatenate([getattr(one, name) for one in every]) for name in ("dates", "z", "scale", "slots"))
    )


def _tail(one: detect.History | None, state: Mapping[str, Any] | None) -> detect.History | None:
    """Without what going on from ``state`` does not need."""
    if one is None or state is None:
        return one
    known = _before(one, np.datetime64(state["night"]) + np.timedelta64(1, "D"))
    return _cut(one, slice(_looks_back_to(known, state), None))


def _save(history: History, source: Source, judged: _Judged, usable: Mapping[str, _Kept]) -> list[str]:
    """Keep what was remembered up to the night before; what went wrong, for people."""
    nights = source.run_nights[source.run_nights < np.datetime64(source.night)]
    if not nights.size:
        return []
    night = nights.max().item()
    rows = []
    for file_system in sorted(set(map(file_system_of, source.series))):
        if file_system in usable and usable[file_system].night == night:
            continue
        state = judged.state_of(file_system)
        ends = {key: datetime.date.fromisoformat(one["detector"]["night"]) for key, one in state["series"].items()}
        basis = _basis(source, file_system, night, ends)
        rows.append(
            {
                "site": source.site,
                "file_system": file_system,
                "night": night,
                "last_run": int(source.run_ids.max()),
                "basis": basis,
                "state": state,
            }
        )
    if not rows:
        return []
    mine = states.c.site == source.site
    gone = states.c.file_system.not_in(set(map(file_system_of, source.series)))
    made_anew = states.c.file_system.in_([row["file_system"] for row in rows])
    try:
        with history.writing() as connection:
            connection.execute(delete(states).where(mine, gone | made_anew))
            connection.execute(insert(states), rows)
    except InputError as problem:
        return [f"what the detector remembers is not kept, and the next night takes longer: {problem}"]
    return []
