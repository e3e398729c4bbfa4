"""Outputs that a site has kept become its history: once, marked, and nothing that is not told or not true."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from conftest import CHECKOUT, needs_root
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_upstream_fuzz import damaged
from upstream_outputs import SAMPLES, h5bench_configuration, h5bench_launch, ini, job, text

from iogauge import bands_fit, cli, series
from iogauge.adapters import h5bench, hdf5_iotest, ior
from iogauge.adapters.upstream import Launch
from iogauge.bands_fit import Fitted, fit
from iogauge.history import importing, schema
from iogauge.history.database import History
from iogauge.history.export import export
from iogauge.history.importing import Given, Imported, Refused, choose, known_digests, read_all, store
from iogauge.history.past import last_good
from iogauge.history.reading import list_series, read_measurements, read_runs, read_software
from iogauge.measurement import MIB

GIVEN = Given(site="here", file_system="disk", type="other", date=datetime(2026, 3, 1, 2, 0), ranks_per_node=4)
MPIIO = "-a MPIIO -c -w -r -C -e -b 4m -t 1m -s 2 -i 2"


def found_in(*paths: Path, known: set[str] | None = None, **said: Any) -> tuple[list[Imported], list[Refused]]:
    chosen = choose(paths)
    found = list(read_all(chosen.outputs, replace(GIVEN, **said), known or set()))
    refused = [*chosen.refused, *(one for one in found if isinstance(one, Refused))]
    return [one for one in found if isinstance(one, Imported)], refused


def one_in(name: str, **said: Any) -> Imported:
    (one,), refused = found_in(SAMPLES / name, **said)
    assert not refused
    return one


def why_not(path: Path, **said: Any) -> str:
    imported, refused = found_in(path, **said)
    assert not imported
    return refused[0].reason


def series_in(one: Imported) -> dict[str, str]:
    """Key to fingerprint."""
    return {row.key: row.fingerprint for case in one.report.cases for row, _ in case.rows}


# --- what is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "version", "write"),
    [
        ("ior-3.0.1-mpiio.txt", "3.0.1", (16 / 0.254953, 16 / 0.044004)),
        ("ior-3.3.0-mpiio.txt", "3.3.0", None),
        ("ior-3.3.0.json", "3.3.0", None),
        ("ior-4.0.0-mpiio.txt", "4.0.0", None),
        ("ior-4.0.0.json", "4.0.0", None),
        ("HDF5-coll.txt", "4.1.0+dev", (64 / 0.425815, 64 / 0.144485)),
    ],
)
def test_old_and_new_reports_of_ior_tell_the_same_and_when_they_were_made(name, version, write):
    one = one_in(f"ior/{name}", date="text")
    assert one.form == f"IOR {version}"
    ((key, first), (other, _)) = one.measured
    interface = "hdf5" if "HDF5" in name else "mpiio"
    assert (key.split("/")[:3], key.split("/")[4:]) == (
        ["ior", "write", "disk"],
        ["shared-segmented-collective", interface],
    )
    assert other == key.replace("write", "read")
    assert len(first.repeats) == 2
    if write:
        assert first.observed == pytest.approx(write)
    assert (one.began_by, datetime.fromtimestamp(one.report.run["started"]).date()) == (
        "its own",
        datetime(2026, 11, 21).date(),
    )


def test_an_old_ior_that_could_not_sync_is_another_configuration():
    old, new = (series_in(one_in(f"ior/ior-{version}-mpiio.txt")) for version in ("3.0.1", "3.3.0"))
    assert old.keys() == new.keys()
    assert all(old[key] != new[key] for key in old), "IOR 3.0 said that it leaves -e aside"
    posix = [series_in(one_in(f"ior/ior-{version}-posix.txt")) for version in ("3.0.1", "3.2.1")]
    assert posix[0] == posix[1]


def test_iors_csv_needs_its_command_line_and_has_to_fit_it():
    path = SAMPLES / "ior" / "ior-4.0.0.csv"
    assert "give --configuration 'THE COMMAND LINE'" in why_not(path)
    one = one_in("ior/ior-4.0.0.csv", configuration=f"ior {MPIIO}")
    assert series_in(one) == series_in(one_in("ior/ior-4.0.0-mpiio.txt"))
    assert "is not 8388608 bytes" in why_not(path, configuration=MPIIO.replace("-s 2", "-s 1"))
    assert "a block of 4194304 bytes" in why_not(path, configuration=MPIIO.replace("-b 4m", "-b 8m"))
    assert "2 of 3 results of write" in why_not(path, configuration=MPIIO.replace("-i 2", "-i 3"))


def test_several_reports_in_one_output_of_a_job_are_all_taken(tmp_path):
    path = tmp_path / "slurm-4711.out"
    path.write_text("Loading modules\n" + text("ior/ior-3.0.1-mpiio.txt") + text("ior/ior-3.0.1-posix.txt"))
    (one,), _ = found_in(path)
    assert [key.split("/")[4] for key, _ in one.measured][::2] == ["shared-segmented-collective", "file-per-process"]
    path.write_text(path.read_text().replace("735.63", "935.63"))
    assert why_not(path).startswith("report 2 of 2: write: 935.63 MiB/s is not")


def test_a_folder_of_h5benchs_runner_is_taken_with_its_configuration_and_the_time_of_its_log():
    imported, refused = found_in(SAMPLES / "h5bench_runner", date="text", nodes=1, ranks_per_node=None)
    assert not refused
    assert [key for one in imported for key, _ in one.measured] == [
        "h5bench/write/disk/1x2/CC/hdf5",
        "h5bench/read/disk/1x2/CC/hdf5",
    ]
    began = [datetime.fromtimestamp(one.report.run["started"]) for one in imported]
    assert began == [datetime(2026, 11, 21, 18, 9, 46), datetime(2026, 11, 21, 18, 10, 0)]


def test_every_kind_that_h5benchs_runner_ran_is_taken_by_its_log_and_what_failed_is_named():
    imported, refused = found_in(SAMPLES / "h5bench_kinds" / "runner", date="text", nodes=1)
    assert {one.form for one in imported} == {
        "h5bench e3sm", "h5bench write", "h5bench exerciser", "h5bench read", "h5bench metadata",
    }  # fmt: skip
    assert any("Failed to read dimensions" in one.reason for one in refused)
    assert [one.path.name for one in refused] == ["stdout"] * len(refused)


def test_a_csv_of_h5bench_is_nothing_without_its_configuration(tmp_path):
    shutil.copy(SAMPLES / "h5bench" / "write_CC_2d.csv", tmp_path / "result.csv")
    assert "h5bench.cfg has to be beside it" in why_not(tmp_path / "result.csv")
    shutil.copy(SAMPLES / "h5bench" / "write_CC_2d.cfg", tmp_path / "result.cfg")
    (one,), _ = found_in(tmp_path)
    assert series_in(one) == series_in(one_in("h5bench/write_CC_2d.csv"))
    (tmp_path / "result.cfg").write_text((tmp_path / "result.cfg").read_text().replace("TIMESTEPS=2", "TIMESTEPS=3"))
    assert "its configuration makes" in why_not(tmp_path)


def test_hdf5_iotests_configuration_follows_from_its_rows():
    settings_of = hdf5_iotest.configuration_of(text("hdf5_iotest/np4.csv"))
    asked = hdf5_iotest.read_ini(ini("np4"), 4)
    ignored = {"alignment_threshold", "single_process", "hdf5_file", "csv_file", "dataset_rank", "slowest_dimension", "layout",
               "fill_values", "mpi_io", "libver_bound_low", "libver_bound_high"}  # fmt: skip
    assert settings_of.model_dump(exclude=ignored) == asked.model_dump(exclude=ignored)
    one = one_in("hdf5_iotest/np4.csv")
    assert len(series_in(one)) == 192
    assert one_in("hdf5_iotest/np2_one.csv").measured[0][1].benchmark == "hdf5_iotest"


def test_a_log_of_darshan_is_a_series_of_its_program_and_keeps_its_summary():
    path = CHECKOUT / "tests" / "darshan_logs" / "h5bench_write_CC_1d.darshan"
    (one,), _ = found_in(path, date="text")
    ((key, m),) = one.measured
    assert key == "darshan/write/disk/1x4/h5bench_write/hdf5"
    (case,) = one.report.cases
    assert m.logical_bytes == 256 * MIB == case.darshan["layers"]["H5D"]["counters"]["H5D_BYTES_WRITTEN"]
    assert m.observed[0] == pytest.approx(256 / case.darshan["layers"]["H5D"]["aggregate_seconds"])


def test_benchio_does_not_say_what_its_size_is_of():
    path = SAMPLES / "benchio" / "np4_local.txt"
    assert "give --configuration 'ITS ARGUMENTS' (as '128 128 128 local" in why_not(path)
    arguments = "128 128 128 local serial proc node mpiio hdf5 unstriped striped"
    assert "benchio/write/disk/1x4/shared-halo1-striped-collective/hdf5" in series_in(
        one_in("benchio/np4_local.txt", configuration=arguments)
    )
    assert "128x128x128, 64x64x64 was asked for" in why_not(path, configuration=arguments.replace("128", "64"))


def test_h5perf_and_h5perf_serial_are_read_and_known_apart():
    assert "h5perf/write/disk/1x2/shared-contiguous/hdf5" in series_in(one_in("h5perf/default.txt"))
    ((key, m), *_) = one_in("h5perf_serial/1g.txt").measured
    assert key == "h5perf_serial/write/disk/1x1/file-per-process-1d-sec2/posix"
    assert len(m.repeats) == 2, "the fastest and the slowest of several iterations"


def test_files_are_known_by_content_and_others_in_a_folder_are_left_aside(tmp_path):
    shutil.copy(SAMPLES / "ior" / "ior-3.3.0.json", tmp_path / "a.darshan")
    shutil.copy(CHECKOUT / "tests" / "darshan_logs" / "ior_mpiio_collective.darshan", tmp_path / "b.json")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    shutil.copy(SAMPLES / "hdf5_iotest" / "np4.csv", tmp_path / "deep" / "er" / "c.txt")
    (tmp_path / "data.h5").write_bytes(os.urandom(1 << 20))
    (tmp_path / "empty").touch()
    chosen = choose([tmp_path])
    assert [form for _, form in chosen.outputs] == ["IOR", "Darshan", "hdf5_iotest"]
    assert (chosen.refused, chosen.others) == ([], 2)
    named = choose([tmp_path / "data.h5", tmp_path / "empty", tmp_path / "none"])
    assert [one.reason.partition(";")[0] for one in named.refused] == [
        "is no output that is known", "is empty", "does not exist",
    ]  # fmt: skip


# --- what meets -------------------------------------------------------------------------------------------------------


def test_ior_as_our_check_runs_it_meets_the_checks_series():
    """The check writes and reads in launches of their own; a site did both in one."""
    asked = {
        "collective": True,
        "file_per_process": False,
        "block_bytes": 4 * MIB,
        "transfer_bytes": MIB,
        "segments": 2,
    }
    for operation in ("write", "read"):
        words = ior.command("mpiio", operation, file="f", result="r", **asked)
        command = ior.read_command(" ".join(words))
        assert {"C"} <= command.flags
        assert ("e" in command.flags) == (operation == "write")
    ours = ior.measurements(job(2), [Launch(stdout=text("ior/ior-4.0.0-mpiio.txt"), exit_code=0)])
    expected = {series.key(m, "disk"): series.fingerprint(m, "vol") for m in ours}
    assert series_in(one_in("ior/ior-4.0.0-mpiio.txt", volume="vol")) == expected
    assert series_in(one_in("ior/ior-4.0.0-mpiio.txt", volume="another")).items().isdisjoint(expected.items())


def test_an_output_of_another_arm_goes_into_that_arms_series():
    name = "ior/ior-4.0.0-mpiio.txt"
    assert set(series_in(one_in(name, arm="gpu+hdf5-2"))) == {f"{key}@gpu+hdf5-2" for key in series_in(one_in(name))}


def test_h5bench_as_our_check_runs_it_meets_the_checks_series():
    ours = h5bench.measurement(job(4), [h5bench_launch("write_CC_2d")], h5bench_configuration("write_CC_2d", "write"))
    assert series_in(one_in("h5bench/write_CC_2d.csv")) == {series.key(ours, "disk"): series.fingerprint(ours, "")}


def test_what_a_site_runs_as_its_own_goes_on_in_the_checks_own_series():
    own = "-a MPIIO -c -w -r -C -e -b 4m -t 1m -s 2 -i 2 -k"
    name = hashlib.sha256(own.encode()).hexdigest()[:8]
    (key, _) = series_in(one_in("ior/ior-3.3.0-mpiio.txt", configuration=own, own=True))
    assert key.split("/")[4] == series.label_of(
        "ior", {"file_per_process": False, "segments": 2, "own": name}, collective=True
    )
    assert "not as --configuration says" in why_not(
        SAMPLES / "ior" / "ior-3.3.0-mpiio.txt", configuration=own.replace("-e ", ""), own=True
    )
    suite = SAMPLES / "h5bench_runner" / "suite.json"
    imported, _ = found_in(SAMPLES / "h5bench_runner", configuration=suite.read_text(), own=True, nodes=1)
    labels = [key.split("/")[4] for one in imported for key in series_in(one)]
    assert [label.partition(".")[2] for label in labels] == ["1", "2"], "the first and the second of the JSON"
    assert "--own" in why_not(SAMPLES / "h5perf" / "default.txt", own=True)


def test_a_read_on_one_node_is_from_the_page_cache_unless_it_is_said_to_be_cold():
    def cached(**said: Any) -> list[str]:
        (case,) = one_in("ior/ior-3.3.0-mpiio.txt", **said).report.cases
        return [row.band_status for row, _ in case.rows]

    assert cached() == ["missing", "cached"]
    assert cached(reads="cold") == ["missing", "missing"]
    assert cached(type="memory") == ["missing", "missing"]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ior/ior-3.0.1-stonewall-v.txt", "stopped by a deadline"),
        ("ior/ior-3.2.1-stdout.json", "the report has no end"),
        (
            "ior/corrupt-sf.json",
            "Incorrect data on read",
        ),  # the JSON itself is clean, what was printed beside it is not
        ("ior/corrupt-R.json", "not JSON"),
        ("ior/corrupt-128-transfers.txt", "Incorrect data on read (128"),
        ("ior/stonewall.txt", "WARNING"),
        ("h5bench/read_LDC_2d.csv", "read by rank 0 alone"),
        ("h5bench/append.csv", "append writes one and the same part"),
        ("hdf5_iotest/ndebug.csv", "built without assertions"),
        ("hdf5_iotest/restart.csv", "cases have no row"),
        ("benchio/missing_dir_mpiio.txt", "Open error on rank"),
        ("h5perf/missing_folder.txt", "h5perf"),
    ],
)
def test_what_was_never_true_does_not_become_true_by_being_old(name, why):
    assert why in why_not(SAMPLES / name)


def test_what_nobody_tells_is_asked_for():
    assert "give --nodes or --ranks-per-node" in why_not(SAMPLES / "hdf5_iotest" / "np4.csv", ranks_per_node=None)
    assert "give --date mtime" in why_not(SAMPLES / "hdf5_iotest" / "np4.csv", date="text")
    assert "4 ranks do not fill 2 nodes with 3 each" in why_not(SAMPLES / "hdf5_iotest" / "np4.csv", ranks_per_node=3)
    assert "which cannot be right" in why_not(SAMPLES / "hdf5_iotest" / "np4.csv", date=datetime(1999, 1, 1))
    one = one_in("hdf5_iotest/np4.csv", date="mtime", nodes=2, ranks_per_node=None)
    assert (one.began_by, one.measured[0][0].split("/")[3]) == ("the file's", "2x2")


OUTPUTS = ("ior/ior-3.0.1-mpiio.txt", "ior/ior-3.3.0.json", "h5bench/write_CC_2d.csv", "hdf5_iotest/np2_one.csv",
           "h5perf_serial/1g.txt", "benchio/np4_local.txt")  # fmt: skip


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), name=st.sampled_from(OUTPUTS))
def test_damaged_outputs_are_refused_or_tell_what_they_told(data, name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    path = folder / Path(name).name
    if name.startswith("h5bench"):
        shutil.copy(SAMPLES / name.replace(".csv", ".cfg"), folder)
    configuration = "128 128 128 local serial proc node mpiio hdf5 unstriped striped" if "benchio" in name else ""
    path.write_text(data.draw(damaged(text(name))), encoding="utf-8")
    true, _ = found_in(SAMPLES / name, configuration=configuration)
    rates = {round(m.amount) for one in true for _, m in one.measured}
    imported, _ = found_in(path, configuration=configuration)
    for one in imported:
        for _, m in one.measured:
            assert all(0 < rate < 1e9 for rate in m.observed)
            assert name.startswith(("hdf5_iotest", "benchio", "h5perf")) or round(m.amount) in rates


# --- the history ------------------------------------------------------------------------------------------------------


def take(history: History, *paths: Path, **said: Any) -> int:
    imported, _ = found_in(*paths, known=known_digests(history, "here"), **said)
    return store(history, [one for one in imported if one.new])


def runs_of(history: History) -> list[Any]:
    with history.reading() as connection:
        return list(connection.execute(sa.select(schema.runs).order_by(schema.runs.c.id)))


def test_an_import_is_marked_with_its_file_and_digest_and_has_no_placement_and_no_verdict(history):
    path = SAMPLES / "ior" / "ior-3.3.0-mpiio.txt"
    assert take(history, path, versions={"mpi": "Open MPI 4.1.4"}) == 2
    (run,) = runs_of(history)
    assert (run.origin, run.report, run.night.isoformat()) == ("import", str(path), "2026-02-28")
    assert (
        run.sha256 == subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[0]
    )
    with history.reading() as connection:
        (case,) = connection.execute(sa.select(schema.cases))
        verdicts = connection.execute(sa.select(schema.measurements.c.verdict)).scalars().all()
        (versions,) = read_software(connection).values()
    assert (case.placement_id, case.verdict, verdicts) == (None, "no reference", ["no reference"] * 2)
    assert "placement, exit code and page cache are not proven" in case.reasons[0]
    assert (versions["mpi"], versions["kernels"]) == ("Open MPI 4.1.4", None)


def test_importing_twice_adds_nothing_under_another_name_neither(history, tmp_path):
    assert take(history, SAMPLES / "ior" / "ior-3.3.0-mpiio.txt") == 2
    shutil.copy(SAMPLES / "ior" / "ior-3.3.0-mpiio.txt", tmp_path / "copy.log")
    assert take(history, tmp_path, SAMPLES / "ior" / "ior-3.3.0-mpiio.txt") == 0
    imported, _ = found_in(tmp_path)
    assert store(history, imported) == 0, "whoever read before the other one wrote"
    assert len(runs_of(history)) == 1


def nights_of_ior(folder: Path, count: int) -> Path:
    """As many outputs, a night each, all of one series."""
    folder.mkdir(exist_ok=True)
    whole = text("ior/ior-3.3.0-mpiio.txt")
    for number in range(count):
        when = datetime(2026, 1, 1, 2, 0) + timedelta(days=number)
        (folder / f"{number}.txt").write_text(
            whole.replace("Sat Nov 21", f"{when:%a %b %d}").replace("TestID", f"TestID{number}")
        )
    return folder


def test_a_past_of_fourteen_nights_is_a_reference_that_says_where_it_is_from(history, tmp_path):
    assert take(history, nights_of_ior(tmp_path / "past", 14), date="text") == 28
    with history.reading() as connection:
        one = next(s for s in list_series(connection) if "/write/" in s.key)
        (measured,) = read_measurements(connection, [one])
        fitted = fit(measured, read_runs(connection), read_software(connection))
        assert last_good(connection, "here", one.key, one.fingerprint, 1 << 40) is None, "not proven to be good"
    assert isinstance(fitted, Fitted)
    assert fitted.bands.provenance.method == f"{bands_fit.METHOD}; 14 nights imported, their placement not proven"


def test_an_export_tells_what_was_imported(history, tmp_path):
    take(history, SAMPLES / "hdf5_iotest" / "np2_one.csv", SAMPLES / "h5bench" / "write_CC_2d.csv", ranks_per_node=2)
    with history.reading() as connection:
        assert export(connection, tmp_path / "out.csv") == 3
    lines = (tmp_path / "out.csv").read_text().splitlines()
    place = lines[0].replace('"', "").split(",").index("origin")
    assert {line.replace('"', "").split(",")[place] for line in lines[1:]} == {"import"}


def test_two_importers_at_once_keep_everything_once(location, tmp_path):
    folder = nights_of_ior(tmp_path / "past", 6)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            take(History(location), folder, date="text")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(runs_of(History(location))) == 6


def test_an_import_that_breaks_off_leaves_whole_outputs_only_and_goes_on(history, tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "_BATCH", 2)
    folder = nights_of_ior(tmp_path / "past", 5)

    def broken(done: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    imported, _ = found_in(folder, date="text")
    with pytest.raises(KeyboardInterrupt):
        store(history, imported, broken)
    assert len(runs_of(history)) == 4
    assert take(history, folder, date="text") == 2
    assert len(runs_of(history)) == 5


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IOGAUGE_SCRATCH", str(tmp_path))
    monkeypatch.delenv("IOGAUGE_HISTORY", raising=False)
    return tmp_path


def iogauge(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.main, ["import", "--file-system", "disk", *map(str, arguments)])


def test_a_dry_run_shows_what_would_be_there_and_changes_nothing(home):
    result = iogauge(SAMPLES / "ior" / "ior-3.3.0-mpiio.txt", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "ior/write/disk/1x2/shared-segmented-collective/mpiio" in result.output
    assert "would import 1 outputs with 2 measurements" in result.output
    assert not (home / "home").exists()


def test_one_bad_output_is_named_and_all_others_are_in(home):
    bad = home / "cut.txt"
    bad.write_text(text("ior/ior-3.3.0-mpiio.txt")[:2000])
    first = iogauge(bad, SAMPLES / "ior" / "ior-3.0.1-mpiio.txt", SAMPLES / "ior" / "ior-3.3.0.json")
    assert first.exit_code == 2
    assert first.stderr.splitlines() == [f"iogauge: error: {bad}: ior: the report has no end"]
    assert "imported 2 outputs with 4 measurements; 0 in the history already, 1 refused" in first.output
    again = iogauge(SAMPLES / "ior" / "ior-3.0.1-mpiio.txt", SAMPLES / "ior" / "ior-3.3.0.json")
    assert (again.exit_code, "imported 0 outputs" in again.output, "2 in the history already" in again.output) == (
        0,
        True,
        True,
    )
    listed = CliRunner().invoke(cli.main, ["history", "list"]).output
    assert "imported from ior-3.0.1-mpiio.txt, IOR 3.0.1; its time is its own" in listed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--file-system", "tape"], "--file-system: 'tape'; site local has: "),
        (["--site", "mars"], "no site configuration for 'mars'"),
        (["--software", "linux=6"], "--software: linux=6; allowed: hdf5="),
        (["--own"], "--own: is for IOR"),
        (["--date", "yesterday"], "--date"),
        (["--nodes", "0"], "--nodes"),
    ],
)
def test_a_wrong_option_is_answered_with_what_is_allowed(home, arguments, message):
    result = iogauge(SAMPLES / "ior" / "ior-3.0.1-mpiio.txt", *arguments)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert not (home / "home" / "history.sqlite").exists() or "--own" in arguments


def test_a_database_that_is_broken_newer_or_no_history_is_left_as_it_is(home):
    path = SAMPLES / "ior" / "ior-3.0.1-mpiio.txt"
    database = home / "h.sqlite"
    database.write_bytes(b"SQLite format 3\0" + os.urandom(4096))
    before = database.read_bytes()
    result = iogauge(path, "--history", database)
    assert (result.exit_code, "the database says" in result.stderr) == (2, True), result.stderr
    assert database.read_bytes() == before
    database.unlink()
    History(str(database)).upgrade()
    with History(str(database)).writing() as connection:
        connection.execute(sa.text("UPDATE iogauge_version SET version_num = '9999'"))
    result = iogauge(path, "--history", database)
    assert (result.exit_code, "was written by a newer iogauge (revision 9999" in result.stderr) == (2, True), (
        result.stderr
    )


@needs_root
def test_a_read_only_or_full_disk_is_told_and_what_was_there_stays(home):
    mounted = home / "mounted"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", mounted], check=True)
    try:
        database = mounted / "history.sqlite"
        assert iogauge(SAMPLES / "ior" / "ior-3.0.1-mpiio.txt", "--history", database).exit_code == 0
        with suppress(OSError):
            (mounted / "filler").write_bytes(b"x" * (256 << 10))
        full = iogauge(SAMPLES / "hdf5_iotest" / "np4.csv", "--date", "mtime", "--nodes", "1", "--history", database)
        assert (full.exit_code, "full" in full.stderr) == (2, True), full.stderr
        subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)
        result = iogauge(SAMPLES / "ior" / "ior-3.3.0.json", "--history", database)
        assert (result.exit_code, "read" in result.stderr) == (2, True), result.stderr
        assert len(runs_of(History(str(database)))) == 1
    finally:
        subprocess.run(["umount", "-l", mounted], check=True)
