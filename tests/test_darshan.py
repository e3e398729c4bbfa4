"""Darshan's logs, read and diagnosed: real logs, each rule once where it speaks and once where it is silent."""

from __future__ import annotations

import multiprocessing
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import CHECKOUT
from samples import case, make_night

from iogauge import terminal
from iogauge.adapters.kernel import read_records
from iogauge.cli import main
from iogauge.darshan.changes import changes, with_changes
from iogauge.darshan.differences import differences, metadata_shares
from iogauge.darshan.log import read_log
from iogauge.darshan.overhead import overheads
from iogauge.darshan.preload import calls_by_event_sets, configuration, files_in_case_folder, files_of_case
from iogauge.darshan.profile import Profile, profile
from iogauge.darshan.rules import RULES, THRESHOLDS, Claim, diagnose
from iogauge.darshan.summary import MODULES, Summary
from iogauge.darshan.witness import claim_of, witness
from iogauge.errors import Refusal
from iogauge.past import Good
from iogauge.report import render

LOGS = CHECKOUT / "tests" / "darshan_logs"
NAMES = sorted(path.stem for path in LOGS.glob("*.darshan"))
MIB = 1 << 20

_read: dict[str, Summary] = {}


def summary(name: str) -> Summary:
    """Of a kernel's log the data files alone."""
    if name not in _read:
        only = files_of_case() if name.startswith("kernel") else ""
        _read[name] = read_log(LOGS / f"{name}.darshan", only=only)
    return _read[name]


def measurements(name: str) -> list[Any]:
    return read_records(LOGS / f"{name}.jsonl")


def changed(found: Summary, module: str, **values: Any) -> Summary:
    """The same with other values of one module."""
    layers = {**found.layers, module: found.layers[module].model_copy(update=values)}
    return found.model_copy(update={"layers": layers})


# --- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_summary_survives_json_and_its_aggregate_rate_is_darshans_own(name):
    import darshan
    from darshan.backend.cffi_backend import accumulate_records

    found = read_log(LOGS / f"{name}.darshan", only=".")
    assert Summary.model_validate_json(found.model_dump_json(by_alias=True)) == found
    report = darshan.DarshanReport(str(LOGS / f"{name}.darshan"), read_all=False)
    for module in ("POSIX", "MPI-IO", "STDIO"):
        if module not in report.modules:
            continue
        report.mod_read_all_records(module)
        theirs = accumulate_records(report.records[module].to_df(), module, found.ranks).derived_metrics
        layer = found.layers[module]
        assert layer.bytes_read + layer.bytes_written == theirs.total_bytes
        assert layer.aggregate_seconds == pytest.approx(theirs.agg_time_by_slowest)
        assert (layer.aggregate_mib_s or 0) == pytest.approx(theirs.agg_perf_by_slowest)


def test_counts_are_those_of_the_benchmark():
    """IOR: 4 ranks, two segments of 8 MiB in transfers of 1 MiB, written and read."""
    found = summary("ior_hdf5_collective")
    layer = found.layers["H5D"]
    assert (layer.bytes_written, layer.bytes_read, layer.calls) == (64 * MIB, 64 * MIB, 128)
    assert found.layers["MPI-IO"]["COLL_WRITES"] == 64
    assert (found.ranks, layer.least_ranks, layer.most_ranks) == (4, 4, 4)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "Darshan left no log: darshan.log does not exist"),
        (b"", "darshan.log is empty"),
        (b"no log at all, but some text that is long enough" * 100, "darshan.log cannot be read"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, content, reason):
    path = tmp_path / "darshan.log"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Refusal, match=re.escape(reason)):
        read_log(path)


def test_a_log_that_is_cut_off_anywhere_or_damaged_is_refused_and_never_crashes(tmp_path):
    """Darshan's library itself is killed by a signal on some of these."""
    whole = (LOGS / "ior_posix_file_per_process.darshan").read_bytes()
    path = tmp_path / "darshan.log"
    for length in range(1, len(whole), len(whole) // 6):
        path.write_bytes(whole[:length])
        with pytest.raises(Refusal):
            read_log(path)
    for place in range(8, 400, 48):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with suppress(Refusal):
            read_log(path)
    assert not multiprocessing.active_children()


def test_a_log_that_darshan_itself_calls_partial_is_refused():
    """The runtime was given room for two datasets, and the case has eight."""
    with pytest.raises(Refusal, match=r"it is partial, no memory was left for all records of H5D"):
        read_log(LOGS / "refused" / "partial.darshan")


def test_a_log_without_the_records_that_a_case_needs_is_refused():
    with pytest.raises(Refusal, match=r"has no H5F records of the case's files, only of POSIX"):
        read_log(LOGS / "kernel_posix.darshan", only=files_of_case(), needs=("H5F",))


def test_a_program_that_waits_for_event_sets_is_told_from_others(tmp_path):
    """As h5bench's patterns do, in the mode SYNC too, wherever their HDF5 has event sets."""
    program = tmp_path / "h5bench_write"
    program.write_bytes(b"\x7fELF\x00H5Fcreate\x00H5Dwrite\x00")
    assert not calls_by_event_sets(program)
    program.write_bytes(b"\x7fELF\x00H5Fcreate_async\x00H5ESwait\x00")
    assert calls_by_event_sets(program)


def test_the_runtime_looks_at_the_cases_files_and_keeps_room_for_all():
    assert (
        configuration("/iogauge-case") == "NAME_EXCLUDE . *\nNAME_INCLUDE /iogauge-case *\nDISABLE_SHARED_REDUCTION\n"
    )
    many = configuration("/x", records=16384, ranks=4096, without=("H5D",))
    assert "MAX_RECORDS 16384 " in many
    assert "MODMEM 68\nNAMEMEM 17\nMOD_DISABLE H5D\n" in many
    assert "DISABLE_SHARED_REDUCTION" not in many


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("/s/iogauge-case.a/iogauge-case.a-case0-file0.h5", True),
        ("/s/iogauge-case.a/iogauge-case.a-case0-file0.h5:Timestep_0/x", True),
        ("/s/iogauge-case.a/iogauge-case.a-case1-file0.dat", False),
        ("/s/iogauge-case.a/iogauge-case.a-case0-file0.dat.locktest.1", False),
        ("/tmp/ompi.n1.0/1/iogauge-case.a-case0-file0.dat_cid-1-7.sm", False),
    ],
)
def test_data_files_are_told_from_mpis_own(name, chosen):
    assert bool(re.search(files_of_case(), name)) == chosen


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("/s/iogauge-case.a/hdf5", True),
        ("/s/iogauge-case.a/hdf5.00000003", True),
        ("/s/iogauge-case.a/hdf5:/Dataset-0000", True),
        ("/s/iogauge-case.a/hdf5.locktest.0", False),
        ("/s/iogauge-case.a/mpiio", False),
        ("/s/iogauge-case.a/ior.json", False),
        ("/s/hdf5", False),
    ],
)
def test_a_benchmarks_data_files_are_told_from_its_others(name, chosen):
    assert bool(re.search(files_in_case_folder(r"hdf5(?:\.\d{8})?"), name)) == chosen


# --- rules --------------------------------------------------------------------------------------------------------

#: Rule, log, claim, words that it says; without words it is silent.
CI = Claim(interface="hdf5", bytes_written=256 * MIB, bytes_read=0)
TWO_NODES = Claim(hosts={"n2": [0, 1], "n3": [2, 3]})
SPOKEN: list[tuple[str, str, Claim, str]] = [
    ("bytes-disagree", "h5bench_write_CI_1d", CI, "256.0 MiB written against 2.0 GiB in H5D"),
    ("bytes-disagree", "h5bench_write_CC_1d", CI, ""),
    ("bytes-disagree", "h5bench_write_CI_1d", CI.model_copy(update={"whole_elements": False}), ""),
    ("sharing", "ior_posix_file_per_process", Claim(ranks_per_file=4), "for 4 ranks, and each of 4 files was used by 1"),
    ("sharing", "ior_hdf5_independent", Claim(ranks_per_file=4), ""),
    ("independent-instead-of-collective", "kernel_ci_collective", Claim(collective=True), "of 128 transfers 0 reached"),
    ("independent-instead-of-collective", "ior_hdf5_independent", Claim(collective=True), "of 128 transfers 0 reached"),
    ("independent-instead-of-collective", "ior_hdf5_collective", Claim(collective=True), ""),
    ("independent-instead-of-collective", "ior_hdf5_independent", Claim(collective=False), ""),
    ("read-modify-write", "h5bench_write_CI_1d", CI, "1.9 GiB were read beside what was asked for, with 4092 changes"),
    ("read-modify-write", "h5bench_write_CC_1d", CI, ""),
    ("write-amplification", "h5bench_write_CI_1d", CI, "2.0 GiB were written for 256.0 MiB of the benchmark's own, 8.0 times"),
    ("write-amplification", "hdf5_iotest_one_case", Claim(), "19.5 MiB were written for 9.8 MiB"),  # fill values
    ("write-amplification", "h5bench_write_CC_1d", CI, ""),
    ("read-amplification", "kernel_ci_collective", Claim(bytes_read=16 * MIB), "for 16.0 MiB of the benchmark's own"),
    ("read-amplification", "h5bench_read_full_1d", Claim(bytes_read=256 * MIB), ""),
    ("small-accesses", "kernel_small", Claim(), "100% of 2048 reads and writes of the file system are of 100.0 KiB or less"),
    ("small-accesses", "ior_hdf5_independent", Claim(), ""),
    ("unaligned-accesses", "ior_hdf5_independent", Claim(), "do not begin at a multiple of 4.0 KiB"),
    ("unaligned-accesses", "kernel_posix", Claim(), ""),
    ("metadata-time", "kernel_no_fsync", Claim(), "spent in MPI-IO went into opening"),
    ("metadata-time", "kernel_no_fsync", Claim(counts_operations=True), ""),
    ("metadata-time", "ior_posix_file_per_process", Claim(), ""),
    ("slow-rank", "kernel_slow_node", TWO_NODES, "One slow node: each of the 2 ranks on n2 spent 1.3"),
    ("slow-rank", "kernel_slow_rank", TWO_NODES, "One slow rank: rank 3 on n3 spent 1.3"),
    ("slow-rank", "h5bench_write_II_1d", Claim(hosts={"n7": [0, 1], "n8": [2, 3]}), "slow rank: rank 1 on n7 spent 0.437 s"),
    ("slow-rank", "ior_mpiio_collective", Claim(interface="posix"), "One busy rank: rank 0 spent"),  # it writes for all
    ("slow-rank", "ior_mpiio_collective", Claim(interface="mpiio"), ""),
    ("no-fsync", "kernel_no_fsync", Claim(), "8.0 MiB were written and never forced to storage"),
    ("no-fsync", "kernel_no_fsync", Claim(fsync=False), ""),
    ("no-fsync", "ior_hdf5_independent", Claim(), "64.0 MiB were written and never forced to storage"),
    ("no-fsync", "kernel_posix", Claim(), ""),
    ("no-fsync", "h5bench_read_full_1d", Claim(), ""),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "log", "claim", "words"), SPOKEN)
def test_a_rule_speaks_where_it_has_something_to_say_and_is_silent_elsewhere(rule, log, claim, words):
    said = {finding.rule: finding.text for finding in diagnose(summary(log), claim)}
    if words:
        assert words in said[rule]
    else:
        assert rule not in said, said[rule]


def test_every_rule_has_a_case_that_speaks_and_one_that_does_not():
    assert {rule for rule, _, _, words in SPOKEN if words} == set(RULES)
    assert {rule for rule, _, _, words in SPOKEN if not words} == set(RULES)


def test_the_manual_has_every_rule_and_every_threshold_as_it_is():
    text = (CHECKOUT / "docs" / "darshan.md").read_text(encoding="utf-8")
    for rule in RULES:
        assert f"**{rule}**" in text
    for name, threshold in THRESHOLDS.items():
        assert f"| `{name}` | {threshold.value:g} | {threshold.unit} | {threshold.says} |" in text


def test_fewer_bytes_than_claimed_are_always_told():
    claim = Claim(interface="hdf5", bytes_written=512 * MIB, whole_elements=False)
    assert "bytes-disagree" in {finding.rule for finding in diagnose(summary("h5bench_write_CC_1d"), claim)}


# --- the second witness -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kernel_posix", "kernel_small", "kernel_ci_collective"])
def test_darshan_agrees_with_the_kernel_that_it_watched(name):
    found = witness(summary(name), measurements(name))
    assert found.agrees, found.text
    assert found.least is not None
    assert profile("darshan.log", summary(name), measurements(name)).flags == ()


def test_a_kernel_whose_clock_went_too_slow_is_flagged():
    """A real run whose MPI_Wtime was preloaded to go at a third of the speed: its rates are three times too high."""
    found = profile("darshan.log", summary("kernel_wrong_clock"), measurements("kernel_wrong_clock"))
    assert found.witness.agrees is False
    assert found.flags == (found.witness.text,)
    assert found.witness.text.startswith("Darshan disagrees: 80.83 MiB/s in MPI-IO")
    assert "allow 224.2 to 2725 MiB/s, give or take 15%" in found.witness.text


def test_a_kernel_that_counts_time_without_any_transfer_is_flagged():
    name = "kernel_ci_collective"
    layer = summary(name).layers["H5D"]
    other = changed(summary(name), "H5D", aggregate_seconds=layer.aggregate_seconds * 0.1)
    assert profile("darshan.log", other, measurements(name)).witness.agrees is False


def test_logs_of_programs_that_ran_one_after_the_other_are_one_case():
    """h5bench writes by one program and reads by another."""
    names = ("h5bench_write_CC_1d", "h5bench_read_full_1d")
    write, read = (LOGS / f"{name}.darshan" for name in names)
    both, one, other = read_log(write, read), *map(summary, names)
    layer = both.layers["H5D"]
    assert (layer.bytes_written, layer.bytes_read) == (256 * MIB, 256 * MIB)
    for module, found in both.layers.items():
        parts = [part.layers[module] for part in (one, other) if module in part.layers]
        assert found.calls == sum(part.calls for part in parts)
        assert found.aggregate_seconds <= sum(part.aggregate_seconds for part in parts) * (1 + 1e-9)
    with pytest.raises(
        Refusal, match=r"different numbers of ranks: 4 in h5bench_write_CC_1d.darshan, 2 in kernel_posix"
    ):
        read_log(write, LOGS / "kernel_posix.darshan")


def test_what_darshan_costs_is_told_by_pairs_with_their_spread():
    profiled = measurements("kernel_posix")
    slower = [m.model_copy(update={"repeats": tuple(r.model_copy(update={"total_seconds": r.total_seconds * 2})
              for r in m.repeats)}) for m in profiled]  # fmt: skip
    write, read = overheads(slower, profiled)
    assert (write.operation, write.pairs, read.pairs) == ("write", (2.0, 2.0), (2.0, 2.0))
    assert write.text == "write 2.00 times as long with Darshan (pairs 2.00 2.00)"
    found = a_profile(overhead=(write, read.model_copy(update={"pairs": (1.0, 1.5)})))
    night = night_with(found)
    assert night.overhead == "1.75 times as long with Darshan as without, quartiles 1.38 to 2.00 of 4 pairs"
    assert night.overhead in render(night)
    assert night_with(a_profile()).overhead == ""


def test_what_cannot_be_compared_is_said_to_be_so():
    partial = [m.model_copy(update={"logical_bytes": m.logical_bytes // (2 if m.operation == "read" else 1)})
               for m in measurements("kernel_posix")]  # fmt: skip
    found = witness(summary("kernel_posix"), partial)
    assert (found.agrees, found.text[:17]) == (None, "no second witness")
    assert claim_of(partial).bytes_read == 2 * 24 * MIB, "the write is read back whole beside the measured read"


# --- what changed -------------------------------------------------------------------------------------------------


def test_nothing_is_told_of_a_night_that_is_like_the_good_one():
    assert changes(summary("kernel_posix"), summary("kernel_posix")) == ()


def test_other_calls_are_told_before_the_time_that_they_take():
    said = changes(summary("ior_hdf5_collective"), summary("ior_hdf5_independent"))
    assert said[0] == "MPI-IO: 0% collective calls instead of 80%"
    assert any("s of a rank in" in sentence for sentence in said[1:])


def test_the_same_calls_that_take_longer_point_to_the_storage():
    good = summary("kernel_posix")
    layer = good.layers["POSIX"]
    slow = changed(good, "POSIX", write_seconds=layer.write_seconds * 3 + 1)
    said = changes(good, slow)
    assert said[0].startswith("as many calls as then, as large, and they took longer: look at the storage")
    assert "in writing instead of" in said[1]


def good_night(of: Summary | None, started: int = 1) -> Good:
    words = {"suite": "nightly", "case": "ParticlesCheck", "verdict": "pass", "unit": "MiB/s", "observed": 1.0}
    software = {"hdf5": None, "mpi": None, "suite": "0", "kernels": None, "compiler": None}
    return Good.model_validate(
        {**words, "night": "2026-11-20", "started": started, "rates": (1.0,), "software": software, "summary": of}
    )


def test_a_case_is_told_what_changed_since_the_last_night_on_which_it_was_well_and_profiled():
    one = night_with(a_profile()).cases[0].model_copy(update={"software": good_night(None).software})
    key = one.judgement.main_rows[0].key
    assert with_changes(one, {}) == one
    assert with_changes(one, {key: good_night(None)}) == one
    other = with_changes(one, {key: good_night(summary("kernel_small"))})
    assert other.judgement.diagnosis[0].startswith("Against the last good night, 2026-11-20: ")
    alike = with_changes(one, {key: good_night(a_profile().summary)})
    assert alike.judgement.diagnosis[0].endswith("2026-11-20: as many calls as then, as large, and they took as long")


def test_other_software_is_told_first_with_and_without_a_log_of_darshans():
    changed_software = good_night(None).software.model_copy(update={"hdf5": "1.14.6", "packages": {"h5py": "3.12"}})
    unprofiled = make_night(case("write")).cases[0].model_copy(update={"software": changed_software})
    key = unprofiled.judgement.main_rows[0].key
    told = with_changes(unprofiled, {key: good_night(None)}).judgement
    assert told.changes == (
        "Against the last good night, 2026-11-20: HDF5 1.14.6 instead of none",
        "h5py 3.12 instead of none",
    )
    assert told.diagnosis == told.changes
    profiled = night_with(a_profile()).cases[0].model_copy(update={"software": changed_software})
    said = with_changes(profiled, {key: good_night(a_profile().summary)}).judgement.changes
    assert said[0].endswith("HDF5 1.14.6 instead of none")
    assert said[2] == "as many calls as then, as large, and they took as long"
    page = render(make_night(with_changes(unprofiled, {key: good_night(None)})))
    assert "Changes: 2 to say" in page
    assert "h5py 3.12 instead of none" in page


def test_a_module_that_came_or_went_is_told():
    said = changes(summary("ior_mpiio_collective"), summary("ior_posix_file_per_process"))
    assert "MPI-IO is not used any more" in said


# --- for people ---------------------------------------------------------------------------------------------------


def a_profile(**changes_: Any) -> Profile:
    name = "kernel_ci_collective"
    return profile("darshan.log", summary(name), measurements(name)).model_copy(update=changes_)


def night_with(found: Profile, *changed: str):
    one = case("write")
    judged = one.judgement.model_copy(update={"profile": found, "changes": changed})
    return make_night(one.model_copy(update={"judgement": judged}))


def test_the_diagnosis_stands_beside_the_verdict_and_what_changed_comes_first(tmp_path):
    night = night_with(a_profile(), "POSIX: fsyncs 8 instead of 4")
    first, *others = night.cases[0].judgement.diagnosis
    assert first == "POSIX: fsyncs 8 instead of 4"
    disagrees = a_profile().witness.model_copy(update={"agrees": False})
    assert a_profile(witness=disagrees).sentences[0] == disagrees.text
    assert any("Collective I/O was asked for" in sentence for sentence in others)
    page = render(night)
    assert page.index("POSIX: fsyncs 8") < page.index("Collective I/O was asked for") < page.index("Darshan agrees")
    night.save(tmp_path / "night.json")
    assert type(night).load(tmp_path / "night.json") == night
    console = terminal.Console(width=500)
    with console.capture() as printed:
        assert terminal.print_evidence(console, night, "particles/write")
    assert "Collective I/O was asked for" in printed.get()


def test_a_flag_is_in_the_table_the_counts_and_the_page():
    disagrees = a_profile().witness.model_copy(update={"agrees": False, "text": "Darshan disagrees: 1 MiB/s"})
    night = night_with(a_profile(witness=disagrees))
    assert "; 1 case flagged: Darshan disagrees" in terminal.counts_line(night)
    console = terminal.Console(width=500)
    with console.capture() as printed:
        terminal.print_night(console, night)
    text = printed.get()
    assert "flagged" in text
    assert "Darshan: Darshan disagrees: 1 MiB/s" in text
    page = render(night)
    assert "<b>flagged</b>" in page
    assert page.count("Darshan disagrees: 1 MiB/s") >= 2, "what to look at, and in the table"
    assert "flagged" not in terminal.counts_line(night_with(a_profile()))


def command(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["darshan", *map(str, arguments)])
    return result.exit_code, result.output


def test_the_command_prints_summary_and_diagnosis_and_says_by_its_exit_code_whether_bytes_agree():
    log = LOGS / "h5bench_write_CI_1d.darshan"
    code, text = command(log)
    assert code == 0
    assert "read-modify-write" in text
    assert all(module in text for module in MODULES)
    code, text = command(log, "--written", 256 * MIB, "--good", LOGS / "h5bench_write_CC_1d.darshan")
    assert code == 1
    assert text.index("changed") < text.index("bytes-disagree")
    code, text = command(LOGS / "kernel_posix.darshan", "--records", LOGS / "kernel_posix.jsonl", "--json")
    assert code == 0
    assert '"agrees": true' in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((CHECKOUT / "README.md",), "README.md: Darshan's log README.md cannot be read"),
        ((LOGS / "kernel_posix.darshan", "--only", "("), "--only: '(' is no regular expression"),
        ((LOGS / "kernel_posix.darshan", "--only", "nothing"), "has no records of such files"),
        ((LOGS / "kernel_posix.darshan", "--records", CHECKOUT / "README.md"), "README.md: the kernel wrote no record"),
        (
            (LOGS / "kernel_posix.darshan", "--records", LOGS / "kernel_posix.jsonl", "--only", "x"),
            "--records: says all",
        ),
        ((LOGS / "none.darshan",), "does not exist"),
    ],
)
def test_bad_input_of_the_command_is_answered_with_exit_code_2(arguments, words):
    code, text = command(*arguments)
    assert code == 2
    assert words in text


# --- what is otherwise in another build's log ---------------------------------------------------------------------------


def with_counters(found: Summary, module: str, **counters: int) -> Summary:
    return changed(found, module, counters={**found.layers[module].counters, **counters})


def test_a_log_does_nothing_otherwise_than_itself_however_long_it_took():
    before = summary("kernel_ci_collective")
    slower = changed(before, "POSIX", metadata_seconds=before.layers["POSIX"].metadata_seconds + 100)
    assert differences(before, slower) == ()
    assert metadata_shares(before, slower).endswith(", then 100%")


def test_other_calls_sizes_and_places_are_told_by_their_module_with_both_numbers():
    before = summary("kernel_ci_collective")
    after = with_counters(before, "MPI-IO", MPIIO_COLL_WRITES=7, MPIIO_SIZE_WRITE_AGG_1G_PLUS=7)
    after = with_counters(after, "POSIX", POSIX_FILE_NOT_ALIGNED=1000, POSIX_SIZE_WRITE_100_1K=2000)
    after = with_counters(after, "H5F", H5F_FLUSHES=99)
    told = differences(before, after)
    assert [sentence.partition(":")[0] for sentence in told] == ["H5F", "MPI-IO", "POSIX"]
    was = before.layers["POSIX"]
    assert told[1] == "MPI-IO: collective writes 0 became 7; writes of more than 1 GiB 0 became 7"
    assert told[2] == (
        f"POSIX: accesses between the file system's blocks {was['FILE_NOT_ALIGNED']} became 1000; "
        f"writes of 100 bytes to 1 KiB {was['SIZE_WRITE_100_1K']} became 2000"
    )


def test_a_module_that_only_one_of_both_uses_is_told():
    before = summary("kernel_ci_collective")
    without = before.model_copy(update={"layers": {m: v for m, v in before.layers.items() if m != "MPI-IO"}})
    assert differences(before, without) == ("MPI-IO is used before only",)
    assert differences(without, before) == ("MPI-IO is used after only",)


def test_bytes_that_reads_found_are_told_only_where_there_are_more_or_fewer_reads():
    before = summary("kernel_ci_collective")
    reads = before.layers["POSIX"]["READS"]
    less = with_counters(before, "POSIX", POSIX_BYTES_READ=1, POSIX_SIZE_READ_0_100=500)
    assert differences(before, less) == ()
    (told,) = differences(before, with_counters(less, "POSIX", POSIX_READS=reads + 1))
    assert f"reads {reads} became {reads + 1}" in told
    assert "bytes read" in told
    assert "reads of 0 bytes to 100 bytes" in told
