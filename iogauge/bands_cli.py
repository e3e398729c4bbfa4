"""The commands ``iogauge bands ...``: a site's bands from its history, looked at before they count."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table
from sqlalchemy import Connection

from iogauge import bands_file, nightly
from iogauge.bands import SiteBands, load_site_bands
from iogauge.bands_file import Proposal
from iogauge.bands_fit import Fitted, Refused, fit
from iogauge.command import answers, at_history, at_site, new_console
from iogauge.commands import Unreadable
from iogauge.errors import InputError
from iogauge.history import operators
from iogauge.history.database import History
from iogauge.history.reading import (
    Measurements,
    Series,
    list_series,
    read_measurements,
    read_runs,
    read_software,
)
from iogauge.night import NIGHTS_FOR_A_REFERENCE, write_whole
from iogauge.site_check import series_of_suite
from iogauge.terminal import rate

#: Nights that ``check`` compares with each band.
LAST_RUNS = 30


def _file(site: str) -> Path:
    return nightly.checkout() / "reference_values" / f"{site}.yaml"


def _proposal_file(site: str) -> Path:
    return nightly.home() / "bands" / f"{site}.json"


def _load(site: str) -> SiteBands:
    load_site_bands.cache_clear()
    return load_site_bands(_file(site).parent, site)


def _fits(key: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)


@click.group("bands")
def bands_group() -> None:
    """The bands of a site's rates, reference_values/SITE.yaml: fitted to the history, looked at, accepted.

    Example: iogauge bands fit
    """


@bands_group.command("fit")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--renew", is_flag=True, help="also those that have a band already")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="from this night on")
@at_site
@at_history
@answers
def fit_command(keys: tuple[str, ...], renew: bool, since: datetime | None, site: str, location: str | None) -> int:
    """Propose bands for the series that have none, and show what would change. Nothing is written but the proposal.

    KEY: a series' key, with * for any characters; default: all. A series with too few nights, or too unsteady ones, gets
    none, and the reason is told.

    \b
    Examples:
      iogauge bands fit
      iogauge bands fit 'particles/*/scratch/*' --renew --since 2026-11-03

    Exit codes: 0 bands are proposed; 1 there is nothing to propose; 2 the history or the file cannot be read.
    """
    begin = 0 if since is None else int(since.astimezone().timestamp())
    known = _load(site)
    results = [
        result for result in _fit_all(History(location), site, keys, begin) if renew or not _has_band(known, result)
    ]
    refused = [result for result in results if isinstance(result, Refused)]
    fitted = {result.key: result.bands for result in results if isinstance(result, Fitted)}
    for one in refused:
        click.echo(f"no band: {one.key}: {one.reason}")
    if not fitted:
        click.echo(f"nothing to propose; {len(refused)} series without a band")
        return 1
    path = _file(site)
    text = bands_file.with_bands(path, site, fitted)
    Proposal(site=site, base=bands_file.digest(bands_file.read(path)), bands=fitted).save(_proposal_file(site))
    click.echo(bands_file.difference(path, text), nl=False)
    click.echo(
        f"{len(fitted)} bands proposed, {len(refused)} series without; iogauge bands accept --why ... writes them"
    )
    return 0


def _fit_all(history: History, site: str, patterns: Sequence[str], since: int) -> list[Fitted | Refused]:
    """A result for each key that fits a pattern, for its latest configuration. Raises :class:`InputError` for none."""
    with history.reading() as connection:
        wanted = [one for one in list_series(connection, site) if _fits(one.key, patterns)]
        if not wanted:
            raise InputError(f"no series of site {site} fits; iogauge history series lists them", key="KEY")
        runs, software = read_runs(connection, site), read_software(connection)
        blessed = [action for action in operators.said(connection, site) if action.kind == "bless"]
        windows = operators.maintenance(connection, site)
        latest = _latest(connection, wanted)
    return [
        fit(
            measured,
            runs,
            software,
            since=max([since, *(action.since for action in blessed if action.fits(key))]),
            in_maintenance=lambda name, when: any(window.covers(name, when) for window in windows),
        )
        for key, measured in sorted(latest.items())
    ]


def _has_band(known: SiteBands, result: Fitted | Refused) -> bool:
    """A band that is for the configuration that is measured now."""
    found = known.find(result.key)
    if found is None or found.observed is None:
        return False
    return isinstance(result, Refused) or found.fingerprint in (None, result.bands.fingerprint)


@bands_group.command("accept")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--why", required=True, help="the reason, for those who come later")
@click.option("--by", "who", default=operators.operator, help="default: the user's name")
@at_site
@answers
def accept_command(keys: tuple[str, ...], why: str, who: str, site: str) -> None:
    """Write the bands that were proposed last (those that fit a KEY, or all) into reference_values/SITE.yaml.

    Comments and everything else in the file stay. Commit the file.

    Example: iogauge bands accept --why 'first 14 nights of the new scratch'
    """
    path = _file(site)
    proposal = Proposal.load(_proposal_file(site))
    if bands_file.digest(bands_file.read(path)) != proposal.base:
        raise InputError("has changed since the bands were proposed; iogauge bands fit proposes them anew", file=path)
    if not why.strip():
        raise InputError("empty; those who come later need a reason", key="why")
    chosen = {key: bands for key, bands in proposal.bands.items() if _fits(key, keys)}
    if not chosen:
        raise InputError("fits none of the proposed bands", file=_proposal_file(site), key="KEY")
    text = bands_file.with_bands(path, site, bands_file.accepted(chosen, who, why, date.today()))
    click.echo(bands_file.difference(path, text), nl=False)
    write_whole(path, text)
    _proposal_file(site).unlink()
    click.echo(f"{path}: {len(chosen)} bands accepted")


@bands_group.command("show")
@click.argument("part", default="")
@at_site
@answers
def show_bands_command(part: str, site: str) -> None:
    """List the bands of a site with where they come from; PART of a key is enough.

    Example: iogauge bands show particles/write
    """
    found = {key: one for key, one in _load(site).bands.items() if part in key}
    if part and not found:
        raise InputError(f"no band with {part!r} in its key", file=_file(site), key="PART")
    table = _table("series", "reference", "from", "to", "unit", "nights", "until", "accepted", "note")
    for key, one in found.items():
        provenance, band = one.provenance, one.observed
        accepted = " ".join(str(provenance.accepted[name]) for name in ("who", "date") if name in provenance.accepted)
        numbers = ("-", "-", "-", "-")
        if band is not None:
            numbers = (rate(band.reference), rate(band.lowest), rate(band.highest), band.unit)
        nights, last = str(provenance.nights or "-"), str(provenance.last or "-")
        table.add_row(key, *numbers, nights, last, escape(accepted or "-"), escape(provenance.note or ""))
    new_console().print(table)
    click.echo(f"{_file(site)}: {len(found)} bands")


@bands_group.command("check")
@click.option("--suite", default="nightly", show_default=True, help="cases with this ReFrame tag")
@at_site
@at_history
@answers
def check_command(suite: str, site: str, location: str | None) -> int:
    """Say which series of a suite have no band, and how the last nights stand to those that have one.

    Example: iogauge bands check --suite full

    Exit codes: 0 every series of the suite has its band; 1 some have none, or one that is of no use; 2 the suite, the file or
    the history cannot be read.
    """
    known = _load(site)
    try:
        keys = series_of_suite(site, suite)
    except Unreadable as problem:
        raise InputError(f"ReFrame cannot list suite {suite!r}: {problem}", key="suite") from problem
    if not keys:
        raise InputError(f"no case has the tag {suite!r}", key="suite")
    history, measured = History(location), {}
    if history.exists():
        with history.reading() as connection:
            measured = _latest(connection, list_series(connection, site))
    table = _table("series", "band", f"last {LAST_RUNS} runs: below, above")
    lacking = 0
    for key in sorted(keys):
        status, counts = _standing(known, key, measured.get(key))
        lacking += status != "found"
        table.add_row(key, status, counts)
    new_console().print(table)
    for key in sorted(set(known.bands) - keys - set(measured)):
        click.echo(f"a band for nothing: {key} is in no case of the suite, and in no night")
    click.echo(f"{len(keys) - lacking} of the {len(keys)} series of suite {suite} have a band")
    return 1 if lacking else 0


def _latest(connection: Connection, wanted: Sequence[Series]) -> dict[str, Measurements]:
    """Key to the measurements of its latest configuration."""
    latest: dict[str, Measurements] = {}
    for measured in read_measurements(connection, wanted):
        before = latest.get(measured.series.key)
        if before is None or measured.started[-1] > before.started[-1]:
            latest[measured.series.key] = measured
    return latest


def _standing(known: SiteBands, key: str, measured: Measurements | None) -> tuple[str, str]:
    bands = known.find(key)
    if bands is None or bands.observed is None:
        runs = 0 if measured is None else len(set(measured.run_id.tolist()))
        return f"none ({runs} run{'s' * (runs != 1)}, {NIGHTS_FOR_A_REFERENCE} nights are needed)", ""
    if measured is None:
        return "found", "never measured"
    if bands.fingerprint not in (None, measured.series.fingerprint):
        return "of another configuration", ""
    places = [bands.observed.place(value) for value in measured.observed[~measured.cached][-LAST_RUNS:].tolist()]
    return "found", f"{places.count('below')}, {places.count('above')} of {len(places)}"


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=title != "note")
    return table
