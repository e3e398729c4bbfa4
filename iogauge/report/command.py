"""What ``iogauge report`` does: the report of a site from its history and its newest nights' folders."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from iogauge import nightly
from iogauge.assess.reading import assess
from iogauge.errors import InputError
from iogauge.history.database import History
from iogauge.night import Night, night_of
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
    assessed = assess(History(location), site)
    return write_site(assessed, newest_nights(nightly.home() / "runs", site, assessed.assessment.night), folder)


def newest_nights(runs: Path, site: str, tonight: datetime.date) -> list[Night]:
    """All runs of ``tonight``, and the newest of each suite before; folders that cannot be read are left out."""
    found: list[Night] = []
    suites: set[str] = set()
    for night in _nights(runs):
        when = night_of(night.started.astimezone())
        if night.site == site and when <= tonight and (when == tonight or night.suite not in suites):
            found.append(night)
            suites.add(night.suite)
    return found


def _nights(runs: Path) -> Iterator[Night]:
    """Newest first."""
    for path in sorted(runs.glob("*/night.json"), reverse=True)[:FOLDERS_LOOKED_AT]:
        with suppress(InputError):
            yield Night.load(path)
