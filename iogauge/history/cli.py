"""The commands ``iogauge history ...``."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table
from sqlalchemy import func, select

from iogauge import nightly
from iogauge.command import TIMES, Command, answers, at_history, at_site, new_console
from iogauge.errors import InputError
from iogauge.history import operators
from iogauge.history.database import History
from iogauge.history.ingest import Outcome, ingest, nights_in
from iogauge.history.reading import count_by_series, list_series
from iogauge.history.schema import cases, marks, runs
from iogauge.plain import one_line
from iogauge.terminal import STYLES


def signed(command: Command) -> Command:
    """Who says it, and why."""
    command = click.option("--why", required=True, help="the reason, for those who come later")(command)
    return click.option("--by", "who", default=operators.operator, help="default: the user's name")(command)


@click.group("history")
def history_group() -> None:
    """What all nights measured: take run reports in, look, give tables out, and say what is known of them.

    Example: iogauge history ingest
    """


@history_group.command("ingest")
@click.argument("reports", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--started", type=click.DateTime(TIMES), help="when it began (local time), where the clock was wrong")
@click.option("--suite", help="of a plain run report, which does not say it")
@at_history
@answers
def ingest_command(reports: tuple[Path, ...], started: datetime | None, suite: str | None, location: str | None) -> int:
    """Take REPORTS in: ReFrame's run reports, or folders of nights; without any, all nights of this checkout.

    The same report twice changes nothing. A case whose records are spoiled is kept as invalid, never as a rate.

    \b
    Examples:
      iogauge history ingest
      iogauge history ingest .iogauge/runs/20261121T020000Z
      iogauge history ingest report.json --suite full --history postgresql://iogauge@db.example.org/iogauge

    Exit codes: 0 all of it is in the history; 2 a report is none, or has spoiled records. What was right is in.
    """
    paths = list(reports) or nights_in(nightly.home() / "runs")
    if not paths:
        raise InputError("no night with a run report yet; start one with scripts/nightly", file=nightly.home() / "runs")
    if started is not None and len(paths) != 1:
        raise InputError("belongs to one report", key="--started")
    history = History(location)
    wrong = 0
    for path in paths:
        try:
            outcome = ingest(history, path, started=started, suite=suite)
        except InputError as error:
            click.echo(f"iogauge: error: {error}", err=True)
            wrong += 1
        else:
            _tell(outcome)
            wrong += bool(outcome.spoiled)
    return 2 if wrong else 0


def _tell(outcome: Outcome) -> None:
    if outcome.added:
        counts = f"{outcome.cases} cases, {outcome.measurements} measurements"
        click.echo(f"{outcome.path}: {outcome.site}, night {outcome.night}: {counts}")
    else:
        click.echo(f"{outcome.path}: in the history already")
    for note in dict.fromkeys(outcome.notes):
        click.echo(f"  note: {note}")
    for line in outcome.spoiled:
        click.echo(f"iogauge: error: {outcome.path}: kept as invalid: {line}", err=True)


@history_group.command("list")
@click.option("--site", help="of one site only")
@click.option("--last", type=click.IntRange(1), default=30, show_default=True, help="so many runs")
@at_history
@answers
def list_command(site: str | None, last: int, location: str | None) -> None:
    """List the last runs with their cases by verdict.

    Example: iogauge history list --last 7
    """
    query = select(runs).order_by(runs.c.started.desc()).limit(last)
    with History(location).reading() as connection:
        found = list(connection.execute(query if site is None else query.where(runs.c.site == site)))[::-1]
        counts: dict[int, list[str]] = {row.id: [] for row in found}
        per_verdict = select(cases.c.run_id, cases.c.verdict, func.count()).group_by(cases.c.run_id, cases.c.verdict)
        for run_id, verdict, number in connection.execute(per_verdict.where(cases.c.run_id.in_(counts))):
            counts[run_id].append(f"[{STYLES[verdict][1]}]{number} {verdict}[/]")
    table = _table("night", "began (UTC)", "site", "suite", "of selected", "cases", "notes")
    for row in found:
        notes = [*([f"INCOMPLETE: {row.cause or 'not all cases ran'}"] if not row.complete else []), *row.notes]
        table.add_row(str(row.night), _utc(row.started), row.site, row.suite or "-", str(row.selected),
                      ", ".join(counts[row.id]), escape("; ".join(notes)))  # fmt: skip
    new_console().print(table)


@history_group.command("series")
@click.argument("part", default="")
@at_site
@at_history
@answers
def series_command(part: str, site: str, location: str | None) -> None:
    """List the series with PART in their keys: nights, the first and the last.

    Example: iogauge history series particles/write/disk
    """
    with History(location).reading() as connection:
        found = [one for one in list_series(connection, site) if part in one.key]
        nights = count_by_series(connection, site)
    if not found:
        raise InputError(f"no series of site {site} with {part!r} in its key", key="PART")
    table = _table("series", "configuration", "unit", "nights", "first", "last")
    for one in found:
        count, first, last = nights.get(one.id, (0, "-", "-"))
        table.add_row(one.key, one.fingerprint, one.unit, str(count), str(first), str(last))
    new_console().print(table)


@history_group.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--site", help="of one site only")
@at_history
@answers
def export_command(file: Path, site: str | None, location: str | None) -> None:
    """Write every repeat of every measurement to FILE, whose name ends in .parquet or .csv.

    Example: iogauge history export nights.parquet
    """
    from iogauge.history.export import export  # with pyarrow, which takes its time to load

    with History(location).reading() as connection:
        click.echo(f"{file}: {export(connection, file, site)} rows")


@history_group.command("upgrade")
@at_history
@answers
def upgrade_command(location: str | None) -> None:
    """Bring the tables up to this version of iogauge. Whatever writes into a history does so, too.

    Example: iogauge history upgrade
    """
    history = History(location)
    before, after = history.upgrade()
    click.echo(f"{history.name}: {'as it was' if before == after else f'from {before or chr(45)} to'} revision {after}")


@history_group.command("rename")
@click.argument("old")
@click.argument("new")
@click.option("--same-configuration", is_flag=True, help="join series though their fingerprints differ (mount point)")
@at_site
@at_history
@signed
@answers
def rename_command(
    old: str, new: str, same_configuration: bool, site: str, location: str | None, who: str, why: str
) -> None:
    """Carry the history of file system OLD over to the name NEW.

    Reports of nights under the old name that come in later go there, too. Its bands are renamed by hand, in
    reference_values/SITE.yaml.

    \b
    Example:
      iogauge history rename work work2 --why 'the site moved it' --same-configuration
    """
    done = operators.rename(History(location), site, old, new, who=who, why=why, same_configuration=same_configuration)
    click.echo(f"{old} is {new}: {done.moved} series moved, {done.joined} joined to those of {new}")


def _say(kind: operators.Kind, location: str | None, site: str, target: str, who: str, why: str, **times: Any) -> None:
    now = int(time.time())
    values = {"since": now, "until": None, "at": now} | times
    action = operators.Action(site=site, kind=kind, target=target, who=who, why=why, **values)
    fitting = operators.say(History(location), action)
    click.echo(f"{kind}: {fitting} series")


@history_group.command("ack")
@click.argument("key")
@at_site
@at_history
@signed
@answers
def ack_command(key: str, site: str, location: str | None, who: str, why: str) -> None:
    """Say that the alarm of series KEY ('*' for any characters) was seen.

    Example: iogauge history ack 'particles/*/scratch/*' --why 'ticket 4711'
    """
    _say("ack", location, site, key, who, why)


@history_group.command("bless")
@click.argument("key")
@click.option("--since", type=click.DateTime(TIMES), required=True, help="the first night of the new level")
@at_site
@at_history
@signed
@answers
def bless_command(key: str, since: datetime, site: str, location: str | None, who: str, why: str) -> None:
    """Say that the level of series KEY ('*' for any characters) is right from a night on: bands are made from there.

    Example: iogauge history bless 'particles/*/scratch/*' --since 2026-11-03 --why 'new servers'
    """
    _say("bless", location, site, key, who, why, since=_seconds(since))


@history_group.command("mute")
@click.argument("key")
@click.option("--until", type=click.DateTime(TIMES), required=True, help="the mute ends then (local time)")
@at_site
@at_history
@signed
@answers
def mute_command(key: str, until: datetime, site: str, location: str | None, who: str, why: str) -> None:
    """Keep series KEY ('*' for any characters) from alarming until a date.

    Example: iogauge history mute 'tiles/*' --until 2026-12-01 --why 'ticket 4711 is being worked on'
    """
    _say("mute", location, site, key, who, why, until=_seconds(until))


@history_group.command("maintenance")
@click.argument("begin", type=click.DateTime(TIMES))
@click.argument("end", type=click.DateTime(TIMES))
@click.option("--file-system", help="of one file system; default: of all")
@at_site
@at_history
@signed
@answers
def maintenance_command(
    begin: datetime, end: datetime, file_system: str | None, site: str, location: str | None, who: str, why: str
) -> None:
    """Record a maintenance window (local times): its nights are no evidence.

    Example: iogauge history maintenance 2026-11-03T08:00 2026-11-04 --why 'Lustre 2.15.6'
    """
    times = {"begins": _seconds(begin), "ends": _seconds(end), "at": int(time.time())}
    operators.maintain(
        History(location), operators.Maintenance(site=site, file_system=file_system, who=who, why=why, **times)
    )
    click.echo(f"maintenance of {file_system or 'all file systems'}: recorded")


@history_group.command("said")
@click.argument("key", default="")
@at_site
@at_history
@answers
def said_command(key: str, site: str, location: str | None) -> None:
    """List what operators said: who, when and why, and what of it holds now; with KEY only what is about that series.

    \b
    Examples:
      iogauge history said
      iogauge history said particles/write/scratch/1x2/CC/hdf5
    """
    table = _table("no", "at (UTC)", "who", "what", "of", "from (UTC)", "to (UTC)", "now", "why")
    lines: list[tuple[int, tuple[str, ...]]] = []
    with History(location).reading() as connection:
        known = {one.key: one.file_system for one in list_series(connection, site)}
        for said in operators.everything_said(connection, site):
            about = [one for one, file_system in known.items() if said.what.about(one, file_system)]
            if not key or key in about:
                lines.append((said.what.at, (said.number, *_said_cells(said, len(about)))))
        renamed = marks.c.kind == "rename"
        for row in () if key else connection.execute(select(marks).where(marks.c.site == site, renamed)):
            of = f"{row.file_system} -> {row.new_name}"
            lines.append((row.at, ("-", _utc(row.at), row.who, row.kind, of, _utc(row.begins), "-", "holds", row.why)))
    if key and key not in known:
        raise InputError(f"no series {key!r} of site {site}; iogauge history series lists them", key="KEY")
    for _, cells in sorted(lines, key=lambda line: line[0]):
        table.add_row(*(escape(one_line(cell)) for cell in cells))
    new_console().print(table)


def _said_cells(said: operators.Said, series: int) -> tuple[str, ...]:
    what = said.what
    of: tuple[str, str, int, int | None]
    if isinstance(what, operators.Maintenance):
        of = "maintenance", what.file_system or "all file systems", what.begins, what.ends
    else:
        of = what.kind, what.target, what.since, what.until
    kind, target, begins, ends = of
    now = f"holds for {series} series"
    if ends is not None and ends <= time.time():
        now = "over"
    if said.taken_back is not None:
        back = said.taken_back
        now = f"taken back by {back.who}, {_utc(back.at)}: {back.why}"
    return _utc(what.at), what.who, kind, target, _utc(begins), _utc(ends), now, what.why


@history_group.command("unsay")
@click.argument("number", metavar="N")
@at_site
@at_history
@signed
@answers
def unsay_command(number: str, site: str, location: str | None, who: str, why: str) -> None:
    """Take back what was said under number N of `iogauge history said`: it no longer counts, and stays in the list.

    Example: iogauge history unsay 7 --why 'it was the other file system'
    """
    said = operators.unsay(History(location), site, number, who=who, why=why)
    kind = "maintenance" if isinstance(said.what, operators.Maintenance) else said.what.kind
    click.echo(f"{number}: the {kind} of {said.what.who} ({said.what.why}) no longer counts")


def _seconds(local: datetime) -> int:
    return int(local.astimezone().timestamp())


def _utc(seconds: int | None) -> str:
    return "-" if seconds is None else datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M")


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=title not in ("notes", "why", "now"))
    return table
