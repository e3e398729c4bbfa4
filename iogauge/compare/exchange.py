"""Files across arms: what one has written, the other reads and verifies bit for bit, or says why it cannot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

#: These kernels read files that another run has kept.
READERS = ("blocks", "particles", "segments", "tiles")


class Exchange(BaseModel):
    """``reader`` read what ``writer`` wrote; ``problem`` is empty where every byte was right. ``file_bytes`` of all files
    together; ``open_seconds`` is the reader's, of the slowest rank."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    writer: str
    reader: str
    problem: str = ""
    file_bytes: int
    open_seconds: float | None = None


def unreadable(exchanges: Iterable[Exchange]) -> list[str]:
    """A sentence for each pair of arms and pattern whose file could not be read."""
    return [
        f"{one.pattern}: {one.reader} cannot read what {one.writer} wrote: {one.problem}"
        for one in exchanges
        if one.problem
    ]


def sizes(exchanges: Sequence[Exchange]) -> dict[str, dict[str, int]]:
    """Pattern to arm to bytes of its files, where the arms differ."""
    found: dict[str, dict[str, int]] = {}
    for one in exchanges:
        found.setdefault(one.pattern, {})[one.writer] = one.file_bytes
    return {pattern: by_arm for pattern, by_arm in found.items() if len(set(by_arm.values())) > 1}
