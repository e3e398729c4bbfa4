"""h5perf_serial, HDF5's own serial benchmark: measured by itself, and beside our kernel in the same job, in turn.

It verifies nothing, and ends well after it failed: its output is believed line by line (iogauge.adapters.h5perf_serial).
"""

import math
import shlex
import shutil
from pathlib import Path

from reframe.core.builtins import parameter, run_after, run_before, variable

from iogauge.adapters import h5perf_serial
from iogauge.adapters.h5perf_serial import Case
from iogauge.adapters.kernel import read_records
from iogauge.side_by_side import compared, joined

from .mixins.axes import site_test
from .mixins.file_system import CASE_FOLDER
from .mixins.kernel import KernelCheck
from .mixins.upstream import Launching, UpstreamCheck

MIB = 1 << 20
_LINE = Case(dataset=(16 * MIB,), transfer=(MIB,), order=(1,))
_ALONG = Case(dataset=(64, 512, 512), transfer=(4, 128, 512), order=(3, 2, 1))

#: What is run. Without the driver direct, which h5perf_serial replaces by sec2 without a word where HDF5 has not got it, and
#: without family, whose member files it makes 1 MiB small.
CASES = {
    "line": _LINE,
    "across": _ALONG.model_copy(update={"order": (1, 2, 3)}),
    "along": _ALONG,
    "chunked": _ALONG.model_copy(update={"chunk": _ALONG.transfer}),
    "growing": _ALONG.model_copy(update={"chunk": _ALONG.transfer, "extendible": True}),
    **{driver: _LINE.model_copy(update={"driver": driver}) for driver in ("stdio", "core", "split", "multi")},
}

#: Beside the kernel also accesses so small that the calls themselves count.
BESIDE = {**CASES, "small": Case(dataset=(4 * MIB,), transfer=(4 << 10,), order=(1,))}

NIGHTLY = {"line", "across"}

#: With USER or LOGIN set it would make a folder of that name.
WITHOUT_USER = ["-u", "USER", "-u", "LOGIN"]


@site_test
class H5perfSerialCheck(UpstreamCheck):
    """It reads what it has just written: such reads are told to come from the page cache, where they do."""

    kernel = "h5perf_serial"
    package = "Debian: hdf5-tools; Spack: hdf5 +tools"
    nightly = NIGHTLY
    serial = True
    can_be_profiled = (
        False  # both interfaces' files are made by one launch, and a runtime for parallel HDF5 cannot be used
    )
    nodes = parameter([1], type=int, loggable=True)
    ranks_per_node = parameter([1], type=int, loggable=True)
    access = parameter(list(CASES), type=str, loggable=True)

    def pattern(self):
        return CASES[self.access].pattern()

    def launches(self):
        command = ["env", *WITHOUT_USER, self.path_of("h5perf_serial"), *CASES[self.access].words(1)]
        # In the case's folder, and left there to be looked at.
        environment = {"HDF5_NOCLEANUP": "1", "HDF5_PREFIX": "."}
        return [
            Launching(f"launch {number + 1}", command, environment=environment, look=True, before=["rm -f ./#sio_tmp*"])
            for number in range(self.repeats)
        ]

    def measured(self, job, launches):
        return h5perf_serial.measurements(job, launches, CASES[self.access])

    def bytes_written(self):
        # A file for each interface.
        return 2 * (CASES[self.access].logical_bytes + 2 * MIB)


@site_test
class H5perfSerialBesideCheck(KernelCheck):
    """One rank of ``segments`` and one h5perf_serial, round after round, each beginning every other round.

    Its rates are evidence beside ours here.
    """

    kernel = "segments"
    nightly = NIGHTLY
    serial = True
    leaves_a_file = False  # the rounds' files have one name
    nodes = parameter([1], type=int, loggable=True)
    ranks_per_node = parameter([1], type=int, loggable=True)
    access = parameter(list(BESIDE), type=str, loggable=True)

    program = variable(str, value="h5perf_serial")
    rounds = variable(int, value=4, loggable=True)
    repeats = 3
    warmup = 0

    @property
    def program_path(self):
        found = (self.arm and self.arm.program(self.program)) or shutil.which(self.program)
        return found and str(found)

    @run_after("setup")
    def skip_without_program(self):
        self.skip_if(
            self.program_path is None,
            f"needs {self.program} in PATH (Debian: hdf5-tools) or the Spack arm (hdf5 +tools), or by "
            f"-S H5perfSerialBesideCheck.program=PATH",
        )

    @property
    def chosen(self):
        return BESIDE[self.access]

    def pattern(self):
        return {**self.chosen.pattern(), "chunk_bytes": bool(self.chosen.chunk)}

    def pattern_options(self):
        def listed(numbers):
            return "x".join(map(str, numbers))

        chosen = self.chosen
        grow = "yes" if chosen.extendible else "no"
        return {
            "dims": listed(chosen.dataset),
            "transfer-dims": listed(chosen.transfer),
            "order": listed(chosen.order),
            **({"chunk": listed(chosen.chunk)} if chosen.chunk else {}),
            "driver": chosen.driver,
            "grow": grow,
            "extendible": grow,
            # As h5perf_serial has it: no sync, reads from the cache, and HDF5 without MPI.
            "file-per-process": "yes",
            "fsync": "no",
            "drop-cache": "no",
        }

    def baselines(self):
        return ["interface=posix"]

    def bytes_written(self):
        return math.prod(self.chosen.dataset) + 8 * MIB  # one program's file at a time, and metadata

    def _theirs(self, number: int) -> str:
        words = [shlex.quote(self.program_path), *self.chosen.words(self.repeats)]
        program = f'env {shlex.join(WITHOUT_USER)} HDF5_PREFIX="{CASE_FOLDER}" {" ".join(words)}'
        errors = f"h5perf_serial-{number}.err"
        return f'{program} > h5perf_serial-{number}.txt 2> {errors} || echo "exit code $?" >> {errors}'

    def _records_file(self, number: int) -> str:
        return f"records-{number}.jsonl"

    @run_before("run")
    def take_turns(self):
        """All rounds but the last kernel run, which is the test's own command."""
        launcher = self.launcher_command()
        last = self.rounds - 1
        for number in range(self.rounds):
            options = " ".join(self.kernel_options(self._records_file(number)))
            ours = f"{launcher} {shlex.quote(self.executable)} {options} || {{ iogauge_ended $?; exit 2; }}"
            theirs = self._theirs(number)
            if number == last:
                self.prerun_cmds += [theirs]
            else:
                self.prerun_cmds += [theirs, ours] if (last - number) % 2 == 0 else [ours, theirs]
        self.executable_opts = self.kernel_options(self._records_file(last))
        self.keep_files += [self._records_file(number) for number in range(last + 1)]
        self.keep_files += [f"h5perf_serial-{number}.{end}" for number in range(last + 1) for end in ("txt", "err")]
        self.keep_files.remove(self.records_file)

    def _rounds(self, stage: Path):
        return [read_records(stage / self._records_file(number)) for number in range(self.rounds)]

    def read_measurements(self, stage):
        return joined(self._rounds(stage))

    def with_evidence(self, judgement, stage):
        reports = [
            h5perf_serial.read_report(stage / f"h5perf_serial-{number}.txt", stage / f"h5perf_serial-{number}.err")
            for number in range(self.rounds)
        ]
        return compared(judgement, self._rounds(stage), reports)
