"""Nights as they lie in their folders, from assessments of a site that never was."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

import assessed
from assessed import Event
from samples import make_night

from iogauge.detect import Action
from iogauge.night import Case, Night


def keep(
    home: Path,
    series: Mapping[str, Event],
    *cases: Case,
    last: datetime.date = assessed.LAST_NIGHT,
    nights: int = 60,
    slowed_nights: int = 4,
    actions: Mapping[str, Sequence[Action]] | None = None,
    **changes: object,
) -> Path:
    """The folder of the night ``last`` below ``home``, with its record and assessment; ``changes`` are of the record."""
    made = assessed.site(series, nights=nights, slowed_nights=slowed_nights, actions=actions, last=last)
    began = datetime.datetime.combine(last, datetime.time(22), datetime.timezone.utc)
    night = make_night(
        *cases, site="test", started=began, finished=began + datetime.timedelta(hours=1), **{"selected": 0} | changes
    )
    folder = home / "runs" / began.strftime("%Y%m%dT%H%M%SZ")
    folder.mkdir(parents=True, exist_ok=True)
    night.save(folder / "night.json")
    (folder / "assessment.json").write_text(made.assessment.model_dump_json(by_alias=True), encoding="utf-8")
    return folder


def change(folder: Path, **changes: object) -> None:
    """The record of a kept night, otherwise."""
    Night.load(folder / "night.json").model_copy(update=changes).save(folder / "night.json")
