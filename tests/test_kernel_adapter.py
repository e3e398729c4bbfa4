"""The kernels' output is believed only when it is complete, consistent and verified."""

from __future__ import annotations

import copy
import json
import math

import pytest
from conftest import as_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iogauge.adapters.kernel import read_records
from iogauge.errors import Refusal


def test_records_are_read_from_a_file_and_after_a_table(record, read_record, tmp_path):
    write, read = copy.deepcopy(record), read_record
    write["operation"], write["read_shift"] = "write", None
    path = tmp_path / "records.jsonl"
    path.write_text(as_lines(read))
    assert [m.operation for m in read_records(path)] == ["read"]
    assert len(read_records("particles on 2 ranks\nwrite hdf5 ...\n" + as_lines(read))) == 1


@pytest.mark.parametrize("text", ["", "\n", "no record here\n", "[1]\n"])
def test_no_record_is_refused(text):
    with pytest.raises(Refusal, match="no record"):
        read_records(text)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(Refusal, match="does not exist"):
        read_records(tmp_path / "records.jsonl")


def test_a_binary_file_is_refused(tmp_path):
    (tmp_path / "records.jsonl").write_bytes(b"{\xff\xfe\x00")
    with pytest.raises(Refusal):
        read_records(tmp_path / "records.jsonl")


def test_a_truncated_record_is_refused(record):
    text = as_lines(record)
    with pytest.raises(Refusal, match="not JSON"):
        read_records(text[: len(text) // 2])


def test_another_schema_is_refused(record):
    record["schema"] = "iogauge.measurement/2"
    with pytest.raises(Refusal, match="schema"):
        read_records(as_lines(record))


def test_what_was_not_verified_is_refused(record):
    record["repeats"][2]["verified_bytes"] = 0
    with pytest.raises(Refusal, match="0 of 67108864 bytes verified"):
        read_records(as_lines(record))


def test_words_that_differ_are_refused(record):
    record["repeats"][1]["mismatches"] = 3
    with pytest.raises(Refusal, match="3 words differ"):
        read_records(as_lines(record))


def test_the_same_record_twice_means_several_worlds(record):
    with pytest.raises(Refusal, match="several worlds"):
        read_records(as_lines(record, record))


def test_records_of_two_runs_are_refused(record, read_record):
    write = copy.deepcopy(record) | {"operation": "write", "read_shift": None}
    write["placement"][0]["pid"] = 999
    with pytest.raises(Refusal, match="different runs"):
        read_records(as_lines(write, read_record))


def test_records_with_unequal_numbers_of_repeats_are_refused(record):
    other = copy.deepcopy(record) | {"role": "baseline", "differs": {"interface": "mpiio"}, "interface": "mpiio"}
    other["repeats"] = other["repeats"][:2]
    with pytest.raises(Refusal, match="unequal numbers of repeats"):
        read_records(as_lines(record, other))


def test_a_baseline_alone_is_refused(record):
    with pytest.raises(Refusal, match="without its main case"):
        read_records(as_lines(record | {"role": "baseline", "differs": {"interface": "posix"}}))


def test_nan_is_no_number(record):
    text = as_lines(record).replace('"flush_seconds": 0.1', '"flush_seconds": NaN', 1)
    with pytest.raises(Refusal, match="NaN"):
        read_records(text)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_rate_comes_from_garbage(record, data):
    """Any byte of a true record changed, cut or doubled: refused, or still a consistent and verified measurement."""
    text = as_lines(record)
    position = data.draw(st.integers(0, len(text) - 1))
    junk = data.draw(st.text(max_size=6))
    cut = data.draw(st.integers(0, 8))
    try:
        measurements = read_records(text[:position] + junk + text[position + cut :])
    except Refusal:
        return
    for m in measurements:
        assert m.verified
        assert all(math.isfinite(rate) and rate > 0 for rate in m.observed + m.raw)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_json_is_refused_without_a_crash(value):
    with pytest.raises(Refusal):
        read_records(json.dumps({"schema": value}) + "\n")
