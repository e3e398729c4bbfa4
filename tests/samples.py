"""Nights to show and to load, judged by the real judge from records like the kernels'."""

from __future__ import annotations

import copy
from typing import Any

from conftest import _WRITE

from iogauge.bands import PortableBands, SiteBands
from iogauge.judge import Expectation, Judgement, invalid, judge
from iogauge.machine import Load, Machine, Mount
from iogauge.measurement import Measurement
from iogauge.night import Case, Night

LOAD = Load(before=0.5, after=1.25, steal_fraction=0.031)
MACHINE = Machine(
    host="n1",
    system="Debian GNU/Linux 12",
    kernel="6.1.0",
    processor="A Processor 9000",
    cores=2,
    logical_processors=4,
    memory_bytes=8 << 30,
    mounts=(
        Mount(
            file_system="disk",
            path="/scratch/iogauge",
            type="lustre",
            source="10.0.0.1@o2ib:/scratch",
            mount_point="/scratch",
            options="rw,flock,lazystatfs",
            size_bytes=4 << 40,
            free_bytes=1 << 40,
        ),
    ),
    load=LOAD,
)


def record(
    operation: str = "write", *, slower: float = 1.0, cached: float = 0.0, count: int = 3, **changes: Any
) -> dict[str, Any]:
    """A kernel's record of ``count`` repeats, ``slower`` times as slow; ``changes`` are of it or of its pattern."""
    made = copy.deepcopy(_WRITE)
    made["repeats"] = [dict(made["repeats"][number % 3]) for number in range(count)]
    made["operation"] = operation
    if operation == "read":
        made["read_shift"] = {"ranks": 1, "other_rank_fraction": 1.0, "other_host_fraction": 0.0}
    for name, value in changes.items():
        (made["pattern"] if name in made["pattern"] else made)[name] = value
    for repeat in made["repeats"]:
        repeat["transfer_seconds"] *= slower
        if operation == "read":
            repeat |= {"flush_seconds": 0.0, "cached_fraction_before_drop": 1.0, "cached_fraction": cached}
        phases = ("open_seconds", "transfer_seconds", "flush_seconds", "close_seconds")
        repeat["total_seconds"] = sum(repeat[phase] for phase in phases)
    return made


#: The pattern of a metadata record in a shared directory.
SHARED_DIRECTORY = {
    "objects": 1000,
    "bytes": 0,
    "directory": "shared",
    "depth": 0,
    "branch": 1,
    "leaves": False,
    "family": "all",
    "file_per_process": False,
    "collective_metadata": False,
    "alignment_bytes": 0,
    "fsync": True,
}


def counted_record(operation: str = "file-create", **changes: Any) -> dict[str, Any]:
    """The metadata kernel's record of 2000 operations in about half a second, three repeats."""
    made = record(operation) | {
        "benchmark": "metadata",
        "interface": "posix",
        "pattern": {**SHARED_DIRECTORY, **changes},
    }
    made |= {"logical_bytes": 0, "operations": 2000, "file_bytes": 0}
    if not operation.endswith("create"):
        made["read_shift"] = {"ranks": 1, "other_rank_fraction": 1.0, "other_host_fraction": 0.0}
    for repeat in made["repeats"]:
        repeat |= {"verified_bytes": 0, "verified_operations": 2000}
    return made


def baseline(main: dict[str, Any], *, slower: float = 1.0, **differs: str) -> dict[str, Any]:
    """The same job's record of another interface or pattern."""
    cached = main["repeats"][0]["cached_fraction"] or 0.0
    pattern = {k: v for k, v in main["pattern"].items() if k not in differs}
    other = {name: int(value) if name == "dimensions" else value for name, value in differs.items()}
    count = len(main["repeats"])
    return record(main["operation"], slower=slower, cached=cached, count=count, **{**pattern, **other}) | {
        "role": "baseline",
        "differs": differs,
        **({"interface": differs["interface"]} if "interface" in differs else {"interface": main["interface"]}),
    }


def ratio_bands(reference: float | None) -> PortableBands:
    """A band for HDF5 to MPI-IO of particles CC; none without a reference."""
    bands = [
        {
            "when": {"benchmark": "particles", "operation": operation, "pattern": ["CC"]},
            "against": {"interface": "mpiio"},
            "reference": reference,
            "lower": -0.2,
            "upper": 0.2,
            "metric": "observed",
            "measured": "test",
        }
        for operation in ("write", "read")
    ]
    document = {"schema": "iogauge.portable/1", "from": {"method": "test"}, "bands": bands if reference else []}
    return PortableBands.model_validate(document)


def site_bands(reference: float | None, key: str) -> SiteBands:
    """A site band for one series; none without a reference."""
    observed = {"reference": reference, "lower": -0.1, "upper": 0.1, "unit": "MiB/s"}
    bands = {key: {"observed": observed, "from": {"method": "test"}}} if reference else {}
    return SiteBands.model_validate({"schema": "iogauge.bands/1", "site": "here", "bands": bands})


def judgement(
    *records: dict[str, Any], file_system: str = "disk", site: SiteBands | None = None, ratio: float | None = None
) -> Judgement:
    """What the judge says of one job's records."""
    return judge(
        [Measurement.model_validate(one) for one in records],
        Expectation(file_system=file_system, type="lustre", nodes=1, ranks_per_node=2),
        site or site_bands(None, ""),
        ratio_bands(ratio),
    )


def case(
    *operations: str, file_system: str = "disk", ratio: float | None = None, name: str = "", **changes: Any
) -> Case:
    """A case with its MPI-IO and POSIX baselines."""
    records = []
    for operation in operations:
        main = record(operation, **changes)
        records += [main, baseline(main, interface="mpiio", slower=0.9), baseline(main, interface="posix", slower=0.8)]
    return Case(
        name=name or f"ParticlesCheck %file_system={file_system}",
        file_system=file_system,
        nodes=1,
        ranks_per_node=2,
        judgement=judgement(*records, file_system=file_system, ratio=ratio),
        seconds=2.5,
        stage="/runs/night/stage/case",
    )


def counted_case(*operations: str, file_system: str = "disk", **band: Any) -> Case:
    """A case of the metadata kernel, with a private directory to compare with; BAND as of :func:`judgement`."""
    records = []
    for operation in operations:
        private = counted_record(operation, directory="private")
        records += [counted_record(operation), private | {"role": "baseline", "differs": {"directory": "private"}}]
    made = judgement(*records, file_system=file_system, **band)
    return case("write", file_system=file_system, name=f"MetadataCheck %file_system={file_system}").model_copy(
        update={"judgement": made}
    )


def invalid_case(*reasons: str, file_system: str = "disk") -> Case:
    """A case without a true measurement."""
    return case("write", file_system=file_system).model_copy(update={"judgement": invalid(reasons), "name": "Broken"})


def make_night(*cases: Case, **changes: Any) -> Night:
    """A night of these cases."""
    values: dict[str, Any] = {
        "schema": "iogauge.night/1",
        "site": "here",
        "suite": "nightly",
        "started": "2026-11-21T02:00:00Z",
        "finished": "2026-11-21T02:05:00Z",
        "complete": True,
        "selected": len(cases),
        "machine": MACHINE,
        "software": record()["software"],
        "cases": cases,
    }
    return Night.model_validate(values | changes)
