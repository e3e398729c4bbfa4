"""What ``scripts/spack-setup`` leaves of an installed Spack environment: which program is where, of which spec, for each arm.

A *stack* is what is installed together (``spack_env/stacks``), an *arm* one view of it, with one HDF5 and one MPI. No Spack is
needed to read or to use them.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from iogauge.errors import InputError
from iogauge.validation import validate

#: Below the folder of what is generated (:func:`iogauge.nightly.home`).
ENVIRONMENTS = Path("spack", "envs")

ARMS_FILE = "arms.json"
LOCK_FILE = "spack.lock"

#: The environment's extra that chooses an arm.
EXTRA = "spack"

Text = Annotated[str, Field(min_length=1)]


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("an absolute path is expected")
    return path


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]

#: As it stands in paths and on command lines.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class Choice(BaseModel):
    """What an environment of a site's configuration says in its extra ``spack``: the arm that its tests use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stack: Name
    arm: Name

    def __str__(self) -> str:
        return f"{self.stack}/{self.arm}"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Spec(_Record):
    """A concrete spec that is installed: ``hash`` is Spack's DAG hash, which every dependency and option is part of."""

    name: Text
    version: Text
    hash: Annotated[str, Field(pattern="^[a-z0-9]{32}$")]
    prefix: AbsolutePath

    def __str__(self) -> str:
        return f"{self.name}@{self.version}/{self.hash}"


class Connector(_Record):
    """The async VOL connector of an arm, as HDF5's environment variables name it."""

    plugin_path: AbsolutePath
    connector: Text

    @property
    def variables(self) -> dict[str, str]:
        """For the environment of a program that uses it."""
        return {"HDF5_PLUGIN_PATH": str(self.plugin_path), "HDF5_VOL_CONNECTOR": self.connector}


class Arm(_Record):
    """``view`` holds ``bin``; ``darshan`` is the library to preload, built for this MPI and HDF5."""

    view: AbsolutePath
    mpi: Text
    hdf5: Text | None
    darshan: AbsolutePath | None
    vol: Connector | None
    specs: tuple[Spec, ...] = Field(min_length=1)

    def program(self, name: str) -> Path | None:
        """The program's path in the view; ``None``: it has none."""
        path = self.view / "bin" / name
        return path if path.is_file() and os.access(path, os.X_OK) else None

    def spec_of(self, program: Path) -> Spec | None:
        """The spec whose prefix the program, a link of the view perhaps, really lies in."""
        real = program.resolve()
        return next((spec for spec in self.specs if real.is_relative_to(spec.prefix.resolve())), None)


class Release(_Record):
    """A Git repository as it was checked out."""

    commit: Text


class Sources(_Record):
    """Where packages came from, instead of being built here from their own places."""

    mirrors: tuple[str, ...] = ()
    buildcaches: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()


class Environment(_Record):
    """An installed stack, as ``arms.json`` describes it; ``lock_sha256`` is the digest of the lock it was installed from."""

    site: Text
    stack: Text
    spack: Release
    packages: Release
    lock_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    used: Sources = Sources()
    arms: dict[Text, Arm] = Field(min_length=1)


def folder_of(home: Path, site: str, stack: str) -> Path:
    """Where a stack's environment is."""
    return home / ENVIRONMENTS / site / stack


def read_environment(home: Path, site: str, stack: str) -> Environment:
    """The environment of a stack that is installed below ``home``.

    Raises :class:`InputError`, with file and key, when there is none, when it is not the one that its folder and its lock
    say, or when something in it is not what it should be.
    """
    folder = folder_of(home, site, stack)
    file = folder / ARMS_FILE
    anew = f"scripts/spack-setup --site {site} --stack {stack} makes it"
    try:
        document = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise InputError(f"the Spack environment is not installed; {anew}", file=file) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file) from error
    except ValueError as error:
        raise InputError(f"not JSON: {error}; {anew} anew", file=file) from error
    found = validate(Environment, document, file=file)
    for key, is_, should in (("site", found.site, site), ("stack", found.stack, stack)):
        if is_ != should:
            raise InputError(f"{is_!r}, in the folder of {should!r}; {anew} anew", file=file, key=key)
    _check_lock(found, folder, anew)
    return found


def _check_lock(found: Environment, folder: Path, anew: str) -> None:
    lock = folder / LOCK_FILE
    try:
        digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; {anew} anew", file=lock) from error
    if digest != found.lock_sha256:
        raise InputError(
            f"is not the digest of {LOCK_FILE} beside it, which was changed after the installation; {anew} anew",
            file=folder / ARMS_FILE,
            key="lock_sha256",
        )


def read_arm(home: Path, site: str, choice: Choice) -> Arm:
    """The arm that an environment has chosen, with its view in place. Raises :class:`InputError`."""
    file = folder_of(home, site, choice.stack) / ARMS_FILE
    arms = read_environment(home, site, choice.stack).arms
    if choice.arm not in arms:
        raise InputError(f"no arm {choice.arm!r}; there are: {', '.join(arms)}", file=file, key="arms")
    arm = arms[choice.arm]
    if not (arm.view / "bin").is_dir():
        raise InputError(f"{arm.view} has no folder bin", file=file, key=f"arms.{choice.arm}.view")
    return arm
