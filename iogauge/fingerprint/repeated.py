"""What of a fingerprint is the same every time: only that is compared with another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iogauge.errors import Refusal
from iogauge.fingerprint.model import Fingerprint

_MISSING = object()

#: What all runs of one case have to have in common.
_GIVEN = ("source", "kernel", "pattern", "options", "ranks", "hdf5", "mpi", "environment")


def same_every_time(runs: Sequence[Fingerprint]) -> Fingerprint:
    """What is the same in all ``runs`` of one case; the rest is named in ``not_deterministic``.

    Raises :class:`Refusal` where they are not of the same case and the same software.
    """
    first = runs[0]
    for name in _GIVEN:
        others = {str(getattr(run, name)) for run in runs}
        if len(others) > 1:
            raise Refusal(f"runs of one case differ in {name}: {', '.join(sorted(others))}")
    documents = [
        run.model_dump(mode="json", by_alias=True, exclude={"not_deterministic", "runs"}, exclude_none=True)
        for run in runs
    ]
    lost = {name for run in runs for name in run.not_deterministic}
    document = _common(documents, "", lost)
    return (
        Fingerprint.model_validate(
            document | {"runs": sum(run.runs for run in runs), "not_deterministic": sorted(lost)}
        )
        if len(runs) > 1
        else first
    )


def _common(values: Sequence[Any], path: str, lost: set[str]) -> Any:
    """What all ``values`` have; paths of what they have not are added to ``lost``."""
    if all(value == values[0] for value in values):
        return values[0]
    if all(isinstance(value, dict) for value in values):
        names = list(dict.fromkeys(name for value in values for name in value))
        parts = {
            name: _common([value.get(name, _MISSING) for value in values], f"{path}/{name}".lstrip("/"), lost)
            for name in names
        }
        return {name: part for name, part in parts.items() if part is not _MISSING}
    totals = {_total(value) for value in values}
    if len(totals) == 1 and None not in totals:
        lost.add(f"{path} of each rank")
        return totals.pop()
    lost.add(path)
    return _MISSING


def _total(value: Any) -> int | None:
    """Of a number with the ranks' shares of it."""
    text = str(value).partition(" (")[0]
    return int(text) if text.isdigit() else None
