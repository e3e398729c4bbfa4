"""The report's pictures, as SVG that takes the page's colours: every repeat is a point."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from iogauge.judge import RatioRow, Row
from iogauge.night import Case, Night

#: Stands for the page's text colour in the SVG, so that it is right in light and dark.
_INK = "#010203"

#: Colours that colour-blind people tell apart (Okabe and Ito, "Color Universal Design", 2008), with a marker each.
_SERIES = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"), ("#e69f00", "v"), ("#56b4e9", "P"))
_OUTSIDE = "#d55e00"

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "iogauge",
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

_WIDTH_INCHES = 7.4
_ROW_INCHES = 0.24


def rates(night: Night) -> Iterator[tuple[str, str]]:
    """Observed rates in MiB/s, a picture for each file system and operation: title and SVG."""
    groups: dict[tuple[str, str], list[tuple[Case, Row]]] = defaultdict(list)
    for case, row in night.rows:
        groups[case.file_system, row.operation].append((case, row))
    for (file_system, operation), rows in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] != "write")):
        yield f"{operation} on {file_system}", _rates(rows, f"observed {operation} rate on {file_system}, MiB/s")


def ratios(night: Night) -> Iterator[tuple[str, str]]:
    """Ratios inside one job with their bands, a picture for each baseline and operation: title and SVG."""
    groups: dict[tuple[str, str], list[tuple[str, RatioRow]]] = defaultdict(list)
    for case, row in night.rows:
        for ratio in row.ratios:
            name = f"{case.file_system} {_ranks(case)} {row.benchmark} {row.label}"
            groups[_baseline(ratio), row.operation].append((name, ratio))
    for (baseline, operation), found in groups.items():
        yield f"{operation}, {baseline}", _ratios(found, f"{operation} rate, ratio: {baseline}")


def _baseline(ratio: RatioRow) -> str:
    known = {
        "to_mpiio": "HDF5 to MPI-IO",
        "to_posix": "HDF5 to POSIX",
        "to_CC": "to contiguous in memory and file (CC)",
        "to_1d": "to 1-D",
        "to_full": "partial or strided to full read",
    }
    name = ratio.name.removesuffix("_raw")
    return known.get(name, name.replace("_", " ")) + (", transfers only" if ratio.metric == "raw" else "")


def _ranks(case: Case) -> str:
    return f"{case.nodes}x{case.ranks_per_node}"


def _rates(rows: Sequence[tuple[Case, Row]], label: str) -> str:
    names = list(dict.fromkeys(f"{row.benchmark} {row.label}" for _, row in rows))
    counts = sorted({(case.nodes * case.ranks_per_node, _ranks(case)) for case, _ in rows})
    series = {ranks: _SERIES[i % len(_SERIES)] for i, (_, ranks) in enumerate(counts)}
    with mpl.rc_context(_STYLE):
        figure, axes = _figure(names)
        for case, row in rows:
            colour, marker = series[_ranks(case)]
            offset = (list(series).index(_ranks(case)) - (len(series) - 1) / 2) * 0.5 / max(1, len(series))
            y = [names.index(f"{row.benchmark} {row.label}") + offset] * len(row.observed_repeats_mib_s)
            if row.limits is not None:
                axes.plot([row.limits.lowest, row.limits.highest], y[:1] * 2, color=colour, alpha=0.25, linewidth=7)
            axes.plot(row.observed_repeats_mib_s, y, marker, color=colour, alpha=0.55, markersize=4, linestyle="none")
            axes.plot(row.observed_mib_s, y[0], marker, color=colour, markersize=6, markeredgecolor=_INK)
        for ranks, (colour, marker) in series.items():
            axes.plot([], [], marker, color=colour, label=f"{ranks} (nodes x ranks)", linestyle="none")
        values = [value for _, row in rows for value in row.observed_repeats_mib_s]
        _log_axis(axes, values)
        axes.set_xlabel("observed MiB/s, every repeat; outlined: best")
        _legend(figure, axes)
        return _svg(figure, label)


def _ratios(found: Sequence[tuple[str, RatioRow]], label: str) -> str:
    with mpl.rc_context(_STYLE):
        figure, axes = _figure([name for name, _ in found])
        for y, (_, ratio) in enumerate(found):
            if ratio.limits is not None:
                axes.plot(
                    [ratio.limits.lowest, ratio.limits.highest], [y, y], color="#009e73", alpha=0.3, linewidth=7,
                    solid_capstyle="butt",
                )  # fmt: skip
            outside = ratio.place in ("below", "above")
            axes.plot(ratio.pairs, [y] * len(ratio.pairs), "o", color="#0072b2", alpha=0.45, markersize=4)
            axes.plot(ratio.value, y, "X" if outside else "D", color=_OUTSIDE if outside else "#0072b2", markersize=7,
                      markeredgecolor=_INK)  # fmt: skip
        axes.axvline(1, color=_INK, alpha=0.3, linewidth=0.8)
        axes.plot([], [], "o", color="#0072b2", alpha=0.45, label="a pair of repeats")
        axes.plot([], [], "D", color="#0072b2", markeredgecolor=_INK, label="median, inside its band")
        axes.plot([], [], "X", color=_OUTSIDE, markeredgecolor=_INK, label="median, outside")
        axes.plot([], [], color="#009e73", alpha=0.3, linewidth=7, label="band")
        _log_axis(axes, [pair for _, ratio in found for pair in ratio.pairs])
        axes.set_xlabel("ratio of the rates in the same job")
        _legend(figure, axes)
        return _svg(figure, label)


def _figure(names: Sequence[str]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH_INCHES, 1.3 + _ROW_INCHES * len(names)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="both", alpha=0.2)
    return figure, axes


def _log_axis(axes: Axes, values: Sequence[float]) -> None:
    axes.set_xscale("log")
    if max(values) / min(values) < 20:
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    else:
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False, fontsize=8.5)


def _svg(figure: Figure, label: str) -> str:
    """The picture alone, without XML head, sized by the page, in the page's text colour, with a name for those who hear it."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(_INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", text, count=1, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?)height="[^"]*" |width="[^"]*pt" ', r"\1", text, count=1, flags=re.DOTALL)
    # Names inside a picture repeat from picture to picture; made different, one picture's marker is not another's.
    prefix = "p" + str(abs(hash(label)) % 10**8) + "-"
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{prefix}", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
