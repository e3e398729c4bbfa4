"""Run a kernel under the counter, several times, and make its fingerprint of what is the same every time."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from iogauge import arms
from iogauge.adapters.kernel import read_records
from iogauge.commands import Unreadable, run_briefly
from iogauge.errors import InputError, Refusal
from iogauge.fingerprint.counted import COUNTER, Extents, files_of, plain_name, read_processes
from iogauge.fingerprint.layouts import PROGRAM, read_layout
from iogauge.fingerprint.model import Fingerprint, Layout, Unit
from iogauge.fingerprint.repeated import same_every_time
from iogauge.measurement import Measurement

#: What the kernel is told besides its pattern: one pass, whose files stay to be looked at. To remove them is part of what
#: the metadata kernel does.
_ONE_PASS = ("--repeats", "1", "--warmup", "0")
_FILES_STAY = ("--keep", "yes")
_REMOVES_ITS_FILES = "metadata"

#: Variables that choose how MPI-IO and HDF5 do what they are asked for.
CHOOSING = ("OMPI_MCA_io", "OMPI_MCA_fs", "MPICH_MPIIO_HINTS", "HDF5_USE_FILE_LOCKING")

#: A case that is this small has ended long before.
SECONDS = 600

#: What a launcher that is told to end may take for it.
END_SECONDS = 20


class Build(NamedTuple):
    """The folder of an arm's kernels, and how they are launched: ``{ranks}`` stands for the number of ranks.
    ``preload``: libraries that are loaded before the counter. ``arm``: whose modules and variables they need; ``None``: those
    that are there.
    """

    folder: Path
    launcher: str
    preload: tuple[str, ...] = ()
    arm: arms.Arm | None = None

    @classmethod
    def at(cls, folder: Path, launcher: str = "", preload: Sequence[str] = ()) -> Build:
        """Without a launcher it is the one of the MPI library that the kernels were built with. Raises :class:`InputError`."""
        if not folder.is_dir():
            raise InputError("no such folder; the kernels' build folder is expected", file=folder)
        if _beside(folder, COUNTER) is None:
            raise InputError(f"has no {COUNTER}: build the kernels of this version with CMake", file=folder)
        return cls(folder.resolve(), launcher or _launcher_of(folder), tuple(preload))

    @classmethod
    def of(cls, arm: arms.Arm, launcher: str = "", preload: Sequence[str] = ()) -> Build:
        """An arm's kernels, built where there are none. Raises :class:`Refusal` with the compiler's last words."""
        made = cls.at(arms.build(arm).folder, launcher or f"{arm.launcher} -n {{ranks}}", preload)
        return made._replace(arm=arm)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its programs."""
        return dict(os.environ) if self.arm is None else self.arm.environment()

    def command(self, *words: str) -> list[str]:
        """A command line with the arm's modules loaded."""
        return list(words) if self.arm is None else self.arm.command(*words)

    def program(self, kernel: str) -> Path:
        """Raises :class:`InputError` for one that cannot be counted."""
        path = _beside(self.folder, kernel)
        if path is None or not os.access(path, os.X_OK):
            raise InputError(f"there is no kernel {kernel!r}", file=self.folder)
        if _is_static(path):
            raise InputError("is linked statically, so that nothing can be preloaded; link it dynamically", file=path)
        if path.stat().st_mode & 0o6000:
            raise InputError("runs with other rights than its user's, so that nothing can be preloaded", file=path)
        return path


def _beside(folder: Path, name: str) -> Path | None:
    """In a build folder, or in the prefix of an installation."""
    return next((path for sub in ("", "bin", "lib") if (path := folder / sub / name).is_file()), None)


def _launcher_of(folder: Path) -> str:
    """Beside the compiler wrapper, with the same ending, as several MPI libraries on one machine have: mpirun.mpich."""
    cache = folder / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8", errors="replace") if cache.is_file() else ""
    for wrapper in re.findall(r"^(?:MPI_C_COMPILER|CMAKE_C_COMPILER):\w+=(.*)$", text, re.MULTILINE):
        path, _, ending = wrapper.rpartition("mpicc")
        found = shutil.which(f"{path}mpirun{ending}") if path else None
        if found:
            return f"{shlex.quote(found)} -np {{ranks}}"
    return "mpirun -np {ranks}"


def _is_static(program: Path) -> bool:
    if program.open("rb").read(4) != b"\x7fELF":
        return False
    try:
        _, out, err = run_briefly(["ldd", str(program)])
    except (Unreadable, OSError):
        return False  # the run will tell
    return bool(re.search("not a dynamic executable|statically linked", out + err))


def record(
    build: Build, kernel: str, pattern: str, options: Sequence[str], *, ranks: int, folders: Sequence[Path], runs: int
) -> Fingerprint:
    """Run it ``runs`` times in each of ``folders`` in turn; what is the same every time is the fingerprint.

    Raises :class:`InputError` for what cannot be run, and :class:`Refusal` for what was not counted whole.
    """
    program = build.program(kernel)
    found = []
    for number in range(runs):
        for folder in folders:
            found.append(_record_once(build, program, pattern, options, ranks=ranks, folder=folder, number=number))
    return same_every_time(found)


def _record_once(
    build: Build, program: Path, pattern: str, options: Sequence[str], *, ranks: int, folder: Path, number: int
) -> Fingerprint:
    """Names differ in length from run to run: what depends on them is not the same every time."""
    try:
        work = Path(tempfile.mkdtemp(prefix=f"iogauge-fingerprint-{'x' * number}", dir=folder)).resolve()
    except OSError as error:
        raise InputError(f"no folder can be made there: {error.strerror}", file=folder) from error
    try:
        case, counts = work / f"case{'y' * number}", work / "counts"
        case.mkdir()
        counts.mkdir()
        records = work / "records.jsonl"
        _run(build, _command(build, program, ranks, case, counts, records, options), counts)
        try:
            measurements = read_records(records)
        except Refusal as refusal:
            raise Refusal(f"{program.name}: {refusal}") from refusal
        processes = read_processes(counts, ranks)
        layouts, extents = _layouts(build, case)
        files = files_of(processes, case.name, extents)
        return Fingerprint(
            source="counter",
            kernel=program.name,
            pattern=pattern,
            options=tuple(options),
            ranks=ranks,
            hdf5=measurements[0].software.hdf5,
            mpi=measurements[0].software.mpi,
            environment={name: build.environment[name] for name in CHOOSING if name in build.environment},
            runs=1,
            units=_units(measurements, layouts),
            files=files,
            layouts=layouts,
        )
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _command(
    build: Build, program: Path, ranks: int, case: Path, counts: Path, records: Path, options: Sequence[str]
) -> list[str]:
    preload = [*build.preload, str(_beside(build.folder, COUNTER))]
    environment = {
        "LD_PRELOAD": ":".join(preload),
        "IOGAUGE_FINGERPRINT_CASE": str(case),
        "IOGAUGE_FINGERPRINT_TO": str(counts),
    }
    launcher = shlex.split(build.launcher.replace("{ranks}", str(ranks)))
    return build.command(
        *launcher,
        "env",
        *(f"{name}={value}" for name, value in environment.items()),
        str(program),
        *("--dir", str(case), "--json", str(records)),
        *_ONE_PASS,
        *(_FILES_STAY if program.name != _REMOVES_ITS_FILES else ()),
        *options,
    )


def _run(build: Build, command: Sequence[str], counts: Path) -> None:
    """Raises :class:`InputError` where the kernel, or its launcher, refuses; a rank that died is told by its counts."""
    code, errors = _ended(command, build.environment)
    said = [line.strip() for line in errors.splitlines() if line.strip(" -")]
    refused = next((line for line in said if "cannot be preloaded" in line), None)
    if refused is not None:
        raise Refusal(f"the counter could not be preloaded: {refused}")
    if code != 0:
        left = len(list(counts.glob("rank*.json")))
        own = next((line for line in said if re.match(r"\w+: error: ", line)), " / ".join(said[-3:]))
        raise Refusal(f"the kernel ended with exit code {code} ({left} ranks left their counts): {own}")


def _ended(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit code and errors. What ends this process ends the launcher first, which takes its ranks along."""
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise InputError(f"the launcher {command[0]} cannot be started: {error.strerror}", key="--launcher") from error
    try:
        _, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Refusal(f"the kernel did not end in {SECONDS} s") from error
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.communicate(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
    return process.returncode, errors


def _layouts(build: Build, case: Path) -> tuple[dict[str, Layout], dict[str, Extents]]:
    """Of the HDF5 files that the kernel left: by their plain names, and where their datasets lie by their own."""
    program = _beside(build.folder, PROGRAM)
    layouts: dict[str, Layout] = {}
    extents: dict[str, Extents] = {}
    for file in sorted(case.glob("*.h5")) if program is not None else ():
        assert program is not None
        layout, extents[file.name] = read_layout(program, file)
        layouts.setdefault(plain_name(file.name, case.name), layout)
    return layouts, extents


def _units(measurements: Sequence[Measurement], layouts: Mapping[str, Layout]) -> dict[Unit, int]:
    """By what numbers can be told."""
    steps = measurements[0].pattern.get("steps")
    datasets = sum(len(layout.datasets) for layout in layouts.values())
    found: dict[Unit, int] = {"step": steps} if isinstance(steps, int) else {}
    return {**found, "dataset": datasets} if datasets else found
