"""The verdicts of a night for test servers and for Prometheus, read back as those read them."""

from __future__ import annotations

import datetime
import xml.etree.ElementTree as ET
from pathlib import Path

import assessed
import pytest
from assessed import LAST_NIGHT
from click.testing import CliRunner, Result
from junitparser import JUnitXml
from kept_nights import keep
from prometheus_client.parser import text_string_to_metric_families
from samples import case, counted_case, invalid_case

from iogauge import cli
from iogauge.detect import Action
from iogauge.detect.verdicts import WORDS
from iogauge.notify import prometheus
from iogauge.tonight import load

KEYS = assessed.keys(["scratch", "disk"], 16)
STEADY: dict[str, assessed.Event] = dict.fromkeys(KEYS, "steady")
SLOW, MUTED, BAD, NEW, WELL = (KEYS[number] for number in (0, 2, 4, 6, 8))
EVENTS = STEADY | {SLOW: "shift", MUTED: "shift", BAD: "invalid", NEW: "new"}

#: What the schemas in use (Ant's, Jenkins') have in common: the children of each element in their order, and its attributes.
CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["properties", "testcase", "system-out", "system-err"],
    "testcase": ["properties", "skipped", "error", "failure", "system-out", "system-err"],
    "properties": ["property"],
}
ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testsuite": {"name", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message", "type"},
    "property": {"name", "value"},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a night on which everything happened."""
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path))
    monkeypatch.delenv("IOGAUGE_HISTORY", raising=False)
    said = Action("mute", LAST_NIGHT, "anna", "ticket 4711", until=datetime.date(2027, 1, 1))
    keep(tmp_path, EVENTS, case("write"), invalid_case('\x1b[1m<no> "space"\x00 left\n& more'), actions={MUTED: [said]})
    return tmp_path


def export(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.main, ["export", "--site", "test", *map(str, arguments)])


def check_form(element: ET.Element) -> None:
    order = CHILDREN.get(element.tag, [])
    places = [order.index(child.tag) for child in element]
    assert places == sorted(places), [child.tag for child in element]
    assert set(element.attrib) <= ATTRIBUTES.get(element.tag, set()), element.attrib
    for child in element:
        check_form(child)


def test_junit_has_the_form_that_test_servers_take_and_its_counts_are_right(home):
    path = home / "verdicts.xml"
    assert export("--junit", path).exit_code == 0
    root = ET.fromstring(path.read_bytes())
    check_form(root)
    suites = root.findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["iogauge.test.disk", "iogauge.test.scratch"]
    for suite in suites:
        assert suite.get("timestamp") == "2026-11-20T22:00:00"
        assert suite.get("hostname") == "n1"
        for attribute, tag in (
            ("tests", "testcase"),
            ("failures", ".//failure"),
            ("errors", ".//error"),
            ("skipped", ".//skipped"),
        ):
            assert int(suite.get(attribute, "-1")) == len(suite.findall(tag))
    names = [one.get("name") for one in root.iter("testcase")]
    assert sorted(names) == sorted([*KEYS, "Broken"])


def test_junit_says_what_each_verdict_is_worth(home):
    export("--junit", home / "verdicts.xml")
    cases = {one.name: one for suite in JUnitXml.fromfile(str(home / "verdicts.xml")) for one in suite}
    assert cases[SLOW].is_failure
    assert "slower since 2026-11-17" in cases[SLOW].result[0].message
    assert cases[BAD].is_error
    assert cases[BAD].result[0].message == "2 ranks share core 0 of n1"
    assert cases["Broken"].is_error
    assert cases["Broken"].result[0].message == '?[1m<no> "space"? left & more'
    assert cases[MUTED].is_skipped
    assert "muted until 2027-01-01 by anna: ticket 4711" in cases[MUTED].result[0].message
    assert cases[NEW].is_skipped
    assert cases[NEW].result[0].message == "no reference: 5 of 14 nights"
    assert cases[WELL].is_passed
    root = ET.parse(home / "verdicts.xml")
    found = {one.get("name"): one.get("value") for one in root.find(f".//testcase[@name='{SLOW}']/properties")}
    state = next(one for one in load("test").tonight if one.key == SLOW)
    assert (float(found["rate"]), float(found["reference"])) == (state.rate, state.reference)
    assert (found["unit"], found["since"], found["changes"]) == ("MiB/s", "2026-11-17", "HDF5 1.14.3 -> 1.14.5")
    assert len(found["repeats"].split()) == 3


def metrics(path: Path) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """Samples by name and labels, by Prometheus' own parser."""
    found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for family in text_string_to_metric_families(path.read_text(encoding="utf-8")):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


def of(samples: dict[frozenset[tuple[str, str]], float], *labels: tuple[str, str]) -> list[float]:
    return [value for key, value in samples.items() if key >= set(labels)]


def test_prometheus_has_rates_verdicts_and_when_the_night_ended(home):
    path = home / "iogauge.prom"
    assert export("--prometheus", path).exit_code == 0
    found = metrics(path)
    state = next(one for one in load("test").tonight if one.key == SLOW)
    mine = ("site", "test"), ("series", SLOW), ("file_system", "scratch"), ("operation", "write"), ("interface", "hdf5")
    assert of(found["iogauge_rate_mib_per_second"], *mine) == [state.rate]
    assert of(found["iogauge_reference_mib_per_second"], *mine) == [state.reference]
    words = {word: of(found["iogauge_verdict"], *mine, ("iogauge_verdict", word)) for word in WORDS}
    assert words == {word: [float(word == "shifted level")] for word in WORDS}
    assert of(found["iogauge_alarm"], *mine) == [1]
    assert of(found["iogauge_alarm"], ("series", MUTED)) == [0]
    assert of(found["iogauge_muted"], ("series", MUTED)) == [1]
    assert of(found["iogauge_rate_mib_per_second"], ("series", BAD)) == []
    ended = datetime.datetime(2026, 11, 20, 23, tzinfo=datetime.timezone.utc).timestamp()
    assert of(found["iogauge_last_night_timestamp_seconds"], ("site", "test")) == [ended]
    assert of(found["iogauge_night_complete"], ("site", "test")) == [1]
    assert of(found["iogauge_alarms"], ("kind", "invalid")) == [2]
    assert of(found["iogauge_series"], ("verdict", "no reference")) == [1]
    assert of(
        found["iogauge_file_system_verdict"], ("file_system", "disk"), ("iogauge_file_system_verdict", "pass")
    ) == [1]


def test_labels_are_escaped(home):
    tonight = load("test")
    assert tonight.assessment is not None
    odd = tonight.tonight[0].model_copy(update={"pattern": 'a"b\\c\nd', "unit": "operations/s"})
    changed = tonight.assessment.model_copy(update={"series": (odd,)})
    path = home / "odd.prom"
    path.write_text(prometheus.as_text(type(tonight)("test", changed)), encoding="utf-8")
    assert of(metrics(path)["iogauge_rate_operations_per_second"], ("pattern", 'a"b\\c\nd')) == [odd.rate]


def test_files_are_written_whole_or_not_at_all_and_can_be_read_by_others(home):
    path = home / "textfile" / "iogauge.prom"
    assert export("--prometheus", path).exit_code == 2  # no such folder
    path.parent.mkdir()
    assert export("--prometheus", path, "--junit", path.parent / "v.xml").exit_code == 0
    assert path.stat().st_mode & 0o777 == 0o644
    assert sorted(one.name for one in path.parent.iterdir()) == ["iogauge.prom", "v.xml"]
    before = path.read_text()
    for folder in (home / "runs").iterdir():
        (folder / "night.json").write_text("{")
    assert export("--prometheus", path).exit_code == 2
    assert path.read_text() == before


def test_standard_output_is_a_file_too_and_wrong_names_are_told(home):
    assert export("--junit", "-").stdout.startswith("<?xml")
    assert "# TYPE iogauge_verdict gauge" in export("--prometheus", "-").stdout
    assert "node_exporter reads files *.prom alone" in export("--prometheus", home / "x.txt").stderr
    assert "--junit FILE or --prometheus FILE" in export().stderr


def test_a_regressed_case_that_the_history_does_not_know_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path))
    keep(tmp_path, STEADY, case("write", ratio=2.0), counted_case("file-create"))
    export("--junit", tmp_path / "v.xml")
    cases = {one.name: one for suite in JUnitXml.fromfile(str(tmp_path / "v.xml")) for one in suite}
    assert cases["particles/write/disk/1x2/CC/hdf5"].is_failure
    assert cases["particles/write/disk/1x2/CC/hdf5"].result[0].type == "regressed"
