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
from iogauge.measurement import Unit
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
    states = tuple(map(_series_state, series, judged.verdicts))
    by_file_system: dict[str, list[int]] = defaultdict(list)
    for number, state in enumerate(states):
        by_file_system[state.file_system].append(number)
    file_systems = [
        _file_system(name, [judged.tracks[n] for n in numbers], [judged.verdicts[n] for n in numbers])
        for name, numbers in sorted(by_file_system.items())
    ]
    assessment = Assessment(
        site=site,
        night=night,
        made=datetime.datetime.now(datetime.timezone.utc),
        series=states,
        file_systems=tuple(one for one in file_systems if one is not None),
        notes=tuple(notes),
    )
    lines = tuple(_timeline(one.history, track) for one, track in zip(series, judged.tracks, strict=True))
    return Assessed(assessment, lines, tuple(one.history for one in series), judged.tracks)


def _said(action: detect.Action | None) -> Said | None:
    if action is None:
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


def _file_system(
    name: str, tracks: Sequence[detect.Track], verdicts: Sequence[detect.SeriesVerdict]
) -> FileSystemState | None:
    """None with too few series that have a reference."""
    together = detect.judge_file_system(name, tracks)
    if together is None:
        return None
    attributes = {one.key: _attributes(parts_of(one.key)) for one in verdicts}
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
        hints=tuple(map(str, detect.maintenance_hints(tracks))),
    )


def _attributes(parts: Parts) -> dict[str, str]:
    """What a slowdown may have in common, in the order of the words: HDF5 collective writes."""
    collective = parts.label.endswith("collective")
    return {
        "benchmark": parts.benchmark,
        "interface": {"hdf5": "HDF5", "mpiio": "MPI-IO", "posix": "POSIX"}.get(parts.interface, parts.interface),
        "access": "collective" if collective else "independent",
        "operation": {"write": "writes", "read": "reads"}.get(parts.operation, parts.operation),
        "points": f"at {parts.nodes}x{parts.ranks_per_node}",
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
