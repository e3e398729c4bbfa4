"""The case under Darshan: what it did in terms of calls, bytes and time, seen by somebody else than the benchmark."""

from pathlib import Path

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import loggable, run_after, run_before, variable

from iogauge.adapters.kernel import read_records
from iogauge.darshan.log import read_log
from iogauge.darshan.preload import (
    CONFIGURATION_FILE,
    LINKED,
    LOG_FILE,
    configuration,
    files_of_case,
    variables,
)
from iogauge.darshan.profile import Profile, profile
from iogauge.errors import Refusal

from .axes import environ_of
from .file_system import CASE_FOLDER

#: Of the run under Darshan, where it is one of its own.
PROFILED_FOLDER = f"{CASE_FOLDER}/profiled"
PROFILED_RECORDS = "darshan.jsonl"
OUTPUT = "darshan.out"
EXIT_CODE = "darshan_exit_code.txt"


def runtime_of(environ, arm) -> str:
    """The library to preload, LINKED, or nothing: the environment's extra, else that of its Spack arm."""
    extras = environ_of(environ)
    if "darshan" in extras.model_fields_set or arm is None or arm.darshan is None:
        return extras.darshan
    return str(arm.darshan)


class Darshan(rfm.RegressionTestPlugin):
    """Runs the case's program under Darshan and keeps its log; ``-S darshan=1`` or ``0``, else where there is a runtime.

    A check that has rates of its own to protect gives ``profiled_options()``: its program then runs once more with these,
    after the measured run and in the same job, and it is this run that Darshan sees. Counting costs part of a microsecond a
    call, which a comparison of small accesses would show (docs/darshan.md). Without, the measured run is under Darshan.

    The library is preloaded into the program alone: the launcher starts ``env LD_PRELOAD=... PROGRAM``, whichever launcher
    it is. What is preloaded already stays. A program that is linked statically takes no preload; the environment
    then says ``linked``, and its build links it with Darshan (mixins.kernel).

    Needs: ``interface``, ``pattern()``, ``num_tasks``, ``arm`` (mixins.spack), and the executable from a hook
    ``run_before("run")``.
    Gives: ``profiled`` from setup on; after the run ``profile_of(measurements)`` and the loggable ``darshan_flags``.
    """

    darshan = variable(typ.Bool, type(None), value=None)
    darshan_flags = variable(str, value="", loggable=True)

    #: False: the program cannot be run under Darshan, whatever is asked.
    can_be_profiled = True

    #: Files and datasets that one rank uses, where they are many; and modules that would have too many records.
    darshan_records = 0
    darshan_without = ()

    @loggable
    @property
    def profiled(self):
        """Is the case run under Darshan?"""
        return (
            self.can_be_profiled
            and self.darshan is not False
            and bool(self.darshan or runtime_of(self.current_environ, self.arm))
        )

    @run_after("setup")
    def need_runtime(self):
        missing = self.darshan and self.can_be_profiled and not runtime_of(self.current_environ, self.arm)
        self.skip_if(
            bool(missing),
            f"darshan=1: environment {self.current_environ.name} names no runtime of Darshan (extras, 'darshan'), and no "
            f"Spack arm that has one",
        )

    def profiled_options(self):
        """The program's options for a run of its own under Darshan, which writes ``PROFILED_RECORDS``; None: there is none."""
        return

    @run_before("run", always_last=True)
    def run_under_darshan(self):
        if not self.profiled:
            return
        self._write_configuration()
        runtime = runtime_of(self.current_environ, self.arm)
        command = " ".join([self._environment(runtime), self.executable])
        if runtime != LINKED:
            self.prerun_cmds += [f'iogauge_darshan "{runtime}" {self.executable}']
        options = self.profiled_options()
        if options is None:
            self.executable = command
        else:
            launcher = self.job.launcher.run_command(self.job)
            self.postrun_cmds += [
                f'[ "$(cat exit_code.txt)" != 0 ] || {{ mkdir "{PROFILED_FOLDER}" && '
                f"{launcher} {command} {' '.join(options)} >{OUTPUT} || echo $? >{EXIT_CODE}; }}"
            ]
            self.keep_files += [PROFILED_RECORDS, OUTPUT]
        self.keep_files += [LOG_FILE]

    def _write_configuration(self):
        settings = configuration(
            r"/iogauge-case\.",
            records=self.darshan_records,
            ranks=self.num_tasks,
            without=self.darshan_without,
        )
        Path(self.stagedir, CONFIGURATION_FILE).write_text(settings, encoding="utf-8")

    def _environment(self, runtime: str) -> str:
        library = "" if runtime == LINKED else f"{runtime}${{LD_PRELOAD:+:$LD_PRELOAD}}"
        return " ".join(["env", *(f'"{name}={value}"' for name, value in variables(library, "$PWD").items())])

    def profile_of(self, measurements) -> Profile:
        """What Darshan says of the case. Raises :class:`Refusal` without a complete log of what the case did."""
        stage = Path(self.stagedir)
        failed = stage / EXIT_CODE
        try:
            if failed.exists():
                raise Refusal(
                    f"the run under Darshan ended with exit code {failed.read_text(encoding='utf-8').strip()}"
                )
            summary = read_log(stage / LOG_FILE, only=files_of_case(), needs=self._modules_needed())
        except Refusal as refusal:
            raise Refusal(f"{refusal}{self._hint()}") from refusal
        if self.profiled_options() is not None:
            measurements = read_records(stage / PROFILED_RECORDS)
        found = profile(LOG_FILE, summary, measurements)
        self.darshan_flags = "; ".join(found.flags)
        return found

    def _modules_needed(self):
        """What has to be in the log. Calls with an event set (H5Fcreate_async) are none that Darshan 3.5 knows."""
        if self.pattern().get("async") == "explicit":
            return ()
        return {"hdf5": ("H5F",), "netcdf": ("H5F",), "mpiio": ("MPI-IO",), "posix": ("POSIX",)}[self.interface]

    def _hint(self) -> str:
        """What Darshan said on stderr, or where to look."""
        errors = Path(self.stagedir, str(self.stderr)).read_text(encoding="utf-8", errors="replace")
        said = [line.strip() for line in errors.splitlines() if "darshan" in line.lower() or "ld.so" in line]
        return f" (stderr: {' / '.join(said[:2])})" if said else "; is HDF5 or the program itself linked statically?"
