"""hdf5_iotest's pattern: the same 2-D arrays in datasets of rank 2, 3 and 4."""

import itertools

from reframe.core.builtins import parameter, variable

from iogauge.quota import in_units

from .mixins.axes import site_test
from .mixins.kernel import KernelCheck

#: hdf5_iotest's product; what it varies besides, fill values and the format's version, are baselines of each case.
REPRESENTATIONS = {
    f"rank{rank}-{slowest}-{layout}-{io}": (rank, slowest, layout, io)
    for rank, slowest, layout, io in itertools.product(
        (2, 3, 4), ("step", "array"), ("contiguous", "chunked"), ("independent", "collective")
    )
}

NIGHTLY = {"rank2-step-contiguous-independent", "rank3-step-chunked-independent"}
SCALING = {"rank2-step-contiguous-independent"}


@site_test
class TilesCheck(KernelCheck):
    """One representation of the arrays, in the newest format with fill values; older and unfilled beside it."""

    kernel = "tiles"
    nightly = NIGHTLY
    scaling = SCALING
    representation = parameter(list(REPRESENTATIONS), type=str, loggable=True)

    steps = variable(int, value=2)
    arrays = variable(int, value=4)
    rows = variable(int, value=256)
    columns = variable(int, value=256)

    @property
    def collective(self):
        return REPRESENTATIONS[self.representation][3] == "collective"

    def pattern(self):
        rank, slowest, layout, io = REPRESENTATIONS[self.representation]
        return {
            "rank": rank,
            "slowest": slowest,
            "layout": layout,
            "scaling": "weak",
            "io": io,
            "fill": "value",
            "libver": "latest",
        }

    def pattern_options(self):
        return {
            **self.pattern(),
            "steps": self.steps,
            "arrays": self.arrays,
            "rows": self.rows,
            "columns": self.columns,
        }

    def baselines(self):
        beside = ["libver=earliest", "fill=never", "fill=never,libver=earliest", *super().baselines()]
        if REPRESENTATIONS[self.representation][2] == "chunked":
            beside.append("layout=contiguous")
        return beside

    def bytes_written(self):
        # HDF5 needs less than 4 KiB for a dataset, and 128 bytes for a chunk, which is a rank's tile.
        tiles = self.steps * self.arrays
        data = tiles * self.rows * self.columns * 8 * self.num_tasks
        return data + tiles * ((4 << 10) + 128 * self.num_tasks) + (1 << 20)

    def byte_terms(self):
        return f"{self.steps} steps x {self.arrays} arrays x {in_units(self.rows * self.columns * 8)}"
