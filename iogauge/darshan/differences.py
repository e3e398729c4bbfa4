"""What is otherwise in one build's log than in another's of the same case, in sentences with numbers.

Only what a program does is compared, call by call. How long it took is told apart, and of a read Darshan counts the bytes that
were there: where another rank is writing the file, that is not the same every time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from iogauge.darshan.summary import MODULES, Layer, Module, Summary

#: Darshan's counters without their module, in the order in which they are told.
_WORDS: Mapping[str, str] = {
    "COLL_OPENS": "collective opens",
    "INDEP_OPENS": "independent opens",
    "OPENS": "opens",
    "COLL_WRITES": "collective writes",
    "INDEP_WRITES": "independent writes",
    "SPLIT_WRITES": "split writes",
    "NB_WRITES": "nonblocking writes",
    "WRITES": "writes",
    "COLL_READS": "collective reads",
    "INDEP_READS": "independent reads",
    "SPLIT_READS": "split reads",
    "NB_READS": "nonblocking reads",
    "READS": "reads",
    "USE_MPIIO_COLLECTIVE": "datasets moved collectively",
    "USE_MPIIO": "files opened through MPI-IO",
    "BYTES_WRITTEN": "bytes written",
    "BYTES_READ": "bytes read",
    "FILE_NOT_ALIGNED": "accesses between the file system's blocks",
    "FSYNCS": "fsyncs",
    "FDSYNCS": "fdatasyncs",
    "SYNCS": "syncs",
    "FLUSHES": "flushes",
    "SEEKS": "seeks",
    "MMAPS": "mmaps",
    "VIEWS": "views set",
    "POINT_SELECTS": "selections of points",
    "REGULAR_HYPERSLAB_SELECTS": "selections of regular hyperslabs",
    "IRREGULAR_HYPERSLAB_SELECTS": "selections of irregular hyperslabs",
}

_SIZES = re.compile(r"SIZE_(?P<call>READ|WRITE)_(?:AGG_)?(?P<bin>\w+)")


def differences(before: Summary, after: Summary) -> tuple[str, ...]:
    """A sentence for each module, from the top of the stack to its bottom; nothing: they did the same."""
    found = []
    for module in MODULES:
        old, new = before.layers.get(module), after.layers.get(module)
        if old is None or new is None:
            if old is not new:
                found.append(f"{module} is used {'before' if new is None else 'after'} only")
            continue
        if parts := list(_of_layer(module, old, new)):
            found.append(f"{module}: {'; '.join(parts)}")
    return tuple(found)


def _of_layer(module: Module, old: Layer, new: Layer) -> Iterator[str]:
    for name, then, now in (
        ("files", old.files, new.files),
        ("ranks of a file, at most", old.most_ranks, new.most_ranks),
        *(
            (words, old[counter], new[counter])
            for counter, words in _WORDS.items()
            if _exact(module, counter, old, new)
        ),
        *((_of_size(counter), old[counter], new[counter]) for counter in _sizes(module, old, new)),
    ):
        if then != now:
            yield f"{name} {then} became {now}"


def _exact(module: Module, counter: str, old: Layer, new: Layer) -> bool:
    """Is it the same every time? What reads of POSIX found is told where there are more or fewer of them."""
    found = module == "POSIX" and (counter == "BYTES_READ" or counter.startswith("SIZE_READ_"))
    return not found or old["READS"] != new["READS"]


def _sizes(module: Module, old: Layer, new: Layer) -> list[str]:
    """The bins of sizes that are used, in the order of the log."""
    names = (name.partition("_")[2] for name in (*old.counters, *new.counters))
    return [name for name in dict.fromkeys(names) if _SIZES.fullmatch(name) and _exact(module, name, old, new)]


def _of_size(counter: str) -> str:
    """``reads of 100 bytes to 1 KiB``."""
    match = _SIZES.fullmatch(counter)
    assert match is not None
    least, _, most = match["bin"].partition("_")
    between = f"more than {_in_units(least)}" if most == "PLUS" else f"{_in_units(least)} to {_in_units(most)}"
    return f"{match['call'].lower()}s of {between}"


def _in_units(size: str) -> str:
    """``1 KiB`` of Darshan's 1K."""
    number, unit = size.rstrip("KMG"), size[-1]
    return f"{number} {unit}iB" if unit in "KMG" else f"{number} bytes"


def metadata_shares(before: Summary, after: Summary) -> str:
    """How much of the time in each module was opening, closing and the like: for information, it is another each time."""
    told = []
    for module in ("H5D", "MPI-IO", "POSIX"):
        layers = [summary.layers.get(module) for summary in (before, after)]
        shares = [layer.metadata_seconds / layer.seconds for layer in layers if layer is not None and layer.seconds]
        if len(shares) == 2:
            told.append(f"{module} {shares[0]:.0%}, then {shares[1]:.0%}")
    return "; ".join(told)
