"""Rates come from bytes and seconds, in one place; ratios from pairs of one job."""

from __future__ import annotations

import copy

import pytest
from pydantic import ValidationError

from iogauge.measurement import Measurement, ratio


def baseline_of(record, factor=1.0, **differs):
    other = copy.deepcopy(record) | {"role": "baseline", "differs": differs or {"interface": "mpiio"}}
    other["interface"] = differs.get("interface", "mpiio")
    for repeat in other["repeats"]:
        for phase in ("open", "transfer", "flush", "close", "total"):
            repeat[f"{phase}_seconds"] /= factor
    return other


def test_rates_are_bytes_over_seconds_in_mib(record):
    m = Measurement.model_validate(record)
    assert m.raw == pytest.approx((64 / 0.52, 64 / 0.5, 64 / 0.58))
    assert m.observed == pytest.approx((64 / 0.64, 64 / 0.62, 64 / 0.7))
    assert m.best_observed == pytest.approx(64 / 0.62)
    assert m.best_raw == pytest.approx(128)


def test_ratio_pairs_the_repeats_and_takes_their_median(record):
    main, other = record, baseline_of(record, factor=2.0)
    other["repeats"][0]["transfer_seconds"] *= 10
    other["repeats"][0]["total_seconds"] = other["repeats"][0]["transfer_seconds"] + 0.06
    result = ratio(Measurement.model_validate(main), Measurement.model_validate(other))
    assert result.pairs[1:] == pytest.approx((0.5, 0.5))
    assert result.pairs[0] > 3
    assert result.value == pytest.approx(0.5), "one wild pair must not move it"
    assert result.against == "interface=mpiio"


def test_ratio_of_different_jobs_is_refused(record):
    other = baseline_of(record)
    other["repeats"] = other["repeats"][:2]
    with pytest.raises(ValueError, match="not of one job"):
        ratio(Measurement.model_validate(record), Measurement.model_validate(other))


def test_verified_means_every_byte_of_every_repeat(record):
    assert Measurement.model_validate(record).verified
    record["repeats"][1]["verified_bytes"] -= 8
    assert not Measurement.model_validate(record).verified


def test_cached_fraction_is_the_worst_repeat_and_unknown_when_any_is(read_record):
    read_record["repeats"][2]["cached_fraction"] = 0.4
    assert Measurement.model_validate(read_record).cached_fraction == 0.4
    read_record["repeats"][0]["cached_fraction"] = None
    assert Measurement.model_validate(read_record).cached_fraction is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.update(ranks=3), "hosts"),
        (lambda r: r["hosts"].update(n1=[0, 0]), "hosts"),
        (lambda r: r["placement"].reverse(), "placement"),
        (lambda r: r["placement"][1].update(host="n2"), "placement"),
        (lambda r: r.update(operation="read"), "read_shift"),
        (lambda r: r.update(differs={"interface": "mpiio"}), "differs"),
        (lambda r: r["repeats"][0].update(total_seconds=0.01), "total_seconds"),
        (lambda r: r["repeats"][0].update(total_seconds=9.0), "total_seconds"),
        (lambda r: r["repeats"][0].update(transfer_seconds=0.0), "transfer_seconds"),
        (lambda r: r["repeats"][0].update(transfer_seconds=float("nan")), "transfer_seconds"),
        (lambda r: r["repeats"][0].update(close_seconds=-1.0), "close_seconds"),
        (lambda r: r.update(logical_bytes=0), "logical_bytes"),
        (lambda r: r.update(logical_bytes="64"), "logical_bytes"),
        (lambda r: r.update(repeats=[]), "repeats"),
        (lambda r: r.update(rate=5), "rate"),
    ],
)
def test_what_does_not_add_up_is_no_measurement(record, change, message):
    change(record)
    with pytest.raises(ValidationError, match=message):
        Measurement.model_validate(record)
