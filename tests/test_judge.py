"""The verdict: invalid before slow, slow before fast, and no pass in disguise."""

from __future__ import annotations

import copy

import pytest
from samples import counted_record
from test_measurement import baseline_of

from iogauge.bands import PortableBands, SiteBands
from iogauge.judge import Expectation, judge, ratio_name
from iogauge.measurement import Measurement
from iogauge.series import fingerprint, key

EXPECTATION = Expectation(file_system="scratch", type="lustre", nodes=1, ranks_per_node=2)
NO_BANDS = SiteBands.model_validate({"schema": "iogauge.bands/1", "site": "here"})
NO_RATIOS = PortableBands.model_validate({"schema": "iogauge.portable/1", "from": {"method": "test"}, "bands": []})


def site_bands(reference, operation="write", **extra):
    name = f"particles/{operation}/scratch/1x2/CC/hdf5"
    observed = {"reference": reference, "lower": -0.1, "upper": 0.1, "unit": "MiB/s"}
    bands = {name: {"observed": observed, "from": {"method": "test"}, **extra}}
    return SiteBands.model_validate({"schema": "iogauge.bands/1", "site": "here", "bands": bands})


def portable(reference, against=None, operation="write", medium=("storage",), metric="observed"):
    when = {"benchmark": "particles", "operation": operation, "pattern": ["CC"], "medium": list(medium)}
    band = {"when": when, "against": against or {"interface": "mpiio"}, "reference": reference}
    band |= {"lower": -0.1, "upper": 0.1, "metric": metric, "measured": "test"}
    return PortableBands.model_validate({"schema": "iogauge.portable/1", "from": {"method": "test"}, "bands": [band]})


def judged(*records, site=NO_BANDS, ratios=NO_RATIOS, **expected):
    measurements = [Measurement.model_validate(record) for record in records]
    return judge(measurements, EXPECTATION.model_copy(update=expected), site, ratios)


def test_without_any_band_there_is_no_reference_and_the_rate_is_kept(record):
    result = judged(record)
    assert (result.verdict, result.rows[0].band_status) == ("no reference", "missing")
    assert result.rows[0].observed == pytest.approx(64 / 0.62)
    assert result.rows[0].key == "particles/write/scratch/1x2/CC/hdf5"


@pytest.mark.parametrize(("reference", "verdict"), [(103, "pass"), (120, "regressed"), (90, "improved")])
def test_the_best_observed_rate_is_held_against_the_site_band(record, reference, verdict):
    result = judged(record, site=site_bands(reference))
    assert (result.verdict, result.rows[0].band_status) == (verdict, "found")
    assert "103.2 MiB/s, band" in result.reasons[0]


def test_a_band_of_another_unit_is_not_for_this_series():
    """Of a benchmark that moved bytes before it counted: a rate in MiB/s says nothing of operations a second."""
    m = Measurement.model_validate(counted_record("file-stat"))
    name = key(m, "scratch")
    assert name == "metadata/file-stat/scratch/1x2/shared/posix"
    for unit, status, verdict in (("MiB/s", "other configuration", "no reference"), ("operations/s", "found", "pass")):
        observed = {"reference": 3200, "lower": -0.1, "upper": 0.1, "unit": unit}
        bands = {name: {"observed": observed, "from": {"method": "test"}}}
        site = SiteBands.model_validate({"schema": "iogauge.bands/1", "site": "here", "bands": bands})
        result = judged(counted_record("file-stat"), site=site)
        assert (result.rows[0].band_status, result.verdict) == (status, verdict)
    assert result.reasons == ("file-stat: 3226 operations/s, band 2880 to 3520 operations/s",)


@pytest.mark.parametrize(("reference", "verdict"), [(1.0, "pass"), (1.3, "regressed"), (0.8, "improved")])
def test_a_ratio_is_judged_from_the_first_night(record, reference, verdict):
    result = judged(record, baseline_of(record), ratios=portable(reference))
    assert result.verdict == verdict
    assert result.rows[0].band_status == "missing", "a pass on ratios does not hide the missing site band"
    assert "HDF5 to MPI-IO 1.00, band" in result.reasons[0]


def test_a_raw_ratio_is_judged_beside_the_observed_one(record):
    other = baseline_of(record)
    for repeat in other["repeats"]:
        repeat["transfer_seconds"] /= 2
        repeat["total_seconds"] = repeat["transfer_seconds"] + 0.12
    row = judged(record, other, ratios=portable(0.5, metric="raw")).rows[0]
    assert [(ratio.name, ratio.place) for ratio in row.ratios] == [("to_mpiio", "no band"), ("to_mpiio_raw", "inside")]
    assert judged(record, other, ratios=portable(0.7, metric="raw")).verdict == "regressed"


def test_pairs_that_spread_too_wide_are_no_evidence(record):
    other = baseline_of(record)
    for repeat, factor in zip(other["repeats"], (0.3, 1.0, 1.6), strict=True):
        repeat["transfer_seconds"] *= factor
        repeat["total_seconds"] = repeat["transfer_seconds"] + 0.12
    result = judged(record, other, ratios=portable(3.0))
    assert (result.verdict, result.rows[0].ratios[0].place) == ("too noisy", "too noisy")
    assert "pairs spread by" in result.reasons[0]
    assert judged(record, other, site=site_bands(103), ratios=portable(3.0)).verdict == "pass"


def test_a_slow_site_rate_is_not_excused_by_a_good_ratio(record):
    result = judged(record, baseline_of(record), site=site_bands(120), ratios=portable(1.0))
    assert result.verdict == "regressed"


def test_a_slow_ratio_is_not_excused_by_a_good_rate(record):
    result = judged(record, baseline_of(record), site=site_bands(103), ratios=portable(1.3))
    assert result.verdict == "regressed"


def test_ranks_that_share_a_core_have_no_rate(record):
    record["placement"][1]["cores"] = [0]
    result = judged(record, site=site_bands(103))
    assert (result.verdict, result.rows) == ("invalid", ())
    assert result.reasons == ("2 ranks (0-1) share core 0 of n1",)


def test_fewer_hosts_than_asked_have_no_rate(record):
    result = judged(record, nodes=2, ranks_per_node=1)
    assert (result.verdict, result.rows) == ("invalid", ())


def test_unverified_data_have_no_rate(record):
    record["repeats"][0]["verified_bytes"] = 8
    result = judged(record)
    assert (result.verdict, result.rows) == ("invalid", ())


def test_no_measurement_is_invalid():
    assert judge([], EXPECTATION, NO_BANDS, NO_RATIOS).verdict == "invalid"


@pytest.mark.parametrize(("cached", "status"), [(0.04, "found"), (0.06, "cached"), (1.0, "cached")])
def test_a_read_from_the_page_cache_is_never_held_against_a_storage_band(read_record, cached, status):
    read_record["repeats"][1]["cached_fraction"] = cached
    row = judged(read_record, site=site_bands(1e6, "read")).rows[0]
    assert row.band_status == status
    assert (row.verdict == "regressed") == (status == "found")
    assert ("page cache" in row.reason) == (status == "cached")


def test_on_a_file_system_in_memory_every_read_is_cached_and_has_its_band(read_record):
    for repeat in read_record["repeats"]:
        repeat["cached_fraction"] = 1.0
    assert judged(read_record, site=site_bands(1e6, "read"), type="memory").verdict == "regressed"


def test_a_cached_and_an_uncached_read_are_not_compared(read_record):
    other = baseline_of(read_record)
    for repeat in other["repeats"]:
        repeat["cached_fraction"] = 1.0
    result = judged(read_record, other, ratios=portable(5.0, operation="read"))
    assert result.rows[0].ratios[0].place == "cached differently"
    assert result.verdict == "no reference"


def test_a_band_of_another_configuration_is_not_used(record):
    bands = site_bands(1e6, fingerprint="00000000")
    assert judged(record, site=bands).rows[0].band_status == "other configuration"
    right = fingerprint(Measurement.model_validate(record), "")
    assert judged(record, site=site_bands(1e6, fingerprint=right)).verdict == "regressed"


def test_a_baseline_through_another_interface_is_a_series_of_its_own(record):
    locality = baseline_of(record, interface="hdf5", locality="CC")
    locality["differs"] = {"locality": "CC"}
    rows = judged(record, baseline_of(record), locality).rows
    assert [(row.role, row.interface) for row in rows] == [("main", "hdf5"), ("baseline", "mpiio")]
    assert [ratio.name for ratio in rows[0].ratios] == ["to_mpiio", "to_CC"]


def test_a_write_has_no_ratio_to_another_selection(record, read_record):
    write = copy.deepcopy(record) | {"operation": "write", "read_shift": None}
    full = {"differs": {"selection": "full"}, "role": "baseline"}
    rows = judged(write, write | full, read_record, read_record | full).rows
    assert [(row.operation, len(row.ratios)) for row in rows] == [("write", 0), ("read", 1)]


def test_the_verdict_of_a_case_is_that_of_its_worst_operation(record, read_record):
    write = copy.deepcopy(record) | {"operation": "write", "read_shift": None}
    result = judged(write, read_record, site=site_bands(1e6, "read"))
    assert [row.verdict for row in result.rows] == ["no reference", "regressed"]
    assert result.verdict == "regressed"


@pytest.mark.parametrize(
    ("differs", "name"),
    [
        ({"interface": "posix"}, "to_posix"),
        ({"dimensions": "1"}, "to_1d"),
        ({"selection": "full"}, "to_full"),
        ({"halo": "0"}, "to_halo0"),
        ({"chunk": "0", "halo": "0"}, "to_chunk0_halo0"),
    ],
)
def test_ratios_have_short_names(differs, name):
    assert ratio_name(differs) == name


def test_the_fingerprint_follows_the_configuration_and_the_key_does_not(record):
    m = Measurement.model_validate(record)
    other = copy.deepcopy(record)
    other["pattern"]["alignment_bytes"] = 0
    changed = Measurement.model_validate(other)
    assert key(m, "scratch") == key(changed, "scratch")
    assert fingerprint(m, "v") != fingerprint(changed, "v")
    assert fingerprint(m, "v") != fingerprint(m, "w")
    other = copy.deepcopy(record)
    other["software"]["hdf5"] = "1.14.5"
    assert fingerprint(m, "v") == fingerprint(Measurement.model_validate(other), "v")


def test_the_series_of_another_environ_are_others_and_no_band_of_the_usual_one_is_theirs(record):
    result = judged(record, baseline_of(record), site=site_bands(103), arm="hdf5-2")
    assert [row.key for row in result.rows] == [
        "particles/write/scratch/1x2/CC/hdf5@hdf5-2",
        "particles/write/scratch/1x2/CC/mpiio@hdf5-2",
    ]
    assert result.rows[0].band_status == "missing"
    assert judged(record).rows[0].fingerprint == result.rows[0].fingerprint
