"""What the commands have in common: how mistakes are answered, and where text goes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from iogauge.errors import InputError
from iogauge.nightly import Progress


def answers(command: Callable[..., int | None]) -> Callable[..., None]:
    """Turn what a person did wrong into one line and exit code 2."""

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
        raise SystemExit(code or 0)

    return answered


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
        )
