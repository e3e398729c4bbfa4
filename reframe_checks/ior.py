"""IOR: one shared file or a file per process, through HDF5, MPI-IO and POSIX in turn, all data compared afterwards."""

import re
import shlex
from functools import cached_property

from reframe.core.builtins import parameter, variable

from iogauge.adapters import ior

from .mixins.axes import site_test
from .mixins.upstream import Launching, UpstreamCheck

#: Options of :func:`iogauge.adapters.ior.command` by pattern; ``own``: a site's own command line.
PATTERNS = {
    "shared": {},
    "shared-collective": {"collective": True},
    "segmented": {"segments": 16},
    "segmented-collective": {"segments": 16, "collective": True},
    "file-per-process": {"file_per_process": True},
    "own": {},
}

NIGHTLY = {"shared", "file-per-process"}
INTERFACES = ("hdf5", "mpiio", "posix")
RESULT = "ior.json"


@site_test
class IorCheck(UpstreamCheck):
    """In each round and through each interface: written with a sync, read by another rank after the cache was dropped,
    and read once more, not timed, to be compared."""

    kernel = "ior"
    package = "Spack: ior +hdf5"
    nightly = NIGHTLY
    access = parameter(list(PATTERNS), type=str, loggable=True)

    block_bytes = variable(int, value=32 << 20)  # a rank's
    transfer_bytes = variable(int, value=1 << 20)

    @property
    def is_own(self):
        return self.access == "own"

    @cached_property
    def command(self):
        return ior.check_command(self.own)

    def check_own(self, ranks):
        ior.check_command(self.own)

    @property
    def chosen(self):
        return {"collective": False, "file_per_process": False, "segments": 1, **PATTERNS[self.access]}

    @property
    def interface(self):
        return self.command.interface if self.is_own else INTERFACES[0]

    @property
    def collective(self):
        return "c" in self.command.flags if self.is_own else self.chosen["collective"]

    @property
    def operations(self):
        if not self.is_own:
            return ("write", "read")
        return ("write",) * self.command.writes + ("read",) * self.command.reads

    def pattern(self):
        if self.is_own:
            return {
                "file_per_process": "F" in self.command.flags,
                "segments": int(self.command.values.get("s", "1")),
                "own": self.own_name,
            }
        return {name: self.chosen[name] for name in ("file_per_process", "segments")}

    @property
    def own_name(self):
        return self.own_hash(" ".join(self.command.words)) if self.is_own else ""

    def _words(self, interface, operation):
        segments = self.chosen["segments"]
        sizes = {"block_bytes": self.block_bytes // segments, "transfer_bytes": self.transfer_bytes, **self.chosen}
        return ior.command(interface, operation, file=interface, result=RESULT, **sizes)

    def launches(self):
        program = self.path_of("ior")
        if self.is_own:
            results = [self.command.result] if self.command.result else []
            return [
                Launching(f"launch {number + 1}", [program, *self.command.words], results, look=True)
                for number in range(self.repeats)
            ]
        return [
            Launching(
                f"{operation} {number + 1} through {interface}",
                [program, *self._words(interface, operation)],
                [RESULT],
                drop=operation == "read",
                before=[f"rm -f {interface} {interface}.*"] if operation == "write" else [],  # else it warns
            )
            for number in range(self.repeats)
            for interface in INTERFACES
            for operation in ("write", "read", "check")
        ]

    def last_round(self):
        number_of_launches = len(self.launches())
        if self.is_own:
            return {number_of_launches - 1: True}
        first = number_of_launches - 3 * len(INTERFACES)  # HDF5's are the first ones: write, read, check
        return {first: True, first + 1: True}

    def measured_round(self, job, launches):
        result = self.command.result if self.is_own else RESULT
        return ior.measurements(job, launches, result=result)

    def data_file_names(self):
        return rf"{re.escape(self.command.file if self.is_own else INTERFACES[0])}(?:\.\d{{8}})?"

    @property
    def moves_more_than_recorded(self):
        return self.is_own and "W" in self.command.flags  # it reads once more, untimed

    def measured(self, job, launches):
        if self.is_own:
            return ior.measurements(job, launches, result=self.command.result, own=self.own_name)
        found = []
        for interface in INTERFACES:
            mine = [launch for launch in launches if launch.name.endswith(f"through {interface}")]
            found += ior.measurements(
                job,
                [launch for launch in mine if not launch.name.startswith("check")],
                result=RESULT,
                checks=[launch for launch in mine if launch.name.startswith("check")],
                differs={} if interface == self.interface else {"interface": interface},
            )
        return found

    def bytes_written(self):
        if self.is_own:
            return self.command.bytes(self.num_tasks) + (16 << 20)
        ior.check_command(shlex.join(self._words("posix", "write")))
        # A file for each interface stays till the end. HDF5's metadata: less than a MiB a file.
        files = self.num_tasks if self.chosen["file_per_process"] else 1
        return len(INTERFACES) * (self.block_bytes * self.num_tasks + files * (1 << 20))
