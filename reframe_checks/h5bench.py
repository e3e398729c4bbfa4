"""h5bench: its particles, written and read in every way it knows, each step of a case by its own C program."""

import hashlib
import os
import re
from functools import cached_property
from pathlib import Path

from reframe.core.builtins import parameter, run_before, variable

from iogauge import series
from iogauge.adapters import h5bench
from iogauge.errors import InputError

from .mixins.axes import site_test
from .mixins.upstream import IN_STAGE, Launching, UpstreamCheck

_WRITE = ("write", {})
_READ = ("read", {"READ_OPTION": "FULL"})


def _interleaved(memory: str, in_file: str) -> dict[str, str]:
    words = {"C": "CONTIG", "I": "INTERLEAVED"}
    return {"MEM_PATTERN": words[memory], "FILE_PATTERN": words[in_file]}


#: Dimensions, and the benchmarks in their order: kind and what differs. All are measured but the first ones with ``False``.
CASES = {
    **{f"CC-{n}d": (n, [(*_WRITE, True), (*_READ, True)]) for n in (1, 2, 3)},
    **{
        f"{memory}{in_file}-{n}d": (n, [("write", _interleaved(memory, in_file), True)])
        for memory, in_file in ("CI", "IC", "II")
        for n in (1, 2)
    },
    "collective": (
        1,
        [
            ("write", {"COLLECTIVE_DATA": "YES"}, True),
            ("read", {"READ_OPTION": "FULL", "COLLECTIVE_DATA": "YES"}, True),
        ],
    ),
    "collective-metadata": (1, [("write", {"COLLECTIVE_METADATA": "YES"}, True)]),
    "file-per-process": (1, [("write", {"FILE_PER_PROC": "YES"}, True)]),
    "compressed": (1, [("write", {"COMPRESS": "YES"}, True)]),
    "unlimited": (1, [("write-unlimited", {"COMPRESS": "YES"}, True)]),
    "varied": (1, [("write_var_normal_dist", {"STDEV_DIM_1": "1000"}, True)]),
    "overwrite": (1, [(*_WRITE, False), ("overwrite", {"READ_OPTION": "FULL"}, True)]),
    "partial": (1, [(*_WRITE, False), ("read", {"READ_OPTION": "PARTIAL"}, True)]),
    "strided": (1, [("write", {"FILE_PATTERN": "STRIDED"}, True)]),
    "strided-read": (1, [(*_WRITE, False), ("read", {"READ_OPTION": "STRIDED", "FILE_PATTERN": "STRIDED"}, True)]),
    "async-CC-1d": (1, [("write", {"MODE": "ASYNC"}, True), ("read", {"READ_OPTION": "FULL", "MODE": "ASYNC"}, True)]),
    "own": (1, []),
}

#: Sound on one rank only: the others would do nothing, or the same once more.
SERIAL_CASES = {
    "append": (
        1,
        [
            ("write-unlimited", {"COMPRESS": "YES"}, False),
            ("append", {"READ_OPTION": "FULL", "COLLECTIVE_DATA": "YES"}, True),
        ],
    ),
    **{option: (2, [(*_WRITE, False), ("read", {"READ_OPTION": option}, True)]) for option in h5bench.RANK_0_OPTIONS},
}

NIGHTLY = {"CC-1d", "CI-1d"}
COMPRESSED_FRACTION = 16  # of the particles: deflate makes some MiB/s


class H5bench(UpstreamCheck):
    """Each round runs all benchmarks of the case; what is read has left the page cache before."""

    kernel = "h5bench"
    package = "Spack: h5bench"
    time_limit = "10m"

    particles = variable(int, value=1 << 20)  # a rank's, in a step; a multiple of 2^15
    steps = variable(int, value=4)
    compute = variable(str, value="0 s")  # between steps
    plugin_path = variable(str, value=os.environ.get("HDF5_PLUGIN_PATH", ""))  # of the async connector

    cases = CASES

    @property
    def is_own(self):
        return self.case == "own"

    @cached_property
    def own_text(self):
        try:
            return Path(self.own).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", file=self.own) from error

    def check_own(self, ranks):
        h5bench.read_json(self.own_text, ranks, self.own)

    @property
    def own_name(self):
        return hashlib.sha256(self.own_text.encode()).hexdigest()[:8] if self.is_own else ""

    @cached_property
    def suite(self):
        if self.is_own:
            return h5bench.read_json(self.own_text, self.num_tasks, self.own)
        where = f"case {self.case}"
        found = [
            h5bench.check_configuration(kind, "particles.h5", self._values(kind, differs), self.num_tasks, where)
            for kind, differs, _ in self.cases[self.case][1]
        ]
        environment = h5bench.async_environment(self.plugin_path) if "async" in self.case else {}
        return h5bench.Suite(tuple(found), environment)

    def _values(self, kind, differs):
        """The configuration: NUM_DIMS before the dimensions."""
        dimensions = self.cases[self.case][0]
        small = any("COMPRESS" in other for _, other, _ in self.cases[self.case][1])
        particles = self.particles // (COMPRESSED_FRACTION if small else 1)
        rest = {1: [], 2: [1024], 3: [128, 64]}[dimensions]
        dims = [particles, *rest]
        for length in rest:
            dims[0] //= length
        values = {
            "MEM_PATTERN": "CONTIG",
            "FILE_PATTERN": "CONTIG",
            "TIMESTEPS": self.steps,
            "DELAYED_CLOSE_TIMESTEPS": 0,
            "COLLECTIVE_DATA": "NO",
            "COLLECTIVE_METADATA": "NO",
            "EMULATED_COMPUTE_TIME_PER_TIMESTEP": self.compute,
            "NUM_DIMS": dimensions,
            **{f"DIM_{n}": length for n, length in enumerate([*dims, 1, 1][:3], start=1)},
            "CSV_FILE": "h5bench.csv",
            "MODE": "SYNC",
            **differs,
        }
        if values.get("COMPRESS") == "YES":
            values |= {"CHUNK_DIM_1": particles // 2, "CHUNK_DIM_2": 1, "CHUNK_DIM_3": 1}
        if values["MODE"] == "ASYNC":
            values["IO_MEM_LIMIT"] = "8 G"
        option = values.get("READ_OPTION")
        if option == "PARTIAL":
            values["TO_READ_NUM_PARTICLES"] = particles // 2
        if values["FILE_PATTERN"] == "STRIDED":
            values |= {"STRIDE_SIZE": 256, "BLOCK_SIZE": 128, "BLOCK_CNT": particles // 512}
        if option in h5bench.RANK_0_OPTIONS:
            values |= {"BLOCK_SIZE": dims[0] // 6, "BLOCK_SIZE_2": dims[1] // 6}
            values |= {"STRIDE_SIZE": dims[0] // 3, "STRIDE_SIZE_2": dims[0] // 4}
        return values

    def executables(self):
        if self.is_own:
            return ["h5bench_write"]
        return list(dict.fromkeys(h5bench.KINDS[kind][0] for kind, _, _ in self.cases[self.case][1]))

    def measured_numbers(self):
        """Which of the benchmarks are measured."""
        if self.is_own:
            return range(len(self.suite.benchmarks))
        return [number for number, (_, _, wanted) in enumerate(self.cases[self.case][1]) if wanted]

    def name_of_own(self, number):
        """A series each: the same configuration may stand several times in a JSON."""
        return f"{self.own_name}.{number + 1}" if self.is_own else ""

    def announced(self):
        found = {}
        for number in self.measured_numbers():
            c = self.suite.benchmarks[number]
            pattern = h5bench.pattern_of(c, self.name_of_own(number))
            label = series.label_of(self.kernel, pattern, h5bench.is_collective(c))
            key = series.key_of(
                self.kernel, c.operation, self.file_system, self.nodes, self.ranks_per_node, label, self.interface
            )
            several = [self.suite.benchmarks[n].operation for n in self.measured_numbers()].count(c.operation) > 1
            found[f"{c.operation}_{label}" if several else c.operation] = key
        return found

    @run_before("run")
    def write_configurations(self):
        for number, configuration in enumerate(self.suite.benchmarks):
            Path(self.stagedir, f"h5bench-{number}.cfg").write_text(configuration.text(), encoding="utf-8")
            self.keep_files += [f"h5bench-{number}.cfg"]

    def launches(self):
        return [
            Launching(
                f"{c.kind} (benchmark {number + 1}), round {turn + 1}",
                # Without a folder in the name, files per process would go to the root folder.
                [self.path_of(c.program), f"{IN_STAGE}h5bench-{number}.cfg", f"./{c.file}"],
                [c.result] if c.result else [],
                environment=dict(self.suite.environment) if c.asynchronous else {},
                drop=c.kind == "read",
            )
            for turn in range(self.repeats)
            for number, c in enumerate(self.suite.benchmarks)
        ]

    def measured(self, job, launches):
        count = len(self.suite.benchmarks)
        found = []
        for number in range(count):
            m = h5bench.measurement(
                job, launches[number::count], self.suite.benchmarks[number], own=self.name_of_own(number)
            )
            found += [m] if number in self.measured_numbers() else []  # the others are looked at all the same
        return found

    def last_round(self):
        count = len(self.suite.benchmarks)
        first = len(self.launches()) - count
        return {first + number: number in self.measured_numbers() for number in range(count)}

    def data_file_names(self):
        files = {re.escape(c.file) for c in self.suite.benchmarks}
        return rf"(?:rank_\d+_)?(?:{'|'.join(sorted(files))})(?:\.subfile[^/:]*)?"

    def bytes_written(self):
        return sum(c.file_bytes(self.num_tasks) for c in self.suite.benchmarks) + (1 << 20)


@site_test
class H5benchCheck(H5bench):
    """What is sound on any number of ranks."""

    nightly = NIGHTLY
    case = parameter(list(CASES), type=str, loggable=True)


@site_test
class H5benchSerialCheck(H5bench):
    """What is sound on one rank only."""

    serial = True
    cases = SERIAL_CASES
    nodes = parameter([1], type=int, loggable=True)
    ranks_per_node = parameter([1], type=int, loggable=True)
    case = parameter(list(SERIAL_CASES), type=str, loggable=True)
