"""What upstream benchmarks print is a measurement only where it is true: every way to lie, in real outputs."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from conftest import CHECKOUT
from upstream_outputs import (
    FFT,
    fft_launch,
    h5bench_configuration,
    h5bench_launch,
    ini,
    iotest_configuration,
    iotest_launch,
    job,
    text,
)

from iogauge.adapters import benchio, fft, h5bench, h5perf, h5perf_serial, hdf5_iotest, ior
from iogauge.adapters.upstream import KEPT, Job, Launch, load_launch
from iogauge.bands import PortableBands, SiteBands
from iogauge.errors import InputError, Refusal
from iogauge.judge import Expectation, judge
from iogauge.measurement import MIB, Measurement

NO_BANDS = (
    SiteBands(schema="iogauge.bands/1", site="test"),
    PortableBands.model_validate({"schema": "iogauge.portable/1", "from": {"method": "none"}, "bands": []}),
)


def refusal(call, *arguments, **named) -> str:
    with pytest.raises(Refusal) as raised:
        call(*arguments, **named)
    return str(raised.value)


# IOR


def ior_launch(stdout: str, result: str = "", **changes) -> Launch:
    fields = {"stdout": stdout, "exit_code": 0, "texts": {"ior.json": result} if result else {}, "name": "launch 1"}
    return Launch(**fields | changes)


def test_iors_rates_follow_from_bytes_and_seconds_as_text_and_as_json():
    launch = ior_launch(text("ior/HDF5-coll.txt"), cached_after=1.0)
    write, read = ior.measurements(job(4), [launch])
    assert (write.operation, write.interface, write.collective, write.logical_bytes) == (
        "write",
        "hdf5",
        True,
        64 * MIB,
    )
    assert write.observed == pytest.approx((64 / 0.425815, 64 / 0.144485))
    assert write.raw == pytest.approx((64 / 0.413959, 64 / 0.139489))
    assert (read.cached_fraction, write.software.hdf5) == (1.0, "1.10.8"), "read from what the same launch wrote"
    assert not write.verified
    launch = ior_launch(text("ior/HDF5-shared.json.stdout"), text("ior/HDF5-shared.json"))
    write, read = ior.measurements(job(4), [launch], result="ior.json")
    assert read.observed == pytest.approx((64 / 0.0315, 64 / 0.0192))
    assert write.repeats[0].open_seconds == 0.0268


def test_a_compared_ior_run_is_verified_and_judged_like_a_kernels():
    found = ior.measurements(job(4), [ior_launch(text("ior/HDF5-shared-verify.txt"))])
    assert all(m.verified and m.program.verifies for m in found)
    judgement = judge(found, Expectation(file_system="disk", type="other", nodes=1, ranks_per_node=4), *NO_BANDS)
    assert [row.key for row in judgement.rows] == ["ior/write/disk/1x4/shared-segmented/hdf5",
                                                   "ior/read/disk/1x4/shared-segmented/hdf5"]  # fmt: skip
    assert judgement.verdict == "no reference"


def test_wrong_data_are_refused_though_ior_ends_with_exit_code_0():
    said = "WARNING: Incorrect data on read (128 errors found)"
    launch = ior_launch(text("ior/corrupt-128-transfers.txt"))
    assert said in refusal(ior.measurements, job(2), [launch])
    clean = text("ior/corrupt-sf.json")
    launch = ior_launch(text("ior/corrupt-sf.stdout"), clean)
    assert said in refusal(ior.measurements, job(2), [launch], result="ior.json")
    assert len(ior.measurements(job(2), [ior_launch("", clean)], result="ior.json")) == 1, "the JSON itself is clean"
    assert "says: WARNING: Incorrect data" in refusal(ior.read_report, text("ior/corrupt-128-transfers.txt"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("POSIX-fpp-vv.json", "not JSON"),
        ("corrupt-R.json", "not JSON"),
        ("corrupt-R-wae.txt", "ERROR: Incorrect data on read"),
        ("stonewall.txt", "WARNING: Expected aggregate file size"),
        ("wrongsig.txt", "ERROR: using readCheck"),
    ],
)
def test_a_report_of_ior_that_is_broken_is_refused(name, why):
    assert why in refusal(ior.read_report, text(f"ior/{name}"))


def test_a_stonewalled_run_is_refused_even_without_its_warnings():
    lines = [
        line for line in text("ior/stonewall.txt").splitlines() if not line.startswith(("WARNING", "stonewalling p"))
    ]
    assert "stopped by a deadline" in refusal(ior.read_report, "\n".join(lines))


def test_a_rate_that_is_not_the_bytes_over_the_seconds_is_refused():
    report = text("ior/HDF5-coll.txt")
    assert "is not 67108864 bytes in 0.425815 s" in refusal(
        ior.read_report, report.replace("150.30     154", "950.30     154")
    )
    assert "IOPS" in refusal(ior.read_report, report.replace("0.413959", "0.213959"))


def test_phases_that_exceed_the_whole_are_no_mistake_of_iors():
    """Each is from its first rank's begin to its last rank's end, and so they overlap."""
    _, read = ior.measurements(job(4), [ior_launch(text("ior/HDF5-shared-verify.txt"))])
    first = read.repeats[0]
    assert sum(phase for phase in first.phases if phase) > 1.5 * first.total_seconds
    assert read.observed[0] == pytest.approx(64 / 0.033172)


def test_an_ior_of_many_worlds_is_refused():
    launch = ior_launch(text("ior/HDF5-coll.txt"))
    assert "ran on 4 ranks, the launcher started 2" in refusal(ior.measurements, job(2), [launch])


def test_a_file_that_is_smaller_than_what_ior_wrote_is_refused():
    report = text("ior/HDF5-shared.json").replace(" -e -O ", " -k -e -O ")
    launch = ior_launch("", report, files={"ior.HDF5": 64 * MIB - 1})
    report = report.replace("/scratch/src/run/", "")
    launch = dataclasses.replace(launch, texts={"ior.json": report})
    assert "67108863 bytes are in its files, 67108864 were written" in refusal(
        ior.measurements, job(4), [launch], result="ior.json"
    )


def test_iors_own_exit_code_and_time_limit_are_reasons():
    assert "exit code 2" in refusal(ior.measurements, job(4), [ior_launch(text("ior/HDF5-coll.txt"), exit_code=2)])
    assert "its time limit" in refusal(ior.measurements, job(4), [ior_launch("", exit_code=124)])
    assert "did not come to its end" in refusal(ior.measurements, job(4), [ior_launch("", exit_code=None)])


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("-a POSIX -w -D 5", "-D: stops early"),
        ("-a POSIX -w -N 2", "-N: fewer tasks"),
        ("-a S3 -w", "-a S3: allowed: HDF5, MPIIO, POSIX"),
        ("-w -b 3k -t 2k", "no multiple"),
        ("-w -o /scratch/f", "/scratch/f: a relative name is expected"),
        ("-w -o ../f", "../f: a relative name is expected"),
        ("-w -O summaryFormat=CSV", "CSV does not tell"),
        ("-w -v -O summaryFormat=JSON -O summaryFile=f", "only without -v"),
        ("-r", "reads without -w"),
        ("-w --nonsense", "--nonsense: unknown option"),
        ("-w -b", "a value is missing"),
        ("-w -b 4x", "'4x' is no size"),
        ("-w -i 0", "-i 0: a number of 1 or more"),
        ("-w 'x", "No closing quotation"),
    ],
)
def test_a_command_line_of_ior_that_cannot_be_judged_is_answered_before_the_run(command, why):
    with pytest.raises(InputError, match=why.replace("?", r"\?").replace(".", r"\.")):
        ior.check_command(command)


def test_a_command_line_of_ior_is_understood():
    command = ior.check_command(
        "-a MPIIO -c -w -r -b 4m -t=1m -s 3 -i 2 -C -e -o file -O summaryFormat=JSON,summaryFile=j"
    )
    assert (command.interface, command.bytes(2), command.result) == ("mpiio", 24 * MIB, "j")
    assert (command.writes, command.reads, command.compares) == (True, True, False)


# h5bench

KINDS = {
    "write_CC_1d_comp": "write",
    "write_CC_1d_fpp": "write",
    "write_CC_2d": "write",
    "write_CC_3d": "write",
    "write_CI_2d": "write",
    "write_II_1d": "write",
    "write_CS_1d": "write",
    "write_unl": "write-unlimited",
    "write_normal": "write_var_normal_dist",
    "overwrite": "overwrite",
    "read_full_2d": "read",
    "read_partial_1d": "read",
    "read_strided_1d": "read",
    "h5bench_write_CI_1d": "write",
}


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_every_kind_of_h5bench_is_read_with_the_emulated_computing_taken_out(name, kind):
    launch = h5bench_launch(name, cached_fraction=0.25)
    m = h5bench.measurement(job(4), [launch], h5bench_configuration(name, kind))
    result = h5bench.read_stdout(launch.stdout)
    rate = result.observed_rate.mib
    assert m.observed[0] == pytest.approx(rate.value, rel=0.004)
    assert m.repeats[0].total_seconds < result.observed.value
    assert m.raw == (), "rank 0's alone"
    assert (m.cached_fraction == 0.25) == (m.operation == "read")
    assert m.program.name == "h5bench"
    assert not m.verified


def test_units_that_scale_by_themselves_are_told_in_mib():
    result = h5bench.read_stdout(text("h5bench/overwrite.out"))
    assert result.observed_rate.mib.value == pytest.approx(2.025 * 1024)
    m = h5bench.measurement(job(4), [h5bench_launch("overwrite")], h5bench_configuration("overwrite", "overwrite"))
    assert m.observed[0] == pytest.approx(256 / 0.123)


@pytest.mark.parametrize("option", ["LDC", "RDC", "PRL", "CS"])
def test_a_read_that_read_nothing_is_refused_though_it_ended_well(option):
    name = f"read_{option}_2d"
    with pytest.raises(InputError, match="read by rank 0 alone"):
        h5bench_configuration(name, "read")
    values = {"BLOCK_SIZE": "128", "BLOCK_SIZE_2": "128", "STRIDE_SIZE": "512", "STRIDE_SIZE_2": "256"}
    c = h5bench_configuration(name, "read", 1, **values)
    one_rank = text(f"h5bench/{name}.out").replace("ranks: 4", "ranks: 1")
    table = text(f"h5bench/{name}.csv").replace("ranks, 4", "ranks, 1")
    launch = h5bench_launch(name, stdout=one_rank, texts={"h5bench.csv": table})
    assert "it says that it moved 510." in refusal(h5bench.measurement, job(1), [launch], c)


def test_blocks_that_would_read_nothing_are_answered_before_the_run():
    with pytest.raises(InputError, match=r"BLOCK_SIZE: 102 to 204, a tenth to a fifth of DIM_1"):
        h5bench_configuration("read_LDC_2d", "read", 1)


def test_a_failed_read_a_refused_pattern_and_a_blank_line_are_refused_though_they_end_with_exit_code_0():
    c = h5bench_configuration("read_of_CI", "read")
    assert "said: Failed to read dimensions" in refusal(h5bench.measurement, job(4), [h5bench_launch("read_of_CI")], c)
    mute = h5bench_launch("read_of_CI", stdout="")
    assert "HDF5-DIAG: Error detected" in refusal(h5bench.measurement, job(4), [mute], c)
    with pytest.raises(InputError, match="3 dimensions are only there with CONTIG"):
        h5bench_configuration("write_CI_3d", "write")
    c = h5bench_configuration("write_CC_1d", "write")
    wrong = h5bench_launch("write_CI_3d", stderr="")
    assert "Configuration file read failed" in refusal(h5bench.measurement, job(4), [wrong], c)
    blank = h5bench_launch("write_CC_1d", stdout=text("h5bench/blank_line.out"))
    assert "Configuration file read failed" in refusal(h5bench.measurement, job(4), [blank], c)


def test_a_csv_of_another_run_is_refused():
    c = h5bench_configuration("write_CC_1d", "write")
    launch = h5bench_launch("write_CC_1d")
    assert "stdout and h5bench.csv tell different results" in refusal(h5bench.measurement, job(4), [launch], c)


def test_a_missing_and_an_empty_csv_are_refused():
    c = h5bench_configuration("write_CC_2d", "write")
    for texts, why in (({}, "was not written"), ({"h5bench.csv": ""}, "is empty")):
        launch = h5bench_launch("write_CC_2d", texts=texts)
        assert why in refusal(h5bench.measurement, job(4), [launch], c)


def test_a_variable_size_write_counts_what_every_rank_wrote():
    c = h5bench_configuration("write_normal", "write_var_normal_dist")
    launch = h5bench_launch("write_normal")
    m = h5bench.measurement(job(4), [launch], c)
    particles = 1047224 + 1046644 + 1046189 + 1046195
    assert m.observed[0] == pytest.approx(particles * 32 * 2 / MIB / 1.162)
    cut = dataclasses.replace(launch, stdout=launch.stdout.replace("rank 3 =", "rank 3"))
    assert "particles of 3 of 4 ranks" in refusal(h5bench.measurement, job(4), [cut], c)


def test_sync_where_async_was_asked_for_is_refused():
    c = h5bench_configuration("write_CC_2d", "write", MODE="ASYNC")
    assert "it ran SYNC, ASYNC was asked for" in refusal(
        h5bench.measurement, job(4), [h5bench_launch("write_CC_2d")], c
    )


def test_a_file_too_small_for_what_h5bench_wrote_is_refused():
    c = h5bench_configuration("write_CC_2d", "write")
    launch = h5bench_launch("write_CC_2d", files={"particles.h5": (256 << 20) - 1})
    assert "268435455 bytes are in particles.h5, 268435456 were moved" in refusal(
        h5bench.measurement, job(4), [launch], c
    )
    launch = h5bench_launch("write_CC_1d_fpp", files={f"rank_{r}_particles.h5": 256 << 20 for r in range(4)})
    assert (
        h5bench.measurement(job(4), [launch], h5bench_configuration("write_CC_1d_fpp", "write")).file_bytes == 1 << 30
    )


@pytest.mark.parametrize(
    ("kind", "changes", "why"),
    [
        ("write", {"DIMS": "1"}, "DIMS: unknown key; allowed: ALIGN"),
        ("write", {"MEM_PATTERN": "CONTIGUOUS"}, "MEM_PATTERN: 'CONTIGUOUS'; allowed: CONTIG, INTERLEAVED"),
        ("write", {"DIM_1": "4M"}, "DIM_1: '4M': a number is expected, with a blank before K, M, G or T"),
        ("write", {"EMULATED_COMPUTE_TIME_PER_TIMESTEP": "1s"}, "with a blank before s, ms or us"),
        ("write", {"TIMESTEPS": "0"}, "TIMESTEPS: a number of 1 or more is needed"),
        ("write", {"CSV_FILE": "/tmp/o.csv"}, "CSV_FILE: '/tmp/o.csv': a name without a folder"),
        ("write-unlimited", {}, "COMPRESS: write-unlimited needs YES"),
        ("append", {}, "append writes one and the same part from each"),
        ("overwrite", {"NUM_DIMS": "2"}, "sound along one dimension only"),
        ("read", {"READ_OPTION": "PARTIAL", "TO_READ_NUM_PARTICLES": "2 M"}, "TO_READ_NUM_PARTICLES: 1 to 1048576"),
        ("read", {"READ_OPTION": "STRIDED"}, "STRIDED belongs to"),
        ("write", {"FILE_PATTERN": "STRIDED"}, "STRIDE_SIZE: "),
        ("copy", {}, "benchmark: 'copy' is not known; allowed: write, "),
    ],
)
def test_a_configuration_that_h5bench_would_not_do_is_answered_before_the_run(kind, changes, why):
    with pytest.raises(InputError) as raised:
        h5bench_configuration("write_CC_1d", kind, **changes)
    assert why in str(raised.value)


SUITE = {
    "mpi": {"command": "mpirun", "ranks": "4"},
    "vol": {},
    "benchmarks": [
        {"benchmark": kind, "file": "t.h5", "configuration": {
            "MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": "2", "NUM_DIMS": "1", "DIM_1": "1024",
            "DIM_2": "1", "DIM_3": "1", "CSV_FILE": "o.csv", "MODE": "SYNC"}}
        for kind in ("write", "read", "overwrite")
    ],
}  # fmt: skip


def test_a_json_of_h5benchs_runner_is_taken_as_it_is():
    suite = h5bench.read_json(json.dumps(SUITE), 2)
    assert [c.kind for c in suite.benchmarks] == ["write", "read", "overwrite"]
    assert suite.benchmarks[0].logical_bytes(2) == 1024 * 32 * 2 * 2
    assert "MODE" not in suite.benchmarks[0].text()
    assert "\n\n" not in suite.benchmarks[0].text()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: s["benchmarks"].pop(0), "t.h5 is written by no benchmark before"),
        (lambda s: s["benchmarks"][0]["configuration"].update(FILE_PATTERN="INTERLEAVED"), "was written interleaved"),
        (lambda s: s["benchmarks"][1].update(benchmark="amrex"), "benchmark 2 (amrex): amrex prints no time"),
        (lambda s: s["benchmarks"][1]["configuration"].update(DIM_1="2048"), "not within those written"),
        (lambda s: s["benchmarks"][0]["configuration"].update(MODE="ASYNC"), "vol: ASYNC needs path and connector"),
        (lambda s: s.update(benchmarks=[]), "benchmarks: no benchmark"),
        (lambda s: s.pop("benchmarks"), "a benchmark with benchmark, file and configuration is expected"),
    ],
)
def test_a_json_of_h5benchs_runner_that_would_go_wrong_is_answered_before_the_run(change, why):
    suite = json.loads(json.dumps(SUITE))
    change(suite)
    with pytest.raises(InputError) as raised:
        h5bench.read_json(json.dumps(suite), 2, "own.json")
    assert why in str(raised.value)
    with pytest.raises(InputError, match=r"own.json:1: not JSON"):
        h5bench.read_json("{", 2, "own.json")


# hdf5_iotest


def test_every_case_of_hdf5_iotest_is_a_series():
    c = iotest_configuration("np4", 4)
    found = hdf5_iotest.measurements(job(4), [iotest_launch("np4")] * 2, c)
    judgement = judge(found, Expectation(file_system="d", type="other", nodes=1, ranks_per_node=4), *NO_BANDS)
    assert len({row.key for row in judgement.rows}) == len(found) == 2 * 96
    assert {row.band_status for row in judgement.rows if row.operation == "read"} == {"cached"}, (
        "read after it was written"
    )
    write = found[0]
    assert write.logical_bytes == 4 * 8 * 200 * 400 * 8
    assert write.observed == pytest.approx([write.logical_bytes / MIB / 0.3613] * 2)
    assert write.raw == pytest.approx([write.logical_bytes / MIB / 0.0461] * 2)


@pytest.mark.parametrize(("name", "ranks", "cases"), [("np1", 1, 48), ("np2_gzip", 2, 96), ("np2_one", 2, 1)])
def test_every_row_of_hdf5_iotest_is_asked_for(name, ranks, cases):
    c = iotest_configuration(name, ranks)
    assert len(hdf5_iotest.read_csv(text(f"hdf5_iotest/{name}.csv"), c)) == cases
    if name == "np1":
        tiny = refusal(hdf5_iotest.measurements, job(ranks), [iotest_launch(name)], c)
        assert "0.0006 s are too short for the decimals they are told with; make the case larger" in tiny


@pytest.mark.parametrize(
    ("name", "ranks", "why"),
    [
        ("np2_typo", 2, ":14: one-cas: unknown key; allowed: alignment-increment"),
        ("restart", 4, ":2: restart: leaves cases out; allowed: 0"),
        ("np2_split", 2, ":14: split: writes rows that cannot be told apart; allowed: 0"),
        ("np2_badgrid", 2, "the process grid 1 x 1 is not the job's 2 ranks"),
    ],
)
def test_an_ini_that_hdf5_iotest_would_take_otherwise_is_answered_before_the_run(name, ranks, why):
    with pytest.raises(InputError) as raised:
        iotest_configuration(name, ranks)
    assert why in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("steps = 4\n", "", "steps: missing; it is required"),
        ("steps = 4", " steps = 4", "begins with a blank"),
        ("steps = 4", "steps = 4\nsteps = 5", "steps: stands in line 3 already"),
        ("steps = 4", "steps = four", "steps: "),
        ("steps = 4", "steps", "'key = value' is expected"),
        ("[DEFAULT]", "[case]", "version: has to stand below [DEFAULT]"),
        ("scaling = weak", "scaling = strongish", "scaling: "),
        ("steps = 4", "steps = 4\ndelay = 1ms", "delay: is not understood here"),
        ("steps = 4", "steps = 4\none-case = 97", "one-case: 97 is none of the 96 cases"),
        ("tiles.h5", "a#.h5", "hdf5-file: "),
        ("tiles.h5", "/scratch/a.h5", "hdf5-file: "),
    ],
)
def test_a_wrong_line_of_an_ini_is_named(old, new, why):
    assert old in ini("np4")
    with pytest.raises(InputError) as raised:
        hdf5_iotest.read_ini(ini("np4").replace(old, new, 1), 4, "own.ini")
    assert why in str(raised.value)


def test_a_build_without_assertions_is_refused():
    c = iotest_configuration("ndebug", 1)
    assert "built without assertions" in refusal(hdf5_iotest.measurements, job(1), [iotest_launch("ndebug")], c)
    disguised = text("hdf5_iotest/ndebug.csv").replace("0.0.0", "1.10.8")
    launch = iotest_launch("ndebug", texts={"tiles.csv": disguised})
    assert "a file of 140737031994704 bytes" in refusal(hdf5_iotest.measurements, job(1), [launch], c)


def test_rows_too_many_too_few_or_twice_are_refused():
    one = iotest_configuration("np2_one", 2).model_copy(update={"steps": 2, "arrays": 2})
    typo = text("hdf5_iotest/np2_typo.csv")
    assert "96 rows, where the INI asks for 1 cases: is a key misspelt?" in refusal(hdf5_iotest.read_csv, typo, one)
    all_cases = iotest_configuration("np4", 4)
    restarted = text("hdf5_iotest/restart.csv")
    assert "4 of 96 cases have no row" in refusal(hdf5_iotest.read_csv, restarted, all_cases)
    rows = text("hdf5_iotest/np4.csv").splitlines(keepends=True)
    assert "two rows of the case" in refusal(hdf5_iotest.read_csv, "".join([*rows, rows[5]]), all_cases)
    assert "line is cut" in refusal(hdf5_iotest.read_csv, "".join(rows)[:-3], all_cases)
    assert "does not begin with hdf5_iotest's header" in refusal(hdf5_iotest.read_csv, "", all_cases)


def test_the_other_csv_that_h5benchs_metadata_kind_writes_is_refused():
    """An old fork of it, with 27 columns and times of two decimals."""
    c = iotest_configuration("np4", 4)
    assert "does not begin with hdf5_iotest's header" in refusal(
        hdf5_iotest.read_csv, text("h5bench_kinds/metadata.csv"), c
    )


def test_a_build_whose_verification_distorts_its_times_is_refused():
    launch = iotest_launch("verify")
    assert "Data verification enabled" in refusal(
        hdf5_iotest.measurements, job(4), [launch], iotest_configuration("verify", 4)
    )


def test_a_file_of_another_size_than_the_csv_says_is_refused():
    launch = iotest_launch("np4", files={"tiles.h5": 4096})
    c = iotest_configuration("np4", 4)
    assert "tiles.h5 has 4096 bytes, the CSV says" in refusal(hdf5_iotest.measurements, job(4), [launch], c)
    assert "is not there" in refusal(hdf5_iotest.measurements, job(4), [iotest_launch("np4", files={})], c)


def test_a_crash_is_refused():
    launch = Launch(stderr=text("hdf5_iotest/np2_badgrid.out"), exit_code=134, name="launch 1")
    c = iotest_configuration("np2_gzip", 2)
    assert "Assertion `pconfig->proc_rows" in refusal(hdf5_iotest.measurements, job(2), [launch], c)


def test_the_ini_that_is_written_is_read_as_the_same_configuration():
    c = iotest_configuration("np2_gzip", 2)
    assert hdf5_iotest.read_ini(c.text(), 2) == c


# benchio

LOCAL = "128 128 128 local serial proc node mpiio hdf5 unstriped striped"


def benchio_proof(arguments: benchio.Arguments, ranks: int) -> Launch:
    files = benchio.files_of(arguments, ranks, 1)
    return Launch(files={name + KEPT: arguments.logical_bytes(ranks) for name in files}, name="the proof")


def test_benchios_rates_follow_from_bytes_and_seconds():
    arguments = benchio.check_arguments(LOCAL, 4)
    launch = Launch(stdout=text("benchio/np4_local.txt"), exit_code=0, name="launch 1")
    found = benchio.measurements(job(4), [launch], arguments, proof=benchio_proof(arguments, 4))
    assert len(found) == 10
    serial = found[0]
    assert (serial.interface, serial.logical_bytes) == ("posix", 64 * MIB)
    assert serial.observed[0] == pytest.approx(64 / 0.142688636999992)
    assert (serial.raw, serial.best_raw) == ((), None), "it times everything together"


def test_what_a_network_library_writes_into_benchios_report_is_no_part_of_it():
    arguments = benchio.check_arguments(LOCAL, 4)
    said = "[1795286443.350529] [n3:50029:0]           flush.c:26   UCX  ERROR req 0x55b8: error during flush\n"
    launch = Launch(stdout=text("benchio/np4_local.txt") + said, exit_code=0, name="launch 1")
    assert len(benchio.measurements(job(4), [launch], arguments, proof=benchio_proof(arguments, 4))) == 10
    launch = Launch(stdout=launch.stdout + "flush failed\n", exit_code=0, name="launch 1")
    assert "'flush failed' after the end of the report" in refusal(
        benchio.measurements, job(4), [launch], arguments, proof=benchio_proof(arguments, 4)
    )


@pytest.mark.parametrize("name", ["missing_dir", "missing_dir_hdf5", "missing_dir_mpiio"])
def test_a_rate_for_a_file_that_was_never_written_is_refused(name):
    methods = {"missing_dir": "proc", "missing_dir_hdf5": "hdf5", "missing_dir_mpiio": "mpiio"}[name]
    arguments = benchio.check_arguments(f"64 64 64 local {methods} unstriped", 2)
    output = text(f"benchio/{name}.txt")
    launch = Launch(stdout=output, exit_code=0, name="launch 1")
    proof = benchio_proof(arguments, 2)
    refusal(benchio.measurements, job(2), [launch], arguments, proof=proof)
    if name == "missing_dir_hdf5":  # its errors went to another stream, and nobody kept them
        start, end = output.index("HDF5-DIAG"), output.index(" time =    5")
        clean = output[:start] + output[end:]
        launch = Launch(stdout=clean, exit_code=0, name="launch 1")
        assert benchio.read_report(clean).results[0].rate.value == pytest.approx(716, rel=0.01)
        nothing = Launch(files={"unstriped/hdf5.dat.kept": 0}, name="the proof")
        assert "hdf5 left 0 bytes in its files, 4194304 should be there" in refusal(
            benchio.measurements, job(2), [launch], arguments, proof=nothing
        )


def test_a_size_that_was_silently_cut_is_refused():
    with pytest.raises(InputError, match="100x100x100 is not divided by the process grid 1x1x3"):
        benchio.check_arguments("100 100 100 global mpiio hdf5 unstriped", 3)
    arguments = benchio.Arguments((100, 100, 100), "global", ("mpiio", "hdf5"), ("unstriped",))
    launch = Launch(stdout=text("benchio/np3_global_100.txt"), exit_code=0, name="launch 1")
    assert "global size 100x100x99, 100x100x100 was asked for" in refusal(
        benchio.measurements, job(3), [launch], arguments, proof=benchio_proof(arguments, 3)
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("64 64 64", "n1 n2 n3 local"),
        ("64 64 0 local hdf5 unstriped", "three numbers of 1 or more"),
        ("64 64 64 weak hdf5 unstriped", "'weak': taken for global"),
        ("64 64 64 local hdf6 unstriped", "'hdf6'; allowed: serial"),
        ("64 64 64 local unstriped striped", "at least one method"),
        ("2048 2048 512 local hdf5 unstriped", "its indices end at 2147483647"),
    ],
)
def test_arguments_of_benchio_that_it_would_take_otherwise_are_answered_before_the_run(arguments, why):
    with pytest.raises(InputError, match=why):
        benchio.check_arguments(arguments, 2)


# h5perf

H5PERF = h5perf.Case(16 << 20, 1 << 20, 1 << 20)


def test_seconds_are_made_of_h5perfs_rates_again():
    launch = Launch(stdout=text("h5perf/default.txt"), exit_code=0, cached_after=1.0, name="launch 1")
    found = {(m.operation, m.interface): m for m in h5perf.measurements(job(2), [launch] * 2, H5PERF)}
    assert len(found) == 6
    write = found["write", "hdf5"]
    assert (write.role, found["write", "mpiio"].differs) == ("main", {"interface": "mpiio"})
    assert write.observed == pytest.approx((166.70, 166.70))
    assert write.raw == pytest.approx((255.44, 255.44))
    assert write.repeats[0].total_seconds == pytest.approx(32 / 166.70)
    assert found["read", "posix"].cached_fraction == 1.0, "read what was just written"


@pytest.mark.parametrize("name", ["missing_folder", "transfer_does_not_divide"])
def test_h5perf_that_did_nothing_is_refused_though_it_prints_a_report(name):
    assert "a rate of 0" in refusal(h5perf.read_report, text(f"h5perf/{name}.txt"))


def test_what_a_network_library_says_is_no_failure_of_h5perfs():
    said = "[n3:38574] common_ucx.c:470  Error: ucp_disconnect_nb(3) failed: Endpoint timeout\n"
    launch = Launch(stdout=text("h5perf/default.txt"), stderr=said, exit_code=0, name="launch 1")
    assert len(h5perf.measurements(job(2), [launch], H5PERF)) == 6


def test_another_h5perf_than_asked_and_a_file_too_small_are_refused():
    launch = Launch(stdout=text("h5perf/interleaved_collective.txt"), exit_code=0, name="launch 1")
    assert "was asked for" in refusal(h5perf.measurements, job(2), [launch], H5PERF)
    errors = text("h5perf/missing_folder.err")
    failed = Launch(stdout=text("h5perf/default.txt"), stderr=errors, exit_code=0, name="launch 1")
    assert "HDF5 File Create failed" in refusal(h5perf.measurements, job(2), [failed], H5PERF)
    small = Launch(stdout=text("h5perf/default.txt"), exit_code=0, files={"#pio_tmp_1.h5": 4096}, name="launch 1")
    assert "#pio_tmp_1.h5 has 4096 bytes, 33554432 were written" in refusal(
        h5perf.measurements, job(2), [small], H5PERF
    )


def test_h5perf_that_halves_the_ranks_is_refused():
    """As it does unless it is told how many: what is printed first is of all ranks, what comes then of half of them."""
    assert "'rank 0: Number of processes=1:2'" in refusal(h5perf.read_report, text("h5perf/halving.txt"))


def test_sizes_of_h5perf_that_would_make_rates_of_0_are_answered_before_the_run():
    H5PERF.check()
    with pytest.raises(InputError, match="bytes of a rank, transfers of 300000 and blocks of 262144: each has to be"):
        h5perf.Case(3000000, 300000, 262144).check()


# h5perf_serial

SERIAL = h5perf_serial.Case(dataset=(4 * MIB,), transfer=(MIB,), order=(1,))


def serial_launch(name: str = "line", **changes) -> Launch:
    fields = {"stdout": text(f"h5perf_serial/{name}.txt"), "exit_code": 0, "cached_after": 1.0, "name": "launch 1"}
    return Launch(**fields | changes)


def test_seconds_are_made_of_h5perf_serials_rates_again():
    files = {"#sio_tmp.posix": 4 * MIB, "#sio_tmp.h5": 4 * MIB + 2048}
    found = h5perf_serial.measurements(job(1), [serial_launch(files=files)] * 2, SERIAL)
    by_name = {(m.operation, m.interface): m for m in found}
    report = h5perf_serial.read_report(text("h5perf_serial/line.txt"))
    write = by_name["write", "hdf5"]
    assert write.observed == pytest.approx([report.result("hdf5").write_open_close.average] * 2)
    assert write.raw == pytest.approx([report.result("hdf5").write.average] * 2)
    assert (write.role, by_name["write", "posix"].differs) == ("main", {"interface": "posix"})
    assert by_name["read", "hdf5"].cached_fraction == 1.0, "read what was just written"
    assert (write.verified, write.program.verifies, write.software.hdf5) == (False, False, "1.10.8")
    judgement = judge(found, Expectation(file_system="disk", type="other", nodes=1, ranks_per_node=1), *NO_BANDS)
    assert judgement.rows[0].key == "h5perf_serial/write/disk/1x1/file-per-process-1d-sec2/hdf5"


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        (serial_launch("1g"), "it ran 3 iterations"),
        (serial_launch("default"), "it ran 1 iterations of dataset=(100, 200)"),
        (serial_launch(stdout=text("h5perf_serial/line.txt").replace("driver=sec2", "driver=stdio")), "driver='stdio'"),
        (serial_launch(stderr=text("h5perf_serial/full_file_system.err")), "Assertion failed (POSIXWRITE)"),
        (
            serial_launch("chunk_too_large", stderr=text("h5perf_serial/chunk_too_large.err")),
            "exit code 0, but said: HDF5 Dataset Create failed",
        ),
        (serial_launch("chunk_too_large"), "a rate of 0: it failed"),
        (serial_launch("help"), "exit code 0, but said: usage:"),
        (serial_launch(stdout=""), "the report ends where"),
        (serial_launch(files={"#sio_tmp.posix": 4 * MIB}), "hdf5 left 0 bytes in its files, 4194304 were written"),
        (serial_launch(files={"#sio_tmp.h5": 4 * MIB}), "posix left 0 bytes in its files"),
    ],
)
def test_an_h5perf_serial_that_did_not_do_what_was_asked_is_refused(launch, why):
    assert why in refusal(h5perf_serial.measurements, job(1), [launch], SERIAL)


def test_an_h5perf_serial_of_several_ranks_is_refused():
    assert "ran on 1 rank, the launcher started 2" in refusal(
        h5perf_serial.measurements, job(2), [serial_launch()], SERIAL
    )


# The File Format Comparison

VERSIONS = {"h5py": "3.16.0", "h5py-hdf5": "2.0.0", "netCDF4": "1.7.5", "netCDF4-hdf5": "1.14.6", "zarr": "2.18.7"}


def fft_measurements(launch: Launch) -> list[Measurement]:
    return fft.measurements(job(1), [launch], FFT, versions=VERSIONS)


def test_the_file_format_comparison_has_no_read_no_baseline_and_no_opening_of_netcdf():
    """Its reads count printing and come from the cache, its layouts differ, and netCDF4 opens its variables with the file."""
    found = fft_measurements(fft_launch())
    assert [(m.interface, m.operation) for m in found] == [
        *(("hdf5", operation) for operation in ("create", "write", "open")),
        *(("netcdf", operation) for operation in ("create", "write")),
        *(("zarr", operation) for operation in ("create", "write", "open")),
    ]
    assert {m.role for m in found} == {"main"}
    create, write = found[:2]
    assert (write.logical_bytes, write.file_bytes) == (2 * 8 * 8 * 4, 2560)
    assert write.observed[0] == pytest.approx(512 / MIB / (0.18663650189409964 * 2 / 1000))
    assert create.observed[0] == pytest.approx(1000 / 0.2119644996128045)
    assert [m.software.hdf5 for m in found[::3]] == ["2.0.0", "1.14.6", None]
    assert write.software.packages == {"h5py": "3.16.0", "netCDF4": "1.7.5", "zarr": "2.18.7"}
    assert not write.verified


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Trial 3", "Trial 4", "not those of 5 trials"),
        ("0.18663650189409964", "0.2", "the average of Dataset Write Time is not that of the trials"),
        ("0.18663650189409964", "nan", "'nan' is no number"),
        ("0.18663650189409964", "-0.25", "'-0.25' is no number"),
        ("Dataset Open Time", "Open", "does not begin with HDF5's header"),
    ],
)
def test_a_changed_csv_of_the_file_format_comparison_is_refused(old, new, why):
    table = text("fft/HDF5.csv").replace(old, new, 1)
    launch = fft_launch()
    assert why in refusal(
        fft_measurements, dataclasses.replace(launch, texts={**launch.texts, FFT.result("HDF5"): table})
    )


ONE_ARRAY = re.search(r"^\[\[.*?\]\]\n", text("fft/2x8x8.out"), re.MULTILINE | re.DOTALL)[0]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"stdout": text("fft/2x8x8.out").replace(ONE_ARRAY, "")}, "it read back 29 arrays, 30 were to be"),
        ({"stdout": text("fft/2x8x8.out").replace(ONE_ARRAY, re.sub("[1-9]", "0", ONE_ARRAY))}, "was never written"),
        ({"stdout": text("fft/2x8x8.out").replace(ONE_ARRAY, ONE_ARRAY.replace("0.2", "--", 1))}, "was never written"),
        ({"stdout": ""}, "it read back 0 arrays"),
        ({"stderr": text("fft/zarr3.err"), "exit_code": 1}, "TypeError: open() takes from 0 to 1 positional arguments"),
        ({"files": {"datasets_test/files/arrays.hdf5.kept": 511}}, "HDF5 left 511 bytes in its first file, 512 were"),
        ({"texts": {}}, "HDF5_2_[8, 8].csv was not written"),
    ],
)
def test_a_file_format_comparison_that_did_not_write_or_read_is_refused(changes, why):
    assert why in refusal(fft_measurements, fft_launch(**changes))


def test_a_python_without_what_the_file_format_comparison_needs_is_refused_by_name():
    found = fft.read_versions(Launch(stdout=json.dumps(VERSIONS), exit_code=0))
    assert found == VERSIONS
    new = Launch(stderr="zarr 3.1.0: File-Format-Testing needs zarr before 3\n", exit_code=1, name="versions")
    assert "zarr 3.1.0: File-Format-Testing needs zarr before 3" in refusal(fft.read_versions, new)
    missing = Launch(stderr="Traceback:\nModuleNotFoundError: No module named 'h5py'\n", exit_code=1, name="versions")
    assert "No module named 'h5py'" in refusal(fft.read_versions, missing)
    assert "no versions" in refusal(fft.read_versions, Launch(exit_code=0, name="versions"))


def test_its_own_samples_are_configurations_of_the_file_format_comparison(tmp_path):
    """As in its repository: two keys that it does not look at are there too."""
    path = tmp_path / "4.yaml"
    path.write_text(
        "FILE_NAME: 2048_Datasets\nNUMBER_DATASETS: 2048\nNUMBER_ELEMENTS:\n  - 256\nCHUNK_SIZE: 0\nMIN_DATA_VALUE: 1\n"
    )
    found = fft.read_configuration(path)
    assert (found.name, found.datasets, found.elements) == ("2048_Datasets", 2048, (256,))
    assert found.logical_bytes == 2 << 20
    path.write_text(found.text())
    assert fft.read_configuration(path).logical_bytes == 2 << 20


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("FILE_NAME: ../x\nNUMBER_DATASETS: 1\nNUMBER_ELEMENTS: [1]\n", "own.yaml:1: FILE_NAME: "),
        ("FILE_NAME: x\nNUMBER_DATASETS: 0\nNUMBER_ELEMENTS: [1]\n", "own.yaml:2: NUMBER_DATASETS: "),
        ("FILE_NAME: x\nNUMBER_DATASETS: 1\nNUMBER_ELEMENTS: [1, 2, 3, 4]\n", "own.yaml:3: NUMBER_ELEMENTS: "),
        ("FILE_NAME: x\nNUMBER_DATASETS: 1\nNUMBER_ELEMENTS: 5\n", "own.yaml:3: NUMBER_ELEMENTS: "),
        ("FILE_NAME: x\nNUMBER_DATASETS: 1\n", "NUMBER_ELEMENTS: missing"),
        ("FILE_NAME: x\nDATASETS: 1\nNUMBER_ELEMENTS: [1]\n", "own.yaml:2: DATASETS: unknown key; allowed: CHUNK_SIZE"),
        ("- 1\n", "own.yaml"),
        ("", "own.yaml"),
        ("a: [", "own.yaml:1: not YAML"),
    ],
)
def test_a_yaml_that_the_file_format_comparison_would_take_otherwise_is_answered_before_the_run(tmp_path, text, why):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        fft.read_configuration(path)
    assert why in str(raised.value)


# What all of them share


def test_a_launch_is_what_the_job_kept(tmp_path):
    (tmp_path / "launch-3.out").write_text("said\n")
    (tmp_path / "launch-3.code").write_text("0\n")
    (tmp_path / "launch-3.files").write_text("12 a file.h5\n7 sub/b\n")
    (tmp_path / "launch-3.r.csv").write_text("x\n")
    looks = [("before", 1.0), ("dropped", 0.25), ("before", 0.5), ("dropped", 0.5), ("after", None)]
    (tmp_path / "launch-3.cached").write_text(
        "".join(json.dumps({"look": look, "fraction": fraction}) + "\n" for look, fraction in looks)
    )
    launch = load_launch(tmp_path, 3, name="one", results=["r.csv", "other"])
    assert (launch.stdout, launch.exit_code, launch.files) == ("said\n", 0, {"a file.h5": 12, "sub/b": 7})
    assert (launch.cached_before_drop, launch.cached_fraction, launch.cached_after) == (1.0, 0.5, None)
    assert launch.text("r.csv") == "x\n"
    assert "other was not written" in refusal(launch.text, "other")
    (tmp_path / "launch-3.cached").write_text("Killed\n")
    assert "page cache's state is not told" in refusal(load_launch, tmp_path, 3, name="one")
    assert load_launch(tmp_path, 4, name="none").exit_code is None


def test_without_the_record_of_the_placement_nothing_is_a_measurement(tmp_path):
    assert "the placement is not proven" in refusal(Job.load, tmp_path / "placement.jsonl")


def test_a_record_of_an_upstream_benchmark_keeps_the_published_schema():
    import jsonschema

    schema = json.loads((CHECKOUT / "kernels" / "measurement.schema.json").read_text())
    found = ior.measurements(job(4), [ior_launch(text("ior/HDF5-coll.txt"))])
    for m in found:
        written = m.model_dump(mode="json", by_alias=True)
        jsonschema.validate({k: v for k, v in written.items() if k != "software"}, {**schema, "required": []})
        assert Measurement.model_validate(written) == m
