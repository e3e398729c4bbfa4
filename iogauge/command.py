"""What the commands have in common: how mistakes are answered, and where text goes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console

from iogauge.errors import InputError


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
