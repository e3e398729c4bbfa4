"""The command ``iogauge darshan``."""

from __future__ import annotations

from pathlib import Path

import click

from iogauge.command import answers, new_console
from iogauge.darshan import show
from iogauge.darshan.rules import Claim
from iogauge.errors import InputError


@click.command("darshan")
@click.argument("logs", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--records",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="records of the same run (a kernel's --json): what it says of itself is compared",
)
@click.option(
    "--without",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="records of the same run without Darshan: what it costs is told",
)
@click.option("--only", default="", metavar="REGEX", help="only files whose names match")
@click.option("--written", type=click.IntRange(min=0), help="bytes that the benchmark says it wrote")
@click.option("--read", type=click.IntRange(min=0), help="bytes that the benchmark says it read")
@click.option("--collective", is_flag=True, help="the benchmark was asked for collective transfers")
@click.option(
    "--good",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="a log of the same case when it was well: what changed is said first",
)
@click.option("--json", "as_json", is_flag=True, help="print summary and diagnosis as JSON")
@answers
def darshan_command(
    logs: tuple[Path, ...],
    records: Path | None,
    without: Path | None,
    only: str,
    written: int | None,
    read: int | None,
    collective: bool,
    good: Path | None,
    as_json: bool,
) -> int:
    """Say what a Darshan log has seen, and what is worth knowing of it; several LOGS are of programs of one case, which ran
    one after the other.

    \b
    Examples:
      iogauge darshan darshan.log
      iogauge darshan darshan.log --records darshan.jsonl --without without.jsonl --good last-week/darshan.log
      iogauge darshan launch-6.darshan launch-7.darshan --written 268435456 --read 268435456

    Exit codes: 0 it was read; 1 the log and the benchmark disagree; 2 it is no complete log.
    """
    if records is not None and (written is not None or read is not None or collective or only):
        raise InputError(
            "says all of it; --only, --written, --read and --collective are for other benchmarks", key="--records"
        )
    shown = show.look(
        logs,
        records=records,
        without=without,
        only=only,
        good=good,
        said=Claim(bytes_written=written, bytes_read=read, collective=collective or None),
    )
    if as_json:
        click.echo(shown.model_dump_json(by_alias=True, indent=1))
    else:
        show.print_look(new_console(), shown)
    return 1 if shown.flags else 0
