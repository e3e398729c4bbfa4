"""How long ``iogauge import`` takes for a past of many outputs: import_many.py FOLDER [COUNT]."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

SAMPLE = Path(__file__).resolve().parents[1] / "tests" / "upstream" / "ior" / "ior-3.3.0-mpiio.txt"


def main(folder: Path, count: int) -> None:
    """Write so many outputs of IOR, one every hour, and import them twice."""
    whole = SAMPLE.read_text(encoding="utf-8")
    past = folder / "past"
    past.mkdir(parents=True)
    for number in range(count):
        when = datetime(2020, 1, 1) + timedelta(hours=number)
        text = whole.replace("Sat Nov 21", f"{when:%a %b %d}").replace(" 2026\n", f" {when:%Y}\n")
        path = past / f"{number // 1000}" / f"{number}.out"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("TestID", f"TestID{number}"), encoding="utf-8")
    command = [Path(sys.executable).parent / "iogauge", "import", past, "--file-system", "memory"]
    for what in ("imported", "again"):
        begun = time.monotonic()
        subprocess.run(command, env={**os.environ, "IOGAUGE_HOME": str(folder)}, check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = time.monotonic() - begun
        cpu = used.ru_utime + used.ru_stime
        print(f"{count} outputs {what}: {seconds:.1f} s, {cpu:.1f} s of CPU so far, {used.ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
