"""Reference bands: what a series is expected to reach, and where that expectation comes from.

``reference_values/<site>.yaml`` holds rates of one site by the key of the series; ``reference_values/portable.yaml``
holds ratios between cases of one job, which need no history and hold on a site's first day.
"""

from __future__ import annotations

import functools
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from iogauge.errors import InputError
from iogauge.measurement import Measurement, Metric, Unit
from iogauge.series import pattern_label
from iogauge.validation import read_yaml, validate

Medium = Literal["memory", "storage"]
Lower = Annotated[float, Field(gt=-1, le=0, allow_inf_nan=False)]
Upper = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Reference = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Provenance(_Written):
    """Where a band comes from."""

    method: Annotated[str, Field(min_length=1)]
    runs: Annotated[int, Field(gt=0)] | None = None
    nights: Annotated[int, Field(gt=0)] | None = None
    first: date | None = None
    last: date | None = None
    machine: str | None = None
    software: dict[str, str] = {}
    accepted: dict[str, str | date] = {}
    note: str | None = None


class Band(_Written):
    """``reference`` with what may be missing below (``lower``, e.g. -0.2) and above (``upper``), as fractions of it."""

    reference: Reference
    lower: Lower
    upper: Upper

    @property
    def lowest(self) -> float:
        """The least value inside, in the reference's unit."""
        return self.reference * (1 + self.lower)

    @property
    def highest(self) -> float:
        """The greatest value inside, in the reference's unit."""
        return self.reference * (1 + self.upper)

    def place(self, value: float) -> Literal["below", "inside", "above"]:
        """Where ``value`` lies."""
        if value < self.lowest:
            return "below"
        return "above" if value > self.highest else "inside"


class RateBand(Band):
    """A band of rates."""

    unit: Unit


class SeriesBands(_Written):
    """The bands of one series. A ``fingerprint`` binds them to one configuration (:func:`iogauge.series.fingerprint`)."""

    observed: RateBand | None = None
    raw: RateBand | None = None
    fingerprint: str | None = None
    provenance: Provenance = Field(alias="from")


class SiteBands(_Written):
    """``reference_values/<site>.yaml``."""

    schema_: Literal["iogauge.bands/1"] = Field(alias="schema")
    site: str
    bands: dict[str, SeriesBands] = {}

    def find(self, key: str) -> SeriesBands | None:
        """The bands of a series, or ``None``."""
        return self.bands.get(key)


class When(_Written):
    """The cases that a portable band is for: lists mean any of them."""

    benchmark: str
    operation: Annotated[str, Field(min_length=1)]
    pattern: list[str]
    interface: str = "hdf5"
    medium: list[Medium] = ["memory", "storage"]


class PortableBand(Band):
    """A band of the ratio of a case to the one with the options in ``against``; ``measured`` says what was seen."""

    when: When
    against: dict[str, str]
    metric: Metric
    measured: Annotated[str, Field(min_length=1)]


class PortableBands(_Written):
    """``reference_values/portable.yaml``."""

    schema_: Literal["iogauge.portable/1"] = Field(alias="schema")
    provenance: Provenance = Field(alias="from")
    bands: list[PortableBand]

    def find(self, main: Measurement, baseline: Measurement, medium: Medium, metric: Metric) -> PortableBand | None:
        """The first band for the ratio of ``main`` to ``baseline`` in ``metric``, or ``None``."""
        for band in self.bands:
            when = band.when
            if (
                (band.metric, band.against) == (metric, baseline.differs)
                and when.benchmark == main.benchmark
                and when.operation == main.operation
                and when.interface == main.interface
                and pattern_label(main) in when.pattern
                and medium in when.medium
            ):
                return band
        return None


def _load(path: Path) -> tuple[Any, Any]:
    document, locate = read_yaml(path)
    if not isinstance(document, dict):
        raise InputError("a mapping with schema and bands is expected", file=path, line=1)
    return document, locate


@functools.cache
def load_site_bands(folder: Path, site: str) -> SiteBands:
    """The bands of ``site``; none at all where the file does not exist. Loaded once.

    Raises :class:`InputError` with file, line, key and what is allowed.
    """
    path = folder / f"{site}.yaml"
    if not path.exists():
        return SiteBands(schema="iogauge.bands/1", site=site)
    document, locate = _load(path)
    bands = validate(SiteBands, document, file=path, locate=locate)
    if bands.site != site:
        raise InputError(
            f"{bands.site!r} in a file that is named for {site!r}",
            file=path,
            line=locate(("site",)),
            key="site",
        )
    return bands


@functools.cache
def load_portable_bands(folder: Path) -> PortableBands:
    """The bands that hold anywhere. Loaded once.

    Raises :class:`InputError` with file, line, key and what is allowed.
    """
    path = folder / "portable.yaml"
    document, locate = _load(path)
    return validate(PortableBands, document, file=path, locate=locate)
