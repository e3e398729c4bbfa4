"""Looks at the page cache for what an upstream benchmark left: ``python -m iogauge.case_files drop|after FOLDER``.

Started in the job, on each node, before a launch that reads (``drop``: asks the system to forget the files, and tells how much
of them was in memory before and is still) or after one that wrote and read in one go (``after``). One JSON object a look.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from iogauge.page_cache import cached_fraction, drop


def files_in(folder: Path) -> list[Path]:
    """All files of the case but its marker."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".iogauge-case")


def look(what: str, folder: Path) -> dict[str, float | None]:
    """Look to the part of all pages in memory on this host; ``None``: not known. Raises ``OSError``."""
    files = files_in(folder)
    if what == "after":
        return {"after": cached_fraction(files)}
    before = cached_fraction(files)
    drop(files)
    return {"before": before, "dropped": cached_fraction(files)}


def main() -> int:
    """Exit code 2 for other arguments than those named above."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("drop", "after"):
        print("iogauge.case_files: error: usage: drop|after FOLDER", file=sys.stderr)
        return 2
    for name, fraction in look(sys.argv[1], Path(sys.argv[2])).items():
        sys.stdout.write(json.dumps({"look": name, "fraction": fraction}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
