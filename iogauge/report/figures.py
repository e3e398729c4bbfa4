"""The numbers behind the report's plots, as JSON for its script: time lines, scaling, and patterns beside each other."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iogauge.assess.record import Move, SeriesState, Timeline
from iogauge.judge import RatioRow
from iogauge.report.words import moved

Floats = NDArray[np.float64]

#: All repeats are plotted of so many last nights, the best of each night before, and one night a week before that.
REPEATS_NIGHTS = 120
DAILY_NIGHTS = 400
_WEEK = 7
#: Rates beside each other are medians over so many last nights.
COMPARED_NIGHTS = 14

_DAY = np.timedelta64(1, "D")


def _numbers(values: Iterable[float]) -> str:
    """A JSON list with four digits of each; what is not finite is null."""
    return "[" + ",".join(f"{value:.4g}" if abs(value) < np.inf else "null" for value in values) + "]"


def plotted(line: Timeline) -> NDArray[np.int64]:
    """Numbers of the nights in the plot: of each week long ago the night whose rate is the median of the week's."""
    count = len(line.dates)
    if count <= DAILY_NIGHTS:
        return np.arange(count)
    old = count - DAILY_NIGHTS
    weeks = [range(begin, min(begin + _WEEK, old)) for begin in range(0, old, _WEEK)]
    middle = [sorted(week, key=lambda night: float(np.nan_to_num(line.rates[night])))[len(week) // 2] for week in weeks]
    return np.concatenate((np.array(middle, np.int64), np.arange(old, count)))


def timeline(
    line: Timeline, unit: str, moves: Sequence[Move] = (), band: tuple[float, float] | None = None
) -> dict[str, str]:
    """The plot of one series as JSON texts by name. ``days`` since ``first`` are the nights, or their number where none is
    left out; ``best`` and ``reference`` have one rate each, in ``unit``, ``repeats`` those of the last nights.
    """
    nights = plotted(line)
    first = line.dates[0] if len(line.dates) else np.datetime64("1970-01-01")
    days: NDArray[np.int64] = ((line.dates - first) / _DAY).astype(np.int64)
    last = int(days[-1]) if len(days) else 0

    def day(date: object) -> int:
        return int((np.datetime64(date, "D") - first) / _DAY)  # type: ignore[call-overload]

    at = days[nights].tolist()
    repeats = (line.repeats.get(int(night), ()) for night in nights[-REPEATS_NIGHTS:])
    events = [(int(days[n]), "software", text) for n, texts in line.software.items() for text in texts]
    events += [(int(days[n]), "configuration", f"configuration {text}") for n, text in line.configuration.items()]
    return {
        "unit": json.dumps(unit),
        "first": json.dumps(str(first)),
        "days": json.dumps(len(at) if at == list(range(len(at))) else at, separators=(",", ":")),
        "best": _numbers(line.rates[nights].tolist()),
        "reference": _numbers(line.reference[nights].tolist()),
        "repeats": "[" + ",".join(map(_numbers, repeats)) + "]",
        "maintenance": json.dumps(days[line.maintenance].tolist(), separators=(",", ":")),
        "invalid": json.dumps([[int(days[n]), why] for n, why in line.invalid.items()]),
        "events": json.dumps(sorted(events)),
        "moves": json.dumps(
            [
                {
                    "from": day(one.began),
                    "to": last if one.ended is None else day(one.ended),
                    "open": one.ended is None,
                    "before": float(f"{one.before:.4g}"),
                    "after": float(f"{one.after:.4g}"),
                    "slower": one.slower,
                    "text": f"{'▼' if one.slower else '▲'} {moved(one)}",
                }
                for one in moves
            ]
        ),
        "band": "null" if band is None else _numbers(band),
    }


def as_json(texts: Mapping[str, str]) -> str:
    """One JSON object of JSON texts."""
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in texts.items()) + "}"


def thinned(line: Timeline) -> str:
    """What the plot of ``line`` leaves out, in words; empty: nothing."""
    words = []
    if len(line.dates) > REPEATS_NIGHTS:
        words.append(f"before the last {REPEATS_NIGHTS} nights the best repeat of each only")
    if len(line.dates) > DAILY_NIGHTS:
        words.append(f"before the last {DAILY_NIGHTS} one night a week")
    return "; ".join(words)


def together(name: str, lines: Sequence[Timeline]) -> Timeline:
    """The median over the series of a file system, each over its reference: 1 is the usual level."""
    dates = np.unique(np.concatenate([line.dates for line in lines])) if lines else np.array([], "datetime64[D]")
    table: Floats = np.full((len(dates), len(lines)), np.nan)
    maintenance = np.zeros(len(dates), np.bool_)
    software: dict[int, set[str]] = defaultdict(set)
    for column, line in enumerate(lines):
        rows = np.searchsorted(dates, line.dates)
        table[rows, column] = line.rates / line.level
        maintenance[rows] |= line.maintenance
        for night, texts in line.software.items():
            software[int(rows[night])].update(texts)
    some = np.isfinite(table).any(axis=1) if lines else np.zeros(0, np.bool_)
    rates = np.full(len(dates), np.nan)
    rates[some] = np.nanmedian(table[some], axis=1)
    return Timeline(
        key=name,
        dates=dates,
        rates=rates,
        reference=np.where(some, 1.0, np.nan),
        level=np.where(some, 1.0, np.nan),
        score=np.zeros(len(dates)),
        maintenance=maintenance,
        repeats={},
        invalid={},
        software={night: tuple(sorted(texts)) for night, texts in sorted(software.items())},
        configuration={},
    )


@dataclass(frozen=True)
class Recent:
    """A series over its last nights: the median of their best rates, and the lowest and the highest of them. ``ratios`` are
    those inside its last job."""

    state: SeriesState
    line: Timeline
    rate: float
    low: float
    high: float
    ratios: tuple[RatioRow, ...] = ()


def recent(state: SeriesState, line: Timeline, ratios: tuple[RatioRow, ...] = ()) -> Recent | None:
    """None where none of the last nights has a rate."""
    rates = line.rates[-COMPARED_NIGHTS:]
    rates = rates[np.isfinite(rates)]
    if not rates.size:
        return None
    return Recent(state, line, float(np.median(rates)), float(rates.min()), float(rates.max()), ratios)


@dataclass(frozen=True)
class Point:
    """One point of a plot: ``group`` has the colour and the shape, ``line`` the dash; ``low`` to ``high`` is its bar."""

    x: int | str
    group: str
    line: str
    rate: float
    low: float
    high: float
    key: str


@dataclass(frozen=True)
class Figure:
    """A plot with its table: ``x`` and ``line`` are what these mean, ``kind`` names its specification."""

    kind: str
    title: str
    x: str
    y: str
    line: str
    points: tuple[Point, ...]
    unity: bool = False

    @property
    def json(self) -> str:
        """What the script draws."""
        columns = {
            "points": [
                [p.x, p.group, p.line, *(float(f"{v:.4g}") for v in (p.rate, p.low, p.high))] for p in self.points
            ],
            "x": self.x,
            "y": self.y,
            "line": self.line,
            "unity": self.unity,
        }
        return json.dumps(columns, ensure_ascii=False, separators=(",", ":"))


def _kind(state: SeriesState) -> tuple[str, str, str, str, str, str]:
    """What two points of one figure have in common."""
    return state.benchmark, state.operation, state.pattern, state.interface, state.arm, state.unit


def name_of(benchmark: str, operation: str, pattern: str, interface: str, arm: str) -> str:
    """``particles write, CC-2d, hdf5``."""
    return f"{benchmark} {operation}, {pattern}, {interface}" + (f" @{arm}" if arm else "")


def scaling(series: Iterable[Recent]) -> Iterator[tuple[str, list[Figure]]]:
    """Rates over nodes, and over ranks a node, of all file systems beside each other; by benchmark and operation, pattern,
    interface. Only where there is more than one point to compare."""
    groups: dict[tuple[str, ...], list[Recent]] = defaultdict(list)
    for one in series:
        groups[_kind(one.state)].append(one)
    for (*kind, unit), members in sorted(groups.items()):
        figures = []
        if len({one.state.nodes for one in members}) > 1:
            figures.append(_scaling("nodes", "ranks a node", unit, members, _nodes, _ranks))
        if len({one.state.ranks_per_node for one in members}) > 1:
            figures.append(_scaling("ranks a node", "nodes", unit, members, _ranks, _nodes))
        if figures:
            yield name_of(*kind), figures


def _nodes(state: SeriesState) -> int:
    return state.nodes


def _ranks(state: SeriesState) -> int:
    return state.ranks_per_node


def _scaling(
    x: str,
    line: str,
    unit: str,
    members: Sequence[Recent],
    at: Callable[[SeriesState], int],
    other: Callable[[SeriesState], int],
) -> Figure:
    points = [
        Point(at(one.state), one.state.file_system, str(other(one.state)), one.rate, one.low, one.high, one.state.key)
        for one in sorted(members, key=lambda one: (one.state.file_system, other(one.state), at(one.state)))
    ]
    return Figure("scaling", f"over {x}", x, unit, line, tuple(points))


@dataclass(frozen=True)
class Aspect:
    """A way in which patterns differ: the words of a label that tell it, and what a label without any of them is."""

    title: str
    words: Mapping[str, str]
    usual: str


ASPECTS = (
    Aspect(
        "Locality: contiguous (C) or compound (I) in memory and in the file",
        {word: word for word in ("CC", "CI", "IC", "II")},
        "",
    ),
    Aspect("Dimensions", {f"{n}d": f"{n}-D" for n in (1, 2, 3, 4)}, "1-D"),
    Aspect("Full against partial read", {word: word for word in ("partial", "strided", "LDC", "RDC", "PRL", "CS")}, "full"),
)  # fmt: skip

_RAW = {"mpiio": "HDF5 to MPI-IO", "posix": "HDF5 to POSIX"}


def patterns(series: Sequence[Recent]) -> Iterator[tuple[str, list[Figure]]]:
    """Of one file system: each aspect with a figure for each benchmark and operation, then HDF5 against raw I/O."""
    for aspect in ASPECTS:
        reading = aspect.usual == "full"
        figures = list(_aspect(aspect, [one for one in series if not reading or one.state.operation != "write"]))
        if figures:
            yield aspect.title, figures
    figures = list(_against_raw(series))
    if figures:
        yield "HDF5 against raw I/O", figures


def _aspect(aspect: Aspect, series: Iterable[Recent]) -> Iterator[Figure]:
    families: dict[tuple[str, ...], dict[str, Recent]] = defaultdict(dict)
    for one in series:
        words = one.state.pattern.split("-")
        told = [word for word in words if word in aspect.words]
        variant = aspect.words[told[0]] if told else aspect.usual
        if variant:
            rest = "-".join(word for word in words if word not in told)
            benchmark, operation, _, interface, arm, unit = _kind(one.state)
            points = f"{one.state.nodes}x{one.state.ranks_per_node}"
            families[benchmark, operation, unit, rest, interface, arm, points][variant] = one
    figures: dict[tuple[str, ...], list[Point]] = defaultdict(list)
    order = [aspect.usual, *aspect.words.values()]
    for (benchmark, operation, unit, rest, interface, arm, points), found in sorted(families.items()):
        if len(found) < 2:
            continue
        row = " ".join(filter(None, (points, interface, f"@{arm}" * bool(arm), rest)))
        figures[benchmark, operation, unit] += [
            Point(row, variant, "", one.rate, one.low, one.high, one.state.key)
            for variant, one in sorted(found.items(), key=lambda item: order.index(item[0]))
        ]
    for (benchmark, operation, unit), made in figures.items():
        yield Figure("dots", f"{benchmark} {operation}", "", unit, "", tuple(made))


def _against_raw(series: Iterable[Recent]) -> Iterator[Figure]:
    """Ratios inside the last job, pair by pair; without them, of the series' last nights: what slows both cancels."""
    families: dict[tuple[str, ...], dict[str, Recent]] = defaultdict(dict)
    for one in series:
        benchmark, operation, pattern, interface, arm, _ = _kind(one.state)
        points = f"{one.state.nodes}x{one.state.ranks_per_node}"
        families[benchmark, operation, pattern, arm, points][interface] = one
    figures: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for (benchmark, operation, pattern, arm, points), found in sorted(families.items()):
        for interface, title in _RAW.items():
            ratios = _ratios_to(interface, found)
            if ratios.size:
                row = f"{points} {pattern}" + (f" @{arm}" if arm else "")
                values = (float(np.median(ratios)), float(ratios.min()), float(ratios.max()))
                figures[benchmark, operation].append(Point(row, title, "", *values, found["hdf5"].state.key))
    for (benchmark, operation), made in figures.items():
        title = f"{benchmark} {operation}"
        yield Figure("dots", title, "", "ratio of the rates", "", tuple(made), unity=True)


def _ratios_to(interface: str, found: Mapping[str, Recent]) -> Floats:
    if "hdf5" not in found:
        return np.zeros(0)
    in_job = [ratio.pairs for ratio in found["hdf5"].ratios if ratio.name == f"to_{interface}"]
    if in_job:
        return np.array(in_job[0])
    return _nightly_ratios(found["hdf5"].line, found[interface].line) if interface in found else np.zeros(0)


def _nightly_ratios(one: Timeline, other: Timeline) -> Floats:
    """On the last nights that both have."""
    _, mine, theirs = np.intersect1d(one.dates, other.dates, return_indices=True)
    ratios: Floats = one.rates[mine] / other.rates[theirs]
    ratios = ratios[np.isfinite(ratios)]
    return ratios[-COMPARED_NIGHTS:]


#: Nights of a small time line, and its box in SVG's units.
_SPARK_NIGHTS = 45
_SPARK_WIDTH, _SPARK_HEIGHT = 120.0, 32.0


@dataclass(frozen=True)
class Sparkline:
    """A small time line: points of two SVG polylines, before the open move and since, and where the reference is."""

    before: str
    since: str
    reference: float


def sparkline(state: SeriesState, line: Timeline) -> Sparkline | None:
    """The last nights from 0.6 of the reference on, or from the lowest; None without a reference or a rate."""
    rates = line.rates[-_SPARK_NIGHTS:]
    known = np.flatnonzero(np.isfinite(rates))
    if state.reference is None or not known.size:
        return None
    relative = rates / state.reference
    low, high = min(0.6, float(np.nanmin(relative))), max(1.1, float(np.nanmax(relative)))
    across = np.linspace(2, _SPARK_WIDTH - 2, max(2, len(rates)))
    down = _SPARK_HEIGHT - 2 - (relative - low) / (high - low) * (_SPARK_HEIGHT - 4)
    began = np.datetime64(state.move.began if state.move else datetime.date.max, "D")
    moved_on = line.dates[-_SPARK_NIGHTS:] >= began
    points = [f"{across[night]:.1f},{down[night]:.1f}" for night in known]
    first = int(np.searchsorted(known, np.argmax(moved_on))) if moved_on.any() else len(points)
    place = _SPARK_HEIGHT - 2 - (1 - low) / (high - low) * (_SPARK_HEIGHT - 4)
    return Sparkline(" ".join(points[: first + 1]), " ".join(points[first:]), round(place, 1))
