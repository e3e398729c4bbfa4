"""Darshan as a second witness: its aggregate rate has to lie where the benchmark's own times say."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from iogauge.darshan.rules import THRESHOLDS, Claim
from iogauge.darshan.summary import Module, Summary
from iogauge.measurement import MIB, Measurement


class Witness(BaseModel):
    """Darshan's rate in MiB/s beside the benchmark's limits; ``agrees`` is None where they cannot be compared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agrees: bool | None
    text: str
    module: Module | None = None
    rate: float | None = None
    least: float | None = None
    most: float | None = None


#: Operations that move bytes to the file; reads are the other ones.
_WRITES = ("write", "overwrite", "append")


def claim_of(measurements: Sequence[Measurement], *, exact: bool = True) -> Claim:
    """What the records of one run say of their main cases, over all repeats, with what was read to verify.

    ``exact``: the run moved nothing else of their files.
    """
    mains = [m for m in measurements if m.role == "main"]
    first = mains[0]
    written = sum(m.logical_bytes * len(m.repeats) for m in mains if m.operation in _WRITES)
    read = sum(m.logical_bytes * len(m.repeats) for m in mains if m.operation == "read")
    moving = [m for m in mains if not m.operations]
    exact = exact and bool(moving) and all(map(_is_exact, moving))
    return Claim(
        interface=first.interface,
        # Where some of several cases are, nobody can tell which calls were to be.
        collective=all(m.collective for m in mains),
        # What an upstream benchmark leaves out is told all the same: its rate may be that of memory.
        fsync=bool(first.pattern.get("fsync", True)) if first.program is None else None,
        bytes_written=written if exact else None,
        bytes_read=read + _read_to_verify(mains) if exact else None,
        whole_elements=first.pattern.get("locality") != "CI",
        ranks_per_file=_ranks_per_file(first),
        hosts=first.hosts,
        counts_operations=not moving,
    )


def _is_exact(m: Measurement) -> bool:
    """Do its bytes tell all that its run moved? Not where a kernel fills the file first, where what is stored is not what was
    written, or where sizes are drawn anew in each run."""
    pattern = m.pattern
    fills_first = pattern.get("write_mode") in ("overwrite", "append")
    packed = pattern.get("compress", "none") != "none"
    return not (fills_first or packed or pattern.get("content") == "foreign" or "stdev" in pattern)


def _read_to_verify(mains: Sequence[Measurement]) -> int:
    """A kernel reads a write back untimed where the measured read is not of all that was written."""
    if mains[0].program is not None:
        return 0
    write = next((m for m in mains if m.operation == "write"), None)
    read = next((m for m in mains if m.operation == "read"), None)
    if write is None or (read is not None and read.logical_bytes == write.logical_bytes):
        return 0
    return write.logical_bytes * len(write.repeats)


def _ranks_per_file(m: Measurement) -> int | None:
    """How many ranks use a file; unknown where one rank writes it, and another may read it."""
    alone = m.pattern.get("io", "independent") not in ("independent", "collective")
    own = m.pattern.get("file_per_process") or m.pattern.get("writers", "all") != "all"
    return None if own or alone or m.operations else m.ranks


def witness(summary: Summary, measurements: Sequence[Measurement], claim: Claim | None = None) -> Witness:
    """Compare ``agg_perf_by_slowest`` of the module that the main case calls with the records of the same job.

    What Darshan accounts to the slowest rank are calls inside the benchmark's clock: at least the transfers of the fastest
    rank, at most all from open to close on the slowest one. So its rate lies between the observed rate and the fastest
    rank's raw rate, give or take the tolerance (thresholds ``witness`` and ``witness-seconds``).
    """
    claim = claim or claim_of(measurements)
    mains = [m for m in measurements if m.role == "main"]
    if claim.counts_operations:
        return Witness(agrees=None, text="no second witness: operations are counted, which have no rate in Darshan")
    if claim.bytes_written is None or _read_to_verify(mains):
        return Witness(
            agrees=None, text="no second witness: the log holds unmeasured reads and writes of the same files"
        )
    module = summary.top(claim.interface)
    layer = None if module is None else summary.layers[module]
    if layer is None or not layer.aggregate_seconds:
        return Witness(agrees=None, text=f"no second witness: Darshan has no time of {claim.interface}")
    said = sum(m.logical_bytes * len(m.repeats) for m in mains)
    # A part of an element counts as all of it there: the benchmark's bytes, by Darshan's clock.
    moved = layer.bytes_read + layer.bytes_written if claim.whole_elements or module != "H5D" else said
    slowest = sum(repeat.total_seconds for m in mains for repeat in m.repeats)
    # Ranks that write for others gather from them between the calls, Python has its own work: the transfers are then no limit.
    gathers = mains[0].pattern.get("writers", "all") in ("one", "node") or bool(mains[0].software.packages)
    moving = [m for m in mains if not m.operations]
    of_fastest = [repeat.least.transfer_seconds for m in moving for repeat in m.repeats if repeat.least is not None]
    fastest = 0.0 if gathers else sum(of_fastest)
    rate, least = moved / MIB / layer.aggregate_seconds, said / MIB / slowest
    most = said / MIB / fastest if fastest else None
    # By the clock, for which 15 % of a millisecond is nothing.
    seconds = said / MIB / rate
    tolerance, slack = THRESHOLDS["witness"].value, THRESHOLDS["witness-seconds"].value
    agrees = fastest * (1 - tolerance) - slack <= seconds <= slowest * (1 + tolerance) + slack
    limits = f"{least:.4g} MiB/s or more" if most is None else f"{least:.4g} to {most:.4g} MiB/s"
    text = f"{rate:.4g} MiB/s in {module}, the benchmark's observed and raw rates allow {limits}"
    text = f"Darshan agrees: {text}" if agrees else f"Darshan disagrees: {text}, give or take {tolerance:.0%}"
    return Witness(agrees=agrees, text=text, module=module, rate=rate, least=least, most=most)
