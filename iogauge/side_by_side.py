"""Our kernel and h5perf_serial run in turn in one job: the rounds joined, and how their rates stand to each other."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from iogauge.adapters.h5perf_serial import Report, Throughput
from iogauge.errors import Refusal
from iogauge.judge import Judgement, RatioRow
from iogauge.measurement import Measurement, Metric


def joined(rounds: Sequence[Sequence[Measurement]]) -> list[Measurement]:
    """One measurement for each case, with the repeats of all rounds; the placement is the first round's.

    Raises :class:`Refusal` when the rounds are not of the same cases on the same processors with the same software.
    """
    for number, cases in enumerate(rounds[1:], start=2):
        if [_identity(m) for m in cases] != [_identity(m) for m in rounds[0]]:
            raise Refusal(f"round {number} of the kernel has other cases, processors or software than the first")
    return [
        first.model_copy(update={"repeats": tuple(r for cases in rounds for r in cases[number].repeats)})
        for number, first in enumerate(rounds[0])
    ]


def _identity(m: Measurement) -> dict[str, Any]:
    fields = m.model_dump(exclude={"repeats", "started", "placement"})
    return {**fields, "placement": [place.model_dump(exclude={"pid"}) for place in m.placement]}


def compared(judgement: Judgement, rounds: Sequence[Sequence[Measurement]], reports: Sequence[Report]) -> Judgement:
    """The judgement with the ratios to h5perf_serial as evidence in its rows; no band judges them.

    A pair is the best rate of a round over the best of h5perf_serial's run beside it: *observed* against its open-close
    throughput, *raw* against the one from the dataset's opening to its closing. Raises :class:`Refusal` when the two did
    not move the same bytes in the same way.
    """
    for cases, report in zip(rounds, reports, strict=True):
        for m in cases:
            _check_alike(m, report)
    rows = []
    for row in judgement.rows:
        if row.role == "main":
            more = [
                _ratio(row.operation, interface, metric, rounds, reports)
                for interface in ("hdf5", "posix")
                for metric in _METRICS
            ]
            row = row.model_copy(update={"ratios": (*row.ratios, *more)})
        rows.append(row)
    return judgement.model_copy(update={"rows": tuple(rows)})


_METRICS: tuple[Metric, ...] = ("observed", "raw")
_SPANS = {"observed": "open to close", "raw": "raw to its dataset's open to close"}
_NAMES = {"hdf5": "HDF5", "posix": "POSIX"}


def _check_alike(m: Measurement, report: Report) -> None:
    pattern = m.pattern
    ours = {
        "dataset": pattern["dims"],
        "transfer buffer": pattern["transfer_dims"],
        "order": pattern["order"],
        "iterations": len(m.repeats),
    }
    theirs = {
        "dataset": list(report.dataset),
        "transfer buffer": list(report.transfer),
        "order": list(report.order),
        "iterations": report.iterations,
    }
    if m.interface == "hdf5":
        chunk: Any = pattern.get("chunk_dims") or ([pattern["chunk_bytes"]] if pattern["chunk_bytes"] else [])
        ours |= {"driver": pattern["driver"], "chunk": chunk, "extendible": pattern.get("grow", False)}
        theirs |= {"driver": report.driver, "chunk": list(report.chunk), "extendible": report.extendible}
    for name, value in ours.items():
        if value != theirs[name]:
            raise Refusal(f"h5perf_serial: {name} {theirs[name]}, where the kernel has {value}")
    if m.logical_bytes != report.logical_bytes or m.ranks != 1:
        raise Refusal(f"h5perf_serial moved {report.logical_bytes} bytes, {m.ranks} ranks of ours {m.logical_bytes}")


def _ratio(
    operation: str,
    interface: str,
    metric: Metric,
    rounds: Sequence[Sequence[Measurement]],
    reports: Sequence[Report],
) -> RatioRow:
    ours = [
        max(m.rates(metric)) for cases in rounds for m in cases if (m.operation, m.interface) == (operation, interface)
    ]
    theirs = [_throughput(report, operation, interface, metric).maximum for report in reports]
    pairs = tuple(our / their for our, their in zip(ours, theirs, strict=True))
    quartiles = statistics.quantiles(pairs, n=4, method="inclusive") if len(pairs) > 1 else [0, 0, 0]
    value = statistics.median(pairs)
    return RatioRow(
        name=f"{interface}_to_h5perf_serial" + ("_raw" if metric == "raw" else ""),
        label=f"{_NAMES[interface]} to h5perf_serial {reports[0].version}'s (data not verified there), {_SPANS[metric]}",
        metric=metric,
        value=value,
        spread=(quartiles[2] - quartiles[0]) / value,
        pairs=pairs,
        limits=None,
        place="no band",
    )


def _throughput(report: Report, operation: str, interface: str, metric: Metric) -> Throughput:
    result = report.result(interface)
    if operation == "write":
        return result.write_open_close if metric == "observed" else result.write
    found = result.read_open_close if metric == "observed" else result.read
    if found is None:
        raise Refusal("h5perf_serial: it did not read")
    return found
