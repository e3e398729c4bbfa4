"""What the second arm does otherwise than the first, by their fingerprints: no noise is in it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from iogauge.compare.plan import Arm, Pattern
from iogauge.errors import InputError, Refusal
from iogauge.fingerprint.differences import differences
from iogauge.fingerprint.record import Build, record

#: Of each arm: what is not the same in both is no difference of the arms.
RUNS = 2


class Otherwise(BaseModel):
    """Of one pattern: sentences, what costs most first; none: nothing is otherwise. ``problem``: why it could not be told."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    differences: tuple[str, ...] = ()
    problem: str = ""


def otherwise(pattern: Pattern, arms: Sequence[Arm], ranks: int, folder: Path) -> Otherwise:
    """Count a pattern's calls in both arms, and say what became otherwise; its files are removed."""
    try:
        before, after = (
            record(
                Build.at(arm.programs, _launcher(arm)),
                pattern.kernel,
                pattern.name,
                pattern.options,
                ranks=ranks,
                folders=[folder],
                runs=RUNS,
            )
            for arm in arms
        )
        return Otherwise(pattern=pattern.name, differences=tuple(one.text for one in differences(before, after)))
    except (InputError, Refusal) as problem:
        return Otherwise(pattern=pattern.name, problem=str(problem))


def _launcher(arm: Arm) -> str:
    settings = [f"{name}={value}" for name, value in arm.environment.items()]
    return shlex.join([*arm.launch, *(["env", *settings] if settings else [])])
