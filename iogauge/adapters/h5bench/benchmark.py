"""What every kind of h5bench's suite has in common: how it is started, what is announced of it, and how it is judged."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iogauge.adapters.upstream import Job, Launch, Pattern, record
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement, Program, Repeat


@dataclass(frozen=True)
class Announced:
    """A series that a benchmark is going to have."""

    operation: str
    pattern: Pattern
    collective: bool


def measured(
    job: Job,
    series: Announced,
    repeats: Sequence[Repeat],
    *,
    logical_bytes: int,
    file_bytes: int,
    verifies: bool = False,
) -> Measurement:
    """What h5bench's ``repeats`` measured of a series; bytes are of a repeat, ``verifies`` says that it compared them."""
    return record(
        job,
        Program(name="h5bench", version=None, verifies=verifies),
        repeats,
        benchmark="h5bench",
        operation=series.operation,
        interface="hdf5",
        collective=series.collective,
        pattern=series.pattern,
        logical_bytes=logical_bytes,
        file_bytes=file_bytes,
        hdf5=None,
    )


class Benchmark(ABC):
    """One entry of a suite, looked at before anything runs: its ``kind``, and the ``file`` it works on (empty: none)."""

    kind: str
    file: str

    @property
    @abstractmethod
    def program(self) -> str:
        """The executable's name."""

    @abstractmethod
    def words(self, configuration: str) -> list[str]:
        """What follows the program; ``configuration`` is where its :meth:`text` lies."""

    def text(self) -> str:
        """The configuration file; empty: all is in the words."""
        return ""

    @property
    def results(self) -> list[str]:
        """Files that it writes for us, without a folder."""
        return []

    @property
    def before(self) -> list[str]:
        """Shell commands in the case's folder before each launch: what it would not overwrite goes."""
        return []

    @property
    def asynchronous(self) -> bool:
        """Through a connector?"""
        return False

    @property
    def reads_what_was_there(self) -> bool:
        """Then its files leave the page cache before each launch."""
        return False

    @property
    def reads_what_it_wrote(self) -> bool:
        """Then how much of its files is in the page cache is looked at after each launch."""
        return False

    @abstractmethod
    def announced(self, own: str = "") -> list[Announced]:
        """Of each measurement, in the order of :meth:`measurements`; ``own`` tells a site's own configurations apart."""

    @abstractmethod
    def file_bytes(self, ranks: int) -> int:
        """About what its files have at the end, rather too much."""

    @abstractmethod
    def measurements(self, job: Job, launches: Sequence[Launch], *, own: str = "") -> list[Measurement]:
        """A repeat for each launch. Raises :class:`Refusal`."""


def own_pattern(pattern: Pattern, own: str) -> Pattern:
    """``pattern`` with the name of a site's own configuration, where it is one."""
    return pattern | {"own": own} if own else pattern


def plain_name(name: str, where: str, key: str = "file") -> str:
    """Raises :class:`InputError` unless it is a name without a folder."""
    if re.fullmatch(r"[A-Za-z0-9_.-]+", name) is None:
        raise InputError(
            f"{name!r}: a name without a folder is expected; it is made in the case's own folder", file=where, key=key
        )
    return name


def texts_of(values: Mapping[str, Any], where: str) -> dict[str, str]:
    """The values as the runner writes them. Raises :class:`InputError` for what has more than one line, or no text."""
    found: dict[str, str] = {}
    for key, value in values.items():
        text = str(value).strip()
        if isinstance(value, (Mapping, list)) or value is None or not text.isprintable():
            raise InputError(f"{text[:40]!r}: one line of text is expected", file=where, key=str(key))
        found[str(key)] = text
    return found


def size_on_disk(launch: Launch, names: str, least: int, what: str) -> int:
    """Bytes of the files whose names match ``names``; 0: not looked at. Raises :class:`Refusal` for fewer than ``least``."""
    if launch.files is None:
        return 0
    size = sum(size for file, size in launch.files.items() if re.fullmatch(names, Path(file).name))
    if size < least:
        raise Refusal(f"{launch.name}: {size} bytes are in {what}, {least} were moved")
    return size
