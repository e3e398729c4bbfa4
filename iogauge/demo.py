"""The demonstration, which is also a test: a row of real nights on a storage in memory, which is slowed in their midst.

A night is what it is everywhere (:func:`iogauge.nightly.run_night`): ReFrame runs the kernels under MPI, the history takes the
night in, the detector judges it. Only two things are made: the nights are seconds apart and stand for days, and memory is as
slow as a preloaded library makes it, which nothing of a night knows of (``scripts/lib/demo/slow_storage.c``). docs/demo.md.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from statistics import median

import click
from filelock import FileLock, Timeout
from rich.console import Console
from rich.text import Text

from iogauge import nightly, status, verdict
from iogauge.command import EVENING_HOUR, answers, new_console
from iogauge.errors import InputError
from iogauge.history import HISTORY_VARIABLE
from iogauge.history.database import History
from iogauge.night import NIGHTS_FOR_A_REFERENCE, Night
from iogauge.report.command import default_folder, report_site
from iogauge.tonight import load, recent_rates

SITE = "demo"
FILE_SYSTEM = "memory"

#: Written and read: a file of each rank, with data and metadata together and in two. Files that the ranks share are opened
#: by all of them in many steps, which takes as long as the transfer where others use the machine.
CASES = r"SegmentsCheck.*=(file-per-process|driver-split)$"

#: MiB/s of each rank while the storage is well. A call then takes 0.4 s, many times longer than the scheduler of a busy
#: machine holds its rank up: 20 ms in the median where ten others wanted the two cores.
PACE_MIB_S = 10

#: The part of the rate that is gone when it is slowed.
SLOWDOWN = 0.2

#: Nights within which that has to wake somebody; has to be told of the whole file system, one series being found after
#: the other where others use the machine; and within which its end has to be told.
NIGHTS_TO_FIND = 3
NIGHTS_TO_NAME = 5
NIGHTS_TO_END = 5

WHOLE = f"the whole file system {FILE_SYSTEM}"

#: Nights that have to stay silent. More take longer and show no more; the test has 16.
SILENT_NIGHTS = 4

#: So large a part of the silent nights may have a transient.
TRANSIENT_SHARE = 0.1

MEMORY = Path("/dev/shm")
BAR_WIDTH = 40


@dataclass(frozen=True)
class Played:
    """A night that was measured. ``level`` is its rate to the best night's so far, the median of all series."""

    number: int
    date: date
    night: Night
    folder: Path
    level: float
    seconds: float

    @property
    def words(self) -> Counter[str]:
        """Series by verdict, worst first."""
        return Counter({word: count for word, count in self.night.counts.items() if count})

    @property
    def file_systems(self) -> tuple[str, ...]:
        """What of which file system is slower."""
        return tuple(verdict.of_file_systems(self.night.assessment)) if self.night.assessment else ()

    @property
    def alarm(self) -> bool:
        """Would somebody have been woken?"""
        return self.night.exit_code == 1

    @property
    def whole(self) -> bool:
        """Is the whole file system said to be slower?"""
        return any(words.startswith(WHOLE) for words in self.file_systems)


@dataclass(frozen=True)
class Act:
    """Nights on which the storage is the same. It ends before its last one when ``done`` says so of a night; ``wrong`` says
    what was not as promised, and nothing where all was."""

    title: str
    nights: int
    slowdown: float = 0.0
    done: Callable[[Played], bool] = lambda played: False
    wrong: Callable[[Sequence[Played]], str] = lambda nights: ""


def acts(silent_nights: int = SILENT_NIGHTS) -> tuple[Act, ...]:
    """The whole row."""
    slower = verdict.percent(SLOWDOWN)
    return (
        Act(
            f"The first {NIGHTS_FOR_A_REFERENCE} nights: what is usual here?",
            NIGHTS_FOR_A_REFERENCE,
            wrong=_any_alarm,
        ),
        Act("From now on each night is compared with the nights before: all is well", silent_nights, wrong=_not_silent),
        Act(f"The storage is {slower} slower for one night, and nobody is told", 1, SLOWDOWN, wrong=_no_transient),
        Act("It is well again: one bad night is nothing to wake somebody for", 2, wrong=_any_alarm),
        Act(
            f"The storage is {slower} slower, and stays so",
            NIGHTS_TO_NAME,
            SLOWDOWN,
            done=lambda played: played.whole,
            wrong=_not_found,
        ),
        Act("It was repaired", NIGHTS_TO_END, done=lambda played: not played.alarm, wrong=_not_ended),
    )


def _any_alarm(nights: Sequence[Played]) -> str:
    woken = [str(played.date) for played in nights if played.night.exit_code]
    return f"exit code other than 0 on {', '.join(woken)}" if woken else ""


def _not_silent(nights: Sequence[Played]) -> str:
    bad = [str(played.date) for played in nights if played.words["transient"]]
    many = f"transients on {', '.join(bad)}" if len(bad) > max(1, TRANSIENT_SHARE * len(nights)) else ""
    return "; ".join(filter(None, (_any_alarm(nights), many)))


def _no_transient(nights: Sequence[Played]) -> str:
    missing = [str(played.date) for played in nights if not played.words["transient"]]
    told = f"no transient on {', '.join(missing)}" if missing else ""
    return "; ".join(filter(None, (_any_alarm(nights), told)))


def _not_found(nights: Sequence[Played]) -> str:
    if not any(played.alarm for played in nights[:NIGHTS_TO_FIND]):
        return f"the slowdown was not told within {NIGHTS_TO_FIND} nights"
    if not nights[-1].whole:
        return f"that it is the whole file system was not told within {len(nights)} nights"
    return ""


def _not_ended(nights: Sequence[Played]) -> str:
    return "" if nights[-1].night.exit_code == 0 else f"its end was not told within {len(nights)} nights"


@dataclass(frozen=True)
class Stage:
    """Where it is played: ``home`` is the nights' own, ``memory`` the storage's folder, ``kernels`` and ``library`` what was
    built."""

    home: Path
    memory: Path
    kernels: Path
    library: Path

    def variables(self, slowdown: float) -> dict[str, str]:
        """What ``site_configs/demo.py`` reads."""
        return {
            "IOGAUGE_HOME": str(self.home),
            HISTORY_VARIABLE: str(self.home / "history.sqlite"),
            "IOGAUGE_DEMO_MEMORY": str(self.memory),
            "IOGAUGE_DEMO_KERNELS": str(self.kernels),
            "IOGAUGE_DEMO_LIBRARY": str(self.library),
            "IOGAUGE_DEMO_MIB_S": str(PACE_MIB_S),
            "IOGAUGE_DEMO_SLOWDOWN": str(slowdown),
        }


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@dataclass
class Row:
    """The nights played so far, the first of them for the night of ``first``; ``best`` are their best rates by series."""

    stage: Stage
    first: date
    played: list[Played] = field(default_factory=list)
    best: dict[str, float] = field(default_factory=dict)

    def play(self, act: Act) -> Iterator[Played]:
        """Measure the nights of ``act``. Raises :class:`InputError` when one could not be measured whole."""
        for _ in range(act.nights):
            played = self._night(act.slowdown)
            self.played.append(played)
            yield played
            if act.done(played):
                break

    def _night(self, slowdown: float) -> Played:
        when = self.first + timedelta(days=len(self.played))
        evening = datetime(when.year, when.month, when.day, EVENING_HOUR).astimezone()
        begin = time.monotonic()
        with _environment(self.stage.variables(slowdown)):
            night, folder = nightly.run_night(SITE, "full", options=("-n", CASES), as_of=evening)
        if night.cause.startswith("stopped by "):  # a signal, which the night took, to end itself in order
            raise KeyboardInterrupt
        if night.exit_code == 2 or night.counts["invalid"]:
            raise InputError(_why_not_measured(night), file=folder)
        rates = {series.key: series.observed for _, series in night.rows}
        self.best |= {key: max(rate, self.best.get(key, 0.0)) for key, rate in rates.items()}
        level = median(rate / self.best[key] for key, rate in rates.items())
        return Played(len(self.played) + 1, when, night, folder, level, time.monotonic() - begin)


def _why_not_measured(night: Night) -> str:
    invalid = [reason for case in night.cases for reason in case.judgement.reasons if not case.judgement.rows]
    return night.cause or night.build_failure or "; ".join(invalid) or "the night could not be measured"


def build(kernels: Path | None, library: Path) -> None:
    """Build the kernels there, where they are not what lies here yet, and what slows the storage.

    Raises :class:`InputError`.
    """
    root = nightly.checkout()
    if kernels is not None:
        options = ("-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", "-DCMAKE_C_COMPILER=mpicc")
        _make("cmake", "-S", root / "kernels", "-B", kernels, *options)
        _make("cmake", "--build", kernels, "--parallel", "2")
    source = root / "scripts" / "lib" / "demo" / "slow_storage.c"
    _make("cc", "-std=c11", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl")


def _make(*command: str | Path) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()][-3:]
        raise InputError(f"{' '.join(map(str, command[:3]))} failed: {' / '.join(last)}")


def _stop(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def memory_of(folder: Path) -> Path:
    """The storage of the demonstration in ``folder``: always the same, so that the next one finds what is left of this one."""
    return MEMORY / f"iogauge-demo-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]}"


@contextmanager
def _own_folders(folder: Path) -> Iterator[tuple[Path, Path]]:
    """A new home for the nights below ``folder``, and a storage in memory, which is gone afterwards; the home stays unless the
    demonstration was stopped. What one that was killed has left is taken away."""
    if not MEMORY.is_dir():
        raise InputError("is not there; the demonstration's storage lies in memory", file=MEMORY)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError("another demonstration is running here", file=folder) from None
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    home, memory = folder / "nights", memory_of(folder)
    with lock:
        try:
            for own in (home, memory):
                if own.exists():
                    shutil.rmtree(own)
                own.mkdir(mode=0o700)
            yield home, memory
        except KeyboardInterrupt:
            shutil.rmtree(home, ignore_errors=True)
            raise
        finally:
            shutil.rmtree(memory, ignore_errors=True)


def _line(played: Played) -> Text:
    """One night: its bar is the time line's next step."""
    style = "bold red" if played.alarm else "yellow" if played.words["transient"] else "green"
    words = ", ".join(f"{count} {word}" for word, count in played.words.items())
    line = Text(f"{played.number:3}  {played.date}  ")
    bar = "█" * round(BAR_WIDTH * played.level)
    line.append(bar, style).append(f" {played.level * 100:.0f} %".ljust(BAR_WIDTH + 8 - len(bar)))
    return line.append(f"exit code {played.night.exit_code}  ").append(words, style)


def show(console: Console, row: Row, parts: Sequence[Act]) -> list[str]:
    """Play all, a line a night; returns what was not as promised."""
    problems = []
    for act in parts:
        console.print(f"\n{act.title}", style="bold")
        nights: list[Played] = []
        for played in row.play(act):
            nights.append(played)
            console.print(_line(played), soft_wrap=True)
        if nights[-1].alarm:
            _print_status(console, row.stage, nights[-1])
        problem = act.wrong(nights)
        problems += [f"{act.title}: {problem}"] if problem else []
    return problems


def _print_status(console: Console, stage: Stage, played: Played) -> None:
    """What ``iogauge status`` says at eight in the morning."""
    with _environment(stage.variables(0)):
        tonight = load(SITE)
        rates = recent_rates(History(), SITE, tonight.tonight)
    morning = (played.night.started.astimezone() + timedelta(days=1)).replace(hour=8, minute=0)
    console.print("\n$ iogauge status", style="bold")
    status.print_lines(console, status.lines(tonight, rates, morning))


def _print_end(console: Console, row: Row, seconds: float, report: Path) -> None:
    home, nights = row.stage.home, len(row.played)
    command = f"IOGAUGE_HOME={home} {nightly.checkout() / '.venv/bin/iogauge'}"
    measured = sum(played.seconds for played in row.played)
    said = (
        f"\n{nights} nights in {measured:.0f} s, {measured / nights:.1f} s each; {seconds:.0f} s with all",
        f"report    {report}",
        f"the same  {command} status --site {SITE}",
        f"nights    {home / 'runs'}: the next demonstration takes their place; your own nights and history were not touched",
    )
    for line in said:
        console.print(line, soft_wrap=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--silent",
    "silent_nights",
    type=click.IntRange(1, 300),
    default=SILENT_NIGHTS,
    show_default=True,
    help="so many nights are well before the storage is slowed",
)
@click.option(
    "--kernels",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="they are built there already",
)
@answers
def main(silent_nights: int, kernels: Path | None) -> int:
    """Show in a row of real nights how a slowdown of the storage is found.

    \b
    Examples:
      scripts/demo
      scripts/demo --silent 30

    Exit codes: 0 all was seen as promised; 1 something was not, and is said; 2 it could not be played, or was stopped.
    """
    console = new_console()
    parts = acts(silent_nights)
    folder = nightly.home().resolve() / "demo"
    begin = time.monotonic()
    try:
        with _own_folders(folder) as (home, memory):
            library = folder / "slow_storage.so"
            console.print("building the kernels ..." if kernels is None else f"kernels of {kernels}")
            build(folder / "kernels" if kernels is None else None, library)
            console.print(f"ready after {time.monotonic() - begin:.0f} s", soft_wrap=True)
            stage = Stage(home, memory, kernels or folder / "kernels", library)
            row = Row(stage, date.today() - timedelta(days=sum(act.nights for act in parts)))
            problems = show(console, row, parts)
            with _environment(stage.variables(0)):
                report = report_site(SITE, default_folder())
    except KeyboardInterrupt:
        raise InputError("the demonstration was stopped; nothing of it is left but its kernels") from None
    _print_end(console, row, time.monotonic() - begin, report)
    for problem in problems:
        console.print(f"not as promised: {problem}", style="bold red", soft_wrap=True)
    return 1 if problems else 0


if __name__ == "__main__":
    main(prog_name="scripts/demo")
