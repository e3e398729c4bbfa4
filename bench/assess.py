"""How fast a site is assessed from its history: ten years of 500 series, and one more night. Prints what it measured.

    .venv/bin/python bench/assess.py FOLDER

FOLDER gets the SQLite database (about 1.6 GB).
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from history import NIGHTS, SERIES, fill, measured

from iogauge.assess.reading import assess
from iogauge.assess.tonight import assess_tonight
from iogauge.history.database import History

#: Of ten file systems.
NAMES = [
    f"particles/{operation}/fs{number}/{nodes}x16/{pattern}/{interface}"
    for number, nodes, operation, pattern, interface in itertools.product(
        range(10), (1, 2, 4, 8, 16), ("write", "read"), ("CC", "CI-collective"), ("hdf5", "mpiio", "posix")
    )
][:SERIES]
LAST = date(2016, 1, 1) + timedelta(days=NIGHTS)


def whole(history: History) -> dict[str, int]:
    """Every night of every series; how many series have each verdict."""
    return dict(Counter(one.word for one in assess(history, "here", night=LAST).assessment.series))


def tonight(history: History, night: date) -> dict[str, int]:
    """One night."""
    return dict(Counter(one.word for one in assess_tonight(history, "here", night).series))


def main() -> None:
    """Measure."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    decade = folder / "assess.sqlite"
    history = History(str(decade))
    if not decade.exists():
        measured("ten years made (not a promise)", lambda: fill(history, NAMES))
    print(f"{decade}: {SERIES} series, {SERIES * NIGHTS} measurements, {decade.stat().st_size >> 20} MiB")
    print(measured("ten years judged from the database", lambda: whole(history)))
    measured(
        "the night before the last, without states (all of it, once)", lambda: tonight(history, LAST - timedelta(1))
    )
    print(measured("one more night, from states", lambda: tonight(history, LAST)))
    measured("the same night again", lambda: tonight(history, LAST))


if __name__ == "__main__":
    main()
