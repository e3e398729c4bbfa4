"""Our kernel beside h5perf_serial: the same bytes in the same way, round by round, or no comparison at all."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from iogauge.adapters.h5perf_serial import Report, read_report
from iogauge.bands import PortableBands, SiteBands
from iogauge.errors import Refusal
from iogauge.judge import Expectation, judge
from iogauge.measurement import Measurement
from iogauge.side_by_side import compared, joined

BYTES = 100 * 200

REPORT = """HDF5 Library: Version 1.10.8
==== Parameters ====
IO API=posix hdf5
Number of iterations=3
Dataset size=100 200
Transfer buffer size=10 20
Page Aggregation Disabled
Dimension access order=1 2
HDF5 data storage method=Contiguous
HDF5 file driver=sec2
Env HDF5_PREFIX=/scratch
==== End of Parameters ====

Transfer Buffer Size (bytes): 200
File Size(MB): 0.02
"""


def report(header: str = REPORT, iterations: int = 3, **rates: float) -> Report:
    """A report in which the maxima are as given, by interface, operation and ``_open_close``."""
    text = header.replace("iterations=3", f"iterations={iterations}")
    for interface in ("posix", "hdf5"):
        text += f"        IO API = {interface.upper()}\n"
        for operation in ("write", "read"):
            for span in ("", "_open_close"):
                best = rates.get(f"{interface}_{operation}{span}", 100.0)
                text += f"            {operation.title()}{' Open-Close' if span else ''} ({iterations} iteration(s)):\n"
                for word, rate in (("Maximum", best), ("Average", 1.0), ("Minimum", 0.5)):
                    text += f"                {word} Throughput: {rate:6.2f} MB/s\n"
    return read_report(text)


@pytest.fixture
def cases(record: dict[str, Any], read_record: dict[str, Any]) -> list[Measurement]:
    """A round of the kernel: write and read through HDF5 and POSIX; the best repeat moves its bytes in a millisecond."""
    found = []
    for operation in ("write", "read"):
        for interface in ("hdf5", "posix"):
            fields = copy.deepcopy(read_record)
            fields |= {
                "benchmark": "segments",
                "operation": operation,
                "interface": interface,
                "role": "main" if interface == "hdf5" else "baseline",
                "differs": {} if interface == "hdf5" else {"interface": "posix"},
                "read_shift": fields["read_shift"] if operation == "read" else None,
                "logical_bytes": BYTES,
                "ranks": 1,
                "hosts": {"n1": [0]},
                "placement": fields["placement"][:1],
                "pattern": {
                    "dims": [100, 200],
                    "transfer_dims": [10, 20],
                    "order": [1, 2],
                    "layout": "contiguous",
                    "datasets": 1,
                    "files": 1,
                    "chunk_bytes": 0,
                    "file_per_process": True,
                    "driver": "sec2",
                },
            }
            for number, repeat in enumerate(fields["repeats"]):
                repeat |= {"verified_bytes": BYTES, "open_seconds": 0.0, "close_seconds": 0.0}
                repeat["transfer_seconds"] = repeat["total_seconds"] = 0.001 * (1 + number)
            found.append(Measurement.model_validate(fields))
    return found


def later(cases: list[Measurement], **changes: Any) -> list[Measurement]:
    """Another round: a new process, and whatever is changed."""
    place = cases[0].placement[0].model_copy(update={"pid": 4711})
    return [m.model_copy(update={"placement": (place,), **changes}) for m in cases]


def judged(measurements: list[Measurement]):
    portable = {"schema": "iogauge.portable/1", "from": {"method": "none"}, "bands": []}
    where = Expectation(file_system="memory", type="memory", nodes=1, ranks_per_node=1)
    bands = SiteBands(schema="iogauge.bands/1", site="local")
    return judge(measurements, where, bands, PortableBands.model_validate(portable))


def test_rounds_are_joined_repeat_by_repeat(cases):
    together = joined([cases, later(cases), later(cases)])
    assert [len(m.repeats) for m in together] == [9, 9, 9, 9]
    assert together[0].placement == cases[0].placement


@pytest.mark.parametrize("changes", [{"seed": 7}, {"logical_bytes": BYTES * 2}, {"hosts": {"n2": [0]}}])
def test_rounds_of_other_cases_are_refused(cases, changes):
    with pytest.raises(Refusal, match="round 2 of the kernel has other cases"):
        joined([cases, later(cases, **changes)])


def test_a_pair_is_the_best_of_a_round_over_the_best_beside_it(cases):
    rounds = [cases, later(cases), later(cases)]
    ours = BYTES / 2**20 / 0.001
    reports = [report(hdf5_write=40.0, hdf5_write_open_close=ours / factor) for factor in (2.0, 1.0, 4.0)]
    judgement = compared(judged(joined(rounds)), rounds, reports)
    write = next(row for row in judgement.main_rows if row.operation == "write")
    found = {ratio.name: ratio for ratio in write.ratios}
    observed = found["hdf5_to_h5perf_serial"]
    assert observed.pairs == pytest.approx((2.0, 1.0, 4.0), rel=1e-3)
    assert observed.value == pytest.approx(2.0, rel=1e-3)
    assert (observed.place, observed.limits) == ("no band", None)
    assert "data not verified there" in observed.label
    assert found["hdf5_to_h5perf_serial_raw"].value == pytest.approx(ours / 40)
    assert found["posix_to_h5perf_serial"].value == pytest.approx(ours / 100)
    assert all(not row.ratios for row in judgement.rows if row.role == "baseline")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("=1 2", "=2 1", r"order \[2, 1\], where the kernel has \[1, 2\]"),
        ("=10 20", "=5 40", r"transfer buffer \[5, 40\]"),
        ("=100 200", "=200 100", r"dataset \[200, 100\]"),
        ("=sec2", "=stdio", "driver stdio, where the kernel has sec2"),
    ],
)
def test_other_sizes_drivers_or_orders_are_not_compared(cases, old, new, why):
    with pytest.raises(Refusal, match=why):
        compared(judged(cases), [cases], [report(REPORT.replace(old, new))])


def test_another_number_of_iterations_is_not_compared(cases):
    with pytest.raises(Refusal, match="iterations 2, where the kernel has 3"):
        compared(judged(cases), [cases], [report(iterations=2)])
