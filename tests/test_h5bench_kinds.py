"""The kinds of h5bench's suite beyond its own patterns: their real outputs, and every way in which those lie."""

from __future__ import annotations

import dataclasses
import json

import pytest
from test_upstream_adapters import NO_BANDS, refusal
from upstream_outputs import H5BENCH_KINDS, SAMPLES, h5bench_kind, job, kind_launch, text

from iogauge.adapters import h5bench
from iogauge.errors import InputError, Refusal
from iogauge.judge import Expectation, judge
from iogauge.measurement import MIB


def measured(name, launch=None, **changes):
    return h5bench_kind(name, **changes).measurements(job(2), [launch or kind_launch(name)])


@pytest.mark.parametrize("name", H5BENCH_KINDS)
def test_a_real_output_is_judged_under_the_names_that_were_announced(name):
    found = measured(name)
    benchmark = h5bench_kind(name)
    assert [(m.operation, m.pattern, m.collective) for m in found] == [
        (a.operation, a.pattern, a.collective) for a in benchmark.announced()
    ]
    judgement = judge(found, Expectation(file_system="d", type="other", nodes=1, ranks_per_node=2), *NO_BANDS)
    assert len({row.key for row in judgement.rows}) == len(found)
    assert all(row.key.startswith("h5bench/") for row in judgement.rows)
    assert sum(m.file_bytes for m in found[:1]) <= benchmark.file_bytes(2), "what is asked of the file system is enough"


@pytest.mark.parametrize("name", H5BENCH_KINDS)
def test_a_file_that_is_too_small_or_gone_is_refused(name):
    """E3SM-IO removes its files unless it is told not to, which the runner does not do even when it is asked."""
    assert "bytes are in" in refusal(measured, name, kind_launch(name, files={}))
    if name == "e3sm":
        assert "-k" in h5bench_kind(name).words("")


@pytest.mark.parametrize("name", H5BENCH_KINDS)
def test_empty_and_truncated_outputs_are_refused(name):
    launch = kind_launch(name)
    for part in (0, 0.5, 0.9):
        cut = {result: told[: int(len(told) * part)] for result, told in launch.texts.items()}
        refusal(measured, name, kind_launch(name, texts=cut, stdout=launch.stdout[: int(len(launch.stdout) * part)]))


def test_other_ranks_than_the_launchers_are_refused():
    for name in ("metadata", "exerciser", "e3sm"):
        assert "the launcher started 4" in refusal(h5bench_kind(name).measurements, job(4), [kind_launch(name)])


# metadata


def test_metadatas_rates_are_of_all_ranks_and_not_of_one_as_it_prints_them():
    write, read = measured("metadata")
    _, row = text("h5bench_kinds/metadata.csv").splitlines()
    cells = row.split(",")
    assert write.logical_bytes == 20 * 100 * 16 * 16 * 8 * 2
    assert write.observed[0] == pytest.approx(write.logical_bytes / MIB / float(cells[14]))
    if write.raw:
        assert write.raw[0] == pytest.approx(2 * float(cells[19]), rel=0.06)
    assert read.cached_fraction == 1.0, "it reads what it has just written"


def test_a_metadata_build_without_assertions_is_refused_though_it_prints_rates():
    table = text("h5bench_kinds/metadata_ndebug.csv")
    assert "68117.22" in table
    launch = kind_launch("metadata", stdout=text("h5bench_kinds/metadata_ndebug.out"), texts={"h5bench.csv": table})
    assert "fsize" in refusal(measured, "metadata", launch)


def test_metadata_that_could_not_make_its_file_is_refused_though_it_ended_well():
    launch = kind_launch("metadata", stdout=text("h5bench_kinds/metadata_no_folder.out"), texts={})
    assert "Failed to create file" in refusal(measured, "metadata", launch)


def test_a_csv_of_metadata_beside_another_runs_stdout_is_refused():
    table = text("h5bench_kinds/metadata.csv")
    fields = table.splitlines()[1].split(",")
    fields[14] = f"{float(fields[14]) + 0.02:.2f}"
    launch = kind_launch("metadata", texts={"h5bench.csv": table.splitlines()[0] + "\n" + ",".join(fields) + "\n"})
    assert "stdout and h5bench.csv tell different results" in refusal(measured, "metadata", launch)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"stepz": "3"}, "stepz: unknown key; allowed: arrays, columns"),
        ({"rows": "1"}, "rows: Input should be greater than 1"),
        ({"layout": "chunky"}, "layout: Input should be 'contiguous' or 'chunked'"),
        ({"csv-file": "/tmp/o.csv"}, "csv-file: "),
        ({"process-rows": "2"}, "the process grid 2 x 2 is not the job's 2 ranks"),
        ({"scaling": "strong", "columns": "5"}, "16 x 5 cannot be divided by the process grid 1 x 2"),
        ({"mpi-io": ["collective"]}, "mpi-io: \"['collective']\": one line of text is expected"),
        ({"csv-file": "particles.h5"}, "csv-file: is the HDF5 file"),
    ],
)
def test_metadata_that_would_go_on_with_a_mistake_is_answered_before_the_run(changes, why):
    with pytest.raises(InputError) as raised:
        h5bench_kind("metadata", **changes)
    assert why in str(raised.value)


# exerciser


def test_the_exercisers_fastest_of_ten_is_told_and_was_compared():
    found = measured("exerciser")
    assert [(m.operation, m.logical_bytes) for m in found] == [
        ("write", 2 * 16384), ("read", 2 * 16384), ("write", 2 * 32768), ("read", 2 * 32768)
    ]  # fmt: skip
    assert all(m.verified and m.program.verifies and m.collective for m in found)
    rows = [line.split() for line in text("h5bench_kinds/exerciser.out").splitlines()]
    best = [float(row[column]) for row in rows if row[0] == "Max" for column in (3, 5)]
    assert [m.observed[0] for m in found] == pytest.approx(best, rel=0.02)


def test_what_the_exerciser_does_not_compare_is_not_verified():
    assert not any(m.verified for m in measured("exerciser", maxcheck="8"))


def test_wrong_data_are_refused_though_the_exerciser_ends_normally():
    launch = kind_launch("exerciser", stdout=text("h5bench_kinds/exerciser_wrong.out"))
    assert "All done -- Finishing normally." in launch.stdout
    assert "ERROR on read: index 3 doesn't match" in refusal(measured, "exerciser", launch)


def test_another_process_grid_and_other_blocks_than_were_asked_for_are_refused():
    with pytest.raises(InputError, match="8 x 4 is not the job's 2 ranks"):
        h5bench_kind("exerciser", dimranks="8 4")
    launch = kind_launch("exerciser", stdout=text("h5bench_kinds/exerciser_grid.out"))
    assert "WARNING!! - ndomains: 32 must be: 2" in refusal(measured, "exerciser", launch)
    with pytest.raises(InputError, match="8 x 256 elements are not whole blocks"):
        h5bench_kind("exerciser", fileblocks="3 256")
    launch = kind_launch("exerciser", stdout=text("h5bench_kinds/exerciser_blocks.out"))
    assert "it fell back to other blocks" in refusal(measured, "exerciser", launch, fileblocks="4 256")


def test_the_derived_type_counts_five_times_the_doubles_and_only_where_it_is_written():
    benchmark = h5bench.check_benchmark(
        "exerciser", "", {"numdims": "1", "minels": "8", "dimranks": "2", "derivedtype": "true"}, 2, "derived"
    )
    launch = kind_launch("exerciser", stdout=text("h5bench_kinds/exerciser_derived.out"))
    write, read = benchmark.measurements(job(2), [launch])
    assert "derived-type dataset is 8x larger" in launch.stdout
    assert (write.logical_bytes, read.logical_bytes) == (2 * 8 * (8 + 40), 2 * 8 * 8)
    assert (write.verified, read.verified) == (False, True)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"minels": "8 8", "numdims": "2"}, "numdims: has to come first"),
        ({"numdims": "5"}, "numdims: 5; allowed: 1, 2, 3, 4"),
        ({"numdims": "2", "minels": "8"}, "minels: '8': 2 whole numbers are expected"),
        ({"numdims": "1", "metacoll": "true"}, "metacoll: does nothing as h5bench builds it"),
        ({"numdims": "1", "indepio": "yes"}, "indepio: 'yes' is no for h5bench's runner"),
        ({"numdims": "1", "rshift": "2"}, "rshift: 2; below the number of ranks, 2"),
        ({"numdims": "1", "filestrides": "16"}, "filestrides: needs fileblocks"),
        ({"numdims": "1", "memblock": "3"}, "memblock: 8 elements are not whole blocks"),
        ({"numdims": "1", "minels": "99999999999"}, "minels: a size of"),
        ({"numdims": "1", "minel": "8"}, "minel: unknown key; allowed: numdims"),
    ],
)
def test_an_exerciser_that_would_fall_back_to_something_else_is_answered_before_the_run(values, why):
    with pytest.raises(InputError) as raised:
        h5bench.check_benchmark("exerciser", "", values, 2, "JSON")
    assert why in str(raised.value)


# macsio


def test_macsios_rate_is_all_ranks_bytes_over_the_slowest_ranks_seconds():
    m = measured("macsio")[0]
    assert m.observed[0] == pytest.approx(2.9138 / 0.1671867, rel=1e-4)
    assert m.observed[0] < 20.6450, "not the sum of ranks that wrote at different times"
    shared = measured("macsio_shared")[0]
    assert shared.collective
    assert shared.observed[0] == pytest.approx(2.9138 / 1.38, rel=1e-4), "a shared file counts once, not for each rank"


def test_a_rank_that_tells_no_result_and_a_total_that_is_none_are_refused():
    log = text("h5bench_kinds/macsio.log")
    for old, new, why in (
        (log[log.rindex("-----Processor 000001") :], "", "tells the results of 1 of 2 ranks"),
        ("2.9138 Mi;", "5.8276 Mi;", "bytes altogether are not the"),
        ("11.9308", "119.308", "119.308 MiB/s is not"),
    ):
        launch = kind_launch("macsio", texts={"macsio.log": log.replace(old, new)}, files=None)
        assert why in refusal(measured, "macsio", launch)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"parallel_file_mode": "MIF"}, "MIF or SIF and the number of files"),
        ({"part_size": "1 M"}, "part_size: '1 M'"),
        ({"num_dumps": "40"}, "of more its log keeps no result"),
        ({"dataset_growth": "2"}, "dataset_growth: is not understood here; allowed: parallel_file_mode"),
        ({"units_prefix_system": "decimal"}, "units_prefix_system: is not understood here"),
    ],
)
def test_a_macsio_that_cannot_be_judged_is_answered_before_the_run(changes, why):
    with pytest.raises(InputError) as raised:
        h5bench_kind("macsio", **changes)
    assert why in str(raised.value)


# e3sm


def test_e3sms_files_are_a_series_each():
    h0, h1 = measured("e3sm")
    assert (h0.pattern["output"], h1.pattern["output"]) == ("h0", "h1")
    told = [float(line.split()[-1]) for line in text("h5bench_kinds/e3sm.out").splitlines() if "MiB/sec (open" in line]
    assert [h0.observed[0], h1.observed[0]] == pytest.approx(told, rel=0.01)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"map": "/data/map.h5"}, "map: '/data/map.h5': one of E3SM-IO's own files is expected"),
        ({"t": "3"}, "t: the time slept would count as I/O"),
        ({"r": "0"}, "r: '0'; allowed: 1 to 100000"),
        ({"n": "1"}, "n: is not understood here; allowed: r, f, y, e, map"),
    ],
)
def test_an_e3sm_that_cannot_be_judged_is_answered_before_the_run(changes, why):
    with pytest.raises(InputError) as raised:
        h5bench_kind("e3sm", **changes)
    assert why in str(raised.value)


def test_reports_of_another_case_or_with_sleep_in_them_are_refused():
    for old, new, why in (
        ("Benchmarking F case", "Benchmarking G case", "a report of case G"),
        ("(sleep)   min/max =   0.0000 /   0.0000", "(sleep)   min/max =   2.0000 /   2.0000", "it slept 2 s"),
        ("==== HDF5 blob I/O =", "==== HDF5 canonical I/O =", "did not write HDF5 blobs"),
    ):
        launch = kind_launch("e3sm")
        assert old in launch.stdout
        assert why in refusal(measured, "e3sm", dataclasses.replace(launch, stdout=launch.stdout.replace(old, new)))


# openpmd


def openpmd_read(pattern="fx"):
    """After the write that the sample is of."""
    values = {"operation": "read", "pattern": pattern}
    return h5bench.check_benchmark("openpmd", "", values, 2, "JSON", before=[h5bench_kind("openpmd")])


def test_openpmds_bytes_follow_from_its_mesh_and_its_particles():
    elements = 2 * 512 * 256
    write = measured("openpmd")[0]
    assert write.logical_bytes == elements * (7 + 3) * 8
    assert write.repeats[0].total_seconds == pytest.approx(0.7535)
    launch = kind_launch("openpmd", stdout=text("h5bench_kinds/openpmd_read.out"), cached_fraction=0.5)
    read = openpmd_read().measurements(job(2), [launch])[0]
    assert (read.logical_bytes, read.cached_fraction) == (2 * 3 * 512 * 256 * 8, 0.5)


def test_an_openpmd_that_does_not_know_its_encoding_has_the_one_that_was_asked_for():
    said, printed = "f Expecting 3 dimensions. But given input is 1", text("h5bench_kinds/openpmd.out")
    launch = kind_launch("openpmd", stdout=f"{said}\n{printed}")
    assert measured("openpmd", launch)[0].repeats[0].total_seconds == pytest.approx(0.7535)
    launch = kind_launch("openpmd", stdout=f"{said.replace('f', '2 1', 1)}\n{printed}")
    assert "Expecting 3 dimensions" in refusal(measured, "openpmd", launch)


def test_the_read_of_h5benchs_own_sample_reads_nothing_and_is_refused_before_and_after():
    values = {key: value for key, value in H5BENCH_KINDS["openpmd"][1].items() if key != "encoding"}
    one_file = h5bench.check_benchmark("openpmd", "", values, 2, "JSON")
    with pytest.raises(InputError, match="it would read nothing"):
        h5bench.check_benchmark("openpmd", "", {"operation": "read", "pattern": "sy"}, 2, "JSON", before=[one_file])
    names = ("stdout", "out"), ("stderr", "err")
    launch = kind_launch("openpmd", **{k: text(f"h5bench_kinds/openpmd_nothing.{end}") for k, end in names})
    assert "Read Error in frontend" in refusal(openpmd_read("sy").measurements, job(2), [launch])
    mute = dataclasses.replace(launch, stderr="")
    assert "ran on 0 ranks" in refusal(openpmd_read("sy").measurements, job(2), [mute])


def test_a_mesh_that_openpmd_cannot_share_out_is_refused_though_it_ends_with_exit_code_0():
    launch = kind_launch("openpmd", stdout=text("h5bench_kinds/openpmd_unbalanced.out"), files={})
    assert "Error: Unable to balance load for 3D mesh" in refusal(measured, "openpmd", launch)
    with pytest.raises(InputError, match="the first or the second number has to be a multiple of the 2 ranks"):
        h5bench_kind("openpmd", grid="3 1 1")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"steps": "two"}, "steps: 'two': 1 whole numbers"),
        ({"grid": "2  1 1"}, "grid: '2  1 1': 3 whole numbers, one blank between"),
        ({"dim": "2"}, "dim: '2'; allowed: 3"),
        ({"balanced": "no"}, "balanced: 'no'; allowed: true"),
        ({"fileLocation": "/data"}, "fileLocation: unknown key"),
        ({"operation": "append"}, "operation: 'append'; allowed: write, read"),
        ({"operation": "read"}, "unknown key; allowed: operation, pattern"),
    ],
)
def test_an_openpmd_that_would_take_its_defaults_is_answered_before_the_run(changes, why):
    with pytest.raises(InputError) as raised:
        h5bench_kind("openpmd", **changes)
    assert why in str(raised.value)


# The runner's JSON


def suite(*benchmarks):
    document = {"mpi": {}, "vol": {}, "file-system": {}, "directory": "storage", "benchmarks": list(benchmarks)}
    return h5bench.read_json(json.dumps(document), 2, "/site/own.json")


def test_a_json_of_all_kinds_is_taken_as_it_is():
    found = suite(
        *({"benchmark": kind, "file": "f.h5", "configuration": values} for kind, values, _ in H5BENCH_KINDS.values())
    )
    assert [b.kind for b in found.benchmarks] == [kind for kind, _, _ in H5BENCH_KINDS.values()]
    e3sm = found.benchmarks[list(H5BENCH_KINDS).index("e3sm")]
    assert e3sm.words("")[-1] == "/site/storage/map_f_case_16p.h5", "as the runner looks for it"


def test_amrex_is_refused_by_name_as_it_tells_no_time():
    with pytest.raises(InputError, match=r"benchmark 1 \(amrex\): amrex prints no time"):
        suite({"benchmark": "amrex", "file": "f", "configuration": {"ncells": "64", "mode": "SYNC"}})


# What the runner leaves

RUNNER = SAMPLES / "h5bench_kinds" / "runner"


def run_folders():
    runs = h5bench.read_log((RUNNER / "own-h5bench.log").read_text(encoding="utf-8"))
    return [(run, {f.name: f.read_text(encoding="utf-8") for f in (RUNNER / run.folder).iterdir()}) for run in runs]


def test_a_runners_folders_are_measurements_or_refusals_though_it_ended_with_exit_code_0():
    found = {}
    for run, texts in run_folders():
        benchmark, launch = h5bench.read_folder(run, texts)
        try:
            measurements = benchmark.measurements(job(2), [launch])
            found[run.folder] = [f"{m.operation} {m.logical_bytes}" for m in measurements]
        except Refusal as refused:
            found[run.folder] = str(refused)
    kinds = [run.kind for run, _ in run_folders()]
    assert kinds == ["write", "read", "read", "metadata", "exerciser", "macsio", "e3sm"]
    write, read, failed, metadata, exerciser, macsio, e3sm = found.values()
    assert write == ["write 33554432"]
    assert read == ["read 33554432"]
    assert failed.startswith("read in d78a0468: h5bench_read ended with exit code 1")
    assert metadata == ["write 8192000", "read 8192000"]
    assert exerciser == ["write 32768", "read 32768"]
    assert macsio.endswith("macsio.log was not written"), "as the runner names it, with a folder, macsio writes none"
    assert [line.split()[0] for line in e3sm] == ["write", "write"]


def test_a_runners_log_tells_when_each_began_and_what_it_was_asked_for():
    run = run_folders()[4][0]
    assert str(run.began) == "2026-11-21 18:21:56"
    assert run.ranks == 2
    assert run.command[1:3] == ("--numdims", "2")
    text_ = (RUNNER / "own-h5bench.log").read_text(encoding="utf-8")
    cut = h5bench.read_log(text_[: text_.index("SUCCESS")])
    assert [(r.kind, r.exit_code) for r in cut] == [("write", None)]
    assert h5bench.read_log("") == []
    with pytest.raises(Refusal, match="the log does not tell its command"):
        h5bench.read_folder(dataclasses.replace(run, launcher=()), {})
    with pytest.raises(Refusal, match=r"there is no h5bench\.cfg"):
        h5bench.read_folder(run_folders()[0][0], {})
