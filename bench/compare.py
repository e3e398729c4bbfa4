"""How often a comparison of an arm with itself finds anything, and how soon a slowed arm is found.

    python bench/compare.py KERNELS FOLDER --count 100
    python bench/compare.py KERNELS FOLDER --count 20 --slower 0.1 --pace 60 --noise 0.06 --seconds 900

KERNELS is the folder of built kernels, FOLDER is on the file system under test. Each comparison is of two patterns, and
ends as that of `iogauge compare` does. With --pace a preloaded throttle makes every read and write of both arms last as on
a storage of so many MiB/s a rank, which is another one in each run, as --noise says; the second arm has --slower of it
less. A pair's log ratio then has a sigma of at least 1.4 times --noise: 0.06 is that of a shared file system.
"""

from __future__ import annotations

import itertools
import math
import shlex
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from iogauge import demo
from iogauge.compare.driver import Driver
from iogauge.compare.plan import RUNS_FILE, Arm, Plan
from iogauge.compare.result import Comparison, summarise
from iogauge.compare.suite import patterns
from iogauge.errors import Refusal

#: One shared file by way of many datasets, and one of few large transfers.
CHOSEN = ("particles CC", "segments shared")


def _compared(plan: Plan, folder: Path) -> Comparison:
    with tempfile.TemporaryDirectory(dir=folder) as case, tempfile.TemporaryDirectory() as kept:
        driver = Driver(plan, Path(case), Path(kept, RUNS_FILE), lambda line: None)
        try:
            driver.go()
        except Refusal as refusal:
            return summarise(plan, [], stopped="broken", problem=str(refusal))
        return summarise(plan, driver.runs, stopped="time")


def _found(comparison: Comparison) -> str:
    findings = [ratio.finding for result in comparison.results for ratio in (result.observed, result.raw) if ratio]
    if comparison.stopped == "broken":
        return "broken"
    return next((word for word in ("slower", "faster") if word in findings), "nothing")


def _paced(
    launch: tuple[str, ...], script: Path, library: Path, folder: Path, pace: float, noise: float
) -> tuple[str, ...]:
    """Words that start a program on a storage with a pace of its own in each run: ``pace`` in MiB/s of a rank, lognormal."""
    draw = f"import random; print({pace} * random.lognormvariate(0, {noise}))"
    throttle = f"LD_PRELOAD={shlex.quote(str(library))} SLOW_STORAGE_FOLDER={shlex.quote(str(folder))}"
    script.write_text(
        f"#!/usr/bin/env bash\npace=$({shlex.quote(sys.executable)} -c {shlex.quote(draw)})\n"
        f'exec {shlex.join(launch)} env {throttle} SLOW_STORAGE_MIB_S="$pace" "$@"\n',
        encoding="utf-8",
    )
    return "bash", str(script)


def _sigma(comparisons: list[Comparison]) -> float:
    """Of a pair's log ratio, from the differences of neighbours, over all operations."""
    squares = []
    for result in (result for comparison in comparisons for result in comparison.results):
        d = [math.log(second / first) for first, second in zip(result.first, result.second, strict=True)]
        squares += [(b - a) ** 2 / 2 for a, b in itertools.pairwise(d)]
    return math.sqrt(statistics.mean(squares)) if squares else math.nan


@click.command()
@click.argument("kernels", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--count", default=100, show_default=True, help="of comparisons; their seeds are 1, 2, ...")
@click.option("--ranks", default=2, show_default=True)
@click.option("--mebibytes", default=4, show_default=True, help="of a rank in each pattern")
@click.option("--repeats", default=3, show_default=True)
@click.option("--margin", default=0.05, show_default=True)
@click.option("--seconds", default=20.0, show_default=True, help="of one comparison, at most")
@click.option("--pace", type=float, help="MiB/s of a rank, as the throttle allows them; default: no throttle")
@click.option("--noise", default=0.0, show_default=True, help="sigma of the logarithm of a run's pace")
@click.option("--slower", default=0.0, show_default=True, help="a part of the pace, taken from the second arm")
def main(
    kernels: Path,
    folder: Path,
    count: int,
    ranks: int,
    mebibytes: int,
    repeats: int,
    margin: float,
    seconds: float,
    pace: float | None,
    noise: float,
    slower: float,
) -> None:
    """Print a line for each comparison, and how many found what."""
    with tempfile.TemporaryDirectory() as scripts:
        launches: list[tuple[str, ...]] = [("mpirun", "-np", str(ranks))] * 2
        if pace is not None:
            library = Path(scripts, "slow_storage.so")
            demo.build(None, library)
            paces = (pace, pace * (1 - slower))
            launches = [
                _paced(launch, Path(scripts, f"{number}.sh"), library, folder, one, noise)
                for number, (launch, one) in enumerate(zip(launches, paces, strict=True))
            ]
        _go(kernels, folder, count, launches, ranks, mebibytes, repeats, margin, seconds)


def _go(
    kernels: Path,
    folder: Path,
    count: int,
    launches: Sequence[tuple[str, ...]],
    ranks: int,
    mebibytes: int,
    repeats: int,
    margin: float,
    seconds: float,
) -> None:
    comparisons = []
    for seed in range(1, count + 1):
        plan = Plan(
            site="bench",
            file_system=str(folder),
            arms=(
                Arm(name="a", programs=kernels, launch=launches[0]),
                Arm(name="b", programs=kernels, launch=launches[1]),
            ),
            patterns=tuple(pattern for pattern in patterns(mebibytes) if pattern.name in CHOSEN),
            seed=seed,
            repeats=repeats,
            margin=margin,
            time_limit_seconds=seconds,
            ranks=ranks,
            exchange=False,
            count=False,
            profile=False,
            prove=False,
        )
        comparison = _compared(plan, folder)
        comparisons.append(comparison)
        shown = [f"{r.name} {r.observed.finding} {r.observed.ratio:.3f} ({len(r.first)})" for r in comparison.results]
        click.echo(f"{seed}: {_found(comparison)}: {'; '.join(shown) or comparison.problem}")
    results = [result for comparison in comparisons for result in comparison.results]
    pairs = sorted(len(result.first) for result in results if result.observed.finding == "slower")
    click.echo(f"comparisons: {dict(Counter(map(_found, comparisons)))}")
    click.echo(f"operations, observed: {dict(Counter(result.observed.finding for result in results))}")
    click.echo(f"sigma of a pair's log ratio: {_sigma(comparisons):.3f}")
    if pairs:
        nine = pairs[math.ceil(0.9 * len(pairs)) - 1]
        click.echo(f"pairs until slower was proven: median {statistics.median(pairs):g}, 9 of 10 within {nine}")


if __name__ == "__main__":
    main()
