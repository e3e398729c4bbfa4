"""A report taken line by line, in which every line has to be the one that is expected."""

from __future__ import annotations

import re

from iogauge.errors import Refusal


class Lines:
    """The lines, one after the other; blank ones and those of dashes count, but say nothing. ``program`` begins refusals."""

    def __init__(self, text: str, program: str) -> None:
        self._lines = text.splitlines()
        self._program = program
        self._at = 0

    def refuse(self, why: str) -> Refusal:
        """A refusal that names the last line taken."""
        return Refusal(f"{self._program}: line {self._at}: {why}")

    def take(self, pattern: str, expected: str) -> tuple[str, ...]:
        """The groups of the next line, which must match ``pattern`` as a whole."""
        self._skip_blank()
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
        self._skip_blank()
        return self._lines[self._at].strip() if self._at < len(self._lines) else ""

    def end(self) -> None:
        """Nothing may follow."""
        line = self.next()
        if line:
            self._at += 1
            raise self.refuse(f"{line[:100]!r} after the end of the report")

    def _skip_blank(self) -> None:
        while self._at < len(self._lines) and not self._lines[self._at].strip("\t -"):
            self._at += 1
