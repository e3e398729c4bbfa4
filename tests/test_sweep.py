"""What a sweep tells: main effects, speedups over one process, hdf5_iotest's CSV, and the command that shows them."""

from __future__ import annotations

import copy
import csv
import itertools
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import _WRITE, CHECKOUT

from iogauge import cli, sweep
from iogauge.errors import InputError
from iogauge.measurement import Measurement

TILES = {
    "steps": 4, "arrays": 8, "rows": 100, "columns": 200, "process_rows": 2, "process_columns": 1, "scaling": "weak",
    "slowest": "step", "layout": "chunked", "io": "collective", "compute_seconds": 0.0, "rank": 2,
    "file_per_process": False, "collective_metadata": True, "alignment_bytes": 0, "fsync": True, "driver": "default",
    "libver": "latest", "fill": "never", "compress": "none", "compress_level": 0, "meta_block_bytes": 0,
    "alignment_threshold_bytes": 0, "extendible": False,
}  # fmt: skip


def record(case: dict[str, str], slower: float, operation: str = "write", benchmark: str = "tiles") -> dict:
    made = copy.deepcopy(_WRITE)
    made |= {"benchmark": benchmark, "operation": operation, "sweep": {"run": "0" * 16, "case": case}}
    made["pattern"] = TILES | {name: int(value) if name == "rank" else value for name, value in case.items()}
    if operation == "read":
        made["read_shift"] = {"ranks": 1, "other_rank_fraction": 1.0, "other_host_fraction": 0.0}
    for repeat in made["repeats"]:
        phases = ("open_seconds", "transfer_seconds", "flush_seconds", "close_seconds")
        for phase in phases:
            repeat[phase] *= slower
        repeat["total_seconds"] = sum(repeat[phase] for phase in phases)
    return made


def design(factors: dict[str, dict[str, float]]) -> list[Measurement]:
    """Every combination; each value makes its case so many times slower."""
    made = []
    for values in itertools.product(*factors.values()):
        case = dict(zip(factors, values, strict=True))
        slower = 1.0
        for name, value in case.items():
            slower *= factors[name][value]
        made.append(Measurement.model_validate(record(case, slower)))
    return made


def test_each_option_gets_the_effect_it_has_and_nothing_is_left_over():
    (summary,) = sweep.summarize(design({"rank": {"2": 1.0, "3": 2.0, "4": 4.0}, "fill": {"value": 3.0, "never": 1.0},
                                         "libver": {"earliest": 1.0, "latest": 1.0}}))  # fmt: skip
    assert [effect.option for effect in summary.effects] == ["rank", "fill", "libver"]
    assert [effect.ratio for effect in summary.effects] == pytest.approx([4.0, 3.0, 1.0])
    assert sum(effect.share for effect in summary.effects) == pytest.approx(1.0)
    assert summary.effects[2].share == pytest.approx(0.0)
    assert [level.value for level in summary.effects[0].levels] == ["2", "3", "4"]
    assert summary.fastest / summary.slowest == pytest.approx(12.0)
    assert summary.slowest_case.startswith("rank=4,fill=value")
    assert summary.cases == 12


def test_what_two_options_do_together_is_no_main_effect():
    cases = {("2", "value"): 1.0, ("2", "never"): 2.0, ("4", "value"): 2.0, ("4", "never"): 1.0}
    made = [Measurement.model_validate(record({"rank": r, "fill": f}, s)) for (r, f), s in cases.items()]
    (summary,) = sweep.summarize(made)
    assert [effect.share for effect in summary.effects] == pytest.approx([0.0, 0.0])


def test_one_case_has_nothing_to_compare_with():
    with pytest.raises(InputError, match="one case of write only"):
        sweep.summarize([Measurement.model_validate(record({"rank": "2"}, 1.0))])


def test_parallel_cases_are_set_against_the_single_process_cases_that_are_equal_but_for_io():
    parallel = design({"rank": {"2": 1.0, "3": 2.0}, "io": {"independent": 0.5}})
    single = design({"io": {"posix": 1.0, "core": 0.25}, "rank": {"2": 1.0, "3": 2.0, "4": 1.0}})
    found = {s.single: s for s in sweep.against_single(parallel, single)}
    assert found["posix"].median == pytest.approx(2.0)
    assert (found["core"].least, found["core"].most, found["core"].cases) == (
        pytest.approx(0.5), pytest.approx(0.5), 2)  # fmt: skip
    with pytest.raises(InputError, match="differs from one of the other in io alone"):
        sweep.against_single(parallel, design({"io": {"posix": 1.0}, "rank": {"4": 1.0}}))


def test_the_csv_has_hdf5_iotests_columns_and_the_records_numbers():
    upstream = next(csv.reader((CHECKOUT / "tests" / "upstream" / "hdf5_iotest" / "np4.csv").open()))
    pair = [record({"rank": "3", "io": "independent"}, 1.0, operation) for operation in ("write", "read")]
    text = sweep.to_csv([Measurement.model_validate(one) for one in pair])
    header, *rows = csv.reader(text.splitlines())
    assert header == upstream
    assert len(rows) == 3
    row = dict(zip(header, rows[1], strict=True))
    assert (row["steps"], row["arrays"], row["rows"], row["cols"], row["rank"]) == ("4", "8", "100", "200", "3")
    assert (row["fill"], row["fmt"], row["io"], row[" async"]) == ("false", "latest", "independent", "false")
    assert (row["alignment-increment"], row["meta-block-size"], row["version"]) == ("1", "2048", "1.10.8")
    assert float(row["write-max [s]"]) == pytest.approx(0.5)
    assert float(row["write-phase-max [s]"]) == pytest.approx(0.62)
    assert float(row["creat-max [s]"]) == pytest.approx(0.01)
    assert float(row[" wall [s]"]) == pytest.approx(1.24)


def written(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def test_the_command_shows_both_operations_and_writes_the_csv_once(tmp_path):
    cases = [({"rank": rank, "io": "independent"}, slower) for rank, slower in (("2", 1.0), ("3", 2.0))]
    records = [record(case, slower, operation) for case, slower in cases for operation in ("write", "read")]
    path = written(tmp_path / "r.jsonl", records)
    single = written(
        tmp_path / "s.jsonl", [record({"rank": "2", "io": "posix"}, 4.0), record({"rank": "3", "io": "posix"}, 4.0)]
    )
    arguments = ["sweep", str(path), "--single", str(single), "--csv", str(tmp_path / "iot.csv")]
    done = CliRunner().invoke(cli.main, arguments)
    assert done.exit_code == 0, done.output
    assert "write  2 cases" in done.output
    assert "read  2 cases" in done.output
    assert "spread 2.0 times" in done.output
    assert "independent  posix" in done.output
    assert (tmp_path / "iot.csv").read_text().count("\n") == 7
    again = CliRunner().invoke(cli.main, arguments)
    assert again.exit_code == 2
    assert "File exists" in again.stderr


@pytest.mark.parametrize("changes", [{"sweep": None}, {"schema": "other/1"}])
def test_what_is_no_sweep_is_refused_by_file(tmp_path, changes):
    path = written(tmp_path / "r.jsonl", [record({"rank": "2"}, 1.0) | changes])
    done = CliRunner().invoke(cli.main, ["sweep", str(path)])
    assert done.exit_code == 2
    assert str(path) in done.stderr


def test_another_kernels_records_have_no_hdf5_iotest_columns():
    with pytest.raises(InputError, match="are of segments"):
        sweep.to_csv([Measurement.model_validate(record({"rank": "2"}, 1.0, benchmark="segments"))])
