"""The newest night in Prometheus' text format, for the textfile collector of node_exporter."""

from __future__ import annotations

from typing import get_args

from prometheus_client import CollectorRegistry, Enum, Gauge, generate_latest

from iogauge.assess.record import SeriesState
from iogauge.detect.verdicts import WORDS
from iogauge.measurement import Unit
from iogauge.tonight import ALARM_WORDS, Tonight

#: Of each series; a key has all of the others in it, and they are there to select by.
_LABELS = ("site", "series", "file_system", "benchmark", "operation", "nodes", "ranks_per_node", "pattern", "interface")

_UNITS: dict[Unit, str] = {"MiB/s": "mib_per_second", "operations/s": "operations_per_second"}
assert set(_UNITS) == set(get_args(Unit))


def as_text(tonight: Tonight) -> str:
    """All metrics of the site. What was not measured on this night is not among them."""
    registry = CollectorRegistry()
    _night(registry, tonight)
    rates = {
        (name, unit): Gauge(f"iogauge_{name}_{word}", f"{said} ({unit})", _LABELS, registry=registry)
        for unit, word in _UNITS.items()
        for name, said in (("rate", "best rate of the night"), ("reference", "rate that it is compared with"))
    }
    word = Enum("iogauge_verdict", "verdict on a series", _LABELS, states=list(WORDS), registry=registry)
    alarm = Gauge("iogauge_alarm", "1: somebody should look at the series", _LABELS, registry=registry)
    muted = Gauge("iogauge_muted", "1: an operator has muted the series", _LABELS, registry=registry)
    names = {one.name for one in tonight.alarms}
    for state in tonight.tonight:
        labels = _labels(tonight.site, state)
        for name, value in (("rate", state.rate), ("reference", state.reference)):
            if value is not None:
                rates[name, state.unit].labels(*labels).set(value)
        word.labels(*labels).state(state.word)
        alarm.labels(*labels).set(state.key in names)
        muted.labels(*labels).set(state.muted is not None)
    return generate_latest(registry).decode("utf-8")


def _labels(site: str, state: SeriesState) -> tuple[str, ...]:
    points = (str(state.nodes), str(state.ranks_per_node))
    return (
        site,
        state.key,
        state.file_system,
        state.benchmark,
        state.operation,
        *points,
        state.pattern,
        state.interface,
    )


def _night(registry: CollectorRegistry, tonight: Tonight) -> None:
    """What concerns the night as a whole, and its file systems."""
    site = tonight.site
    last = Gauge("iogauge_last_night_timestamp_seconds", "when the newest night ended", ["site"], registry=registry)
    last.labels(site).set(tonight.last.timestamp())
    whole = Gauge("iogauge_night_complete", "0: not all could be measured", ["site"], registry=registry)
    whole.labels(site).set(not tonight.problem)
    alarms = Gauge("iogauge_alarms", "what somebody should look at, by its kind", ["site", "kind"], registry=registry)
    for kind in ALARM_WORDS:
        alarms.labels(site, kind).set(sum(one.word == kind for one in tonight.alarms))
    counts = Gauge("iogauge_series", "series of the night by verdict", ["site", "verdict"], registry=registry)
    for word, number in (tonight.assessment.counts if tonight.assessment else {}).items():
        counts.labels(site, word).set(number)
    together = Enum(
        "iogauge_file_system_verdict",
        "verdict on all series of a file system together",
        ["site", "file_system"],
        states=list(WORDS),
        registry=registry,
    )
    for one in tonight.file_systems:
        together.labels(site, one.name).state(one.word)
