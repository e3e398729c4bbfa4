"""Bands are looked up by the stable key; a mistake in a band file is named by file, line, key and what is allowed."""

from __future__ import annotations

import copy

import pytest
from test_measurement import baseline_of

from iogauge.bands import Band, load_portable_bands, load_site_bands
from iogauge.errors import InputError
from iogauge.measurement import Measurement

SITE = """\
schema: iogauge.bands/1
site: here
bands:
  particles/write/scratch/4x16/CC/hdf5:
    observed: {reference: 5210, lower: -0.18, upper: 0.35, unit: MiB/s}
    from: {nights: 34, first: 2026-08-02, last: 2026-09-06, method: best of 3 / median / lower MAD}
"""

PORTABLE = """\
schema: iogauge.portable/1
from: {method: median of pairs, runs: 10}
bands:
  - when: {benchmark: particles, operation: write, pattern: [CC, II], medium: [memory]}
    against: {interface: mpiio}
    metric: raw
    reference: 0.95
    lower: -0.2
    upper: 0.2
    measured: 0.9 to 1.0
"""


@pytest.fixture(autouse=True)
def _fresh_cache():
    load_site_bands.cache_clear()
    load_portable_bands.cache_clear()


def load(tmp_path, text):
    (tmp_path / "here.yaml").write_text(text)
    return load_site_bands(tmp_path, "here")


def test_a_band_is_found_by_its_key_with_its_provenance(tmp_path):
    bands = load(tmp_path, SITE)
    found = bands.find("particles/write/scratch/4x16/CC/hdf5")
    assert found is not None
    assert found.observed is not None
    assert found.observed.lowest == pytest.approx(5210 * 0.82)
    assert found.provenance.nights == 34
    assert bands.find("particles/write/scratch/4x16/CC/posix") is None


def test_a_site_without_a_file_has_no_bands(tmp_path):
    assert load_site_bands(tmp_path, "nowhere").bands == {}


def test_limits_belong_to_the_inside():
    band = Band(reference=100, lower=-0.5, upper=0.5)
    assert [band.place(value) for value in (49.9, 50, 150, 150.1)] == ["below", "inside", "inside", "above"]


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "text"),
    [
        ("reference: 5210", "reference: -5210", 5, "reference", "greater than 0"),
        ("reference: 5210", "reference: fast", 5, "reference", "number"),
        ("lower: -0.18", "lower: 0.18", 5, "lower", "less than or equal to 0"),
        ("lower: -0.18", "lower: -1.5", 5, "lower", "greater than -1"),
        ("upper: 0.35", "upper: -0.35", 5, "upper", "greater than or equal to 0"),
        ("unit: MiB/s", "unit: MB/s", 5, "unit", "MiB/s"),
        ("unit: MiB/s", "units: MiB/s", 5, "units", "allowed: lower, reference, unit, upper"),
        ("observed:", "obsreved:", 5, "obsreved", "allowed: fingerprint, from, observed, raw"),
        ("method: best of 3 / median / lower MAD", "note: none", 6, "method", "missing"),
        ("site: here", "site: there", 2, "site", "named for 'here'"),
        ("schema: iogauge.bands/1", "schema: iogauge.bands/9", 1, "schema", "iogauge.bands/1"),
        ("bands:", "bands: [", 4, None, "not YAML"),
        ("site: here", "site: here\nsite: here", 3, None, "duplicate key"),
    ],
)
def test_a_mistake_in_a_site_band_is_named(tmp_path, old, new, line, key, text):
    assert old in SITE
    with pytest.raises(InputError) as caught:
        load(tmp_path, SITE.replace(old, new, 1))
    error = caught.value
    assert error.file == tmp_path / "here.yaml"
    assert error.line is not None
    assert abs(error.line - line) <= (0 if key else 2)
    assert key is None or key in str(error.key)
    assert text in str(error)


def test_a_list_is_no_band_file(tmp_path):
    with pytest.raises(InputError, match="mapping"):
        load(tmp_path, "- 1\n")


def test_the_portable_band_fits_pattern_medium_and_baseline(tmp_path, record):
    (tmp_path / "portable.yaml").write_text(PORTABLE)
    bands = load_portable_bands(tmp_path)
    main = Measurement.model_validate(record)
    mpiio = Measurement.model_validate(baseline_of(record))
    posix = Measurement.model_validate(baseline_of(record, interface="posix"))
    assert bands.find(main, mpiio, "memory", "raw") is bands.bands[0]
    assert bands.find(main, mpiio, "memory", "observed") is None
    assert bands.find(main, mpiio, "storage", "raw") is None
    assert bands.find(main, posix, "memory", "raw") is None
    other = copy.deepcopy(record)
    other["pattern"]["locality"] = "CI"
    assert bands.find(Measurement.model_validate(other), mpiio, "memory", "raw") is None


@pytest.mark.parametrize(
    ("old", "new", "line", "key"),
    [
        ("medium: [memory]", "medium: [tape]", 4, "medium"),
        ("metric: raw", "metric: fastest", 6, "metric"),
        ("lower: -0.2", "lower: 2", 8, "lower"),
        ("against:", "againts:", 5, "againts"),
    ],
)
def test_a_mistake_in_a_portable_band_is_named(tmp_path, old, new, line, key):
    assert old in PORTABLE
    (tmp_path / "portable.yaml").write_text(PORTABLE.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_portable_bands(tmp_path)
    assert (caught.value.line, key in str(caught.value.key)) == (line, True)
