"""The record of a night: what ReFrame's report becomes, how it is counted, and that it is written whole."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from samples import case, invalid_case, judgement, make_night, record

from iogauge.errors import InputError
from iogauge.night import Night, read_run_report, write_whole


def entry(**changes: Any) -> dict[str, Any]:
    """A test case in ReFrame's run report, as far as it concerns us."""
    passed = {
        "display_name": "ParticlesCheck %file_system=disk",
        "fixture": False,
        "result": "pass",
        "fail_phase": None,
        "fail_reason": None,
        "judgement": judgement(record()).model_dump(mode="json"),
        "measurements": [record()],
        "file_system": "disk",
        "nodes": 1,
        "partition": "default",
        "ranks_per_node": 2,
        "time_run": 1.5,
        "outputdir": "/runs/output/case",
        "stagedir": "/runs/stage/case",
        "job_stderr": "rfm_job.err",
        "build_stderr": None,
    }
    return passed | changes


def failed(**changes: Any) -> dict[str, Any]:
    values = {"result": "fail", "fail_phase": "run_wait", "fail_reason": "job timed out", "time_run": None}
    return entry(**values, judgement={}, measurements=[], outputdir=None) | changes


#: A run of somebody else's checks.
FOREIGN = '{"runs": [{"testcases": [{"fixture": false, "result": "pass", "display_name": "Stream"}]}]}'


def report(tmp_path: Path, *entries: dict[str, Any]) -> Path:
    path = tmp_path / "reframe.json"
    path.write_text(json.dumps({"session_info": {}, "runs": [{"testcases": list(entries)}]}), encoding="utf-8")
    return path


def test_a_case_keeps_its_judgement_its_place_and_the_folder_with_its_evidence(tmp_path):
    found = read_run_report(report(tmp_path, entry()))
    assert (found.selected, found.build_failure) == (1, "")
    (only,) = found.cases
    assert only.judgement == judgement(record())
    assert (only.file_system, only.nodes, only.ranks_per_node, only.seconds) == ("disk", 1, 2, 1.5)
    assert only.stage == "/runs/output/case"
    assert found.software is not None
    assert found.software.hdf5 == "1.10.8"


def test_a_failing_case_keeps_its_judgement_and_its_files_where_they_are(tmp_path):
    broken = entry(result="fail", fail_phase="sanity", fail_reason="invalid: x")
    (only,) = read_run_report(report(tmp_path, broken)).cases
    assert only.judgement.rows
    assert only.stage == "/runs/stage/case"


def test_a_case_without_a_judgement_is_invalid_with_the_reason_and_the_last_words_of_its_stderr(tmp_path):
    (tmp_path / "rfm_job.err").write_text("first\n\nlast but one\n-----\nout of memory\n", encoding="utf-8")
    (only,) = read_run_report(report(tmp_path, failed(stagedir=str(tmp_path)))).cases
    assert only.judgement.verdict == "invalid"
    assert only.judgement.reasons == (
        "ended in ReFrame's run_wait phase: job timed out (first / last but one / out of memory)",
    )


def test_a_crash_without_any_stderr_is_invalid_all_the_same(tmp_path):
    crashed = failed(fail_reason=None, stagedir=str(tmp_path / "gone"), job_stderr=None)
    (only,) = read_run_report(report(tmp_path, crashed)).cases
    assert only.judgement.reasons == ("ended in ReFrame's run_wait phase: no reason given",)


@pytest.mark.parametrize("result", ["skip", "abort", "fail_deps"])
def test_a_case_that_never_ran_is_selected_but_no_case_of_the_night(tmp_path, result):
    found = read_run_report(report(tmp_path, entry(), failed(result=result, fail_phase=None, fail_reason=None)))
    assert found.selected == 2
    assert len(found.cases) == 1


def test_a_case_that_a_check_skipped_is_one_of_the_night_with_its_reason(tmp_path):
    left_out = failed(result="skip", fail_phase=None, fail_reason=None, judgement={}, skip_reason="writes 480.0 GiB")
    (_, skipped) = read_run_report(report(tmp_path, entry(), left_out)).cases
    assert (skipped.judgement.verdict, skipped.judgement.reasons) == ("skipped", ("writes 480.0 GiB",))


def test_a_build_is_no_case_and_its_failure_is_told_with_the_compilers_words(tmp_path):
    (tmp_path / "rfm_build.err").write_text("hdf5.h: No such file or directory\n", encoding="utf-8")
    build = failed(
        fixture=True,
        fail_phase="compile_wait",
        fail_reason="build job failed\nwith exit code: 1",
        stagedir=str(tmp_path),
        build_stderr="rfm_build.err",
    )
    found = read_run_report(report(tmp_path, build, failed(result="fail_deps", fail_phase=None)))
    assert found.cases == ()
    assert "could not be built: build job failed with exit code: 1 (hdf5.h: No such file" in found.build_failure


@pytest.mark.parametrize("text", ["", "{", '{"runs": [', "[]", '{"runs": [{}]}', '{"runs": 3}', "null", FOREIGN])
def test_a_truncated_or_foreign_report_is_an_input_error_with_its_name(tmp_path, text):
    path = tmp_path / "reframe.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="no run report of ReFrame") as caught:
        read_run_report(path)
    assert caught.value.file == path


def test_a_missing_report_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_run_report(tmp_path / "none.json")


def test_what_was_saved_is_loaded(tmp_path):
    night = make_night(case("write", "read", ratio=1.1), invalid_case("ranks 0 and 1 share core 0"))
    night.save(tmp_path / "night.json")
    assert Night.load(tmp_path / "night.json") == night
    assert [path.name for path in tmp_path.iterdir()] == ["night.json"]


def test_a_night_cut_off_in_the_middle_is_not_loaded(tmp_path):
    path = tmp_path / "night.json"
    make_night(case("write")).save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="no record of a night") as caught:
        Night.load(path)
    assert caught.value.file == path


def test_another_schema_is_not_loaded_and_the_key_is_named(tmp_path):
    path = tmp_path / "night.json"
    make_night(case("write")).save(path)
    path.write_text(path.read_text(encoding="utf-8").replace("iogauge.night/1", "iogauge.night/9"), encoding="utf-8")
    with pytest.raises(InputError, match=r"schema: no record of a night: .*iogauge\.night/1"):
        Night.load(path)


def test_what_a_link_names_is_written_and_a_device_is_never_replaced(tmp_path):
    target, link, pipe = (tmp_path / name for name in ("target", "link", "pipe"))
    link.symlink_to(target)
    write_whole(link, "new")
    assert (link.is_symlink(), target.read_text()) == (True, "new")
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="pipe: is not a regular file; it or a new one is expected"):
        write_whole(pipe, "new")
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "target"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "night.json"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \udcff")
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["night.json"]


@pytest.mark.parametrize(
    ("cases", "changes", "code"),
    [
        (("write",), {}, 0),
        (("passes",), {}, 0),
        (("improves",), {}, 0),
        (("regresses",), {}, 1),
        (("write", "invalid"), {}, 1),
        ((), {}, 2),
        (("regresses",), {"complete": False, "cause": "stopped by SIGINT"}, 2),
        ((), {"build_failure": "no compiler"}, 2),
    ],
)
def test_the_exit_code_says_slower_or_not_measured(cases, changes, code):
    # The case is 0.9 times as slow as its MPI-IO baseline's transfer.
    kinds = {
        "write": lambda: case("write"),
        "passes": lambda: case("write", ratio=0.92),
        "improves": lambda: case("write", ratio=0.5),
        "regresses": lambda: case("write", ratio=2.0),
        "invalid": lambda: invalid_case("two ranks share a core"),
    }
    assert make_night(*(kinds[kind]() for kind in cases), **changes).exit_code == code


def test_series_are_counted_and_an_invalid_case_once():
    night = make_night(case("write", "read"), case("write", ratio=2.0), invalid_case("a", "b"))
    assert {verdict: number for verdict, number in night.counts.items() if number} == {
        "invalid": 1,
        "regressed": 1,
        "no reference": 2,
    }


def test_nights_of_a_series_count_this_one():
    night = make_night(case("write"), earlier_nights={"particles/write/disk/1x2/CC/hdf5": 4})
    assert night.nights_of("particles/write/disk/1x2/CC/hdf5") == 5
    assert night.nights_of("particles/read/disk/1x2/CC/hdf5") == 1
