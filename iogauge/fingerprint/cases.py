"""The cases whose fingerprints are kept for each HDF5 version, and where: small, for no clock is looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from iogauge.errors import InputError
from iogauge.fingerprint.model import Fingerprint

#: ``KERNEL/PATTERN``: the kernel's options. A change of them is another fingerprint: renew the files.
CASES: Mapping[str, tuple[str, ...]] = {
    "particles/CC": ("--locality", "CC", "--particles", "8192", "--steps", "2"),
    "particles/CC-aligned": ("--locality", "CC", "--particles", "8192", "--steps", "2", "--alignment", "64K"),
    "particles/CC-collective": ("--locality", "CC", "--particles", "8192", "--steps", "2", "--collective", "yes"),
    "particles/CI": ("--locality", "CI", "--particles", "1024", "--steps", "2"),
    "particles/CI-collective": ("--locality", "CI", "--particles", "1024", "--steps", "2", "--collective", "yes"),
    "particles/II-chunked": ("--locality", "II", "--particles", "8192", "--steps", "2", "--chunk", "2048"),
    "segments/interleaved-collective": (
        *("--layout", "interleaved", "--segments", "2", "--block", "64K", "--transfer", "16K", "--collective", "yes"),
    ),
    "tiles/chunked": ("--layout", "chunked", "--steps", "2", "--arrays", "2", "--rows", "64", "--columns", "64"),
    "metadata/hdf5": ("--interface", "hdf5", "--objects", "16"),
    "blocks/collective": ("--size", "16x16x16", "--collective", "yes"),
}

#: Below reference_values.
FOLDER = "fingerprints"


def options_of(case: str) -> tuple[str, ...]:
    """Raises :class:`InputError` for a case that there is not."""
    if case not in CASES:
        raise InputError(f"{case!r} is no case; there are {', '.join(CASES)}", key="CASE")
    return CASES[case]


def _mpi_family(mpi: str | None) -> str:
    """``open-mpi`` of "Open MPI v4.1.4": what the version of is no other fingerprint by itself."""
    words = re.split(r"\s+v?\d|\s+version\b|:", (mpi or "unknown").lower())[0]
    return re.sub(r"[^a-z]+", "-", words).strip("-")


def kept_at(root: Path, fingerprint: Fingerprint) -> Path:
    """The file of the committed fingerprint that this one is to be compared with."""
    name = f"hdf5-{fingerprint.hdf5 or 'none'}_{_mpi_family(fingerprint.mpi)}_{fingerprint.ranks}.yaml"
    return root / FOLDER / fingerprint.kernel / fingerprint.pattern / name


def others_at(path: Path) -> list[str]:
    """The names of what else is kept of this case."""
    return sorted(other.stem for other in path.parent.glob("*.yaml") if other != path)
