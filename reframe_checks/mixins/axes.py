"""Nodes, ranks per node and file system: ReFrame parameters whose values the current system's partitions give.

Nodes x ranks per node x file systems x patterns are too many to run, and ReFrame needs milliseconds to list one. So
all patterns are tried at a few points (the smallest and the largest, unless the site says which), and at all points
only those few that stand for their kernel in scaling. The nightly suite is a part of that. A site chooses by
``points`` and ``nightly_points`` (:class:`iogauge.sites.Site`).
"""

import functools
import sys
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_after
from reframe.core.decorators import _register_test
from reframe.core.runtime import runtime, valid_sysenv_comb

from iogauge.check_options import CheckOptions
from iogauge.errors import InputError
from iogauge.sites import Environ, Partition, Site, arm_of, read_environ, read_site
from iogauge.validation import python_locator

CHECKOUT = Path(__file__).resolve().parents[2]

AXES = ("nodes", "ranks_per_node", "file_system")


@functools.cache
def sites() -> dict[str, Site]:
    """Partition name to its checked site model. A mistake in the site's configuration ends ReFrame with exit code 2."""
    system, file = runtime().system, _configuration_file()
    try:
        for environ in (environ for p in system.partitions for environ in p.environs):
            environ_of(environ)
        found = {p.fullname: read_site(p.extras, file=file) for p in system.partitions if p.extras}
        if not found:
            raise InputError(
                f"no partition of system {system.name} has extras with file_systems, nodes and ranks_per_node; "
                f"choose a site with -C site_configs/SITE.py",
                file=file,
            )
        if any(site.options != _options(found) for site in found.values()):
            raise InputError(
                "the partitions of a system must have the same options",
                file=file,
                line=python_locator(file)(("options",)),
                key="options",
            )
    except InputError as error:
        print(f"iogauge: error: {error}", file=sys.stderr)
        sys.exit(2)
    return found


@functools.cache
def partitions() -> tuple[Partition, ...]:
    """All partitions of the current system."""
    return tuple(
        Partition(p.name, tuple(e.name for e in p.environs), tuple(sites()[p.fullname].file_systems))
        for p in runtime().system.partitions
        if p.fullname in sites()
    )


def _configuration_file() -> Path | None:
    sources = [Path(s) for s in runtime().site_config.sources if Path(s).is_file()]
    return sources[-1] if sources else None


_environs: dict[str, Environ] = {}


def environ_of(environ) -> Environ:
    """The checked extras of one of ReFrame's environments, each read once. Raises :class:`InputError`."""
    said = f"{environ.name} {environ.extras}"
    if said not in _environs:
        _environs[said] = read_environ(environ.name, environ.extras, file=_configuration_file())
    return _environs[said]


def _options(found: dict[str, Site]) -> CheckOptions:
    return next(iter(found.values())).options


def axis(name: str) -> list:
    """All values of an axis over the partitions, in the order of the configuration."""
    return list(dict.fromkeys(value for site in sites().values() for value in getattr(site, name)))


def without_alias(check):
    """The same check without ReFrame's deprecated alias of env_vars, of which ReFrame warns itself at each variant of a check,
    with a walk up the stack: 2/3 of the time that listing takes.
    """
    check.var_space.vars.pop("variables", None)
    return check


def site_test(check):
    """Registers a check, as ``rfm.simple_test`` does, but only those variants that the current site tries.

    ``rfm.simple_test`` would make the whole product. The site's options become the check's defaults: ``-S``, which
    ReFrame looks at after this, wins.
    """
    for name, value in _options(sites()).of(check.kernel).items():
        if name in check.var_space:  # two checks of one kernel need not have the same
            check.setvar(name, value)
    without_alias(check)
    for number in range(check.num_variants):
        if check.tried_on(check.get_variant_info(number)["params"]):
            _register_test(check, variant_num=number)
    return check


class Axes(rfm.RegressionTestPlugin):
    """Crosses a test with the axes of the current system. To be registered with :func:`site_test`.

    A check gives ``nightly`` and ``scaling``, sets of patterns; a pattern is the values of the check's own parameters (the
    value, where there is one). A check with ``serial`` has one node and one rank, whatever the site's axes are.

    Gives ``nodes``, ``ranks_per_node`` and ``file_system`` from init on, and sets the suites (``tags``), ``valid_systems``
    to the partitions where the site tries that, ``num_tasks``, ``num_tasks_per_node`` and, from setup on,
    ``num_cpus_per_task`` and the launcher's options.
    """

    nodes = parameter(axis("nodes"), type=int, loggable=True)
    ranks_per_node = parameter(axis("ranks_per_node"), type=int, loggable=True)
    file_system = parameter(axis("file_systems"), type=str, loggable=True)

    nightly = frozenset()
    scaling = frozenset()
    serial = False

    @classmethod
    def fits(cls, site: Site, pattern) -> bool:
        """Can the pattern be tried on the site at all?"""
        return True

    @classmethod
    def pattern_in(cls, params):
        """The values of the check's own parameters, without those (``.NAME``) that ReFrame's ``-P`` makes of variables."""
        own = tuple(value for name, value in params.items() if name not in AXES and name[0] != ".")
        return own[0] if len(own) == 1 else own

    @classmethod
    def tried_on(cls, params) -> list[str]:
        """The partitions where the site tries the variant with these parameters."""
        pattern, file_system = cls.pattern_in(params), params["file_system"]
        point = (params["nodes"], params["ranks_per_node"])
        return [
            name
            for name, site in sites().items()
            if cls.fits(site, pattern)
            and (
                file_system in site.file_systems
                if cls.serial
                else site.tries(file_system, point, scaling=pattern in cls.scaling)
            )
        ]

    @property
    def _params(self):
        return {name: getattr(self, name) for name in type(self).param_space.params}

    @run_after("init")
    def choose_partitions(self):
        self.valid_systems = self.tried_on(self._params)

    @run_after("init")
    def choose_suites(self):
        self.tags = {"full"}
        if self.pattern_in(self._params) in self.nightly and any(
            self._is_nightly(sites()[n]) for n in self.valid_systems
        ):
            self.tags |= {"nightly"}

    def _is_nightly(self, site):
        if not site.file_systems[self.file_system].nightly:
            return False
        return self.serial or (self.nodes, self.ranks_per_node) in site.nightly_points_of(self.file_system)

    @run_after("init")
    def spread_ranks(self):
        self.num_tasks = self.nodes * self.ranks_per_node
        self.num_tasks_per_node = self.ranks_per_node

    @run_after("setup")
    def give_cpus(self):
        self.num_cpus_per_task = self.site.cpus_per_rank(self.ranks_per_node)

    @run_after("setup")
    def set_launcher_options(self):
        values = {
            "nodes": self.nodes,
            "ranks": self.num_tasks,
            "ranks_per_node": self.ranks_per_node,
            "cpus_per_rank": self.num_cpus_per_task,
        }
        self.job.launcher.options += [option.format(**values) for option in self.site.launcher_options]

    def launcher_command(self) -> str:
        """What starts a program on all ranks, for commands of our own in the job."""
        # ReFrame tells the job only just before it writes the script, and launchers ask it.
        self.job.num_tasks = self.num_tasks
        self.job.num_tasks_per_node = self.num_tasks_per_node
        self.job.num_cpus_per_task = self.num_cpus_per_task
        return self.job.launcher.run_command(self.job)

    @property
    def site(self) -> Site:
        """The current partition's site model; from setup on."""
        return sites()[self.current_partition.fullname]

    @property
    def series_arm(self) -> str:
        """What the keys of series in the current partition and environ have behind their ``@``; empty before setup."""
        if self.current_partition is None:
            return ""
        return arm_of(self.file_system, self.current_partition.name, self.current_environ.name, partitions())

    @property
    def series_arms(self) -> list[str]:
        """Those of all partitions and environs where the test can run, or of the current ones from setup on."""
        if self.current_partition is not None:
            return [self.series_arm]
        found = valid_sysenv_comb(self.valid_systems, self.valid_prog_environs)
        return [
            arm_of(self.file_system, partition.name, environ.name, partitions())
            for partition, environs in found.items()
            for environ in environs
        ]
