"""What the commands have in common: how mistakes are answered, and where text goes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from iogauge.errors import InputError
from iogauge.history import HISTORY_VARIABLE
from iogauge.nightly import Progress

#: When a night begins of which the date alone was given: nights are from noon to noon.
EVENING_HOUR = 22

#: How times are written.
TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]

Command = Callable[..., Any]


def answers(command: Callable[..., int | None]) -> Callable[..., None]:
    """Turn what a person did wrong into one line and exit code 2; so is Ctrl-C, since 1 says that something is slower."""

    @functools.wraps(command)
    def answered(*args: Any, **kwargs: Any) -> None:
        try:
            code = command(*args, **kwargs)
        except InputError as error:
            click.echo(f"iogauge: error: {error}", err=True)
            code = 2
        except OSError as error:
            click.echo(f"iogauge: error: {error.filename or ''}: {error.strerror or error}", err=True)
            code = 2
        except KeyboardInterrupt:
            click.echo("iogauge: error: interrupted", err=True)
            code = 2
        raise SystemExit(code or 0)

    return answered


def at_history(command: Command) -> Command:
    """The option that names the history."""
    text = f"a path (SQLite) or postgresql://...; default: {HISTORY_VARIABLE}, else history.sqlite beside the nights"
    return click.option("--history", "location", metavar="URL", help=text)(command)


def at_site(command: Command) -> Command:
    """The option that names the site."""
    return click.option("--site", default="local", show_default=True, help="the site, as its configuration is named")(
        command
    )


class AsOf(click.DateTime):
    """A local time, given the offset of this machine's clock; a date alone is the evening on which that night begins."""

    name = "as-of"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        moment: datetime = super().convert(value, param, ctx)
        return (moment if "T" in str(value) else moment.replace(hour=EVENING_HOUR)).astimezone()


class Hours(click.FloatRange):
    """A time span in hours, fractions allowed, of at most a day."""

    def __init__(self) -> None:
        super().__init__(min=0, max=24, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        hours: float = super().convert(value, param, ctx)
        if math.isnan(hours):
            self.fail(f"{value!r} is not in the range {self._describe_range()}.", param, ctx)
        return hours


def new_console() -> Console:
    """As wide as the terminal; in a log lines are not broken."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=1000)


@contextmanager
def progress_bar(console: Console, title: str, *, verbose: bool) -> Iterator[Progress]:
    """A bar that counts cases, or what ReFrame prints."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield Progress(
            tell=lambda done, of: bar.update(task, completed=done, total=of),
            log=console.print if verbose else lambda line: None,
            note=lambda sentence: click.echo(f"iogauge: {sentence}", err=True),
        )
