"""What a site offers: its file systems and the axes of the tests, from the ``extras`` of a ReFrame partition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from iogauge.layout import Layout
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

Positive = Annotated[int, Field(gt=0, strict=True)]
Text = Annotated[str, Field(min_length=1)]


def _expression(path: str) -> str:
    if "\n" in path or '"' in path or "`" in path or "$(" in path:
        raise ValueError("a path with variables is allowed; quotes, commands and line breaks are not")
    return path


PathExpression = Annotated[Text, AfterValidator(_expression)]


class Guard(BaseModel):
    """What a job makes sure of before it writes anything, besides path, space and quota.

    ``mountpoint``, a shell expression, has to be a mount point. ``mounted_as`` are the mount types that are right, instead
    of those that follow from the file system's type; empty: any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mountpoint: PathExpression | None = None
    mounted_as: tuple[Text, ...] | None = None


class FileSystem(BaseModel):
    """A file system under the name that the site gives it.

    ``path`` is a shell expression, evaluated in the job. ``request`` are options for the scheduler, ``prepare`` commands
    run in the case's own folder before anything is written, after its ``layout`` was set. ``quota`` is a command that prints
    what is left (:mod:`iogauge.quota` says in which form). ``exclusive``: no two cases on it at once.
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

    ``netcdf``: the kernels find a parallel netCDF-4 there that fits their MPI and HDF5, and it is to be tried.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file_systems: dict[Text, FileSystem] = Field(min_length=1)
    nodes: tuple[Positive, ...] = Field(min_length=1)
    ranks_per_node: tuple[Positive, ...] = Field(min_length=1)
    oversubscribe: bool = False
    netcdf: bool = False


def read_site(extras: Mapping[str, Any], *, file: Path | None = None, prefix: Location = ()) -> Site:
    """The checked site model of one partition.

    Raises :class:`iogauge.errors.InputError` with the file, the line, the key and what is allowed.
    """
    written = {name: value for name, value in extras.items() if name not in _ADDED_BY_REFRAME}
    return validate(Site, written, file=file, locate=python_locator(file), prefix=prefix)
