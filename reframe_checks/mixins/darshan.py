"""The case under Darshan: what it did in terms of calls, bytes and time, seen by somebody else than the benchmark."""

import zlib
from pathlib import Path

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import loggable, run_after, run_before, variable

from iogauge.adapters.kernel import read_records
from iogauge.darshan.log import read_log
from iogauge.darshan.preload import (
    CONFIGURATION_FILE,
    DISABLE,
    LINKED,
    LOG_FILE,
    SERIAL_EXTRA,
    configuration,
    files_of_case,
    variables,
)
from iogauge.darshan.profile import Profile, profile
from iogauge.errors import Refusal

from .axes import environ_of
from .file_system import CASE_FOLDER

#: How often the case is run with and without Darshan: the pairs that tell what it costs.
PAIRS = 2


def runtime_of(environ, arm, extra: str = "darshan") -> str:
    """The library to preload, LINKED, or nothing: the environment's extra, else (with MPI) that of its Spack arm."""
    extras = environ_of(environ)
    if extra != "darshan" or extra in extras.model_fields_set or arm is None or arm.darshan is None:
        return getattr(extras, extra)
    return str(arm.darshan)


class Darshan(rfm.RegressionTestPlugin):
    """Runs the case once more under Darshan and keeps its log; ``-S darshan=1`` or ``0``, else where there is a runtime.

    What is measured is never under Darshan: counting costs part of a microsecond a call, which a comparison of small accesses
    would show (docs/darshan.md).

    The library is preloaded into the program alone: the launcher starts ``env LD_PRELOAD=... PROGRAM``, whichever launcher
    it is. What is preloaded already stays. A program that is linked statically takes no preload; the environment
    then says ``linked``, and its build links it with Darshan (mixins.kernel).

    Needs: ``interface``, ``pattern()``, ``num_tasks``, ``arm`` (mixins.spack); and from the check that runs it
    ``darshan_logs()``, ``data_files()`` and ``profiled_records(stage)``.
    Gives: ``profiled`` from setup on, ``darshan_settings(log)`` for the command; after the run ``profile_of_case()`` and the
    loggable ``darshan_flags``.
    """

    darshan = variable(typ.Bool, type(None), value=None)
    darshan_flags = variable(str, value="", loggable=True)

    #: The environment's extra that names the runtime.
    darshan_extra = "darshan"

    can_be_profiled = True

    #: A regular expression for the program's name, where what it starts itself is not to be counted.
    darshan_program = ""

    #: Files and datasets that one rank uses, where they are many; and modules that would have too many records.
    darshan_records = 0
    darshan_without = ()

    @loggable
    @property
    def profiled(self):
        """Is the case run under Darshan?"""
        return self.can_be_profiled and self.darshan is not False and bool(self.darshan or self._runtime)

    @property
    def _runtime(self):
        return runtime_of(self.current_environ, self.arm, self.darshan_extra)

    @run_after("setup")
    def need_runtime(self):
        self.skip_if(
            bool(self.darshan and self.can_be_profiled and not self._runtime),
            f"darshan=1: environment {self.current_environ.name} names no runtime of Darshan (extras, "
            f"{self.darshan_extra!r}), and no Spack arm that has one",
        )

    def darshan_logs(self) -> list[str]:
        """The names of the case's logs: one for each program that it runs."""
        raise NotImplementedError

    def data_files(self) -> str:
        """The regular expression for the names of the case's data files."""
        raise NotImplementedError

    def profiled_records(self, stage: Path):
        """The records of the run under Darshan, and those of its twin without. Raises :class:`Refusal`."""
        raise NotImplementedError

    #: The log has reads or writes of the data that no record counts.
    moves_more_than_recorded = False

    @run_before("run")
    def write_configuration(self):
        if self.profiled:
            # No Darshan slows what is measured: neither one linked with the program nor the site's own in every job.
            self.env_vars[DISABLE] = "1"
            settings = configuration(
                r"/iogauge-case\.",
                records=self.darshan_records,
                ranks=self.num_tasks,
                without=self.darshan_without,
                program=self.darshan_program,
            )
            Path(self.stagedir, CONFIGURATION_FILE).write_text(settings, encoding="utf-8")
            self.keep_files += self.darshan_logs()

    def darshan_guard(self, programs: list[str]) -> list[str]:
        """Lines of the job that refuse what takes no preload."""
        return [f'iogauge_darshan "{self._runtime}" {p}' for p in programs if self._runtime != LINKED]

    def darshan_settings(self, log: str) -> list[str]:
        """Arguments of ``env``, for the shell in the stage folder."""
        libraries = ":".join([self._runtime, *self.darshan_libraries()])
        library = "" if self._runtime == LINKED else f"{libraries}${{LD_PRELOAD:+:$LD_PRELOAD}}"
        chosen = variables(library, "$PWD", log, mpi=self.darshan_extra != SERIAL_EXTRA)
        return ["-u", DISABLE, *(f'"{name}={value}"' for name, value in chosen.items())]

    def darshan_libraries(self) -> list[str]:
        """What has to be preloaded behind the runtime."""
        return []

    def profile_of_case(self) -> Profile:
        """What Darshan says of the case. Raises :class:`Refusal` without a complete log of what the case did."""
        stage = Path(self.stagedir)
        records, without = self.profiled_records(stage)
        logs = [stage / name for name in self.darshan_logs()]
        try:
            summary = read_log(*logs, only=self.data_files(), needs=self._modules_needed(records))
            if summary.ranks != self.num_tasks:
                raise Refusal(f"Darshan's log is of {summary.ranks} ranks, the case has {self.num_tasks}")
        except Refusal as refusal:
            raise Refusal(f"{refusal}{self._hint()}") from refusal
        found = profile(
            " ".join(self.darshan_logs()), summary, records, without, exact=not self.moves_more_than_recorded
        )
        self.darshan_flags = "; ".join(found.flags)
        return found

    def _modules_needed(self, records):
        """What has to be in the log. Calls with an event set (H5Fcreate_async) are none that Darshan 3.5 knows."""
        if records[0].pattern.get("async") == "explicit":
            return ()
        return {"hdf5": ("H5F",), "netcdf": ("H5F",), "mpiio": ("MPI-IO",), "posix": ("POSIX",)}[self.interface]

    def _hint(self) -> str:
        """What Darshan said on stderr, or where to look."""
        texts = [
            path.read_text(encoding="utf-8", errors="replace") for path in sorted(Path(self.stagedir).glob("*.err"))
        ]
        lines = [line.strip() for text in texts for line in text.splitlines()]
        said = [line for line in lines if "darshan" in line.lower() or "ld.so" in line]
        return f" (stderr: {' / '.join(said[:2])})" if said else "; is HDF5 or the program itself linked statically?"


class OnceMore(rfm.RegressionTestPlugin):
    """The test's own program, run twice more after the measured run and in the same job: with Darshan and without, the same
    otherwise, so that the two are a pair. Every other case has the one with Darshan first.

    Goes with :class:`Darshan`. A check gives ``options_of(folder, repeats, warmup, records)``, the program's options for the
    case alone, and the executable from a hook ``run_before("run")``.
    """

    def options_of(self, folder: str, repeats: int, warmup: int, records: str) -> list[str]:
        raise NotImplementedError

    def darshan_logs(self):
        return [LOG_FILE]

    def data_files(self):
        return files_of_case()

    @run_before("run", always_last=True)
    def run_once_more(self):
        if not self.profiled:
            return
        self.prerun_cmds += self.darshan_guard([self.executable])
        # What the records' postrun commands begin with is the exit code of the measured run.
        runs = {"without": "", "darshan": " ".join(["env", *self.darshan_settings(LOG_FILE)])}
        names = sorted(runs, reverse=zlib.crc32(self.unique_name.encode()) % 2 == 0)
        launcher = self.launcher_command()
        for name in names:
            options = self.options_of(f"{CASE_FOLDER}/{name}", min(PAIRS, self.repeats), 0, f"{name}.jsonl")
            words = filter(None, [f"iogauge_once_more {name}", launcher, runs[name], self.executable, *options])
            self.postrun_cmds += [" ".join(words)]
            self.keep_files += [f"{name}.jsonl", f"{name}.out"]

    def profiled_records(self, stage):
        return [self._records_of(stage, name) for name in ("darshan", "without")]

    def _records_of(self, stage, name):
        failed = stage / f"{name}_exit_code.txt"
        if failed.exists():
            code = failed.read_text(encoding="utf-8").strip()
            how = "under" if name == "darshan" else name
            raise Refusal(f"the run {how} Darshan ended with exit code {code}{self._hint()}")
        return read_records(stage / f"{name}.jsonl")
