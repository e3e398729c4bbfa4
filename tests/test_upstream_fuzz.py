"""Damaged outputs of upstream benchmarks: never a crash, and never a rate that the real output did not hold."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from upstream_outputs import (
    FFT,
    fft_launch,
    h5bench_configuration,
    h5bench_kind,
    h5bench_launch,
    iotest_configuration,
    job,
    kind_launch,
    text,
)

from iogauge.adapters import benchio, fft, h5bench, h5perf, h5perf_serial, hdf5_iotest, ior
from iogauge.adapters.upstream import Launch
from iogauge.errors import InputError, Refusal

NUMBER = re.compile(r"\d+\.?\d*")
NO_NUMBERS = ("nan", "inf", "-1", "-0.5", "1e999", "0", "", "\u0661", "1_0", "0x10", "9" * 40)


@st.composite
def damaged(draw: st.DrawFn, output: str) -> str:
    """``output`` cut, with lines lost, doubled or swapped, digits changed, numbers that are none, or noise in it."""
    for _ in range(draw(st.integers(1, 3))):
        lines = output.splitlines(keepends=True)
        if not lines:
            return output
        line = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(["cut", "lose", "double", "swap", "digit", "number", "noise"]))
        if kind == "cut":
            output = output[: draw(st.integers(0, len(output)))]
        elif kind == "lose":
            output = "".join(lines[:line] + lines[line + 1 :])
        elif kind == "double":
            output = "".join([*lines[:line], lines[line], *lines[line:]])
        elif kind == "swap":
            other = draw(st.integers(0, len(lines) - 1))
            lines[line], lines[other] = lines[other], lines[line]
            output = "".join(lines)
        elif kind == "noise":
            at = draw(st.integers(0, len(output)))
            output = output[:at] + draw(st.text(max_size=8)) + output[at:]
        elif found := list(NUMBER.finditer(output)):
            where = draw(st.sampled_from(found))
            if kind == "number":
                output = output[: where.start()] + draw(st.sampled_from(NO_NUMBERS)) + output[where.end() :]
            else:
                at = draw(st.integers(where.start(), where.end() - 1))
                output = output[:at] + str(draw(st.integers(0, 9))) + output[at + 1 :]
    return output


def of_ior_text(output: str):
    return ior.measurements(job(4), [Launch(stdout=output, exit_code=0)])


def of_ior_json(output: str):
    return ior.measurements(job(4), [Launch(exit_code=0, texts={"j": output})], result="j")


def of_h5bench(output: str):
    launch = h5bench_launch("write_CC_2d", stdout=output)
    return [h5bench.measurement(job(4), [launch], h5bench_configuration("write_CC_2d", "write"))]


def of_h5bench_csv(output: str):
    launch = h5bench_launch("write_CC_2d", texts={"h5bench.csv": output})
    return [h5bench.measurement(job(4), [launch], h5bench_configuration("write_CC_2d", "write"))]


def of_h5bench_kind(name: str, result: str = "") -> Callable:
    """Its stdout damaged, or the file ``result``."""

    def measurements(output: str):
        launch = kind_launch(name, **({"texts": {result: output}} if result else {"stdout": output}))
        return h5bench_kind(name).measurements(job(2), [launch])

    return measurements


ARGUMENTS = benchio.check_arguments("128 128 128 local serial proc node mpiio hdf5 unstriped striped", 4)
PROOF = Launch(files={f"{name}.kept": ARGUMENTS.logical_bytes(4) for name in benchio.files_of(ARGUMENTS, 4, 1)})


def of_benchio(output: str):
    return benchio.measurements(job(4), [Launch(stdout=output, exit_code=0)], ARGUMENTS, proof=PROOF)


def of_h5perf(output: str):
    return h5perf.measurements(job(2), [Launch(stdout=output, exit_code=0)], h5perf.Case(16 << 20, 1 << 20, 1 << 20))


def of_hdf5_iotest(output: str):
    c = iotest_configuration("np2_one", 2)
    return hdf5_iotest.measurements(job(2), [Launch(exit_code=0, texts={"tiles.csv": output})], c)


SERIAL = h5perf_serial.Case(dataset=(4 << 20,), transfer=(1 << 20,), order=(1,))


def of_h5perf_serial(output: str):
    return h5perf_serial.measurements(job(1), [Launch(stdout=output, exit_code=0)], SERIAL)


def of_fft(output: str):
    launch = fft_launch()
    launch = dataclasses.replace(launch, texts={**launch.texts, FFT.result("HDF5"): output})
    return fft.measurements(job(1), [launch], FFT, versions={})


CASES: dict[str, tuple[Callable, str]] = {
    "ior": (of_ior_text, "ior/HDF5-coll.txt"),
    "ior_json": (of_ior_json, "ior/HDF5-shared.json"),
    "h5bench": (of_h5bench, "h5bench/write_CC_2d.out"),
    "h5bench_csv": (of_h5bench_csv, "h5bench/write_CC_2d.csv"),
    "h5bench_metadata": (of_h5bench_kind("metadata", "h5bench.csv"), "h5bench_kinds/metadata.csv"),
    "h5bench_exerciser": (of_h5bench_kind("exerciser"), "h5bench_kinds/exerciser.out"),
    "h5bench_macsio": (of_h5bench_kind("macsio", "macsio.log"), "h5bench_kinds/macsio.log"),
    "h5bench_e3sm": (of_h5bench_kind("e3sm"), "h5bench_kinds/e3sm.out"),
    "h5bench_openpmd": (of_h5bench_kind("openpmd"), "h5bench_kinds/openpmd.out"),
    "benchio": (of_benchio, "benchio/np4_local.txt"),
    "h5perf": (of_h5perf, "h5perf/default.txt"),
    "h5perf_serial": (of_h5perf_serial, "h5perf_serial/line.txt"),
    "fft": (of_fft, "fft/HDF5.csv"),
}


def rates(measurements) -> dict[str, list[float]]:
    """Observed and raw rates by what they are of."""
    return {
        f"{number} {m.operation} {metric}": list(found)
        for number, m in enumerate(measurements)
        for metric, found in (("observed", m.observed), ("raw", m.raw))
    }


@functools.cache
def real_rates(name: str) -> list[float]:
    adapter, sample = CASES[name]
    return sorted(rate for found in rates(adapter(text(sample))).values() for rate in found)


@pytest.mark.parametrize("name", [*CASES, "hdf5_iotest"])
def test_an_empty_output_and_one_cut_after_any_line_are_refused_or_hold_the_real_rates(name):
    """What may be missing stands behind all that is needed: a closing line, blanks."""
    adapter, sample = CASES.get(name, (of_hdf5_iotest, "hdf5_iotest/np2_one.csv"))
    output = text(sample)
    real = rates(adapter(output))
    ends = [0, *(match.end() for match in re.finditer("\n", output)), len(output) - 1]
    taken = 0
    for end in ends[:-2]:
        with suppress(Refusal):
            assert rates(adapter(output[:end])) == real
            taken += 1
    assert taken <= 3, "all but the last lines are needed"
    with pytest.raises(Refusal):
        adapter("")


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_damaged_output_is_refused_or_holds_the_real_rates(name, data):
    """A rate and its time stand beside each other: to be taken, both would have to be changed, and fit."""
    adapter, sample = CASES[name]
    try:
        found = adapter(data.draw(damaged(text(sample))))
    except Refusal:
        return
    real = real_rates(name)
    for rate in (rate for found in rates(found).values() for rate in found):
        assert math.isfinite(rate)
        assert any(abs(rate / one - 1) < 0.06 for one in real), (rate, real)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_damaged_csv_of_hdf5_iotest_is_refused_or_complete(data):
    """It tells no rate to hold a time against: what is taken has every case, its sizes, and times that are some."""
    c = iotest_configuration("np4", 4)
    try:
        rows = hdf5_iotest.read_csv(data.draw(damaged(text("hdf5_iotest/np4.csv"))), c)
    except Refusal:
        return
    assert [row.case for row in rows] == hdf5_iotest.cases_of(c)
    for row in rows:
        assert c.logical_bytes <= row.file_bytes < 1 << 40
        assert all(0 <= time.value < math.inf for time in row.times.values())
        assert row.hdf5 == rows[0].hdf5


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_damaged_row_of_hdf5_iotest_is_refused_or_has_rates(data):
    try:
        write, read = of_hdf5_iotest(data.draw(damaged(text("hdf5_iotest/np2_one.csv"))))
    except Refusal:
        return
    assert all(0 < rate < math.inf for rate in write.observed + write.raw + read.observed + read.raw)


@settings(max_examples=100, deadline=None)
@given(
    kind=st.sampled_from([*h5bench.KINDS, "amrex", "other"]),
    values=st.dictionaries(
        st.sampled_from(
            ["numdims", "minels", "map", "r", "part_size", "operation", "grid", "rows", "DIM_1", "NUM_DIMS"]
        ),
        st.one_of(st.text(max_size=12), st.integers(-2, 9), st.none(), st.lists(st.integers(), max_size=2)),
        max_size=6,
    ),
)
def test_an_h5bench_configuration_of_any_values_is_answered_in_words(kind, values):
    with suppress(InputError):
        h5bench.check_benchmark(kind, "f.h5", values, 2, "JSON")


@settings(max_examples=100, deadline=None)
@given(words=st.text(max_size=60), ranks=st.integers(1, 8))
def test_configurations_of_any_text_are_answered_in_words(words, ranks):
    for check in (
        lambda: ior.check_command(words),
        lambda: benchio.check_arguments(words, ranks),
        lambda: hdf5_iotest.read_ini(words, ranks),
        lambda: h5bench.read_json(words, ranks),
    ):
        with suppress(InputError):
            check()
