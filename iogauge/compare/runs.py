"""The runs of a comparison, a line of JSON each, and the pairs that they make."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from iogauge.compare.lines import read_lines
from iogauge.errors import Refusal
from iogauge.measurement import Measurement, Metric
from iogauge.series import pattern_label


class Run(BaseModel):
    """One launch of one arm. ``pair`` counts within a pattern, -1 is the warm-up; ``first``: it ran before the other arm."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    pair: int = Field(ge=-1)
    arm: str
    first: bool
    measurements: tuple[Measurement, ...]

    @property
    def main(self) -> tuple[Measurement, ...]:
        """Without what the kernel measured beside it."""
        return tuple(m for m in self.measurements if m.role == "main")


def read_runs(path: Path) -> list[Run]:
    """The runs in ``path``, none if it does not exist. Raises :class:`Refusal`."""
    return read_lines(path, Run)


def whole_pairs(runs: Iterable[Run], pattern: str, arms: Sequence[str]) -> list[tuple[Run, Run]]:
    """Both runs of each pair of a pattern, in the order of the pairs; the warm-up and half pairs are left out."""
    by_pair: dict[int, dict[str, Run]] = defaultdict(dict)
    for run in runs:
        if run.pattern == pattern and run.pair >= 0:
            by_pair[run.pair][run.arm] = run
    return [
        (found[arms[0]], found[arms[1]]) for _, found in sorted(by_pair.items()) if all(arm in found for arm in arms)
    ]


@dataclass(frozen=True)
class Rates:
    """Best rates of each pair in one operation of one pattern, ``first`` arm and ``second``, in ``unit``; shape (pairs,).

    ``series`` is what is left of the key of such a series without its place: ``benchmark/operation/pattern/interface``.
    """

    pattern: str
    series: str
    operation: str
    unit: str
    metric: Metric
    first: tuple[float, ...]
    second: tuple[float, ...]

    @property
    def name(self) -> str:
        """Of what is judged: pattern, operation and metric."""
        return f"{self.pattern} {self.operation} {self.metric}"

    @property
    def log_ratios(self) -> list[float]:
        """Second to first arm; below 0 the second is slower."""
        return [math.log(second / first) for first, second in zip(self.first, self.second, strict=True)]


def rates_of(pairs: Sequence[tuple[Run, Run]]) -> list[Rates]:
    """The observed rates of one pattern, operation by operation, each followed by the raw ones where the transfers were told
    apart; none without a pair. Raises :class:`Refusal` for arms that did not do the same."""
    if not pairs:
        return []
    check_alike(pairs)
    metrics: tuple[Metric, ...] = ("observed", "raw")
    found = []
    for (number, m), metric in itertools.product(enumerate(pairs[0][0].main), metrics):
        rates = [[run.main[number].rates(metric) for run in pair] for pair in pairs]
        if all(map(all, rates)):
            first, second = zip(*([max(repeats) for repeats in pair] for pair in rates), strict=True)
            series = f"{m.benchmark}/{m.operation}/{pattern_label(m)}/{m.interface}"
            found.append(Rates(pairs[0][0].pattern, series, m.operation, m.unit, metric, first, second))
    return found


def check_alike(pairs: Sequence[tuple[Run, Run]]) -> None:
    """Raises :class:`Refusal` for pairs of one pattern that are not of the same work, or not of one place each. A comparison
    that was taken up again has pairs of other nodes, too."""
    first = pairs[0][0]
    for one, other in pairs:
        _check_same(one, other, [*_work(one, other), *_place(one, other)])
        for run in (one, other):
            _check_same(first, run, _work(first, run))


def _check_same(one: Run, other: Run, what: Iterable[tuple[str, object, object]]) -> None:
    for name, mine, theirs in what:
        if mine != theirs:
            raise Refusal(
                f"{other.pattern}: {name} differs: {mine} in arm {one.arm}, {theirs} in arm {other.arm}, "
                f"pair {other.pair + 1}"
            )


def _place(one: Run, other: Run) -> Iterable[tuple[str, object, object]]:
    for mine, theirs in zip(one.main, other.main, strict=False):
        yield "hosts", mine.hosts, theirs.hosts
        yield "cores", [(p.host, p.cores) for p in mine.placement], [(p.host, p.cores) for p in theirs.placement]


def _work(one: Run, other: Run) -> Iterable[tuple[str, object, object]]:
    yield "what was measured", [m.operation for m in one.main], [m.operation for m in other.main]
    for mine, theirs in zip(one.main, other.main, strict=False):
        yield "the pattern", mine.pattern, theirs.pattern
        yield "bytes", (mine.logical_bytes, mine.operations), (theirs.logical_bytes, theirs.operations)
        yield "the kernels' source", mine.software.kernels, theirs.software.kernels
    if one.arm == other.arm:
        yield "software", [m.software for m in one.main], [m.software for m in other.main]
