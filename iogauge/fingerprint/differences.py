"""What is otherwise in one fingerprint than in another, in sentences with numbers, what matters most first."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from iogauge.errors import InputError
from iogauge.fingerprint.darshan import as_darshan_tells
from iogauge.fingerprint.model import (
    ACCESSES,
    Access,
    Calls,
    File,
    Fingerprint,
    Layout,
    Object,
    Spread,
    is_mpi_io,
)
from iogauge.layout import in_words

#: In this order they are told: what costs most first.
Kind = Literal["collective", "sync", "data", "alignment", "ranks", "metadata", "layout", "calls", "size", "place"]
KINDS: tuple[Kind, ...] = (
    "collective",
    "sync",
    "data",
    "alignment",
    "ranks",
    "metadata",
    "layout",
    "calls",
    "size",
    "place",
)

#: Which part of two fingerprints is compared: without ``posix``, what does not depend on the MPI library.
Layer = Literal["posix", "mpi-io", "layout"]
LAYERS: tuple[Layer, ...] = ("posix", "mpi-io", "layout")

_SYNCS = ("fsync", "fdatasync", "MPI_File_sync")

#: So many of a kind are named, the others counted.
_NAMED = 3

#: Offsets that most datasets are multiples of are an alignment from here on, not chance.
_LEAST_ALIGNMENT = 512


class Finding(BaseModel):
    """One difference. ``text``: what it was, and what it became."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    text: str


def differences(before: Fingerprint, after: Fingerprint, layers: Sequence[Layer] = LAYERS) -> tuple[Finding, ...]:
    """What became otherwise; nothing: they are the same. What one of both has as not deterministic is not compared, and of a
    counter's and a Darshan log's fingerprint only what both tell.

    Raises :class:`InputError` for fingerprints of different cases.
    """
    _same_case(before, after)
    if before.source != after.source:
        before, after = as_darshan_tells(before), as_darshan_tells(after)
        layers = [layer for layer in layers if layer != "layout"]
    found = list(_of_layouts(before, after)) if "layout" in layers else []
    found += _of_files(before, after, layers)
    return tuple(sorted(dict.fromkeys(found), key=lambda finding: KINDS.index(finding.kind)))


def _same_case(before: Fingerprint, after: Fingerprint) -> None:
    names = ["ranks"] if before.source != after.source else ["kernel", "pattern", "options", "ranks"]
    for name in names:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            raise InputError(f"not of the same case: {_plain(old)} in one, {_plain(new)} in the other", key=name)


def _plain(value: Any) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)


# --- calls ------------------------------------------------------------------------------------------------------------


@dataclass
class _Moved:
    """Calls of one purpose, whichever they were. ``exact``: ``sizes`` holds all of them."""

    calls: int = 0
    bytes: int = 0
    sizes: Counter[int] = field(default_factory=Counter)
    aligned: Counter[int] = field(default_factory=Counter)
    names: set[str] = field(default_factory=set)
    spreads: list[Spread] = field(default_factory=list)

    @property
    def exact(self) -> bool:
        return sum(self.sizes.values()) == self.calls


@dataclass(frozen=True)
class _Place:
    """Whose calls are looked at, for the sentences: ``what`` is in front of them."""

    what: str
    access: Access
    units: Mapping[str, int]

    def tell(self, kind: Kind, purpose: str, text: str) -> Finding:
        """``text`` of calls for ``purpose``, with where that is."""
        return Finding(kind=kind, text=f"{self.what}{text}{_when(self.access, purpose)}")


def _of_files(before: Fingerprint, after: Fingerprint, layers: Sequence[Layer]) -> Iterator[Finding]:
    unknown = {*before.not_deterministic, *after.not_deterministic}
    names = [*before.files, *(name for name in after.files if name not in before.files)]
    for name in names:
        what = f"{name}: " if len(names) > 1 else ""
        old, new = before.files.get(name, File(count=0)), after.files.get(name, File(count=0))
        if old.count is not None and new.count is not None and old.count != new.count:
            yield Finding(kind="layout", text=f"{what or f'{name}: '}{old.count} files became {new.count}")
        if old.bytes is not None and new.bytes is not None and old.bytes != new.bytes:
            yield Finding(kind="size", text=f"{what}file size {old.bytes} became {new.bytes} bytes")
        for access in ACCESSES:
            lost = {path.removeprefix(f"files/{name}/calls/{access}/") for path in unknown}
            place = _Place(what, access, _units(before))
            yield from _of_calls(old.calls.get(access, {}), new.calls.get(access, {}), lost, place, layers)


def _when(access: Access, purpose: str) -> str:
    """On which files, where that does not go without saying: most calls are made to write, reads to read."""
    if access == "name":
        return " (by the file's name)"
    reads = purpose.split()[-1] == "read"
    opened = {("write", True): "written", ("read", False): "read"}.get((access, reads))
    return f" (in the file opened to be {opened})" if opened else ""


def _units(fingerprint: Fingerprint) -> dict[str, int]:
    """Names of what numbers can be told by, the largest number first."""
    units = {str(name): number for name, number in fingerprint.units.items()} | {"rank": fingerprint.ranks}
    both = {f"{name} and rank": number * fingerprint.ranks for name, number in fingerprint.units.items()}
    return {n: number for n, number in sorted((units | both).items(), key=lambda item: -item[1]) if number > 1}


def _of_calls(
    before: Mapping[str, Calls], after: Mapping[str, Calls], lost: set[str], place: _Place, layers: Sequence[Layer]
) -> Iterator[Finding]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys((*before, *after)):
        if ("mpi-io" if is_mpi_io(name) else "posix") in layers:
            groups[_purpose(name)].append(name)
    moved: dict[str, tuple[_Moved, _Moved]] = {}
    for purpose, names in groups.items():
        if any(name in lost or f"{name}/calls" in lost for name in names):
            continue
        moved[purpose] = _together(before, names), _together(after, names)
    collectives = list(_of_collectives(moved, place))
    yield from (finding for finding, _ in collectives)
    told = {purpose for _, purposes in collectives for purpose in purposes} | _told_by_posix(moved)
    for purpose, (old, new) in moved.items():
        if purpose in told:
            continue
        if purpose.split()[-1] in ("write", "read"):
            yield from _of_moves(purpose, old, new, place)
        elif old.calls != new.calls:
            syncs = purpose in _SYNCS
            units = {n: number for n, number in place.units.items() if syncs or n == "rank"}
            text = _became(purpose, old.calls, new.calls, units)
            yield place.tell("sync" if syncs else "calls", purpose, text)


def _told_by_posix(moved: Mapping[str, tuple[_Moved, _Moved]]) -> set[str]:
    """Purposes of MPI-IO calls whose change is that of the POSIX calls below them, one to one."""
    told = set()
    for direction in ("write", "read"):
        mpi_io = {p for p in moved if p.endswith(f"MPI-IO {direction}")}
        posix = {p for p in moved if p.split()[-1] == direction} - mpi_io
        changed = {p for p in mpi_io if _change([moved[p]]) != ({}, 0)}
        if len(changed) == 1 and _change(moved[p] for p in changed) == _change(moved[p] for p in posix):
            told |= changed
    return told


def _change(moved: Iterable[tuple[_Moved, _Moved]]) -> tuple[dict[int, int], int]:
    """By how much the numbers of each size became other ones, and all of them."""
    sizes: Counter[int] = Counter()
    calls = 0
    for old, new in moved:
        sizes.update(new.sizes)
        sizes.subtract(old.sizes)
        calls += new.calls - old.calls
    return {size: number for size, number in sizes.items() if number}, calls


def _purpose(name: str) -> str:
    """What a kind of call is for: ``data write``, ``collective MPI-IO read``; itself where it moves nothing."""
    call, _, part = name.partition(", ")
    if part.startswith("failed"):
        return f"failed {call}"
    posix = re.fullmatch(r"p?(read|write)v?", call)
    if posix:
        return {"": posix[1], "both": f"data and metadata {posix[1]}"}.get(part, f"{part} {posix[1]}")
    mpi_io = re.fullmatch(r"MPI_File_(i?)(read|write)(\w*)", call)
    if mpi_io is None:
        return call
    nonblocking = "nonblocking " if mpi_io[1] else ""
    split = "split " if mpi_io[3].endswith("_begin") else ""
    together = "collective" if re.search("_all|_ordered", mpi_io[3]) else "independent"
    return f"{nonblocking}{split}{together} MPI-IO {mpi_io[2]}"


def _together(calls: Mapping[str, Calls], names: Sequence[str]) -> _Moved:
    found = _Moved()
    for name in names:
        one = calls.get(name)
        if one is None or one.calls is None:
            continue
        found.calls += one.calls.total
        found.bytes += one.bytes.total if one.bytes else 0
        found.sizes.update(one.sizes or {})
        found.aligned.update(one.aligned or {})
        found.names.add(name.partition(",")[0])
        found.spreads.append(one.calls)
    return found


def _of_collectives(
    moved: Mapping[str, tuple[_Moved, _Moved]], place: _Place
) -> Iterator[tuple[Finding, tuple[str, str]]]:
    """What went from collective to independent, or back, and the purposes that this has told."""
    for direction in ("write", "read"):
        together, alone = f"collective MPI-IO {direction}", f"independent MPI-IO {direction}"
        nothing = (_Moved(), _Moved())
        collective, independent = moved.get(together, nothing), moved.get(alone, nothing)
        less = collective[1].calls - collective[0].calls
        more = independent[1].calls - independent[0].calls
        if less * more < 0:
            old, new = ("collective", "independent") if less < 0 else ("independent", "collective")
            numbers = " became ".join(
                f"{collective[side].calls} collective and {independent[side].calls} independent" for side in (0, 1)
            )
            text = f"{old} {direction}s became {new}: {numbers} MPI-IO {direction}s"
            yield place.tell("collective", together, text), (together, alone)


def _of_moves(purpose: str, old: _Moved, new: _Moved, place: _Place) -> Iterator[Finding]:
    kind: Kind = "metadata" if purpose.startswith("metadata") else "data"
    if (old.calls, old.bytes, old.sizes) != (new.calls, new.bytes, new.sizes):
        yield place.tell(kind, purpose, _moves_became(purpose, old, new, place.units))
        return
    for alignment in sorted(old.aligned | new.aligned, reverse=True):
        then, now = old.aligned[alignment], new.aligned[alignment]
        if then != now and 2 * max(then, now) > old.calls:  # fewer are where they are by chance
            text = f"{then} of {old.calls} {purpose}s that begin at a multiple of {in_words(alignment)} became {now}"
            yield place.tell("alignment", purpose, text)
            break
    if len(old.spreads) == len(new.spreads) == 1 and old.spreads != new.spreads:
        shares = " became ".join(str(spread.model_dump()) for spread in (*old.spreads, *new.spreads))
        yield place.tell("ranks", purpose, f"{purpose}s are shared otherwise: {shares}")
    if old.names != new.names:
        calls = " became ".join(" and ".join(sorted(names)) for names in (old.names, new.names))
        yield place.tell("calls", purpose, f"{calls} ({old.calls} {purpose}s)")


def _became(what: str, old: int, new: int, units: Mapping[str, int]) -> str:
    """``fsync: 0 became 5 (one a step)``."""
    change = abs(new - old)
    unit = next((name for name, number in units.items() if change % number == 0), None)
    more = "" if old == 0 or new == 0 else " more" if new > old else " less"
    by = f" ({_number(change // units[unit])}{more} a {unit})" if unit else ""
    return f"{what}: {old} became {new}{by}"


def _moves_became(purpose: str, old: _Moved, new: _Moved, units: Mapping[str, int]) -> str:
    exact = old.exact and new.exact
    gone, come = old.sizes - new.sizes, new.sizes - old.sizes
    same_bytes = old.bytes == new.bytes
    volume = "" if same_bytes else f"; {old.bytes} bytes became {new.bytes}"
    if exact and same_bytes and gone and come:
        return f"{_of_sizes(gone, purpose)} became {_of_sizes(come, '')}"
    if purpose.startswith("metadata") and old.calls != new.calls:
        return f"{_by_unit(purpose, old.calls, new.calls, units)}{volume}"
    if old.calls == new.calls:
        if exact and gone and come:
            return f"{_of_sizes(gone, purpose)} became {_of_sizes(come, '')}{volume}"
        return f"{old.calls} {purpose}s: {old.bytes} bytes became {new.bytes}"
    if exact and not (gone and come):
        change = f"{_of_sizes(come, '')} more" if come else f"{_of_sizes(gone, '')} less"
        return f"{_became(f'{purpose}s', old.calls, new.calls, units)}: {change}"
    mean = " became ".join(f"{moved.bytes / moved.calls:.0f}" if moved.calls else "none" for moved in (old, new))
    return f"{_became(f'{purpose}s', old.calls, new.calls, units)}, mean size {mean} bytes{volume}"


def _by_unit(purpose: str, old: int, new: int, units: Mapping[str, int]) -> str:
    """``4 metadata writes a dataset became 9``, where both numbers can be told so."""
    for unit in ("dataset", "step"):
        number = units.get(unit)
        if number and old and old % number == 0 == new % number:
            return f"{old // number} {purpose}{'s' * (old != number)} a {unit} became {new // number}"
    return _became(f"{purpose}s", old, new, units)


def _of_sizes(sizes: Mapping[int, int], purpose: str) -> str:
    """``one 8 MiB write``, ``2048 of 4 KiB``; of several sizes the most frequent."""
    common = sorted(sizes, key=lambda size: (-sizes[size], -size))
    if len(common) == 1 and sizes[common[0]] == 1 and purpose:
        return f"one {_size(common[0])} {purpose}"
    named = [f"{_number(sizes[size])} of {_size(size)}" for size in common[:_NAMED]]
    rest = sum(sizes[size] for size in common[_NAMED:])
    words = ", ".join(named) + (f" and {rest} of {len(common) - _NAMED} other sizes" if rest else "")
    if not purpose:
        return words
    return f"{purpose}s: {words}" if len(common) > 1 else f"{sizes[common[0]]} {purpose}s of {_size(common[0])}"


def _size(size: int) -> str:
    return in_words(size) if size else "0 bytes"


def _number(number: int) -> str:
    return "one" if number == 1 else str(number)


# --- HDF5's layout ----------------------------------------------------------------------------------------------------

#: What is told of a file, and of an object, and how; places have sentences of their own.
_OF_FILE: Mapping[str, tuple[Kind, str]] = {
    "superblock_version": ("layout", "version of the superblock"),
    "space_strategy": ("layout", "strategy of the file's space"),
    "page_bytes": ("layout", "bytes of a page of the file's space"),
    "superblock_bytes": ("size", "bytes of the superblock"),
    "free_bytes": ("size", "free bytes in the file"),
}
_OF_OBJECT: Mapping[str, tuple[Kind, str]] = {
    "kind": ("layout", "kind"),
    "layout": ("layout", "storage layout"),
    "chunk": ("layout", "chunk"),
    "chunks": ("layout", "number of chunks"),
    "filters": ("layout", "filters"),
    "type": ("layout", "type"),
    "element_bytes": ("layout", "bytes of an element"),
    "extent": ("layout", "extent"),
    "limit": ("layout", "limit of the extent"),
    "allocated": ("layout", "time of allocation"),
    "filled": ("layout", "time of filling"),
    "link_storage": ("layout", "storage of the links"),
    "links": ("layout", "links"),
    "attributes": ("layout", "attributes"),
    "header_version": ("layout", "version of the object header"),
    "stored_bytes": ("size", "stored bytes"),
    "header_messages": ("size", "messages in the object header"),
    "header_bytes": ("size", "bytes of the object header"),
    "header_free_bytes": ("size", "free bytes in the object header"),
}


def _of_layouts(before: Fingerprint, after: Fingerprint) -> Iterator[Finding]:
    unknown = {*before.not_deterministic, *after.not_deterministic}
    for name in (name for name in before.layouts if name in after.layouts):
        what = f"{name}: " if len(before.layouts) > 1 else ""
        for finding in _of_layout(before.layouts[name], after.layouts[name], unknown, f"layouts/{name}"):
            yield finding.model_copy(update={"text": f"{what}{finding.text}"})
    for name in set(before.layouts) ^ set(after.layouts):
        if f"layouts/{name}" not in unknown:
            side = "before" if name in before.layouts else "after"
            yield Finding(kind="layout", text=f"{name}: is an HDF5 file {side} only")


def _of_layout(before: Layout, after: Layout, unknown: set[str], path: str) -> Iterator[Finding]:
    for name, (kind, words) in _OF_FILE.items():
        old, new = getattr(before, name), getattr(after, name)
        if old != new and f"{path}/{name}" not in unknown:
            yield Finding(kind=kind, text=f"{words}: {_value(old)} became {_value(new)}")
    both = {name: (old, after.objects[name]) for name, old in before.objects.items() if name in after.objects}
    gone, new_ones = before.objects.keys() - after.objects.keys(), after.objects.keys() - before.objects.keys()
    for names, words in ((gone, "gone"), (new_ones, "new")):
        known = sorted(name for name in names if f"{path}/objects/{name}" not in unknown)
        if known:
            verb = "is" if len(known) == 1 else "are"
            yield Finding(kind="layout", text=f"{_objects(known, 'object')} {verb} {words}")
    yield from _of_objects(both, unknown, f"{path}/objects")
    yield from _of_places(both, before)


def _of_objects(both: Mapping[str, tuple[Object, Object]], unknown: set[str], path: str) -> Iterator[Finding]:
    """The same change of many objects is told once."""
    changed: defaultdict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for name, (old, new) in both.items():
        for attribute in _OF_OBJECT:
            then, now = getattr(old, attribute), getattr(new, attribute)
            if then != now and f"{path}/{name}/{attribute}" not in unknown:
                changed[old.kind, attribute, _value(then), _value(now)].append(name)
    for (what, attribute, old_text, new_text), names in changed.items():
        kind, words = _OF_OBJECT[attribute]
        yield Finding(kind=kind, text=f"{_objects(names, what)}: {words}: {old_text} became {new_text}")


def _of_places(both: Mapping[str, tuple[Object, Object]], before: Layout) -> Iterator[Finding]:
    alignment = _alignment([place for o in before.datasets.values() if (place := _place(o)) is not None])
    moved: dict[str, tuple[int, int]] = {}
    for name, objects in both.items():
        then, now = map(_place, objects)
        if then is not None and now is not None and then != now:
            moved[name] = then, now
    unaligned = [name for name, (old, new) in moved.items() if alignment and old % alignment == 0 != new % alignment]
    for name in unaligned[:_NAMED]:
        text = f"dataset {name}: offset no longer aligned to {in_words(alignment)}: {moved[name][0]} became {moved[name][1]}"
        yield Finding(kind="alignment", text=text)
    if len(unaligned) > _NAMED:
        rest = len(unaligned) - _NAMED
        yield Finding(kind="alignment", text=f"{rest} more datasets are no longer aligned to {in_words(alignment)}")
    others = [name for name in moved if name not in unaligned]
    if others:
        old_place, new_place = moved[others[0]]
        verb = "lies" if len(others) == 1 else "lie"
        yield Finding(
            kind="place", text=f"{_objects(others, 'dataset')} {verb} elsewhere: {old_place} became {new_place}"
        )


def _place(o: Object) -> int | None:
    return o.offset if o.offset is not None else o.first_chunk


def _alignment(places: Sequence[int]) -> int:
    """The largest power of two that most places are a multiple of; 0: none that is more than chance."""
    found, power = 0, _LEAST_ALIGNMENT
    while places and sum(place % power == 0 for place in places) >= 0.8 * len(places) and power <= max(places):
        found, power = power, power * 2
    return found


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _objects(names: Sequence[str], what: str) -> str:
    if len(names) == 1:
        return f"{what} {names[0]}"
    return f"{len(names)} {what}s ({names[0]} and {len(names) - 1} more)"
