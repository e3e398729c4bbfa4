"""Upstream benchmarks: found, launched with a time limit, and believed only as far as their adapter proves it."""

import hashlib
import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from reframe.core.backends import getlauncher
from reframe.core.builtins import fixture, run_after, run_before, variable
from reframe.core.logging import getlogger
from reframe.core.runtime import runtime

from iogauge.adapters.upstream import KEPT, Job, Launch, load_launch
from iogauge.darshan.preload import files_in_case_folder
from iogauge.errors import InputError

from .axes import environ_of
from .file_system import CASE_FOLDER
from .kernel import KernelBuild, RecordsCheck


@dataclass
class Launching:
    """One launch. ``words`` are the program and its arguments, ``name`` what it is called when it is refused, ``results`` the
    files it writes for us. ``environment`` is set for it alone, and ``unset`` is not; ``drop``: its files leave the page
    cache before it; ``look``: how much of them is in there is looked at after it; ``before``: shell commands in the case's
    folder; ``profiled``: under Darshan."""

    name: str
    words: list[str]
    results: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    unset: list[str] = field(default_factory=list)
    drop: bool = False
    look: bool = False
    before: list[str] = field(default_factory=list)
    profiled: bool = False


class UpstreamCheck(RecordsCheck):
    """A benchmark that others wrote.

    A check gives ``kernel`` (its name in series), ``executables()``, ``launches()`` (all measured launches of the job, in
    their order), ``measured(job, launches)`` (by its adapter), ``pattern()`` and ``bytes_written()``; and for Darshan
    ``data_file_names()`` (a regular expression) and, unless it is the last launch alone, ``last_round()`` with
    ``measured_round(job, launches)``: these launches are done once more, as a pair to what they were without. A value ``own``
    of its parameter stands for what a site has already, run when the variable ``own`` names it, and nothing else then:
    ``is_own``, ``check_own(ranks)``.

    The programs are looked for in the variable ``program`` (a folder, or one of the programs), in the environment's extras
    (``programs: {NAME: PATH}``), in the view of its Spack arm and in PATH. Where they are nowhere, one case is listed, and
    skipped.

    A kernel of ours runs first, with the same launcher options: its record proves where the ranks are.
    """

    build = fixture(KernelBuild, scope="environment")
    voice = "segments"

    program = variable(str, value="")
    own = variable(str, value="")
    launch_seconds = variable(int, value=300)
    repeats = 3

    placement_file = "placement.jsonl"
    package = ""

    is_own = False

    def executables(self) -> list[str]:
        return [self.kernel]

    def find(self, name: str, environs) -> str | None:
        """Where the program is: an absolute path."""
        named = [self.program, *(environ_of(e).programs.get(self.kernel, "") for e in environs)]
        for place in filter(None, named):
            path = Path(place).expanduser()
            candidate = path / name if path.is_dir() else path if path.name == name else path.parent / name
            found = shutil.which(candidate if len(candidate.parts) > 1 else name)
            if found:
                return str(Path(found).absolute())
        if any(named):
            return None
        in_views = (arm.program(name) for arm in map(self.arm_of, environs) if arm)
        return next((str(path) for path in in_views if path), None) or shutil.which(name)

    @run_after("init")
    def list_once_without_programs(self):
        """Also: what a site has of its own, alone, when it is named."""
        environs = [environ for partition in runtime().system.partitions for environ in partition.environs]
        if self.is_own != bool(self.own):
            self.valid_systems = []
        elif not self.valid_systems:
            return
        elif any(self.find(name, environs) is None for name in self.executables()):
            self.tags -= {"nightly"}
            if type(self).first_listed() != self.variant_num and not self.is_own:
                self.valid_systems = []
            if self.is_own:
                self._check_input()
        else:
            self._check_input()

    def _check_input(self):
        """A mistake in what a site has of its own ends ReFrame with exit code 2, as one in its configuration does; what only
        does not fit these ranks is left out, with a warning."""
        try:
            self.bytes_written()
        except InputError as error:
            if self.is_own and not any(map(self._fits_own, self.all_ranks())):
                print(f"iogauge: error: {error}", file=sys.stderr)
                sys.exit(2)
            getlogger().warning(f"iogauge: not run on {self.num_tasks} ranks: {error}")
            self.valid_systems = []

    def check_own(self, ranks: int):
        """Raises :class:`InputError` unless a site's own configuration is one for so many ranks."""

    def own_hash(self, text: str) -> str:
        """Tells a site's own configurations apart; empty for ours."""
        return hashlib.sha256(text.encode()).hexdigest()[:8] if self.is_own else ""

    def _fits_own(self, ranks):
        try:
            self.check_own(ranks)
        except InputError:
            return False
        return True

    @classmethod
    def all_ranks(cls) -> set[int]:
        """Of all variants."""
        points = (cls.get_variant_info(number)["params"] for number in range(cls.num_variants))
        return {point["nodes"] * point["ranks_per_node"] for point in points if cls.tried_on(point)}

    @classmethod
    def first_listed(cls) -> int:
        """The variant that is listed when the programs are missing."""
        return next(n for n in range(cls.num_variants) if cls.tried_on(cls.get_variant_info(n)["params"]))

    @run_after("setup")
    def skip_without_programs(self):
        missing = [name for name in self.executables() if self.find(name, [self.current_environ]) is None]
        self.skip_if(
            bool(missing),
            f"needs {', '.join(missing)} in PATH or the Spack arm ({self.package}), named in the environment's extras "
            f"(programs: {{{self.kernel}: PATH}}), or by -S {type(self).__name__}.program=PATH",
        )

    def measured_program(self) -> Path:
        return Path(self.path_of(self.executables()[0]))

    def path_of(self, name: str) -> str:
        return self.find(name, [self.current_environ]) or name

    @run_before("run")
    def launch_all(self):
        """Everything in the job's own order; the launcher is before each program, not before the test's command."""
        if self.is_dry_run() and any(self.find(name, [self.current_environ]) is None for name in self.executables()):
            return
        launcher = self.launcher_command()
        probe = [
            str(self.build.path("segments")),
            "--interface",
            "posix",
            "--file-per-process",
            "yes",
            "--block",
            "4096",
        ]
        probe += ["--transfer", "4096", "--repeats", "1", "--warmup", "0", "--json", self.placement_file]
        programs = [shlex.quote(self.path_of(name)) for name in self.executables()] if self.profiled else []
        self.prerun_cmds += [
            *self.darshan_guard(programs),
            ". ./upstream.sh",
            f'{launcher} {shlex.join(probe)} --dir "{CASE_FOLDER}" || {{ iogauge_ended $?; exit 2; }}',
        ]
        self.keep_files += [self.placement_file]
        for number, step in enumerate([*self.launches(), *self.profiled_launches()]):
            self.prerun_cmds += self._lines(number, step, launcher)
            results = [PurePosixPath(result).name for result in step.results]
            self.keep_files += [f"launch-{number}.{kind}" for kind in ("out", "err", "code", "files", *results)]
            if step.drop or step.look:
                self.keep_files += [f"launch-{number}.cached"]
        self.job.launcher = getlauncher("local")()
        self.executable = "true"

    def _lines(self, number: int, step: Launching, launcher: str) -> list[str]:
        settings = [word for name in step.unset for word in ("-u", name)]
        settings += self.darshan_settings(log_of(number)) if step.profiled else []
        settings += [shlex.quote(f"{name}={value}") for name, value in step.environment.items()]
        words = [*(["env", *settings] if settings else []), *map(quoted, step.words)]
        results = shlex.quote(":".join(step.results))
        return [
            *(f'(cd "{CASE_FOLDER}" && {command}) || exit 2' for command in step.before),
            *([self._look(number, "drop", launcher)] if step.drop else []),
            f"iogauge_launch {number} {self.launch_seconds} {results} {launcher} {' '.join(words)}",
            *([self._look(number, "after", launcher)] if step.look else []),
        ]

    def _look(self, number: int, what: str, launcher: str) -> str:
        # One process is enough for one node; on several the launcher reaches each.
        through = f"{launcher} " if self.nodes > 1 else ""
        return f'iogauge_look {number} {through}{shlex.quote(sys.executable)} -I -m iogauge.case_files {what} "{CASE_FOLDER}"'

    def read_measurements(self, stage: Path):
        steps = self.launches()
        return self.measured(Job.load(stage / self.placement_file), self._kept(stage, steps, range(len(steps))))

    def _kept(self, stage, steps, numbers):
        return [
            load_launch(stage, number, name=step.name, results=step.results)
            for number, step in zip(numbers, steps, strict=True)
        ]

    def measured(self, job: Job, launches: list[Launch]):
        raise NotImplementedError

    def last_round(self) -> dict[int, bool]:
        """The launches of the case itself, and those that they need, in the last round: number to whether it is measured."""
        return {len(self.launches()) - 1: True}

    def measured_round(self, job: Job, launches: list[Launch]):
        return self.measured(job, launches)

    def data_file_names(self) -> str:
        raise NotImplementedError

    def data_files(self):
        return files_in_case_folder(self.data_file_names())

    def profiled_launches(self) -> list[Launching]:
        """The last round once more; what only prepares it is not under Darshan."""
        if not self.profiled:
            return []
        steps = self.launches()
        return [
            replace(steps[number], name=f"{steps[number].name}, once more under Darshan", profiled=measured)
            for number, measured in self.last_round().items()
        ]

    def darshan_logs(self):
        first = len(self.launches())
        return [log_of(number) for number, step in enumerate(self.profiled_launches(), first) if step.profiled]

    def profiled_records(self, stage):
        job, first, steps = Job.load(stage / self.placement_file), len(self.launches()), self.profiled_launches()
        with_darshan = self._kept(stage, steps, range(first, first + len(steps)))
        without = self._kept(stage, [self.launches()[n] for n in self.last_round()], self.last_round())
        return [self.measured_round(job, launches) for launches in (with_darshan, without)]


def log_of(number: int) -> str:
    """Darshan's of a launch."""
    return f"launch-{number}.darshan"


def second_names(files: Iterable[str]) -> list[str]:
    """Commands that make files with a second name, under which what a program writes there is kept."""
    made = ((shlex.quote(name), shlex.quote(name + KEPT)) for name in files)
    return [f": > {first} && ln {first} {second}" for first, second in made]


IN_STAGE = "$IOGAUGE_STAGE/"


def quoted(word: str) -> str:
    """For the shell; what begins with ``$IOGAUGE_STAGE`` is put together there."""
    return f'"{word}"' if word.startswith(IN_STAGE) else shlex.quote(word)
