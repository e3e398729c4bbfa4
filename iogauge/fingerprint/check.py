"""A case run once, and held against the fingerprint that is committed for its HDF5, MPI and number of ranks."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from iogauge.fingerprint import text
from iogauge.fingerprint.cases import kept_at, options_of, others_at
from iogauge.fingerprint.differences import LAYERS, Finding, Layer, differences
from iogauge.fingerprint.model import Fingerprint
from iogauge.fingerprint.record import Build, record


class Checked(BaseModel):
    """What a check found. ``kept``: ``None`` where nothing is committed, ``others`` then names what is of the same case."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    found: Fingerprint
    kept: Fingerprint | None
    layers: tuple[Layer, ...] = ()
    findings: tuple[Finding, ...] = ()
    others: tuple[str, ...] = ()


def parts_of(case: str) -> tuple[str, str]:
    """Kernel and pattern of ``KERNEL/PATTERN``; the latter empty where there is none."""
    kernel, _, pattern = case.partition("/")
    return kernel, pattern


def check_case(build: Build, case: str, *, ranks: int, folder: Path, references: Path) -> Checked:
    """Run ``case`` once, its files below ``folder``, and compare it with what is committed below ``references``.

    Raises :class:`InputError` for a case that there is not or that cannot be run, :class:`Refusal` for one that was not
    counted whole.
    """
    options = options_of(case)
    kernel, pattern = parts_of(case)
    found = record(build, kernel, pattern, options, ranks=ranks, folders=[folder], runs=1)
    path = kept_at(references, found)
    if not path.exists():
        return Checked(found=found, kept=None, others=tuple(others_at(path)))
    kept = text.read(path)
    layers = layers_for(kept, found)
    return Checked(found=found, kept=kept, layers=layers, findings=differences(kept, found, layers))


def layers_for(kept: Fingerprint, found: Fingerprint) -> tuple[Layer, ...]:
    """What a committed fingerprint can be held against: what MPI-IO makes of its calls is another version's own business."""
    alike = (kept.mpi, kept.environment) == (found.mpi, found.environment)
    return LAYERS if alike else tuple(layer for layer in LAYERS if layer != "posix")
