"""What a sweep tells: how far logically equal cases lie apart, and which option causes it.

A sweep (``--sweep`` of a kernel, ``--suite`` of ``tiles``) measures every combination of some options. The *main effect*
of an option is how the rate changes with its value when all other options are averaged over: rates are multiplied by
what helps, so averages are geometric, and the option's share is its part of the variance of the rates' logarithms
(eta squared of a factorial design: Montgomery, "Design and Analysis of Experiments", chapter 5). What no option explains
alone is interaction or noise.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from iogauge.adapters.kernel import read_records
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement, Metric, Repeat, Unit

#: hdf5_iotest's words for what ``tiles`` records otherwise.
_FILL = {"value": "true", "never": "false", "default": "default"}

#: The columns of hdf5_iotest's CSV, in its order and with its blanks.
CSV_COLUMNS = (
    "steps,arrays,rows,cols,scaling,proc-rows,proc-cols,slowdim,rank,version,alignment-increment,alignment-threshold,"
    "meta-block-size,layout,fill,fmt,io, async, wall [s],fsize [B],write-phase-min [s],write-phase-max [s],creat-min [s],"
    "creat-max [s],write-min [s],write-max [s],read-phase-min [s],read-phase-max [s],read-min [s],read-max [s]"
)
_HDF5_META_BLOCK_BYTES = 2048


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Level(_Value):
    """A value of an option: the geometric mean of the rates of all cases that have it."""

    value: str
    rate: float
    cases: int


class Effect(_Value):
    """An option's main effect: ``ratio`` is the best level's rate over the worst's, ``share`` its part of the variance."""

    option: str
    levels: tuple[Level, ...]  # best first
    ratio: float
    share: float


class Summary(_Value):
    """One operation of a sweep. Rates are in ``unit``, the best of the repeats of each case."""

    operation: str
    metric: Metric
    unit: Unit
    cases: int
    slowest: float
    slowest_case: str
    median: float
    fastest: float
    fastest_case: str
    effects: tuple[Effect, ...]


def load(path: Path) -> list[Measurement]:
    """The records of a sweep. Raises :class:`InputError` for anything else."""
    try:
        measurements = read_records(path)
    except Refusal as refusal:
        raise InputError(str(refusal), file=path) from refusal
    if any(m.sweep is None for m in measurements):
        raise InputError("not the records of a sweep: a kernel's --sweep, or --suite of tiles, writes them", file=path)
    return measurements


def case_of(measurement: Measurement) -> dict[str, str]:
    """The swept options with this case's values."""
    return measurement.sweep.case if measurement.sweep is not None else {}


def name_of(case: dict[str, str]) -> str:
    """``rank=2,layout=chunked``"""
    return ",".join(f"{option}={value}" for option, value in case.items())


def _best(measurement: Measurement, metric: Metric) -> float:
    return max(measurement.rates(metric))


def _mean(rates: Sequence[float]) -> float:
    return statistics.geometric_mean(rates)


def _effect(option: str, rates: Sequence[tuple[dict[str, str], float]]) -> Effect:
    by_value: dict[str, list[float]] = {}
    for case, rate in rates:
        by_value.setdefault(case[option], []).append(rate)
    logs = [math.log(rate) for _, rate in rates]
    middle = statistics.fmean(logs)
    total = sum((x - middle) ** 2 for x in logs)
    between = sum(len(same) * (math.log(_mean(same)) - middle) ** 2 for same in by_value.values())
    levels = [Level(value=value, rate=_mean(same), cases=len(same)) for value, same in by_value.items()]
    levels.sort(key=lambda level: -level.rate)
    return Effect(
        option=option,
        levels=tuple(levels),
        ratio=levels[0].rate / levels[-1].rate,
        share=between / total if total > 0 else 0.0,
    )


def summarize(measurements: Sequence[Measurement], metric: Metric = "observed") -> list[Summary]:
    """One :class:`Summary` an operation, its effects with the largest share first; baselines are left out.

    Raises :class:`InputError` where there is nothing to compare.
    """
    mains = [m for m in measurements if m.role == "main"]
    summaries = []
    for operation in dict.fromkeys(m.operation for m in mains):
        of_operation = [m for m in mains if m.operation == operation]
        rates = sorted(((case_of(m), _best(m, metric)) for m in of_operation), key=lambda pair: pair[1])
        if len(rates) < 2:
            raise InputError(f"one case of {operation} only: nothing to compare")
        swept = [o for o in rates[0][0] if len({case.get(o) for case, _ in rates}) > 1]
        effects = sorted((_effect(option, rates) for option in swept), key=lambda effect: -effect.share)
        summaries.append(
            Summary(
                operation=operation,
                metric=metric,
                unit=of_operation[0].unit,
                cases=len(rates),
                slowest=rates[0][1],
                slowest_case=name_of(rates[0][0]),
                median=statistics.median(rate for _, rate in rates),
                fastest=rates[-1][1],
                fastest_case=name_of(rates[-1][0]),
                effects=tuple(effects),
            )
        )
    return summaries


class Speedup(_Value):
    """A parallel mode's rates over a single process's, case by case: median, least and most."""

    operation: str
    io: str
    single: str
    cases: int
    least: float
    median: float
    most: float


def against_single(
    parallel: Sequence[Measurement], single: Sequence[Measurement], metric: Metric = "observed"
) -> list[Speedup]:
    """The parallel cases of ``tiles`` over the single-process cases that are equal in everything but ``io``.

    Raises :class:`InputError` where no case has its like.
    """

    def mode_and_rest(m: Measurement) -> tuple[str, str]:
        case = case_of(m)
        return case.get("io", ""), m.operation + name_of({o: v for o, v in case.items() if o != "io"})

    rates: dict[str, dict[str, float]] = {}
    for m in single:
        if m.role == "main":
            mode, rest = mode_and_rest(m)
            rates.setdefault(rest, {})[mode] = _best(m, metric)
    ratios: dict[tuple[str, str, str], list[float]] = {}
    for m in parallel:
        if m.role == "main":
            mode, rest = mode_and_rest(m)
            for other, rate in rates.get(rest, {}).items():
                ratios.setdefault((m.operation, mode, other), []).append(_best(m, metric) / rate)
    if not ratios:
        raise InputError("no case of the one file differs from one of the other in io alone")
    return [
        Speedup(
            operation=operation,
            io=mode,
            single=other,
            cases=len(found),
            least=min(found),
            median=statistics.median(found),
            most=max(found),
        )
        for (operation, mode, other), found in ratios.items()
    ]


def to_csv(measurements: Sequence[Measurement]) -> str:
    """hdf5_iotest's CSV of the records of ``tiles``: a row a case and repeat, times in seconds.

    Raises :class:`InputError` for another kernel's records, or where the write or read of a case is missing.
    """
    cases: dict[str, dict[str, Measurement]] = {}
    for m in measurements:
        if m.benchmark != "tiles":
            raise InputError(f"hdf5_iotest's columns are for records of tiles; these are of {m.benchmark}")
        if m.role == "main":
            cases.setdefault(name_of(case_of(m)), {})[m.operation] = m
    out = io.StringIO()
    out.write(CSV_COLUMNS + "\n")
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
    for name, pair in cases.items():
        if set(pair) != {"write", "read"}:
            raise InputError(f"{name}: hdf5_iotest's columns need its write and its read")
        for write, read in zip(pair["write"].repeats, pair["read"].repeats, strict=True):
            writer.writerow(_described(pair["write"]) + _timed(write, read, pair["write"].file_bytes))
    return out.getvalue()


def _described(m: Measurement) -> list[str]:
    p = m.pattern
    asynchronous = str(p.get("async", "no")) != "no"
    words: list[object] = [p["steps"], p["arrays"], p["rows"], p["columns"], p["scaling"]]
    words += [p["process_rows"], p["process_columns"], p["slowest"], p["rank"], f'"{m.software.hdf5}"']
    words += [p["alignment_bytes"] or 1, p.get("alignment_threshold_bytes", 0)]
    words += [p.get("meta_block_bytes") or _HDF5_META_BLOCK_BYTES, p["layout"]]
    words += [_FILL[str(p.get("fill", "default"))], p.get("libver", "earliest"), p["io"], str(asynchronous).lower()]
    return [str(word) for word in words]


def _timed(write: Repeat, read: Repeat, file_bytes: int) -> list[str]:
    if write.least is None or read.least is None:
        raise InputError("not the records of a kernel: the fastest rank's times are missing")
    seconds = [write.total_seconds + read.total_seconds]
    phases = [write.least.total_seconds, write.total_seconds, write.least.open_seconds, write.open_seconds]
    phases += [write.least.transfer_seconds, write.transfer_seconds, read.least.total_seconds, read.total_seconds]
    phases += [read.least.transfer_seconds, read.transfer_seconds]
    return [f"{seconds[0]:.6f}", str(file_bytes), *("" if phase is None else f"{phase:.6f}" for phase in phases)]
