"""From the measurements of one job to a verdict: a pure function.

Order of the questions: is it true (invalid), is it slower than its bands (regressed), faster (improved), within them
(pass), or is there nothing to compare with (no reference)?
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from iogauge import placement, series
from iogauge.bands import Band, Medium, PortableBands, SiteBands
from iogauge.darshan.profile import Profile
from iogauge.measurement import INTERFACE_NAMES, Measurement, Metric, Unit, ratio

Verdict = Literal["pass", "no reference", "too noisy", "regressed", "improved", "invalid", "skipped"]
Place = Literal["below", "inside", "above", "no band", "cached differently", "too noisy"]
BandStatus = Literal["found", "missing", "cached", "other configuration"]

#: Worst first.
VERDICTS: tuple[Verdict, ...] = ("invalid", "regressed", "skipped", "improved", "too noisy", "no reference", "pass")

#: A ratio whose pairs spread wider (interquartile range over median) is no evidence. Measured beside other jobs on two
#: cores, medians of seven pairs were up to 50 % off, and nearly all of those more than 18 % off spread wider than this.
TOO_NOISY_ABOVE_SPREAD = 0.2

#: A read with more than this part of its pages in memory is a read from the page cache.
CACHED_ABOVE_FRACTION = 0.05

#: Options that shape only what is read: a write does not differ in them.
_READ_ONLY_OPTIONS = {"selection", "fraction", "stride", "stride-columns", "block", "block-columns", "blocks"}


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Expectation(_Value):
    """What the job was asked for, and where; ``arm`` tells its series from those of another partition or environ."""

    file_system: str
    type: str
    nodes: int
    ranks_per_node: int
    oversubscribe: bool = False
    volume: str = ""
    layout: str = ""
    arm: str = ""


class Limits(_Value):
    """A band in the unit of the value compared."""

    reference: float
    lowest: float
    highest: float


class RatioRow(_Value):
    """How the case stands to a baseline of its job (dimensionless)."""

    name: str
    label: str
    metric: Metric
    value: float
    spread: float
    pairs: tuple[float, ...]
    limits: Limits | None
    place: Place


class Row(_Value):
    """One operation of one case. Rates are in ``unit``; ``raw`` is none where the transfers were not told apart. ``program``:
    the upstream benchmark, if it is one; only such a row can be unverified."""

    key: str
    fingerprint: str
    benchmark: str
    operation: str
    interface: str
    label: str
    role: str
    unit: Unit
    observed: float
    observed_repeats: tuple[float, ...]
    raw: float | None
    raw_repeats: tuple[float, ...]
    cached_fraction: float | None
    verified: bool
    program: str | None = None
    band_status: BandStatus
    limits: Limits | None
    ratios: tuple[RatioRow, ...]
    verdict: Verdict
    reason: str


class Judgement(_Value):
    """The verdict on one job with its reasons and evidence; ``layout`` is how its files lay on the storage's targets,
    ``profile`` what Darshan saw of it, where it looked; ``changes`` is what is otherwise than on the last good night, where
    one is known."""

    verdict: Verdict
    reasons: tuple[str, ...]
    placement: str
    layout: str = ""
    rows: tuple[Row, ...]
    profile: Profile | None = None
    changes: tuple[str, ...] = ()

    @property
    def main_rows(self) -> tuple[Row, ...]:
        """The rows of the case itself, without its baselines."""
        return tuple(row for row in self.rows if row.role == "main")

    @property
    def flags(self) -> tuple[str, ...]:
        """Why a true measurement is not to be taken as it is: Darshan, a second witness, disagrees."""
        return self.profile.flags if self.profile else ()

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """What changed, and then what Darshan's counters say, in sentences."""
        return (*self.changes, *(self.profile.sentences if self.profile else ()))


def invalid(reasons: Sequence[str], where: str = "") -> Judgement:
    """The verdict on a job without a true measurement."""
    return Judgement(verdict="invalid", reasons=tuple(reasons), placement=where, rows=())


def skipped(reason: str) -> Judgement:
    """The verdict on a job that was not submitted."""
    return Judgement(verdict="skipped", reasons=(reason,), placement="", rows=())


def judge(
    measurements: Sequence[Measurement],
    expectation: Expectation,
    site_bands: SiteBands,
    portable: PortableBands,
) -> Judgement:
    """Judge the measurements of one job: the main cases by the site's bands and by the ratios to their baselines."""
    if not measurements:
        return invalid(["no measurement"])
    wrong = placement.problems(
        measurements[0],
        expectation.nodes,
        expectation.ranks_per_node,
        oversubscribe=expectation.oversubscribe,
    )
    wrong += [
        f"{m.operation} through {m.interface}: not all of the data was verified"
        for m in measurements
        if not m.verified and (m.program is None or m.program.verifies)
    ]
    where = placement.summary(measurements[0])
    if wrong:
        return invalid(wrong, where)
    rows = [_row(m, measurements, expectation, site_bands, portable) for m in measurements if is_of_a_series(m)]
    mains = [row for row in rows if row.role == "main"]
    verdict = min((row.verdict for row in mains), key=VERDICTS.index)
    reasons = tuple(f"{row.operation}: {row.reason}" for row in mains if row.reason)
    return Judgement(verdict=verdict, reasons=reasons, placement=where, layout=expectation.layout, rows=tuple(rows))


def unjudged(m: Measurement, expectation: Expectation) -> Row:
    """The row of a measurement that no band is to judge: one of long ago, for example."""
    nothing = SiteBands(schema="iogauge.bands/1", site="none")
    portable = PortableBands.model_validate({"schema": "iogauge.portable/1", "from": {"method": "none"}, "bands": []})
    return _row(m, (), expectation, nothing, portable)


def is_of_a_series(measurement: Measurement) -> bool:
    """Does it have a row? A baseline through another interface is a series of its own; one of another pattern is some other
    case's."""
    return measurement.role == "main" or set(measurement.differs) == {"interface"}


def is_cached(measurement: Measurement, type_: str) -> bool:
    """Did the read come from the page cache of a file system that is no memory itself? Unknown counts as no."""
    fraction = measurement.cached_fraction
    return type_ != "memory" and fraction is not None and fraction > CACHED_ABOVE_FRACTION


def _word(name: str, value: str) -> str:
    """A value that speaks for itself, or with its option's name: ``mpiio``, ``1d``, ``halo0``, ``no fsync``."""
    if name == "dimensions":
        return f"{value}d"
    value = {"yes": name, "no": f"no {name}"}.get(value, value)
    return name + value if value[:1].isdigit() else value


def ratio_name(differs: dict[str, str]) -> str:
    """A name for variables and columns: ``to_mpiio``, ``to_CC``, ``to_1d``, ``to_halo0``, ``to_no_collective_metadata``."""
    words = [_word(name, value) for name, value in sorted(differs.items())]
    return "to_" + "_".join("".join(c if c.isalnum() else "_" for c in word) for word in words)


def _ratio_label(main: Measurement, differs: dict[str, str]) -> str:
    if set(differs) == {"interface"}:
        theirs = differs["interface"]
        return f"{INTERFACE_NAMES[main.interface]} to {INTERFACE_NAMES.get(theirs, theirs)}"
    return f"{series.pattern_label(main)} " + ratio_name(differs).replace("_", " ")


def _row(
    m: Measurement,
    measurements: Sequence[Measurement],
    expectation: Expectation,
    site_bands: SiteBands,
    portable: PortableBands,
) -> Row:
    key = series.key(m, expectation.file_system, expectation.arm)
    fingerprint = series.fingerprint(m, expectation.volume)
    cached = is_cached(m, expectation.type)
    status, band = _site_band(key, fingerprint, m.unit, cached, site_bands)
    ratios = _ratios(m, measurements, expectation.type, portable) if m.role == "main" else ()
    verdict, reason = _verdict(m, status, band, ratios)
    return Row(
        key=key,
        fingerprint=fingerprint,
        benchmark=m.benchmark,
        operation=m.operation,
        interface=m.interface,
        label=series.pattern_label(m),
        role=m.role,
        unit=m.unit,
        observed=m.best_observed,
        observed_repeats=m.observed,
        raw=m.best_raw,
        raw_repeats=m.raw,
        cached_fraction=m.cached_fraction,
        verified=m.verified,
        program=None if m.program is None else m.program.name,
        band_status=status,
        limits=None if band is None else _limits(band),
        ratios=ratios,
        verdict=verdict,
        reason=reason,
    )


def _limits(band: Band) -> Limits:
    return Limits(reference=band.reference, lowest=band.lowest, highest=band.highest)


def _site_band(
    key: str, fingerprint: str, unit: Unit, cached: bool, site_bands: SiteBands
) -> tuple[BandStatus, Band | None]:
    if cached:
        return "cached", None
    bands = site_bands.find(key)
    if bands is None or bands.observed is None:
        return "missing", None
    if bands.fingerprint not in (None, fingerprint) or bands.observed.unit != unit:
        return "other configuration", None
    return "found", bands.observed


def _ratios(
    main: Measurement, measurements: Sequence[Measurement], type_: str, portable: PortableBands
) -> tuple[RatioRow, ...]:
    rows = []
    medium: Medium = "memory" if type_ == "memory" or is_cached(main, type_) else "storage"
    for baseline in measurements:
        if baseline.role == "main" or baseline.operation != main.operation:
            continue
        if main.operation == "write" and set(baseline.differs) <= _READ_ONLY_OPTIONS:
            continue
        # The observed ratio is always told; the raw one, without the cost of open and close, where a band judges it.
        observed = portable.find(main, baseline, medium, "observed")
        raw = portable.find(main, baseline, medium, "raw")
        alike = is_cached(main, type_) == is_cached(baseline, type_)
        rows.append(_ratio_row(main, baseline, "observed", observed, alike))
        if raw is not None:
            rows.append(_ratio_row(main, baseline, "raw", raw, alike))
    return tuple(rows)


def _ratio_row(main: Measurement, baseline: Measurement, metric: Metric, band: Band | None, alike: bool) -> RatioRow:
    result = ratio(main, baseline, metric)
    suffix = "_raw" if metric == "raw" else ""
    place: Place = "no band"
    if band is not None and not alike:
        place = "cached differently"
    elif band is not None:
        place = "too noisy" if result.spread > TOO_NOISY_ABOVE_SPREAD else band.place(result.value)
    return RatioRow(
        name=ratio_name(baseline.differs) + suffix,
        label=_ratio_label(main, baseline.differs) + (", raw" if suffix else ""),
        metric=metric,
        value=result.value,
        spread=result.spread,
        pairs=result.pairs,
        limits=None if band is None else _limits(band),
        place=place,
    )


def _verdict(m: Measurement, status: BandStatus, band: Band | None, ratios: Sequence[RatioRow]) -> tuple[Verdict, str]:
    found: dict[str, list[str]] = {"below": [], "inside": [], "above": [], "too noisy": []}
    if band is not None:
        found[band.place(m.best_observed)].append(
            f"{m.best_observed:.4g} {m.unit}, band {band.lowest:.4g} to {band.highest:.4g} {m.unit}"
        )
    for row in ratios:
        if row.limits is not None and row.place in found:
            text = f"{row.label} {row.value:.2f}, band {row.limits.lowest:.2f} to {row.limits.highest:.2f}"
            found[row.place].append(
                text if row.place != "too noisy" else f"{row.label}: pairs spread by {row.spread:.0%}"
            )
    if found["below"]:
        return "regressed", "; ".join(found["below"])
    if found["above"]:
        return "improved", "; ".join(found["above"])
    cached = f"read from the page cache ({m.cached_fraction:.0%})" if status == "cached" else ""
    noisy = "too noisy to judge: " + "; ".join(found["too noisy"]) if found["too noisy"] else ""
    if found["inside"]:
        return "pass", "; ".join(filter(None, (cached, *found["inside"], noisy)))
    return "too noisy" if noisy else "no reference", "; ".join(filter(None, (cached, noisy)))
