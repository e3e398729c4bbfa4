"""A report taken line by line, in which every line has to be the one that is expected."""

from __future__ import annotations

import re

from iogauge.errors import Refusal

#: UCX writes what it has to say of the network to stdout, when ranks disconnect above all.
_NETWORK = re.compile(r"\[\d+\.\d+\] \[[^\]\s]+:\d+:\d+\]\s+\S+:\d+\s+UCX\s+[A-Z]+\s.*")


class Lines:
    """The lines, one after the other; blank ones, those of dashes and those of a network library count, but say nothing.
    ``program`` begins refusals."""

    def __init__(self, text: str, program: str) -> None:
        self._lines = text.splitlines()
        self._program = program
        self._at = 0

    def refuse(self, why: str) -> Refusal:
        """A refusal that names the last line taken."""
        return Refusal(f"{self._program}: line {self._at}: {why}")

    def take(self, pattern: str, expected: str) -> tuple[str, ...]:
        """The groups of the next line, which must match ``pattern`` as a whole."""
        self._skip_silent()
        if self._at == len(self._lines):
            raise Refusal(f"{self._program}: line {self._at + 1}: the report ends where {expected!r} should follow")
        line = self._lines[self._at].strip()
        self._at += 1
        match = re.fullmatch(pattern, line, re.ASCII)
        if match is None:
            raise self.refuse(f"{line[:100]!r} where {expected!r} should stand")
        return match.groups()

    def next(self) -> str:
        """The next line, not taken; empty: there is none."""
        self._skip_silent()
        return self._lines[self._at].strip() if self._at < len(self._lines) else ""

    def end(self) -> None:
        """Nothing may follow."""
        line = self.next()
        if line:
            self._at += 1
            raise self.refuse(f"{line[:100]!r} after the end of the report")

    def _skip_silent(self) -> None:
        while self._at < len(self._lines) and self._is_silent(self._lines[self._at].strip("\t -")):
            self._at += 1

    @staticmethod
    def _is_silent(line: str) -> bool:
        return not line or _NETWORK.fullmatch(line) is not None
