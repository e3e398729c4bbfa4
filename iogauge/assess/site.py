"""From the nights of a site's series to its assessment: a pure function."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from iogauge import detect
from iogauge.assess.record import (
    Assessed,
    Assessment,
    FileSystemState,
    Move,
    Said,
    Scope,
    SeriesState,
    Timeline,
)
from iogauge.detect import verdicts
from iogauge.measurement import INTERFACE_NAMES, Unit
from iogauge.series import Parts, parts_of


@dataclass(frozen=True)
class Nights:
    """One series with all its nights, and the unit and the fingerprint that the last one has."""

    history: detect.History
    unit: Unit
    fingerprint: str


def assess_nights(
    site: str,
    night: datetime.date,
    series: Sequence[Nights],
    actions: Mapping[str, Sequence[detect.Action]] | None = None,
    *,
    notes: Sequence[str] = (),
) -> Assessed:
    """Judge every series of ``site`` from its beginning, and each file system's together. ``actions`` are by key."""
    judged = detect.judge([one.history for one in series], actions)
    tracks: dict[str, list[detect.Track]] = defaultdict(list)
    for one, track in zip(series, judged.tracks, strict=True):
        tracks[file_system_of(one.history.key)].append(track)
    fused = {name: detect.fuse(some) for name, some in tracks.items()}
    enough = [history for name, one in fused.items() if (history := one.history(name)) is not None]
    said = {one.key: detect.said_together(fused[one.key], tracks[one.key], actions or {}) for one in enough}
    together = {
        verdict.key: Together(verdict, detect.maintenance_hints(fused[verdict.key]))
        for verdict in detect.judge_together(enough, said).verdicts
    }
    assessment = assessment_of(site, night, series, judged.verdicts, together, actions or {}, notes=notes)
    lines = tuple(_timeline(one.history, track) for one, track in zip(series, judged.tracks, strict=True))
    return Assessed(assessment, lines, tuple(one.history for one in series), judged.tracks)


def file_system_of(key: str) -> str:
    """The file system in a series' key."""
    return parts_of(key).file_system


@dataclass(frozen=True)
class Together:
    """The verdict on all series of a file system, and the days that look like maintenance."""

    verdict: detect.SeriesVerdict
    hints: Sequence[detect.Hint]


def assessment_of(
    site: str,
    night: datetime.date,
    series: Sequence[Nights],
    verdicts: Sequence[detect.SeriesVerdict],
    together: Mapping[str, Together],
    actions: Mapping[str, Sequence[detect.Action]],
    *,
    notes: Sequence[str] = (),
) -> Assessment:
    """The record of what was judged: a verdict a series, and one a file system that has enough of them.

    ``actions`` are by key.
    """
    units = {one.history.key: one.unit for one in series}
    of: dict[str, list[detect.SeriesVerdict]] = defaultdict(list)
    for verdict in verdicts:
        of[file_system_of(verdict.key)].append(verdict)
    return Assessment(
        site=site,
        night=night,
        made=datetime.datetime.now(datetime.timezone.utc),
        series=tuple(
            _known_together(_series_state(one, verdict), together, actions.get(verdict.key, ()))
            for one, verdict in zip(series, verdicts, strict=True)
        ),
        file_systems=tuple(_file_system(name, of[name], together[name], units) for name in sorted(together)),
        notes=tuple(notes),
    )


def _said(action: detect.Action | None) -> Said | None:
    if action is None or action.kind == "anew":
        return None
    return Said(kind=action.kind, who=action.who, why=action.why, on=action.said, until=action.until)


def _move(finding: detect.Finding) -> Move:
    return Move(
        slower=finding.slower,
        began=finding.began,
        found=finding.found,
        before=finding.before,
        after=finding.after,
        changes=tuple(map(str, finding.changes)),
        acknowledged=_said(finding.acknowledged),
        ended=finding.ended,
        how=finding.how,
    )


def _series_state(one: Nights, verdict: detect.SeriesVerdict) -> SeriesState:
    parts = parts_of(verdict.key)
    return SeriesState(
        key=verdict.key,
        fingerprint=one.fingerprint,
        unit=one.unit,
        benchmark=parts.benchmark,
        operation=parts.operation,
        file_system=parts.file_system,
        nodes=parts.nodes,
        ranks_per_node=parts.ranks_per_node,
        pattern=parts.label,
        interface=parts.interface,
        arm=parts.arm,
        word=verdict.word,
        reason=verdict.reason,
        date=verdict.date,
        rate=verdict.rate,
        repeats=verdict.repeats,
        reference=verdict.reference,
        anchor=verdict.anchor,
        drop=verdict.drop,
        score=verdict.score,
        threshold=verdict.threshold,
        smallest_drop=verdict.smallest_drop,
        nights=verdict.nights,
        bad_nights=verdict.bad_nights,
        bad_of=min(verdict.nights, verdicts.BAD_LOOKED_AT),
        maintenance=verdict.maintenance,
        moves=tuple(map(_move, verdict.findings)),
        changes=tuple(map(str, verdict.changes)),
        muted=_said(verdict.muted),
        notes=verdict.notes,
    )


def _known_together(
    state: SeriesState, together: Mapping[str, Together], actions: Sequence[detect.Action]
) -> SeriesState:
    """A series that was acknowledged with its whole file system, before its own evidence sufficed, is known as well."""
    move, whole = state.move, together.get(state.file_system)
    if move is None or not move.slower or move.acknowledged is not None or whole is None:
        return state
    for finding in whole.verdict.findings:
        lasted = finding.found <= move.found and (finding.ended is None or move.found <= finding.ended)
        acks = [one for one in actions if one.kind == "ack" and finding.began <= one.said < move.found]
        if finding.acknowledged is not None and lasted and acks:
            known = move.model_copy(update={"acknowledged": _said(acks[-1])})
            return state.model_copy(update={"moves": (*state.moves[:-1], known)})
    return state


def _file_system(
    name: str, verdicts: Sequence[detect.SeriesVerdict], both: Together, units: Mapping[str, Unit]
) -> FileSystemState:
    together = both.verdict
    attributes = {one.key: _attributes(parts_of(one.key), units[one.key]) for one in verdicts}
    scope = detect.scope(name, verdicts, attributes, together)
    return FileSystemState(
        name=name,
        word=together.word,
        reason=together.reason,
        date=together.date,
        drop=together.drop,
        score=together.score,
        threshold=together.threshold,
        smallest_drop=together.smallest_drop,
        moves=tuple(map(_move, together.findings)),
        scope=None if scope is None else Scope(**vars(scope)),
        hints=tuple(map(str, both.hints)),
    )


#: What operations are called together; others get an s.
_PLURALS = {
    "close": "closes",
    "create": "creations",
    "iterate": "iterations",
    "list": "listings",
    "open": "opens",
    "remove": "removals",
}


def _attributes(parts: Parts, unit: Unit) -> dict[str, str]:
    """What slow series may have in common, in the order of the words: HDF5 collective writes from 4 nodes.

    Empty is what cannot be said of a series: POSIX is neither collective nor independent.
    """
    label = parts.label.removesuffix("collective").removesuffix("-")
    access = "collective" if parts.label.endswith("collective") else "independent"
    of, _, operation = parts.operation.rpartition("-")
    return {
        "pattern": label,
        "benchmark": {"ior": "IOR"}.get(parts.benchmark, parts.benchmark),
        "interface": INTERFACE_NAMES.get(parts.interface, parts.interface),
        "access": "" if parts.interface == "posix" or unit == "operations/s" else access,
        "object": of,
        "operation": _PLURALS.get(operation, f"{operation}s"),
        "kind": "metadata operations" if unit == "operations/s" else "reads and writes",
        "points": f"at {parts.nodes}x{parts.ranks_per_node}",
        "nodes": f"from {parts.nodes} node{'s' * (parts.nodes > 1)}",
        "ranks_per_node": f"with {parts.ranks_per_node} rank{'s' * (parts.ranks_per_node > 1)} a node",
        "arm": f"in {parts.arm}" if parts.arm else "",
    }


def _timeline(history: detect.History, track: detect.Track) -> Timeline:
    software = {
        number: tuple(map(str, verdicts.changes(history, number, number)))
        for number in (np.flatnonzero(np.diff(history.software)) + 1).tolist()
    }
    configuration = {
        number: history.configurations[history.configuration[number]]
        for number in (np.flatnonzero(np.diff(history.configuration)) + 1).tolist()
    }
    return Timeline(
        key=history.key,
        dates=history.dates,
        rates=history.rates,
        reference=np.exp(track.reference),
        level=np.exp(track.level),
        score=track.score,
        maintenance=history.slots != 0,
        repeats=history.repeats,
        invalid=history.invalid,
        software=software,
        configuration=configuration,
    )
