"""What is otherwise than on the last good night, from the software and two summaries of the same case, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from iogauge.darshan.rules import THRESHOLDS
from iogauge.darshan.summary import Layer, Module, Summary
from iogauge.measurement import SOFTWARE_NAMES, Software
from iogauge.quota import in_units

if TYPE_CHECKING:
    from iogauge.night import Case
    from iogauge.past import Good

_Value = Callable[[Layer], float]


def _share(part: _Value, whole: _Value) -> _Value:
    return lambda layer: part(layer) / whole(layer) if whole(layer) else 0.0


def _counter(*names: str) -> _Value:
    return lambda layer: float(sum(layer[name] for name in names))


_CALLS: _Value = lambda layer: float(layer.calls)  # noqa: E731
_BYTES: _Value = lambda layer: float(layer.bytes_read + layer.bytes_written)  # noqa: E731

#: What is looked at of each module: a name, its value, and how it is written.
_AMOUNTS: Mapping[str, tuple[tuple[Module, ...], _Value, Callable[[float], str]]] = {
    "bytes written": (("H5D", "MPI-IO", "POSIX"), _counter("BYTES_WRITTEN"), lambda v: in_units(int(v))),
    "bytes read": (("H5D", "MPI-IO", "POSIX"), _counter("BYTES_READ"), lambda v: in_units(int(v))),
    "reads and writes": (("H5D", "MPI-IO", "POSIX"), _CALLS, lambda v: f"{v:.0f}"),
    "mean size of an access": (("POSIX",), _share(_BYTES, _CALLS), lambda v: in_units(int(v))),
    "opens": (("MPI-IO", "POSIX"), _counter("OPENS", "INDEP_OPENS", "COLL_OPENS"), lambda v: f"{v:.0f}"),
    "fsyncs": (("POSIX",), _counter("FSYNCS", "FDSYNCS"), lambda v: f"{v:.0f}"),
}
_SHARES: Mapping[str, tuple[tuple[Module, ...], _Value]] = {
    "collective calls": (("MPI-IO",), _share(_counter("COLL_READS", "COLL_WRITES"), _CALLS)),
    "unaligned accesses": (("POSIX",), _share(_counter("FILE_NOT_ALIGNED"), _CALLS)),
}
_TIMES: Mapping[str, _Value] = {
    "writing": lambda layer: layer.write_seconds,
    "reading": lambda layer: layer.read_seconds,
    "metadata": lambda layer: layer.metadata_seconds,
}


def changes(good: Summary, now: Summary) -> tuple[str, ...]:
    """What changed from ``good`` to ``now``, what was asked for first, then the time it took; nothing: alike.

    Both are of the same case with the same number of repeats. Small changes (threshold ``change``) are not told.
    """
    asked = [*_software(good, now), *_amounts(good, now), *_shares(good, now)]
    times = _times(good, now)
    if times and not asked:
        longer = "and they took longer: look at the storage and its neighbours before the software"
        shorter = "and they took less time"
        asked = [f"as many calls as then, as large, {longer if _total(now) > _total(good) else shorter}"]
    return (*asked, *times)


def with_changes(case: Case, good: Mapping[str, Good]) -> Case:
    """The case with what is otherwise than on its last good night, ``good`` by the series' key: the software, then what
    Darshan saw; that it saw nothing otherwise is told, too. Without a good night it stays as it is.
    """
    judgement = case.judgement
    nights = [good[row.key] for row in judgement.main_rows if row.key in good]
    profiled = [night for night in nights if night.summary is not None and judgement.profile is not None]
    if not nights:
        return case
    last = max(profiled or nights, key=lambda night: night.started)
    told = _versions(last.software, case.software) if case.software else []
    if last.summary is not None and judgement.profile is not None:
        seen = changes(last.summary, judgement.profile.summary)
        told += seen or ["as many calls as then, as large, and they took as long"]
    if told:
        told[0] = f"Against the last good night, {last.night}: {told[0]}"
    return case.model_copy(update={"judgement": judgement.model_copy(update={"changes": tuple(told)})})


def _versions(good: Software, now: Software) -> list[str]:
    before, after = good.model_dump(), now.model_dump()
    pairs = [(title, before[name], after[name]) for name, title in SOFTWARE_NAMES.items()]
    packages = sorted({*good.packages, *now.packages})
    pairs += [(name, good.packages.get(name), now.packages.get(name)) for name in packages]
    return [f"{title} {new or 'none'} instead of {old or 'none'}" for title, old, new in pairs if old != new]


def _total(summary: Summary) -> float:
    """In the module closest to the storage that was used."""
    return next((summary.layers[m].seconds for m in ("POSIX", "STDIO", "MPI-IO") if m in summary.layers), 0.0)


def _software(good: Summary, now: Summary) -> list[str]:
    found = []
    if good.ranks != now.ranks:
        found.append(f"{now.ranks} ranks instead of {good.ranks}")
    for module in (*good.layers, *(m for m in now.layers if m not in good.layers)):
        if module not in now.layers:
            found.append(f"{module} is not used any more")
        elif module not in good.layers:
            found.append(f"{module} is used, and was not")
    return found


def _changed(before: float, after: float) -> bool:
    return abs(after - before) > THRESHOLDS["change"].value * max(before, 1e-12)


def _amounts(good: Summary, now: Summary) -> list[str]:
    found = []
    for name, (modules, value, text) in _AMOUNTS.items():
        for module in modules:
            if module in good.layers and module in now.layers:
                before, after = value(good.layers[module]), value(now.layers[module])
                if _changed(before, after):
                    found.append(f"{module}: {name} {text(after)} instead of {text(before)}{_ratio(before, after)}")
    return found


def _ratio(before: float, after: float) -> str:
    if not before or not after:
        return ""
    return f" ({after / before:.1f} times)" if after > before else f" ({after / before:.0%})"


def _shares(good: Summary, now: Summary) -> list[str]:
    found = []
    for name, (modules, value) in _SHARES.items():
        for module in modules:
            if module in good.layers and module in now.layers:
                before, after = value(good.layers[module]), value(now.layers[module])
                if abs(after - before) > THRESHOLDS["change"].value:
                    found.append(f"{module}: {after:.0%} {name} instead of {before:.0%}")
    return found


def _times(good: Summary, now: Summary) -> list[str]:
    found = []
    for module in ("H5D", "MPI-IO", "POSIX", "STDIO"):
        if module not in good.layers or module not in now.layers:
            continue
        for name, value in _TIMES.items():
            before, after = value(good.layers[module]) / good.ranks, value(now.layers[module]) / now.ranks
            if abs(after - before) > THRESHOLDS["slow-seconds"].value and _changed(before, after):
                ratio = _ratio(before, after)
                found.append(f"{module}: {after:.3g} s of a rank in {name} instead of {before:.3g} s{ratio}")
    return found
