"""What it costs to run a kernel under Darshan: pairs with and without it, in random order, and how their rates compare.

    python bench/darshan_overhead.py --library /opt/darshan/lib/libdarshan.so --dir /scratch/me --pairs 12 \
        --launcher 'mpirun -np 2' build/particles --particles 262144 --repeats 5 --baseline interface=mpiio

Prints, for each operation and baseline, the rate with Darshan over the rate without (best of the repeats): median and
quartiles of the pairs; and the same of the kernel's own ratios to its baselines, which the portable bands are about.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import click

from iogauge.adapters.kernel import read_records
from iogauge.darshan.preload import CONFIGURATION_FILE, configuration, variables
from iogauge.errors import InputError, Refusal
from iogauge.judge import ratio_name
from iogauge.measurement import Measurement, ratio


def _run(library: str, launcher: str, folder: Path, command: tuple[str, ...], *, profiled: bool) -> list[Measurement]:
    """One run of the kernel in a new folder below ``folder``."""
    work = Path(tempfile.mkdtemp(prefix="iogauge-case.", dir=folder))
    try:
        with tempfile.TemporaryDirectory() as stage:
            records = Path(stage) / "records.jsonl"
            (Path(stage) / CONFIGURATION_FILE).write_text(configuration(re.escape(str(work))), encoding="utf-8")
            words = [*shlex.split(launcher)]
            if profiled:
                words += ["env", *(f"{name}={value}" for name, value in variables(library, stage).items())]
            words += [*command, "--dir", str(work), "--json", str(records)]
            done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ)
            if done.returncode != 0:
                raise InputError(f"{shlex.join(words)} ended with exit code {done.returncode}: {done.stderr.strip()}")
            return read_records(records)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _values(measurements: list[Measurement]) -> dict[str, float]:
    """What is compared: best observed rates, and the ratios to the baselines."""
    found = {}
    mains = {m.operation: m for m in measurements if m.role == "main"}
    for m in measurements:
        name = f"{m.operation} {m.interface}" + "".join(f" {k}={v}" for k, v in m.differs.items() if k != "interface")
        found[f"{name}, observed"] = m.best_observed
        if m.best_raw is not None:
            found[f"{name}, raw"] = m.best_raw
        if m.role == "baseline":
            found[f"{m.operation} {ratio_name(m.differs)}"] = ratio(mains[m.operation], m).value
    return found


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--library", required=True, type=click.Path(exists=True, dir_okay=False, resolve_path=True))
@click.option("--dir", "folder", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--pairs", default=12, show_default=True, type=click.IntRange(min=2))
@click.option("--launcher", default="mpirun -np 2", show_default=True)
@click.option("--seed", default=1, show_default=True, help="of the order within the pairs")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def main(library: str, folder: Path, pairs: int, launcher: str, seed: int, command: tuple[str, ...]) -> None:
    """Compare COMMAND (a kernel with its options, without --dir and --json) with and without Darshan."""
    order = random.Random(seed)
    quotients: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(pairs):
        first = order.random() < 0.5
        try:
            runs = {p: _values(_run(library, launcher, folder, command, profiled=p)) for p in (first, not first)}
        except (InputError, Refusal) as error:
            raise click.ClickException(str(error)) from error
        for name, value in runs[True].items():
            quotients[name].append(value / runs[False][name])
    click.echo(f"with Darshan over without, {pairs} pairs: median (quartiles)")
    for name, values in quotients.items():
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        click.echo(f"{name:44} {middle:6.3f}  ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
