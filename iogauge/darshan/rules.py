"""The diagnosis: what is worth knowing of a case's I/O, in words, from Darshan's counters. A rule each, pure functions.

docs/darshan.md has a paragraph on every rule and the same table of thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from iogauge.darshan.summary import Layer, Slowest, Summary
from iogauge.quota import in_units


@dataclass(frozen=True)
class Threshold:
    """From where on a rule speaks."""

    value: float
    unit: str
    says: str


#: All of them. Fractions are of one, ratios of one to the other.
THRESHOLDS: Mapping[str, Threshold] = {
    "independent": Threshold(0.1, "fraction", "of the calls that were to be collective, the part that was independent"),
    "small-bytes": Threshold(100 * 1024, "bytes", "an access up to this is small (Darshan's classes end there)"),
    "small": Threshold(0.5, "fraction", "of the accesses, the part that was small"),
    "small-mean": Threshold(128 * 1024, "bytes", "mean access above which some small ones do not matter"),
    "unaligned": Threshold(
        0.1, "fraction", "of the accesses, the part that began or ended between the file system's blocks"
    ),
    "read-while-writing": Threshold(0.1, "fraction", "bytes read that nobody asked for, to the bytes written"),
    "switches": Threshold(0.1, "fraction", "changes between reading and writing, to the writes"),
    "amplification": Threshold(1.1, "ratio", "bytes moved to storage or from it, to the benchmark's own"),
    "metadata": Threshold(0.3, "fraction", "of a module's time, the part in metadata"),
    "metadata-seconds": Threshold(0.05, "seconds", "a rank's time in metadata below which it does not matter"),
    "slow": Threshold(1.3, "ratio", "the slowest rank's time, or of a node's fastest, to the mean of the others"),
    "slow-seconds": Threshold(0.05, "seconds", "the difference below which it does not matter"),
    "fsync-bytes": Threshold(1 << 20, "bytes", "what is written up to this need not be forced to storage"),
    "bytes": Threshold(0.01, "fraction", "difference between Darshan's bytes and the benchmark's"),
    "witness": Threshold(0.15, "fraction", "how far Darshan's time may lie outside of the benchmark's limits"),
    "witness-seconds": Threshold(0.02, "seconds", "the same in time: what a busy machine takes from a run for itself"),
    "change": Threshold(0.2, "fraction", "change of a count, a volume or a share of time that is told"),
}


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Claim(_Value):
    """What the benchmark says of the same run; ``None``: it does not say.

    ``bytes_written`` and ``bytes_read`` are logical, over all that is in the log. ``whole_elements``: a call that moves a part
    of an element counts as that part; Darshan's H5D counts the whole. ``ranks_per_file``: how many ranks write one file.
    ``hosts``: host to its ranks. ``counts_operations``: the benchmark is about metadata.
    """

    interface: str | None = None
    collective: bool | None = None
    fsync: bool | None = None
    bytes_written: int | None = None
    bytes_read: int | None = None
    whole_elements: bool = True
    ranks_per_file: int | None = None
    hosts: dict[str, list[int]] = {}
    counts_operations: bool = False


class Finding(_Value):
    """What a rule has to say, and the numbers that it rests on."""

    rule: str
    text: str
    numbers: dict[str, float]


_Said = tuple[str, dict[str, float]] | None


def _above(name: str, value: float) -> bool:
    return value > THRESHOLDS[name].value


def _all_of(layer: Layer, *names: str) -> int:
    return sum(layer[name] for name in names)


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times" if ratio < 10 else f"{ratio:.0f} times"


def _seconds(value: float) -> str:
    return f"{value:.3g} s"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _independent(summary: Summary, claim: Claim) -> _Said:
    """Collective transfers were asked for, and MPI-IO was called independently."""
    layer, hdf5 = summary.layers.get("MPI-IO"), summary.layers.get("H5D")
    # Of itself Darshan tells it by dataset: where some were collective and some were not, nobody knows which calls were to be.
    every_dataset = hdf5 is not None and hdf5["USE_MPIIO_COLLECTIVE"] >= hdf5.files
    asked = every_dataset if claim.collective is None else claim.collective
    if not asked or layer is None:
        return None
    collective = _all_of(layer, "COLL_READS", "COLL_WRITES")
    # HDF5 writes its metadata independently: what has to be collective are as many calls as the application made.
    expected = hdf5.calls if hdf5 and hdf5.calls else layer.calls
    lacking = expected - collective
    if not expected or not _above("independent", lacking / expected):
        return None
    independent = _all_of(layer, "INDEP_READS", "INDEP_WRITES")
    text = (
        f"Collective I/O was asked for and independent I/O happened: of {_many(expected, 'transfer')} {collective} reached "
        f"MPI-IO as collective calls, and MPI-IO saw {_many(independent, 'independent call')}"
    )
    return text, {"transfers": expected, "collective": collective, "independent": independent}


_SMALL = ("0_100", "100_1K", "1K_10K", "10K_100K")


def _storage(summary: Summary) -> Layer | None:
    """The module that talks to the file system."""
    found = [summary.layers[m] for m in ("POSIX", "STDIO") if m in summary.layers and summary.layers[m].calls]
    return found[0] if found else None


def _small(summary: Summary, claim: Claim) -> _Said:
    """Most accesses to the file system are small."""
    layer = _storage(summary)
    if layer is None or layer is summary.layers.get("STDIO"):
        return None
    small = sum(layer[f"SIZE_{direction}_{size}"] for direction in ("READ", "WRITE") for size in _SMALL)
    mean = (layer.bytes_read + layer.bytes_written) / layer.calls
    if not _above("small", small / layer.calls) or _above("small-mean", mean):
        return None
    usual = f"; the most frequent size is {in_units(layer.common_sizes[0])}" if layer.common_sizes else ""
    text = (
        f"Small accesses: {small / layer.calls:.0%} of {layer.calls} reads and writes of the file system are of "
        f"{in_units(int(THRESHOLDS['small-bytes'].value))} or less, {in_units(round(mean))} in the mean{usual}"
    )
    return text, {"accesses": layer.calls, "small": small, "mean_bytes": mean}


def _unaligned(summary: Summary, claim: Claim) -> _Said:
    """Accesses begin between the file system's blocks."""
    layer = summary.layers.get("POSIX")
    if layer is None or not layer.calls or layer.alignment_bytes <= 1:
        return None
    part = layer["FILE_NOT_ALIGNED"] / layer.calls
    if not _above("unaligned", part):
        return None
    text = (
        f"Unaligned accesses: {part:.0%} of {layer.calls} reads and writes of the file system do not begin at a multiple of "
        f"{in_units(layer.alignment_bytes)}, its block"
    )
    return text, {"accesses": layer.calls, "unaligned": layer["FILE_NOT_ALIGNED"], "block_bytes": layer.alignment_bytes}


def _logical(summary: Summary, claim: Claim, direction: str) -> int | None:
    """The benchmark's bytes; where it does not say, those that the application's own calls moved."""
    said = claim.bytes_written if direction == "written" else claim.bytes_read
    if said is not None:
        return said
    module = summary.top(claim.interface)
    if module is None or module in ("POSIX", "STDIO"):
        return None
    layer = summary.layers[module]
    return layer.bytes_written if direction == "written" else layer.bytes_read


def _read_modify_write(summary: Summary, claim: Claim) -> _Said:
    """Reads that nobody asked for, between the writes."""
    layer, logical = summary.layers.get("POSIX"), _logical(summary, claim, "read")
    if layer is None or logical is None or not layer.bytes_written:
        return None
    unasked = layer.bytes_read - logical
    if not _above("read-while-writing", unasked / layer.bytes_written):
        return None
    if not _above("switches", layer["RW_SWITCHES"] / max(1, layer["WRITES"])):
        return None
    text = (
        f"Read-modify-write: {in_units(unasked)} were read beside what was asked for, with "
        f"{_many(layer['RW_SWITCHES'], 'change')} between reading and writing in {_many(layer['WRITES'], 'write')}"
    )
    return text, {"unasked_bytes": unasked, "switches": layer["RW_SWITCHES"], "writes": layer["WRITES"]}


def _amplification(summary: Summary, claim: Claim, direction: str) -> _Said:
    layer, logical = summary.layers.get("POSIX"), _logical(summary, claim, direction)
    if layer is None or not logical:
        return None
    moved = layer.bytes_written if direction == "written" else layer.bytes_read
    if not _above("amplification", moved / logical):
        return None
    text = (
        f"{'Write' if direction == 'written' else 'Read'} amplification: {in_units(moved)} were {direction} for "
        f"{in_units(logical)} of the benchmark's own, {_times(moved / logical)}"
    )
    return text, {"moved_bytes": moved, "logical_bytes": logical}


def _write_amplification(summary: Summary, claim: Claim) -> _Said:
    """The file system was given more bytes than the benchmark has."""
    return _amplification(summary, claim, "written")


def _read_amplification(summary: Summary, claim: Claim) -> _Said:
    """The file system gave more bytes than the benchmark wanted."""
    return _amplification(summary, claim, "read")


def _metadata(summary: Summary, claim: Claim) -> _Said:
    """Time goes into opening, closing and the like."""
    if claim.counts_operations:
        return None
    shares = {}
    for module, layer in summary.layers.items():
        if (
            module != "H5F" and layer.seconds and layer.calls
        ):  # H5F has no other time, and its flushes are counted there
            each = layer.metadata_seconds / summary.ranks
            if _above("metadata-seconds", each) and _above("metadata", layer.metadata_seconds / layer.seconds):
                shares[module] = layer
    if not shares:
        return None
    module, layer = max(shares.items(), key=lambda item: item[1].metadata_seconds)
    text = (
        f"Time in metadata: {layer.metadata_seconds / layer.seconds:.0%} of the {_seconds(layer.seconds)} that the ranks "
        f"spent in {module} went into opening, closing, seeking and asking, {_seconds(layer.metadata_seconds)} with "
        f"{_many(_all_of(layer, 'OPENS', 'INDEP_OPENS', 'COLL_OPENS'), 'open')}"
    )
    return text, {"metadata_seconds": layer.metadata_seconds, "seconds": layer.seconds}


def _is_slow(seconds: float, rest: float) -> bool:
    return rest > 0 and _above("slow", seconds / rest) and _above("slow-seconds", seconds - rest)


def _slow_node(layer: Layer, claim: Claim) -> _Said:
    """A node of which even the fastest rank is slow; where it has one alone, that is a slow rank."""
    if len(claim.hosts) < 2 or len(layer.rank_seconds) != sum(map(len, claim.hosts.values())):
        return None
    seconds = {host: [layer.rank_seconds[rank] for rank in ranks] for host, ranks in claim.hosts.items() if ranks}
    host = max(seconds, key=lambda name: min(seconds[name]))
    others = [one for name, each in seconds.items() if name != host for one in each]
    fastest, rest = min(seconds[host]), sum(others) / len(others)
    if len(seconds[host]) < 2 or not _is_slow(fastest, rest):
        return None
    text = (
        f"One slow node: each of the {len(seconds[host])} ranks on {host} spent {_seconds(fastest)} or more in I/O, those on "
        f"the other {_many(len(seconds) - 1, 'node')} {_seconds(rest)} in the mean: {_times(fastest / rest)} as long"
    )
    return text, {"node_seconds": fastest, "others_seconds": rest}


def _slow(summary: Summary, claim: Claim) -> _Said:
    """One rank, or one node, spends more time than the others."""
    module = summary.top(claim.interface) or summary.top()
    if module is None or summary.ranks < 2:
        return None
    layer = summary.layers[module]
    node = _slow_node(layer, claim)
    if node is not None or layer.slowest is None:
        return node
    slowest: Slowest = layer.slowest
    rest = (slowest.mean_seconds * summary.ranks - slowest.seconds) / (summary.ranks - 1)
    if not _is_slow(slowest.seconds, rest):
        return None
    host = next((f" on {name}" for name, ranks in claim.hosts.items() if slowest.rank in ranks), "")
    rest_moved = (slowest.mean_moved * summary.ranks - slowest.moved) / (summary.ranks - 1)
    busy = slowest.moved > THRESHOLDS["slow"].value * max(rest_moved, 1)
    text = (
        f"{'One busy' if busy else 'One slow'} rank: rank {slowest.rank}{host} spent {_seconds(slowest.seconds)} in {module}, "
        f"the others {_seconds(rest)} in the mean: {_times(slowest.seconds / rest)} as long, for {in_units(slowest.moved)} "
        f"against {in_units(max(0, round(rest_moved)))}"
    )
    return text, {"rank": slowest.rank, "seconds": slowest.seconds, "others_seconds": rest}


def _no_fsync(summary: Summary, claim: Claim) -> _Said:
    """What was written was never forced to storage."""
    layer = _storage(summary)
    if layer is None or not _above("fsync-bytes", layer.bytes_written) or claim.fsync is False:
        return None
    mpiio, hdf5 = summary.layers.get("MPI-IO"), summary.layers.get("H5F")
    syncs = _all_of(layer, "FSYNCS", "FDSYNCS")
    if syncs:
        return None
    asked = (mpiio["SYNCS"] if mpiio else 0, hdf5["FLUSHES"] if hdf5 else 0)
    text = (
        f"No fsync: {in_units(layer.bytes_written)} were written and never forced to storage ({asked[0]} MPI_File_sync, "
        f"{asked[1]} H5Fflush, no fsync below them); the time to do so is in no rate"
    )
    return text, {"bytes_written": layer.bytes_written, "file_syncs": asked[0], "flushes": asked[1]}


def _sharing(summary: Summary, claim: Claim) -> _Said:
    """Files are used by more or fewer ranks than the pattern says."""
    wanted = claim.ranks_per_file
    layer = summary.layers.get("MPI-IO") or _storage(summary)
    if wanted is None or layer is None or layer.least_ranks <= wanted <= layer.most_ranks:
        return None
    found = f"{layer.least_ranks}" + (f" to {layer.most_ranks}" if layer.most_ranks != layer.least_ranks else "")
    text = (
        f"Not shared as the pattern says: a file is for {_many(wanted, 'rank')}, and each of {_many(layer.files, 'file')} was "
        f"used by {found}"
    )
    return text, {"wanted": wanted, "least": layer.least_ranks, "most": layer.most_ranks}


def _bytes(summary: Summary, claim: Claim) -> _Said:
    """Darshan's bytes are not the benchmark's."""
    module = summary.top(claim.interface)
    if module is None:
        return None
    layer = summary.layers[module]
    wrong: list[str] = []
    numbers: dict[str, float] = {}
    for direction, said, seen in (
        ("written", claim.bytes_written, layer.bytes_written),
        ("read", claim.bytes_read, layer.bytes_read),
    ):
        if said is None:
            continue
        numbers |= {f"{direction}_bytes": seen, f"{direction}_bytes_said": said}
        more_is_right = module == "H5D" and not claim.whole_elements
        if (seen < said or not more_is_right) and _above("bytes", abs(seen - said) / max(said, seen, 1)):
            wrong.append(f"{in_units(said)} {direction} against {in_units(seen)}")
    if not wrong:
        return None
    return f"The bytes disagree: the benchmark says {' and '.join(wrong)} in {module}", numbers


#: Name to rule, in the order in which they are told: what explains the most first. Each returns text and numbers, or nothing.
RULES: Mapping[str, Callable[[Summary, Claim], _Said]] = {
    "bytes-disagree": _bytes,
    "sharing": _sharing,
    "independent-instead-of-collective": _independent,
    "read-modify-write": _read_modify_write,
    "write-amplification": _write_amplification,
    "read-amplification": _read_amplification,
    "small-accesses": _small,
    "unaligned-accesses": _unaligned,
    "metadata-time": _metadata,
    "slow-rank": _slow,
    "no-fsync": _no_fsync,
}


def diagnose(summary: Summary, claim: Claim | None = None) -> tuple[Finding, ...]:
    """What the rules find, in their order."""
    found = ((name, rule(summary, claim or Claim())) for name, rule in RULES.items())
    return tuple(Finding(rule=name, text=said[0], numbers=said[1]) for name, said in found if said is not None)
