"""What is compared: the two arms, the patterns, and when to stop. Written before the job, read in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from iogauge.night import write_whole
from iogauge.sites import Point, Site

#: What a comparison leaves: its plan, a line for each run, one for each file that an arm read, and one for each pattern with
#: what the arms do otherwise, as counted and as Darshan saw it.
PLAN_FILE, RUNS_FILE, EXCHANGES_FILE = "plan.json", "runs.jsonl", "exchanges.jsonl"
OTHERWISE_FILE, PROFILED_FILE = "otherwise.jsonl", "profiled.jsonl"
LEFT = (PLAN_FILE, RUNS_FILE, EXCHANGES_FILE, OTHERWISE_FILE, PROFILED_FILE)

#: The folder of Darshan's logs, beside them.
LOGS_FOLDER = "darshan"

#: The tag of the check's cases for any two arms; and what stands between two arms in their names, where no environ has it.
COMPARE, AND = "compare", "~"

#: Names two arms for the check, which are no environs of the site perhaps; and a point (nodes, ranks per node) of the site's
#: axes, ``4x2``, where it is not to be the largest.
ARMS_VARIABLE, POINT_VARIABLE = "IOGAUGE_ARMS", "IOGAUGE_POINT"

Text = Annotated[str, Field(min_length=1)]
Fraction = Annotated[float, Field(gt=0, lt=1)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Arm(_Value):
    """One build: ``programs`` is the folder of its kernels, ``launch`` the words that start a program on all ranks,
    ``environment`` what is set for it besides. It has to load HDF5 of the version ``hdf5`` from ``prefix``, and to run with
    ``mpi``, where they are given. ``launcher``: what people know ``launch`` by, where that is a script. ``darshan``: the words
    that start one under Darshan, to be followed by the folder and the name of its log; none: no runtime is known.
    """

    name: Text
    programs: Path
    launch: tuple[Text, ...]
    environment: dict[str, str] = {}
    hdf5: str | None = None
    mpi: str | None = None
    prefix: Path | None = None
    launcher: str = ""
    darshan: tuple[Text, ...] = ()


class Pattern(_Value):
    """A kernel with its options, but for ``--dir``, ``--json``, ``--repeats`` and ``--warmup``."""

    name: Text
    kernel: Text
    options: tuple[str, ...] = ()


class Plan(_Value):
    """What is compared on which ``file_system`` of which ``site``, in which ``partition``.

    ``seed`` draws the order of everything. ``ranks`` are those that the arms' launchers start, spread evenly over ``nodes``;
    ``oversubscribe``: they may share cores. ``repeats`` of a run, of which the best counts. ``margin``: a fraction of the
    first arm's rate. ``alpha``: how often anything may be found where nothing is. ``exchange``: each arm also reads the
    others' files, once; ``count``: the calls of both are counted; ``profile``: each runs once under Darshan, too, where both
    have a runtime; ``prove``: it is looked at first that they are two builds and differ in nothing but HDF5 and MPI.
    """

    schema_: Literal["iogauge.plan/1"] = Field(default="iogauge.plan/1", alias="schema")
    site: Text
    partition: str = ""
    file_system: Text
    arms: tuple[Arm, Arm]
    nodes: Annotated[int, Field(gt=0)] = 1
    ranks: Annotated[int, Field(gt=0)]
    oversubscribe: bool = False
    patterns: Annotated[tuple[Pattern, ...], Field(min_length=1)]
    seed: int
    repeats: Annotated[int, Field(gt=0)] = 1
    margin: Fraction = 0.05
    alpha: Fraction = 0.05
    time_limit_seconds: Annotated[float, Field(gt=0)] = 900
    exchange: bool = True
    count: bool = True
    profile: bool = True
    prove: bool = True
    run_seconds: Annotated[float, Field(gt=0)] = 120

    @property
    def ranks_per_node(self) -> int:
        """On each node the same number."""
        return self.ranks // self.nodes

    @model_validator(mode="after")
    def _evenly(self) -> Plan:
        if self.ranks % self.nodes:
            raise ValueError(f"ranks: {self.ranks} cannot be spread evenly over {self.nodes} nodes")
        return self

    @model_validator(mode="after")
    def _two_different(self) -> Plan:
        if self.arms[0].name == self.arms[1].name:
            raise ValueError(f"arms: {self.arms[0].name!r} twice; two arms are compared")
        names = [pattern.name for pattern in self.patterns]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"patterns: {twice!r} twice")
        return self

    def save(self, path: Path) -> None:
        """Write it whole or not at all."""
        write_whole(path, self.model_dump_json(by_alias=True, indent=1) + "\n")


def point_of(site: Site, file_system: str, asked: str = "") -> Point | None:
    """Where arms are compared on a file system: the largest point where the site tries every pattern, or the one that is
    ``asked`` for, as ``4x2``; ``None``: that is not on the axes."""
    if not asked:
        return max(site.points_of(file_system), key=lambda point: (point[0] * point[1], point))
    nodes, _, ranks_per_node = asked.partition("x")
    point = (int(nodes), int(ranks_per_node))
    return point if site.tries(file_system, point, scaling=True) else None
