"""HDF5, Zarr 3 and netCDF-4 create, write, open and read many arrays: the File Format Comparison's pattern, in Python.

One process. In every repeat the formats take turns, beginning with another one each time; each lays the arrays out in the
same chunks with the same compression. The records are those of the kernels in C (docs/kernels.md).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from iogauge import __version__
from iogauge.errors import InputError
from iogauge.validation import read_yaml, validate
from operations import OPERATIONS, Plan
from sizes import Sizes
from stores import FORMATS
from supervise import BAD_INPUT, complain, supervise

EXAMPLE = """\
the YAML file has the keys of the File Format Comparison and, if you like, ours (defaults behind them):
  FILE_NAME: 2048_Matrix        a folder of this name is made below --dir
  NUMBER_DATASETS: 2048
  NUMBER_ELEMENTS: [128, 128]   one to three dimensions
  CHUNK_ELEMENTS: [64, 64]      the whole array
  DATATYPE: float32             float32, float64, int32 or int64
  COMPRESSION: gzip             none
  COMPRESSION_LEVEL: 4          4, with COMPRESSION: gzip
  REPEATS: 5                    5
  SEED: 1                       1

example: .venv/bin/python kernels/formats --config matrix.yaml --dir /scratch/me --json records.jsonl

exit codes: 0 done; 2 bad argument, configuration, folder or file system, or a package is missing; 3 data differ
"""


def number(low: int, high: int) -> Callable[[str], int]:
    """A whole number between two, for argparse."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text}: a whole number from {low} to {high} is expected")
        return int(text)

    return parse


def some_formats(text: str) -> tuple[str, ...]:
    """Names of formats, each once, for argparse."""
    names = tuple(text.split(","))
    if len(set(names)) != len(names) or not set(names) <= set(FORMATS):
        raise argparse.ArgumentTypeError(f"{text}: allowed: {', '.join(FORMATS)}, each once, with a comma between them")
    return names


def make_parser() -> argparse.ArgumentParser:
    """The options; those that the kernels in C have too have the same names."""
    parser = argparse.ArgumentParser(
        prog="formats", description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--config", type=Path, required=True, metavar="FILE", help="YAML file with the sizes (required)")
    add("--dir", type=Path, required=True, metavar="FOLDER", help="existing folder to write below (required)")
    add("--json", type=Path, metavar="FILE", help="file for the records; else stdout's last lines")
    add(
        "--formats",
        type=some_formats,
        default=tuple(FORMATS),
        metavar="NAME,...",
        help=f"the first is the main case, the others are its baselines [{','.join(FORMATS)}]",
    )
    add(
        "--operation",
        choices=("write,read", "write", "read"),
        default="write,read",
        metavar="write,read|write|read",
        help="create and write, open and read, or all; read alone takes what an earlier run kept [write,read]",
    )
    add("--repeats", type=number(1, 100_000), help="measured repeats [REPEATS of the file]")
    add("--warmup", type=number(0, 1000), default=1, help="repeats before them, not reported [1]")
    add("--seed", type=number(0, (1 << 63) - 1), help="of the data [SEED of the file]")
    for name, default, text in (
        ("--fsync", "yes", "bring data to storage before close: the flush phase"),
        ("--drop-cache", "yes", "ask the system to drop the files before open and read"),
        ("--keep", "no", "keep the last repeat's files"),
    ):
        add(name, choices=("yes", "no"), default=default, metavar="yes|no", help=f"{text} [{default}]")
    parser.add_argument("--version", action="version", version=f"formats {__version__}")
    return parser


def make_plan(options: argparse.Namespace) -> Plan:
    """Everything that can be known to be wrong before anything is made. Raises :class:`InputError`."""
    document, locate = read_yaml(options.config)
    if not isinstance(document, dict):
        raise InputError("a mapping with FILE_NAME, NUMBER_DATASETS, NUMBER_ELEMENTS is expected", file=options.config)
    sizes = validate(Sizes, document, file=options.config, locate=locate)
    if options.seed is not None:
        sizes = sizes.model_copy(update={"seed": options.seed})
    plan = Plan(
        sizes=sizes,
        formats=options.formats,
        operations={"write,read": OPERATIONS, "write": OPERATIONS[:2], "read": OPERATIONS[2:]}[options.operation],
        folder=options.dir / sizes.file_name,
        json=options.json,
        repeats=options.repeats or sizes.repeats,
        warmup=options.warmup,
        fsync=options.fsync == "yes",
        drop_cache=options.drop_cache == "yes",
        keep=options.keep == "yes",
    )
    for interface in plan.formats:
        need_package(FORMATS[interface].package, interface)
    need_folder(options.dir, "--dir")
    if plan.json is not None:
        need_folder(plan.json.absolute().parent, "--json")
        if plan.json.exists() and not plan.json.is_file():
            raise InputError("is not a regular file; it or a new one is expected", key=f"--json {plan.json}")
    if plan.writes:
        free = shutil.disk_usage(options.dir).free
        if sizes.bytes > free:
            raise InputError(f"{free} bytes are free, the case writes {sizes.bytes}", key=f"--dir {options.dir}")
        if os.path.lexists(plan.folder):
            where = {"file": options.config, "line": locate(("FILE_NAME",)), "key": "FILE_NAME"}
            raise InputError(f"{plan.folder} exists already and is never overwritten; choose another name", **where)
    else:
        for case in map(plan.case, plan.formats):
            if not case.path.exists():
                raise InputError(f"{case.path} does not exist; --operation write --keep yes makes it")
    return plan


def need_package(package: str, interface: str) -> None:
    """Raise :class:`InputError` unless it is installed; Zarr in the version that has format 3."""
    try:
        version = importlib.metadata.version(package) if importlib.util.find_spec(package) else None
    except importlib.metadata.PackageNotFoundError:
        version = None
    needs = "zarr 3 (which needs Python 3.11)" if package == "zarr" else package
    if version is None or (package == "zarr" and int(version.split(".")[0]) < 3):
        raise InputError(
            f"package {needs} is missing{f' (zarr {version} is installed)' if version else ''} in {sys.executable}; "
            f"install iogauge[formats], or leave {interface} out of --formats",
            key=f"--formats {interface}",
        )


def need_folder(path: Path, option: str) -> None:
    """Raise :class:`InputError` unless files can be made in it."""
    if not path.is_dir():
        raise InputError("no such folder", key=f"{option} {path}")
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError("cannot be written", key=f"{option} {path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 done, 2 bad input, 3 data differ."""
    options = make_parser().parse_args(arguments)
    try:
        return supervise(make_plan(options))
    except InputError as error:
        complain(error)
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
