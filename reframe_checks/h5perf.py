"""h5perf: HDF5's own parallel benchmark through HDF5, MPI-IO and POSIX, one iteration a launch."""

from functools import cached_property

from reframe.core.builtins import parameter, variable

from iogauge.adapters import h5perf

from .mixins.axes import site_test
from .mixins.upstream import Launching, UpstreamCheck

#: Fields of :class:`iogauge.adapters.h5perf.Case` that differ.
PATTERNS = {
    "contiguous": {},
    "interleaved": {"interleaved": True},
    "contiguous-collective": {"collective": True},
    "interleaved-collective": {"interleaved": True, "collective": True},
    "chunked-collective": {"chunked": True, "collective": True},
}

NIGHTLY = {"contiguous"}


@site_test
class H5perfCheck(UpstreamCheck):
    """It reads what it has just written: such reads are told to come from the page cache, where they do."""

    kernel = "h5perf"
    package = "Spack: hdf5 +tools +mpi"
    nightly = NIGHTLY
    access = parameter(list(PATTERNS), type=str, loggable=True)

    block_bytes = variable(int, value=16 << 20)  # a rank's part of the dataset
    transfer_bytes = variable(int, value=1 << 20)

    @cached_property
    def h5perf_case(self):
        return h5perf.Case(
            self.block_bytes, self.transfer_bytes, min(self.transfer_bytes, 256 << 10), **PATTERNS[self.access]
        )

    @property
    def collective(self):
        return self.h5perf_case.collective

    def pattern(self):
        case = self.h5perf_case
        return {
            "layout": "interleaved" if case.interleaved else "contiguous",
            "file_per_process": False,
            "datasets": 1,
            "files": 1,
            "block_bytes": case.block_bytes,
            "transfer_bytes": case.transfer_bytes,
            "chunk_bytes": case.chunked,
        }

    def launches(self):
        words = [self.path_of("h5perf"), "-A", "phdf5,mpiio,posix", *self.h5perf_case.words(self.num_tasks)]
        # In the case's folder, and left there to be looked at.
        environment = {"HDF5_NOCLEANUP": "1", "HDF5_PARAPREFIX": "."}
        return [
            Launching(
                f"launch {number + 1}",
                words,
                environment=environment,
                unset=["USER", "LOGIN"],  # else it would make a folder of that name
                look=True,
                before=["rm -f ./#pio_tmp*"],
            )
            for number in range(self.repeats)
        ]

    def measured(self, job, launches):
        return h5perf.measurements(job, launches, self.h5perf_case)

    def data_file_names(self):
        return r"#pio_tmp[^/:]*\.h5"

    def bytes_written(self):
        self.h5perf_case.check()
        # A file for each interface.
        return 3 * (self.block_bytes * self.num_tasks + (2 << 20))
