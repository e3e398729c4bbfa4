"""A comparison of two arms as one self-contained HTML page: what was found, what to do, and a forest plot of the ratios."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from iogauge import __version__, terminal
from iogauge.compare.exchange import sizes, unreadable
from iogauge.compare.plan import LOGS_FOLDER
from iogauge.compare.result import FINDINGS, Comparison, Result, count, in_words, next_steps, untold, why
from iogauge.measurement import SOFTWARE_NAMES
from iogauge.night import write_whole
from iogauge.report.forest import axis_of, marks_of
from iogauge.report.templates import environment

#: Finding to the classes that the night's page has for verdicts, and the shape of its mark.
_CLASSES = {"slower": "regressed", "undecided": "too-noisy", "not slower": "pass", "faster": "improved"}
_SYMBOLS = {"slower": "▼", "undecided": "◇", "not slower": "●", "faster": "▲"}


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
        return "too-noisy", f"Nothing is proven to be slower in {second}; {left} of {of} are undecided"
    return "pass", f"{second} is not slower than {first} by more than {comparison.margin:.0%}"


class Difference(NamedTuple):
    """What the arms do otherwise in one pattern: as counted, and as Darshan saw it."""

    pattern: str
    anchor: str
    counted: tuple[str, ...]
    seen: tuple[str, ...]
    metadata: str

    @property
    def number(self) -> int:
        """Of the counter, which is exact; of Darshan where the counter has none."""
        return len(self.counted) or len(self.seen)


def differences(comparison: Comparison) -> dict[str, Difference]:
    """Of the patterns of which something could be told."""
    counted = {one.pattern: one for one in comparison.otherwise if not one.problem}
    seen = {one.pattern: one for one in comparison.profiled if not one.problem}
    return {
        pattern: Difference(
            pattern=pattern,
            anchor=f"calls-{re.sub(r'[^A-Za-z0-9]+', '-', pattern)}",
            counted=counted[pattern].differences if pattern in counted else (),
            seen=seen[pattern].differences if pattern in seen else (),
            metadata=seen[pattern].metadata if pattern in seen else "",
        )
        for pattern in dict.fromkeys((*counted, *seen))
    }


def worst_first(comparison: Comparison) -> list[Result]:
    """What is slower, observed or in its transfers, by how much, then what is undecided, then the rest."""

    def rank(result: Result) -> tuple[int, float]:
        slower = [one.ratio for one in (result.observed, result.raw) if one is not None and one.finding == "slower"]
        return (-1, min(slower)) if slower else (FINDINGS.index(result.observed.finding), 0.0)

    return sorted(comparison.results, key=rank)


def pairs(comparison: Comparison) -> str:
    """``12 to 22 pairs a pattern``."""
    numbers = sorted({len(result.first) for result in comparison.results})
    between = f"{numbers[0]} to " if len(numbers) > 1 else ""
    return f"after {between}{count(numbers[-1], 'pair')} a pattern" if numbers else ""


def software(comparison: Comparison) -> Mapping[str, tuple[str, ...]]:
    """A line for each name: what each arm has."""
    each = [arm.software.model_dump() for arm in comparison.arms]
    known = {title: tuple(str(one[field] or "-") for one in each) for field, title in SOFTWARE_NAMES.items()}
    return {title: values for title, values in known.items() if set(values) != {"-"}}


def render(comparison: Comparison) -> str:
    """The page; it needs no network and no script."""
    look, words = headline(comparison)
    axis = axis_of(comparison)
    return (
        environment()
        .get_template("comparison.html.j2")
        .render(
            comparison=comparison,
            look=look,
            words=words,
            steps=next_steps(comparison),
            axis=axis,
            rows=[(result, list(marks_of(result, axis))) for result in worst_first(comparison)],
            classes=_CLASSES,
            symbols=_SYMBOLS,
            in_words=in_words,
            why=lambda result, found: why(found, len(result.first), comparison.margin),
            count=count,
            pairs=pairs(comparison),
            rate=terminal.rate,
            median=statistics.median,
            differences=differences(comparison),
            untold=untold(comparison),
            unreadable=unreadable(comparison.exchanges),
            sizes=sizes(comparison.exchanges),
            software=software(comparison),
            logs=f"{LOGS_FOLDER}/" if any(one.logs for one in comparison.profiled) else "",
            version=__version__,
        )
    )


def write_page(comparison: Comparison, path: Path) -> Path:
    """Write the page whole or not at all; returns ``path``."""
    write_whole(path, render(comparison))
    return path
