"""The report's pictures, as SVG that takes the page's colours: every repeat is a point.

Each picture is as wide as a phone; a row's name stands above its points, so that names of any length leave the room to them.
"""

from __future__ import annotations

import io
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from iogauge.judge import Limits, RatioRow, Row
from iogauge.measurement import Unit
from iogauge.night import Case, Night

#: Stand for the page's colours in the SVG, so that they are right in light and in dark.
_INK = "#010203"
_ALARM = "#010204"

#: A colour and a marker for each series; night.css says the colours, told apart by colour-blind people too.
_MARKERS = "os^DvP"
_COLOURS = tuple(f"#0102{number:02x}" for number in range(16, 16 + len(_MARKERS)))

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "iogauge",
    "font.size": 9,
    "text.parse_math": False,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}

_WIDTH_INCHES = 4.2
_NAME_INCHES = 0.19
_SERIES_INCHES = 0.125

#: A logarithmic axis from a value to less than so many times that has too few powers: its labels are in equal steps.
_NARROW_SPAN = 4


@dataclass(frozen=True)
class Points:
    """One series in one row of a picture."""

    row: str
    series: str
    values: tuple[float, ...]
    value: float
    limits: Limits | None
    outside: str = ""
    hollow: bool = False


def rates(night: Night) -> Iterator[tuple[str, str]]:
    """Observed rates, a picture for each file system and operation (or benchmark that counts): title and SVG."""
    groups: dict[tuple[str, str, Unit], list[Points]] = defaultdict(list)
    for case, row in sorted(night.rows, key=lambda found: (found[0].nodes, found[0].ranks_per_node)):
        groups[case.file_system, _subject(row), row.unit].append(
            Points(
                row=_name(row),
                series=f"{_ranks(case)} ranks",
                values=row.observed_repeats,
                value=row.observed,
                limits=row.limits,
                outside=_outside(row),
                hollow=row.band_status == "cached",
            )
        )
    for (file_system, subject, unit), points in sorted(groups.items(), key=lambda g: (g[0][0], *_rank(g[0][1]))):
        legend = ["outlined: best of the repeats"]
        if any(p.hollow for p in points):
            legend.append("hollow: from memory, not from the storage")
        label = f"observed {subject} rate on {file_system}, {unit}"
        yield f"{subject} on {file_system}", picture(points, label, [f"observed {unit}", "; ".join(legend)])


def ratios(night: Night) -> Iterator[tuple[str, str]]:
    """Ratios inside one job with their bands, a picture for each baseline and operation: title and SVG."""
    groups: dict[tuple[str, str], list[Points]] = defaultdict(list)
    for case, row in sorted(night.rows, key=lambda found: (found[0].file_system, found[0].ranks_per_node)):
        for ratio in row.ratios:
            groups[_baseline(ratio), _subject(row)].append(
                Points(
                    row=_name(row),
                    series=f"{case.file_system} {_ranks(case)}",
                    values=ratio.pairs,
                    value=ratio.value,
                    limits=ratio.limits,
                    outside=ratio.place if ratio.place in ("below", "above") else "",
                    hollow=ratio.place in ("cached differently", "too noisy"),
                )
            )
    for (baseline, subject), points in sorted(groups.items(), key=lambda g: (_order(g[0][0]), *_rank(g[0][1]))):
        legend = "outlined: median of the pairs"
        if any(p.hollow for p in points):
            legend += "; hollow: not judged (noise or cache)"
        label = f"ratio of the {subject} rate, {baseline}"
        yield f"{subject}: {baseline}", picture(points, label, ["ratio of the rates in one job", legend], unity=True)


_BASELINES = {
    "to_mpiio": "HDF5 to MPI-IO",
    "to_posix": "HDF5 to POSIX",
    "to_CC": "to contiguous (CC)",
    "to_1d": "to 1-D",
    "to_full": "to the full read",
}


def _baseline(ratio: RatioRow) -> str:
    name = ratio.name.removesuffix("_raw")
    return _BASELINES.get(name, name.replace("_", " ")) + (", transfers only" if ratio.metric == "raw" else "")


def _order(baseline: str) -> int:
    known = list(_BASELINES.values())
    return next((i for i, words in enumerate(known) if baseline.startswith(words)), len(known))


def _outside(row: Row) -> str:
    if row.limits is None:
        return ""
    if row.observed < row.limits.lowest:
        return "below"
    return "above" if row.observed > row.limits.highest else ""


def _subject(row: Row) -> str:
    """What a picture is of: bytes are either written or read; a benchmark that counts has many operations."""
    return row.operation if row.unit == "MiB/s" else row.benchmark


def _rank(subject: str) -> tuple[int, str]:
    """Writes, reads, then the benchmarks that count."""
    return {"write": 0, "read": 1}.get(subject, 2), subject


def _name(row: Row) -> str:
    first = row.benchmark if row.unit == "MiB/s" else row.operation
    return f"{first} {row.label}" + ("" if row.interface == "hdf5" else f" {row.interface}")


def _ranks(case: Case) -> str:
    return f"{case.nodes}x{case.ranks_per_node}"


def picture(points: Sequence[Points], label: str, below: Sequence[str], *, unity: bool = False) -> str:
    rows = sorted({p.row for p in points})  # the same order every night, whatever is missing
    series = list(dict.fromkeys(p.series for p in points))
    row_inches = _NAME_INCHES + _SERIES_INCHES * len(series) + 0.05
    with mpl.rc_context(_STYLE):
        legend_lines = -(-len(series) // 4)
        figure = Figure(
            figsize=(_WIDTH_INCHES, row_inches * len(rows) + 0.75 + 0.2 * legend_lines), layout="constrained"
        )
        axes = figure.add_subplot()
        _frame(axes, rows, row_inches, unity)
        for p in points:
            number = series.index(p.series)
            y = rows.index(p.row) + (_NAME_INCHES + _SERIES_INCHES * (number + 0.5)) / row_inches
            _draw(axes, p, y, _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)])
        _log_axis(axes, [value for p in points for value in (*p.values, *_ends(p.limits))])
        axes.set_xlabel("\n".join(below), fontsize=8)
        handles = [
            Line2D([], [], marker=_MARKERS[i % len(_MARKERS)], color=_COLOURS[i % len(_COLOURS)], linestyle="none")
            for i in range(len(series))
        ]
        figure.legend(handles, series, loc="outside upper left", ncols=4, frameon=False, fontsize=8.5,
                      handletextpad=0.1, columnspacing=1.0, borderpad=0.0)  # fmt: skip
        return _svg(figure, label)


def _frame(axes: Axes, rows: Sequence[str], row_inches: float, unity: bool) -> None:
    axes.set_ylim(len(rows), 0)
    axes.set_yticks([])
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x", color=_INK, alpha=0.12, linewidth=0.7)
    if unity:
        axes.axvline(1, color=_INK, alpha=0.5, linewidth=1)
    for number, name in enumerate(rows):
        axes.axhline(number, color=_INK, alpha=0.15, linewidth=0.7)
        y = number + _NAME_INCHES / 2 / row_inches
        axes.text(0.0, y + 0.02, name, transform=axes.get_yaxis_transform(), va="center", fontsize=8.5)


def _draw(axes: Axes, p: Points, y: float, colour: str, marker: str) -> None:
    if p.limits is not None:
        axes.plot(_ends(p.limits), [y, y], color=colour, alpha=0.3, linewidth=6, solid_capstyle="butt")
    fill = "none" if p.hollow else colour
    axes.plot(p.values, [y] * len(p.values), marker, color=colour, markerfacecolor=fill, alpha=0.6, markersize=3.2)
    axes.plot(p.value, y, marker, color=colour, markerfacecolor=fill, markersize=5.5, markeredgecolor=_INK)
    if p.outside:
        word = "▼ below" if p.outside == "below" else "▲ above"
        axes.annotate(word, (p.value, y), xytext=(6, 0), textcoords="offset points", va="center", color=_ALARM,
                      fontsize=8, fontweight="bold", annotation_clip=False)  # fmt: skip


def _ends(limits: Limits | None) -> tuple[float, ...]:
    return () if limits is None else (limits.lowest, limits.highest)


def _log_axis(axes: Axes, values: Sequence[float]) -> None:
    axes.set_xscale("log")
    span = max(values) / min(values)
    axes.set_xlim(min(values) * span**-0.03 / 1.02, max(values) * span**0.06 * 1.02)
    if span < _NARROW_SPAN:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    else:
        subs = (1, 2, 5) if span < 40 else (1, 3) if span < 200 else (1,)
        axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
    axes.tick_params(axis="x", labelsize=8)


def _svg(figure: Figure, label: str) -> str:
    """The picture alone, sized and coloured by the page, with a name for those who hear it."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for number, colour in enumerate(_COLOURS, start=1):
        text = text.replace(colour, f"var(--series-{number})")
    text = text.replace(_ALARM, "var(--bad)").replace(_INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<[^>]*>", lambda element: re.sub(r"(-?\d+\.\d{2})\d+", r"\1", element[0]), text)  # no label
    head, rest = text.split(">", 1)
    head = re.sub(r' (?:width|height|version|xmlns:xlink)="[^"]*"', "", head)
    # Names inside a picture repeat from picture to picture; made different, one picture's marker is not another's.
    prefix = f"p{zlib.crc32(label.encode()):08x}-"
    rest = re.sub(r'\bid="', f'id="{prefix}', rest)
    rest = re.sub(r'xlink:href="#', f'href="#{prefix}', rest).replace("url(#", f"url(#{prefix}")
    return head.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1) + ">" + rest
