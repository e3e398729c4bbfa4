"""h5perf_serial, HDF5's own serial benchmark, beside our kernel in the same job, with the same sizes, in turn.

It verifies nothing, and ends well after it failed: its output is believed line by line (iogauge.adapters.h5perf_serial), and
its rates are evidence beside ours, never a series of their own.
"""

import shlex
import shutil
from pathlib import Path

from reframe.core.builtins import parameter, run_after, run_before, variable

from iogauge.adapters.h5perf_serial import Report, read_report
from iogauge.adapters.kernel import read_records
from iogauge.side_by_side import compared, joined

from .mixins.axes import site_test
from .mixins.file_system import CASE_FOLDER
from .mixins.kernel import KernelCheck

#: What both programs do; dimensions in bytes, the last one the fastest. Without the driver direct, which h5perf_serial
#: replaces by sec2 without a word where HDF5 has not got it, and without family, whose member files it makes 1 MiB small.
CASES = {
    "line": {"dims": "16M", "transfer-dims": "1M"},
    "across": {"dims": "64x512x512", "transfer-dims": "4x128x512", "order": "1x2x3"},
    "along": {"dims": "64x512x512", "transfer-dims": "4x128x512", "order": "3x2x1"},
    "chunked": {"dims": "64x512x512", "transfer-dims": "4x128x512", "order": "3x2x1", "chunk": "4x128x512"},
    "growing": {
        "dims": "64x512x512",
        "transfer-dims": "4x128x512",
        "order": "3x2x1",
        "chunk": "4x128x512",
        "grow": "yes",
    },
    "small": {"dims": "4M", "transfer-dims": "4K"},
    **{
        driver: {"dims": "16M", "transfer-dims": "1M", "driver": driver}
        for driver in ("stdio", "core", "split", "multi")
    },
}

NIGHTLY = {"line", "across"}


@site_test
class H5perfSerialCheck(KernelCheck):
    """One rank of ``segments`` and one h5perf_serial, round after round, each beginning every other round."""

    kernel = "segments"
    nightly = NIGHTLY
    serial = True
    leaves_a_file = False  # the rounds' files have one name
    nodes = parameter([1], type=int, loggable=True)
    ranks_per_node = parameter([1], type=int, loggable=True)
    access = parameter(list(CASES), type=str, loggable=True)

    program = variable(str, value="h5perf_serial")
    rounds = variable(int, value=4, loggable=True)
    repeats = 3
    warmup = 0

    @run_after("setup")
    def skip_without_program(self):
        self.skip_if(
            shutil.which(self.program) is None,
            f"needs {self.program} in PATH (Debian: hdf5-tools; Spack: hdf5 +tools), or -S H5perfSerialCheck.program=PATH",
        )

    @property
    def chosen(self):
        case = CASES[self.access]
        dimensions = case["dims"].count("x") + 1
        order = "x".join(str(number + 1) for number in range(dimensions))
        return {"order": order, "driver": "sec2", "grow": "no", **case}

    def pattern(self):
        chosen = self.chosen
        return {
            "layout": "contiguous",
            "file_per_process": True,
            "datasets": 1,
            "files": 1,
            "chunk_bytes": "chunk" in chosen,
            "dims": chosen["dims"].split("x"),
            "order": [int(number) for number in chosen["order"].split("x")],
            "driver": chosen["driver"],
            "extendible": chosen["grow"] == "yes",
            "grow": chosen["grow"] == "yes",
        }

    def pattern_options(self):
        # As h5perf_serial has it: no sync, reads from the cache, and HDF5 without MPI.
        alone = {"file-per-process": "yes", "fsync": "no", "drop-cache": "no"}
        return {**self.chosen, "extendible": self.chosen["grow"], **alone}

    def baselines(self):
        return ["interface=posix"]

    def bytes_written(self):
        return (16 << 20) + (8 << 20)  # one program's file at a time, and metadata

    def _theirs(self, number: int) -> str:
        chosen = {name: text.replace("x", ",") for name, text in self.chosen.items()}
        options = ["-A", "posix,hdf5", "-e", chosen["dims"], "-x", chosen["transfer-dims"], "-r", chosen["order"]]
        options += ["-i", str(self.repeats), "-v", chosen["driver"]]
        if "chunk" in chosen:
            options += ["-c", chosen["chunk"]]
        if chosen["grow"] == "yes":
            options += ["-t"]
        # With USER or LOGIN set it would make a folder of that name.
        program = f'env -u USER -u LOGIN HDF5_PREFIX="{CASE_FOLDER}" {shlex.quote(self.program)} {shlex.join(options)}'
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
        reports: list[Report] = [
            read_report(stage / f"h5perf_serial-{number}.txt", stage / f"h5perf_serial-{number}.err")
            for number in range(self.rounds)
        ]
        return compared(judgement, self._rounds(stage), reports)
