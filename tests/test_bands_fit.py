"""Bands are fitted to steady nights, refused with a reason otherwise, and written beside what people wrote."""

from __future__ import annotations

import random
import shutil
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result
from run_reports import STARTED, entry, records, report, written

from iogauge import bands_cli, bands_file, cli, nightly
from iogauge.bands import SeriesBands, load_site_bands
from iogauge.bands_file import Proposal, with_bands
from iogauge.bands_fit import LEAST_SCALE, SCALES, band_of
from iogauge.errors import InputError
from iogauge.history.database import History
from iogauge.history.ingest import Rows, read_report

WRITE = "particles/write/disk/1x2/CC/hdf5"
TILES = "tiles/write/disk/1x2/rank2-time/hdf5"
READ = "particles/read/disk/1x2/CC/hdf5"


def nights(count: int, noise: float = 0.03, seed: int = 1) -> np.ndarray:
    """Rates around 1000 MiB/s."""
    return 1000 * np.exp(np.random.default_rng(seed).normal(0, noise, count))


# --- from rates to a band ---------------------------------------------------------------------------------------------


def test_steady_nights_give_a_band_around_their_median_of_the_least_width():
    band = band_of(np.full(30, 1234.5678), "MiB/s")
    assert (band.reference, band.unit) == (1235, "MiB/s")
    assert band.lower == pytest.approx(np.expm1(-SCALES * LEAST_SCALE), abs=1e-3)
    assert band.upper == pytest.approx(np.expm1(SCALES * LEAST_SCALE), abs=1e-3)


def test_each_side_has_its_own_noise():
    deviations = np.linspace(-0.06, 0.06, 41)[np.random.default_rng(1).permutation(41)]
    even = band_of(1000 * np.exp(deviations), "MiB/s")
    below = band_of(1000 * np.exp(np.where(deviations < 0, 2 * deviations, deviations)), "MiB/s")
    assert below.lower < even.lower - 0.05
    assert below.upper == even.upper


def test_a_few_awful_nights_do_not_widen_the_band():
    rates = nights(60)
    spoiled = rates.copy()
    spoiled[[5, 21, 40]] /= 20
    assert abs(band_of(spoiled, "MiB/s").lower - band_of(rates, "MiB/s").lower) < 0.02


def test_a_night_at_half_is_below_every_band_that_is_made():
    made = 0
    for seed in range(40):
        band = band_of(nights(30, random.Random(seed).uniform(0.01, 0.3), seed), "MiB/s")
        if not isinstance(band, str):
            made += 1
            assert band.place(0.499 * band.reference) == "below"
    assert 5 < made < 40


def test_nights_too_unsteady_for_a_band_are_refused():
    assert "too unsteady: a band would begin" in band_of(nights(60, 0.4), "MiB/s")


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_two_levels_give_no_band_between_them(factor):
    rates = nights(40)
    rates[20:] *= factor
    assert f"its level moved by {factor - 1:+.0%}"[:22] in band_of(rates, "MiB/s")


def test_noise_alone_is_not_taken_for_two_levels():
    moved = [seed for seed in range(200) if "level" in str(band_of(nights(30, 0.08, seed), "MiB/s"))]
    assert len(moved) <= 2


# --- the file ---------------------------------------------------------------------------------------------------------

FILE = """\
# Bands of here. Ask the storage group before you change any.
schema: iogauge.bands/1
site: here
bands:
  # the fast path
  particles/write/disk/1x2/CC/hdf5:
    observed: {reference: 5210, lower: -0.18, upper: 0.35, unit: MiB/s} # by hand
    raw: {reference: 6000, lower: -0.2, upper: 0.3, unit: MiB/s}
    from:
      method: guessed # in a hurry
      note: "look again"
      machine: old
  # another's
  # of two lines
  tiles/write/disk/1x2/rank2-time/hdf5:
    observed: {reference: 10, lower: -0.1, upper: 0.1, unit: MiB/s}
    from: {method: by hand} # really
  # the end
"""


def made_bands(reference: float = 100.0) -> SeriesBands:
    return SeriesBands.model_validate(
        {
            "observed": {"reference": reference, "lower": -0.2, "upper": 0.3, "unit": "MiB/s"},
            "fingerprint": "abcdef01",
            "from": {"method": "fitted", "nights": 14, "first": date(2026, 3, 1), "last": date(2026, 3, 14)},
        }
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "here.yaml").write_text(FILE, encoding="utf-8")
    return tmp_path / "here.yaml"


def test_comments_order_and_what_was_not_fitted_stay(file):
    text = with_bands(file, "here", {WRITE: made_bands(), READ: made_bands(200), TILES: made_bands()})
    for comment in (
        "# Bands of here. Ask",
        "  # the fast path",
        " # by hand",
        " # in a hurry",
        "# really",
        "  # the end",
    ):
        assert comment in text
    assert f"  # another's\n  # of two lines\n  {TILES}:\n" in text
    assert text.index(TILES) < text.index("# the end")
    for kept in ('note: "look again"', "raw: {reference: 6000"):
        assert kept in text
    assert "machine: old" not in text
    assert text.index(WRITE) < text.index(TILES) < text.index(READ)
    file.write_text(text, encoding="utf-8")
    load_site_bands.cache_clear()
    bands = load_site_bands(file.parent, "here")
    assert bands.find(WRITE).observed.reference == 100
    assert bands.find(WRITE).provenance.first == date(2026, 3, 1)
    assert bands.find(READ).fingerprint == "abcdef01"
    difference = bands_file.difference(file, FILE)
    assert "+    observed: {reference: 5210" in difference


def test_the_same_bands_again_change_nothing(file):
    text = with_bands(file, "here", {READ: made_bands()})
    file.write_text(text, encoding="utf-8")
    assert with_bands(file, "here", {READ: made_bands()}) == text


def test_bands_accepted_together_each_have_their_date_in_words(file):
    made = bands_file.accepted({READ: made_bands(), WRITE: made_bands()}, "me", "first nights", date(2026, 4, 1))
    text = with_bands(file, "here", made)
    assert text.count("accepted: {who: me, date: 2026-04-01, why: first nights}") == 2, text
    assert "&" not in text
    assert ": *" not in text


@pytest.mark.parametrize("empty", [None, "schema: iogauge.bands/1\nsite: here\nbands: {}\n"])
def test_a_site_without_bands_gets_its_file(tmp_path, empty):
    if empty:
        (tmp_path / "here.yaml").write_text(empty, encoding="utf-8")
    text = with_bands(tmp_path / "here.yaml", "here", {READ: made_bands()})
    (tmp_path / "here.yaml").write_text(text, encoding="utf-8")
    load_site_bands.cache_clear()
    assert load_site_bands(tmp_path, "here").find(READ).observed.reference == 100


def test_a_file_with_a_mistake_is_named_and_left(file):
    file.write_text(FILE.replace("reference: 10,", "reference: -10,"), encoding="utf-8")
    with pytest.raises(InputError, match=r"here\.yaml:16: .*reference"):
        with_bands(file, "here", {READ: made_bands()})


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_history: Path) -> SimpleNamespace:
    """A checkout with a band file and a history of its own."""
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IOGAUGE_HISTORY", str(tmp_path / "history.sqlite"))
    monkeypatch.setattr(nightly, "checkout", lambda: tmp_path)
    (tmp_path / "reference_values").mkdir()
    file = tmp_path / "reference_values" / "here.yaml"
    file.write_text("# ours\nschema: iogauge.bands/1\nsite: here\nbands: {}\n", encoding="utf-8")
    history = History(str(shutil.copy(empty_history, tmp_path)))

    def measure(first: int, last: int, slower: float = 1.0, **changes: object) -> None:
        reports = []
        for number in range(first, last):
            begun = STARTED + timedelta(days=number)
            wobble = slower * (1 + (number * 7 % 5 - 2) / 100)
            case = entry(records("write", "read", started=begun, slower=wobble, **changes))
            reports.append(read_report(written(tmp_path / "report.json", report([case], started=begun))))
        with history.writing() as connection:  # all at once: a transaction each would be most of the time
            Rows(connection, reports).insert()

    return SimpleNamespace(file=file, measure=measure, folder=tmp_path)


def bands(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, ["bands", *arguments, "--site", "here"])


def test_thirteen_nights_are_too_few_and_fourteen_are_enough(site):
    site.measure(0, 13)
    result = bands("fit")
    assert result.exit_code == 1
    assert f"no band: {WRITE}: 13 of 14 nights" in result.output
    site.measure(13, 14)
    before = site.file.read_text()
    result = bands("fit")
    assert result.exit_code == 0, result.output
    assert f"+  {WRITE}:" in result.output
    assert "6 bands proposed" in result.output
    assert site.file.read_text() == before

    accepted = bands("accept", "--why", "first nights", "--by", "me")
    assert accepted.exit_code == 0, accepted.output
    assert f"+  {WRITE}:" in accepted.output
    assert site.file.read_text().startswith("# ours\n")
    load_site_bands.cache_clear()
    band = load_site_bands(site.file.parent, "here").find(WRITE)
    assert band.observed.place(103) == "inside"
    assert (band.provenance.nights, band.provenance.first, band.provenance.software["hdf5"]) == (
        14,
        date(2026, 2, 28),
        "1.10.8",
    )
    assert band.provenance.accepted == {"who": "me", "date": date.today(), "why": "first nights"}
    assert "nothing to propose; 0 series" in bands("fit").output
    shown = bands("show", "write/disk/1x2/CC/hdf5").output
    assert "me 20" in shown
    assert "no bands wait" in bands("accept", "--why", "again").output


def test_a_level_that_moved_is_refused_until_it_is_blessed(site):
    site.measure(0, 20)
    site.measure(20, 40, slower=2.0)
    assert "its level moved by" in bands("fit", WRITE).output
    since = (STARTED + timedelta(days=20)).strftime("%Y-%m-%d")
    assert bands("fit", WRITE, "--since", since).exit_code == 0
    said = ["history", "bless", "particles/*", "--since", since, "--why", "new servers", "--site", "here"]
    assert CliRunner().invoke(cli.main, said).output == "bless: 6 series\n"
    assert "1 bands proposed" in bands("fit", WRITE).output


def test_nights_under_maintenance_and_cached_reads_are_no_evidence(site):
    site.measure(0, 15, cached=0.4)
    begin, end = ((STARTED + timedelta(days=day)).strftime("%Y-%m-%dT%H:%M") for day in (3, 5))
    said = ["history", "maintenance", begin, end, "--why", "x", "--site", "here"]
    assert CliRunner().invoke(cli.main, said).exit_code == 0
    output = bands("fit").output
    assert f"{WRITE}: 13 of 14 nights" in output
    assert f"{READ}: its reads come from the page cache" in output


def test_a_new_configuration_needs_nights_of_its_own_and_then_a_new_band(site):
    site.measure(0, 14)
    bands("fit")
    bands("accept", "--why", "x")
    site.measure(14, 20, alignment_bytes=1)
    assert bands("fit", WRITE).exit_code == 1
    site.measure(20, 28, alignment_bytes=1)
    assert "1 bands proposed" in bands("fit", WRITE).output


def test_a_file_that_changed_since_is_not_written_over(site):
    site.measure(0, 14)
    bands("fit")
    site.file.write_text(site.file.read_text() + "# and more\n")
    result = bands("accept", "--why", "x")
    assert result.exit_code == 2
    assert "has changed since the bands were proposed" in result.output
    assert site.file.read_text().endswith("# and more\n")
    bands("fit")
    assert "fits none" in bands("accept", "tiles/*", "--why", "x").output
    assert "why: empty" in bands("accept", "--why", " ").output
    assert "1 bands accepted" in bands("accept", WRITE, "--why", "x").output


def test_check_tells_what_a_suite_lacks_and_how_the_last_nights_stand(site, monkeypatch):
    suite = {WRITE, READ, TILES}
    monkeypatch.setattr(bands_cli, "series_of_suite", lambda site, suite_: suite if suite_ == "nightly" else set())
    assert "0 of the 3 series of suite nightly" in bands("check").output
    site.measure(0, 14)
    bands("fit")
    bands("accept", "--why", "x")
    site.measure(14, 16, slower=4.0)
    result = bands("check")
    assert result.exit_code == 1
    lines = {line.split()[0]: line for line in result.output.splitlines() if "/" in line}
    assert "found" in lines[WRITE]
    assert "2, 0 of 16" in lines[WRITE]
    assert "none (0 runs" in lines[TILES]
    assert "2 of the 3 series of suite nightly have a band" in result.output
    suite.remove(TILES)
    assert bands("check").exit_code == 0
    assert bands("check", "--suite", "none").exit_code == 2


def test_a_proposal_that_is_none_is_named(tmp_path):
    (tmp_path / "p.json").write_text("{")
    with pytest.raises(InputError, match="no proposal"):
        Proposal.load(tmp_path / "p.json")
