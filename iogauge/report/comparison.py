"""A comparison of two arms as one self-contained HTML page: what was found, what to do, and a forest plot of the ratios."""

from __future__ import annotations

import statistics
from pathlib import Path

from markupsafe import Markup

from iogauge import __version__, terminal
from iogauge.compare.exchange import sizes, unreadable
from iogauge.compare.result import Comparison, Ratio, Result, in_words, next_steps
from iogauge.judge import Limits
from iogauge.night import write_whole
from iogauge.report import plots
from iogauge.report.templates import environment

#: Finding to the words and the classes that the night's page has for verdicts.
_CLASSES = {"slower": "regressed", "undecided": "too-noisy", "not slower": "pass", "faster": "improved"}
_SYMBOLS = {"slower": "▼", "undecided": "~", "not slower": "✓", "faster": "▲"}
_METRICS = {"observed": "open to close", "raw": "transfers only"}


def headline(comparison: Comparison) -> tuple[str, str]:
    """The class and the words of the banner."""
    first, second = (arm.name for arm in comparison.arms) if len(comparison.arms) == 2 else ("?", "?")
    if comparison.stopped == "broken" or not comparison.results:
        return "invalid", f"No verdict on {second} against {first}"
    slower = sum(result.slower for result in comparison.results)
    of = f"{len(comparison.results)} operations"
    if slower:
        return "regressed", f"{second} is slower than {first} in {slower} of {of}"
    if strange := unreadable(comparison.exchanges):
        return "regressed", f"{len(strange)} files do not pass from one arm to the other"
    if left := comparison.counts["undecided"]:
        return "too-noisy", f"Nothing is slower in {second} so far; {left} of {of} are undecided"
    return "pass", f"{second} is not slower than {first} by more than {comparison.margin:.0%}"


def forest(comparison: Comparison) -> list[tuple[str, str]]:
    """A picture for each kernel's patterns: title and SVG."""
    groups: dict[str, list[Result]] = {}
    for result in comparison.results:
        groups.setdefault(result.pattern.partition(" ")[0], []).append(result)
    names = " to ".join(reversed([arm.name for arm in comparison.arms]))
    return [
        (
            kernel,
            plots.picture(
                _points(results), f"ratio of rates, {names}: {kernel}", [f"ratio of rates, {names}"], unity=True
            ),
        )
        for kernel, results in groups.items()
    ]


def _points(results: list[Result]) -> list[plots.Points]:
    found = []
    for result in results:
        pairs = tuple(second / first for first, second in zip(result.first, result.second, strict=True))
        for metric, ratio, values in (("observed", result.observed, pairs), ("raw", result.raw, ())):
            if ratio is not None:
                found.append(
                    plots.Points(
                        row=result.name,
                        series=_METRICS[metric],
                        values=values,
                        value=ratio.ratio,
                        limits=_limits(ratio),
                        outside={"slower": "below", "faster": "above"}.get(ratio.finding, ""),
                        hollow=ratio.finding == "undecided",
                    )
                )
    return found


def _limits(ratio: Ratio) -> Limits | None:
    if ratio.lowest is None or ratio.highest is None:
        return None
    return Limits(reference=ratio.ratio, lowest=ratio.lowest, highest=ratio.highest)


def render(comparison: Comparison) -> str:
    """The page; it needs no network and no script."""
    look, words = headline(comparison)
    return (
        environment()
        .get_template("comparison.html.j2")
        .render(
            comparison=comparison,
            look=look,
            words=words,
            steps=next_steps(comparison),
            forest=[(title, Markup(svg)) for title, svg in forest(comparison)],
            classes=_CLASSES,
            symbols=_SYMBOLS,
            in_words=in_words,
            rate=terminal.rate,
            median=statistics.median,
            unreadable=unreadable(comparison.exchanges),
            sizes=sizes(comparison.exchanges),
            version=__version__,
        )
    )


def write_page(comparison: Comparison, path: Path) -> Path:
    """Write the page whole or not at all; returns ``path``."""
    write_whole(path, render(comparison))
    return path
