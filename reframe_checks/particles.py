"""VPIC-IO's write and BD-CATS-IO's read as h5bench has them: particles of eight variables in time steps."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from .mixins.kernel import KernelCheck

PARTICLE_BYTES = 32

#: Locality, dimensions, selection of the nightly suite. The crossings of all are in the full suite.
NIGHTLY = {
    ("CC", 1, "full"),
    ("CI", 1, "full"),
    ("IC", 1, "full"),
    ("II", 1, "full"),
    ("CC", 2, "full"),
    ("CC", 3, "full"),
    ("CC", 1, "partial"),
    ("CC", 1, "strided"),
}


@rfm.simple_test
class ParticlesCheck(KernelCheck):
    """Localities, dimensions and selections; compared with CC, 1-D and the full read in the same job."""

    kernel = "particles"
    locality = parameter(["CC", "CI", "IC", "II"], type=str, loggable=True)
    dimensions = parameter([1, 2, 3], type=int, loggable=True)
    selection = parameter(["full", "partial", "strided"], type=str, loggable=True)

    particles = variable(int, value=1 << 18)  # a rank's, in a step
    steps = variable(int, value=2)
    fraction = variable(float, value=0.5)
    alignment = variable(int, value=4096)

    @run_after("init")
    def choose_suites(self):
        self.tags = {"full"}
        if (self.locality, self.dimensions, self.selection) in NIGHTLY:
            self.tags |= {"nightly"}

    def pattern(self):
        return {
            "locality": self.locality,
            "dimensions": self.dimensions,
            "selection": self.selection,
            "chunk": 0,
            "file_per_process": False,
        }

    def pattern_options(self):
        options = {
            "particles": self.particles,
            "steps": self.steps,
            "locality": self.locality,
            "dimensions": self.dimensions,
            "selection": self.selection,
            "alignment": self.alignment,
        }
        if self.selection == "partial":
            options["fraction"] = self.fraction
        if self.selection == "strided":
            # A quarter of the rows, in blocks of about 4 KiB a variable.
            row = max(1, round(self.particles ** (1 - 1 / self.dimensions)))
            block = max(1, 1024 // row)
            options |= {"block": block, "stride": 4 * block}
        return options

    def baselines(self):
        others = super().baselines()
        if self.locality != "CC":
            others.append("locality=CC")
        if self.dimensions != 1:
            others.append("dimensions=1")
        if self.selection != "full":
            others.append("selection=full")
        return others

    def bytes_written(self):
        # The alignment costs at most one unit a dataset, HDF5's metadata less than a MiB.
        data = self.particles * PARTICLE_BYTES * self.steps * self.num_tasks
        return data + 8 * self.steps * self.alignment + (1 << 20)
