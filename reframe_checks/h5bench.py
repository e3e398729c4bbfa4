"""h5bench: its particles, written and read in every way it knows, each step of a case by its own C program."""

import math
import os
import re
from functools import cached_property
from pathlib import Path

from reframe.core.builtins import parameter, run_before, variable

from iogauge import series
from iogauge.adapters import h5bench
from iogauge.adapters.hdf5_iotest import grid_of
from iogauge.darshan.preload import calls_by_event_sets
from iogauge.errors import InputError

from .mixins.axes import site_test
from .mixins.upstream import IN_STAGE, Launching, UpstreamCheck

_WRITE = ("write", {})
_READ = ("read", {"READ_OPTION": "FULL"})


def _interleaved(memory: str, in_file: str) -> dict[str, str]:
    words = {"C": "CONTIG", "I": "INTERLEAVED"}
    return {"MEM_PATTERN": words[memory], "FILE_PATTERN": words[in_file]}


#: Dimensions of the array (of metadata: of each dataset), and the benchmarks in their order: kind, what differs, and
#: whether it is measured.
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
    "metadata": (4, [("metadata", {}, True)]),
    "metadata-chunked": (3, [("metadata", {"layout": "chunked", "mpi-io": "collective", "steps": 10}, True)]),
    "metadata-many": (2, [("metadata", {"slowest-dimension": "array", "steps": 5}, True)]),
    "exerciser": (2, [("exerciser", {}, True)]),
    "exerciser-independent": (1, [("exerciser", {"indepio": "true", "addattr": "true"}, True)]),
    "exerciser-chunked": (3, [("exerciser", {"usechunked": "true"}, True)]),
    "openpmd": (
        3,
        [("openpmd", {"operation": "write", "encoding": "f"}, True), ("openpmd", {"operation": "read"}, True)],
    ),
    "macsio": (2, [("macsio", {}, True)]),
    "macsio-shared": (2, [("macsio", {"parallel_file_mode": "SIF 1"}, True)]),
    "e3sm": (1, [("e3sm", {"r": "4"}, True)]),
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
    metadata_steps = variable(int, value=40)  # of 500 arrays each, 2 KiB a rank
    e3sm_map = variable(str, value=os.environ.get("E3SM_IO_MAP", ""))  # map_f_case_16p.h5 of E3SM-IO's sources
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
        return self.own_hash(self.own_text) if self.is_own else ""

    @cached_property
    def suite(self):
        if self.is_own:
            return h5bench.read_json(self.own_text, self.num_tasks, self.own)
        where = f"case {self.case}"
        found = []
        for kind, differs, _ in self.cases[self.case][1]:
            values = self._values(kind, differs)
            found.append(h5bench.check_benchmark(kind, "particles.h5", values, self.num_tasks, where, before=found))
        environment = h5bench.async_environment(self.plugin_path) if "async" in self.case else {}
        return h5bench.Suite(tuple(found), environment)

    def _values(self, kind, differs):
        values = {
            "e3sm": self._e3sm_values,
            "exerciser": self._exerciser_values,
            "macsio": self._macsio_values,
            "metadata": self._metadata_values,
            "openpmd": self._openpmd_values,
        }
        return values.get(kind, self._pattern_values)(differs)

    def _metadata_values(self, differs):
        """Many small accesses: it tells its times with two decimals."""
        rows, columns = grid_of(self.num_tasks)
        return {
            "version": 0,
            "steps": self.metadata_steps,
            "arrays": 500,
            "rows": 16,
            "columns": 16,
            "process-rows": rows,
            "process-columns": columns,
            "scaling": "weak",
            "dataset-rank": self.cases[self.case][0],
            "slowest-dimension": "step",
            "layout": "contiguous",
            "mpi-io": "independent",
            "csv-file": "h5bench.csv",
            **differs,
        }

    def _exerciser_values(self, differs):
        """Two sizes, the larger of as many doubles as a rank has particles."""
        dimensions = self.cases[self.case][0]
        rest = {1: [], 2: [256], 3: [64, 16]}[dimensions]
        return {
            "numdims": dimensions,
            "minels": " ".join(map(str, [self.particles // 2 // math.prod(rest), *rest])),
            "nsizes": 2,
            "bufmult": " ".join(["2"] + ["1"] * len(rest)),
            "dimranks": " ".join([str(self.num_tasks)] + ["1"] * len(rest)),
            **differs,
        }

    def _openpmd_values(self, differs):
        """Each rank writes two planes and reads one back in three fields: a time in milliseconds has to hold it."""
        if differs["operation"] == "read":
            return {**differs, "pattern": "fx"}
        planes = {"minBlock": f"1 2048 {max(1, self.particles // 1024)}", "grid": f"{self.num_tasks} 1 1"}
        return {"dim": 3, "balanced": "true", "ratio": 1, "steps": 1, **planes, **differs}

    def _macsio_values(self, differs):
        """A file per rank: eight variables of two bytes a particle."""
        return {
            "parallel_file_mode": f"MIF {self.num_tasks}",
            "part_size": f"{max(1, self.particles // 512)}K",
            "vars_per_part": 8,
            "num_dumps": self.steps,
            **differs,
        }

    def _e3sm_values(self, differs):
        return {"map": self.e3sm_map, **differs}

    def _pattern_values(self, differs):
        """NUM_DIMS before the dimensions."""
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
        try:
            return list(dict.fromkeys(benchmark.program for benchmark in self.suite.benchmarks))
        except InputError:  # told when the input is looked at
            return []

    def _check_input(self):
        """Without a map, which comes with E3SM-IO's sources, there is no such case."""
        if self.case == "e3sm" and not self.e3sm_map:
            self.valid_systems = []
        else:
            super()._check_input()

    def measured_numbers(self):
        """Which of the benchmarks are measured."""
        if self.is_own:
            return range(len(self.suite.benchmarks))
        return [number for number, (_, _, wanted) in enumerate(self.cases[self.case][1]) if wanted]

    def name_of_own(self, number):
        """A series each: the same configuration may stand several times in a JSON."""
        return f"{self.own_name}.{number + 1}" if self.is_own else ""

    def keys(self):
        found = []
        for number in self.measured_numbers():
            for each in self.suite.benchmarks[number].announced(self.name_of_own(number)):
                label = series.label_of(self.kernel, each.pattern, each.collective)
                found.append(self.series_key(each.operation, label))
        return found

    @run_before("run")
    def write_configurations(self):
        for number, benchmark in enumerate(self.suite.benchmarks):
            Path(self.stagedir, f"h5bench-{number}.cfg").write_text(benchmark.text(), encoding="utf-8")
            self.keep_files += [f"h5bench-{number}.cfg"]

    def connector(self):
        """The variables that load the async connector: those of the environment's Spack arm where nothing else names one."""
        vol = self.arm.vol if self.arm and not self.plugin_path and not self.is_own else None
        return vol.variables if vol else dict(self.suite.environment)

    def launches(self):
        return [
            Launching(
                f"{benchmark.kind} (benchmark {number + 1}), round {turn + 1}",
                [self.path_of(benchmark.program), *benchmark.words(f"{IN_STAGE}h5bench-{number}.cfg")],
                benchmark.results,
                environment=self.connector() if benchmark.asynchronous else {},
                drop=benchmark.reads_what_was_there,
                look=benchmark.reads_what_it_wrote,
                before=benchmark.before,
            )
            for turn in range(self.repeats)
            for number, benchmark in enumerate(self.suite.benchmarks)
        ]

    def measured(self, job, launches):
        count = len(self.suite.benchmarks)
        found = []
        for number, benchmark in enumerate(self.suite.benchmarks):
            measurements = benchmark.measurements(job, launches[number::count], own=self.name_of_own(number))
            # The others are looked at all the same.
            found += measurements if number in self.measured_numbers() else []
        return found

    @property
    def can_be_profiled(self):
        """The other kinds move data that no record counts, or name no file."""
        return all(isinstance(benchmark, h5bench.Configuration) for benchmark in self.suite.benchmarks)

    def _modules_needed(self, records):
        """From HDF5 1.13 on its patterns make their calls with event sets, in the mode SYNC too."""
        programs = {Path(self.path_of(name)) for name in self.executables()}
        return ("POSIX",) if any(map(calls_by_event_sets, programs)) else super()._modules_needed(records)

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
