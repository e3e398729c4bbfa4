"""Nodes, ranks per node and file system: ReFrame parameters whose values the current system's partitions give."""

import functools
import sys
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_after
from reframe.core.runtime import runtime

from iogauge.errors import InputError
from iogauge.sites import Site, read_site


@functools.cache
def sites() -> dict[str, Site]:
    """Partition name to its checked site model. A mistake in the site's configuration ends ReFrame with exit code 2."""
    system = runtime().system
    sources = [Path(s) for s in runtime().site_config.sources if Path(s).is_file()]
    file = sources[-1] if sources else None
    try:
        found = {p.fullname: read_site(p.extras, file=file) for p in system.partitions if p.extras}
        if not found:
            raise InputError(
                f"no partition of system {system.name} has extras with file_systems, nodes and ranks_per_node; "
                f"choose a site with -C site_configs/SITE.py",
                file=file,
            )
    except InputError as error:
        print(f"iogauge: error: {error}", file=sys.stderr)
        sys.exit(2)
    return found


def axis(name: str) -> list:
    """All values of an axis over the partitions, in the order of the configuration."""
    return list(dict.fromkeys(value for site in sites().values() for value in getattr(site, name)))


class Axes(rfm.RegressionTestPlugin):
    """Crosses a test with the axes of the current system.

    Gives ``nodes``, ``ranks_per_node`` and ``file_system`` from init on, and sets ``valid_systems`` to the partitions that
    offer that combination, ``num_tasks`` and ``num_tasks_per_node``.
    """

    nodes = parameter(axis("nodes"), type=int, loggable=True)
    ranks_per_node = parameter(axis("ranks_per_node"), type=int, loggable=True)
    file_system = parameter(axis("file_systems"), type=str, loggable=True)

    @run_after("init")
    def choose_partitions(self):
        self.valid_systems = [
            name
            for name, site in sites().items()
            if self.nodes in site.nodes
            and self.ranks_per_node in site.ranks_per_node
            and self.file_system in site.file_systems
        ]

    @run_after("init")
    def spread_ranks(self):
        self.num_tasks = self.nodes * self.ranks_per_node
        self.num_tasks_per_node = self.ranks_per_node
        self.num_cpus_per_task = 1

    @property
    def site(self) -> Site:
        """The current partition's site model; from setup on."""
        return sites()[self.current_partition.fullname]
