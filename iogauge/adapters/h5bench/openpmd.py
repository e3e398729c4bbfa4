"""h5bench's kind ``openpmd``: openPMD-api's parallel benchmark, a mesh's fields and particles, written, and slices read.

It ignores keys and values that it does not know, takes its own defaults where a line has the wrong number of dimensions, and
ends with exit code 0 after "Error:" and after a file that it could not read. It prints no bytes and no rate, and only rank 0's
time, cut to whole milliseconds; that of a write counts the making of the data, and goes from before the file is opened to
after it is closed, both of which wait for all ranks. Nothing is synced or verified.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from iogauge.adapters.h5bench.benchmark import Announced, Benchmark, measured, own_pattern, size_on_disk, texts_of
from iogauge.adapters.upstream import Job, Launch, Pattern, Printed, printed, repeat
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement, Repeat

_STEM = "8a_parallel_3Db"
#: h5bench 1.4 does not know the key encoding: it says so of "f", and writes a file a step all the same.
_FAILED = (r"^No such file: ", r"^(?!f ).*Expecting \d+ dimensions", r"Sorry, Only supports", r"\b[Ee]rror\b")
_SLICES = {"x": 0, "y": 1, "z": 2}
#: Of a particle: its number, charge and place.
_PARTICLE_BYTES = 24


@dataclass(frozen=True)
class Layout:
    """A mesh of ``grid`` blocks of ``block`` elements each, ``ratio`` particles an element, ``steps`` times."""

    block: tuple[int, ...]
    grid: tuple[int, ...]
    ratio: int
    steps: int
    encoding: str
    rank_blocks: bool

    @property
    def mesh(self) -> list[int]:
        """Elements along each dimension."""
        return [block * grid for block, grid in zip(self.block, self.grid, strict=True)]

    @property
    def step_bytes(self) -> int:
        """Two vectors and a scalar an element, and the particles."""
        return math.prod(self.mesh) * (8 * (2 * len(self.block) + 1) + _PARTICLE_BYTES * self.ratio)


class _Openpmd(Benchmark):
    kind: ClassVar[str] = "openpmd"  # type: ignore[misc]
    file: ClassVar[str] = ""  # type: ignore[misc]
    layout: Layout

    def _pattern(self, own: str, **more: str | int) -> Pattern:
        layout = self.layout
        pattern: Pattern = {
            "kind": self.kind,
            "dims": layout.mesh,
            "blocks": list(layout.block),
            "ratio": layout.ratio,
            "steps": layout.steps,
            "encoding": layout.encoding,
        }
        return own_pattern(pattern | more, own)

    def _record(self, job: Job, repeats: Sequence[Repeat], own: str, bytes_: int, file_bytes: int) -> Measurement:
        series = self.announced(own)[0]
        return measured(job, series, repeats, logical_bytes=bytes_, file_bytes=file_bytes)


@dataclass(frozen=True)
class OpenpmdWrite(_Openpmd):
    """All fields and particles of all steps."""

    layout: Layout

    @property
    def program(self) -> str:
        """As h5bench installs it."""
        return "h5bench_openpmd_write"

    def words(self, configuration: str) -> list[str]:
        """The configuration."""
        return [configuration]

    def text(self) -> str:
        """``dim`` before what has as many numbers."""
        layout = self.layout
        lines = ["dim=3", "balanced=true", f"ratio={layout.ratio}", f"steps={layout.steps}"]
        lines += [f"minBlock={' '.join(map(str, layout.block))}", f"grid={' '.join(map(str, layout.grid))}"]
        lines += [f"encoding={layout.encoding}"] if layout.encoding else []
        lines += ["rankBlocks=false"] if not layout.rank_blocks else []
        return "\n".join([*lines, "fileLocation=."]) + "\n"

    @property
    def before(self) -> list[str]:
        """One file a step with encoding f."""
        return [f"rm -f {_STEM}*"]

    @property
    def logical_bytes(self) -> int:
        """Of all steps."""
        return self.layout.step_bytes * self.layout.steps

    def file_bytes(self, ranks: int) -> int:
        """Of all steps."""
        return int(self.logical_bytes * 1.05) + (self.layout.steps + 1 << 20)

    def announced(self, own: str = "") -> list[Announced]:
        """Independent, unless OPENPMD_HDF5_INDEPENDENT is set otherwise in the site's environment."""
        return [Announced("write", self._pattern(own, rank_blocks=str(self.layout.rank_blocks).lower()), False)]

    def measurements(self, job: Job, launches: Sequence[Launch], *, own: str = "") -> list[Measurement]:
        """One measurement."""
        repeats, sizes = [], [0]
        for launch in launches:
            launch.check(self.program, *_FAILED)
            self._check_heading(launch, job)
            tag = r"Writing(?: a single file:| filebased: |: )\S+"  # the last: h5bench 1.4
            total = seconds(launch.stdout, tag, launch.name)
            _check_begin(launch.stdout, tag, launch.name)
            repeats.append(repeat(total=total, what=launch.name))
            sizes.append(size_on_disk(launch, rf"{_STEM}.*\.h5", self.logical_bytes, _STEM))
        return [self._record(job, repeats, own, self.logical_bytes, max(sizes))]

    def _check_heading(self, launch: Launch, job: Job) -> None:
        """What it says that it does."""
        layout, text = self.layout, launch.stdout
        ranks = re.search(
            r"^MPI Size: (\d{1,9})  mesh/particle ratio=(\d+) UnBalance\? 0  steps=(\d+) ", text, re.MULTILINE
        )
        shape = re.search(r"^Global: \[ ([\d ]+) \]\s+Block: \[ ([\d ]+) \]\s+Unit: \[ ([\d ]+) \]", text, re.MULTILINE)
        if ranks is None or shape is None:
            raise Refusal(f"{launch.name}: it does not say what it writes")
        job.check_ranks(self.program, int(ranks[1]))
        told = [[int(number) for number in found.split()] for found in shape.groups()]
        if told != [layout.mesh, list(layout.block), list(layout.grid)] or ranks.groups()[1:] != (
            str(layout.ratio),
            str(layout.steps),
        ):
            raise Refusal(f"{launch.name}: it does not write the mesh that was asked for")


@dataclass(frozen=True)
class OpenpmdRead(_Openpmd):
    """A slice of each rank: of one field (``s``) or of three (``f``), across a dimension; in every fifth step."""

    layout: Layout
    pattern: str

    @property
    def program(self) -> str:
        """As h5bench installs it."""
        return "h5bench_openpmd_read"

    def words(self, configuration: str) -> list[str]:
        """The name's beginning, as the runner gives it."""
        return [f"./{_STEM}", self.pattern]

    @property
    def reads_what_was_there(self) -> bool:
        """Always."""
        return True

    @property
    def _times(self) -> int:
        return math.ceil(self.layout.steps / 5)

    def logical_bytes(self, ranks: int) -> int:
        """Of all ranks' slices."""
        fields = {"s": 1, "f": 3}[self.pattern[0]]
        mesh = self.layout.mesh
        across = math.prod(mesh) // mesh[_SLICES[self.pattern[1]]]
        return 8 * across * fields * ranks * self._times

    def file_bytes(self, ranks: int) -> int:
        """It writes none."""
        return 0

    def announced(self, own: str = "") -> list[Announced]:
        """Each rank's slice, independent."""
        return [Announced("read", self._pattern(own, selection=self.pattern), False)]

    def measurements(self, job: Job, launches: Sequence[Launch], *, own: str = "") -> list[Measurement]:
        """One measurement."""
        name = {"x": "Row", "y": "Col", "z": "Z"}[self.pattern[1]]
        tag = {"s": "", "f": " Electric Field slice: "}[self.pattern[0]] + rf"{name} slice time:  ?(?:rank 0 only)?"
        repeats = []
        for launch in launches:
            launch.check(self.program, *_FAILED)
            ranks = set(re.findall(r"^  Rank: (\d{1,6}) offset \[ ", launch.stdout, re.MULTILINE))
            job.check_ranks(self.program, len(ranks))
            repeats.append(
                repeat(
                    total=seconds(launch.stdout, tag, launch.name, self._times),
                    cached=(launch.cached_before_drop, launch.cached_fraction),
                    what=launch.name,
                )
            )
        return [self._record(job, repeats, own, self.logical_bytes(job.ranks), 0)]


_CUT = 0.5e-3  # whole milliseconds, cut


def seconds(text: str, tag: str, what: str, times: int = 1) -> Printed:
    """What rank 0's timers of that name took together. Raises :class:`Refusal` unless there are so many, in those around."""
    found = _timers(text, tag, what)
    main = _timers(text, r"  Main  ", what)
    if len(found) != times or len(main) != 1:
        raise Refusal(f"{what}: {len(found)} times are told, {times} are expected, and its whole time")
    total = sum(took for took, _ in found)
    if total > main[0][0] + 2 * _CUT * times:
        raise Refusal(f"{what}: {total:g} s of {main[0][0]:g} s altogether")
    return Printed(total, _CUT * times)


def _timers(text: str, tag: str, what: str) -> list[tuple[float, float]]:
    """Seconds that they took, and from the program's start to their end."""
    found = re.findall(rf"^  \[{tag}\] took:(\S+) seconds\.?\n.*From ProgStart in seconds (\S+)$", text, re.MULTILINE)
    return [(printed(took, what).value + _CUT, printed(ended, what).value + _CUT) for took, ended in found]


def _check_begin(text: str, tag: str, what: str) -> None:
    """The whole program's timer begins just before that of writing. Raises :class:`Refusal` for figures that do not fit."""
    ((took, ended),), ((whole, last),) = _timers(text, tag, what), _timers(text, r"  Main  ", what)
    if not -4 * _CUT <= (ended - took) - (last - whole) <= 0.02 + 0.05 * took:
        raise Refusal(f"{what}: its times do not fit together")


def check(
    values: Mapping[str, Any], ranks: int, where: str, written: Sequence[OpenpmdWrite]
) -> OpenpmdWrite | OpenpmdRead:
    """Raises :class:`InputError`; ``written`` are the writes before it in the suite."""
    texts = texts_of(values, where)
    operation = texts.pop("operation", "")
    if operation == "write":
        return OpenpmdWrite(_layout(texts, ranks, where))
    if operation != "read":
        raise InputError(f"{operation!r}; allowed: write, read", file=where, key="operation")
    pattern = texts.pop("pattern", "")
    if texts:
        raise InputError("unknown key; allowed: operation, pattern", file=where, key=next(iter(texts)))
    if re.fullmatch(r"[sf][xyz]", pattern) is None:
        raise InputError(
            f"{pattern!r}; allowed: sx, sy, sz, fx, fy, fz: what others read cannot be told", file=where, key="pattern"
        )
    if not written:
        raise InputError("nothing is written by an openpmd benchmark before", file=where, key="operation")
    if written[-1].layout.encoding != "f":
        raise InputError(
            f"the runner gives the name {_STEM}, which is read as one file a step, and what was written before is one file: "
            f"it would read nothing. Write with encoding f",
            file=where,
            key="operation",
        )
    return OpenpmdRead(written[-1].layout, pattern)


_WRITE_KEYS = ("dim", "balanced", "ratio", "steps", "minBlock", "grid", "encoding", "rankBlocks")
_ONLY = {"dim": ("3",), "balanced": ("true",), "encoding": ("f", "g"), "rankBlocks": ("true", "false")}


def _layout(texts: Mapping[str, str], ranks: int, where: str) -> Layout:
    for key, text in texts.items():
        if key not in _WRITE_KEYS:
            raise InputError(f"unknown key; allowed: operation, {', '.join(_WRITE_KEYS)}", file=where, key=key)
        if text not in _ONLY.get(key, (text,)):
            raise InputError(f"{text!r}; allowed: {', '.join(_ONLY[key])}", file=where, key=key)

    def numbers(key: str, count: int, default: tuple[int, ...]) -> tuple[int, ...]:
        text = texts.get(key, " ".join(map(str, default)))
        # A second blank between two numbers is a third number for it.
        if re.fullmatch(rf"[1-9]\d{{0,8}}(?: [1-9]\d{{0,8}}){{{count - 1}}}", text, re.ASCII) is None:
            raise InputError(f"{text!r}: {count} whole numbers, one blank between, are expected", file=where, key=key)
        return tuple(map(int, text.split()))

    grid = numbers("grid", 3, (ranks, 8, 8))
    if grid[0] % ranks and grid[1] % ranks:
        raise InputError(
            f"the first or the second number has to be a multiple of the {ranks} ranks", file=where, key="grid"
        )
    return Layout(
        block=numbers("minBlock", 3, (64, 32, 32)),
        grid=grid,
        ratio=numbers("ratio", 1, (1,))[0],
        steps=numbers("steps", 1, (1,))[0],
        encoding=texts.get("encoding", ""),
        rank_blocks=texts.get("rankBlocks", "true") == "true",
    )
