"""The project's kernels: built once an environment, run in the case's own folder, believed only when their records hold."""

from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import fixture, run_before, sanity_function, variable

from iogauge import __version__, series
from iogauge.adapters.kernel import read_records
from iogauge.darshan.preload import LINKED
from iogauge.errors import InputError, Refusal
from iogauge.judge import Expectation, Judgement, invalid, judge
from iogauge.measurement import Measurement

from .axes import CHECKOUT, Axes, environ_of, without_alias
from .bands import Bands
from .darshan import Darshan, OnceMore, runtime_of
from .ended import Ended
from .file_system import CASE_FOLDER, OwnFolder
from .scheduling import OneAtATime
from .spack import FromSpack, Origin, SpackStacks, chosen_stacks, installed_arm

#: The feature of environs that are there to be compared (upgrade.py), not measured every night.
ARM = "arm"

#: What the build makes.
KERNELS = ("blocks", "metadata", "particles", "segments", "tiles")


@without_alias
class KernelBuild(FromSpack, rfm.CompileOnlyRegressionTest):
    """Builds all kernels with CMake and the environment's MPI compiler wrapper; where the environment chooses a Spack arm,
    takes them from its view, and fails in the installation's own words when there is none; where it names a folder, takes
    them from there."""

    descr = "I/O kernels"
    sourcesdir = str(CHECKOUT / "kernels")
    build_system = "CMake"

    if chosen_stacks():
        stacks = fixture(SpackStacks, scope="session")

    @run_before("compile")
    def choose(self):
        choice = self.choice_of(self.current_environ)
        if choice is not None:
            if not self.is_dry_run():
                self._take_from_stack(choice)
        elif (folder := environ_of(self.current_environ).kernels) is not None:
            self._take_from(folder)
        else:
            self._configure()

    def _take_from_stack(self, choice):
        said = self.stacks.failure(choice.stack)
        if said:
            raise Refusal(f"the Spack stack {choice.stack} could not be installed: {said}")
        self._take_from(installed_arm(choice).view / "bin")

    def _take_from(self, folder):
        self.sourcesdir = None
        self.build_system = "CustomBuild"
        # What a program is really loaded with is kept in the build's output. A static one has nothing to say.
        self.build_system.commands = [f'ldd "{folder}/{name}" || true' for name in KERNELS]

    def _configure(self):
        self.build_system.builddir = "build"
        self.build_system.config_opts = [
            "-DCMAKE_BUILD_TYPE=Release",
            "-DBUILD_TESTING=OFF",
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        ]
        self.build_system.max_concurrency = 4
        if runtime_of(self.current_environ, None) == LINKED:
            self.build_system.config_opts += ['-DIOGAUGE_DARSHAN="$(command -v darshan-config)"']

    @sanity_function
    def kernels_are_there(self):
        return sn.all(
            [
                *(sn.assert_true(self.path(name).is_file(), f"there is no {self.path(name)}") for name in KERNELS),
                sn.assert_not_found(r"=> not found", self.stdout, "a kernel misses a library: see the build's output"),
            ]
        )

    def path(self, kernel: str) -> Path:
        choice = self.choice_of(self.current_environ)
        if choice is not None:
            return self.view_of(choice) / "bin" / kernel
        return (environ_of(self.current_environ).kernels or Path(self.stagedir) / "build") / kernel


class RecordsCheck(Axes, OwnFolder, OneAtATime, Bands, Darshan, Origin, Ended, rfm.RunOnlyRegressionTest):
    """What writes our records: run in the case's own folder, and judged by them.

    A check gives ``kernel`` (also the word before ``: error:`` in what it says when it fails), ``pattern()`` (the record's
    names for its pattern) and ``bytes_written()``, as functions of its parameters and variables, valid from setup on, and
    sets the command, which writes ``records_file``.
    """

    kernel = ""
    interface = "hdf5"
    collective = False

    valid_prog_environs = [f"-{ARM}"]
    sourcesdir = str(CHECKOUT / "reframe_checks" / "src")
    time_limit = "3m"

    repeats = variable(int, value=7, loggable=True)
    warmup = variable(int, value=1)
    suite_version = variable(str, value=__version__, loggable=True)
    measurements = variable(typ.List[typ.Dict], value=[], loggable=True)

    records_file = "records.jsonl"

    def pattern_label(self) -> str:
        return series.label_of(self.kernel, self.pattern(), self.collective)

    def measured_program(self) -> Path | None:
        """What is measured, if Spack may have built it."""
        return None

    def read_measurements(self, stage: Path) -> list[Measurement]:
        return read_records(stage / self.records_file)

    def with_evidence(self, judgement: Judgement, stage: Path) -> Judgement:
        """What a check that runs more than the kernel knows besides. Raises :class:`Refusal` when that is not true."""
        return judgement

    @run_before("run")
    def keep_records(self):
        self.keep_files += [self.records_file]

    @sanity_function
    def is_true(self):
        """Judge the records; an invalid case fails here, before any rate is registered as performance."""
        stage = Path(self.stagedir)
        site = self.site
        try:
            problem = self.failure()
            if problem:
                raise Refusal(problem)
            measurements = self.with_origin(self.read_measurements(stage))
            self.measurements = [m.model_dump(mode="json", by_alias=True) for m in measurements]
            judgement = judge(
                measurements,
                Expectation(
                    file_system=self.file_system,
                    type=site.file_systems[self.file_system].type,
                    nodes=self.nodes,
                    ranks_per_node=self.ranks_per_node,
                    oversubscribe=site.oversubscribe,
                    volume=self.volume(),
                    layout=self.layout_found(),
                    arm=self.series_arm,
                ),
                self.site_bands(),
                self.portable_bands(),
            )
            judgement = self.with_evidence(judgement, stage)
            if self.profiled and judgement.verdict != "invalid":
                judgement = judgement.model_copy(update={"profile": self.profile_of_case()})
        except (Refusal, InputError) as refusal:
            judgement = invalid([str(refusal)])
        self.judgement = judgement.model_dump(mode="json", by_alias=True)
        self.verdict = judgement.verdict
        if judgement.rows:
            self.band_status = ", ".join(dict.fromkeys(row.band_status for row in judgement.main_rows))
        valid = judgement.verdict != "invalid"
        self.judged = judgement if valid else None
        return sn.assert_true(valid, f"invalid: {'; '.join(judgement.reasons)}")


class KernelCheck(OnceMore, RecordsCheck):
    """A kernel with one pattern: written and read in one job, its baselines beside it, repeat by repeat.

    A check gives, besides, ``pattern_options()`` (the kernel's options) and ``baselines()``.
    """

    build = fixture(KernelBuild, scope="environment")

    otherwise_built_by = "CMake"

    #: Without, a night takes a third of the time, and there are no ratios to MPI-IO and POSIX.
    with_baselines = variable(typ.Bool, value=True)

    #: The kernel can leave its last file, emptied, so that its layout can be read.
    leaves_a_file = True

    def measured_program(self) -> Path:
        return self.build.path(self.kernel)

    def baselines(self) -> list[str]:
        return ["interface=mpiio", "interface=posix"]

    def kernel_options(self, records_file: str) -> list[str]:
        keep = {"keep-empty": "yes"} if self.leaves_a_file and self.layout_can_be_read() else {}
        options = self.options_of(CASE_FOLDER, self.repeats, self.warmup, records_file, **keep)
        baselines = self.baselines() if self.with_baselines else []
        return [*options, *(f"--baseline {changes}" for changes in baselines)]

    def options_of(self, folder: str, repeats: int, warmup: int, records: str, **others: str) -> list[str]:
        """For the case alone, without its baselines."""
        options = {
            "interface": self.interface,
            "collective": "yes" if self.collective else "no",
            "repeats": repeats,
            "warmup": warmup,
            "json": records,
            **others,
            **self.pattern_options(),
        }
        return [f'--dir "{folder}"', *(f"--{name} {value}" for name, value in options.items())]

    @run_before("run")
    def set_command(self):
        self.executable = str(self.build.path(self.kernel))
        self.executable_opts = self.kernel_options(self.records_file)
