"""Are the ranks where the job asked for them, each with a core of its own?

A study behind this project learned only afterwards that its launcher had put all ranks on one core. Here a case whose
ranks are not proven to be apart has no rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iogauge.measurement import Measurement


def problems(measurement: Measurement, nodes: int, ranks_per_node: int, *, oversubscribe: bool = False) -> list[str]:
    """What is wrong, a sentence each; empty when ``nodes`` hosts hold ``ranks_per_node`` ranks on cores of their own.

    ``oversubscribe``: the site allows ranks to share cores (a test cluster); hosts and numbers are still checked.
    """
    found = []
    expected = nodes * ranks_per_node
    if measurement.ranks != expected:
        found.append(
            f"MPI's world has {measurement.ranks} ranks, {expected} were asked for ({nodes} nodes of {ranks_per_node})"
        )
    if measurement.nodes != nodes:
        names = ", ".join(sorted(measurement.hosts))
        found.append(f"{measurement.ranks} ranks run on {measurement.nodes} hosts ({names}), {nodes} were asked for")
    for host, ranks in sorted(measurement.hosts.items()):
        if len(ranks) != ranks_per_node:
            found.append(f"{len(ranks)} ranks on {host}, {ranks_per_node} were asked for")
        if not oversubscribe:
            cores = {rank: measurement.placement[rank].cores for rank in ranks}
            found.extend(_sharing(host, cores))
    return found


def _sharing(host: str, cores: Mapping[int, Sequence[int]]) -> list[str]:
    """Ranks of one host that cannot be given a core each: a bipartite matching of ranks to the cores they may use.

    By Hall's theorem a set of ranks with fewer cores between them than ranks is what prevents it; the one found by the
    failed search is named.
    """
    rank_on: dict[int, int] = {}

    def place(rank: int, seen_cores: set[int], seen_ranks: set[int]) -> bool:
        seen_ranks.add(rank)
        for core in cores[rank]:
            if core in seen_cores:
                continue
            seen_cores.add(core)
            if core not in rank_on or place(rank_on[core], seen_cores, seen_ranks):
                rank_on[core] = rank
                return True
        return False

    for rank in sorted(cores):
        if not cores[rank]:
            return [f"{host} does not tell which cores rank {rank} may use"]
    for rank in sorted(cores):
        seen_cores: set[int] = set()
        seen_ranks: set[int] = set()
        if not place(rank, seen_cores, seen_ranks):
            shared = sorted(seen_cores)
            several = "s" if len(shared) > 1 else ""
            return [
                f"{len(seen_ranks)} ranks ({_list(sorted(seen_ranks))}) share core{several} {_list(shared)} of {host}"
            ]
    return []


def _list(numbers: Sequence[int]) -> str:
    """1, 2, 3, 7 as ``1-3, 7``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def summary(measurement: Measurement) -> str:
    """``2 ranks on 2 cores of 1 host``: the cores that all ranks together may use."""
    cores = {(place.host, core) for place in measurement.placement for core in place.cores}
    return f"{_count(measurement.ranks, 'rank')} on {_count(len(cores), 'core')} of {_count(measurement.nodes, 'host')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
