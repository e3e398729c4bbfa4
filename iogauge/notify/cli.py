"""The commands ``iogauge notify`` and ``iogauge export``."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from iogauge.command import answers, at_site
from iogauge.errors import InputError
from iogauge.night import write_whole
from iogauge.notify import told as ledger
from iogauge.notify.changes import Told, compare
from iogauge.notify.message import Message, compose, test_message
from iogauge.notify.send import TARGETS_VARIABLE, Target, default_file, deliver, targets
from iogauge.tonight import Tonight, load

_SECONDS = {"m": 60, "h": 3600, "d": 86400}


class _Duration(click.ParamType):  # type: ignore[type-arg]
    """``90m``, ``30h`` or ``8d``."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime.timedelta:
        if isinstance(value, datetime.timedelta):
            return value
        match = re.fullmatch(r"(\d{1,5})([mhd])", str(value))
        if match is None or int(match[1]) == 0:
            self.fail(f"{value!r}; a number with m, h or d is expected, such as 30h", param, ctx)
        return datetime.timedelta(seconds=int(match[1]) * _SECONDS[match[2]])


def overdue(tonight: Tonight, within: datetime.timedelta, now: datetime.datetime) -> str:
    """What is said when the newest night is older than that; else nothing."""
    return f"no night since {tonight.date}" if now - tonight.last > within else ""


@click.command("notify")
@at_site
@click.option("--to", "given", multiple=True, metavar="URL", help="an Apprise URL; others can see it: better a file")
@click.option(
    "--targets",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"a URL a line, mode 600; default: {TARGETS_VARIABLE}, else notify.urls beside the nights",
)
@click.option("--link", default="", metavar="URL", help="where the report is, for those who read the message")
@click.option("--expect-within", type=_Duration(), default="30h", show_default=True, help="a night has to end so often")
@click.option("--dry-run", is_flag=True, help="print what would be sent; nothing is sent or taken for told")
@click.option("--test", "test", is_flag=True, help="send a message that is none, to try the targets")
@answers
def notify_command(
    site: str,
    given: tuple[str, ...],
    file: Path | None,
    link: str,
    expect_within: datetime.timedelta,
    dry_run: bool,
    test: bool,
) -> int:
    """Tell people what changed at SITE since they were told last: one message to each target, or none.

    Told are a new alarm and its end, a whole file system that is slower, what is newly invalid, and a night that is overdue or
    could not, or not all, be measured. What was told and goes on is not told again; a muted series tells nothing.

    \b
    Examples:
      scripts/nightly; iogauge notify --link https://storage.example.org/iogauge/
      iogauge notify --dry-run
      IOGAUGE_NOTIFY=mailto://mail.example.org?to=storage@example.org iogauge notify --test

    Exit codes: 0 told, or there is nothing new; 2 a message could not be delivered (it is tried again next time), or a
    target is wrong.
    """
    if link and urlsplit(link).scheme not in ("http", "https", "file"):
        raise InputError(f"{link!r}; a URL with http, https or file is expected", key="--link")
    found = targets(given, file)
    if not found and not dry_run:
        raise InputError(
            f"no target; write Apprise URLs into it (mode 600), or name them by {TARGETS_VARIABLE} or --to",
            file=default_file(),
        )
    if test:
        return _send_test(found, site, dry_run=dry_run)
    if dry_run:
        _print_all(site, expect_within, found, link)
        return 0
    return tell(site, found, expect_within, link)


def tell(site: str, found: Sequence[Target], within: datetime.timedelta, link: str = "") -> int:
    """Tell each target what is new to it; the exit code."""
    path = ledger.path_of(site)
    with ledger.alone(path):
        tonight, missing = _now(site, within)  # with the lock: a night may have ended while another one told
        return max([_tell(path, target, tonight, missing, link) for target in found])


def _now(site: str, within: datetime.timedelta) -> tuple[Tonight, str]:
    tonight = load(site)
    return tonight, overdue(tonight, within, datetime.datetime.now(datetime.timezone.utc))


def _tell(path: Path, target: Target, tonight: Tonight, missing: str, link: str) -> int:
    """Tell one target what is new to it, and keep that it was told; the exit code."""
    known = ledger.read(path)
    before = known.told(target.url)
    changes, after = compare(before, tonight, missing)
    if not changes:
        if after != before:
            with ledger.kept_after(path, known.with_told(target.url, after)):
                pass
        click.echo(f"{target}: nothing new")
        return 0
    message = compose(changes, after, tonight, link)
    try:
        with ledger.kept_after(path, known.with_told(target.url, after)):
            _send(target, message)
    except _NotDelivered:
        return 2
    return 0


class _NotDelivered(Exception):
    """It was said why."""


def _send(target: Target, message: Message) -> None:
    problem = deliver(target, message)
    if problem:
        click.echo(f"iogauge: error: {target}: not delivered: {problem}; it is tried again next time", err=True)
        raise _NotDelivered
    click.echo(f"{target}: {message.subject}")


def _send_test(found: Sequence[Target], site: str, *, dry_run: bool) -> int:
    code = 0
    for target in found:
        try:
            if dry_run:
                click.echo(f"{target}: {test_message(site).subject}")
            else:
                _send(target, test_message(site))
        except _NotDelivered:
            code = 2
    return code


def _print_all(site: str, within: datetime.timedelta, found: Sequence[Target], link: str) -> None:
    """What each target would get; without targets, what a new one would get."""
    tonight, missing = _now(site, within)
    known = ledger.read(ledger.path_of(tonight.site))
    for name, told in [(str(one), known.told(one.url)) for one in found] or [("a new target", Told())]:
        changes, after = compare(told, tonight, missing)
        if not changes:
            click.echo(f"{name}: nothing new")
            continue
        message = compose(changes, after, tonight, link)
        click.echo(f"{name} would get:\nSubject: {message.subject}\n\n{message.text}")


@click.command("export")
@at_site
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="JUnit XML; - for standard output")
@click.option(
    "--prometheus", type=click.Path(dir_okay=False, path_type=Path), help="a file .prom for node_exporter; or -"
)
@answers
def export_command(site: str, junit: Path | None, prometheus: Path | None) -> None:
    """Write the newest night's verdicts for programs that collect such. Each file is written whole or not at all.

    \b
    Examples:
      iogauge export --junit verdicts.xml
      iogauge export --prometheus /var/lib/node_exporter/textfile/iogauge.prom

    Exit codes: 0 written, whatever the verdicts are; 2 there is no night, or a file cannot be written.
    """
    if junit is None and prometheus is None:
        raise InputError("--junit FILE or --prometheus FILE is expected")
    if prometheus is not None and str(prometheus) != "-" and prometheus.suffix != ".prom":
        raise InputError(f"{prometheus}: node_exporter reads files *.prom alone", key="--prometheus")
    tonight = load(site)
    if junit is not None:
        from iogauge.notify.junit import as_xml

        _put(junit, as_xml(tonight))
    if prometheus is not None:
        from iogauge.notify.prometheus import as_text

        _put(prometheus, as_text(tonight))


def _put(path: Path, text: str) -> None:
    if str(path) == "-":
        click.echo(text, nl=False)
    else:
        write_whole(path, text)
