"""Two runs of one night: of each series the better one counts, and a run that failed costs the other nothing."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from assessed import site
from samples import case, invalid_case, make_night

from iogauge.combined import ASSESSMENT, combined, read_night
from iogauge.night import Case, Night
from iogauge.verdict import Told

LATER = datetime(2026, 11, 21, 6, tzinfo=timezone.utc)


def second(*cases: Case, **changes: Any) -> Night:
    return make_night(*cases, **({"started": LATER} | changes))


def rates(night: Night) -> dict[str, float]:
    return {row.operation: row.observed for _, row in night.rows}


def verdicts(night: Night) -> list[Told]:
    return [told for _, _, told in night.told]


def test_of_each_series_the_better_run_counts_with_the_repeats_of_both():
    slow, fast = make_night(case("write", slower=2.0)), second(case("write"))
    for night in (combined(slow, fast), combined(fast, slow)):
        assert rates(night) == rates(fast)
        ((_, row),) = night.rows
        assert len(row.observed_repeats) == len(row.raw_repeats) == 6
        assert row.observed == max(row.observed_repeats)
    both = combined(slow, fast)
    assert "two runs of this night, 2026-11-21 02:00 UTC and 2026-11-21 06:00 UTC" in both.notes[0]
    assert (both.started, both.selected) == (LATER, 1)


def test_a_ratio_that_was_bad_in_the_slower_run_alone_does_not_count():
    bad, good = make_night(case("write", ratio=2.0, slower=2.0)), second(case("write", ratio=0.92))
    assert (bad.exit_code, combined(bad, good).exit_code) == (1, 0)
    assert combined(bad, good).cases[0].judgement.verdict == "pass"
    assert combined(bad, make_night(case("write", ratio=2.0, slower=3.0))).exit_code == 1


def test_a_case_that_is_invalid_in_one_run_is_invalid_and_one_that_ran_once_is_kept():
    broken = invalid_case("2 ranks share core 0")
    well = case("write", name="Broken")
    for night in (combined(make_night(broken), second(well)), combined(make_night(well), second(broken))):
        assert (night.exit_code, len(night.cases)) == (1, 1)
        assert night.cases[0].judgement.reasons[0] == "2 ranks share core 0"
    assert (
        "so in the run of 2026-11-21 02:00 UTC" in combined(make_night(broken), second(well)).cases[0].judgement.reasons
    )
    once = combined(make_night(case("write", name="A")), second(case("write", name="B")))
    assert ({one.name for one in once.cases}, once.selected) == ({"A", "B"}, 2)


def test_the_same_case_of_two_environs_is_two_cases():
    first = make_night(*(case("write").model_copy(update={"environ": name}) for name in ("gcc", "hdf5-2")))
    assert len(combined(first, second(*first.cases)).cases) == 2


def test_a_run_that_did_not_end_or_measured_nothing_does_not_count_and_is_told():
    whole = make_night(case("write"))
    for failed, why in (
        (second(complete=False, cause="stopped by SIGINT"), "stopped by SIGINT"),
        (second(build_failure="no compiler"), "no compiler"),
        (second(), "nothing was measured"),
    ):
        night = combined(whole, failed)
        assert (night.exit_code, rates(night)) == (0, rates(whole))
        assert night.notes == (f"the second run of this night, 2026-11-21 06:00 UTC: {why}; the first counts",)
        other = combined(failed, whole)
        assert (other.exit_code, rates(other)) == (0, rates(whole))
        assert f"the first run of this night, 2026-11-21 06:00 UTC: {why}; this one counts" in other.notes
    neither = combined(make_night(complete=False, cause="x"), second(complete=False, cause="y"))
    assert neither.exit_code == 2


def kept(folder: Path, night: Night) -> Path:
    folder.mkdir()
    night.save(folder / "night.json")
    return folder


def test_what_lies_beside_a_record_is_read_with_it_and_what_cannot_be_is_told(tmp_path):
    first = kept(tmp_path / "20261121T020000Z", make_night(case("write")))
    later = kept(tmp_path / "20261121T060000Z", second(case("write", slower=2.0), first_run=first.name))
    known = site({}).assessment.model_dump_json(by_alias=True)
    (later / ASSESSMENT).write_text(known, encoding="utf-8")
    night = read_night(later)
    assert rates(night) == rates(read_night(first))
    assert night.assessment is not None
    assert "assessment" not in Night.load(later / "night.json").model_dump(), "in a file of its own"
    (later / ASSESSMENT).write_text(known[:-20], encoding="utf-8")
    (first / "night.json").unlink()
    alone = read_night(later)
    assert rates(alone) == rates(Night.load(later / "night.json"))
    assert "the verdicts are those of one night alone" in alone.notes[0]
    assert "the first run of this night is not here any more" in alone.notes[1]


def test_a_second_run_after_noon_is_still_of_the_night_of_the_first():
    first = make_night(case("write"))
    assert second(started=LATER.replace(hour=20)).night_date != first.night_date
    assert second(started=LATER.replace(hour=20), of_night=first.night_date).night_date == first.night_date
