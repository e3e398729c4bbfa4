"""What a site offers: its file systems and the axes of the tests, from the ``extras`` of a ReFrame partition."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from iogauge.check_options import CheckOptions, Duration, Positive
from iogauge.darshan.preload import Runtime
from iogauge.errors import InputError
from iogauge.layout import Layout
from iogauge.spack import AbsolutePath, Choice
from iogauge.validation import Location, python_locator, validate

FileSystemType = Literal["nfs", "beeond", "lustre", "gpfs", "local", "memory", "other"]

#: Types as ``stat -f -c %T`` and ``df --output=fstype`` name them, for the guard in the job. ``other``: any is right.
MOUNTED_AS: dict[str, tuple[str, ...]] = {
    "nfs": ("nfs", "nfs4"),
    "beeond": ("beegfs", "beegfs_nodev", "fuse.beegfs", "fuse.glusterfs"),
    "lustre": ("lustre",),
    "gpfs": ("gpfs",),
    "local": ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay"),
    "memory": ("tmpfs", "ramfs"),
    "other": (),
}

#: Extras that ReFrame itself adds to every partition.
_ADDED_BY_REFRAME = {"scheduler", "launcher"}

Text = Annotated[str, Field(min_length=1)]


def _expression(path: str) -> str:
    if "\n" in path or '"' in path or "`" in path or "$(" in path:
        raise ValueError("a path with variables is allowed; quotes, commands and line breaks are not")
    return path


PathExpression = Annotated[Text, AfterValidator(_expression)]

#: What a launcher's option may name in braces.
LAUNCHER_FIELDS = ("nodes", "ranks", "ranks_per_node", "cpus_per_rank")


def _launcher_option(option: str) -> str:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(option) if name is not None]
    except ValueError as error:
        raise ValueError(f"braces: {error}") from error
    if unknown := [name for name in names if name not in LAUNCHER_FIELDS]:
        raise ValueError(
            f"{{{unknown[0]}}} is unknown; allowed: {', '.join(f'{{{name}}}' for name in LAUNCHER_FIELDS)}"
        )
    return option


LauncherOption = Annotated[Text, AfterValidator(_launcher_option)]

#: Nodes, ranks per node.
Point = tuple[Positive, Positive]


class Guard(BaseModel):
    """What a job makes sure of before it writes anything, besides path, space and quota.

    ``mountpoint``, a shell expression, has to be a mount point. ``mounted_as`` are the mount types that are right, instead
    of those that follow from the file system's type; empty: any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mountpoint: PathExpression | None = None
    mounted_as: tuple[Text, ...] | None = None


DayOfMonth = Annotated[int, Field(strict=True, ge=1, le=31)]
Weekday = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


class Maintenance(BaseModel):
    """When there usually is maintenance: nights that begin on these days are weighed by what such nights have shown.

    A window that is known by its dates is told to the history instead (``iogauge history maintenance``).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    days_of_month: tuple[DayOfMonth, ...] = ()
    weekdays: tuple[Weekday, ...] = ()

    @model_validator(mode="after")
    def _some_day(self) -> Maintenance:
        if not self.days_of_month and not self.weekdays:
            raise ValueError("no day; days_of_month (1 to 31), weekdays (Monday to Sunday) or both are expected")
        return self


class FileSystem(BaseModel):
    """A file system under the name that the site gives it.

    ``path`` is a shell expression, evaluated in the job. ``request`` are options for the scheduler, ``prepare`` commands
    run in the case's own folder before anything is written, after its ``layout`` was set. ``quota`` is a command that prints
    what is left (:mod:`iogauge.quota` says in which form).

    ``exclusive``: no two cases on it at once. Entries that are one and the same in truth, with other layouts perhaps, name it
    as their ``target``; without, each is its own. ``nodes`` and ``ranks_per_node`` narrow the site's axes: a node's own disk
    has ``nodes: [1]``. ``nightly: False`` leaves it to the full suite. ``maintenance``: on which days there is some.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: FileSystemType
    path: PathExpression
    request: tuple[Text, ...] = ()
    prepare: tuple[Text, ...] = ()
    quota: Text | None = None
    guard: Guard = Guard()
    layout: Layout = Layout()
    exclusive: bool = True
    target: Text | None = None
    nodes: tuple[Positive, ...] = ()
    ranks_per_node: tuple[Positive, ...] = ()
    nightly: bool = True
    maintenance: Maintenance | None = None

    @field_validator("quota")
    @classmethod
    def _one_line(cls, command: str | None) -> str | None:
        if command is not None and "\n" in command:
            raise ValueError("a command on one line is expected")
        return command

    @model_validator(mode="after")
    def _layout_fits(self) -> FileSystem:
        of = {"lustre": "lustre", "beeond": "beegfs"}.get(self.type)
        if self.layout.system not in ("", of):
            raise ValueError(
                f"layout: {self.layout} is {self.layout.system}'s, on type {self.type}; allowed: stripes on lustre, "
                f"targets and chunk_size on beeond"
            )
        return self

    @property
    def mounted_as(self) -> tuple[str, ...]:
        """The mount types that are right for it; empty: any."""
        return MOUNTED_AS[self.type] if self.guard.mounted_as is None else self.guard.mounted_as


class Site(BaseModel):
    """The ``extras`` of a partition. Nothing else may stand there, so that a misspelt key is found.

    The axes are ``nodes`` and ``ranks_per_node``; a *point* is one of each. Patterns that stand for their kernel in scaling
    (``scaling`` of a check) are tried at all points. All the others are tried at a few: ``points``, without which at the
    smallest and at the largest. The nightly suite runs at ``nightly_points``, without which at ``points``.

    ``cpus_per_node``, as the scheduler counts them (hardware threads, where they are on): a rank is given its share of them;
    without, one. ``launcher_options`` are the launcher's, in which ``{nodes}``, ``{ranks}``, ``{ranks_per_node}`` and
    ``{cpus_per_rank}`` are replaced. ``oversubscribe``: ranks may share cores. ``netcdf``: the kernels find a parallel
    netCDF-4 there that fits their MPI and HDF5, and it is to be tried. ``options``: volumes and the like, by kernel.
    ``portable_bands: False``: ratios to MPI-IO and POSIX are shown and not judged, as on nodes that share their cores.
    ``checks``: the files below ``reframe_checks`` that nights look at, where it is not to be all of them: those of the other
    kernels are then not even listed, which takes seconds.
    ``max_pending_time``: a job that has not started by then is cancelled, so that nodes that are down do not hold a night.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file_systems: dict[Text, FileSystem] = Field(min_length=1)
    nodes: tuple[Positive, ...] = Field(min_length=1)
    ranks_per_node: tuple[Positive, ...] = Field(min_length=1)
    points: tuple[Point, ...] = ()
    nightly_points: tuple[Point, ...] = ()
    cpus_per_node: Positive | None = None
    launcher_options: tuple[LauncherOption, ...] = ()
    oversubscribe: bool = False
    netcdf: bool = False
    portable_bands: bool = True
    max_pending_time: Duration = "12h"
    options: CheckOptions = CheckOptions()
    checks: tuple[Text, ...] = ()

    def axes_of(self, file_system: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Nodes and ranks per node on one of the file systems."""
        chosen = self.file_systems[file_system]
        return chosen.nodes or self.nodes, chosen.ranks_per_node or self.ranks_per_node

    def points_of(self, file_system: str) -> tuple[Point, ...]:
        """Where every pattern is tried."""
        nodes, ranks = self.axes_of(file_system)
        return self._on(file_system, self.points) or ((min(nodes), min(ranks)), (max(nodes), max(ranks)))

    def nightly_points_of(self, file_system: str) -> tuple[Point, ...]:
        """Where the nightly suite runs, if it does there."""
        return self._on(file_system, self.nightly_points) or self.points_of(file_system)

    def tries(self, file_system: str, point: Point, *, scaling: bool) -> bool:
        """Is a pattern tried there?"""
        if file_system not in self.file_systems:
            return False
        nodes, ranks = self.axes_of(file_system)
        return point in self.points_of(file_system) or (scaling and point[0] in nodes and point[1] in ranks)

    def cpus_per_rank(self, ranks_per_node: int) -> int:
        """What a rank is given of a node's CPUs."""
        return 1 if self.cpus_per_node is None else max(1, self.cpus_per_node // ranks_per_node)

    def target_of(self, file_system: str) -> str:
        """What two cases may not use at once, unless it is not exclusive."""
        return self.file_systems[file_system].target or file_system

    def _on(self, file_system: str, points: tuple[Point, ...]) -> tuple[Point, ...]:
        nodes, ranks = self.axes_of(file_system)
        return tuple(point for point in points if point[0] in nodes and point[1] in ranks)


class Environ(BaseModel):
    """The ``extras`` of an environment (ReFrame's *environ*), all optional.

    ``darshan`` is the library to preload, as a shell expression, or ``linked``; ``darshan_serial`` that for programs without
    MPI. ``programs`` says where upstream benchmarks
    are, by kernel. ``spack`` chooses the arm of a Spack stack from which kernels, upstream benchmarks and, unless ``darshan``
    names another one, Darshan's runtime come. ``kernels`` is the folder where they are installed, for a site that does not
    have each night build them. ``hdf5`` and ``mpi`` are the versions that its programs have to load, the latter as a part of
    what MPI calls itself; ``launcher`` is the program that starts them, where it is not the partition's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    darshan: Runtime = ""
    darshan_serial: Runtime = ""
    programs: dict[Text, Text] = {}
    kernels: AbsolutePath | None = None
    spack: Choice | None = None
    hdf5: Text | None = None
    launcher: Text | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> Environ:
        if self.kernels is not None and self.spack is not None:
            raise ValueError("kernels: with spack they come from its arm; one of the two is allowed")
        return self


def read_environ(name: str, extras: Mapping[str, Any], *, file: Path | None = None) -> Environ:
    """The checked extras of the environment ``name``. Raises :class:`iogauge.errors.InputError` with file, line and key."""
    return validate(
        Environ, dict(extras), file=file, locate=python_locator(file), prefix=("environments", name, "extras")
    )


class Partition(NamedTuple):
    """What of a partition of ReFrame tells arms apart: its environs, the usual one first, and its file systems."""

    name: str
    environs: tuple[str, ...]
    file_systems: tuple[str, ...]


def arm_of(file_system: str, partition: str, environ: str, partitions: Sequence[Partition]) -> str:
    """What stands behind the ``@`` in the keys of series measured there: ``PARTITION``, ``ENVIRON`` or ``PARTITION+ENVIRON``.

    The first of the partitions with the file system is not named, nor is the first environ of a partition: their keys
    have no arm. ``partitions`` are all of the site, in the order of its configuration.
    """
    with_it = [one for one in partitions if file_system in one.file_systems]
    here = next(one for one in with_it if one.name == partition)
    words = [partition] * (here is not with_it[0]) + [environ] * (environ != here.environs[0])
    return "+".join(words)


def arms_of(file_system: str, partitions: Sequence[Partition]) -> dict[str, tuple[str, str]]:
    """All arms of a file system, each with its partition and environ. Raises :class:`InputError` when two have one name."""
    found: dict[str, tuple[str, str]] = {}
    for partition in partitions:
        for environ in partition.environs if file_system in partition.file_systems else ():
            arm, here = arm_of(file_system, partition.name, environ, partitions), (partition.name, environ)
            if found.setdefault(arm, here) != here:
                raise InputError(
                    f"{environ!r} of partition {partition.name} and {found[arm][1]!r} of {found[arm][0]} are both arm @{arm} "
                    f"of {file_system}; name one of them otherwise",
                    key="environments",
                )
    return found


def _contradictions(site: Site) -> Iterator[tuple[Location, str]]:
    """What is right by itself and not with the rest: where it stands, and why."""
    for name, file_system in site.file_systems.items():
        for axis in ("nodes", "ranks_per_node"):
            allowed = getattr(site, axis)
            for value in getattr(file_system, axis):
                if value not in allowed:
                    yield (
                        ("file_systems", name, axis),
                        f"{value} is none of the partition's {axis}; allowed: {_listed(allowed)}",
                    )
        shared = [other for other in site.file_systems if site.target_of(other) == site.target_of(name)]
        if any(site.file_systems[other].exclusive != file_system.exclusive for other in shared):
            yield (
                ("file_systems", name, "exclusive"),
                f"{' and '.join(shared)} are one target; all or none are exclusive",
            )
    for key in ("points", "nightly_points"):
        for point in getattr(site, key):
            if point[0] not in site.nodes or point[1] not in site.ranks_per_node:
                yield (
                    (key,),
                    f"{list(point)} is not on the axes; allowed: a number of nodes of {_listed(site.nodes)} with ranks per "
                    f"node of {_listed(site.ranks_per_node)}",
                )
    if site.cpus_per_node is not None and not site.oversubscribe and max(site.ranks_per_node) > site.cpus_per_node:
        yield ("cpus_per_node",), f"{site.cpus_per_node} are fewer than {max(site.ranks_per_node)} ranks per node"


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def read_site(extras: Mapping[str, Any], *, file: Path | None = None, prefix: Location = ()) -> Site:
    """The checked site model of one partition.

    Raises :class:`iogauge.errors.InputError` with the file, the line, the key and what is allowed.
    """
    written = {name: value for name, value in extras.items() if name not in _ADDED_BY_REFRAME}
    locate = python_locator(file)
    site = validate(Site, written, file=file, locate=locate, prefix=prefix)
    for location, message in _contradictions(site):
        where = prefix + location
        raise InputError(message, file=file, line=locate(where), key=".".join(map(str, where)))
    return site
