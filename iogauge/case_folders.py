"""Folders that jobs made on file systems under test and could not remove themselves, because they were killed.

Every job writes the folder's name to ``case_folder.txt`` in its stage folder before it makes it, and into the folder's marker
file; when the folder is gone it adds a line to the former. What is not known to be gone, and has both, is removed::

    python -m iogauge.case_folders FOLDER

removes one, if it is there and ours.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from iogauge.commands import Unreadable, run_briefly

NAME_FILE = "case_folder.txt"
MARKER = ".iogauge-case"

#: What is in :data:`NAME_FILE` below the name, once the folder is gone.
REMOVED = "removed"

#: A file system that does not remove a folder in this time hangs, or goes on with the next night.
REMOVAL_SECONDS = 60


class LeftOver(NamedTuple):
    """Folders that were ``removed``, and sentences on those that could not be."""

    removed: list[str]
    problems: list[str]


def remove_left_over(run_folder: Path, seconds: float = REMOVAL_SECONDS) -> LeftOver:
    """Remove the case folders named below ``run_folder`` that still exist. A file system may take ``seconds`` for each."""
    found = LeftOver([], [])
    hanging: set[Path] = set()
    for name_file, folder in unsettled(run_folder).items():
        if folder.parent in hanging:
            continue
        try:
            code, out, err = run_briefly([sys.executable, "-I", "-m", "iogauge.case_folders", str(folder)], seconds)
        except Unreadable as problem:
            hanging.add(folder.parent)
            found.problems.append(f"{folder} could not be removed: {problem}")
            continue
        if code != 0:
            found.problems.append(f"{folder} could not be removed: {' '.join(err.split()[-20:])}")
        elif out:
            found.removed.append(str(folder))
            with name_file.open("a", encoding="utf-8") as file:
                file.write(f"{REMOVED}\n")
    return found


def unsettled(run_folder: Path) -> dict[Path, Path]:
    """The files below ``run_folder`` that name a case folder which is not known to be gone, with it."""
    found = {}
    for name_file in sorted(run_folder.rglob(NAME_FILE)):
        lines = name_file.read_text(encoding="utf-8").splitlines()
        if len(lines) == 1 and Path(lines[0]).is_absolute():
            found[name_file] = Path(lines[0])
    return found


def _remove(folder: Path) -> bool:
    """Was it there, and ours? Raises :class:`OSError`."""
    try:
        entries = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not folder.name.startswith("iogauge-case.") or folder.is_symlink():
        return False
    marker = folder / MARKER
    if entries and (not marker.is_file() or marker.read_text(encoding="utf-8").splitlines()[:1] != [str(folder)]):
        return False
    for entry in entries:
        if entry != marker:  # last, or what is left of an interrupted removal would be nobody's
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    shutil.rmtree(folder)
    return True


if __name__ == "__main__":
    try:
        if _remove(Path(sys.argv[1])):
            print(REMOVED)
    except OSError as problem:
        sys.exit(str(problem))
