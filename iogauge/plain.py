"""Text that came from elsewhere (a program's output, a reason), made fit for a line, a subject or an XML file."""

from __future__ import annotations

import re

#: Control characters, but for the white space; what no XML 1.0 document may have; half characters.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def printable(text: str) -> str:
    """Without characters that a terminal would obey and XML forbids."""
    return _UNFIT.sub("?", text)


def one_line(text: str, most: int | None = None) -> str:
    """All of it in one line, cut to ``most`` characters."""
    line = " ".join(printable(text).split())
    return line if most is None or len(line) <= most else f"{line[: most - 1].rstrip()}…"
