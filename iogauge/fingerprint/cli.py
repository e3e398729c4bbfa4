"""The commands ``iogauge fingerprint ...``. Exit codes: 0 the same, 1 different, 2 could not be told."""

from __future__ import annotations

import functools
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from iogauge import arms, nightly
from iogauge.command import answers, new_console
from iogauge.darshan.preload import files_of_case
from iogauge.errors import InputError, Refusal
from iogauge.fingerprint import text
from iogauge.fingerprint.cases import CASES, kept_at, options_of
from iogauge.fingerprint.check import Checked, check_case, parts_of
from iogauge.fingerprint.darshan import from_logs
from iogauge.fingerprint.differences import Finding, differences
from iogauge.fingerprint.model import Fingerprint
from iogauge.fingerprint.record import Build, record

#: Below the checkout.
REFERENCES = "reference_values"

#: On how many ranks a case is run, where nothing else is asked for.
RANKS = 2

#: How often a fingerprint that is to be kept is taken in each folder.
RUNS = 3


def _refusals_are_answered(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """What could not be counted ends with exit code 2, and its temporary files are removed when the command is told to end."""

    @functools.wraps(command)
    def answered(*args: Any, **kwargs: Any) -> int | None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            return command(*args, **kwargs)
        except Refusal as refusal:
            raise InputError(str(refusal)) from refusal

    return answered


def _at_build(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of those that run a kernel."""
    for option in (
        click.option(
            "--kernels",
            envvar="IOGAUGE_KERNELS",
            type=click.Path(path_type=Path),
            help="build folder of the kernels (or IOGAUGE_KERNELS): cmake -S kernels -B FOLDER; cmake --build FOLDER",
        ),
        click.option("--arm", help="instead: an arm of 'iogauge arms', whose kernels are built where there are none"),
        click.option("--site", default="local", show_default=True, help="whose arms are meant"),
        click.option("--launcher", default="", help="such as 'srun -n {ranks}'  [default: that of the kernels' MPI]"),
        click.option("--preload", multiple=True, metavar="LIBRARY", help="loaded before the counter"),
        click.option(
            "--dir",
            "folders",
            multiple=True,
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="existing folder for the files, all nodes'; several: in turn  [default: the one for temporary files]",
        ),
        click.option("--ranks", type=click.IntRange(min=1), default=RANKS, show_default=True),
    ):
        command = option(command)
    return command


def _build(kernels: Path | None, arm: str | None, site: str, launcher: str, preload: Sequence[str]) -> Build:
    if arm is not None:
        return Build.of(arms.resolve(arm, site), launcher, preload)
    if kernels is None:
        raise InputError(
            "missing; the kernels' build folder (or IOGAUGE_KERNELS), or --arm, is required", key="--kernels"
        )
    return Build.at(kernels, launcher, preload)


def _folders(folders: Sequence[Path]) -> Sequence[Path]:
    return folders or [Path(tempfile.gettempdir())]


@click.group("fingerprint")
def fingerprint_group() -> None:
    """What a case asks of the storage, call by call: the same on every run and any storage, so that no noise hides a change.

    \b
    Examples:
      iogauge fingerprint check --kernels build
      (cd reference_values/fingerprints/particles/CC; iogauge fingerprint compare hdf5-1.{10.8,14.6}_open-mpi_2.yaml)
    """


@fingerprint_group.command("record")
@click.argument("case")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@_at_build
@click.option("--runs", type=click.IntRange(min=1), default=RUNS, show_default=True, help="in each folder")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="write it there")
@click.option("--keep", is_flag=True, help="write it below reference_values/fingerprints, to be reviewed and committed")
@answers
@_refusals_are_answered
def record_command(
    case: str,
    options: tuple[str, ...],
    kernels: Path | None,
    arm: str | None,
    site: str,
    launcher: str,
    preload: tuple[str, ...],
    folders: tuple[Path, ...],
    ranks: int,
    runs: int,
    output: Path | None,
    keep: bool,
) -> None:
    """Run CASE several times, and write what is the same every time.

    CASE is KERNEL/PATTERN, one of those that are kept, or 'all' of them; or any pattern of your own, with the kernel's OPTIONS
    behind --.

    \b
    Examples:
      iogauge fingerprint record particles/CC --kernels build --dir /dev/shm --dir /scratch --keep
      iogauge fingerprint record particles/mine --kernels build --output mine.yaml -- --particles 1M --collective yes
      iogauge fingerprint record all --kernels build --keep --launcher 'srun -N2 -n{ranks}' --dir /scratch/me
    """
    build = _build(kernels, arm, site, launcher, preload)
    names = list(CASES) if case == "all" and not options else [case]
    if output is not None and len(names) > 1:
        raise InputError("is one file; --keep is for all of them", key="--output")
    for name in names:
        kernel, pattern = _parts(name)
        chosen = options or options_of(name)
        found = record(build, kernel, pattern, chosen, ranks=ranks, folders=_folders(folders), runs=runs)
        path = kept_at(nightly.checkout() / REFERENCES, found) if keep else output
        if path is None:
            click.echo(text.to_text(found), nl=False)
            continue
        text.save(found, path)
        lost = len(found.not_deterministic)
        click.echo(f"{path}  {found.runs} runs, {lost} numbers not the same every time")


def _parts(case: str) -> tuple[str, str]:
    kernel, pattern = parts_of(case)
    if not kernel or not pattern:
        raise InputError(f"{case!r}: KERNEL/PATTERN is expected, such as particles/CC", key="CASE")
    return kernel, pattern


@fingerprint_group.command("show")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@answers
@_refusals_are_answered
def show_command(file: Path) -> None:
    """Show a fingerprint's calls and layout: FILE is one that was recorded, or a Darshan log.

    \b
    Examples:
      iogauge fingerprint show reference_values/fingerprints/particles/CC/hdf5-1.10.8_open-mpi_2.yaml
      iogauge fingerprint show darshan.log
    """
    _print(new_console(), _load(file))


@fingerprint_group.command("compare")
@click.argument("before", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("after", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@answers
@_refusals_are_answered
def compare_command(before: Path, after: Path) -> int:
    """Say what is otherwise in AFTER than in BEFORE, what matters most first. Each is a file that was recorded, or a
    Darshan log: then what both tell is compared.

    \b
    Examples:
      (cd reference_values/fingerprints/particles/CC; iogauge fingerprint compare hdf5-1.{10.8,14.6}_open-mpi_2.yaml)
      iogauge fingerprint compare fingerprint.yaml darshan.log

    Exit codes: 0 the same; 1 different; 2 they cannot be read, or are of different cases.
    """
    old, new = _load(before), _load(after)
    found = differences(old, new)
    _print_findings(new_console(), f"{_software(old)} → {_software(new)}", found)
    return 1 if found else 0


@fingerprint_group.command("check")
@click.argument("cases", nargs=-1)
@_at_build
@answers
@_refusals_are_answered
def check_command(
    cases: tuple[str, ...],
    kernels: Path | None,
    arm: str | None,
    site: str,
    launcher: str,
    preload: tuple[str, ...],
    folders: tuple[Path, ...],
    ranks: int,
) -> int:
    """Run CASES (default: all that are kept) once, and compare them with the fingerprints committed for this HDF5 version.

    With another version of the MPI library what its calls become below it is not compared.

    \b
    Examples:
      iogauge fingerprint check --kernels build
      iogauge fingerprint check --arm hdf5-1.10.8-openmpi
      iogauge fingerprint check particles/CC --kernels build --ranks 4 --dir /scratch/me

    Exit codes: 0 the same; 1 different; 2 it could not be run, or nothing is committed for this version and number of ranks.
    """
    build = _build(kernels, arm, site, launcher, preload)
    console = new_console()
    references = nightly.checkout() / REFERENCES
    results = []
    for case in cases or CASES:
        checked = check_case(build, case, ranks=ranks, folder=_folders(folders)[0], references=references)
        _print_checked(console, checked)
        results.append(checked)
    if any(checked.findings for checked in results):
        return 1
    missing = [checked.kept is None for checked in results]
    return 2 if all(missing) or (cases and any(missing)) else 0


def _print_checked(console: Console, checked: Checked) -> None:
    found, kept = checked.found, checked.kept
    if kept is None:
        of = f"{_software(found)} on {found.ranks} rank{'s' * (found.ranks > 1)}"
        console.print(f"{found.case}: none is committed for {of}; there is {', '.join(checked.others) or 'nothing'}")
        return
    _print_findings(console, f"{found.case}, {_software(found)}", checked.findings)
    if "posix" not in checked.layers:
        console.print(f"  POSIX calls are not compared: {_software(kept)} is committed")


def _load(path: Path) -> Fingerprint:
    if path.suffix == ".yaml":
        return text.read(path)
    return from_logs([path], only=files_of_case(), kernel="unknown", pattern=path.stem, hdf5=None)


def _software(fingerprint: Fingerprint) -> str:
    if fingerprint.source == "darshan":
        return "Darshan's log"
    # What is not the same there was chosen, not upgraded.
    chosen = "".join(f", {name}={value}" for name, value in fingerprint.environment.items())
    return f"HDF5 {fingerprint.hdf5 or 'none'}, {fingerprint.mpi or 'no MPI'}{chosen}"


def _print_findings(console: Console, title: str, findings: Sequence[Finding]) -> None:
    if not findings:
        console.print(f"{title}: the same")
        return
    console.print(f"{title}: {len(findings)} difference{'s' * (len(findings) > 1)}")
    for finding in findings:
        console.print(f"  [bold]{finding.kind}[/]  {escape(finding.text)}")


def _print(console: Console, fingerprint: Fingerprint) -> None:
    f = fingerprint
    console.print(f"{f.case} · {f.ranks} ranks · {_software(f)} · {f.runs} run{'s' * (f.runs > 1)}")
    for name, file in f.files.items():
        size = "" if file.bytes is None else f" · {file.bytes} bytes"
        console.print(f"\n[bold]{escape(name)}[/]{size}")
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("opened to", "call", "calls", "bytes", "sizes", "by Darshan's bins", "at multiples"):
            table.add_column(title, overflow="fold")
        for access, calls in file.calls.items():
            for kind, one in calls.items():
                texts = ["-" if s is None else str(s.model_dump()) for s in (one.calls, one.bytes)]
                pairs = [_pairs(one.sizes), _pairs(one.bins), _pairs(one.aligned)]
                table.add_row(access, kind, *texts, *pairs)
        console.print(table)
    for name, layout in f.layouts.items():
        console.print(
            f"\n[bold]{escape(name)}[/] in HDF5: superblock {layout.superblock_version}, {layout.space_strategy}"
        )
        for object_, facts in layout.objects.items():
            words = ", ".join(f"{k} {v}" for k, v in facts.model_dump(exclude_none=True, exclude={"kind"}).items())
            console.print(f"  {facts.kind} {escape(object_)}: {escape(words)}")
    for path in f.not_deterministic:
        console.print(f"not the same every time: {escape(path)}")


def _pairs(values: dict[Any, int] | None) -> str:
    return " ".join(f"{number}x{key}" for key, number in values.items()) if values else "-"
