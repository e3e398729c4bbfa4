"""For ``iogauge site check --submit``: two ranks, on two nodes where there are two, write and read a MiB."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from iogauge.site_check import SUITE

from .mixins.axes import sites
from .particles import Particles


@rfm.simple_test
class SiteCheck(Particles):
    """One case for each partition and file system; not a series of any suite."""

    nodes = parameter([1, 2], type=int, loggable=True)
    ranks_per_node = parameter([1, 2], type=int, loggable=True)

    particles = 16384
    steps = 1
    repeats = 1
    warmup = 0

    @run_after("init")
    def choose_partitions(self):
        """Two ranks in all."""
        self.valid_systems = [
            name
            for name, site in sites().items()
            if self.file_system in site.file_systems
            and self.nodes == min(2, max(site.axes_of(self.file_system)[0]))
            and self.nodes * self.ranks_per_node == 2
        ]

    @run_after("init")
    def choose_suites(self):
        self.tags = {SUITE}

    def pattern(self):
        return {"locality": "CC", "dimensions": 1, "selection": "full", "chunk": 0, "file_per_process": False}

    def pattern_options(self):
        return {"particles": self.particles, "steps": self.steps, "alignment": self.alignment}

    def baselines(self):
        return []
