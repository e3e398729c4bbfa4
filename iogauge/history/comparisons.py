"""What comparisons of two builds have measured: the step that the nights after an upgrade are expected to show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection, insert, select

from iogauge.history.database import History, next_id
from iogauge.history.schema import comparisons
from iogauge.measurement import SOFTWARE_NAMES

if TYPE_CHECKING:
    from iogauge.compare.result import Comparison


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Step(_Value):
    """A ratio of observed rates, after to before, and the least that is not refuted (``None``: nothing is proven)."""

    ratio: float
    lowest: float | None


class Compared(_Value):
    """One comparison. ``versions``: before and after of each library in which the builds differ, by the name that people use.
    ``results``: by ``benchmark/operation/pattern/interface``. ``at`` in Unix seconds."""

    site: str
    file_system: str
    at: int
    versions: Mapping[str, tuple[str, str]]
    results: Mapping[str, Step]


def step_of(comparison: Comparison) -> Compared | None:
    """What the history is told: none where nothing was compared, or the arms differ in no library that is named there."""
    if len(comparison.arms) < 2 or not comparison.results or comparison.started is None:
        return None
    first, second = (arm.software.model_dump() for arm in comparison.arms)
    versions = {
        name: (str(first[field]), str(second[field]))
        for field, name in SOFTWARE_NAMES.items()
        if first[field] != second[field] and field != "spack_arm"
    }
    results = {
        result.series: Step(ratio=result.observed.ratio, lowest=result.observed.lowest) for result in comparison.results
    }
    at = int(comparison.started.timestamp())
    if not versions:
        return None
    return Compared(site=comparison.site, file_system=comparison.file_system, at=at, versions=versions, results=results)


def record(history: History, compared: Compared) -> None:
    """Add a comparison to the history."""
    with history.writing() as connection:
        row = {"id": next_id(connection, comparisons), **compared.model_dump(mode="json")}
        connection.execute(insert(comparisons), [row])


def recorded(connection: Connection, site: str) -> list[Compared]:
    """All comparisons of a site, the oldest first."""
    names = [comparisons.c[name] for name in Compared.model_fields]
    query = select(*names).where(comparisons.c.site == site).order_by(comparisons.c.at, comparisons.c.id)
    return [Compared.model_validate(dict(row)) for row in connection.execute(query).mappings()]
