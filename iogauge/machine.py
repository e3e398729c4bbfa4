"""The machine that a night ran on: processor, memory, mounts, and how busy others kept it meanwhile."""

from __future__ import annotations

import os
import platform
import shutil
import socket
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

from iogauge.commands import Unreadable, run_briefly


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Mount(_Fact):
    """What lies below a file system under test. Sizes in bytes."""

    file_system: str
    path: str
    type: str
    source: str
    mount_point: str
    options: str
    size_bytes: int
    free_bytes: int


class Load(_Fact):
    """Load average (1 minute) at both ends of a run, and the fraction of processor time that the hypervisor took away."""

    before: float
    after: float
    steal_fraction: float


class Machine(_Fact):
    """Facts of the login or compute node where the night was started."""

    host: str
    system: str
    kernel: str
    processor: str
    cores: int
    logical_processors: int
    memory_bytes: int
    mounts: tuple[Mount, ...]
    load: Load


class LoadMeter:
    """Measures :class:`Load` from its making to :meth:`read`."""

    def __init__(self) -> None:
        self._before = os.getloadavg()[0]
        self._ticks = psutil.cpu_times()

    def read(self) -> Load:
        """The load since the meter was made."""
        now = psutil.cpu_times()
        total = sum(now) - sum(self._ticks)
        stolen = getattr(now, "steal", 0.0) - getattr(self._ticks, "steal", 0.0)
        return Load(
            before=self._before,
            after=os.getloadavg()[0],
            steal_fraction=max(0.0, stolen / total) if total > 0 else 0.0,
        )


def mount_of(file_system: str, path: Path) -> Mount:
    """The mount that ``path`` lies on. Raises ``OSError`` when there is no such path."""
    resolved = path.resolve(strict=True)
    device = resolved.stat().st_dev
    best: tuple[str, str, str, str] | None = None
    # proc(5): ID parent major:minor root mount-point options [optional...] - type source super-options
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, source, super_options) = left.split(), right.split(maxsplit=2)
        point = _unescape(fields[4])
        major, minor = map(int, fields[2].split(":"))
        on_it = resolved == Path(point) or Path(point) in resolved.parents
        deepest = best is None or len(point) >= len(best[2])
        if on_it and deepest and (os.makedev(major, minor) == device or best is None):
            best = (kind, _unescape(source), point, f"{fields[5]},{super_options}")
    kind, source, point, options = best or ("unknown", "unknown", "/", "")
    usage = shutil.disk_usage(resolved)
    return Mount(
        file_system=file_system,
        path=str(path),
        type=kind,
        source=source,
        mount_point=point,
        options=",".join(dict.fromkeys(options.split(","))),
        size_bytes=usage.total,
        free_bytes=usage.free,
    )


def _unescape(text: str) -> str:
    return text.encode().decode("unicode_escape") if "\\" in text else text


def answers(path: Path) -> bool:
    """Is it there, and does its file system answer? One that hangs would hold whoever asks it for ever."""
    try:
        return run_briefly(["stat", "--file-system", "--", str(path)])[0] == 0
    except Unreadable:
        return False


def look(paths: dict[str, Path], load: Load) -> Machine:
    """The facts of this machine; of ``paths``, by file system, those that can be seen from here and answer."""
    return Machine(
        host=socket.gethostname(),
        system=_system(),
        kernel=platform.release(),
        processor=_processor(),
        cores=psutil.cpu_count(logical=False) or 0,
        logical_processors=psutil.cpu_count() or 0,
        memory_bytes=psutil.virtual_memory().total,
        mounts=tuple(mount_of(name, path) for name, path in paths.items() if answers(path)),
        load=load,
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.lower().startswith(("model name", "cpu model")):
            return line.partition(":")[2].strip()
    return platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()
