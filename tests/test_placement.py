"""Ranks that share a core, or sit on fewer hosts than asked, are found and named."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iogauge import placement
from iogauge.measurement import Measurement


def measurement(record, hosts: dict[str, list[list[int]]]) -> Measurement:
    """Hosts with the cores that each of their ranks may use; ranks are numbered host by host."""
    record["hosts"], record["placement"], rank = {}, [], 0
    for host, ranks in hosts.items():
        for cores in ranks:
            record["hosts"].setdefault(host, []).append(rank)
            record["placement"].append({"rank": rank, "host": host, "pid": 1 + rank, "cpus": cores, "cores": cores})
            rank += 1
    record["ranks"] = rank
    return Measurement.model_validate(record)


def test_ranks_on_cores_of_their_own_are_right(record):
    assert placement.problems(measurement(record, {"n1": [[0], [1]], "n2": [[0], [1]]}), 2, 2) == []


def test_two_ranks_on_one_core_are_named(record):
    found = placement.problems(measurement(record, {"n1": [[0], [0]]}), 1, 2)
    assert found == ["2 ranks (0-1) share core 0 of n1"]


def test_all_ranks_on_one_core_as_on_claix(record):
    found = placement.problems(measurement(record, {"n1": [[5]] * 48}), 1, 48)
    assert len(found) == 1
    assert "share core 5 of n1" in found[0]


def test_three_ranks_bound_to_the_same_two_cores_are_named(record):
    found = placement.problems(measurement(record, {"n1": [[0, 1], [0, 1], [0, 1], [3]]}), 1, 4)
    assert found == ["3 ranks (0-2) share cores 0-1 of n1"]


def test_unbound_ranks_with_cores_enough_are_right(record):
    assert placement.problems(measurement(record, {"n1": [[0, 1, 2, 3]] * 4}), 1, 4) == []


def test_a_world_of_the_wrong_size_is_named(record):
    found = placement.problems(measurement(record, {"n1": [[0]]}), 1, 4)
    assert found[0] == "MPI's world has 1 ranks, 4 were asked for (1 nodes of 4)"


def test_fewer_hosts_than_asked_are_named(record):
    found = placement.problems(measurement(record, {"n1": [[0], [1], [2], [3]]}), 2, 2)
    assert "4 ranks run on 1 hosts (n1), 2 were asked for" in found
    assert "4 ranks on n1, 2 were asked for" in found


def test_uneven_hosts_are_named(record):
    found = placement.problems(measurement(record, {"n1": [[0], [1], [2]], "n2": [[0]]}), 2, 2)
    assert found == ["3 ranks on n1, 2 were asked for", "1 ranks on n2, 2 were asked for"]


def test_a_host_that_does_not_tell_its_cores_is_no_proof(record):
    assert "does not tell" in placement.problems(measurement(record, {"n1": [[0], []]}), 1, 2)[0]


def test_oversubscription_may_be_allowed_but_numbers_still_count(record):
    m = measurement(record, {"n1": [[0], [0]]})
    assert placement.problems(m, 1, 2, oversubscribe=True) == []
    assert placement.problems(m, 1, 3, oversubscribe=True) != []


cores = st.sets(st.integers(0, 4), min_size=1).map(sorted)


@given(st.lists(cores, min_size=1, max_size=5))
def test_ranks_are_apart_exactly_when_some_choice_of_cores_is(ranks):
    """Against the definition: try every choice of a core for each rank."""
    possible = any(len(set(choice)) == len(choice) for choice in itertools.product(*ranks))
    assert (placement._sharing("n1", dict(enumerate(ranks))) == []) == possible


@pytest.mark.parametrize(
    ("hosts", "text"),
    [({"n1": [[0], [1]]}, "2 ranks on 2 cores of 1 host"), ({"n1": [[0]]}, "1 rank on 1 core of 1 host")],
)
def test_the_summary_counts(record, hosts, text):
    assert placement.summary(measurement(record, hosts)) == text
