"""The commands about nights: ``iogauge nightly``, ``show``, ``report`` and ``clean``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import click
from rich.console import Console

from iogauge import nightly, terminal
from iogauge.case_folders import remove_left_over
from iogauge.combined import read_night
from iogauge.command import TIMES, AsOf, Hours, answers, at_history, at_site, new_console, progress_bar
from iogauge.commands import Unreadable, run_briefly
from iogauge.errors import InputError
from iogauge.night import Night, write_whole
from iogauge.report import write_report

#: So long a night waits for the site's report.
REPORT_SECONDS = 300


@click.command("nightly")
@click.option("--site", default="local", show_default=True, help="site_configs/SITE.py and reference_values/SITE.yaml")
@click.option("--suite", default="nightly", show_default=True, help="cases with this ReFrame tag")
@click.option("--set", "settings", multiple=True, metavar="VAR=VALUE", help="ReFrame's -S: a check's variable")
@click.option("--name", "names", multiple=True, metavar="REGEX", help="ReFrame's -n: only cases so named")
@click.option(
    "--as-of",
    type=AsOf(TIMES),
    metavar="DATETIME",
    help="it stands for a night that began then (local time; a date alone: 22:00), where this clock does not say it",
)
@click.option(
    "--repeat-later",
    type=Hours(),
    metavar="HOURS",
    help="wait so long after its end and run it once more: of each series the better run counts",
)
@click.option(
    "--of-night",
    metavar="NIGHT",
    help="it is another run of that night, a folder's name, or of the 'latest' that began in the last "
    f"{nightly.RECENT_HOURS} hours",
)
@click.option("--verbose", is_flag=True, help="show what ReFrame prints")
@answers
def nightly_command(
    site: str,
    suite: str,
    settings: tuple[str, ...],
    names: tuple[str, ...],
    as_of: datetime | None,
    repeat_later: float | None,
    of_night: str | None,
    verbose: bool,
) -> int:
    """Run a suite, judge it, and write the report.

    \b
    Examples:
      iogauge nightly
      iogauge nightly --set repeats=3 --name 'ParticlesCheck.*memory'
      iogauge nightly --repeat-later 4.5
      iogauge nightly --of-night latest

    Exit codes: 0 nothing is slower (or there is no reference yet); 1 something regressed or is invalid; 2 it could not be
    measured, or was stopped.
    """
    console = new_console()
    options = [word for setting in settings for word in ("-S", setting)]
    options += [word for name in names for word in ("-n", name)]
    if repeat_later is not None and of_night is not None:
        raise InputError("says that this is the second run; --repeat-later makes one itself", key="--of-night")
    earlier = _earlier_run(console, site, suite, of_night, as_of) if of_night is not None else None

    def run(as_of: datetime | None, first: Path | None) -> tuple[Night, Path]:
        with progress_bar(console, f"{site}, {suite}", verbose=verbose) as progress:
            return nightly.run_night(site, suite, options=options, progress=progress, as_of=as_of, first=first)

    began = datetime.now().astimezone()
    night, folder = run(as_of, earlier)
    if repeat_later is not None and night.exit_code != 2:
        night, folder = _again(console, night, folder, repeat_later, (as_of or began) - began, run)
    terminal.print_night(console, night)
    report, why = _report_apart(night)
    console.print(f"night   {_page(night, folder / 'index.html', report)}", soft_wrap=True)
    console.print(f"report  {report or why}", soft_wrap=True, markup=False)
    return night.exit_code


def _page(night: Night, path: Path, report: Path | None) -> Path:
    """The night's own page: the site's report has drawn it already, where it was written and the night is its newest."""
    drawn = None if report is None else report.parent / "nights" / f"{path.parent.name}.html"
    if drawn is None or not drawn.is_file():
        return write_report(night, path)
    write_whole(path, drawn.read_text(encoding="utf-8"))
    return path


def _report_apart(night: Night) -> tuple[Path | None, str]:
    """The first page of the site's report, or none and why. By a process of its own, as it reads the whole history: the night
    is judged whatever becomes of it."""
    if night.assessment is None:
        return None, "not written: the history was not asked"
    command = [str(Path(sys.executable).parent / "iogauge"), "report", "--site", night.site]
    try:
        code, out, errors = run_briefly(command, REPORT_SECONDS)
    except (Unreadable, OSError) as problem:
        return None, f"not written: {problem}. Later: iogauge report --site {night.site}"
    if code != 0:
        return None, f"not written: {(errors.strip().splitlines() or [f'exit code {code}'])[-1]}"
    return Path(out.strip()), ""


def _earlier_run(console: Console, site: str, suite: str, name: str, as_of: datetime | None) -> Path | None:
    """The folder of the night that another run is of."""
    runs = nightly.home() / "runs"
    if name == "latest":
        found = nightly.recent_run(site, suite, as_of or datetime.now().astimezone())
        if found is None:
            console.print(
                f"note: no night of {site}, {suite} began in the last {nightly.RECENT_HOURS} hours: this is its own"
            )
        return found
    if Path(name).name != name or not (runs / name / "night.json").is_file():
        raise InputError(f"{name!r}; a folder's name in {runs} is expected, or 'latest'", key="--of-night")
    return runs / name


def _again(
    console: Console,
    night: Night,
    folder: Path,
    hours: float,
    offset: timedelta,
    run: Callable[[datetime | None, Path | None], tuple[Night, Path]],
) -> tuple[Night, Path]:
    """Wait, and run the night once more; whatever becomes of that, the first run counts. ``offset``: --as-of to the clock."""
    due = datetime.now().astimezone() + timedelta(hours=hours)
    with nightly.Stop() as stop, console.status("") as status:
        write_report(night, folder / "index.html")
        console.print(f"first run  {terminal.counts_line(night)}")
        console.print(
            f"the second run begins at {due:%Y-%m-%d %H:%M:%S}; Ctrl-C: the first alone counts", soft_wrap=True
        )

        def tell(left: float) -> None:
            status.update(f"the second run begins in {timedelta(seconds=round(left))}")

        stopped = nightly.wait(hours * 3600, stop, tell)
    if stopped:
        return nightly.add_note(folder, f"there was no second run: {stopped} while it was waited for"), folder
    try:
        return run(datetime.now().astimezone() + offset if night.as_of else None, folder)
    except (InputError, OSError) as problem:
        return nightly.add_note(folder, f"the second run failed, the first one counts: {problem}"), folder


def _night_folder(name: str) -> Path:
    runs = nightly.home() / "runs"
    if name == "latest":
        nights = sorted(runs.glob("*/night.json"))
        if not nights:
            raise InputError("no night yet; start one with scripts/nightly", file=runs)
        return nights[-1].parent
    folder = Path(name) if Path(name).is_dir() else runs / name
    if not (folder / "night.json").exists():
        raise InputError("no such night; a folder with night.json, its name, or 'latest' is expected", file=folder)
    return folder


@click.command("show")
@click.argument("words", nargs=-1, metavar="[NIGHT] [KEY]")
@click.option("--site", default="local", show_default=True, help="of the series")
@answers
def show_command(words: tuple[str, ...], site: str) -> None:
    """Show a series at length, a night's table, or the evidence of one night's verdicts.

    KEY is a series' key, a part of it, or a pattern with *. With KEY alone: since when it is slower, on which nights, what
    came with it, and what to do next. NIGHT is a folder, its name, or 'latest': its table, or with KEY what was measured
    then.

    \b
    Examples:
      iogauge show particles/write/disk/1x2/CC/hdf5
      iogauge show
      iogauge show latest particles/write/disk
    """
    if len(words) > 2:
        raise InputError("a night, a key, or a night and a key are expected", key=" ".join(words))
    if len(words) == 1 and not _is_night(words[0]):
        from iogauge.status_cli import print_at_length  # the history takes a second to load; a night needs none of it

        print_at_length(new_console(), site, words[0])
        return
    name, key = (*words, *("latest", "")[len(words) :])
    console = new_console()
    found = read_night(_night_folder(name))
    if not key:
        terminal.print_night(console, found)
    elif not terminal.print_evidence(console, found, key):
        raise InputError(f"no series of this night has {key!r} in its key, no invalid case in its name", key="KEY")


def _is_night(word: str) -> bool:
    """Is it the name of a night, or a folder? Else it is a key."""
    if word == "latest" or re.fullmatch(r"\d{8}T\d{6}Z", word) or word.startswith(("/", ".")):
        return True
    return (Path(word) / "night.json").exists()


@click.command("report")
@click.argument("night", default="")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="is replaced as a whole; default: report beside the nights",
)
@at_site
@at_history
@answers
def report_command(night: str, folder: Path | None, site: str, location: str | None) -> None:
    """Write the report: HTML pages of all series, their nights and what is wrong tonight, to read without a network.

    With NIGHT (the name of a night's folder, or 'latest') only the page of that night is written again.

    \b
    Examples:
      iogauge report
      iogauge report --site mysite --folder /var/www/html/iogauge
      iogauge report latest
    """
    if night:
        path = _night_folder(night)
        click.echo(write_report(read_night(path), path / "index.html"))
    else:
        from iogauge.report.command import default_folder, report_site  # as above

        click.echo(report_site(site, folder or default_folder(), location))


@click.command("clean")
@click.argument("run_folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@answers
def clean_command(run_folder: Path) -> int:
    """Remove case folders that killed jobs below RUN_FOLDER left on file systems: those marked as such, no others.

    Exit codes: 0 nothing is left, 1 something could not be removed.

    Example: iogauge clean .iogauge/runs
    """
    removed, problems = remove_left_over(run_folder)
    click.echo("\n".join([*(f"removed {name}" for name in removed), *problems]) or "nothing was left over")
    return 1 if problems else 0
