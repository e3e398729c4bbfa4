"""benchio: one array in blocks with halos, written once through each of its methods."""

from functools import cached_property

from reframe.core.builtins import parameter, variable

from iogauge import series
from iogauge.adapters import benchio

from .mixins.axes import site_test
from .mixins.upstream import Launching, UpstreamCheck, second_names

#: Methods, the first one the case itself and the others its baselines, and what the size is of.
CASES = {
    "shared": (["hdf5", "mpiio"], "local"),
    "shared-strong": (["hdf5", "mpiio"], "global"),
    "netcdf": (["netcdf"], "local"),
    "serial": (["serial"], "local"),
    "file-per-process": (["proc"], "local"),
    "file-per-node": (["node"], "local"),
    "own": ([], "local"),
}

NIGHTLY = {"shared"}


@site_test
class BenchioCheck(UpstreamCheck):
    """Each method in a launch of its own: the first one of a launch would pay for starting MPI-IO and HDF5."""

    kernel = "benchio"
    package = "davidhenty/benchio"
    nightly = NIGHTLY
    operations = ("write",)
    case = parameter(list(CASES), type=str, loggable=True)

    size = variable(str, value="256x256x128")  # elements: a rank's, or all ranks' where the case scales strongly
    repeats = 5

    @property
    def is_own(self):
        return self.case == "own"

    @cached_property
    def arguments(self):
        methods, scope = CASES[self.case]
        size = [int(length) for length in self.size.split("x")]
        if scope == "global":  # what the process grid does not divide, it would cut
            size = [-(-n // p) * p for n, p in zip(size, benchio.process_grid(self.num_tasks), strict=True)]
        text = self.own or " ".join([*map(str, size), scope, *methods, "unstriped"])
        return benchio.check_arguments(text, self.num_tasks)

    def check_own(self, ranks):
        benchio.check_arguments(self.own, ranks)

    @property
    def main(self):
        return "" if self.is_own else CASES[self.case][0][0]

    @property
    def method(self):
        return self.main or self.arguments.methods[0]

    @property
    def interface(self):
        return benchio.METHODS[self.method][0]

    @property
    def collective(self):
        return benchio.METHODS[self.method][1] == "all"

    @property
    def own_name(self):
        return self.own_hash(self.own)

    def pattern(self):
        arguments = self.arguments
        return benchio.pattern_of(arguments, self.method, arguments.stripings[0], self.own_name)

    def keys(self):
        if not self.is_own:
            return super().keys()
        found = []
        for method in self.arguments.methods:
            for striping in self.arguments.stripings:
                interface, writers = benchio.METHODS[method]
                pattern = benchio.pattern_of(self.arguments, method, striping, self.own_name)
                found.append(
                    self.series_key("write", series.label_of(self.kernel, pattern, writers == "all"), interface)
                )
        return found

    def sets(self):
        """The arguments of the launches of one round."""
        if self.is_own:
            return [self.arguments]
        arguments = self.arguments
        return [
            benchio.Arguments(arguments.size, arguments.scope, (method,), arguments.stripings)
            for method in arguments.methods
        ]

    def launches(self):
        program = self.path_of("benchio")
        folders = " ".join(benchio.STRIPINGS)
        found = []
        for arguments in self.sets():
            files = benchio.files_of(arguments, self.num_tasks, self.nodes)
            name = f"proof of {' '.join(arguments.methods)}"
            before = [f"mkdir -p {folders}", *second_names(files)]
            found.append(Launching(name, [program, *arguments.words()], before=before))
        return found + [
            Launching(
                f"launch {number + 1} of {' '.join(arguments.methods)}",
                [program, *arguments.words()],
                before=[f"rm -f {' '.join(f'{folder}/*' for folder in benchio.STRIPINGS)}"],
            )
            for number in range(self.repeats)
            for arguments in self.sets()
        ]

    def measured(self, job, launches):
        sets = self.sets()
        found = []
        for number, arguments in enumerate(sets):
            found += benchio.measurements(
                job,
                launches[len(sets) + number :: len(sets)],
                arguments,
                proof=launches[number],
                main=self.main,
                own=self.own_name,
            )
        return found

    @property
    def main_set(self):
        """Number of the case itself among the sets."""
        return 0 if self.is_own else self.arguments.methods.index(self.main)

    def last_round(self):
        return {len(self.launches()) - len(self.sets()) + self.main_set: True}

    def measured_round(self, job, launches):
        chosen = self.sets()[self.main_set]
        return benchio.measurements(job, launches, chosen, proof=None, main=self.main, own=self.own_name)

    def data_file_names(self):
        return rf"(?:{'|'.join(benchio.STRIPINGS)})/(?:{'|'.join(self.sets()[self.main_set].methods)})\d*\.dat"

    def bytes_written(self):
        one = self.arguments.logical_bytes(self.num_tasks)
        return (len(self.arguments.methods) * len(self.arguments.stripings) + 1) * (one + (1 << 20))
