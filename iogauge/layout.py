"""How a parallel file system lays files out over its targets: what a site asks for, and what its tools say there is.

Lustre: ``stripe_count``, ``stripe_size`` and ``pool``, or ``components`` of a progressive layout (PFL). BeeGFS: ``targets``
and ``chunk_size``. Nothing at all is the site's default, which is read and recorded too. GPFS has nothing to set; its pool,
replication and block size are recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

#: In a job's stage folder: what the tool said of the case's folder, and of a data file that the kernel made there.
FOLDER_FILE = "layout_folder.txt"
DATA_FILE = "layout_file.txt"

#: What the job writes into them where the tool is not there.
NO_TOOL = "no tool: "

#: The end of the last component, and a stripe count or number of targets that means all of them.
TO_THE_END = -1
ALL = -1

_KIB = 1024
_LUSTRE_STRIPE_UNIT = 64 * _KIB
_BEEGFS_LEAST_CHUNK = 64 * _KIB
_ENDS_WRONG = "components: each end must lie behind the one before; only the last may be 'EOF'"


def _size(value: Any) -> Any:
    """``"4M"`` as bytes, ``"EOF"`` as the end of a file."""
    if value == "EOF":
        return TO_THE_END
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d+)([KMGT]?)", value)
    if match is None:
        raise ValueError("bytes, or a number with K, M, G or T (1024-based)")
    return int(match[1]) * 1024 ** " KMGT".index(match[2] or " ")


Size = Annotated[int, BeforeValidator(_size), Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=ALL)]
Text = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]


class _Stripes(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    stripe_count: Count | None = None
    stripe_size: Size | None = None
    pool: Text | None = None

    @model_validator(mode="after")
    def _possible(self) -> _Stripes:
        if self.stripe_count == 0:
            raise ValueError("stripe_count: 1 or more, or -1 for all targets")
        size = self.stripe_size
        if size is not None and (size <= 0 or size % _LUSTRE_STRIPE_UNIT):
            raise ValueError("stripe_size: a multiple of 64K")
        return self

    def _options(self) -> list[str]:
        """Of ``lfs setstripe``."""
        named = {"-c": self.stripe_count, "-S": self.stripe_size, "-p": self.pool}
        return [word for option, value in named.items() if value is not None for word in (option, str(value))]


class Component(_Stripes):
    """A part of a Lustre file up to ``end``. ``mdt``: kept on the metadata target (Data-on-MDT)."""

    end: Size
    mdt: bool = False

    def options(self) -> list[str]:
        """Of ``lfs setstripe``."""
        return ["-E", str(self.end), *(["-L", "mdt"] if self.mdt else self._options())]


class Layout(_Stripes):
    """What a site asks for; without anything, its default."""

    components: tuple[Component, ...] = ()
    targets: Annotated[int, Field(strict=True, gt=0)] | None = None
    chunk_size: Size | None = None

    @property
    def system(self) -> Literal["lustre", "beegfs", ""]:
        """Whose words it is written in; empty: the default is asked for."""
        if self.targets is not None or self.chunk_size is not None:
            return "beegfs"
        return "lustre" if self.components or self._options() else ""

    @model_validator(mode="after")
    def _of_one_kind(self) -> Layout:
        if self.system == "beegfs" and (self.components or self._options()):
            raise ValueError(
                "stripe_count, stripe_size, pool and components are Lustre's; targets and chunk_size BeeGFS's"
            )
        if self.components and self._options():
            raise ValueError("stripe_count, stripe_size and pool belong into the components when there are some")
        ends = [component.end for component in self.components]
        if any(end <= 0 for end in ends[:-1]) or ends[:-1] != sorted(set(ends[:-1])):
            raise ValueError(_ENDS_WRONG)
        if len(ends) > 1 and ends[-1] != TO_THE_END and ends[-1] <= ends[-2]:
            raise ValueError(_ENDS_WRONG)
        chunk = self.chunk_size
        if chunk is not None and (chunk < _BEEGFS_LEAST_CHUNK or chunk & (chunk - 1)):
            raise ValueError("chunk_size: a power of two, 64K or more")
        return self

    def arguments(self) -> list[str]:
        """For ``iogauge_layout`` in the job (case_folder.sh): Lustre's are those of ``lfs setstripe``."""
        if self.system == "beegfs":
            return [str(self.targets or ""), str(self.chunk_size or "")]
        if self.components:
            return [word for component in self.components for word in component.options()]
        return self._options()

    def differences(self, found: Found) -> list[str]:
        """What was asked for and is otherwise in ``found``; what was not asked for may be anything."""
        if self.system == "beegfs":
            return [
                *_differs("targets", self.targets, found.stripe_count),
                *_differs("chunk size", self.chunk_size, found.stripe_size),
            ]
        if self.components:
            asked, there = [c.end for c in self.components], [c.end for c in found.components]
            if asked != there:
                return [f"components end at {_ends(asked)}, not at {_ends(there)}"]
            pairs = zip(self.components, found.components, strict=True)
            return [
                f"component {n}: {text}"
                for n, (a, b) in enumerate(pairs, 1)
                for text in _of_stripes(a, b, a.mdt, b.mdt)
            ]
        if self.system and len(found.components) > 1:
            return [f"one component, not {len(found.components)}"]
        there_one = found.components[0] if found.components else found
        return _of_stripes(self, there_one, False, False)

    def __str__(self) -> str:
        if self.system == "beegfs":
            return _words(self.targets, self.chunk_size, None, "targets")
        if self.components:
            return _components(self.components)
        return (
            _words(self.stripe_count, self.stripe_size, self.pool, "stripes") if self.system else "the site's default"
        )


class FoundComponent(BaseModel):
    """A component as ``lfs getstripe`` lists it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    end: int = TO_THE_END
    stripe_count: int | None = None
    stripe_size: int | None = None
    pool: str | None = None
    mdt: bool = False


class Found(FoundComponent):
    """What a tool says of a folder or a file. ``facts``: what is told where nothing can be set (GPFS). ``unknown``: why
    nothing is known."""

    components: tuple[FoundComponent, ...] = ()
    targets_word: str = "stripes"
    facts: str = ""
    unknown: str = ""

    def __str__(self) -> str:
        if self.unknown:
            return f"not known ({self.unknown})"
        if self.components:
            return _components(self.components)
        return self.facts or _words(self.stripe_count, self.stripe_size, self.pool, self.targets_word)


def _differs(name: str, asked: Any, found: Any) -> list[str]:
    return [] if asked is None or asked == found else [f"{name} {asked}, not {found}"]


def _of_stripes(asked: _Stripes, found: FoundComponent, asked_mdt: bool, found_mdt: bool) -> list[str]:
    if asked_mdt or found_mdt:
        return [] if asked_mdt == found_mdt else [f"on {'an MDT' if asked_mdt else 'OSTs'}"]
    # All targets are as many as there are: a file tells the number.
    any_count = asked.stripe_count == ALL and (found.stripe_count or 0) != 0
    return [
        *([] if any_count else _differs("stripe count", asked.stripe_count, found.stripe_count)),
        *_differs("stripe size", asked.stripe_size, found.stripe_size),
        *_differs("pool", asked.pool, found.pool),
    ]


def in_words(size: int) -> str:
    for power, letter in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size % 1024**power == 0:
            return f"{size // 1024**power} {letter}"
    return f"{size} bytes"


def _words(count: int | None, size: int | None, pool: str | None, unit: str) -> str:
    number = f"{'all' if count == ALL else count} {unit[:-1] if count == 1 else unit}" if count is not None else ""
    parts = [number, f"of {in_words(size)}" if size is not None else "", f"in pool {pool}" if pool else ""]
    return " ".join(filter(None, parts))


def _ends(ends: Iterable[int]) -> str:
    return ", ".join("EOF" if end == TO_THE_END else in_words(end) for end in ends) or "nowhere"


def _components(components: Iterable[Component | FoundComponent]) -> str:
    words = []
    for c in components:
        what = "on an MDT" if c.mdt else _words(c.stripe_count, c.stripe_size, c.pool, "stripes")
        words.append(f"to {_ends([c.end])}: {what or 'default'}")
    return "; ".join(words)


# --- what the tools print ---------------------------------------------------------------------------------------------


def read_lustre(text: str) -> Found:
    """``lfs getstripe`` of one file, or ``lfs getstripe -d`` of a folder."""
    _, *parts = re.split(r"^\s*lcme_id:", text, flags=re.MULTILINE)
    if not parts:
        return Found(**_stripes_in(text)) if "stripe_count:" in text else Found(unknown=_unread(text))
    return Found(components=tuple(FoundComponent(**_stripes_in(part)) for part in parts))


def _stripes_in(text: str) -> dict[str, Any]:
    def value(name: str) -> str | None:
        match = re.search(rf"\b(?:lmm_)?{name}:[ \t]*(\S+)", text)
        return match[1] if match else None

    count, size, end = value("stripe_count"), value("stripe_size"), value(r"lcme_extent\.e_end")
    found = {
        "stripe_count": None if count is None else int(count),
        "stripe_size": None if size is None else int(size),
        "pool": value("pool"),
        "mdt": "mdt" in (value("pattern") or ""),
        "end": TO_THE_END if end in (None, "EOF") else int(end),
    }
    return {name: one for name, one in found.items() if one is not None}


def read_beegfs(text: str) -> Found:
    """``beegfs-ctl --getentryinfo``, or ``beegfs entry info --retro`` of BeeGFS 8. A file has targets, a folder wants some."""
    targets = re.search(r"Number of storage targets: desired: (\d+)(?:; actual: (\d+))?", text)
    chunk = re.search(r"Chunksize: (\d+)([kKMG]?)", text)
    if targets is None or chunk is None:
        return Found(unknown=_unread(text))
    return Found(
        stripe_count=int(targets[2] or targets[1]),
        stripe_size=int(chunk[1]) * 1024 ** " KMG".index(chunk[2].upper() or " "),
        targets_word="targets",
    )


def read_gpfs(text: str) -> Found:
    """``mmlsattr -L``, and the block size that ``stat`` says, a line ``block size: BYTES``."""
    names = {"storage pool name": "pool", "data replication": "replication", "fileset name": "fileset"}
    parts = []
    for name, word in names.items():
        match = re.search(rf"^{name}:[ \t]*(\S+)", text, re.MULTILINE)
        if match:
            parts.append(f"{word} {match[1]}")
    block = re.search(r"^block size: (\d+)", text, re.MULTILINE)
    if block:
        parts.append(f"blocks of {in_words(int(block[1]))}")
    return Found(facts=", ".join(parts)) if parts else Found(unknown=_unread(text))


def _unread(text: str) -> str:
    """Why nothing is known, in the job's own words or the tool's."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix(NO_TOOL) if lines else "nothing was printed"


_READERS = {"lustre": read_lustre, "beeond": read_beegfs, "gpfs": read_gpfs}


def can_be_read(type_: str) -> bool:
    """Are there tools for this type of file system?"""
    return type_ in _READERS


def read_back(type_: str, stage: Path) -> tuple[Found | None, Found | None]:
    """The layouts of the case's folder and of a data file in it, from a job's stage folder; None: none was recorded."""
    reader = _READERS.get(type_)
    found = []
    for name in (FOLDER_FILE, DATA_FILE):
        path = stage / name
        there = reader is not None and path.exists()
        found.append(reader(path.read_text(encoding="utf-8", errors="replace")) if reader and there else None)
    return found[0], found[1]


def verdict(asked: Layout, folder: Found | None, file: Found | None) -> tuple[str, list[str]]:
    """The layout in words, for the record, and what is otherwise than it was asked for."""
    problems = []
    for what, found in (("the case's folder", folder), ("a data file", file)):
        if asked.system and found is not None and found.unknown:
            problems.append(f"the layout of {what} is {found}, {asked} was asked for")
        elif found is not None and (differences := asked.differences(found)):
            problems.append(f"{what} has {found}, {asked} was asked for ({'; '.join(differences)})")
    parts = [f"{what} {found}" for what, found in (("folder", folder), ("data file", file)) if found is not None]
    if folder is not None and file is not None and str(folder) == str(file):
        parts = [str(file)]
    words = ", ".join(parts)
    return (f"{words} ({'as asked for' if asked.system else 'default'})" if words else ""), problems
