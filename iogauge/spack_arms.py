"""``arms.json``: what an installed Spack environment holds, one arm for each view; written by ``scripts/spack-setup``.

The format stands in docs/spack.md; ``iogauge.spack`` reads and checks it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

#: Packages whose library is the connector ``async`` of HDF5.
ASYNC_VOL = "hdf5-vol-async"
ASYNC_CONNECTOR = "async under_vol=0;under_info={}"

#: What an MPI is called in a lock; the first that an arm depends on is its MPI.
MPI_VIRTUAL = "mpi"


def closure(specs: Mapping[str, Mapping[str, Any]], roots: list[str]) -> list[str]:
    """The hashes of the roots and of all that they are linked with or run with, roots first."""
    found: dict[str, None] = dict.fromkeys(roots)
    waiting = list(roots)
    while waiting:
        for dependency in specs[waiting.pop()].get("dependencies", ()):
            kinds = set(dependency["parameters"]["deptypes"])
            if kinds & {"link", "run"} and dependency["hash"] not in found:
                found[dependency["hash"]] = None
                waiting.append(dependency["hash"])
    return list(found)


def provider(specs: Mapping[str, Mapping[str, Any]], hashes: list[str], virtual: str) -> Mapping[str, Any] | None:
    """The spec from which one of ``hashes`` takes the virtual package."""
    for hash_ in hashes:
        for dependency in specs[hash_].get("dependencies", ()):
            if virtual in dependency["parameters"].get("virtuals", ()):
                return specs[dependency["hash"]]
    return None


def in_view(view: Path, prefixes: Mapping[str, str]) -> set[str]:
    """The hashes of the specs whose files the view links to."""
    by_prefix = {os.path.realpath(prefix): hash_ for hash_, prefix in prefixes.items()}
    found = set()
    for folder, _, files in os.walk(view):
        for file in files:
            target = Path(os.path.realpath(Path(folder, file)))
            found |= {by_prefix[str(parent)] for parent in target.parents if str(parent) in by_prefix}
    return found


def programs(view: Path) -> list[str]:
    """Names of what can be executed in the view."""
    folder = view / "bin"
    return sorted(path.name for path in folder.iterdir() if os.access(path, os.X_OK)) if folder.is_dir() else []


def text_of(spec: Mapping[str, Any]) -> str:
    """A spec on one line: name, version, and its switches."""
    switches = "".join(
        f"{'+' if value else '~'}{name}"
        for name, value in sorted(spec.get("parameters", {}).items())
        if isinstance(value, bool)
    )
    return f"{spec['name']}@{spec['version']}{switches}"


def arm_record(
    specs: Mapping[str, Mapping[str, Any]], roots: list[str], prefixes: Mapping[str, str], view: Path
) -> dict[str, Any]:
    """One arm: ``roots`` are the hashes that its view shows.

    An HDF5 or a Darshan of which an arm has two would make its results ambiguous: ``ValueError``.
    """
    hashes = closure(specs, roots)
    by_name: dict[str, list[str]] = {}
    for hash_ in hashes:
        by_name.setdefault(specs[hash_]["name"], []).append(hash_)
    for name in ("hdf5", "darshan-runtime"):
        if len(by_name.get(name, ())) > 1:
            raise ValueError(
                f"{view}: more than one {name}: {', '.join(text_of(specs[hash_]) for hash_ in by_name[name])}"
            )

    def prefix_of(name: str) -> Path | None:
        return Path(prefixes[by_name[name][0]]) if name in by_name else None

    mpi, darshan, vol = provider(specs, hashes, MPI_VIRTUAL), prefix_of("darshan-runtime"), prefix_of(ASYNC_VOL)
    if mpi is None:
        raise ValueError(f"{view}: nothing in it uses MPI")
    return {
        "view": str(view),
        "mpi": f"{mpi['name']}@{mpi['version']}",
        "hdf5": specs[by_name["hdf5"][0]]["version"] if "hdf5" in by_name else None,
        "darshan": str(darshan / "lib" / "libdarshan.so") if darshan else None,
        "vol": {"plugin_path": str(vol / "lib"), "connector": ASYNC_CONNECTOR} if vol else None,
        "specs": [
            {
                "name": specs[hash_]["name"],
                "version": specs[hash_]["version"],
                "hash": hash_,
                "spec": text_of(specs[hash_]),
                "prefix": prefixes[hash_],
            }
            for hash_ in hashes
            if hash_ in prefixes
        ],
        "programs": programs(view),
    }


def arms_record(lock: Mapping[str, Any], prefixes: Mapping[str, str], views: Mapping[str, Path]) -> dict[str, Any]:
    """The arms of an environment from its ``spack.lock``, the prefix of each hash, and its views by name."""
    specs = lock["concrete_specs"]
    return {
        arm: arm_record(specs, sorted(in_view(view, prefixes) & specs.keys()), prefixes, view)
        for arm, view in views.items()
    }


def unresolved_libraries(view: Path) -> Iterator[tuple[Path, str]]:
    """Programs and shared libraries of a view that miss a library when the environment is empty, with that library."""
    candidates = [path for folder in ("bin", "lib") for path in sorted((view / folder).glob("*"))]
    for path in candidates:
        if not path.is_file() or path.open("rb").read(4) != b"\x7fELF":
            continue
        done = subprocess.run(["ldd", path], env={"PATH": os.defpath}, capture_output=True, text=True)
        for name in re.findall(r"^\s*(\S+) => not found", done.stdout, re.MULTILINE):
            yield path, name
