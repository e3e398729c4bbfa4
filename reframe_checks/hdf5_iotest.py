"""hdf5_iotest: the same arrays in all the representations that it knows, in one launch, each a series of its own."""

import re
from functools import cached_property
from pathlib import Path

from reframe.core.builtins import parameter, run_before, variable

from iogauge import series
from iogauge.adapters import hdf5_iotest
from iogauge.errors import InputError

from .mixins.axes import site_test
from .mixins.upstream import IN_STAGE, Launching, UpstreamCheck

#: What differs from the INI of all cases; ``own``: a site's own INI.
CASES = {
    "one": {"one_case": 7},  # rank 2, step, contiguous, not filled, newest format, independent
    "all": {},
    "all-strong": {"scaling": "strong"},
    "all-aligned": {"alignment_increment": 4096, "meta_block_size": 65536},
    "all-compressed": {"gzip": 1},
    "own": {},
}

NIGHTLY = {"one"}
INI = "hdf5_iotest.ini"


@site_test
class Hdf5IotestCheck(UpstreamCheck):
    """48 cases on one rank, 96 on several, four times as many with alignment and meta blocks."""

    kernel = "hdf5_iotest"
    package = "HDFGroup/hdf5-iotest"
    nightly = NIGHTLY
    time_limit = "30m"
    launch_seconds = 600  # 384 cases
    cases = parameter(list(CASES), type=str, loggable=True)

    steps = variable(int, value=4)
    arrays = variable(int, value=8)
    rows = variable(int, value=256)  # a rank's tile; of all ranks together with strong scaling
    columns = variable(int, value=512)

    @property
    def is_own(self):
        return self.cases == "own"

    @cached_property
    def own_text(self):
        try:
            return Path(self.own).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", file=self.own) from error

    @cached_property
    def configuration(self):
        if self.is_own:
            return hdf5_iotest.read_ini(self.own_text, self.num_tasks, self.own)
        rows, columns = hdf5_iotest.grid_of(self.num_tasks)
        # All ranks' rows and columns with strong scaling: as many as the grid divides.
        shared = CASES[self.cases].get("scaling") == "strong"
        parts = (rows, columns) if shared else (1, 1)
        return hdf5_iotest.Configuration(
            **{
                "version": 0,
                "steps": self.steps,
                "arrays": self.arrays,
                "rows": -(-self.rows // parts[0]) * parts[0],
                "columns": -(-self.columns // parts[1]) * parts[1],
                "process_rows": rows,
                "process_columns": columns,
                "scaling": "weak",
                "alignment_increment": 1,
                "alignment_threshold": 0,
                "meta_block_size": hdf5_iotest.HDF5_META_BLOCK_BYTES,
                "single_process": "posix",
                "hdf5_file": "tiles.h5",
                "csv_file": "tiles.csv",
                **CASES[self.cases],
            }
        )

    def check_own(self, ranks):
        hdf5_iotest.read_ini(self.own_text, ranks, self.own)

    @property
    def own_name(self):
        return self.own_hash(self.own_text) if self.is_own else ""

    def patterns(self):
        """Of all cases, in their order, with whether they are collective."""
        return [
            (hdf5_iotest.pattern_of(case, self.configuration, self.own_name), case.io == "collective")
            for case in hdf5_iotest.cases_of(self.configuration)
        ]

    def keys(self):
        labels = [series.label_of(self.kernel, pattern, collective) for pattern, collective in self.patterns()]
        return [self.series_key(operation, label) for label in labels for operation in self.operations]

    @run_before("run")
    def write_ini(self):
        text = self.own_text if self.is_own else self.configuration.text()
        Path(self.stagedir, INI).write_text(text, encoding="utf-8")
        self.keep_files += [INI]

    def launches(self):
        command = [self.path_of("hdf5_iotest"), IN_STAGE + INI]
        return [
            Launching(f"launch {n + 1}", command, [self.configuration.csv_file], look=True) for n in range(self.repeats)
        ]

    def measured(self, job, launches):
        return hdf5_iotest.measurements(job, launches, self.configuration, own=self.own_name)

    def data_file_names(self):
        return re.escape(self.configuration.hdf5_file)

    def bytes_written(self):
        # One case's file at a time. HDF5 needs less than 4 KiB and the alignment for a dataset, 128 bytes for a chunk.
        chosen = self.configuration
        objects = chosen.steps * chosen.arrays
        aligned = (1 + self.num_tasks) * (128 + chosen.alignment_increment)  # a dataset, and each rank's tile in it
        more = objects * ((4 << 10) + aligned + chosen.meta_block_size)
        return chosen.logical_bytes + more + (64 << 20) * (chosen.single_process == "core") + (2 << 20)
