"""How often a comparison of an arm with itself finds anything, and how soon a slowed arm is found.

    python bench/compare.py KERNELS FOLDER --count 100
    python bench/compare.py KERNELS FOLDER --count 20 --env LD_PRELOAD=throttle.so --env THROTTLE=0.1

KERNELS is the folder of built kernels, FOLDER is on the file system under test. Each comparison is of two patterns, and ends
as that of `iogauge compare` does. --env is set for the second arm's kernels alone.
"""

from __future__ import annotations

import statistics
import tempfile
from collections import Counter
from pathlib import Path

import click

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


@click.command()
@click.argument("kernels", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--count", default=100, show_default=True, help="of comparisons; their seeds are 1, 2, ...")
@click.option("--ranks", default=2, show_default=True)
@click.option("--mebibytes", default=4, show_default=True, help="of a rank in each pattern")
@click.option("--repeats", default=3, show_default=True)
@click.option("--margin", default=0.05, show_default=True)
@click.option("--seconds", default=20.0, show_default=True, help="of one comparison, at most")
@click.option("--env", "settings", multiple=True, metavar="NAME=VALUE", help="for the second arm's kernels")
def main(
    kernels: Path,
    folder: Path,
    count: int,
    ranks: int,
    mebibytes: int,
    repeats: int,
    margin: float,
    seconds: float,
    settings: tuple[str, ...],
) -> None:
    """Print a line for each comparison, and how many found what."""
    launch = ("mpirun", "-np", str(ranks))
    counts: Counter[str] = Counter()
    pairs: list[int] = []
    for seed in range(1, count + 1):
        plan = Plan(
            site="bench",
            file_system=str(folder),
            arms=(
                Arm(name="a", programs=kernels, launch=launch),
                Arm(name="b", programs=kernels, launch=(*launch, "env", *settings)),
            ),
            patterns=tuple(pattern for pattern in patterns(mebibytes) if pattern.name in CHOSEN),
            seed=seed,
            repeats=repeats,
            margin=margin,
            time_limit_seconds=seconds,
            ranks=ranks,
            exchange=False,
            count=False,
            prove=False,
        )
        comparison = _compared(plan, folder)
        counts[_found(comparison)] += 1
        pairs += [len(result.first) for result in comparison.results if result.observed.finding == "slower"]
        shown = [f"{r.name} {r.observed.finding} {r.observed.ratio:.3f} ({len(r.first)})" for r in comparison.results]
        click.echo(f"{seed}: {_found(comparison)}: {'; '.join(shown) or comparison.problem}")
    click.echo(str(dict(counts)))
    if pairs:
        click.echo(f"pairs until slower was proven: median {statistics.median(pairs):g}, most {max(pairs)}")


if __name__ == "__main__":
    main()
