"""The patterns of the upgrade suite: each kernel where a new HDF5 may do something else, each a second or so."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from iogauge.compare.plan import Pattern

#: Name to kernel and options, but for those of the volume. HDF5 unless they say otherwise.
PATTERNS: dict[str, tuple[str, Mapping[str, str]]] = {
    "particles CC": ("particles", {"locality": "CC"}),
    "particles CC collective": ("particles", {"locality": "CC", "collective": "yes"}),
    "particles CI": ("particles", {"locality": "CI"}),
    "particles II": ("particles", {"locality": "II"}),
    "particles 3-D": ("particles", {"locality": "CC", "dimensions": "3"}),
    "tiles contiguous": ("tiles", {"layout": "contiguous"}),
    "tiles chunked collective": ("tiles", {"layout": "chunked", "io": "collective"}),
    "blocks collective": ("blocks", {"collective": "yes"}),
    "segments shared": ("segments", {}),
    "segments file-per-process": ("segments", {"file-per-process": "yes"}),
    "metadata": ("metadata", {"objects": "100"}),
}

MIB = 1 << 20

#: Kernel to the options that give a rank so many MiB.
_VOLUMES: dict[str, Callable[[int], Mapping[str, str]]] = {
    "particles": lambda mib: {"particles": str(mib * MIB // 32), "steps": "1"},
    "tiles": lambda mib: {"steps": "2", "arrays": "4", "rows": "128", "columns": str(mib * 128)},
    "blocks": lambda mib: {"size": f"64x64x{mib * 32}"},
    "segments": lambda mib: {"block": str(mib * MIB), "transfer": str(MIB // 4)},
    "metadata": lambda mib: {},
}

#: What one pattern has on the file system beside its data: objects, alignment, HDF5's own.
_BESIDE = 16 * MIB


def patterns(mib_per_rank: int, *, libver: str = "earliest") -> tuple[Pattern, ...]:
    """All patterns; ``libver`` is HDF5's oldest version that must read the files."""
    return tuple(
        Pattern(name=name, kernel=kernel, options=_words(kernel, options, mib_per_rank, libver))
        for name, (kernel, options) in PATTERNS.items()
    )


def _words(kernel: str, options: Mapping[str, str], mib: int, libver: str) -> tuple[str, ...]:
    chosen = {"interface": "hdf5", "libver": libver, **_VOLUMES[kernel](mib), **options}
    return tuple(word for name, value in chosen.items() for word in (f"--{name}", value))


def bytes_written(mib_per_rank: int, ranks: int) -> int:
    """The most that is on the file system at once."""
    return ranks * (mib_per_rank * MIB + _BESIDE)
