"""The report of a site: everything is on it, it is whole, and a real browser shows and draws it without a network."""

from __future__ import annotations

import datetime
import json
import os
import re
import resource
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
import vl_convert
from assessed import LAST_NIGHT, keys, site
from click.testing import CliRunner
from conftest import wait_until
from run_reports import one_night, written
from samples import case, invalid_case, judgement, make_night, record, site_bands

from iogauge import cli
from iogauge.assess.record import Assessed, Assessment, Scope
from iogauge.detect import Action
from iogauge.errors import InputError
from iogauge.report import figures, words
from iogauge.report import site as report_site
from iogauge.report.site import MARKER, write_site

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

#: What others name must stay text.
EVIL = "x\"><script>alert(1)</script><img src=y onerror=alert(2)>&amp;'{{ 7 * 7 }}"
#: A file system's name with all of it that a key can hold.
ODD = "w'\"><img src=y onerror=alert(2)>&amp; {{ 7 * 7 }}"

SLOWER = "particles/read/scratch/1x1/CC/hdf5"
MUTED = "particles/read/scratch/2x1/CC/hdf5"
KNOWN = "particles/read/scratch/1x4/CC/hdf5"
INVALID = "particles/read/scratch/1x1/CI/hdf5"
MISSING = f"particles/write/{ODD}/2x1/CC/hdf5"
BAD = f"particles/read/{ODD}/1x1/CI/hdf5"
#: As samples.case() measures it: a night has evidence of it.
WITH_RUN = "particles/write/disk/1x2/CC/hdf5"


def said(kind: str, **changes: object) -> Action:
    return Action(kind, LAST_NIGHT, "ada", f"ticket {EVIL}", **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def assessed() -> Assessed:
    """Twenty series of everything."""
    keys = [
        f"particles/{operation}/{name}/{point}/{pattern}/{interface}"
        for name in ("scratch", ODD)
        for operation, point, pattern, interface in (
            ("read", "1x1", "CC", "hdf5"),
            ("read", "1x1", "CC", "mpiio"),
            ("read", "1x1", "CC", "posix"),
            ("read", "1x1", "CI", "hdf5"),
            ("read", "1x1", "CC-2d", "hdf5"),
            ("read", "1x1", "CC-partial", "hdf5"),
            ("read", "2x1", "CC", "hdf5"),
            ("read", "1x4", "CC", "hdf5"),
            ("write", "2x1", "CC", "hdf5"),
        )
    ]
    events = dict.fromkeys([*keys, WITH_RUN, "particles/read/disk/1x2/CC/hdf5"], "steady")
    events |= {SLOWER: "shift", MUTED: "shift", KNOWN: "shift", INVALID: "invalid", BAD: "bad"}
    events |= {f"particles/read/{ODD}/1x1/CC/posix": "new", f"particles/read/{ODD}/1x1/CC-2d/hdf5": "improved"}
    until = LAST_NIGHT + datetime.timedelta(days=9)
    actions = {MUTED: [said("mute", until=until)], KNOWN: [said("ack")]}
    made = site(events, nights=60, actions=actions)
    states = [
        state.model_copy(
            update={INVALID: {"reason": EVIL}, MISSING: {"date": LAST_NIGHT - datetime.timedelta(days=3)}}.get(state.key, {})
        )
        for state in made.assessment.series
    ]  # fmt: skip
    assessment = made.assessment.model_copy(update={"series": tuple(states), "notes": (EVIL,)})
    lines = (replace(line, invalid={59: EVIL}) if line.key == INVALID else line for line in made.timelines)
    return Assessed(assessment, tuple(lines))


def the_run() -> object:
    """A night of LAST_NIGHT, whose case has a site band and something to say."""
    changed = judgement(record(), site=site_bands(103.0, WITH_RUN)).model_copy(update={"changes": (EVIL,)})
    return make_night(case("write").model_copy(update={"judgement": changed}))


@pytest.fixture(scope="module")
def folder(assessed: Assessed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of it."""
    return write_site(assessed, [the_run()], tmp_path_factory.mktemp("site") / "report").parent


class Page(HTMLParser):
    """Words, links, identifiers and elements of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        for name, value in attributes:
            if name in ("href", "src"):
                self.links.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_data(self, text):
        self.words.append(text)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def page_of(folder: Path, key: str) -> Path:
    return folder / "series" / f"{words.file_name(key)}.html"


def plot(path: Path) -> dict[str, object]:
    """What the first plot of a page is drawn from."""
    found = re.search(r'<script type="application/json">(.*?)</script>', path.read_text(encoding="utf-8"))
    return json.loads(found[1])


def test_every_link_of_every_page_leads_somewhere_inside_the_report(folder):
    pages = {path: Page(path) for path in folder.rglob("*.html")}
    assert len(pages) == 1 + 1 + 3 + 2 + 20 + 1, "overview, scaling, file systems, patterns, series, the night"
    for path, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), path
        scopes = Counter(attributes.get("scope") for tag, attributes in page.tags if tag == "th")
        tags = Counter(tag for tag, _ in page.tags)
        assert scopes["row"] == tags["tr"] - tags["thead"], (path, "a row without a header")
        parts = [attributes["aria-label"] for tag, attributes in page.tags if attributes.get("role") == "region"]
        assert len(parts) == len(set(parts)), (path, "who hears the page cannot tell them apart")
        for link in page.links:
            if link == "data:,":
                continue
            name, _, part = unquote(link).partition("#")
            target = (path.parent / name).resolve() if name else path
            assert target.is_relative_to(folder), (path, link)
            assert target.is_file(), (path, link)
            if part:
                assert part in pages[target].ids, (path, link)


def test_the_overview_says_what_is_wrong_first_and_then_everything_else(folder, assessed):
    text = Page(folder / "index.html").text
    order = [
        "1 of 19 series slower, 1 invalid",
        "Only CC HDF5 reads on scratch: 20 % slower since 2026-11-17, since HDF5 1.14.3 -> 1.14.5",
        "19 series tonight:",
        "To look at",
        "By file system and suite",
        "What changed since the last good night",
        "On 2026-11-16 nothing was slower",
        "HDF5 1.14.3 -> 1.14.5 (20 series)",
        "Good to know",
        "Slower, and known",
        "Not measured tonight",
        "Tonight's runs",
        "All series",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    look = text[text.index("To look at") : text.index("By file system")]
    assert SLOWER in look
    assert INVALID in look
    assert KNOWN not in look
    assert MUTED not in look
    known = text[text.index("Slower, and known") : text.index("Not measured tonight")]
    assert "muted until 2026-11-29 by ada" in known
    assert "acknowledged on 2026-11-20 by ada" in known
    assert MISSING in text[text.index("Not measured tonight") : text.index("Tonight's runs")]
    for state in assessed.assessment.series:
        assert state.key in text[text.index("All series") :]


def test_a_series_page_has_its_evidence_in_words_and_in_tables(folder, assessed):
    text = Page(page_of(folder, SLOWER)).text
    state = next(one for one in assessed.assessment.series if one.key == SLOWER)
    for part in (
        "shifted level : 20 % slower",
        "HDF5 1.14.3 -> 1.14.5",
        "smallest slowdown found in 14 nights 8 %",
        f"iogauge history bless {SLOWER} --site test --since 2026-11-17",
        f"2026-11-20 {state.rate:.0f} -",
        "2026-11-01 ",
        "maintenance",
    ):
        assert part in text
    run = Page(page_of(folder, WITH_RUN)).text
    assert "the site's band is 92.7 to 113 MiB/s" in run
    assert EVIL in run, "what Darshan or the changes say"
    assert plot(page_of(folder, WITH_RUN))["band"] == [92.7, 113.3]
    assert "2 ranks on 2 cores of 1 host" in run


def test_the_judge_of_one_night_decides_until_there_is_a_reference(tmp_path):
    """And a ratio inside one job that is below its portable band goes before the detector's verdict."""
    made = site({WITH_RUN: "new"})
    for ratio, word, alarm in ((None, "no reference", False), (0.92, "pass", False), (2.0, "regressed", True)):
        night = make_night(case("write", ratio=ratio))
        shown = next(iter(report_site._Pages(made, [night]).series))
        assert (shown.word, shown.alarm) == (word, alarm)
    steady = site({WITH_RUN: "steady"})
    shown = next(iter(report_site._Pages(steady, [make_night(case("write", ratio=2.0))]).series))
    assert (shown.word, shown.alarm) == ("regressed", True)
    below = case("write").model_copy(update={"judgement": judgement(record(), site=site_bands(900.0, WITH_RUN))})
    shown = next(iter(report_site._Pages(steady, [make_night(below)]).series))
    assert (shown.word, shown.alarm) == ("pass", False), "a site band is evidence beside the verdict"


@pytest.mark.parametrize(
    ("events", "causes", "word", "text"),
    [
        ({"a": "steady"}, [], "pass", "Nothing is slower"),
        ({"a": "shift"}, [], "shifted level", "1 of 1 series slower"),
        ({"a": "shift", "b": "invalid"}, [], "shifted level", "1 of 2 series slower, 1 invalid"),
        ({"a": "invalid", "b": "steady"}, [], "invalid", "1 invalid"),
        ({"a": "new"}, [], "no reference", "Measured; nothing to compare with yet"),
        ({"a": "steady"}, ["stopped by SIGINT"], "invalid", "Incomplete; nothing that was measured is slower"),
    ],
)
def test_the_banner_says_the_night_in_words(events, causes, word, text):
    made = site({f"particles/write/scratch/1x1/{name}/hdf5": event for name, event in events.items()})
    pages = report_site._Pages(made, [])
    banner = words.banner(made.assessment, pages.of_tonight, causes=causes)
    assert (banner.word, banner.text) == (word, text)


def test_a_night_without_series_is_told():
    nothing = site({SLOWER: "steady"}).assessment
    assert words.banner(nothing, []).text == "Nothing was measured tonight"
    assert words.banner(nothing, [], invalid_cases=2).text == "2 invalid"


def test_what_others_named_is_text_and_no_markup(folder):
    for path in folder.rglob("*.html"):
        for tag, attributes in Page(path).tags:
            assert tag != "img", path
            assert not any(name.startswith("on") for name in attributes), path
            if tag == "script":
                assert attributes.get("type") == "application/json" or "/assets/" in f"/{attributes['src']}", path
        assert "alert(1)</script><img" not in path.read_text(encoding="utf-8"), path
        assert "49" not in re.findall(r"&amp;amp; (\S+)", path.read_text(encoding="utf-8"))
    assert EVIL in Page(folder / "index.html").text


def test_any_key_gets_a_file_name_of_its_own_that_is_safe_anywhere():
    keys = [
        "a/b",
        "A/b",
        "a-b",
        "../../etc/passwd",
        "",
        ".",
        "x" * 3000,
        "x" * 3001,
        "数据/写",
        "\udcff",
        "a b",
        "CON",
        EVIL,
    ]
    names = [words.file_name(key) for key in keys]
    assert len({name.lower() for name in names}) == len(keys)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,95}", name) for name in names), names


def test_the_json_beside_it_is_the_assessment_and_all_time_lines(folder, assessed):
    assert Assessment.model_validate_json((folder / "assessment.json").read_bytes()) == assessed.assessment
    lines = json.loads((folder / "timelines.json").read_text(encoding="utf-8"))
    assert set(lines) == {state.key for state in assessed.assessment.series}
    assert lines[SLOWER] == plot(page_of(folder, SLOWER))
    assert lines[SLOWER]["days"] == 60
    assert len(lines[SLOWER]["repeats"]) == 60
    assert lines[INVALID]["invalid"] == [[59, EVIL]]


def test_long_histories_are_thinned_and_that_is_said(tmp_path):
    made = site({SLOWER: "shift"}, nights=1000)
    page = page_of(write_site(made, [], tmp_path / "report").parent, SLOWER)
    data = plot(page)
    assert len(data["days"]) == len(data["best"]) == 400 + 86
    assert data["days"][-400:] == list(range(600, 1000))
    assert len(data["repeats"]) == 120
    line = made.timelines[0]
    assert data["best"][0] == pytest.approx(np.median(line.rates[:7]), rel=1e-3), (
        "the week's median night stands for it"
    )
    assert (
        "before the last 120 nights the best repeat of each only; before the last 400 one night a week"
        in Page(page).text
    )


def test_scaling_is_over_nodes_and_over_ranks_of_all_file_systems_beside_each_other(assessed):
    recent = [figures.recent(*pair) for pair in zip(assessed.assessment.series, assessed.timelines, strict=True)]
    sections = dict(figures.scaling([one for one in recent if one]))
    over_nodes, over_ranks = sections["particles read, CC, hdf5"]
    assert {(p.x, p.line) for p in over_nodes.points if p.group == "scratch"} == {(1, "1"), (1, "4"), (2, "1")}
    assert {p.group for p in over_nodes.points} == {"scratch", ODD, "disk"}
    assert over_ranks.x == "ranks a node"
    point = next(p for p in over_nodes.points if p.key == KNOWN)
    line = next(line for line in assessed.timelines if line.key == KNOWN)
    assert (point.rate, point.low, point.high) == (
        pytest.approx(np.median(line.rates[-14:])), line.rates[-14:].min(), line.rates[-14:].max(),
    )  # fmt: skip


def test_the_points_of_every_scaling_plot_stand_in_one_table(tmp_path):
    made = site(
        {f"particles/read/{name}/{n}x1/{p}/hdf5": "steady" for name in "ab" for n in (1, 2) for p in ("CC", "CI")}
    )
    text = write_site(made, [], tmp_path / "report").with_name("scaling.html").read_text(encoding="utf-8")
    sections = text.split("<h2")[1:]
    assert [section.count("<figure") for section in sections] == [1, 1]
    assert [section.count("<table") for section in sections] == [1, 1]
    assert [section.count('<th scope="row">') for section in sections] == [4, 4]


def test_patterns_are_beside_each_other_where_they_differ_in_one_thing_only(assessed):
    pairs = zip(assessed.assessment.series, assessed.timelines, strict=True)
    recent = [one for one in (figures.recent(*pair) for pair in pairs) if one and one.state.file_system == "scratch"]
    sections = dict(figures.patterns(recent))
    rows = {
        title: {(p.x, p.group) for figure in found for p in figure.points} for title, found in sections.items()
    }  # fmt: skip
    locality, dimensions, partial, raw = rows.values()
    assert locality == {("1x1 hdf5", "CC"), ("1x1 hdf5", "CI")}
    assert dimensions == {("1x1 hdf5 CC", "1-D"), ("1x1 hdf5 CC", "2-D")}
    assert partial == {("1x1 hdf5 CC", "full"), ("1x1 hdf5 CC", "partial")}
    assert raw == {("1x1 CC", "HDF5 to MPI-IO"), ("1x1 CC", "HDF5 to POSIX")}
    lines = {line.key: line.rates for line in assessed.timelines}
    expected = np.median((lines[SLOWER] / lines[SLOWER.replace("hdf5", "posix")])[-14:])
    point = next(p for p in sections["HDF5 against raw I/O"][0].points if p.group == "HDF5 to POSIX")
    assert point.rate == pytest.approx(expected)


def test_inside_one_job_raw_rates_are_no_series_and_the_ratios_are_of_its_pairs():
    made, night = site({WITH_RUN: "steady"}), make_night(case("write", ratio=0.92))
    row = next(row for _, row in night.rows)
    recent = figures.recent(made.assessment.series[0], made.timelines[0], row.ratios)
    points = {point.group: point for point in dict(figures.patterns([recent]))["HDF5 against raw I/O"][0].points}
    assert set(points) == {"HDF5 to MPI-IO", "HDF5 to POSIX"}
    pairs = next(ratio.pairs for ratio in row.ratios if ratio.name == "to_posix")
    assert points["HDF5 to POSIX"].rate == pytest.approx(np.median(pairs))
    assert points["HDF5 to POSIX"].low == min(pairs)


def test_a_whole_file_system_is_told_in_one_line(assessed):
    pages = report_site._Pages(assessed, [])

    def told(scope: Scope) -> tuple[str, ...]:
        states = [
            one.model_copy(update={"scope": scope}) for one in assessed.assessment.file_systems if one.name == "scratch"
        ]
        return words.banner(
            assessed.assessment.model_copy(update={"file_systems": tuple(states)}), pages.of_tonight
        ).lines

    whole = Scope(text="the whole file system scratch", keys=(SLOWER,), began=LAST_NIGHT, whole=True)
    assert told(whole) == (
        "The whole file system scratch is 20 % slower since 2026-11-20, since HDF5 1.14.3 -> 1.14.5",
    )
    assert told(whole.model_copy(update={"keys": (KNOWN, MUTED)})) == (), "all of it is known"


def test_a_file_system_that_only_all_series_together_show_to_be_slower_is_the_banner(assessed):
    made = site(dict.fromkeys(keys(["scratch"], 4), "steady"))
    scope = Scope(text="the whole file system scratch", keys=(), began=LAST_NIGHT, whole=True)
    (state,) = made.assessment.file_systems
    slower = made.assessment.model_copy(update={"file_systems": (state.model_copy(update={"scope": scope}),)})
    banner = words.banner(slower, report_site._Pages(made, []).of_tonight)
    assert (banner.word, banner.text) == ("shifted level", "Slower: the whole file system scratch")
    assert banner.lines == ("The whole file system scratch",)


def test_how_much_is_slower_is_not_said_of_what_is_invalid(tmp_path):
    known = {key: [said("ack")] for key in (MUTED, KNOWN)}
    made = site({MUTED: "shift", KNOWN: "shift", INVALID: "invalid", SLOWER: "steady"}, actions=known)
    (state,) = made.assessment.file_systems
    assert state.scope is not None
    text = Page(write_site(made, [], tmp_path / "report")).text
    assert state.scope.text not in text


def test_cases_without_a_series_are_told_with_their_reasons(assessed, tmp_path):
    broken, left_out = invalid_case("<b>no space left</b>"), case("write", name="TooLarge")
    skipped = left_out.model_copy(update={"judgement": left_out.judgement.model_copy(
        update={"verdict": "skipped", "rows": (), "reasons": ("12 GiB do not fit",)})})  # fmt: skip
    night = make_night(broken, skipped, complete=False, cause="stopped by SIGINT")
    page = Page(write_site(assessed, [night], tmp_path / "report"))
    assert "1 of 19 series slower, 2 invalid" in page.text
    assert "Not all was measured: stopped by SIGINT" in page.text
    look = page.text[page.text.index("To look at") : page.text.index("By file system")]
    assert "Broken <b>no space left</b>" in look
    assert "TooLarge was skipped: 12 GiB do not fit" in page.text


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_disk_that_is_full_leaves_the_old_report_and_nothing_else(assessed, tmp_path):
    folder = write_site(site({SLOWER: "steady"}), [], tmp_path / "report").parent
    before = contents(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limits[1]))  # the plots' script is larger
    try:
        with pytest.raises(OSError, match="too large"):
            write_site(assessed, [], folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert contents(tmp_path) == before


def test_a_writer_that_is_killed_leaves_the_old_report(assessed, folder, tmp_path):
    target = write_site(site({SLOWER: "steady"}), [], tmp_path / "report").parent
    before = contents(target)
    child = os.fork()
    if child == 0:
        write_site(assessed, [the_run()], target)
        os._exit(0)
    try:
        wait_until(lambda: list(tmp_path.glob(".report.part-*/series/*.html")))
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "it was not killed in the middle"
    assert contents(target) == before
    write_site(assessed, [], target)
    assert page_of(target, KNOWN).is_file()
    assert list(tmp_path.glob(".report.part-*")) == []


def test_what_a_killed_writer_left_is_cleared_and_the_report_is_replaced_whole(assessed, folder, tmp_path, monkeypatch):
    target = write_site(site({SLOWER: "steady"}), [], tmp_path / "report").parent
    (tmp_path / ".report.part-killed" / "series").mkdir(parents=True)
    old = page_of(target, "particles/gone")
    old.write_text("a series that is no more", encoding="utf-8")
    (tmp_path / "link").symlink_to(target, target_is_directory=True)
    write_site(site({KNOWN: "steady"}), [], tmp_path / "link")
    assert not old.exists()
    assert (tmp_path / "link").is_symlink()
    assert page_of(target, KNOWN).is_file()
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []


def test_no_folder_but_a_report_is_replaced(assessed, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    for wrong in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(InputError, match="no report"):
            write_site(assessed, [], wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_command_makes_the_report_from_the_history_and_the_newest_nights(tmp_path, monkeypatch):
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path))
    reports = [str(written(tmp_path / f"{number}.json", one_night(number))) for number in range(3)]
    result = CliRunner().invoke(cli.main, ["history", "ingest", *reports])
    assert result.exit_code == 0, result.output
    run = tmp_path / "runs" / "20260303T020000Z"
    run.mkdir(parents=True)
    make_night(case("write"), started="2026-03-03T02:00:00Z", finished="2026-03-03T02:05:00Z").save(run / "night.json")
    result = CliRunner().invoke(cli.main, ["report", "--site", "here"])
    assert result.exit_code == 0, result.output
    assert result.output.strip() == str(tmp_path / "report" / "index.html")
    assert WITH_RUN in Page(tmp_path / "report" / "index.html").text
    assert (tmp_path / "report" / "nights" / "20260303T020000Z.html").is_file()
    assert (tmp_path / "report" / MARKER).is_file()
    result = CliRunner().invoke(cli.main, ["report", "--site", "elsewhere"])
    assert result.exit_code == 2
    assert "no night of 'elsewhere'" in result.output


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 has it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def test_text_and_marks_stand_out_in_light_and_in_dark(folder):
    text = (folder / "assets" / "site.css").read_text(encoding="utf-8")
    schemes = [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in re.findall(r":root \{([^}]*)\}", text)]
    assert len(schemes) == 2
    for colours in schemes:
        for name in ("ink", "soft", "bad", "odd", "good", "better"):
            for ground in ("paper", "wash"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        for number in range(1, 7):
            assert contrast(colours[f"series-{number}"], colours["paper"]) >= 3, number


class Browser:
    """Headless Chromium, and what it complained of and asked for since it was last asked."""

    def __init__(self) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))

    def open(self, path: Path, width: int, *, dark: bool = False, draw: bool = True) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(path.as_uri())
        if draw:  # all of them, as before printing
            self.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
            self.wait("return document.querySelectorAll('figure[data-kind] .canvas:not([data-drawn])').length === 0")

    def wait(self, script: str) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 60, 0.1).until(lambda driver: driver.execute_script(script))

    def ask(self, script: str) -> object:
        return self.driver.execute_script(f"return {script}")

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> set[str]:
        events = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        sent = [event["params"]["request"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return {request["url"].split(":")[0] for request in sent}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    pytest.importorskip("selenium")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs Chromium and its driver, to see the pages: apt-get install chromium chromium-driver")
    made = Browser()
    yield made
    made.driver.quit()


def test_a_browser_shows_and_draws_every_kind_of_page_on_a_phone_and_on_a_desk(folder, browser):
    some = [
        folder / "index.html",
        page_of(folder, SLOWER),
        page_of(folder, WITH_RUN),
        folder / "file-systems" / f"{words.file_name(ODD)}.html",
        folder / "scaling.html",
        folder / "patterns" / f"{words.file_name('scratch')}.html",
        *(folder / "nights").iterdir(),
    ]
    for path in some:
        for width, dark in ((360, True), (1280, False)):
            browser.open(path, width, dark=dark)
            assert browser.complaints() == [], path
            assert browser.ask("document.documentElement.scrollWidth") <= width, (path, width)
    assert browser.requests() in ({"file"}, {"file", "data"})


def marks(browser: Browser, name: str) -> int:
    return browser.ask(f"document.querySelectorAll('.canvas svg g.{name}_marks > *').length")


def test_the_first_night_is_drawn_without_a_complaint(browser, tmp_path):
    folder = write_site(site({SLOWER: "steady"}, nights=1), [], tmp_path / "report").parent
    browser.open(page_of(folder, SLOWER), 900)
    assert browser.complaints() == []
    assert marks(browser, "nights") == 1


def test_the_plots_have_a_mark_for_each_value(folder, assessed, browser):
    for key in (SLOWER, INVALID, WITH_RUN):
        browser.open(page_of(folder, key), 900)
        line = next(line for line in assessed.timelines if line.key == key)
        assert marks(browser, "nights") == np.isfinite(line.rates).sum()
        assert marks(browser, "repeats") == sum(map(len, line.repeats.values()))
        assert marks(browser, "maintenance") == line.maintenance.sum()
        assert marks(browser, "events_layer_0") == len(line.software)
        assert marks(browser, "moves_layer_0") == (key == SLOWER)
        assert marks(browser, "invalid") == len(line.invalid)
        assert marks(browser, "band") == (key == WITH_RUN)
    browser.open(folder / "scaling.html", 900)
    assert marks(browser, "points") == sum(
        len(json.loads(text)["points"])
        for text in re.findall(r'json">(.*?)</script>', (folder / "scaling.html").read_text(encoding="utf-8"))
    )
    assert browser.ask("document.querySelector('.canvas').getAttribute('role')") == "graphics-document"
    assert "over nodes" in browser.ask("document.querySelector('.canvas').getAttribute('aria-label')")


def test_buttons_show_the_last_nights_only(folder, browser):
    browser.open(page_of(folder, SLOWER), 900)
    assert (
        browser.ask("[...document.querySelectorAll('.spans button')].map(b => b.textContent).join()") == "30 nights,all"
    )
    browser.driver.find_element("css selector", ".spans button").click()
    browser.wait("return document.querySelectorAll('.canvas svg g.nights_marks > *').length === 30")
    assert browser.ask("document.querySelector('.spans button').getAttribute('aria-pressed')") == "true"


def test_the_keyboard_reaches_the_alarms_and_shows_where_it_is(folder, browser):
    from selenium.webdriver import ActionChains, Keys

    browser.open(folder / "index.html", 900)
    seen = []
    for _ in range(12):
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        assert browser.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid", seen
        seen.append(browser.ask("document.activeElement.textContent"))
    assert seen[0] == "to the contents"
    assert SLOWER in seen
    assert INVALID in seen
    browser.open(folder / "index.html", 900)
    ActionChains(browser.driver).send_keys(Keys.TAB, Keys.ENTER).perform()
    assert browser.ask("location.hash") == "#main"


def test_the_filter_leaves_the_series_with_all_of_its_words(folder, browser):
    browser.open(folder / "index.html", 900)
    box = browser.driver.find_element("id", "filter")
    box.send_keys("SCRATCH posix")
    assert browser.ask("[...document.querySelectorAll('#all tbody tr:not([hidden])')].length") == 1
    assert browser.ask("document.getElementById('filtered').textContent") == "1 of 20 series"


def test_an_old_report_says_that_it_is_old(folder, browser, tmp_path):
    browser.open(folder / "index.html", 900)
    days = (datetime.datetime.now(datetime.timezone.utc).date() - LAST_NIGHT).days
    hidden = browser.ask("document.getElementById('age').hidden")
    assert hidden == (days < 2)
    browser.driver.execute_script("document.getElementById('age').dataset.night = '2026-01-01'; sayAge();")
    assert "days ago" in browser.ask("document.getElementById('age').textContent")


def test_vega_is_made_once_in_an_environment_of_its_own_and_nothing_is_kept_elsewhere(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda snippet: made.append(snippet) or "vega")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    assert [report_site._vega.__wrapped__() for _ in range(2)] == ["vega", "vega"]
    assert len(made) == 1
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "system"))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "system"))
    assert [report_site._vega.__wrapped__() for _ in range(2)] == ["vega", "vega"]
    assert len(made) == 3
    assert not (tmp_path / "system").exists()
