"""The command ``iogauge status``, and the long form of ``iogauge show``."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

import click
from rich.console import Console
from rich.text import Text

from iogauge import long_form, status
from iogauge.assess.record import SeriesState
from iogauge.command import answers, at_site, new_console
from iogauge.errors import InputError
from iogauge.history.database import History
from iogauge.tonight import load, recent_rates


@click.command("status")
@at_site
@click.option("--all", "every", is_flag=True, help="every series, and all alarms")
@click.option("--json", "as_json", is_flag=True, help="print it, with the whole assessment, as JSON")
@answers
def status_command(site: str, every: bool, as_json: bool) -> int:
    """Say what is slower at SITE since when, worst first: the newest night against all before it.

    \b
    Examples:
      iogauge status
      iogauge status --all | less
      iogauge status --json | jq -r '.alarms[].name'

    Exit codes: 0 nothing is slower; 1 there is an alarm; 2 the newest night could not, or not all, be measured.
    """
    tonight = load(site)
    if as_json:
        click.echo(status.as_record(tonight).model_dump_json(by_alias=True, indent=1))
        return tonight.exit_code
    drawn = {one.name for one in tonight.alarms}
    rates = _rates(site, (state for state in tonight.tonight if every or state.key in drawn))
    now = datetime.datetime.now(datetime.timezone.utc)
    status.print_lines(new_console(), status.lines(tonight, rates, now, every=every))
    return tonight.exit_code


def print_at_length(console: Console, site: str, key: str) -> None:
    """All that is known of the series with this key. Raises :class:`InputError` when there is none."""
    tonight = load(site)
    found = long_form.find(tonight, key)
    if len(found) > long_form.MOST_AT_LENGTH:
        status.print_lines(console, (Text(f"{state.word:14}{state.key}", overflow="fold") for state in found))
        status.print_lines(console, [Text(f"{len(found)} series; name one of them for more")])
        return
    rates = _rates(site, found)
    for state in found:
        status.print_lines(console, long_form.lines(tonight, state, rates.get(state.key, {})), long_form.HANG)


def _rates(site: str, states: Iterable[SeriesState]) -> status.Rates:
    """Nothing where the history cannot be read: the verdicts lie beside the night."""
    try:
        return recent_rates(History(), site, states)
    except InputError:
        return {}
