"""Folders that jobs made on file systems under test and could not remove themselves, because they were killed.

Every job writes the folder's name to ``case_folder.txt`` in its stage folder before it makes it, and the same name into
the folder's marker file. Only a folder with both is removed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

NAME_FILE = "case_folder.txt"
MARKER = ".iogauge-case"


def remove_left_over(run_folder: Path) -> list[str]:
    """Remove the case folders named below ``run_folder`` that still exist; returns their names."""
    removed = []
    for name_file in sorted(run_folder.rglob(NAME_FILE)):
        lines = name_file.read_text(encoding="utf-8").splitlines()
        if len(lines) != 1 or not Path(lines[0]).is_absolute():
            continue
        folder = Path(lines[0])
        if not folder.name.startswith("iogauge-case.") or not folder.is_dir() or folder.is_symlink():
            continue
        entries = [entry.name for entry in folder.iterdir()]
        marker = folder / MARKER
        if entries and (not marker.is_file() or marker.read_text(encoding="utf-8").splitlines() != lines):
            continue
        shutil.rmtree(folder)
        removed.append(str(folder))
    return removed
