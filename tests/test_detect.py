"""The detector and its verdicts, on series made by known generators."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from iogauge.detect import (
    Action,
    Calendar,
    History,
    Night,
    NightlyDetector,
    SeriesVerdict,
    fuse,
    history,
    judge,
    judge_file_system,
    maintenance_hints,
    scope,
)
from iogauge.detect.bank import THRESHOLD, Bank
from iogauge.errors import InputError

FIRST = datetime.date(2026, 1, 1)


def noise(nights: int, seed: int, scale: float = 0.07, bad: float = 0.07) -> np.ndarray:
    """Log rates as storage has them: a narrow core, and nights that are awful, some of them one after the other."""
    rng = np.random.default_rng(seed)
    again, awful = rng.random(nights) < 0.25, rng.random(nights) < bad
    awful[1:] |= awful[:-1] & again[1:]
    return rng.standard_normal(nights) * scale - awful * rng.exponential(0.5, nights)


def dates(nights: int) -> np.ndarray:
    return np.datetime64(FIRST) + np.arange(nights)


def series(logs: np.ndarray, key: str = "s", calendar: Calendar | None = None) -> History:
    zeros, when = np.zeros(len(logs), np.int64), dates(len(logs))
    slots = zeros if calendar is None else calendar.slots(when)
    return History(key, when, 1000 * np.exp(logs), zeros, ({},), zeros, ("",), slots)


def slowed(logs: np.ndarray, start: int, factor: float | np.ndarray) -> np.ndarray:
    logs = logs.copy()
    logs[start:] += np.log(factor)
    return logs


def quiet(nights: int, scale: float = 0.02) -> np.ndarray:
    """A wave without a bad night: what follows is the only news."""
    return scale * np.sin(1.7 * np.arange(nights))


def last(logs: np.ndarray, **kwargs: object) -> SeriesVerdict:
    return judge([series(logs)], **kwargs).verdicts[0]  # type: ignore[arg-type]


def day(number: int) -> datetime.date:
    return FIRST + datetime.timedelta(days=number)


def ctx(number: int, maint: bool = False) -> dict[str, object]:
    return {"maint": maint, "dom": day(number).day, "date": day(number)}


def test_a_slowdown_of_20_percent_is_found_within_a_week():
    start = 90
    judged = judge([series(slowed(noise(start + 14, seed), start, 0.8)) for seed in range(60)])
    delays = [
        next((f.found - day(start)).days + 1 for f in track.findings if f.found >= day(start))
        if any(f.found >= day(start) for f in track.findings)
        else 99
        for track in judged.tracks
    ]
    assert np.mean(np.array(delays) <= 7) > 0.85
    assert np.mean(np.array(delays) <= 14) > 0.95


def test_a_year_of_noise_alarms_less_than_once_a_series():
    judged = judge([series(noise(365, seed)) for seed in range(100, 160)])
    assert sum(f.slower for track in judged.tracks for f in track.findings) / 60 < 0.5


@pytest.mark.parametrize("depth", [0.9, 0.8, 0.7, 0.6, 0.5, 0.1, 0.001])
def test_two_awful_nights_never_tell_and_three_of_half_the_rate_do(depth):
    two = quiet(60)
    two[50:52] += math.log(depth)
    assert not judge([series(two)]).tracks[0].findings
    assert last(slowed(quiet(53), 50, 0.5)).word == "shifted level"


def test_a_collapse_that_comes_and_goes_is_found():
    factors = np.array([0.2, 0.2, 0.2, 1, 0.2, 0.2, 1, 0.2, 0.2, 0.2])
    assert any(f.slower for f in judge([series(slowed(quiet(70), 60, factors))]).tracks[0].findings)


@pytest.mark.parametrize("hit", ["every second night", "half of the nights at random", "two nights in four"])
def test_a_slowdown_that_comes_and_goes_is_found_and_stays_until_it_is_gone(hit):
    start, nights = 90, 40
    made = []
    for seed in range(20):
        number = np.arange(nights)
        when = {
            "every second night": number % 2 == 0,
            "half of the nights at random": np.random.default_rng(seed).random(nights) < 0.5,
            "two nights in four": number % 4 < 2,
        }[hit]
        factors = np.concatenate((np.where(when, 0.65, 1.0), np.ones(30)))
        made.append(slowed(noise(start + nights + 30, seed, bad=0.03), start, factors))
    by_now = judge([series(logs[: start + 14]) for logs in made]).tracks
    assert np.mean([any(f.found >= day(start) for f in track.findings) for track in by_now]) > 0.6
    during = judge([series(logs[: start + nights]) for logs in made]).verdicts
    told = [one for one in during if one.finding is not None]
    # One that hits several nights in a row by chance is told as a steady one, which ends sooner.
    assert len(told) >= (10 if "random" in hit else 15)
    assert np.median([one.finding.drop for one in told]) == pytest.approx(0.35, abs=0.05)
    assert any("on many nights since" in one.reason for one in told)
    assert sum(one.finding is None for one in judge([series(logs) for logs in made]).verdicts) >= 19


@pytest.mark.parametrize(("every", "factor"), [(3, 0.5), (3, 0.4), (4, 0.5)])
def test_a_slowdown_of_one_night_in_a_few_is_found_within_weeks_and_stays_until_it_is_gone(every, factor):
    start, nights = 90, 42
    factors = np.concatenate((np.where(np.arange(nights) % every == 0, factor, 1.0), np.ones(30)))
    made = [slowed(noise(start + nights + 30, seed, bad=0.03), start, factors) for seed in range(15)]
    during = judge([series(logs[: start + nights]) for logs in made]).verdicts
    told = [one.finding for one in during if one.finding is not None]
    assert len(told) >= 11
    assert np.median([one.drop for one in told]) == pytest.approx(1 - factor, abs=0.06)
    assert all(one.comes_and_goes for one in told)
    assert sum(one.finding is None for one in judge([series(logs) for logs in made]).verdicts) >= 14


def test_a_first_reference_that_fell_is_that_of_the_nights_before():
    assert last(slowed(quiet(18), 6, 0.5)).word == "shifted level"
    detector = NightlyDetector()
    detector.fit([1000.0] * 4 + [500.0] * 10, [ctx(n) for n in range(14)])
    assert [detector.update(500.0, ctx(14 + n)).status for n in range(3)] == ["transient", "transient", "regression"]


def test_noise_rarely_makes_a_first_reference_fall():
    judged = judge([series(noise(40, seed, 0.1, bad=0.12)) for seed in range(200)])
    assert sum(bool(track.findings) for track in judged.tracks) <= 10


def correlated(nights: int, rho: float, scale: float, seed: int) -> np.ndarray:
    """Each night is like the one before."""
    logs = np.random.default_rng(seed).standard_normal(nights) * scale
    for night in range(1, nights):
        logs[night] = rho * logs[night - 1] + math.sqrt(1 - rho**2) * logs[night]
    return logs


SHAPES = {
    "normal": lambda rng: 0.2 * rng.standard_normal(365),
    "exponential": lambda rng: -rng.exponential(0.15, 365),
    "log-normal": lambda rng: -0.05 * np.exp(1.2 * rng.standard_normal(365)),
    "heavy on both sides": lambda rng: 0.05 * rng.standard_t(2, 365),
    "correlated a little": lambda rng: correlated(365, 0.3, 0.07, int(rng.integers(1 << 30))),
    "weekends 10 % slow": lambda rng: 0.05 * rng.standard_normal(365) - 0.1 * (np.arange(365) % 7 >= 5),
    "one night a week of half the rate": lambda rng: 0.05 * rng.standard_normal(365) - 0.7 * (np.arange(365) % 7 == 2),
    "maintenance once a month": lambda rng: 0.05 * rng.standard_normal(365) - 0.5 * (np.arange(365) % 30 < 2),
    "three times as wide from summer on": lambda rng: rng.standard_normal(365) * np.where(np.arange(365) < 180, 0.05, 0.15),
    "none": lambda rng: np.zeros(365),
    "none but two bad nights in a hundred": lambda rng: np.log(np.where(rng.random(365) < 0.02, 0.6, 1.0)),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_noise_of_other_shapes_alarms_hardly_more_than_once_a_year(shape):
    tracks = judge([series(SHAPES[shape](np.random.default_rng(seed))) for seed in range(12)]).tracks
    assert sum(f.slower for track in tracks for f in track.findings) / 12 <= 1.5


def test_a_level_that_flaps_is_too_noisy_for_as_much_as_it_does_by_itself():
    blocks = slowed(quiet(240), 0, np.where(np.arange(240) // 15 % 2 == 1, 0.7, 1.0))
    judged = [last(blocks[:end]) for end in (55, 235)]
    assert [one.word for one in judged] == ["shifted level", "too noisy"]
    assert "times in 180 days it was slower and came back, by up to 3" in judged[1].reason
    assert last(slowed(blocks[:235], 225, 0.7)).word == "shifted level"
    assert last(slowed(quiet(40), 0, 1.0)).word == "pass"
    stayed = np.concatenate((blocks[:235], np.full(30, math.log(0.7))))
    assert last(stayed).word == "shifted level"


def test_a_slow_ramp_is_a_drift_or_a_shift_and_not_absorbed():
    nights = 260
    ramp = quiet(nights) - 0.001 * np.maximum(np.arange(nights) - 60, 0)
    verdict = last(ramp)
    assert verdict.word in ("drift", "shifted level")
    assert verdict.anchor == pytest.approx(1000, rel=0.03)


def test_the_state_goes_on_where_it_was_written_as_json():
    logs = slowed(noise(80, 3), 60, 0.85)
    whole, first = Bank(1), Bank(1)
    slots = Calendar(days_of_month=frozenset({1, 2})).slots(dates(80)).reshape(-1, 1)
    for bank in (whole, first):
        bank.learn(logs[:30, None], slots[:30])
    for night in range(30, 55):
        whole.step(logs[night, None], slots[night])
        first.step(logs[night, None], slots[night])
    again = Bank.from_rows([json.loads(json.dumps(first.row(0), allow_nan=False))])
    for night in range(55, 80):
        assert again.step(logs[night, None], slots[night]).score == whole.step(logs[night, None], slots[night]).score
    for other in ("other", "iogauge.detector/1"):
        with pytest.raises(ValueError, match=f"of form '{other}'"):
            Bank.from_rows([{**first.row(0), "form": other}])


def test_series_judged_together_are_judged_as_alone():
    made = [series(slowed(noise(120 + 7 * n, n), 80 + n, 0.8), f"s{n}") for n in range(6)]
    together = judge(made)
    for one, verdict, track in zip(made, together.verdicts, together.tracks, strict=True):
        alone = judge([one])
        assert alone.verdicts[0] == verdict
        np.testing.assert_array_equal(alone.tracks[0].score, track.score)


def test_the_detector_alone_tells_what_the_judge_tells():
    logs = slowed(quiet(70), 60, 0.75)
    detector = NightlyDetector()
    detector.fit(list(1000 * np.exp(logs[:30])), [ctx(n) for n in range(30)])
    told = [n for n in range(30, 70) if detector.update(1000 * math.exp(logs[n]), ctx(n)).score >= detector.h]
    found = judge([series(logs)]).verdicts[0].finding
    assert found is not None
    assert day(told[0]) == found.found
    detector.ack()
    assert detector.update(1000.0, ctx(70)).score < 0.5 * detector.h


def test_the_threshold_moves_the_cap_on_a_night_with_it():
    logs = slowed(quiet(70), 60, 0.5)
    for h in (2.0, THRESHOLD, 40.0):
        detector = NightlyDetector()
        detector.h = h
        detector.fit(list(np.exp(logs[:60])), [ctx(n) for n in range(60)])
        scores = [detector.update(math.exp(logs[n]), ctx(n)).score for n in (60, 61)]
        assert scores[1] < h


def test_evidence_below_the_cap_is_the_same_at_any_threshold():
    logs = slowed(noise(62, 1, 0.1, bad=0), 60, 0.7)
    scores = []
    for h in (20.0, 40.0):
        detector = NightlyDetector(h)
        detector.fit(list(np.exp(logs[:60])), [ctx(n) for n in range(60)])
        scores.append(max(detector.update(math.exp(logs[n]), ctx(n)).score for n in (60, 61)))
    assert scores[0] == pytest.approx(scores[1])
    assert scores[0] > 0


def test_going_on_from_states_gives_what_judging_everything_gives():
    steps = [(60, 0.75, 1.0), (75, 0.8, 1.1), (90, 1.0, 0.6), (60, 1.4, 0.7)]
    logs = [slowed(slowed(noise(200, n), start, one), 130, two) for n, (start, one, two) in enumerate(steps)]
    bless = {"s1": [Action("bless", day(110), "anna", "new quota", since=day(80))]}
    whole = judge([series(one, f"s{n}") for n, one in enumerate(logs)], bless)
    states: dict[str, dict[str, object]] = {}
    for end in (20, 100, 125, 150, 199, 200):
        parts = [series(one[:end], f"s{n}") for n, one in enumerate(logs)]
        judged = judge(
            parts, {key: [a for a in said if a.said < day(end)] for key, said in bless.items()}, states=states
        )
        states = json.loads(json.dumps(dict(zip([p.key for p in parts], judged.states, strict=True)), allow_nan=False))
    assert judged.verdicts == whole.verdicts
    assert [track.findings for track in judged.tracks] == [track.findings for track in whole.tracks]
    assert any(track.findings for track in whole.tracks)
    with pytest.raises(ValueError, match="of form 'other'"):
        judge(parts, states={"s0": {"form": "other"}})


class TestMaintenance:
    days = frozenset({1, 2, 3, 4})

    def slow_days(self, nights: int, days: set[int]) -> np.ndarray:
        logs = quiet(nights)
        logs[[day(n).day in days for n in range(nights)]] += math.log(0.6)
        return logs

    def test_nights_of_known_maintenance_tell_nothing(self):
        logs = self.slow_days(365, {1, 2, 3, 4})
        calendar = Calendar(days_of_month=self.days)
        assert any(f.slower for f in judge([series(logs)]).tracks[0].findings)
        assert not judge([series(logs, calendar=calendar)]).tracks[0].findings

    def test_a_day_that_was_always_good_counts_in_spite_of_the_calendar(self):
        logs = self.slow_days(400, set())
        start = next(n for n in range(330, 400) if day(n).day == 1)
        found = judge([series(slowed(logs[: start + 4], start, 0.7), calendar=Calendar(days_of_month=self.days))])
        assert found.verdicts[0].word == "shifted level"

    def test_a_window_with_dates_leaves_its_nights_out(self):
        logs = slowed(quiet(80), 70, 0.3)
        window = Calendar(windows=((day(70), day(79)),))
        verdict = judge([series(logs, calendar=window)]).verdicts[0]
        assert (verdict.word, verdict.reason) == ("pass", "in a maintenance window: not judged")
        assert verdict.maintenance

    def test_a_bad_day_of_the_month_is_a_hint(self):
        tracks = judge([series(self.slow_days(300, {3}) + noise(300, n, bad=0.03), f"s{n}") for n in range(5)]).tracks
        assert [hint.day_of_month for hint in maintenance_hints(fuse(tracks))] == [3]
        assert not maintenance_hints(fuse(judge([series(noise(300, n), f"s{n}") for n in range(5)]).tracks))

    def test_a_restless_file_system_is_no_hint(self):
        for world in range(5):
            together = np.where(np.random.default_rng(world).random(120) < 0.3, -0.5, 0.0)
            made = [series(together + noise(120, 9 * world + n, bad=0), f"s{n}") for n in range(4)]
            assert not maintenance_hints(fuse(judge(made).tracks))

    def test_days_that_are_none_are_named(self):
        with pytest.raises(InputError, match="days_of_month: 32; 1 to 31 are allowed"):
            Calendar(days_of_month=frozenset({32}))
        with pytest.raises(InputError, match="ends before it begins"):
            Calendar(windows=((day(2), day(1)),))


class TestVerdicts:
    def test_no_reference_before_14_nights(self):
        assert (last(quiet(14)).word, last(quiet(14)).reason) == ("no reference", "14 of 14 nights")
        assert last(quiet(15)).word == "pass"
        assert last(quiet(15)).provisional
        assert not last(quiet(60)).provisional

    def test_too_noisy_says_what_could_be_found(self):
        verdict = last(noise(90, 4, scale=0.45))
        assert verdict.word == "too noisy"
        assert verdict.reason.startswith("smallest slowdown that could be found within 14 nights: ")

    @pytest.mark.parametrize(("scale", "bad"), [(0.04, 0.05), (0.1, 0.1), (0.2, 0.1)])
    def test_the_smallest_slowdown_is_found_that_often(self, scale, bad):
        start = 100
        before = [noise(start + 14, seed, scale, bad) for seed in range(80)]
        said = [one.smallest_drop or 1.0 for one in judge([series(logs[:start]) for logs in before]).verdicts]
        made = [series(slowed(logs, start, 1 - drop)) for logs, drop in zip(before, said, strict=True)]
        found = [any(f.slower and f.found >= day(start) for f in track.findings) for track in judge(made).tracks]
        assert np.mean(found) > 0.65

    def test_a_shift_says_how_much_since_when_and_after_what(self):
        one = series(slowed(quiet(80), 70, 0.75))
        software = np.where(np.arange(80) >= 70, 1, 0)
        versions = ({"HDF5": "1.14.3", "MPI": "4.1"}, {"HDF5": "1.14.5", "MPI": "4.1"})
        verdict = judge([replace(one, software=software, versions=versions)]).verdicts[0]
        assert verdict.word == "shifted level"
        assert f"% slower since {day(70)}, since HDF5 1.14.3 -> 1.14.5 (" in verdict.reason
        assert verdict.finding is not None
        assert verdict.finding.began == day(70)
        assert verdict.drop == pytest.approx(0.25, abs=0.04)

    def test_a_shift_stays_until_it_has_ended(self):
        logs = slowed(slowed(quiet(200), 60, 0.75), 150, 1 / 0.75)
        assert last(logs[:150]).word == "shifted level"
        after = last(logs)
        assert after.word == "pass"
        assert [(f.slower, f.how) for f in after.findings] == [(True, "back at its level")]

    def test_a_rise_is_improved_for_a_month_then_normal(self):
        logs = slowed(quiet(150), 60, 1.3)
        assert last(logs[:75]).word == "improved"
        assert last(logs[:75]).reason.startswith("30% faster since")
        assert last(logs).word == "pass"
        assert last(logs).anchor == pytest.approx(1300, rel=0.03)

    def test_a_rise_began_on_the_night_on_which_it_rose_and_not_on_one_barely_better_than_usual(self):
        finding = last(slowed(quiet(75), 63, 1.4)).finding
        assert finding is not None
        assert finding.began == day(63)

    def test_a_loss_soon_after_a_rise_is_found(self):
        assert last(slowed(slowed(quiet(100), 60, 1.5), 90, 0.8)).word == "shifted level"

    def test_one_bad_night_is_a_transient_with_its_count(self):
        logs = quiet(60)
        logs[[56, 59]] += math.log(0.6)
        verdict = last(logs)
        assert (verdict.word, verdict.bad_nights) == ("transient", 2)
        assert verdict.reason == f"{1 - 1 / math.exp(-math.log(verdict.rate / verdict.reference)):.0%} below the reference; 2 of 7 nights"  # type: ignore[operator]  # fmt: skip # noqa: E501

    def test_a_night_without_a_true_rate_is_invalid_and_no_evidence(self):
        nights = [Night(day(n), (1000.0,)) for n in range(40)]
        verdict = judge([history("s", [*nights, Night(day(40), (), invalid="data differ")])]).verdicts[0]
        assert (verdict.word, verdict.reason, verdict.rate) == ("invalid", "data differ", None)
        gone = [Night(day(n), (), invalid="data differ") for n in range(40, 50)]
        assert judge([history("s", [*nights, *gone, Night(day(50), (1000.0,))])]).verdicts[0].word == "pass"

    def test_another_configuration_has_no_reference_yet(self):
        nights = [Night(day(n), (1000.0,), configuration="a") for n in range(40)]
        nights += [Night(day(n), (500.0,), configuration="b") for n in range(40, 50)]
        verdict = judge([history("s", nights)]).verdicts[0]
        assert (verdict.word, verdict.reason) == ("no reference", "10 of 14 nights")
        assert not verdict.findings


class TestOperators:
    logs = slowed(quiet(100), 60, 0.75)

    def judged(self, logs: np.ndarray, *actions: Action) -> SeriesVerdict:
        return judge([series(logs)], {"s": actions}).verdicts[0]

    def test_a_blessed_level_is_the_new_reference_and_anchor(self):
        bless = Action("bless", day(80), "anna", "new quota", since=day(61))
        verdict = self.judged(self.logs, bless)
        assert verdict.word == "pass"
        assert verdict.anchor == pytest.approx(750, rel=0.03)
        assert verdict.findings[-1].how == "blessed by anna: new quota"
        assert self.judged(slowed(self.logs, 95, 0.7), bless).word == "shifted level"

    def test_a_bless_after_the_last_night_counts_at_once(self):
        assert self.judged(self.logs, Action("bless", day(99), "anna", "new quota", since=day(61))).word == "pass"

    def test_an_acknowledged_shift_stays_and_says_by_whom(self):
        verdict = self.judged(self.logs, Action("ack", day(80), "anna", "vendor has a ticket"))
        assert verdict.word == "shifted level"
        assert verdict.reason.endswith("; acknowledged by anna")

    def test_a_mute_ends_on_its_day(self):
        mute = Action("mute", day(80), "anna", "rebuild", until=day(90))
        assert self.judged(self.logs[:90], mute).muted == mute
        assert self.judged(self.logs[:91], mute).muted is None

    def test_actions_without_a_reason_or_an_end_are_turned_down(self):
        with pytest.raises(InputError, match="why: empty"):
            Action("ack", day(1), "anna", " ")
        with pytest.raises(InputError, match="until: a mute needs an end"):
            Action("mute", day(1), "anna", "noise")


class TestBadInput:
    def test_rates_that_are_none_are_told_and_left_out(self):
        nights = [Night(day(n), (1000.0, 900.0)) for n in range(40)]
        made = history("s", [*nights, Night(day(40), (math.nan, 0.0, -3.0, math.inf))])
        assert judge([made]).verdicts[0].word == "invalid"
        assert made.invalid[40] == "; ".join(
            f"{rate} MiB/s is no rate; only numbers above 0 are" for rate in ("nan", "0", "-3", "inf")
        )
        some = history("s", [*nights, Night(day(40), (math.nan, 990.0))])
        assert judge([some]).verdicts[0].rate == 990

    def test_the_detector_alone_leaves_them_out_too(self):
        detector, same = NightlyDetector(), NightlyDetector()
        for each in (detector, same):
            each.fit([1000.0] * 30, [ctx(n) for n in range(30)])
            each.update(700.0, ctx(30))
        assert [detector.update(rate, ctx(31)).status for rate in (math.nan, 0.0, -1.0, math.inf)] == ["invalid"] * 4
        assert detector.update(700.0, ctx(32)) == same.update(700.0, ctx(31))

    def test_a_detector_without_a_reference_tells_nothing(self):
        detector = NightlyDetector()
        detector.fit([], [])
        assert [detector.update(1000.0, ctx(n)).score for n in range(10)] == [0.0] * 10

    def test_the_same_night_twice_is_one_with_all_repeats_and_order_is_mended(self):
        nights = [Night(day(n), (1000.0,)) for n in range(40)]
        made = history("s", [Night(day(39), (700.0, 1100.0)), *nights])
        assert len(made) == 40
        assert made.repeats[39] == (700.0, 1100.0, 1000.0)
        assert made.rates[39] == 1100
        assert made.notes == ("nights were not in order of time (a clock was set?); sorted by date",)

    def test_another_unit_is_never_compared(self):
        nights = [Night(day(n), (1000.0,)) for n in range(40)] + [Night(day(40), (1e-3,), unit="operations/s")]
        assert judge([history("s", nights)]).verdicts[0].word == "no reference"

    def test_a_history_without_a_night_is_named(self):
        with pytest.raises(ValueError, match="s: a history without a night"):
            judge([history("s", [])])


class TestFileSystem:
    attributes = {
        f"{op}/{access}/{interface}": {"interface": interface, "access": access, "operation": op + "s"}
        for op in ("write", "read")
        for access in ("collective", "independent")
        for interface in ("HDF5", "MPI-IO")
    }

    def judged(self, slow, factor: float = 0.75):
        made = [
            series(slowed(noise(100, n, bad=0.02), 85, factor if slow(key) else 1.0), key)
            for n, key in enumerate(self.attributes)
        ]
        result = judge(made)
        return scope("disk", result.verdicts, self.attributes, judge_file_system("disk", result.tracks))

    def test_all_series_are_the_whole_file_system(self):
        found = self.judged(lambda key: True)
        assert found is not None
        assert (found.text, found.whole) == ("the whole file system disk", True)
        assert abs((found.began - day(85)).days) <= 3

    def test_what_is_common_to_the_slow_series_names_them(self):
        found = self.judged(lambda key: key == "write/collective/HDF5", 0.6)
        assert found is not None
        assert found.text == "only HDF5 collective writes on disk"
        found = self.judged(lambda key: key.startswith("write"), 0.6)
        assert found is not None
        assert found.text == "only writes on disk"

    def test_nothing_slow_is_nothing(self):
        assert self.judged(lambda key: False) is None

    def test_together_they_tell_sooner_than_alone(self):
        start, alone, together = 90, [], []
        for world in range(8):
            logs = [slowed(noise(start + 14, 50 * world + n, 0.12), start, 0.8) for n in range(6)]
            result = judge([series(one, f"s{n}") for n, one in enumerate(logs)])
            alone += [next((f.found for f in t.findings if f.found >= day(start)), day(999)) for t in result.tracks]
            fused = judge_file_system("disk", result.tracks)
            assert fused is not None
            together.append(next((f.found for f in fused.findings if f.found >= day(start)), day(999)))
        assert sorted(together)[4] < sorted(alone)[24]

    @pytest.mark.parametrize("rho", [0.9, 0.97])
    def test_waves_of_a_file_system_are_no_slowdown_of_it(self, rho):
        told = 0
        for world in range(4):
            wave = correlated(365, rho, 0.04, world)
            tracks = judge([series(noise(365, 100 * world + n) + wave, f"s{n}") for n in range(6)]).tracks
            together = judge_file_system("disk", tracks)
            assert together is not None
            told += sum(f.slower for f in together.findings)
        assert told <= 2

    def test_two_series_are_no_file_system(self):
        assert judge_file_system("disk", judge([series(quiet(60), "a"), series(quiet(60), "b")]).tracks) is None
