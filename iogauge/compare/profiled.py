"""What the second arm does otherwise than the first, as Darshan saw it in one run of each, of which no rate is taken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from iogauge.compare.plan import Arm, Pattern, Plan
from iogauge.darshan.differences import differences, metadata_shares
from iogauge.darshan.log import read_log
from iogauge.darshan.preload import files_of_case
from iogauge.darshan.summary import Summary
from iogauge.errors import InputError, Refusal

#: Room for so many files and datasets of a rank.
RECORDS = 4096


class Profiled(BaseModel):
    """Of one pattern: sentences, a module each; none: Darshan saw the same. ``metadata``: metadata's part of the time, for
    information. ``logs``: the files' names, an arm each. ``problem``: why there is nothing to tell.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    differences: tuple[str, ...] = ()
    metadata: str = ""
    logs: tuple[str, ...] = ()
    problem: str = ""


def log_name(pattern: Pattern, arm: Arm, number: int) -> str:
    """``particles-CC.1-hdf5-1.10.8-openmpi.darshan``."""
    plain = [re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-") for name in (pattern.name, arm.name)]
    return f"{plain[0]}.{number}-{plain[1]}.darshan"


def profiled(pattern: Pattern, logs: Sequence[Path], ranks: int) -> Profiled:
    """Of both arms' logs."""
    try:
        before, after = (_summary(log, ranks) for log in logs)
    except (InputError, Refusal) as problem:
        there = tuple(log.name for log in logs if log.exists())
        return Profiled(pattern=pattern.name, logs=there, problem=str(problem))
    return Profiled(
        pattern=pattern.name,
        differences=differences(before, after),
        metadata=metadata_shares(before, after),
        logs=tuple(log.name for log in logs),
    )


def _summary(log: Path, ranks: int) -> Summary:
    summary = read_log(log, only=files_of_case(), needs=("H5F",))
    if summary.ranks != ranks:
        raise Refusal(f"Darshan's log {log.name} is of {summary.ranks} ranks, the comparison has {ranks}")
    return summary


def why_none(plan: Plan) -> str:
    """Why Darshan is not asked, and what would make it be; empty: it is."""
    if not plan.profile:
        return "Darshan was not asked: it was switched off."
    without = [arm.name for arm in plan.arms if not arm.darshan]
    if not without:
        return ""
    return (
        f"Darshan was not asked: no runtime of it is known for {' and '.join(without)}. The extra darshan of an environment "
        f"names one, IOGAUGE_DARSHAN or darshan-config in PATH on the local site, IOGAUGE_DARSHAN_OPENMPI or "
        f"IOGAUGE_DARSHAN_MPICH for arms of that MPI."
    )
