"""What it costs to run a case under Darshan: pairs of the same run with it and without, in one job."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from iogauge.measurement import Measurement


class Overhead(BaseModel):
    """The time from open to close with Darshan over that without, of each pair of repeats; dimensionless."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    operation: str
    pairs: tuple[float, ...]

    @property
    def text(self) -> str:
        """``write 1.03 times as long with Darshan (pairs 0.98 1.08)``."""
        pairs = " ".join(f"{pair:.2f}" for pair in self.pairs)
        return f"{self.operation} {statistics.median(self.pairs):.2f} times as long with Darshan (pairs {pairs})"


def overheads(profiled: Sequence[Measurement], without: Sequence[Measurement]) -> tuple[Overhead, ...]:
    """Of each operation; where a run has several cases (hdf5_iotest), of all of them together."""
    ours, theirs = _seconds(profiled), _seconds(without)
    return tuple(
        Overhead(operation=operation, pairs=tuple(a / b for a, b in zip(seconds, theirs[operation], strict=False)))
        for operation, seconds in ours.items()
        if operation in theirs
    )


def _seconds(measurements: Sequence[Measurement]) -> dict[str, list[float]]:
    """By operation, the seconds of each repeat."""
    found: dict[str, list[float]] = {}
    for m in (m for m in measurements if m.role == "main"):
        seconds = [repeat.total_seconds for repeat in m.repeats]
        found[m.operation] = [
            a + b for a, b in zip(found.get(m.operation, [0.0] * len(seconds)), seconds, strict=False)
        ]
    return found


def spread(found: Iterable[Overhead]) -> str:
    """Of the pairs of many cases: median and quartiles; empty: there are none to tell of."""
    pairs = [pair for overhead in found for pair in overhead.pairs]
    if len(pairs) < 2:
        return ""
    low, middle, high = statistics.quantiles(pairs, n=4, method="inclusive")
    return (
        f"{middle:.2f} times as long with Darshan as without, quartiles {low:.2f} to {high:.2f} of {len(pairs)} pairs"
    )
