"""Before a case is submitted: the bytes that it will write against the space and the quota that are left.

What cannot fit is not submitted. Only what can be seen from where ReFrame runs is looked at; the rest is the job's guard's
(``reframe_checks/src/case_folder.sh``), which looks once more at all of it.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from iogauge import quota
from iogauge.commands import Unreadable, run_briefly
from iogauge.quota import Quota, in_units
from iogauge.sites import FileSystem

#: Of these a compute node has its own: what is mounted here says nothing of them.
PRIVATE = ("local", "memory")

#: Of these a quota is to be expected.
HAS_QUOTA = ("nfs", "lustre", "gpfs")

#: An answer is asked for again when it is older.
FRESH_SECONDS = 600


class NotSeenHere(Exception):
    """A file system that cannot be looked at from here; ``str()`` says why. ``as_expected``: by its nature."""

    def __init__(self, reason: str, *, as_expected: bool = False) -> None:
        super().__init__(reason)
        self.as_expected = as_expected


@dataclass(frozen=True)
class Volume:
    """A mounted file system as ``df`` sees it. Sizes in bytes."""

    path: str
    type: str
    source: str
    mount_point: str
    size: int
    free: int


def look(file_system: FileSystem, *, jobs_run_here: bool) -> Volume:
    """What lies below the file system's path. Raises :class:`NotSeenHere`."""
    if file_system.type in PRIVATE and not jobs_run_here:
        raise NotSeenHere(f"type {file_system.type}: each compute node has its own", as_expected=True)
    try:
        code, path, _ = run_briefly(f'set -u; printf %s "{file_system.path}"')
        if code != 0 or not path.startswith("/"):
            raise NotSeenHere(f"{file_system.path} can only be told in a job", as_expected=True)
        code, out, err = run_briefly(f"df -B1 --output=size,avail,fstype,source,target -- {shlex.quote(path)}")
    except Unreadable as problem:
        raise NotSeenHere(f"{file_system.path}: {problem}") from problem
    if code != 0:
        raise NotSeenHere(err.strip() or f"df {path} failed")
    size, free, type_, source, mount_point = out.splitlines()[-1].split(maxsplit=4)
    if file_system.mounted_as and type_ not in file_system.mounted_as:
        raise NotSeenHere(f"{path} is mounted as {type_}, not as {' or '.join(file_system.mounted_as)}")
    if not os.access(path, os.W_OK | os.X_OK):
        raise NotSeenHere(f"{path} is no folder that can be written")
    return Volume(path, type_, source, mount_point, int(size), int(free))


@dataclass(frozen=True)
class Left:
    """What is left of a file system: its free space, and its quotas. ``notes`` say what could not be looked at."""

    volume: Volume | None
    quotas: tuple[Quota, ...] = ()
    notes: tuple[str, ...] = ()


def what_is_left(name: str, file_system: FileSystem, *, jobs_run_here: bool) -> Left:
    """Asks ``df`` and the site's quota command."""
    try:
        volume = look(file_system, jobs_run_here=jobs_run_here)
    except NotSeenHere:
        return Left(None)
    if file_system.quota is None:
        missing = f"{name}: no quota command is configured, only the free space is looked at"
        return Left(volume, notes=(missing,) if file_system.type in HAS_QUOTA else ())
    try:
        return Left(volume, quota.ask(file_system.quota))
    except Unreadable as problem:
        return Left(volume, notes=(f"{name}: the quota is not known: {file_system.quota}: {problem}",))


def refusal(needed: int, terms: str, name: str, left: Left) -> str:
    """Why so many bytes do not fit, with the sums; empty: they do. ``terms`` say what the bytes are made of."""
    reasons = []
    if left.volume is not None and left.volume.free < needed:
        reasons.append(f"{in_units(left.volume.free)} are free in {name} ({left.volume.path})")
    reasons.append(quota.refusal(needed, left.quotas, name))
    reason = ", ".join(filter(None, reasons))
    return f"writes {in_units(needed)} ({terms}), {reason}" if reason else ""


@dataclass
class _Answer:
    left: Left
    at: float
    at_work: set[str] = field(default_factory=set)


@dataclass
class Preflight:
    """Remembers what was left for as long as a run lasts.

    Cases remove what they write, so what was left before the first one is left for each of them. It is asked again after
    :data:`FRESH_SECONDS`, but only while no case of this run is at work there, whose data would count as used.
    """

    tell: Callable[[str], None] = lambda note: None
    clock: Callable[[], float] = time.monotonic
    _answers: dict[tuple[object, ...], _Answer] = field(default_factory=dict)

    def begin(self, case: str, needed: int, terms: str, name: str, file_system: FileSystem, *, here: bool) -> str:
        """``case`` is about to be submitted: why it must not be, or nothing. ``here``: jobs run on this machine."""
        answer = self._answer(name, file_system, here)
        reason = refusal(needed, terms, name, answer.left)
        if not reason:
            answer.at_work.add(case)
        return reason

    def end(self, case: str) -> None:
        """The job of ``case`` has ended, and removed what it wrote."""
        for answer in self._answers.values():
            answer.at_work.discard(case)

    def _answer(self, name: str, file_system: FileSystem, here: bool) -> _Answer:
        key = (file_system.type, file_system.path, file_system.quota, file_system.mounted_as, here)
        known = self._answers.get(key)
        if known is not None and (known.at_work or self.clock() - known.at < FRESH_SECONDS):
            return known
        left = what_is_left(name, file_system, jobs_run_here=here)
        for note in left.notes:
            if known is None or note not in known.left.notes:
                self.tell(note)
        self._answers[key] = _Answer(left, self.clock())
        return self._answers[key]
