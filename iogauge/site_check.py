"""What is there of what a site's configuration names: the first thing that a new site runs.

Without a job it looks at what can be seen from here; with ``submit`` a case of two ranks runs in each partition on each file
system, through the site's own scheduler and launcher.
"""

from __future__ import annotations

import ctypes.util
import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from iogauge import nightly, preflight, quota
from iogauge.bands import load_portable_bands, load_site_bands
from iogauge.commands import Unreadable
from iogauge.night import Case, read_run_report
from iogauge.preflight import NotSeenHere
from iogauge.quota import in_units
from iogauge.series import parts_of
from iogauge.sites import FileSystem, Site

Level = Literal["ok", "warning", "problem"]

#: The tag of the cases that ``submit`` runs (reframe_checks/site_check.py).
SUITE = "site-check"

#: What ReFrame's schedulers and launchers start; a launcher that is not here is a program of its own name.
_SCHEDULER_PROGRAMS = {
    "slurm": ("sbatch", "sacct", "squeue", "scancel"),
    "squeue": ("sbatch", "squeue", "scancel"),
    "pbs": ("qsub", "qstat", "qdel"),
    "torque": ("qsub", "qstat", "qdel"),
    "sge": ("qsub", "qstat", "qdel"),
    "oar": ("oarsub", "oarstat", "oardel"),
    "lsf": ("bsub", "bjobs", "bkill"),
    "flux": ("flux",),
}
_LAUNCHER_PROGRAMS = {"local": (), "alps": ("aprun",), "srunalloc": ("srun",), "mpirun-intelmpi": ("mpirun",)}


class Finding(BaseModel):
    """One line of the table. ``partition`` is empty for what concerns the site."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    partition: str
    subject: str
    level: Level
    found: str


def check(site: str, *, submit: bool, progress: nightly.Progress) -> list[Finding]:
    """Look at everything. Raises :class:`InputError` for a configuration that is wrong."""
    configuration = nightly.read_configuration(site)
    sites = nightly.check_configuration(site)
    findings = [_host(configuration), *_tools()]
    for partition in _partitions(configuration):
        name = partition["name"]
        if name in sites:
            findings += _programs(partition, configuration)
            findings += _file_systems(name, sites[name], jobs_run_here=partition["scheduler"] == "local")
    findings += _bands(site, sites)
    if submit:
        findings += _submitted(site, sites, progress)
    return findings


def exit_code(findings: list[Finding]) -> int:
    """0: nothing is wrong; 1: there is a problem."""
    return int(any(finding.level == "problem" for finding in findings))


def _partitions(configuration: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [partition for system in configuration["systems"] for partition in system["partitions"]]


def _host(configuration: Mapping[str, Any]) -> Finding:
    host = socket.gethostname()
    patterns = [pattern for system in configuration["systems"] for pattern in system["hostnames"]]
    if any(re.match(pattern, host) for pattern in patterns):
        return Finding(partition="", subject="this machine", level="ok", found=host)
    found = f"{host} is not one of the site's ({', '.join(patterns)}): ReFrame refuses to start here"
    return Finding(partition="", subject="this machine", level="problem", found=found)


# --- programs ---------------------------------------------------------------------------------------------------------


def _tools() -> Iterator[Finding]:
    library, parser = ctypes.util.find_library("darshan"), shutil.which("darshan-parser")
    missing = [name for name, there in (("libdarshan", library), ("darshan-parser", parser)) if not there]
    if missing:
        found = f"{' and '.join(missing)} not found here: cases run without a profile"
        yield Finding(partition="", subject="Darshan", level="warning", found=found)
    else:
        yield Finding(partition="", subject="Darshan", level="ok", found=f"{library}, {parser}")
    folder = nightly.checkout() / "spack_env"
    views = sorted(view for depth in ("*", "*/*") for view in folder.glob(f"{depth}/.spack-env/view"))
    found = ", ".join(map(str, views)) or "none: the site's own compilers and libraries are used"
    yield Finding(partition="", subject="Spack environment", level="ok", found=found)


def _programs(partition: Mapping[str, Any], configuration: Mapping[str, Any]) -> Iterator[Finding]:
    """Scheduler, launcher and MPI compilers. What modules bring along cannot be seen before they are loaded."""
    name, scheduler, launcher = partition["name"], partition["scheduler"], partition["launcher"]
    environments = [
        one
        for one in configuration["environments"]
        if one["name"] in partition["environs"] and _is_for(one, configuration, name)
    ]
    modules = [str(module) for one in (partition, *environments) for module in one.get("modules", ())]
    needed = _SCHEDULER_PROGRAMS.get(scheduler, ())
    yield _present(name, f"scheduler {scheduler}", needed, [])
    programs = _LAUNCHER_PROGRAMS.get(launcher, (launcher,))
    yield _present(name, f"launcher {launcher}", programs, [] if programs == ("srun",) else modules)
    for one in environments:
        yield _present(name, f"environment {one['name']}", (one.get("cc", "cc"),), modules)


def _is_for(environment: Mapping[str, Any], configuration: Mapping[str, Any], partition: str) -> bool:
    targets = environment.get("target_systems", ["*"])
    system = next(s["name"] for s in configuration["systems"] if partition in [p["name"] for p in s["partitions"]])
    return bool({"*", system, f"{system}:{partition}", f"*:{partition}"} & set(targets))


def _present(partition: str, subject: str, programs: tuple[str, ...], modules: list[str]) -> Finding:
    where = {program: shutil.which(program) for program in programs}
    missing = [program for program, path in where.items() if path is None]
    if not missing:
        found = ", ".join(path for path in where.values() if path) or "needs no program"
        return Finding(partition=partition, subject=subject, level="ok", found=found)
    if modules:
        found = (
            f"{', '.join(missing)}: not seen before the modules are loaded ({', '.join(modules)}); --submit tries them"
        )
        return Finding(partition=partition, subject=subject, level="ok", found=found)
    return Finding(partition=partition, subject=subject, level="problem", found=f"not in PATH: {', '.join(missing)}")


# --- file systems -----------------------------------------------------------------------------------------------------


def _file_systems(partition: str, site: Site, *, jobs_run_here: bool) -> Iterator[Finding]:
    for name, file_system in site.file_systems.items():
        level, found = _file_system(file_system, jobs_run_here)
        yield Finding(partition=partition, subject=f"file system {name}", level=level, found=found)
        if file_system.quota is not None:
            level, found = _quota(file_system.quota)
            yield Finding(partition=partition, subject=f"quota of {name}", level=level, found=found)
        elif file_system.type in preflight.HAS_QUOTA:
            found = "no command is configured: cases may fill it"
            yield Finding(partition=partition, subject=f"quota of {name}", level="warning", found=found)


def _file_system(file_system: FileSystem, jobs_run_here: bool) -> tuple[Level, str]:
    try:
        volume = preflight.look(file_system, jobs_run_here=jobs_run_here)
    except NotSeenHere as reason:
        if jobs_run_here:
            return "problem", str(reason)
        return ("ok" if reason.as_expected else "warning"), f"{reason}; --submit looks at it in a job"
    return "ok", (
        f"{volume.path}: {volume.type} from {volume.source} on {volume.mount_point}, "
        f"{in_units(volume.free)} of {in_units(volume.size)} free"
    )


def _quota(command: str) -> tuple[Level, str]:
    try:
        return "ok", quota.summary(quota.ask(command))
    except Unreadable as problem:
        return "problem", f"{command}: {problem}"


# --- bands ------------------------------------------------------------------------------------------------------------


def _bands(site: str, sites: Mapping[str, Site]) -> Iterator[Finding]:
    """How many series of the nightly suite have a band of the site's; ReFrame lists the suite."""
    folder = nightly.checkout() / "reference_values"
    bands = load_site_bands(folder, site)
    yield Finding(
        partition="", subject="portable bands", level="ok", found=f"{len(load_portable_bands(folder).bands)} ratios"
    )
    try:
        keys = series_of_suite(site, "nightly")
    except Unreadable as problem:
        yield Finding(partition="", subject="bands", level="problem", found=f"ReFrame cannot list the suite: {problem}")
        return
    for name in dict.fromkeys(name for one in sites.values() for name in one.file_systems):
        mine = [key for key in keys if parts_of(key).file_system == name]
        found = sum(bands.find(key) is not None for key in mine)
        text = f"{found} of the {len(mine)} series of the nightly suite have one"
        level: Level = "ok" if mine else "warning"
        yield Finding(partition="", subject=f"bands of {name}", level=level, found=text)


def series_of_suite(site: str, suite: str) -> set[str]:
    """The keys of all series of a suite. Raises :class:`Unreadable` with ReFrame's words."""
    root = nightly.checkout()
    command = [
        *(str(Path(sys.executable).parent / "reframe"), "-C", str(root / "site_configs" / f"{site}.py")),
        *("-c", str(root / "reframe_checks"), "-t", f"^{re.escape(suite)}$", "--nocolor", "--describe"),
    ]
    with tempfile.TemporaryDirectory() as folder:  # for ReFrame's log
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd=folder
        )
    try:
        cases = json.loads(done.stdout)
    except ValueError:
        words = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise Unreadable(" / ".join(words[-2:]) or shlex.join(command)) from None
    return {key for case in cases for key in case["series_keys"]}


# --- jobs -------------------------------------------------------------------------------------------------------------


def _submitted(site: str, sites: Mapping[str, Site], progress: nightly.Progress) -> Iterator[Finding]:
    """A case of two ranks on each file system of each partition."""
    folder = nightly.run_apart(site, SUITE, progress)
    report = read_run_report(folder / "reframe.json")
    if report.build_failure:
        yield Finding(partition="", subject="kernels", level="problem", found=report.build_failure)
    cases = {(case.partition, case.file_system): case for case in report.cases}
    for partition, one in sites.items():
        for name in one.file_systems:
            case = cases.get((partition, name))
            level, found = _job(case) if case else ("problem", "no job ran; output.txt says why: " + str(folder))
            yield Finding(partition=partition, subject=f"job on {name}", level=level, found=found)


def _job(case: Case) -> tuple[Level, str]:
    judgement = case.judgement
    if judgement.verdict in ("invalid", "skipped"):
        return "problem", "; ".join(judgement.reasons)
    stage = Path(case.stage)
    path = (stage / "case_folder.txt").read_text(encoding="utf-8").splitlines()[0]
    source, type_, mount_point = (stage / "file_system.txt").read_text(encoding="utf-8").split(maxsplit=2)
    parts = [judgement.placement, f"{Path(path).parent}: {type_} from {source} on {mount_point.strip()}"]
    parts += [f"layout {judgement.layout}"] if judgement.layout else []
    quota_file = stage / "quota.txt"
    if quota_file.exists():
        parts.append(f"quota {quota_file.read_text(encoding='utf-8').strip()}")
    return "ok", "; ".join(parts)
