"""h5perf_serial's report is believed only when every line is there, is understood, and fits the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from iogauge.adapters.h5perf_serial import read_report
from iogauge.errors import Refusal

SAMPLES = Path(__file__).parent / "upstream" / "h5perf_serial"
DEFAULT = (SAMPLES / "default.txt").read_text()
LARGE = (SAMPLES / "1g.txt").read_text()


def test_a_report_of_both_interfaces_is_read_with_its_units():
    report = read_report(SAMPLES / "1g.txt")
    assert (report.version, report.iterations, report.driver) == ("1.10.8", 3, "sec2")
    assert (report.dataset, report.transfer, report.order) == ((1 << 30,), (16 << 20,), (1,))
    assert report.logical_bytes == 1 << 30
    assert [result.interface for result in report.results] == ["posix", "hdf5"]
    hdf5 = report.result("hdf5")
    assert (hdf5.write.maximum, hdf5.write.average, hdf5.write.minimum) == (2425.63, 663.11, 401.38)
    assert hdf5.write_open_close.average == 662.81
    assert hdf5.read is not None
    assert hdf5.read_open_close is not None
    assert hdf5.read_open_close.maximum == 4415.60


def test_dimensions_chunks_and_a_run_without_reads_are_read():
    report = read_report(SAMPLES / "chunked_write_only.txt")
    assert (report.dataset, report.transfer, report.order) == ((64, 1 << 20), (8, 256 << 10), (2, 1))
    assert (report.chunk, report.extendible) == ((8, 256 << 10), True)
    (result,) = report.results
    assert (result.read, result.read_open_close) == (None, None)
    with pytest.raises(Refusal, match="no result for posix"):
        report.result("posix")


def test_what_stderr_says_is_refused_though_the_report_looks_true():
    read_report(SAMPLES / "full_file_system.txt")
    with pytest.raises(Refusal, match=r"stderr says: \*\*\* Assertion failed \(POSIXWRITE\)"):
        read_report(SAMPLES / "full_file_system.txt", SAMPLES / "full_file_system.err")


def test_a_run_that_did_nothing_is_refused_though_it_ended_well():
    with pytest.raises(Refusal, match="the transfer buffer does not divide the dataset"):
        read_report(SAMPLES / "transfer_does_not_divide.txt")


def test_a_usage_message_is_refused():
    with pytest.raises(Refusal, match=r"line 1: 'h5perf_serial: Version 1.10.8' where 'HDF5 Library: Version'"):
        read_report(SAMPLES / "help.txt")


def test_a_missing_and_a_binary_file_are_refused(tmp_path):
    with pytest.raises(Refusal, match=r"out.txt does not exist"):
        read_report(tmp_path / "out.txt")
    (tmp_path / "out.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(Refusal, match=r"out.txt"):
        read_report(tmp_path / "out.txt")


@pytest.mark.parametrize("kept", range(len(DEFAULT.splitlines())))
def test_a_report_cut_off_anywhere_is_refused(kept):
    with pytest.raises(Refusal, match=r"line \d+: the report ends where|one interface was read"):
        read_report("\n".join(DEFAULT.splitlines()[:kept]))


@pytest.mark.parametrize("line", [n for n, text in enumerate(DEFAULT.splitlines()) if text.strip()])
def test_a_line_that_is_missing_is_refused(line):
    lines = DEFAULT.splitlines()
    del lines[line]
    with pytest.raises(Refusal, match=r"line \d+"):
        read_report("\n".join(lines))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("2425.63 MB/s", "2425.63 GB/s", "line 35: 'Maximum Throughput: 2425.63 GB/s' where"),
        ("2425.63", "0.00", "line 35: Write: a rate of 0"),
        ("2425.63", "inf", "line 35"),
        ("2425.63", "-2425.63", "line 35"),
        ("2425.63", "2425", "line 35"),
        ("2425.63", "663.10", "line 37: Write: maximum, average and minimum are not in this order"),
        ("662.81", "700.00", "line 41: Write Open-Close: faster than without opening and closing"),
        ("Read (3 iteration(s))", "Read (2 iteration(s))", "line 25"),
        ("Number of iterations=3", "Number of iterations=0", "line 4"),
        ("Dataset size=1GB", "Dataset size=1TB", "line 5"),
        ("Dataset size=1GB", "Dataset size=512MB", "line 15: a file of 1024.00 MiB"),
        ("Dataset size=1GB", "Dataset size=1GB 1", "not the same number of dimensions"),
        ("Transfer buffer size=16MB", "Transfer buffer size=8MB", "line 14: a transfer buffer of 16777216 bytes"),
        ("Transfer buffer size=16MB", "Transfer buffer size=0", "line 6: Transfer buffer size has a 0"),
        ("access order=1", "access order=2", "access order 2 does not name each dimension once"),
        ("Page Aggregation Disabled", "Page Aggregation Enabled. Page size = 4096", "line 7"),
        ("driver=sec2", "driver=mpio", "line 10"),
        ("API=posix hdf5", "API=posix", "line 9"),
        ("Library: Version 1.10.8", "Library: Version", "line 1"),
    ],
)
def test_a_changed_line_is_refused_and_named(old, new, why):
    assert old in LARGE
    with pytest.raises(Refusal) as refusal:
        read_report(LARGE.replace(old, new, 1))
    assert why in str(refusal.value)


def test_one_iteration_has_one_rate():
    with pytest.raises(Refusal, match="one iteration has two rates"):
        read_report(DEFAULT.replace("Maximum Throughput:  56.78", "Maximum Throughput:  60.00"))


def test_words_after_the_report_are_refused():
    with pytest.raises(Refusal, match=r"line 50: 'more' after the end of the report"):
        read_report(LARGE.rstrip("\n") + "\n        more\n")
