"""The command ``iogauge import``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from iogauge import nightly
from iogauge.command import TIMES, answers, at_history, at_site, new_console
from iogauge.commands import Unreadable
from iogauge.errors import InputError
from iogauge.history.database import History
from iogauge.history.importing import Given, Imported, Refused, choose, known_digests, read_all, store, volume_of
from iogauge.history.ingest import no_garbage
from iogauge.sites import FileSystem


class _Date(click.DateTime):
    """A time, or a word that says where to take it from."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value in ("text", "mtime") else super().convert(value, param, ctx)


@click.command("import")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER...", type=click.Path(path_type=Path))
@click.option(
    "--file-system", "name", required=True, help="where it was measured, as the site's configuration calls it"
)
@at_site
@click.option("--nodes", type=click.IntRange(1), help="where an output does not tell")
@click.option("--ranks-per-node", type=click.IntRange(1), help="where an output does not tell")
@click.option(
    "--date",
    type=_Date(TIMES),
    default="text",
    show_default=True,
    help="when: text (what outputs say of themselves), mtime (of the files), or a local time for all",
)
@click.option(
    "--reads",
    type=click.Choice(["auto", "cold", "cached"]),
    default="auto",
    show_default=True,
    help="reads came from the storage, or from memory; auto: from memory on one node",
)
@click.option(
    "--configuration",
    default="",
    metavar="TEXT|FILE",
    help="what the benchmark was started with, where its output does not say: command line, arguments, INI or JSON",
)
@click.option("--own", is_flag=True, help="into the series of the check that runs --configuration as the site's own")
@click.option("--volume", help="what df told of the file system then; default: what it tells here")
@click.option(
    "--arm", default="", help="of which partition or environ, as keys name it behind the @; default: the usual"
)
@click.option(
    "--software", multiple=True, metavar="NAME=VERSION", help="hdf5, mpi or compiler, where an output does not tell"
)
@click.option("--dry-run", is_flag=True, help="show what would be imported, and change nothing")
@at_history
@answers
def import_command(paths: tuple[Path, ...], name: str, site: str, nodes: int | None, ranks_per_node: int | None,
                   date: datetime | Literal["text", "mtime"], reads: Literal["auto", "cold", "cached"],
                   configuration: str, own: bool, volume: str | None, arm: str, software: tuple[str, ...],
                   dry_run: bool, location: str | None) -> int:  # fmt: skip
    """Take outputs that you kept of IOR, h5bench, hdf5_iotest, h5perf, h5perf_serial and benchio, and Darshan logs, into the
    history: the past of a site becomes its reference.

    Files are known by their content, in folders at any depth. Rates are computed anew from bytes and seconds. The same file
    twice changes nothing. What an output does not tell, an option has to.

    \b
    Examples:
      iogauge import results/ --file-system scratch --dry-run
      iogauge import results/ --file-system scratch --site mysite --ranks-per-node 32
      iogauge import old.csv --file-system scratch --date mtime --configuration '-a MPIIO -c -w -r -b 4g -t 4m'

    Exit codes: 0 all outputs are in the history, or were; 2 some were refused, each with its reason. All others are in.
    """
    chosen_fs = _file_system(site, name)
    console = new_console()
    given = Given(
        site=site, file_system=name, type=chosen_fs.type, volume=_volume(console, chosen_fs, volume), nodes=nodes,
        ranks_per_node=ranks_per_node, date=date, reads=reads, configuration=_configuration(configuration), own=own,
        versions=_versions(software), arm=_arm(site, name, arm),
    )  # fmt: skip
    history = History(location)
    if not dry_run and history.exists():
        history.upgrade()
    known = known_digests(history, site)
    chosen = choose(paths)
    with no_garbage():
        found = list(_with_bar(console, "reading", read_all(chosen.outputs, given, known), len(chosen.outputs)))
        refused = [*chosen.refused, *(one for one in found if isinstance(one, Refused))]
        imported = [one for one in found if isinstance(one, Imported)]
        new = [one for one in imported if one.new]
        if dry_run:
            console.print(_table(imported))
        for one in refused:
            click.echo(f"iogauge: error: {one.path}: {one.reason}", err=True)
        count = 0 if dry_run else store(history, new)
    measurements = sum(len(one.measured) for one in new) if dry_run else count
    click.echo(
        f"{'would import' if dry_run else 'imported'} {len(new)} outputs with {measurements} measurements; "
        f"{len(imported) - len(new)} in the history already, {len(refused)} refused, {chosen.others} other files left aside"
    )
    if not imported and not refused:
        raise InputError("no output that is known in there", file=paths[0])
    return 2 if refused else 0


def _file_system(site: str, name: str) -> FileSystem:
    known = {
        fs: one for part in nightly.read_site_configuration(site).values() for fs, one in part.file_systems.items()
    }
    if name not in known:
        raise InputError(f"{name!r}; site {site} has: {', '.join(known)}", key="--file-system")
    return known[name]


def _arm(site: str, file_system: str, arm: str) -> str:
    known = nightly.read_arms(site)[file_system]
    if arm not in known:
        others = ", ".join(filter(None, known)) or "none but the usual one"
        raise InputError(f"{arm!r}; {file_system} of site {site} has: {others}", key="--arm")
    return arm


def _volume(console: Console, file_system: FileSystem, given: str | None) -> str:
    if given is not None:
        return given.strip()
    try:
        return volume_of(file_system)
    except Unreadable as problem:
        console.print(
            f"note: what jobs see of the file system is not known here ({escape(str(problem))}): the series will not meet "
            f"those of the checks; --volume says it (docs/import.md)",
            soft_wrap=True,
        )
        return ""


def _configuration(text: str) -> str:
    """What was given, or what is in the file that was given."""
    path = Path(text)
    with suppress(OSError, ValueError):  # a text that cannot be a file's name
        if text and path.is_file():
            return path.read_bytes().decode(errors="replace")
    return text


def _versions(software: Sequence[str]) -> dict[str, str]:
    found = dict(one.partition("=")[::2] for one in software)
    for name, version in found.items():
        if name not in ("hdf5", "mpi", "compiler") or not version.strip():
            raise InputError(f"{name}={version}; allowed: hdf5=, mpi=, compiler= with a version", key="--software")
    return found


def _with_bar(
    console: Console, title: str, found: Iterable[Imported | Refused | None], count: int
) -> Iterator[Imported | Refused]:
    """What there is, with a bar that counts; a file that belongs to another counts, too."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=count)
        for one in found:
            bar.advance(task)
            if one is not None:
                yield one


def _table(imported: Sequence[Imported]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("file", "of", "began (UTC)", "time from", "series", "configuration", "repeats", "observed", ""):
        table.add_column(title, no_wrap=True)
    for one in imported:
        began = datetime.fromtimestamp(one.report.run["started"], timezone.utc)
        for case in one.report.cases:
            for row, record in case.rows:
                cached = ["from the page cache"] if row.band_status == "cached" else []
                said = [*([] if one.new else ["in the history already"]), *cached]
                table.add_row(
                    escape("/".join(one.path.parts[-2:])), one.form, f"{began:%Y-%m-%d %H:%M}", one.began_by,
                    escape(row.key), row.fingerprint, str(len(record.repeats)),
                    f"{row.observed:.4g} {row.unit}", ", ".join(said),
                )  # fmt: skip
    return table
