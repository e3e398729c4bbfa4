"""Two builds of HDF5 or MPI in one allocation: pairs of runs of each pattern until it is decided which is slower."""

import os
import random
import re
import shlex
import shutil
import sys
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.backends import getlauncher
from reframe.core.builtins import loggable, parameter, run_after, run_before, sanity_function, variable
from reframe.core.runtime import runtime

from iogauge import __version__
from iogauge.arms import BUILD_OPTIONS, build, resolve
from iogauge.arms import Arm as AnyArm
from iogauge.compare.launch import script, script_under_darshan
from iogauge.compare.plan import (
    AND,
    ARMS_VARIABLE,
    COMPARE,
    LEFT,
    LOGS_FOLDER,
    PLAN_FILE,
    POINT_VARIABLE,
    RUNS_FILE,
    Arm,
    Plan,
    point_of,
)
from iogauge.compare.result import of_folder
from iogauge.compare.suite import bytes_written, patterns
from iogauge.darshan.preload import DISABLE, LINKED
from iogauge.errors import Refusal
from iogauge.scheduler import mpi_type_for

from .mixins.axes import CHECKOUT, Axes, environ_of, site_test, sites
from .mixins.darshan import runtime_of
from .mixins.ended import Ended
from .mixins.file_system import CASE_FOLDER, OwnFolder
from .mixins.kernel import KernelBuild
from .mixins.scheduling import OneAtATime


def _environs_by_partition() -> dict[str, list[str]]:
    return {p.fullname: [e.name for e in p.environs] for p in runtime().system.partitions if p.fullname in sites()}


def _pairs() -> list[str]:
    """What the suite compares: the first environ of each partition with all its others; and the two arms, any that
    :mod:`iogauge.arms` knows, that ``iogauge compare`` asks for."""
    asked = [os.environ[ARMS_VARIABLE]] if ARMS_VARIABLE in os.environ else []
    suite = [AND.join((names[0], other)) for names in _environs_by_partition().values() for other in names[1:]]
    return list(dict.fromkeys([*suite, *asked])) or [AND]


@rfm.simple_test
class ArmBuild(KernelBuild):
    """The kernels of one arm, with the options that every arm has."""

    valid_systems = list(sites())
    valid_prog_environs = ["*"]
    tags = {COMPARE, "upgrade"}

    def _configure(self):
        super()._configure()
        self.build_system.config_opts = list(dict.fromkeys([*self.build_system.config_opts, *BUILD_OPTIONS]))


class Asked(rfm.RegressionTestPlugin):
    """What is asked of one comparison, and not of a site."""

    repeats = variable(int, value=3)
    alpha = variable(float, value=0.05)
    libver = variable(str, value="earliest")
    #: 0: drawn, and recorded.
    seed = variable(int, value=0)
    #: A part of the patterns' names; empty: all.
    only = variable(str, value="")
    #: The folder of an interrupted comparison, to go on with.
    resume = variable(str, value="")
    #: Off: no run under Darshan beside the pairs.
    darshan = variable(typ.Bool, value=True)

    suite_version = variable(str, value=__version__, loggable=True)
    comparison = variable(typ.Dict, value={}, loggable=True)


@site_test
class UpgradeCheck(Asked, Axes, OwnFolder, OneAtATime, Ended, rfm.RunOnlyRegressionTest):
    """The second arm against the first, on the same nodes and file system, file by file and rate by rate.

    Only a slower arm, or a file that the other cannot read, fails the test.
    """

    kernel = "upgrade"
    voice = "compare"
    called = "comparison"
    arms = parameter(_pairs(), type=str, loggable=True)
    sourcesdir = str(CHECKOUT / "reframe_checks" / "src")

    mebibytes = variable(int, value=8)
    margin = variable(float, value=0.05)
    time_limit_minutes = variable(float, value=15.0)

    @classmethod
    def tried_on(cls, params):
        at, file_system = (params["nodes"], params["ranks_per_node"]), params["file_system"]
        known = _environs_by_partition()
        environs = {name for names in known.values() for name in names}
        own = environs & set(params["arms"].split(AND))
        asked = os.environ.get(POINT_VARIABLE, "")
        return [
            name
            for name, site in sites().items()
            if params["arms"] != AND
            and own <= set(known[name])
            and file_system in site.file_systems
            and at == point_of(site, file_system, asked)
        ]

    @run_after("init")
    def choose_suites(self):
        first, second = self.arms.split(AND)
        in_suite = any(first == names[0] and second in names[1:] for names in _environs_by_partition().values())
        self.tags = {COMPARE, "upgrade"} if in_suite else {COMPARE}

    @run_after("init")
    def need_builds(self):
        """Environs are built by ReFrame; other arms when the job is made."""
        known = _environs_by_partition()[self.valid_systems[0]]
        own = [name for name in self.arms.split(AND) if name in known]
        self.valid_prog_environs = own[-1:] or known[:1]
        if own:
            self.depends_on("ArmBuild", lambda mine, theirs: mine[0] == theirs[0] and theirs[1] in own)

    @loggable
    @property
    def arm_names(self):
        return self.arms.split(AND)

    def bytes_written(self):
        return bytes_written(self.mebibytes, self.num_tasks)

    def _chosen(self):
        chosen = tuple(p for p in patterns(self.mebibytes, libver=self.libver) if self.only in p.name)
        if not chosen:
            known = ", ".join(p.name for p in patterns(self.mebibytes))
            raise Refusal(f"no pattern has {self.only!r} in its name; there are {known}")
        return chosen

    @run_before("run")
    def write_plan(self):
        plan = Plan(
            site=self.current_system.name,
            partition=self.current_partition.name,
            file_system=self.file_system,
            nodes=self.nodes,
            ranks=self.num_tasks,
            oversubscribe=self.site.oversubscribe,
            arms=tuple(map(self._arm, self.arm_names)),
            patterns=self._chosen(),
            seed=self.seed or random.SystemRandom().randrange(1, 1 << 31),
            repeats=self.repeats,
            margin=self.margin,
            alpha=self.alpha,
            time_limit_seconds=60 * self.time_limit_minutes,
            profile=self.darshan,
        )
        if self.resume:
            plan = self._taken_up(Path(self.resume), plan)
        plan.save(Path(self.stagedir, PLAN_FILE))
        # Warm-up and files across arms come before the clock starts, the pair that runs when it stops after it.
        self.time_limit = 60 * self.time_limit_minutes + 60 * len(plan.patterns) + 300
        self.keep_files += (*LEFT, LOGS_FOLDER)
        # No pair is under Darshan: neither one linked with the kernels nor the site's own in every job.
        self.env_vars[DISABLE] = "1"

    def _taken_up(self, earlier, plan):
        """An earlier comparison with its runs, and with the time of a new one. Raises :class:`Refusal` for another one."""
        theirs = Plan.model_validate_json((earlier / PLAN_FILE).read_bytes())
        for name in ("site", "partition", "file_system", "nodes", "ranks"):
            mine, other = getattr(plan, name), getattr(theirs, name)
            if mine != other:
                raise Refusal(f"{earlier}: {name.replace('_', ' ')} was {other}, and is {mine}; start a new one")
        if [arm.name for arm in plan.arms] != [arm.name for arm in theirs.arms]:
            raise Refusal(f"{earlier}: was a comparison of other arms; start a new one")
        for name in LEFT[1:]:
            if (earlier / name).exists():
                whole = (earlier / name).read_bytes().rpartition(b"\n")
                Path(self.stagedir, name).write_bytes(whole[0] + whole[1])
        if (earlier / LOGS_FOLDER).is_dir():
            shutil.copytree(earlier / LOGS_FOLDER, Path(self.stagedir, LOGS_FOLDER), dirs_exist_ok=True)
        return theirs.model_copy(update={"arms": plan.arms, "time_limit_seconds": plan.time_limit_seconds})

    def _arm(self, name) -> Arm:
        environ = next((e for e in self.current_partition.environs if e.name == name), None)
        if environ is None:
            return self._other_arm(resolve(name, self.current_system.name))
        extras = environ_of(environ)
        built = self.getdep("ArmBuild", environ=name, part=self.current_partition.name)
        runtime = _word(runtime_of(environ, built.arm_of(environ)))
        words = self._words(extras.launcher)
        return Arm(
            name=name,
            programs=built.path("particles").parent,
            launcher=shlex.join(words),
            hdf5=extras.hdf5,
            **self._scripts(name, _load_commands(environ), words, runtime),
        )

    def _other_arm(self, arm: AnyArm) -> Arm:
        words = self._words(self._launcher_of(arm))
        variables = dict(arm.variables)
        if _is_srun(words) and (type_ := mpi_type_for(arm.mpi)):
            variables |= {"SLURM_MPI_TYPE": type_}
        commands = [f"{line} || exit 2" for line in arm.load]
        commands += [f"export {key}={shlex.quote(value)}" for key, value in variables.items()]
        return Arm(
            name=arm.name,
            programs=build(arm).folder,
            launcher=shlex.join(words),
            hdf5=arm.hdf5,
            mpi=arm.mpi,
            prefix=arm.prefix,
            **self._scripts(arm.name, commands, words, self._runtime_of(arm)),
        )

    def _runtime_of(self, arm: AnyArm) -> str:
        """Its own, the one for its MPI, or the one that the partition's first environ has, if it fits: the job will tell."""
        own = arm.darshan or os.environ.get(f"IOGAUGE_DARSHAN_{(arm.mpi or '').upper()}", "")
        if own:
            return shlex.quote(own)
        first = runtime_of(self.current_partition.environs[0], None)
        return "" if first == LINKED else _word(first)

    def _launcher_of(self, arm: AnyArm) -> str:
        """Its launcher; MPICH's binds ranks as Open MPI's does by itself: ranks on other cores are not compared."""
        if arm.mpi != "mpich" or any("bind-to" in option for option in self.job.launcher.options):
            return arm.launcher
        return f"{arm.launcher} -bind-to {'core' if self.num_tasks <= 2 else 'socket'}"

    def _words(self, launcher):
        """The partition's launcher with its options, or an arm's own in its place: srun starts programs of any MPI."""
        words = shlex.split(self.launcher_command())
        if launcher is not None and not _is_srun(words):
            words[:1] = shlex.split(launcher)
        return words

    def _scripts(self, name, commands, words, runtime):
        """How a program is started on all ranks in an arm's environment, and under Darshan where there is a runtime."""
        plain, stage = re.sub(r"[^A-Za-z0-9_.-]", "_", name), Path(self.stagedir)
        scripts = {"launch": (stage / f"arm-{plain}.sh", script(commands, words))}
        if runtime:
            guard = stage / "case_folder.sh"
            text = script_under_darshan(commands, words, runtime, guard)
            scripts["darshan"] = (stage / f"darshan-{plain}.sh", text)
        for file, text in scripts.values():
            file.write_text(text, encoding="utf-8")
        return {kind: ("bash", str(file)) for kind, (file, _) in scripts.items()}

    @run_before("run", always_last=True)
    def set_command(self):
        self.executable = shlex.quote(sys.executable)
        self.executable_opts = ["-m iogauge.compare.driver", PLAN_FILE, f'"{CASE_FOLDER}"', RUNS_FILE]
        self.env_vars["PYTHONPATH"] = os.pathsep.join([str(CHECKOUT), "$PYTHONPATH"])
        self.job.launcher = getlauncher("local")()

    @sanity_function
    def is_compared(self):
        stage = Path(self.stagedir)
        problem = self.failure()
        decided = sn.evaluate(sn.findall("^all is decided$", self.stdout))
        ended = "interrupted" if self.ended_from_outside() else "broken"
        found = of_folder(stage, stopped=ended if problem else "decided" if decided else "time", problem=problem)
        self.comparison = found.model_dump(mode="json", by_alias=True)
        self.compared = found
        return sn.assert_true(found.exit_code < 2, f"no verdict: {found.problem or 'no pair was finished'}")

    @run_before("performance")
    def register(self):
        """A ratio for each operation; the ones that are proven slower make ReFrame fail the test."""
        references = {}
        for result in self.compared.results if not self.is_dry_run() else ():
            for metric, found in (("observed", result.observed), ("raw", result.raw)):
                if found is not None:
                    name = re.sub(r"\W+", "_", f"{result.name}_{metric}")
                    self.perf_variables[name] = sn.make_performance_function(sn.defer(found.ratio), "1")
                    if found.finding == "slower":
                        references[name] = (1.0, -1e-9, None, "1")
        if references:
            self.reference = {self.current_partition.fullname: references}


def _is_srun(words) -> bool:
    return Path(words[0]).name.startswith("srun")


def _word(runtime: str) -> str:
    """Of the shell: what environments name is an expression."""
    return runtime if runtime in ("", LINKED) else f'"{runtime}"'


def _load_commands(environ) -> list[str]:
    modules = runtime().modules_system
    return [
        *environ.prepare_cmds,
        *(f"{line} || exit 2" for module in environ.modules_detailed for line in modules.emit_load_commands(**module)),
        *(f"export {name}={value}" for name, value in environ.env_vars.items()),
    ]
