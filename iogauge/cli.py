"""The command ``iogauge``. Exit codes: 0 nothing is slower, 1 something regressed or is invalid, 2 could not measure."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path

import click
from rich.console import Console

from iogauge import __version__, nightly, site_check, site_init, sweep, terminal
from iogauge.arms_cli import arms_command
from iogauge.bands_cli import bands_group
from iogauge.case_folders import remove_left_over
from iogauge.combined import read_night
from iogauge.command import AsOf, Hours, answers, new_console, progress_bar
from iogauge.commands import Unreadable, run_briefly
from iogauge.compare.cli import compare_command
from iogauge.darshan import show
from iogauge.darshan.rules import Claim
from iogauge.errors import InputError
from iogauge.fingerprint.cli import fingerprint_group
from iogauge.history.cli import TIMES, at_history, at_site, history_group
from iogauge.history.import_cli import import_command
from iogauge.measurement import Metric
from iogauge.night import Night
from iogauge.notify.cli import export_command, notify_command
from iogauge.report import write_report
from iogauge.report.command import default_folder, report_site
from iogauge.status_cli import print_at_length, status_command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="iogauge")
def main() -> None:
    """I/O regression tests for HPC sites.

    Example: iogauge nightly --site local
    """


#: So long a night waits for the site's report.
REPORT_SECONDS = 300


@main.command("nightly")
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
    page = write_report(night, folder / "index.html")
    terminal.print_night(console, night)
    console.print(f"night   {page}", soft_wrap=True)
    console.print(f"report  {_report_apart(night)}", soft_wrap=True, markup=False)
    return night.exit_code


def _report_apart(night: Night) -> str:
    """The site's report, or why there is none. By a process of its own, as it reads the whole history: the night is judged
    whatever becomes of it."""
    if night.assessment is None:
        return "not written: the history was not asked"
    command = [str(Path(sys.executable).parent / "iogauge"), "report", "--site", night.site]
    try:
        code, out, errors = run_briefly(command, REPORT_SECONDS)
    except (Unreadable, OSError) as problem:
        return f"not written: {problem}. Later: iogauge report --site {night.site}"
    return out.strip() if code == 0 else f"not written: {(errors.strip().splitlines() or [f'exit code {code}'])[-1]}"


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


@main.command("show")
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


@main.command("report")
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
        click.echo(report_site(site, folder or default_folder(), location))


@main.command("clean")
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


@main.command("sweep")
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


@main.command("darshan")
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


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


@main.group("site")
def site_group() -> None:
    """What concerns a site.

    Example: iogauge site check
    """


@site_group.command("check")
@click.argument("site", default="local")
@click.option("--submit", is_flag=True, help="also run a case of two ranks on each file system of each partition")
@click.option("--json", "as_json", is_flag=True, help="print the findings as JSON")
@answers
def site_check_command(site: str, submit: bool, as_json: bool) -> int:
    """Say for each partition and file system of SITE what is there: the first thing to run at a new site.

    \b
    Examples:
      iogauge site check
      iogauge site check claix --submit

    Exit codes: 0 nothing is wrong; 1 there is a problem; 2 the configuration is wrong.
    """
    with progress_bar(Console(stderr=True), f"{site}, {site_check.SUITE}", verbose=False) as progress:
        findings = site_check.check(site, submit=submit, progress=progress)
    if as_json:
        click.echo(json.dumps([finding.model_dump() for finding in findings], indent=1))
    else:
        terminal.print_findings(new_console(), site, findings, submitted=submit)
    return site_check.exit_code(findings)


@site_group.command("init")
@click.argument("name")
@answers
def site_init_command(name: str) -> None:
    """Draft the Spack scope of a new site NAME from what Spack finds here, mend its known errors, and say what to look at.

    Writes spack_env/sites/NAME and spack_env/envs/NAME, and site_configs/NAME.py if there is none; overwrites nothing. Load
    the modules of the compiler and the MPI library first. Spack is that of SPACK_ROOT, else a clone of the pinned one.

    \b
    Examples:
      iogauge site init mysite
      SPACK_ROOT=/opt/spack iogauge site init mysite

    Exit codes: 0 it was written; 2 bad name, the site is there already, or there is no Spack.
    """
    root = nightly.checkout()
    made, written = site_init.site_init(root, nightly.home().resolve() / "spack", name)
    terminal.print_draft(new_console(), made, [path.relative_to(root) for path in written], name)


@main.command("check-config")
@click.option("--site", default="local", show_default=True)
@answers
def check_config_command(site: str) -> None:
    """Check a site's configuration and all bands, and say what was found. Nothing is run.

    Example: iogauge check-config --site local
    """
    for partition, model in nightly.check_configuration(site).items():
        systems = ", ".join(f"{name} ({fs.type})" for name, fs in model.file_systems.items())
        click.echo(
            f"{partition}: {systems}; nodes {_listed(model.nodes)}; ranks per node {_listed(model.ranks_per_node)}"
        )


main.add_command(history_group)
main.add_command(import_command)
main.add_command(arms_command)
main.add_command(bands_group)
main.add_command(status_command)
main.add_command(notify_command)
main.add_command(export_command)
main.add_command(compare_command)
main.add_command(fingerprint_group)
