"""The detector on real nights: one series that is kept here, and the whole year where it is (IOGAUGE_YEAR_OF_IO)."""

from __future__ import annotations

import csv
import datetime
import gzip
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from iogauge.detect import Calendar, History, judge

KEPT = Path(__file__).parent / "year_of_io" / "bdcats-shared-read-3072g.csv"
YEAR = Path(os.environ.get("IOGAUGE_YEAR_OF_IO", "/nowhere")) / "runs.csv.gz"
LUSTRE = Calendar(days_of_month=frozenset({1, 2, 3, 4}))


def made(key: str, dates: np.ndarray, rates: np.ndarray, calendar: Calendar) -> History:
    zeros = np.zeros(len(dates), np.int64)
    return History(key, dates, rates, zeros, ({},), zeros, ("",), calendar.slots(dates))


def test_of_a_real_year_the_loss_for_good_is_found_on_its_third_night_and_before_it_only_the_slump_of_april():
    with KEPT.open() as file:
        rows = list(csv.DictReader(file))
    dates = np.array([row["date"] for row in rows], "datetime64[D]")
    rates = np.array([float(row["rate_mib_s"]) for row in rows])
    findings = judge([made("bdcats", dates, rates, LUSTRE)]).tracks[0].findings
    lost = next(one for one in findings if one.began == datetime.date(2017, 8, 11))
    assert lost.slower
    assert np.searchsorted(dates, np.datetime64(lost.found)) - np.searchsorted(dates, np.datetime64(lost.began)) == 2
    assert 0.4 < lost.drop < 0.6
    assert lost.ended is None or lost.how != "back at its level"
    before = [one for one in findings if one.slower and one.found < lost.began]
    assert [(one.began, one.how) for one in before] == [(datetime.date(2017, 4, 22), "back at its level")]


def stretches() -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Key, dates, rates, and whether a slump was seen in hindsight, for each stretch of 60 nights of one level."""
    rows: dict[tuple[str, str], list[tuple[str, float, bool]]] = defaultdict(list)
    with gzip.open(YEAR, "rt") as file:
        for row in csv.DictReader(file):
            if row["in_benchmark"] == "True" and row["run_of_day"] == "0":
                slump = row["episode"] == "True"
                rows[row["series"], row["seg"]].append((row["date"], float(row["rate_mib_s"]), slump))
    found = []
    for (key, _), nights in sorted(rows.items()):
        dates, rates, slump = zip(*sorted(nights), strict=True)
        if len(nights) >= 60:
            found.append((key, np.array(dates, "datetime64[D]"), np.array(rates), np.array(slump)))
    return found


def calendar_of(key: str) -> Calendar:
    return Calendar() if "/bb/" in key else LUSTRE


@pytest.mark.skipif(not YEAR.exists(), reason="IOGAUGE_YEAR_OF_IO names no folder with runs.csv.gz")
class TestYear:
    def test_a_series_alarms_less_than_once_a_year(self):
        parts = stretches()
        tracks = judge([made(key, dates, rates, calendar_of(key)) for key, dates, rates, _ in parts]).tracks
        alarms = sum(
            one.slower and not slump[np.searchsorted(dates, np.datetime64(one.found))]
            for (_, dates, _, slump), track in zip(parts, tracks, strict=True)
            for one in track.findings
        )
        assert alarms / (sum(len(dates) - 14 for _, dates, _, _ in parts) / 365) <= 1

    def test_four_of_five_slowdowns_of_20_percent_are_found_in_a_week_and_nine_of_ten_in_two(self):
        delays = found_after(np.full(14, 0.8))
        assert np.mean(delays <= 7) > 0.74
        assert np.mean(delays <= 14) > 0.86

    def test_half_of_the_rate_gone_is_found_in_three_nights(self):
        assert np.mean(found_after(np.full(14, 0.5)) <= 3) > 0.76

    def test_30_percent_on_every_second_night_are_found_in_four_weeks(self):
        delays = found_after(np.where(np.arange(28) % 2 == 0, 0.7, 1.0))
        assert np.mean(delays <= 14) > 0.5
        assert np.mean(delays <= 28) > 0.68


def found_after(factors: np.ndarray) -> np.ndarray:
    """The nights that it took to find slowdowns put in at random; 99 where none was."""
    rng = np.random.default_rng(1)
    cases, starts, length = [], [], len(factors)
    for key, dates, rates, slump in stretches():
        for start in rng.integers(31, max(len(dates) - length, 32), 6):
            if slump[start - 7 : start + length].any() or start + length > len(dates):
                continue
            slower = rates[: start + length].copy()
            slower[start:] *= factors
            cases.append(made(key, dates[: start + length], slower, calendar_of(key)))
            starts.append(start)
    delays = []
    for one, start, track in zip(cases, starts, judge(cases).tracks, strict=True):
        found = [np.searchsorted(one.dates, np.datetime64(f.found)) - start + 1 for f in track.findings if f.slower]
        delays.append(min((delay for delay in found if delay > 0), default=99))
    return np.array(delays)
