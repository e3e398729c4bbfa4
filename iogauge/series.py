"""Names that stay the same for years: the key of a series, and the fingerprint of its configuration.

ReFrame's own names and hashes change with every parameter added to a check, so nothing here depends on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from iogauge.measurement import Measurement

#: What a pattern's label tells, or what changes no byte of the I/O: not in the fingerprint.
_NOT_CONFIGURATION = ("compute_seconds",)


def _particles(pattern: Mapping[str, Any]) -> list[str]:
    words = [str(pattern["locality"])]
    if pattern["dimensions"] != 1:
        words.append(f"{pattern['dimensions']}d")
    if pattern["selection"] != "full":
        words.append(str(pattern["selection"]))
    if pattern.get("write_selected", False):
        words.append("selected-write")
    if "write_mode" in pattern:
        words.append(str(pattern["write_mode"]))
    if "stdev" in pattern:
        words.append("varied")
    if "memory_limit_bytes" in pattern:
        words.append("limited")
    if "delayed_close" in pattern:
        words.append(f"close{pattern['delayed_close']}")
    if "content" in pattern:
        words.append(str(pattern["content"]))
    if pattern["file_per_process"]:
        words.append("file-per-process")
    return words + ["chunked"] * bool(pattern["chunk"])


def _segments(pattern: Mapping[str, Any]) -> list[str]:
    words = ["file-per-process"] if pattern["file_per_process"] else ["shared", str(pattern["layout"])]
    if "dims" in pattern:
        words.append(f"{len(pattern['dims'])}d")
        # Said where the array is not walked as it lies in the file.
        if pattern["order"] != sorted(pattern["order"], reverse=True):
            words.append("order" + "x".join(map(str, pattern["order"])))
    elif pattern.get("geometry") == "2d":
        words.append("square")
    elif pattern.get("transfer_bytes", 0) > pattern.get("block_bytes", 0):
        words.append("strided")
    if pattern["datasets"] != 1 or pattern["files"] != 1:
        words.append(f"{pattern['datasets']}ds{pattern['files']}f")
    return words + ["chunked"] * bool(pattern["chunk_bytes"]) + ["growing"] * bool(pattern.get("grow"))


_WRITERS = {"all": "shared", "process": "file-per-process", "node": "file-per-node", "one": "one-writer"}


def _blocks(pattern: Mapping[str, Any]) -> list[str]:
    words = [_WRITERS[str(pattern["writers"])], f"halo{pattern['halo']}"]
    if pattern["size_is"] == "global":
        words.append("strong")
    return words + ["chunked"] * any(pattern["chunk"])


def _metadata(pattern: Mapping[str, Any]) -> list[str]:
    words = ["file-per-process" if pattern["file_per_process"] else str(pattern["directory"])]
    if pattern["depth"]:
        words.append(f"tree{pattern['depth']}x{pattern['branch']}" + "-leaves" * bool(pattern["leaves"]))
    if pattern["bytes"]:
        words.append(f"{pattern['bytes']}B")
    return words + ["collective-metadata"] * bool(pattern["collective_metadata"])


def _formats(pattern: Mapping[str, Any]) -> list[str]:
    whole = pattern["chunk"] == pattern["elements"]
    return ["whole" if whole else "chunked", f"{len(pattern['elements'])}d"]


def _tiles(pattern: Mapping[str, Any]) -> list[str]:
    words = [f"rank{pattern['rank']}", str(pattern["slowest"])]
    if pattern["layout"] != "contiguous":
        words.append(str(pattern["layout"]))
    if pattern["scaling"] != "weak":
        words.append(str(pattern["scaling"]))
    return words + [str(pattern["io"])] * (pattern["io"] in ("posix", "core", "mpi-io-uni"))


def _ior(pattern: Mapping[str, Any]) -> list[str]:
    words = ["file-per-process" if pattern["file_per_process"] else "shared"]
    if pattern["segments"] > 1:
        words.append("segmented")
    return words


def _hdf5_iotest(pattern: Mapping[str, Any]) -> list[str]:
    aligned = pattern["alignment_bytes"]
    return _tiles(pattern) + ([f"align{aligned}"] if aligned else [])


def _h5bench(pattern: Mapping[str, Any]) -> list[str]:
    kind = str(pattern["kind"])
    words = [] if kind in ("write", "read", "overwrite", "append") else [_H5BENCH_KINDS.get(kind, kind)]
    if "locality" in pattern:
        words.append(str(pattern["locality"]))
        words += [f"{pattern['dimensions']}d"] * (pattern["dimensions"] != 1)
        words += [str(pattern["selection"])] * (pattern["selection"] != "full")
        words += ["file-per-process"] * bool(pattern["file_per_process"])
        words += ["collective-metadata"] * bool(pattern["collective_metadata"])
    elif kind in _H5BENCH_WORDS:
        words += _H5BENCH_WORDS[kind](pattern)
    return words


def _fft(pattern: Mapping[str, Any]) -> list[str]:
    return ["calls", f"{len(pattern['elements'])}d"]


def _benchio(pattern: Mapping[str, Any]) -> list[str]:
    words = _blocks(pattern)
    if pattern["striping"] != "unstriped":
        words.append(str(pattern["striping"]))
    return words


def _darshan(pattern: Mapping[str, Any]) -> list[str]:
    return [str(pattern["program"])]


def _h5bench_exerciser(pattern: Mapping[str, Any]) -> list[str]:
    words = [f"{pattern['bytes_per_rank']}B"] + ["chunked"] * bool(pattern["chunked"])
    return words + ["derived"] * bool(pattern["derived"]) + ["blocks"] * ("blocks" in pattern)


#: What tells the series of a kind apart, beyond its name.
_H5BENCH_WORDS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "e3sm": lambda pattern: [str(pattern["case"]), str(pattern["output"])],
    "exerciser": _h5bench_exerciser,
    "macsio": lambda pattern: [f"{pattern['mode']}{pattern['files']}"],
    "metadata": _tiles,
    "openpmd": lambda pattern: [str(pattern[name]) for name in ("selection",) if name in pattern],
}

_H5BENCH_KINDS = {"write-unlimited": "unlimited", "write_var_normal_dist": "varied"}


#: What a benchmark's pattern is called; one function a benchmark.
_WORDS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "benchio": _benchio,
    "darshan": _darshan,
    "blocks": _blocks,
    "metadata": _metadata,
    "particles": _particles,
    "segments": _segments,
    "tiles": _tiles,
    "fft": _fft,
    "formats": _formats,
    "h5bench": _h5bench,
    "h5perf": _segments,
    "h5perf_serial": _segments,
    "hdf5_iotest": _hdf5_iotest,
    "ior": _ior,
}


def _common(pattern: Mapping[str, Any]) -> list[str]:
    """HDF5's knobs where they are not the default; a pattern that does not name one has the default."""
    words = []
    if pattern.get("driver", "default") != "default":
        words.append(str(pattern["driver"]))
    if pattern.get("libver", "earliest") != "earliest":
        words.append(str(pattern["libver"]))
    if pattern.get("fill", "default") != "default":
        words.append(f"fill-{pattern['fill']}")
    if pattern.get("compress", "none") != "none":
        words.append(str(pattern["compress"]))
    if pattern.get("meta_block_bytes", 0):
        words.append(f"meta{pattern['meta_block_bytes']}")
    if pattern.get("extendible", False):
        words.append("extendible")
    if "mpi_info" in pattern:
        words.append(pattern["mpi_info"].replace(";", "+").replace("/", "_"))
    if "async" in pattern:
        words.append(f"async-{pattern['async']}")
    return words


def label_of(benchmark: str, pattern: Mapping[str, Any], collective: bool) -> str:
    """The I/O pattern in the field's words, such as ``CC-2d-partial`` or ``shared-interleaved-collective``."""
    own = [f"own-{pattern['own']}"] if "own" in pattern else []  # a site's own configuration
    return "-".join(_WORDS[benchmark](pattern) + own + _common(pattern) + ["collective"] * collective)


def pattern_label(measurement: Measurement) -> str:
    """The label of a measurement's pattern."""
    return label_of(measurement.benchmark, measurement.pattern, measurement.collective)


def key_of(
    benchmark: str,
    operation: str,
    file_system: str,
    nodes: int,
    ranks_per_node: int,
    label: str,
    interface: str,
    arm: str = "",
) -> str:
    """``benchmark/operation/file system/NxP/pattern/interface``, and ``@ARM`` where there is one; N nodes of P ranks."""
    suffix = f"@{arm}" if arm else ""
    return f"{benchmark}/{operation}/{file_system}/{nodes}x{ranks_per_node}/{label}/{interface}{suffix}"


class Parts(NamedTuple):
    """What a key is made of; ``arm`` (:func:`iogauge.sites.arm_of`) is empty in the usual environ of the first partition."""

    benchmark: str
    operation: str
    file_system: str
    nodes: int
    ranks_per_node: int
    label: str
    interface: str
    arm: str


def parts_of(key: str) -> Parts:
    """The parts of a key. Raises ValueError for what is none."""
    benchmark, operation, file_system, points, label, last = key.split("/")
    nodes, ranks = points.split("x")
    interface, _, arm = last.partition("@")
    return Parts(benchmark, operation, file_system, int(nodes), int(ranks), label, interface, arm)


def key(measurement: Measurement, file_system: str, arm: str = "") -> str:
    """The key of a measurement; where hosts hold different numbers of ranks, P is the largest."""
    return key_of(
        measurement.benchmark,
        measurement.operation,
        file_system,
        measurement.nodes,
        max(len(ranks) for ranks in measurement.hosts.values()),
        pattern_label(measurement),
        measurement.interface,
        arm,
    )


def fingerprint(measurement: Measurement, volume: str) -> str:
    """Eight hexadecimal digits of the configuration: the volume below the file system, sizes, layout, flush.

    Two nights of one key with different fingerprints are not comparable. Software is not in it: it is what may regress.
    """
    configuration = {
        "volume": volume,
        "logical_bytes": measurement.logical_bytes,
        "collective": measurement.collective,
        "pattern": {name: value for name, value in measurement.pattern.items() if name not in _NOT_CONFIGURATION},
    }
    text = json.dumps(configuration, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
