"""The verdict on a row of a night: whose word counts, how it is put, whether it is an alarm; the same wherever it is shown."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest
from assessed import LAST_NIGHT, site
from rich.console import Console
from samples import case, judgement, make_night, record, site_bands

from iogauge import report, terminal
from iogauge.assess.record import Assessment, FileSystemState, Move, Said, Scope
from iogauge.detect import Action
from iogauge.night import Night
from iogauge.notify.junit import as_xml
from iogauge.status import headline
from iogauge.tonight import Tonight
from iogauge.verdict import Told, of_file_systems

KEY = "particles/write/disk/1x2/CC/hdf5"
SHIFTED = "shifted level since 2026-11-17, 20 % below"
SINCE = ", since HDF5 1.14.3 -> 1.14.5"


def assessment(event: Any, *actions: Action, **changes: Any) -> Assessment:
    """What a site knows of the series of :func:`night`, with what happened to it."""
    made = site({KEY: event}, actions={KEY: actions}).assessment
    (row,) = (row for _, row in make_night(case("write")).rows)
    (state,) = made.series
    return made.model_copy(update={"series": (state.model_copy(update={"fingerprint": row.fingerprint, **changes}),)})


def night(known: Assessment | None, **changes: Any) -> Night:
    return make_night(case("write", **changes), assessment=known)


def verdict(found: Night) -> Told:
    ((_, _, told),) = found.told
    return told


def said(kind: Any, days_ago: int = 1, **until: Any) -> Action:
    return Action(kind, LAST_NIGHT - datetime.timedelta(days=days_ago), "kim", "ticket 4711", **until)


@pytest.mark.parametrize(
    ("event", "text", "exit_code"),
    [
        ("shift", SHIFTED, 1),
        ("steady", "pass", 0),
        ("bad", "transient (1 of 7 nights)", 0),
        ("improved", "improved since 2026-11-13, 39 % above 405 MiB/s", 0),
        ("new", "no reference (1 of 14 nights)", 0),
    ],
)
def test_the_detectors_word_counts_as_soon_as_it_has_a_reference(event, text, exit_code):
    found = night(assessment(event))
    assert verdict(found).text.startswith(text)
    assert found.exit_code == exit_code
    assert found.counts[verdict(found).word] == 1
    assert sum(found.counts.values()) == 1


def test_a_shifted_level_says_since_when_by_how_much_and_since_what():
    told = verdict(night(assessment("shift")))
    assert told.text.startswith(SHIFTED)
    assert told.text.endswith(f" MiB/s{SINCE}")
    assert told.alarm


def slower_together(known: Assessment, acknowledged: Said | None = None) -> Assessment:
    """The same on a file system that is slower by the evidence of all its series, and by that of none alone."""
    began = LAST_NIGHT - datetime.timedelta(days=2)
    whole = FileSystemState(
        name="disk",
        word="shifted level",
        reason="20 % slower",
        date=LAST_NIGHT,
        threshold=4.0,
        moves=(Move(slower=True, began=began, found=LAST_NIGHT, before=1.0, after=0.8, acknowledged=acknowledged),),
        scope=Scope(text="the whole file system disk", keys=(), began=began, whole=True),
    )
    return known.model_copy(update={"file_systems": (whole,)})


def test_a_file_system_that_only_all_series_together_show_to_be_slower_is_an_alarm_until_they_are_muted():
    found = night(slower_together(assessment("steady")))
    assert (verdict(found).text, found.exit_code) == ("pass", 1)
    told = Tonight("test", found.assessment, found)
    assert told.exit_code == 1
    assert headline(told) == "SLOWER: the whole file system disk"
    assert '<failure message="the whole file system disk is 20 % slower since 2026-11-18"' in as_xml(told)
    muted = night(slower_together(assessment("steady", said("mute", until=datetime.date(2026, 12, 1)))))
    assert muted.exit_code == 0
    assert Tonight("test", muted.assessment, muted).exit_code == 0


def test_a_file_system_that_was_acknowledged_as_a_whole_is_known_and_no_alarm():
    known = slower_together(assessment("steady"), Said(kind="ack", who="kim", why="ticket", on=LAST_NIGHT))
    found = night(known)
    told = Tonight("test", found.assessment, found)
    assert (found.exit_code, told.exit_code) == (0, 0)
    assert list(of_file_systems(known)) == ["the whole file system disk is 20 % slower since 2026-11-18; known"]
    assert "<failure" not in as_xml(told)


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (said("ack"), "; acknowledged by kim"),
        (said("mute", until=datetime.date(2026, 12, 1)), "; muted until 2026-12-01 by kim"),
    ],
)
def test_what_an_operator_knows_is_told_and_no_alarm(action, text):
    found = night(assessment("shift", action))
    assert verdict(found).text.endswith(SINCE + text)
    assert (verdict(found).alarm, found.exit_code) == (False, 0)
    assert found.counts["shifted level"] == 1


def test_a_noisy_series_says_what_could_be_found_in_it():
    noisy = assessment("steady", word="too noisy", smallest_drop=0.41)
    assert verdict(night(noisy)).text == "too noisy (could find 41 %)"
    hopeless = assessment("steady", word="too noisy", smallest_drop=None)
    assert verdict(night(hopeless)).text == "too noisy (could find nothing)"


def test_a_site_band_is_evidence_beside_the_detectors_word_and_a_verdict_without_it():
    below = case("write").model_copy(update={"judgement": judgement(record(), site=site_bands(200, KEY))})
    alone = make_night(below)
    assert (verdict(alone).text, alone.exit_code) == ("regressed", 1)
    steady = alone.model_copy(update={"assessment": assessment("steady")})
    assert (verdict(steady).text, steady.exit_code) == ("pass; below its band", 0)
    assert "band 180 to 220 MiB/s" in verdict(steady).reason
    young = alone.model_copy(update={"assessment": assessment("new")})
    assert (verdict(young).text, young.exit_code) == ("regressed", 1)


def test_a_ratio_below_its_portable_band_is_regressed_whatever_the_rate_is_unless_it_is_muted():
    found = night(assessment("steady"), ratio=2.0)
    assert (verdict(found).text, found.exit_code) == ("regressed", 1)
    muted = night(assessment("steady", said("mute", until=datetime.date(2026, 12, 1))), ratio=2.0)
    assert (verdict(muted).text, muted.exit_code) == ("regressed; muted until 2026-12-01 by kim", 0)


@pytest.mark.parametrize(
    "changes", [{"fingerprint": "00000000"}, {"date": LAST_NIGHT - datetime.timedelta(days=1)}, {"key": f"{KEY}@gpu"}]
)
def test_what_is_known_of_another_night_configuration_or_arm_is_not_this_rows(changes):
    assert verdict(night(assessment("shift", **changes))).text == "no reference (1 of 14 nights)"


def keys(file_system: str, *interfaces: str) -> list[str]:
    return [
        f"particles/{operation}/{file_system}/{nodes}x1/CC/{interface}"
        for interface in interfaces
        for operation in ("write", "read")
        for nodes in (1, 2, 4)
    ]


def test_a_file_system_says_what_of_it_is_slower_and_how_far_it_is_known():
    whole = site(dict.fromkeys(keys("scratch", "hdf5", "posix"), "shift")).assessment
    (sentence,) = of_file_systems(whole)
    assert sentence.startswith("the whole file system scratch is ")
    assert sentence.endswith(f" % slower since 2026-11-17{SINCE}")
    events: dict[str, Any] = dict.fromkeys(keys("scratch", "hdf5"), "shift")
    part = site(events | dict.fromkeys(keys("scratch", "posix"), "steady"), upgrade=False).assessment
    (sentence,) = of_file_systems(part)
    assert re.fullmatch("only .+ on scratch: [0-9]+ % slower since 2026-11-17", sentence)
    acks = {key: (said("ack"),) for key in keys("scratch", "hdf5", "posix")}
    (known,) = of_file_systems(site(dict.fromkeys(keys("scratch", "hdf5", "posix"), "shift"), actions=acks).assessment)
    assert known.endswith("; known")
    assert not list(of_file_systems(site(dict.fromkeys(keys("scratch", "hdf5"), "steady")).assessment))


def test_terminal_evidence_page_and_counts_say_the_same():
    whole = site(dict.fromkeys(keys("disk", "hdf5", "posix"), "shift")).assessment
    known = assessment("shift")
    found = night(known.model_copy(update={"file_systems": whole.file_systems}))
    console = Console(record=True, width=400)
    terminal.print_night(console, found)
    table = console.export_text()
    terminal.print_evidence(console, found, KEY)
    evidence = console.export_text()
    assert " nights; 4 of the last 7 nights bad; could find a slowdown of " in evidence
    texts = (table, evidence, report.render(found).replace("&gt;", ">"))
    assert all(verdict(found).text in text for text in texts)
    assert table.index("the whole file system disk is") < table.index("file system  case"), "above the table"
    assert "the whole file system disk is" in texts[2]
    assert "1 shifted level" in terminal.counts_line(found)
    assert report.banner(found) == ("shifted level", "1 shifted level")
