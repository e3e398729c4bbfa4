"""The job scripts of all sites, as ReFrame's dry run writes them: a representative set, kept beside this file to
compare with.

Each file system at its smallest and at its largest point with one kernel, another kernel once, and the build. What
differs from machine to machine is replaced by words in capitals. Slurm, PBS and modules are not needed: ``stand_ins``
answer for Lmod and srun when ReFrame asks for their versions; nothing else is run.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from iogauge.nightly import NIGHT_VARIABLE
from iogauge.series import parts_of
from iogauge.sites import Site

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]

#: Of site_configs: what no night can be run on.
NO_SITES = ("common", "template")

#: What site configurations take from the environment.
ENVIRONMENT = {
    "IOGAUGE_ACCOUNT": "PROJECT",
    "IOGAUGE_SCRATCH": "/SCRATCH",
    "LMOD_CMD": str(HERE / "stand_ins" / "lmod"),
    "MINICLUSTER_FOLDER": "/MINICLUSTER",
}

#: Set for root alone.
_FOR_ROOT = re.compile(r"^export OMPI_ALLOW_RUN_AS_ROOT.*\n", re.MULTILINE)
_PYTHON = re.compile(r"\S+/bin/python[\d.]*(?= )")
_HASH = re.compile(r"_[0-9a-f]{8}\b")


def site_names() -> list[str]:
    """All sites."""
    return sorted(p.stem for p in (CHECKOUT / "site_configs").glob("*.py") if p.stem not in NO_SITES)


def scripts_of_all(sites: list[str], work: Path) -> dict[str, dict[str, str]]:
    """Site to :func:`scripts_of` it."""
    environment = {**os.environ, **ENVIRONMENT, "PATH": f"{HERE / 'stand_ins'}:{os.environ['PATH']}"}
    environment.pop(NIGHT_VARIABLE, None)
    environment["IOGAUGE_DARSHAN"] = ""
    partitions = _partitions(sites, environment)
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda site: scripts_of(site, partitions[site], work / site, environment), sites)
        return dict(zip(sites, found, strict=True))


def scripts_of(site: str, partitions: list[Site], work: Path, environment: dict[str, str]) -> dict[str, str]:
    """File name to job script, from a dry run in the new folder ``work``."""
    work.mkdir()
    command = [Path(sys.executable).parent / "reframe", "-C", CHECKOUT / "site_configs" / f"{site}.py"]
    command += ["-c", CHECKOUT / "reframe_checks" / "particles.py", "-c", CHECKOUT / "reframe_checks" / "metadata.py"]
    command += ["--dry-run", "--prefix", work, "--report-file", work / "report.json", "--nocolor"]
    command += [word for name in _cases(partitions) for word in ("-n", name)]
    done = subprocess.run(
        [*map(str, command)], cwd=work, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads((work / "report.json").read_text(encoding="utf-8"))["runs"][0]["testcases"]
    return {_file_name(case): _same_everywhere(_script(case), work) for case in cases}


def differences(site: str, found: dict[str, str]) -> str:
    """What is otherwise in ``found`` than it is kept; empty: nothing."""
    folder = HERE / site
    kept = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.sh"))}
    lines: list[str] = []
    for name in sorted({*kept, *found}):
        names = (
            f"kept/{site}/{name}" if name in kept else "/dev/null",
            f"now/{site}/{name}" if name in found else "/dev/null",
        )
        before, after = (text.get(name, "").splitlines(keepends=True) for text in (kept, found))
        lines += difflib.unified_diff(before, after, *names)
    return "".join(lines)


def accept(site: str, found: dict[str, str]) -> None:
    """Keep ``found`` from now on."""
    folder = HERE / site
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.sh"):
        path.unlink()
    for name, text in found.items():
        (folder / name).write_text(text, encoding="utf-8")


def _partitions(sites: list[str], environment: dict[str, str]) -> dict[str, list[Site]]:
    """The sites' models, read in another process: a configuration may look at the environment."""
    code = (
        "import json, sys; from iogauge.nightly import read_site_configuration as read; "
        "print(json.dumps([[s.model_dump(mode='json') for s in read(site).values()] for site in sys.argv[1:]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *sites], env=environment, cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    read = [[Site.model_validate(found) for found in partitions] for partitions in json.loads(done.stdout)]
    return dict(zip(sites, read, strict=True))


def _cases(partitions: list[Site]) -> list[str]:
    """Regular expressions for ReFrame's ``-n``."""
    cases = []
    for site in partitions:
        for number, name in enumerate(site.file_systems):
            points = sorted(site.points_of(name))
            for point in {points[0], points[-1]}:
                cases.append(
                    _expression("ParticlesCheck", point, name, "locality=CC", "dimensions=1", "selection=full")
                )
            if number == 0:
                cases.append(_expression("MetadataCheck", points[0], name, "place=shared"))
    return cases


def _expression(check: str, point: tuple[int, int], file_system: str, *pattern: str) -> str:
    values = (f"nodes={point[0]}", f"ranks_per_node={point[1]}", f"file_system={re.escape(file_system)}", *pattern)
    return "^" + ".*".join((check, *(rf"%{value}\b(?!-)" for value in values))) + "$"


def _file_name(case: dict[str, str]) -> str:
    if case["fixture"]:
        return f"build.{case['partition']}.sh"
    parts = parts_of(case["band_key"])
    arm = f"@{parts.arm}" if parts.arm else ""
    return f"{parts.benchmark}.{parts.file_system}{arm}.{parts.nodes}x{parts.ranks_per_node}.sh"


def _script(case: dict[str, str]) -> str:
    """What is run: a build's script, a job's otherwise."""
    name = "rfm_build.sh" if case["fixture"] else "rfm_job.sh"
    return Path(case["stagedir"], name).read_text(encoding="utf-8")


def _same_everywhere(script: str, work: Path) -> str:
    """Without paths, hashes and settings of this machine."""
    script = _PYTHON.sub("PYTHON", script.replace(str(work), "WORK").replace(str(CHECKOUT), "CHECKOUT"))
    return _HASH.sub("_HASH", _FOR_ROOT.sub("", script))
