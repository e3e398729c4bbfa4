"""The page of a night: everything on it, nothing from elsewhere, and shown without a complaint by a real browser."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from samples import baseline, case, counted_case, invalid_case, judgement, make_night, record, site_bands

from iogauge import report
from iogauge.machine import Load
from iogauge.night import Case, Night
from iogauge.report import plots

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

#: Elements and attributes that make a browser fetch something.
LOADING = {"src", "srcset", "data", "poster", "action", "background", "ping"}


class Page(HTMLParser):
    """What is on a page: its words, its elements' ids, its links, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.links.append(value)
            if name in LOADING:
                self.loads.append(value)

    def handle_data(self, text):
        self.words.append(text)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def mixed_night() -> Night:
    """One of everything."""
    return make_night(
        case("write", "read", ratio=0.92),
        case("write", file_system="memory", ratio=2.0),
        case("read", file_system="disk", locality="CI", cached=0.4),
        invalid_case("ranks 0 and 1 share core 0 of n1"),
        earlier_nights={"particles/write/disk/1x2/CC/hdf5": 2},
    )


def noisy_case() -> Case:
    """Repeats of which nothing can be said: every other one is twice as fast through MPI-IO."""
    main = record(count=6)
    other = baseline(main, interface="mpiio")
    for repeat in other["repeats"][::2]:
        repeat["transfer_seconds"] *= 0.3
        repeat["total_seconds"] = repeat["transfer_seconds"] + 0.12
    return case("write").model_copy(update={"judgement": judgement(main, other, ratio=1.0)})


NOISY = noisy_case()


@pytest.fixture
def page() -> Page:
    return Page(report.render(mixed_night()))


def svgs(text: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def drawn(svg: str) -> int:
    """Points in a picture."""
    return len(re.findall(r"<use ", svg))


def test_every_series_is_in_the_table_with_its_rate_its_repeats_and_its_verdict(page):
    night = mixed_night()
    for _, row in night.rows:
        assert row.key in page.ids
        assert row.key in page.text
    for words in ("103 MiB/s 100 103 91.4", "2 ranks on 2 cores of 1 host", "regressed", "not for cached reads", "40%"):
        assert words in page.text


def test_an_invalid_case_is_there_with_its_reason_and_without_a_rate(page):
    assert page.text.count("ranks 0 and 1 share core 0 of n1") == 2, "in what to look at, and in the table"
    assert "invalid-1" in page.ids


def test_what_to_look_at_comes_before_the_pictures_and_says_what_to_do(page):
    begin = page.text.index("What to look at")
    look = page.text[begin : page.text.index("Rates From open")]
    assert look.index("invalid") < look.index("regressed")
    assert "HDF5 to MPI-IO 0.92, band 1.60 to 2.40" in look
    assert "iogauge show 20261121T020000Z particles/write/memory/1x2/CC/hdf5" in look
    assert "/runs/night/stage/case" in look


def test_every_link_goes_to_a_part_of_the_page(page):
    inside = [link for link in page.links if link != "data:,"]
    assert inside
    for link in inside:
        assert link.startswith("#")
        assert link[1:] in page.ids, link


def test_nothing_is_loaded_from_anywhere_and_no_script_is_needed(page):
    text = report.render(mixed_night())
    assert page.loads == []
    assert "script" not in page.tags
    assert "@import" not in text
    assert re.findall(r"url\((?!#)[^)]*\)", text) == []
    assert set(re.findall(r"https?://[^\"'\s<]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text


def test_no_id_stands_twice(page):
    assert len(page.ids) == len(set(page.ids))


def test_the_pictures_are_whole_and_named_and_refer_to_their_own_parts():
    text = report.render(mixed_night())
    found = svgs(text)
    night = mixed_night()
    assert len(found) == len(list(plots.rates(night))) + len(list(plots.ratios(night)))
    for svg in found:
        assert svg.get("role") == "img"
        assert svg.get("aria-label")
        own = {element.get("id") for element in svg.iter()}
        for element in svg.iter():
            target = element.get("href")
            assert target is None or target[1:] in own


def test_every_repeat_is_a_point():
    """Four repeats more are four points more, in the rates and in each picture of ratios."""
    three, seven = make_night(case("write")), make_night(case("write", count=7))
    for picture in (plots.rates, plots.ratios):
        for (_, fewer), (_, more) in zip(picture(three), picture(seven), strict=True):
            assert drawn(more) - drawn(fewer) == 4


@pytest.mark.parametrize("values", [(0.9012, 0.9153, 0.9349), (91.4, 100.0, 103.3), (1010.0, 1013.0), (7.0, 25.0)])
def test_the_labels_of_a_narrow_axis_are_numbers_in_equal_steps(values):
    points = [plots.Points("particles CC", "1x2 ranks", values, max(values), None)]
    words = [element.text for element in svgs(plots.picture(points, "rates", ["MiB/s"]))[0].iter() if element.text]
    labels = [float(word) for word in words if re.fullmatch(r"[\d.]+", word.strip())]
    steps = [after - before for before, after in itertools.pairwise(labels)]
    assert steps, "one label is no scale"
    assert steps == pytest.approx([steps[0]] * len(steps))
    assert steps[0] > 0


def test_rates_are_by_file_system_and_operation_with_the_pattern_as_a_row():
    night = make_night(case("write", "read"), case("write", file_system="memory"), case("write", locality="II"))
    assert [title for title, _ in plots.rates(night)] == ["write on disk", "read on disk", "write on memory"]
    first = next(svg for _, svg in plots.rates(night))
    assert "particles CC<" in first
    assert "particles II<" in first


def test_what_is_counted_is_one_picture_a_file_system_in_operations_a_second():
    night = make_night(
        case("write"), counted_case("file-create", "dir-list"), counted_case("file-create", file_system="memory")
    )
    pictures = dict(plots.rates(night))
    assert list(pictures) == ["write on disk", "metadata on disk", "metadata on memory"]
    text = svgs(pictures["metadata on disk"])[0]
    words = "".join(text.itertext())
    assert text.get("aria-label") == "observed metadata rate on disk, operations/s"
    for word in ("file-create shared posix", "dir-list shared posix", "observed operations/s"):
        assert word in words
    assert "MiB/s" not in words
    assert [title for title, _ in plots.ratios(night) if "private" in title] == ["metadata: to private"]
    page = Page(report.render(night))
    assert "3226 operations/s 3125 3226 2857" in page.text


def test_ratios_are_by_baseline_with_the_band_and_an_alarm_in_words():
    inside = dict(plots.ratios(make_night(case("write", ratio=0.92))))
    assert set(inside) == {"write: HDF5 to MPI-IO", "write: HDF5 to POSIX"}
    assert "below" not in inside["write: HDF5 to MPI-IO"]
    outside = dict(plots.ratios(make_night(case("write", ratio=2.0))))
    assert "▼ below" in outside["write: HDF5 to MPI-IO"]
    above = dict(plots.ratios(make_night(case("write", ratio=0.5))))
    assert "▲ above" in above["write: HDF5 to MPI-IO"]
    assert inside["write: HDF5 to MPI-IO"].count("stroke-width: 6") == 1, "the band is not drawn"
    assert inside["write: HDF5 to POSIX"].count("stroke-width: 6") == 0


def test_other_patterns_are_baselines_of_their_own():
    main = record("write", dimensions=2, shape=[1024, 512])
    found = case("write").model_copy(update={"judgement": judgement(main, baseline(main, dimensions="1"))})
    assert [title for title, _ in plots.ratios(make_night(found))] == ["write: to 1-D"]


def test_a_read_from_the_page_cache_is_hollow_and_said():
    cached = dict(plots.rates(make_night(case("read", cached=0.4))))["read on disk"]
    uncached = dict(plots.rates(make_night(case("read"))))["read on disk"]
    assert "hollow: from memory, not from the storage" in cached
    assert "hollow" not in uncached
    assert cached.count("fill: var(--series-1)") < uncached.count("fill: var(--series-1)")


def test_the_band_of_the_site_is_drawn_and_told():
    key = "particles/write/disk/1x2/CC/hdf5"
    found = case("write").model_copy(update={"judgement": judgement(record(), site=site_bands(103.0, key))})
    night = make_night(found)
    assert "site 92.7 to 113" in Page(report.render(night)).text
    slow = case("write").model_copy(update={"judgement": judgement(record(), site=site_bands(200.0, key))})
    assert "▼ below" in next(svg for _, svg in plots.rates(make_night(slow)))


def test_the_machine_and_the_software_are_there(page):
    for words in (
        "A Processor 9000, 2 cores (4 logical), 8.0 GiB",
        "lustre from 10.0.0.1@o2ib:/scratch (rw,flock,lazystatfs)",
        "0.50 before and 1.25 after the run; 3.1 % of the processor time was stolen",
        "HDF5 1.10.8",
        "Open MPI v4.1.4",
        "kernels abc",
    ):
        assert words in page.text


@pytest.mark.parametrize(
    ("night", "verdict", "words"),
    [
        (make_night(case("write")), "no reference", "Measured; nothing to compare with yet"),
        (make_night(case("write", ratio=0.92)), "pass", "Nothing is slower"),
        (make_night(case("write", ratio=0.5)), "improved", "Nothing is slower, 1 improved"),
        (make_night(case("write", ratio=2.0)), "regressed", "1 regressed"),
        (make_night(case("write", ratio=0.92), invalid_case("x")), "invalid", "1 invalid"),
        (make_night(case("write", ratio=2.0), invalid_case("x")), "invalid", "1 invalid, 1 regressed"),
        (make_night(case("write"), complete=False, cause="stopped by SIGINT"), "invalid", "Incomplete: stopped by SIGINT"),
        (make_night(NOISY), "too noisy", "Too noisy to judge"),
        (make_night(NOISY, case("write", ratio=0.92)), "pass", "Nothing is slower, 1 too noisy to judge"),
        (make_night(), "invalid", "Nothing was measured"),
        (make_night(build_failure="no hdf5.h"), "invalid", "Could not measure: the kernels could not be built"),
    ],
)  # fmt: skip
def test_the_banner_says_the_night_in_words(night, verdict, words):
    assert report.banner(night) == (verdict, words)
    text = report.render(night)
    assert words in text
    assert f'<div class="banner {verdict.replace(" ", "-")}">' in text


def test_a_machine_that_was_not_at_rest_is_said():
    assert report.busy(Load(before=0.3, after=2.0, steal_fraction=0.0), cores=2) == ""
    assert "load average was 1.70" in report.busy(Load(before=1.7, after=2.0, steal_fraction=0.0), cores=2)
    assert "hypervisor took 5.0%" in report.busy(Load(before=0.3, after=2.0, steal_fraction=0.05), cores=2)


def test_what_others_named_is_text_and_no_markup():
    evil = 'x"><script>alert(1)</script>&$a_b$'
    night = make_night(case("write", file_system=evil), invalid_case(evil))
    text = report.render(night)
    assert "<script" not in text
    assert "script" not in Page(text).tags
    assert svgs(text)
    assert all("$a_b$" in svg for _, svg in plots.ratios(night)), "a name was taken for mathematics"


def test_the_same_night_gives_the_same_page():
    assert report.render(mixed_night()) == report.render(mixed_night())


def test_fifty_cases_are_less_than_two_megabytes():
    patterns = [{"locality": place, "dimensions": number} for place in ("CC", "CI", "IC", "II") for number in (1, 2, 3)]
    cases = [
        case("write", "read", file_system=name, ratio=0.92, count=7, **pattern)
        for name in ("disk", "memory", "burst", "archive")
        for pattern in patterns
    ]
    night = make_night(*cases, *cases[:2])
    assert len(night.cases) == 50
    assert len(report.render(night).encode()) < 2_000_000


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, to see the page in a browser: apt-get install chromium")
@pytest.mark.parametrize("width", [1280, 760, 390])
def test_a_browser_shows_it_without_a_complaint_and_without_scrolling_sideways(tmp_path, width):
    page = report.write_report(mixed_night(), tmp_path / "index.html")
    # A page around it, for what only a script can ask; --window-size is not narrower than 500 in a window of its own.
    asked = tmp_path / "asked.html"
    asked.write_text(
        f'<iframe id="page" width="{width}" height="900" style="border: 0" src="{page.name}"></iframe><script>\n'
        'onload = () => { const seen = document.getElementById("page").contentDocument;\n'
        "document.title = `${seen.documentElement.scrollWidth} of ${seen.documentElement.clientWidth}, "
        '${[...seen.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().height > 50).length} pictures`;\n'
        "}</script>",
        encoding="utf-8",
    )
    done = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--allow-file-access-from-files", "--enable-logging=stderr", "--v=0", f"--user-data-dir={tmp_path}/profile",
         "--window-size=1400,1000", "--virtual-time-budget=3000", "--dump-dom", asked.as_uri()],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert complaints == []
    found = re.search(r"<title>(\d+) of (\d+), (\d+) pictures</title>", done.stdout)
    assert found, done.stdout[-500:]
    wide, seen, pictures = map(int, found.groups())
    assert wide <= seen
    night = mixed_night()
    assert pictures == len(list(plots.rates(night))) + len(list(plots.ratios(night)))


def test_the_page_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch):
    page = report.write_report(mixed_night(), tmp_path / "index.html")
    before = page.read_text(encoding="utf-8")
    monkeypatch.setattr(report, "render", lambda night: "half \udcff")
    with pytest.raises(UnicodeEncodeError):
        report.write_report(mixed_night(), page)
    assert page.read_text(encoding="utf-8") == before
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
