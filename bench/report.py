"""How fast and how large the report is: 500 series with a year of nights, each with a run that Darshan has looked at.

.venv/bin/python bench/report.py [SERIES [NIGHTS]]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from assessed import keys, site
from samples import case, make_night

from iogauge.night import Case, Night
from iogauge.report.site import write_site
from iogauge.series import parts_of

SERIES = 500
NIGHTS = 365
FILE_SYSTEMS = ("scratch", "work")

#: As long as a diagnosis is.
SENTENCES = tuple(
    f"{number} of 4 ranks wrote in requests of less than 4 KiB that no collective call put together"
    for number in range(3)
)


def night_of(names: list[str]) -> Night:
    """One run that has measured all of these series, a case each."""
    usual = case("write", ratio=0.92)
    return make_night(*(_case(usual, name) for name in names))


def _case(usual: Case, key: str) -> Case:
    parts = parts_of(key)
    row = usual.judgement.rows[0].model_copy(update={"key": key, "operation": parts.operation, "label": parts.label})
    judgement = usual.judgement.model_copy(update={"rows": (row,), "changes": SENTENCES})
    where = {"file_system": parts.file_system, "nodes": parts.nodes, "ranks_per_node": parts.ranks_per_node}
    return usual.model_copy(update={"judgement": judgement, **where})


def main() -> None:
    """Print time and size."""
    series = int(sys.argv[1]) if len(sys.argv) > 1 else SERIES
    nights = int(sys.argv[2]) if len(sys.argv) > 2 else NIGHTS
    names = keys(FILE_SYSTEMS, series)
    slower = {name for name in names if "/write/scratch/" in name and name.endswith("/hdf5")}
    assessed = site({name: "shift" if name in slower else "steady" for name in names}, nights=nights)
    night = night_of(names)
    with tempfile.TemporaryDirectory() as folder:
        begin, busy = time.perf_counter(), time.process_time()
        report = write_site(assessed, [night], Path(folder) / "report").parent
        seconds, busy = time.perf_counter() - begin, time.process_time() - busy
        files = [path.stat().st_size for path in report.rglob("*") if path.is_file()]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{series} series, {nights} nights: {seconds:.1f} s ({busy:.1f} s of CPU), {peak:.0f} MiB of memory at most")
    print(f"{sum(files) / 1e6:.1f} MB in {len(files)} files, the largest {max(files) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
