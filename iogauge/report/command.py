"""What ``iogauge report`` does: the report of a site from its history and its newest nights' folders."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from iogauge import nightly
from iogauge.assess.reading import assess
from iogauge.combined import read_night
from iogauge.detect import Calendar
from iogauge.errors import InputError
from iogauge.history.database import History
from iogauge.night import Night
from iogauge.report.site import write_site

#: So many last folders of nights are looked through for the newest run of each suite.
FOLDERS_LOOKED_AT = 14


def default_folder() -> Path:
    """``report`` beside the nights."""
    return nightly.home() / "report"


def report_site(site: str, folder: Path, location: str | None = None) -> Path:
    """Write the report of ``site`` into ``folder`` and return its first page; ``location`` is that of the history.

    Raises :class:`InputError` where there is no night yet, or ``folder`` is something else.
    """
    assessed = assess(History(location), site, calendars=_calendars(site))
    return write_site(assessed, newest_nights(nightly.home() / "runs", site, assessed.assessment.night), folder)


def _calendars(site: str) -> dict[str, Calendar]:
    """Those of the site's configuration; a site that is configured on another machine has none here."""
    return nightly.calendars(site) if (nightly.checkout() / "site_configs" / f"{site}.py").is_file() else {}


def newest_nights(runs: Path, site: str, tonight: datetime.date) -> list[Night]:
    """All runs of ``tonight``, and the newest of each suite before; folders that cannot be read are left out."""
    found: list[Night] = []
    suites: set[str] = set()
    in_another: set[str] = set()
    for name, night in _nights(runs):
        in_another |= {night.first_run} if night.first_run else set()
        is_tonight = night.night_date == tonight
        wanted = night.night_date <= tonight and (is_tonight or night.suite not in suites)
        if night.site == site and wanted and name not in in_another:
            found.append(night)
            suites.add(night.suite)
    return found


def _nights(runs: Path) -> Iterator[tuple[str, Night]]:
    """Newest first, with the names of their folders; a second run has the first one in it."""
    for path in sorted(runs.glob("*/night.json"), reverse=True)[:FOLDERS_LOOKED_AT]:
        with suppress(InputError):
            yield path.parent.name, read_night(path.parent)
