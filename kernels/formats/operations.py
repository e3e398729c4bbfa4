"""What is measured: create, write, open and read, each from open to close, the formats in turn."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from iogauge import page_cache
from iogauge.errors import InputError
from sizes import Sizes
from stores import FORMATS, Arrays, wanted

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPERATIONS = ("create", "write", "open", "read")


class DataDiffer(Exception):
    """What was read is not what was written; ``str()`` says where."""


@dataclass
class Stopwatch:
    """Adds up the seconds of each phase: ``with watch.during("transfer"): ...``."""

    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("open", "transfer", "flush", "close", "prepare"), 0.0)
    )
    _phase: str = ""
    _begin: float = 0.0

    def during(self, phase: str) -> Stopwatch:
        """Count what follows to ``phase``."""
        self._phase = phase
        return self

    def __enter__(self) -> None:
        self._begin = perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds[self._phase] += perf_counter() - self._begin


@dataclass(frozen=True)
class Case:
    """One format of a run."""

    interface: str
    arrays: type[Arrays]
    path: Path
    sizes: Sizes
    fsync: bool = True
    drop_cache: bool = True

    def files(self) -> list[Path]:
        """Those that hold the arrays: one, or Zarr's many."""
        if self.path.is_dir():
            return [Path(folder) / name for folder, _, names in os.walk(self.path) for name in names]
        return [self.path]

    def remove(self) -> None:
        """Take the files away."""
        if self.path.is_dir():
            shutil.rmtree(self.path)
        else:
            self.path.unlink()


def content(sizes: Sizes, index: int) -> NDArray[Any]:
    """The data of an array: a function of the seed and the array's number."""
    import numpy as np

    generator = np.random.default_rng([sizes.seed, index])
    if sizes.datatype.startswith("float"):
        real: Any = sizes.datatype
        return generator.random(sizes.elements, dtype=real)
    limits = np.iinfo(sizes.datatype)
    return generator.integers(limits.min, limits.max, sizes.elements, dtype=sizes.datatype, endpoint=True)


def compare(case: Case, name: str, found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Raise :class:`DataDiffer` unless both are the same, bit for bit."""
    import numpy as np

    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        raise DataDiffer(
            f"data differ: {case.interface}, {name}: expected {expected.dtype} of {expected.shape}, "
            f"found {found.dtype} of {found.shape}"
        )
    bits = np.dtype(f"u{expected.itemsize}")
    wrong = np.ascontiguousarray(found).view(bits) != expected.view(bits)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise DataDiffer(
            f"data differ: {case.interface}, {name}, index {list(where)}: expected {expected[where]}, found "
            f"{found[where]} ({int(wrong.sum())} elements differ)"
        )


def failure(where: str, error: Exception, *, of_read: bool) -> Exception:
    """What a library's exception means: bad data where it cannot make sense of a file, else what the system refused."""
    refused = isinstance(error, OSError) and error.errno is not None
    message = f"{where}: {type(error).__name__}: {error}"
    return (
        DataDiffer(f"data differ: cannot be read back: {message}") if of_read and not refused else InputError(message)
    )


def create(case: Case, watch: Stopwatch) -> None:
    """A new file with all arrays, without data. The formats share the work between file and array differently, so that
    both are the transfer."""
    names = case.sizes.names
    with watch.during("transfer"):
        arrays = case.arrays(case.path, "create", case.sizes)
        for name in names:
            arrays.add(name)
    finish(case, arrays, watch)


def write(case: Case, watch: Stopwatch) -> None:
    """Every array whole."""
    names = case.sizes.names
    with watch.during("open"):
        arrays = case.arrays(case.path, "update", case.sizes)
        opened = [arrays.array(name) for name in names]
    for index, array in enumerate(opened):
        with watch.during("prepare"):
            data = content(case.sizes, index)
        with watch.during("transfer"):
            array[...] = data
    finish(case, arrays, watch)


def finish(case: Case, arrays: Arrays, watch: Stopwatch) -> None:
    """Bring what was written to storage, and close. What a library still holds belongs to the transfer."""
    with watch.during("transfer"):
        arrays.flush()
    if case.fsync:
        with watch.during("prepare"):
            files = case.files()
        with watch.during("flush"):
            for path in files:
                page_cache.write_back(path)
    with watch.during("close"):
        arrays.close()


def open_all(case: Case, watch: Stopwatch) -> None:
    """Every array, so that its data can be read; each has to be stored as was asked for."""
    names = case.sizes.names
    with watch.during("transfer"):
        arrays = case.arrays(case.path, "read", case.sizes)
        opened = [arrays.array(name) for name in names]
    with watch.during("prepare"):
        expected = wanted(case.sizes)
        for name, array in zip(names, opened, strict=True):
            found = arrays.layout(array)
            if found != expected:
                raise DataDiffer(f"data differ: {case.interface}, {name}: expected {expected}, found {found}")
    with watch.during("close"):
        arrays.close()


def read(case: Case, watch: Stopwatch) -> None:
    """Every array whole, compared with what was written."""
    names = case.sizes.names
    with watch.during("open"):
        arrays = case.arrays(case.path, "read", case.sizes)
        opened = [arrays.array(name) for name in names]
    for index, (name, array) in enumerate(zip(names, opened, strict=True)):
        try:
            with watch.during("transfer"):
                data = array[...]
        except Exception as error:
            raise failure(f"{case.interface}, {name}", error, of_read=True) from error
        with watch.during("prepare"):
            compare(case, name, data, content(case.sizes, index))
    with watch.during("close"):
        arrays.close()


CALLS: dict[str, Callable[[Case, Stopwatch], None]] = {
    "create": create,
    "write": write,
    "open": open_all,
    "read": read,
}


@dataclass(frozen=True)
class Result:
    """One operation of one repeat."""

    seconds: dict[str, float]
    cached_before_drop: float | None
    cached: float | None
    file_bytes: int


def measure(case: Case, operation: str) -> Result:
    """Run one operation from open to close. What is read is dropped from the page cache before, where that is asked for."""
    watch = Stopwatch()
    before = after = None
    if operation in ("open", "read"):
        files = case.files()
        before = after = page_cache.cached_fraction(files)
        if case.drop_cache:
            page_cache.drop(files)
            after = page_cache.cached_fraction(files)
    gc.collect()  # one format's litter is not the next one's time
    try:
        CALLS[operation](case, watch)
        size = sum(path.stat().st_size for path in case.files())
    except (DataDiffer, InputError):
        raise
    except Exception as error:
        raise failure(f"{case.interface}, {operation}", error, of_read=operation in ("open", "read")) from error
    return Result(watch.seconds, before, after, size)


def order(count: int, round_: int) -> list[int]:
    """Which case is run when: one after the other, beginning with another one each round."""
    return [(round_ + i) % count for i in range(count)]


@dataclass(frozen=True)
class Plan:
    """What the command line and the YAML file ask for. ``operations`` are those that are measured."""

    sizes: Sizes
    formats: tuple[str, ...]
    operations: tuple[str, ...]
    folder: Path
    json: Path | None
    repeats: int
    warmup: int
    fsync: bool
    drop_cache: bool
    keep: bool

    @property
    def writes(self) -> bool:
        """Are the files ours, or those that an earlier run kept?"""
        return "write" in self.operations

    def case(self, interface: str) -> Case:
        """The case of one format."""
        arrays = FORMATS[interface]
        path = self.folder / f"{self.sizes.file_name}{arrays.suffix}"
        return Case(interface, arrays, path, self.sizes, self.fsync, self.drop_cache)


Results = dict[str, dict[str, list[Result]]]


def measure_all(plan: Plan) -> Results:
    """All repeats of all formats: interface, operation, repeat."""
    cases = [plan.case(interface) for interface in plan.formats]
    results: Results = {case.interface: {operation: [] for operation in plan.operations} for case in cases}
    for round_ in range(plan.warmup + plan.repeats):
        for case in (cases[i] for i in order(len(cases), round_)):
            found = run_case(plan, case, last=round_ == plan.warmup + plan.repeats - 1)
            for operation, result in found.items():
                if round_ >= plan.warmup:
                    results[case.interface][operation].append(result)
    return results


def run_case(plan: Plan, case: Case, last: bool) -> dict[str, Result]:
    """All operations of one format once. Whatever was written has been read back and compared when this returns."""
    found = {operation: measure(case, operation) for operation in plan.operations}
    if "read" not in found:
        for operation in ("open", "read"):
            measure(case, operation)
    if plan.writes and not (plan.keep and last):
        case.remove()
    return found
