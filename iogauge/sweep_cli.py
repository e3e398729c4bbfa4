"""The command ``iogauge sweep``."""

from __future__ import annotations

from pathlib import Path

import click

from iogauge import sweep, terminal
from iogauge.command import answers, new_console
from iogauge.measurement import Metric


@click.command("sweep")
@click.argument("records", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--metric", type=click.Choice(["observed", "raw"]), default="observed", show_default=True)
@click.option(
    "--single",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="records of tiles --suite baseline: show the parallel rates against a single process's",
)
@click.option("--csv", "table", type=click.Path(path_type=Path), help="write hdf5_iotest's columns there (tiles only)")
@answers
def sweep_command(records: Path, metric: Metric, single: Path | None, table: Path | None) -> None:
    """Show how far the cases of a sweep lie apart, and which option causes it.

    RECORDS: what a kernel with --sweep, or tiles with --suite or --ini, wrote with --json.

    \b
    Examples:
      iogauge sweep tiles.jsonl
      iogauge sweep tiles.jsonl --single single.jsonl --csv hdf5_iotest.csv
    """
    measurements = sweep.load(records)
    summaries = sweep.summarize(measurements, metric)
    speedups = sweep.against_single(measurements, sweep.load(single), metric) if single else []
    if table:
        text = sweep.to_csv(measurements)
        with table.open("x", encoding="utf-8") as file:
            file.write(text)
    console = new_console()
    for summary in summaries:
        terminal.print_sweep(console, summary)
    if speedups:
        terminal.print_speedups(console, speedups)
