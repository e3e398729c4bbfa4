"""benchio's pattern: a 3-D array in blocks with halos, written by all ranks, by one, by one a node, or to a file each."""

import math

from reframe.core.builtins import parameter, variable

from .mixins.axes import site_test
from .mixins.kernel import KernelCheck

#: What differs from the kernel's defaults: who writes, through what, and how.
PATTERNS = {
    "shared-collective": {"collective": True},
    "shared": {},
    "file-per-process": {"writers": "process"},
    "file-per-node": {"writers": "node"},
    "one-writer": {"writers": "one"},
    "strong-collective": {"collective": True, "size_is": "global"},
    "chunked-collective": {"collective": True, "chunked": True},
    "netcdf-collective": {"collective": True, "interface": "netcdf"},
    "netcdf-one-writer": {"writers": "one", "interface": "netcdf"},
}

#: Access and halo of the nightly suite. The crossings of all are in the full suite.
NIGHTLY = {("shared-collective", 1), ("one-writer", 1), ("netcdf-collective", 1)}
SCALING = {("shared-collective", 1)}


@site_test
class BlocksCheck(KernelCheck):
    """Kinds of writers and widths of halos; compared with MPI-IO or POSIX, and with no halo, in the same job.

    netCDF-4 is tried where the site says that there is one.
    """

    kernel = "blocks"
    nightly = NIGHTLY
    scaling = SCALING
    access = parameter(list(PATTERNS), type=str, loggable=True)
    halo = parameter([0, 1, 2], type=int, loggable=True)

    #: Elements of a rank's block in each dimension, the slowest first; of the whole array for strong scaling.
    size = variable(str, value="64x64x64")

    @classmethod
    def fits(cls, site, pattern):
        access, _ = pattern
        return site.netcdf or PATTERNS[access].get("interface") != "netcdf"

    @property
    def chosen(self):
        return {
            "writers": "all",
            "interface": "hdf5",
            "collective": False,
            "size_is": "local",
            "chunked": False,
            **PATTERNS[self.access],
        }

    @property
    def interface(self):
        return self.chosen["interface"]

    @property
    def collective(self):
        return self.chosen["collective"]

    @property
    def extent(self):
        return [int(number) for number in self.size.split("x")]

    @property
    def chunk(self):
        """An eighth of the size: a chunk never spans two ranks' blocks when the ranks divide the size."""
        return [max(1, number // 2) for number in self.extent] if self.chosen["chunked"] else [0, 0, 0]

    def pattern(self):
        return {
            "writers": self.chosen["writers"],
            "halo": self.halo,
            "size_is": self.chosen["size_is"],
            "chunk": self.chunk,
        }

    def pattern_options(self):
        options = {
            "size": self.size,
            "size-is": self.chosen["size_is"],
            "halo": self.halo,
            "writers": self.chosen["writers"],
        }
        if self.chosen["chunked"]:
            options["chunk"] = "x".join(map(str, self.chunk))
        return options

    def baselines(self):
        others = super().baselines()
        if self.interface == "netcdf":
            others = ["interface=hdf5", "interface=mpiio"]
        if self.chosen["chunked"]:
            others.append("chunk=0")
        if self.halo:
            others.append("halo=0")
        return others

    def bytes_written(self):
        blocks = self.num_tasks if self.chosen["size_is"] == "local" else 1
        whole = [-(-n // max(1, c)) * max(1, c) for n, c in zip(self.extent, self.chunk, strict=True)]
        return math.prod(whole) * 8 * blocks + self.num_tasks * (1 << 20)  # a file has less than a MiB of metadata
