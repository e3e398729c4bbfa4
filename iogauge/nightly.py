"""The main job: run a suite with ReFrame, and make a judged night of what it reports, whatever ends it."""

from __future__ import annotations

import itertools
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from types import FrameType
from typing import Any, get_args

import psutil
from filelock import FileLock, Timeout

from iogauge import machine, scheduler
from iogauge.bands import load_portable_bands, load_site_bands
from iogauge.case_folders import NAME_FILE, LeftOver, remove_left_over, unsettled
from iogauge.combined import ASSESSMENT, read_night
from iogauge.darshan.changes import with_changes
from iogauge.detect import Calendar
from iogauge.errors import InputError
from iogauge.night import Night, read_run_report, write_whole
from iogauge.past import Past, look_back
from iogauge.sites import Partition, Site, Weekday, arms_of, read_environ, read_site

#: ReFrame has this long to stop its jobs after an interrupt (its own grace period for a job is 2 s), and so much more for
#: each job of Slurm's, which it cancels and waits for one after the other.
STOP_SECONDS = 30
STOP_SECONDS_A_JOB = 5

#: In a run's folder: what ReFrame has printed.
OUTPUT_FILE = "output.txt"

#: Every process of a night has the night's folder in this environment variable, by which stragglers are known.
NIGHT_VARIABLE = "IOGAUGE_NIGHT"

#: Nights that are looked through for "k of 14 nights".
NIGHTS_LOOKED_AT = 60

#: So many last nights may have left something on a file system that did not answer then, and does now.
NIGHTS_LEFT_OVER = 14

#: Below :func:`home`: the names of case folders that runs which were no nights have left, and for how long these are looked
#: for: a file system that was away may come back with them.
LEFT_OVER = "left-over"
DAYS_LEFT_OVER = 30

#: A night's runs begin within so many hours of each other, unless it is said of which night one is.
RECENT_HOURS = 18

_FINISHED = re.compile(r"\b(?:OK|FAIL|SKIP|XFAIL|XPASS)\b.*\(\s*(\d+)/(\d+)\)")


def checkout() -> Path:
    """The folder with reframe_checks and site_configs: this package's own, else the current one."""
    for folder in (Path(__file__).resolve().parents[1], Path.cwd()):
        if (folder / "reframe_checks").is_dir() and (folder / "site_configs").is_dir():
            return folder
    raise InputError("no folder reframe_checks here; start iogauge in a checkout of the project")


def home() -> Path:
    """Where nights are kept: ``IOGAUGE_HOME``, else ``.iogauge`` in the checkout."""
    return Path(os.environ.get("IOGAUGE_HOME") or checkout() / ".iogauge")


def _configuration_file(name: str) -> Path:
    return checkout() / "site_configs" / f"{name}.py"


def read_configuration(name: str) -> dict[str, Any]:
    """ReFrame's configuration in ``site_configs/<name>.py``. Raises :class:`InputError`."""
    path = _configuration_file(name)
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.py") if p.stem not in ("common", "template")))
        raise InputError(f"no site configuration for {name!r}; there are: {known}", file=path)
    sys.path.insert(0, str(path.parent))
    try:
        configuration: dict[str, Any] = runpy.run_path(str(path))["site_configuration"]
        _partitions(configuration)
    except Exception as error:
        where = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = where[-1] if where else getattr(error, "lineno", None)
        raise InputError(f"{type(error).__name__}: {error}", file=path, line=line) from error
    finally:
        sys.path.remove(str(path.parent))
    return configuration


def _partitions(configuration: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(p["name"], p.get("extras", {})) for s in configuration["systems"] for p in s["partitions"]]


def read_site_configuration(name: str) -> dict[str, Site]:
    """Partition to checked site model of ``site_configs/<name>.py``. Raises :class:`InputError`."""
    partitions = _partitions(read_configuration(name))
    path = _configuration_file(name)
    sites = {name: read_site(extras, file=path) for name, extras in partitions if extras}
    if not sites:
        raise InputError("no partition has extras with file_systems, nodes and ranks_per_node", file=path)
    return sites


def read_arms(site: str) -> dict[str, dict[str, tuple[str, str]]]:
    """File system to arms, as :func:`iogauge.sites.arms_of` gives them. Raises :class:`InputError`."""
    systems = read_configuration(site)["systems"]
    partitions = [
        Partition(p["name"], tuple(p["environs"]), tuple(p.get("extras", {}).get("file_systems", ())))
        for system in systems
        for p in system["partitions"]
    ]
    names = dict.fromkeys(name for partition in partitions for name in partition.file_systems)
    return {name: arms_of(name, partitions) for name in names}


def check_configuration(site: str) -> dict[str, Site]:
    """Everything that people write, checked before anything runs. Raises :class:`InputError`."""
    sites = read_site_configuration(site)
    try:
        read_arms(site)
    except InputError as problem:
        raise InputError(problem.message, file=_configuration_file(site), key=problem.key) from problem
    for environment in read_configuration(site)["environments"]:
        read_environ(environment["name"], environment.get("extras", {}), file=_configuration_file(site))
    checks_of(site)
    load_site_bands(checkout() / "reference_values", site)
    load_portable_bands(checkout() / "reference_values")
    return sites


def calendars(site: str) -> dict[str, Calendar]:
    """The maintenance days of each file system of a site that has any; those of all partitions count."""
    found: dict[str, Calendar] = {}
    for partition in read_site_configuration(site).values():
        for name, file_system in partition.file_systems.items():
            if file_system.maintenance is not None:
                known, told = found.get(name, Calendar()), file_system.maintenance
                found[name] = Calendar(
                    known.days_of_month | set(told.days_of_month),
                    known.weekdays | {get_args(Weekday).index(day) for day in told.weekdays},
                )
    return found


def known_calendars(site: str) -> dict[str, Calendar]:
    """The same where the site has a configuration here: a night of another machine has none."""
    try:
        return calendars(site)
    except InputError:
        return {}


@dataclass
class Progress:
    """What is told of a run: ``tell(done, of)`` after every case, and a ``note`` on what went wrong beside them."""

    tell: Callable[[int, int], None] = lambda done, of: None
    log: Callable[[str], None] = lambda line: None
    note: Callable[[str], None] = lambda sentence: None


@dataclass
class Stop:
    """What SIGINT, SIGTERM and SIGHUP set, instead of ending the program, in a ``with`` of it."""

    signal: int | None = None
    previous: dict[int, Any] = field(default_factory=dict)

    def __enter__(self) -> Stop:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *unused: object) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number


def run_night(
    site: str,
    suite: str,
    *,
    options: Sequence[str] = (),
    progress: Progress | None = None,
    as_of: datetime | None = None,
    first: Path | None = None,
) -> tuple[Night, Path]:
    """Run ``suite`` on ``site``; returns the night and its folder. ``as_of``: it is taken to have begun then. ``first``: the
    folder of an earlier run of the same night, which it is combined with.

    Raises :class:`InputError` when the configuration is wrong, the suite is empty, another night runs, or ReFrame did not
    get as far as a report. Interrupted by SIGINT or SIGTERM, it returns what was measured, marked incomplete.
    """
    sites = check_configuration(site)
    _check_schedulers(site)
    if as_of is not None and not 2000 <= as_of.year < 2100:
        raise InputError(f"{as_of:%Y-%m-%d}; a time of the years 2000 to 2099 is expected", key="--as-of")
    with _alone() as runs:
        folder = _run_locked(site, sites, suite, options, runs, progress or Progress(), as_of, first)
    return read_night(folder), folder


def _check_schedulers(site: str) -> None:
    """Raises :class:`InputError` where a scheduler that the site uses is not there: each case would wait for it in vain."""
    partitions = [p for system in read_configuration(site)["systems"] for p in system["partitions"]]
    if any(partition.get("scheduler") in scheduler.SLURM for partition in partitions):
        scheduler.check_slurm()


@contextmanager
def _alone() -> Iterator[Path]:
    """Gives the folder of nights to one at a time. Raises :class:`InputError`."""
    runs = home() / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    lock = FileLock(runs / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError("another night is running here; two at once would measure each other", file=runs) from None
    with lock:
        yield runs


def run_apart(
    site: str, suite: str, progress: Progress, options: Sequence[str] = (), *, check: str | None = None
) -> Path:
    """Run a suite that is no night: its folder, with ReFrame's report, is kept until the next one, and not in the history.

    ``check``: the file below ``reframe_checks`` where all of it is, if it is one; the others are then not read, which takes
    seconds. Raises :class:`InputError` when it did not get as far as a report.
    """
    folder = home() / suite
    _check_schedulers(site)
    with _alone(), Stop() as stop:
        _clear_left_over()
        if folder.exists():
            scheduler.cancel_jobs_of(folder)
            _remove(folder)
        folder.mkdir(parents=True)
        checks = [checkout() / "reframe_checks" / check] if check else checks_of(site)
        cause = _run_reframe(site, checks, suite, options, folder, progress, stop)
        for problem in _clear(folder).problems:
            progress.note(f"{problem}; whatever runs here next tries again")
    if cause or not (folder / "reframe.json").exists():
        raise InputError(cause or _why_no_report(folder, suite, options), file=folder / "reframe.log")
    return folder


def _clear(folder: Path) -> LeftOver:
    """End what still runs of a run, and remove what it left on file systems."""
    problems = []
    try:
        scheduler.cancel_jobs_of(folder)
    except InputError as problem:
        problems.append(str(problem))
    _end_stragglers(folder)
    removed, not_removed = remove_left_over(folder)
    return LeftOver(removed, problems + not_removed)


def _remove(folder: Path) -> None:
    """A run that is no night, with what it left; the names of case folders that are not known to be gone are kept."""
    _clear(folder)
    for file in unsettled(folder):
        kept = home() / LEFT_OVER / uuid.uuid4().hex
        kept.mkdir(parents=True)
        shutil.copyfile(file, kept / NAME_FILE)
    shutil.rmtree(folder)


def _clear_left_over() -> LeftOver:
    """What runs left that were no nights: the last of each kind, and those of which names were kept."""
    found = LeftOver([], [])
    kept = home() / LEFT_OVER
    for folder in (*(path.parent for path in home().glob(f"*/{OUTPUT_FILE}")), kept):
        left = remove_left_over(folder)
        found.removed.extend(left.removed)
        found.problems.extend(left.problems)
    left_there = unsettled(kept)
    for file in kept.glob(f"*/{NAME_FILE}"):
        if file not in left_there or time.time() - file.stat().st_mtime > DAYS_LEFT_OVER * 86400:
            shutil.rmtree(file.parent)
    return found


def _clear_earlier(runs: Path) -> LeftOver:
    """What earlier runs left. Raises :class:`InputError` when a job of a night still runs: this one would measure it too."""
    found = _clear_left_over()
    for folder in _folders(runs)[-NIGHTS_LEFT_OVER:]:
        finished = (folder / "night.json").exists()
        if not finished:
            scheduler.cancel_jobs_of(folder)
        left = remove_left_over(folder) if finished else _clear(folder)
        found.removed.extend(left.removed)
        found.problems.extend(left.problems)
    return found


def _new_folder(runs: Path, begun: datetime) -> tuple[datetime, Path]:
    """A folder named by the time, or by the first second after it of which there is none."""
    while (folder := runs / begun.strftime("%Y%m%dT%H%M%SZ")).exists():
        begun += timedelta(seconds=1)
    folder.mkdir()
    return begun, folder


def _run_locked(
    site: str,
    sites: dict[str, Site],
    suite: str,
    options: Sequence[str],
    runs: Path,
    progress: Progress,
    as_of: datetime | None,
    first: Path | None,
) -> Path:
    of_night = None if first is None else _earlier_run(first, site, suite).night_date
    removed, problems = _clear_earlier(runs)
    now = datetime.now(timezone.utc)
    started, folder = _new_folder(runs, now if as_of is None else as_of.astimezone(timezone.utc))
    given = (
        []
        if as_of is None
        else [
            f"--as-of: this night stands for one that began at {started:%Y-%m-%d %H:%M:%S} UTC; it "
            f"began at {now:%Y-%m-%d %H:%M:%S} UTC by the clock"
        ]
    )
    meter = machine.LoadMeter()
    with Stop() as stop:
        cause = _run_reframe(site, checks_of(site), suite, options, folder, progress, stop) or _not_loaded(folder)
        own = _clear(folder)
    report_path = folder / "reframe.json"
    if not report_path.exists() and stop.signal is None:
        raise InputError(_why_no_report(folder, suite, options), file=folder / "reframe.log")
    report = read_run_report(report_path) if report_path.exists() else None
    cases = report.cases if report else ()
    paths = {name: _expanded(fs.path) for s in sites.values() for name, fs in s.file_systems.items()}
    night = Night(
        site=site,
        suite=suite,
        started=started,
        finished=started + (datetime.now(timezone.utc) - now),
        as_of=started if as_of is not None else None,
        of_night=of_night,
        first_run="" if first is None else first.name,
        complete=not cause,
        cause=cause,
        build_failure=report.build_failure if report else "",
        selected=report.selected if report else 0,
        machine=machine.look({n: p for n, p in paths.items() if p is not None}, meter.read()),
        software=report.software if report else None,
        cases=cases,
        removed_folders=(*removed, *own.removed),
        notes=(*given, *_in_between(runs, first, folder), *_notes(folder), *dict.fromkeys([*problems, *own.problems])),
    )
    night.save(folder / "night.json")  # whatever becomes of the history
    past = look_back(folder)
    kept = _keep_assessment(past, folder)
    night = _with_past(night, past, runs)
    night.model_copy(update={"notes": (*night.notes, *kept)}).save(folder / "night.json")
    return folder


def _keep_assessment(past: Past, folder: Path) -> list[str]:
    """Beside the night's record, whole; what went wrong."""
    if past.assessment is None:
        return []
    try:
        write_whole(folder / ASSESSMENT, past.assessment.model_dump_json(by_alias=True, indent=1))
    except OSError as problem:
        return [f"what all nights make of this one could not be kept: {problem.strerror}"]
    return []


def _earlier_run(folder: Path, site: str, suite: str) -> Night:
    """The record of the first run. Raises :class:`InputError` when it is none of this site and suite."""
    night = Night.load(folder / "night.json")
    if (night.site, night.suite) != (site, suite):
        raise InputError(f"is a night of site {night.site}, suite {night.suite}, not of {site}, {suite}", file=folder)
    return night


def _in_between(runs: Path, first: Path | None, second: Path) -> list[str]:
    names = [folder.name for folder in _folders(runs) if first is not None and first.name < folder.name < second.name]
    return [f"between the two runs of this night others ran here: {', '.join(names)}"] if names else []


def recent_run(site: str, suite: str, before: datetime) -> Path | None:
    """The newest run of a suite that began in the ``RECENT_HOURS`` before a moment: what a run then is another one of."""
    for folder in reversed(_folders(home() / "runs")):
        with suppress(InputError):
            night = Night.load(folder / "night.json")
            age = (before - night.started).total_seconds() / 3600
            if (night.site, night.suite) == (site, suite) and 0 <= age < RECENT_HOURS:
                return folder
    return None


def wait(seconds: float, stop: Stop, tell: Callable[[float], None]) -> str:
    """Until the time is over, or a signal has come: its name. ``tell`` gets the seconds that are left."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and stop.signal is None:
        tell(left)
        time.sleep(min(left, 0.2))
    return "" if stop.signal is None else signal.Signals(stop.signal).name


def add_note(folder: Path, note: str) -> Night:
    """Say something of a night that has ended; returns it."""
    night = Night.load(folder / "night.json")
    night.model_copy(update={"notes": (*night.notes, note)}).save(folder / "night.json")
    return read_night(folder)


def _with_past(night: Night, past: Past, runs: Path) -> Night:
    """What the history says of the nights before; where it cannot be asked, their folders tell how many there were."""
    earlier = past.earlier_nights
    if earlier is None:
        counted = earlier_nights(runs)
        # This night is among them.
        earlier = {row.key: counted[row.key] - 1 for case in night.cases for row in case.judgement.rows}
    cases = tuple(with_changes(case, past.good) for case in night.cases)
    notes = (*night.notes, *past.notes)
    return night.model_copy(update={"earlier_nights": earlier, "notes": notes, "cases": cases})


def _folders(runs: Path) -> list[Path]:
    return sorted(folder for folder in runs.iterdir() if folder.is_dir())


def earlier_nights(runs: Path) -> Counter[str]:
    """On how many of the last nights each series was measured. Cases may share a baseline: it counts once a night."""
    found: set[tuple[date, str]] = set()
    for folder in _folders(runs)[-NIGHTS_LOOKED_AT:]:
        path = folder / "night.json"
        if path.exists():
            with suppress(InputError):
                night = Night.load(path)
                found |= {(night.night_date, row.key) for case in night.cases for row in case.judgement.rows}
    return Counter(key for _, key in found)


def _expanded(path: str) -> Path | None:
    text = os.path.expandvars(path)
    return None if "$" in text else Path(text)


def _run_reframe(
    site: str,
    checks: Sequence[Path],
    suite: str,
    options: Sequence[str],
    folder: Path,
    progress: Progress,
    stop: Stop,
) -> str:
    """Run it to its end; returns what stopped it early, or nothing."""
    root = checkout()
    command = [
        str(Path(sys.executable).parent / "reframe"),
        *("-C", str(root / "site_configs" / f"{site}.py"), "--system", site),
        *(word for path in checks for word in ("-c", str(path))),
        *("-r", "-t", f"^{re.escape(suite)}$", "--nocolor"),
        *("--prefix", str(folder / "reframe"), "--report-file", str(folder / "reframe.json")),
        *options,
    ]
    environment = {
        **os.environ,
        "RFM_PERFLOG_DIR": str(folder / "perflogs"),
        "PYTHONUNBUFFERED": "1",
        NIGHT_VARIABLE: str(folder),
    }
    log = folder / OUTPUT_FILE
    with log.open("w", encoding="utf-8") as out:
        # A session of its own: Ctrl-C reaches this program alone, which passes it on in order.
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        deadline = None
        with log.open(encoding="utf-8", errors="replace") as lines:
            while True:
                ended = process.poll() is not None
                for line in lines:
                    _tell(line, progress)
                if ended:
                    break
                if stop.signal is not None and deadline is None:
                    deadline = time.monotonic() + _seconds_to_stop(folder)
                    process.send_signal(signal.SIGINT)
                if deadline is not None and time.monotonic() > deadline:
                    os.killpg(process.pid, signal.SIGKILL)
                time.sleep(0.1)
    return "" if stop.signal is None else f"stopped by {signal.Signals(stop.signal).name}"


def checks_of(site: str) -> list[Path]:
    """The files of checks that nights of ``site`` look at, else the folder of all. Raises :class:`InputError`."""
    folder = checkout() / "reframe_checks"
    chosen = [one.checks for one in read_site_configuration(site).values()]
    files = [folder / name for name in dict.fromkeys(name for names in chosen for name in names)]
    if missing := [path for path in files if not path.is_file()]:
        raise InputError(f"checks: there is no {missing[0]}", file=_configuration_file(site), key="checks")
    return files if all(chosen) else [folder]


def _seconds_to_stop(folder: Path) -> float:
    jobs: list[str] = []
    with suppress(InputError):
        jobs = scheduler.jobs_left_of(folder)
    return STOP_SECONDS + STOP_SECONDS_A_JOB * len(jobs)


def _not_loaded(folder: Path) -> str:
    """ReFrame leaves a test file out that it cannot load, and goes on: such a night lacks cases without a word."""
    text = (folder / OUTPUT_FILE).read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"WARNING: skipping test file (.*)", text)
    return "not all tests could be loaded: " + "; ".join(found) if found else ""


def _notes(folder: Path) -> tuple[str, ...]:
    """What the checks said for people to know, each once (mixins.file_system)."""
    text = (folder / OUTPUT_FILE).read_text(encoding="utf-8", errors="replace")
    return tuple(dict.fromkeys(re.findall(r"^WARNING: iogauge: (.*)$", text, re.MULTILINE)))


def _tell(line: str, progress: Progress) -> None:
    progress.log(line.rstrip("\n"))
    match = _FINISHED.search(line)
    if match:
        progress.tell(int(match[1]), int(match[2]))


def _end_stragglers(folder: Path) -> None:
    """End what still runs of a night on this machine: ranks of a job whose script was killed, ReFrame without its parent."""
    mine = [process for process in psutil.process_iter() if _belongs_to(process, folder)]
    for process in mine:
        with suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(mine, timeout=3)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=3)


def _belongs_to(process: psutil.Process, folder: Path) -> bool:
    """Not by its working directory: somebody may be reading the logs there."""
    try:
        return process.pid != os.getpid() and process.environ().get(NIGHT_VARIABLE) == str(folder)
    except (psutil.Error, OSError):
        return False


def _why_no_report(folder: Path, suite: str, options: Sequence[str]) -> str:
    text = (folder / OUTPUT_FILE).read_text(encoding="utf-8", errors="replace")
    if re.search(r"Ran 0/0|Found 0 check|Running 0 check", text):
        skipped = re.findall(r"WARNING: (skipping test file .*)", text)
        names = [value for option, value in itertools.pairwise(options) if option == "-n"]
        what = f"suite {suite!r} selects no case" + (f" named like {' or '.join(map(repr, names))}" if names else "")
        return f"{what}: {skipped[0]}" if skipped else f"{what}; the suites are: nightly, full"
    lines = [line for line in text.splitlines() if line.strip()]
    return "ReFrame ended without a report: " + " / ".join(lines[-5:])
