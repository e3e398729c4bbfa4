"""IOR's, h5perf's and h5perf_serial's patterns: segments and blocks, squares and arrays, shared files and private ones."""

import math

from reframe.core.builtins import parameter, variable

from .mixins.axes import site_test
from .mixins.kernel import KernelCheck

#: Kernel options by pattern, and the shape of the datasets: ``line`` (segments, blocks, transfers), ``strided`` (several
#: blocks a transfer), ``square`` (h5perf -g) or ``array`` (h5perf_serial's dimensions).
PATTERNS = {
    "contiguous": {},
    "interleaved": {"layout": "interleaved"},
    "contiguous-collective": {"collective": "yes"},
    "interleaved-collective": {"layout": "interleaved", "collective": "yes"},
    "file-per-process": {"file-per-process": "yes"},
    "datasets-and-files": {"datasets": 4, "files": 2},
    "strided": {"shape": "strided"},
    "strided-collective": {"shape": "strided", "collective": "yes"},
    "square": {"shape": "square"},
    "square-interleaved": {"shape": "square", "layout": "interleaved"},
    "square-interleaved-collective": {"shape": "square", "layout": "interleaved", "collective": "yes"},
    "array": {"shape": "array", "order": "3x2x1"},
    "array-across": {"shape": "array", "order": "1x2x3"},
    "array-interleaved-collective": {
        "shape": "array",
        "order": "3x2x1",
        "layout": "interleaved",
        "collective": "yes",
    },
    "array-chunked": {"shape": "array", "order": "3x2x1", "chunk": "4x128x512"},
    "array-growing": {
        "shape": "array",
        "order": "1x2x3",
        "chunk": "4x128x512",
        "extendible": "yes",
        "grow": "yes",
        "file-per-process": "yes",
    },
    # Without the driver direct, which few HDF5 have; segments --driver direct runs it where it is there.
    **{
        f"driver-{driver}": {"file-per-process": "yes", "driver": driver}
        for driver in ("sec2", "stdio", "core", "split", "multi", "family")
    },
}

NIGHTLY = {"contiguous", "interleaved", "contiguous-collective", "file-per-process", "array-across"}
SCALING = {"contiguous-collective", "file-per-process"}


@site_test
class SegmentsCheck(KernelCheck):
    """Shared and private files, ranks one after the other or in turn, of one dimension and of several."""

    kernel = "segments"
    nightly = NIGHTLY
    scaling = SCALING
    access = parameter(list(PATTERNS), type=str, loggable=True)

    segments = variable(int, value=1)
    block_bytes = variable(int, value=16 << 20)
    transfer_bytes = variable(int, value=1 << 20)
    alignment = variable(int, value=4096)

    @property
    def chosen(self):
        return {"shape": "line", "layout": "contiguous", "datasets": 1, "files": 1, **PATTERNS[self.access]}

    @property
    def collective(self):
        return self.chosen.get("collective") == "yes"

    @property
    def file_per_process(self):
        return self.chosen.get("file-per-process") == "yes"

    def sizes(self):
        """The options that say how much; ``block_bytes`` is a rank's part of a dataset, about, whatever its shape."""
        sharing = 1 if self.file_per_process else self.num_tasks
        shape = self.chosen["shape"]
        if shape == "array":
            planes, columns = self.block_bytes // (512 * 512), 512
            if self.chosen["layout"] == "interleaved":
                columns *= sharing
            else:
                planes *= sharing
            return {"dims": f"{planes}x512x{columns}", "transfer-dims": "4x128x512"}
        if shape == "square":
            side = 1 << int(math.log2(math.sqrt(self.block_bytes / sharing)))  # a rank's part of the square's side
            return {"geometry": "2d", "segments": 4, "block": side // 4, "transfer": side * sharing // 2}
        if shape == "strided":
            block = self.transfer_bytes // 16
            segments = self.segments * self.block_bytes // block
            return {"segments": segments, "block": block, "transfer": self.transfer_bytes}
        return {"segments": self.segments, "block": self.block_bytes, "transfer": self.transfer_bytes}

    def pattern(self):
        chosen, sizes = self.chosen, self.sizes()
        named = {
            "layout": chosen["layout"],
            "file_per_process": self.file_per_process,
            "datasets": chosen["datasets"],
            "files": chosen["files"],
            "chunk_bytes": "chunk" in chosen,
            "driver": chosen.get("driver", "default"),
            "extendible": "extendible" in chosen,
            "grow": "grow" in chosen,
        }
        if "dims" in sizes:
            named["dims"] = sizes["dims"].split("x")
            named["order"] = [int(dimension) for dimension in chosen["order"].split("x")]
        elif "geometry" in sizes:
            named["geometry"] = sizes["geometry"]
        else:
            named |= {"block_bytes": sizes["block"], "transfer_bytes": sizes["transfer"]}
        return named

    def pattern_options(self):
        chosen = {name: value for name, value in self.chosen.items() if name not in ("shape", "collective")}
        return {**self.sizes(), **chosen, "alignment": self.alignment}

    def bytes_written(self):
        sharing = 1 if self.file_per_process else self.num_tasks
        sizes = self.sizes()
        if "dims" in sizes:
            planes, *others = map(int, sizes["dims"].split("x"))
            dataset = -(-planes // 4) * 4 * math.prod(others)  # whole chunks where it is chunked
        elif "geometry" in sizes:
            dataset = (sizes["segments"] * sizes["block"] * sharing) ** 2
        else:
            dataset = sizes["segments"] * sizes["block"] * sharing
        datasets = self.chosen["datasets"] * self.chosen["files"] * (self.num_tasks // sharing)
        # The alignment costs at most one unit a dataset, HDF5's metadata less than a MiB and a thousandth.
        return datasets * (dataset + (dataset >> 10) + self.alignment + (1 << 20))
