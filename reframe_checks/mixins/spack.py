"""Programs from a Spack environment: installed or verified once a session, used from its views, without Spack in the jobs."""

import functools
import shlex
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, sanity_function, variable
from reframe.core.runtime import runtime

from iogauge.errors import InputError
from iogauge.nightly import home
from iogauge.spack import ARMS_FILE, LOCK_FILE, Arm, Choice, folder_of, read_arm

from .axes import CHECKOUT, environ_of


def chosen_stacks() -> list[str]:
    """The stacks of which the current system's environments use an arm."""
    environs = (environ for partition in runtime().system.partitions for environ in partition.environs)
    choices = [environ_of(environ).spack for environ in environs]
    return sorted({choice.stack for choice in choices if choice})


@functools.lru_cache(maxsize=8)
def _read_arm(choice: Choice, written: int) -> Arm:
    return read_arm(home(), runtime().system.name, choice)


def installed_arm(choice: Choice) -> Arm:
    """The arm as it is installed now. Raises :class:`InputError`."""
    file = folder_of(home(), runtime().system.name, choice.stack) / ARMS_FILE
    return _read_arm(choice, file.stat().st_mtime_ns if file.exists() else 0)


class SpackStacks(rfm.RunOnlyRegressionTest):
    """Has ``scripts/spack-setup`` install or verify each stack, one after the other, where ReFrame runs.

    What became of each is in the stage folder: ``STACK.code`` (exit code), ``.out``, ``.err``, and the concrete specs
    (``.arms.json``) and the lock (``.spack.lock``) that are used, which are kept with the results. This passes whatever became
    of them: the tests of a stack that was not installed fail one by one (:class:`mixins.kernel.KernelBuild`), no others.
    """

    descr = "Spack environments"
    local = True
    sourcesdir = None
    valid_prog_environs = ["*"]
    #: A stack that has to be built, not only verified, takes hours.
    time_limit = "12h"
    executable = "true"

    spack = variable(typ.Bool, value=True)

    @run_before("run")
    def install(self):
        if not self.spack:
            return
        script = shlex.quote(str(CHECKOUT / "scripts" / "spack-setup"))
        for stack in chosen_stacks():
            folder = folder_of(home().resolve(), self.current_system.name, stack)
            self.prerun_cmds += [
                f"{script} --site {self.current_system.name} --stack {stack} >{stack}.out 2>{stack}.err </dev/null",
                f"echo $? >{stack}.code",
                *(
                    f"cp -- {shlex.quote(str(folder / name))} {stack}.{name} 2>>{stack}.err"
                    for name in (ARMS_FILE, LOCK_FILE)
                ),
            ]
            self.keep_files += [f"{stack}.*"]

    @sanity_function
    def every_stack_has_an_answer(self):
        stacks = chosen_stacks() if self.spack else []
        return sn.all(sn.assert_found(r"^\d+$", f"{stack}.code", f"{stack}: no answer") for stack in stacks)

    def failure(self, stack: str) -> str:
        """Why the stack is not installed, in the words of ``spack-setup``; empty when it is."""
        stage = Path(self.stagedir)
        if (stage / f"{stack}.code").read_text(encoding="utf-8").strip() == "0":
            return ""
        said = (stage / f"{stack}.err").read_text(encoding="utf-8", errors="replace").splitlines()
        # The last line is of the copy that found nothing, where there is nothing.
        words = [line.strip() for line in said if line.strip() and not line.startswith("cp: ")]
        own = [line.partition("error: ")[2] for line in words if line.startswith("iogauge: error: ")]
        return own[-1] if own else " / ".join(words[-3:]) or "spack-setup ended without a word"


class FromSpack(rfm.RegressionTestPlugin):
    """Finds programs in the Spack arm that the environment chooses (its extra ``spack``); ``-S spack=0``: never.

    Gives, from setup on, ``arm``: ``None`` without one, or when it is not installed.
    """

    spack = variable(typ.Bool, value=True)

    def choice_of(self, environ) -> Choice | None:
        return environ_of(environ).spack if self.spack else None

    def arm_of(self, environ) -> Arm | None:
        choice = self.choice_of(environ)
        try:
            return installed_arm(choice) if choice else None
        except InputError:
            return None

    @staticmethod
    def view_of(choice: Choice) -> Path:
        """Where the arm's view is; where it will be, as long as it is not installed."""
        try:
            return installed_arm(choice).view
        except InputError:
            return folder_of(home().resolve(), runtime().system.name, choice.stack) / "views" / choice.arm

    @property
    def arm(self) -> Arm | None:
        return self.arm_of(self.current_environ)

    def why_not_spack(self) -> str:
        """Empty where the environment has an arm."""
        if not self.spack:
            return "spack=0"
        return "" if self.choice_of(self.current_environ) else f"environment {self.current_environ.name} chooses no arm"


class Origin(FromSpack):
    """Where the program of a case comes from: said with its result, with the hash of its spec in the records.

    Needs ``measured_program()``: the path of the program, or ``None`` where it is none of these. Gives the loggable
    ``built_by`` and ``with_origin(measurements)``.
    """

    built_by = variable(str, value="", loggable=True)

    #: Who builds it where Spack does not.
    otherwise_built_by = ""

    def with_origin(self, measurements):
        program = self.measured_program()
        if program is None:
            return measurements
        spec = self.arm.spec_of(program) if self.arm else None
        if spec is None:
            why = self.why_not_spack() or f"{program} is not of arm {self.choice_of(self.current_environ)}"
            self.built_by = f"{self.otherwise_built_by or program}, not Spack: {why}"
            return measurements
        choice = self.choice_of(self.current_environ)
        self.built_by = f"Spack {choice}: {spec.name}@{spec.version}/{spec.hash[:7]}"
        origin = {"spack": str(spec), "spack_arm": str(choice)}
        return [m.model_copy(update={"software": m.software.model_copy(update=origin)}) for m in measurements]
