"""IOR's and h5perf's pattern: segments, blocks and transfers in a shared file or a file per process."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from .mixins.kernel import KernelCheck

#: Layout of the ranks in the file, and whether the transfers are collective.
PATTERNS = {
    "contiguous": {"layout": "contiguous", "file_per_process": False, "collective": False},
    "interleaved": {"layout": "interleaved", "file_per_process": False, "collective": False},
    "contiguous-collective": {"layout": "contiguous", "file_per_process": False, "collective": True},
    "interleaved-collective": {"layout": "interleaved", "file_per_process": False, "collective": True},
    "file-per-process": {"layout": "contiguous", "file_per_process": True, "collective": False},
}

NIGHTLY = {"contiguous", "interleaved", "contiguous-collective", "file-per-process"}


@rfm.simple_test
class SegmentsCheck(KernelCheck):
    """Shared and private files, ranks one after the other or in turn."""

    kernel = "segments"
    access = parameter(list(PATTERNS), type=str, loggable=True)

    segments = variable(int, value=1)
    block_bytes = variable(int, value=16 << 20)
    transfer_bytes = variable(int, value=1 << 20)
    alignment = variable(int, value=4096)

    @run_after("init")
    def choose_suites(self):
        self.tags = {"full"}
        if self.access in NIGHTLY:
            self.tags |= {"nightly"}

    @property
    def collective(self):
        return PATTERNS[self.access]["collective"]

    def pattern(self):
        chosen = PATTERNS[self.access]
        return {
            "layout": chosen["layout"],
            "file_per_process": chosen["file_per_process"],
            "datasets": 1,
            "files": 1,
            "chunk_bytes": 0,
        }

    def pattern_options(self):
        chosen = PATTERNS[self.access]
        return {
            "segments": self.segments,
            "block": self.block_bytes,
            "transfer": self.transfer_bytes,
            "layout": chosen["layout"],
            "file-per-process": "yes" if chosen["file_per_process"] else "no",
            "alignment": self.alignment,
        }

    def bytes_written(self):
        files = self.num_tasks if PATTERNS[self.access]["file_per_process"] else 1
        data = self.segments * self.block_bytes * self.num_tasks
        return data + files * (self.alignment + (1 << 20))
