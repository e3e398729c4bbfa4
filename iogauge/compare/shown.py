"""A comparison at a terminal."""

from __future__ import annotations

import statistics

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from iogauge.compare.result import Comparison, Ratio, in_words, next_steps, untold
from iogauge.terminal import rate

_COLOURS = {"slower": "bold red", "undecided": "yellow", "not slower": "green", "faster": "cyan"}
_STOPPED = {
    "decided": "all is decided",
    "time": "the time is up",
    "interrupted": "interrupted",
    "broken": "broken",
}


def ratio_text(found: Ratio | None) -> str:
    """``0.88 (0.82 to 0.94)``, coloured by what was found."""
    if found is None:
        return "-"
    lowest, highest = ("?" if limit is None else f"{limit:.2f}" for limit in (found.lowest, found.highest))
    return f"[{_COLOURS[found.finding]}]{found.ratio:.2f} ({lowest} to {highest})[/]"


def print_comparison(console: Console, comparison: Comparison) -> None:
    """The arms, a line an operation, and what to do next."""
    names = [arm.name for arm in comparison.arms]
    for arm in comparison.arms:
        software = arm.software
        console.print(f"{escape(arm.name)}: HDF5 {software.hdf5}, {software.mpi}, kernels {software.kernels}")
    hosts = ", ".join(f"{host} ({ranks} ranks)" for host, ranks in comparison.hosts.items())
    where = f"on {comparison.file_system} of {comparison.where}"
    console.print(
        "; ".join(
            filter(None, (where, comparison.placement, hosts, f"seed {comparison.seed}", _STOPPED[comparison.stopped]))
        )
        + (f": {escape(comparison.problem)}" if comparison.problem else ""),
        highlight=False,
    )
    if comparison.results:
        table = Table(box=None, pad_edge=False)
        for heading in ("pattern", "operation", *names, "unit", "pairs", "observed ratio", "raw ratio", "finding"):
            table.add_column(heading)
        for result in comparison.results:
            table.add_row(
                escape(result.pattern),
                result.operation,
                rate(statistics.median(result.first)),
                rate(statistics.median(result.second)),
                result.unit,
                str(len(result.first)),
                ratio_text(result.observed),
                ratio_text(result.raw),
                f"[{_COLOURS[result.observed.finding]}]{in_words(result.observed)}[/]",
            )
        console.print(table)
    for sentence in untold(comparison):
        console.print(escape(sentence), highlight=False)
    console.print(next_steps(comparison), highlight=False)
