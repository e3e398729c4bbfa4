"""What h5bench's own runner leaves: a log of all benchmarks it began, and a folder of texts for each.

The runner ends with exit code 0 whatever failed; the log alone tells how each benchmark ended, where its folder is and with
which command it was started. These are functions of texts: whoever has a folder reads its files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path, PurePosixPath

from iogauge.adapters.h5bench import patterns
from iogauge.adapters.h5bench.benchmark import Benchmark
from iogauge.adapters.h5bench.suite import check_benchmark
from iogauge.adapters.upstream import Launch
from iogauge.errors import Refusal


@dataclass(frozen=True)
class Run:
    """One benchmark that the runner began: its ``kind``, the name of its ``folder``, when (local time), the launcher's words
    and the program's; ``exit_code`` is ``None`` where the log does not tell that it ended."""

    kind: str
    folder: str
    began: datetime
    launcher: tuple[str, ...]
    command: tuple[str, ...]
    exit_code: int | None

    @property
    def ranks(self) -> int | None:
        """That the launcher was asked for, where its words say so."""
        found = re.search(r"(?:^| )(?:-n|-np|--np|--ntasks)[ =](\d{1,9})(?: |$)", " ".join(self.launcher))
        return int(found[1]) if found else None


_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} \w+ - (INFO|ERROR|CRITICAL|WARNING) - (.*)")


def read_log(text: str) -> list[Run]:
    """The benchmarks of an ``…-h5bench.log``, in their order; what began twice under one name of a folder is there twice."""
    runs: list[Run] = []
    lines = [match.groups() for match in map(_LINE.fullmatch, text.splitlines()) if match]
    begins = [n for n, (_, _, said) in enumerate(lines) if re.fullmatch(r"h5bench \[[\w-]+\] - DIR: \S+", said)]
    for begin, end in pairwise([*begins, len(lines)]):
        time, _, said = lines[begin]
        kind, _, folder = said.removeprefix("h5bench [").partition("] - DIR: ")
        part = [line for _, _, line in lines[begin:end]]
        launcher, command = _command(part)
        runs.append(
            Run(
                kind=kind,
                folder=PurePosixPath(folder).name,
                began=datetime.strptime(time, "%Y-%m-%d %H:%M:%S"),
                launcher=launcher,
                command=command,
                exit_code=_exit_code(part),
            )
        )
    return runs


def _command(lines: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parted where the program begins."""
    for line in lines:
        if re.search(r"(?:^|[ /])h5bench_\w+ ", f"{line} ") and not line.startswith("h5bench ["):
            try:
                words = shlex.split(line)
            except ValueError:
                continue
            for at, word in enumerate(words):
                if PurePosixPath(word).name.startswith("h5bench_"):
                    return tuple(words[:at]), tuple(words[at:])
    return (), ()


def _exit_code(lines: Sequence[str]) -> int | None:
    for line in lines:
        if line.startswith("SUCCESS ("):
            return 0
        if failed := re.match(r"Return: (-?\d{1,5}) ", line):
            # It says so too of exit code 0 with HDF5's complaints, and of -9 for a signal.
            return int(failed[1]) & 255 or 1
    return None


def read_folder(run: Run, texts: Mapping[str, str], before: Sequence[Benchmark] = ()) -> tuple[Benchmark, Launch]:
    """What was run, and what it left, to be given to the benchmark's ``measurements``. ``texts`` are the folder's files by
    name; ``before`` the benchmarks of the suite that come before it.

    Raises :class:`Refusal` where that does not follow from them, :class:`InputError` where it could not be judged.
    """
    where = f"{run.kind} in {run.folder}"
    if not run.command or run.ranks is None:
        raise Refusal(f"{where}: the log does not tell its command and the number of ranks")
    file, values = _asked(run, texts, where)
    benchmark = check_benchmark(run.kind, file, values, run.ranks, where, before=before)
    launch = Launch(
        stdout=texts.get("stdout", ""),
        stderr=texts.get("stderr", ""),
        exit_code=run.exit_code,
        texts={name: texts[name] for name in benchmark.results if name in texts},
        name=where,
    )
    return benchmark, launch


def _asked(run: Run, texts: Mapping[str, str], where: str) -> tuple[str, dict[str, str]]:
    """File and configuration, as they stood in the JSON."""
    words = run.command[1:]
    if run.kind in patterns.KINDS:
        values = _assignments(texts, "h5bench.cfg", where) | {"MODE": _mode(texts.get("stdout", ""))}
        return _name(words[-1] if words else ""), _plain(values, "CSV_FILE")
    if run.kind == "metadata":
        values = _plain(_assignments(texts, "hdf5_iotest.ini", where), "csv-file")
        return _name(values.pop("hdf5-file", "")), values
    if run.kind == "openpmd":
        if PurePosixPath(run.command[0]).name.endswith("_read"):
            return "", {"operation": "read", "pattern": words[-1] if words else ""}
        values = _assignments(texts, "openpmd.input", where)
        values.pop("fileLocation", None)
        return "", {"operation": "write"} | values
    if run.kind == "e3sm":
        options = _options(words[:-1])
        return _name(options.pop("o", "")), options | {"map": words[-1] if words else ""}
    options = _options(words)
    return _name(options.get("filebase", "")), {key: value or "true" for key, value in options.items()}


def _assignments(texts: Mapping[str, str], name: str, where: str) -> dict[str, str]:
    if name not in texts:
        raise Refusal(f"{where}: there is no {name}")
    lines = [line for line in texts[name].splitlines() if line.strip() and not line.startswith("[")]
    if any("=" not in line for line in lines):
        raise Refusal(f"{where}: {name} has lines that are not KEY=VALUE")
    return {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}


def _options(words: Sequence[str]) -> dict[str, str]:
    """Options with the words that follow them."""
    found: dict[str, list[str]] = {}
    last: list[str] = []
    for word in words:
        if re.fullmatch(r"--?[A-Za-z]\w*", word):
            last = found[word.lstrip("-")] = []
        else:
            last.append(word)
    return {key: " ".join(values) for key, values in found.items()}


def _mode(stdout: str) -> str:
    found = re.search(r"^Mode: (\w+)$", stdout, re.MULTILINE)
    return found[1] if found else "SYNC"


def _name(path: str) -> str:
    """Without the runner's folders."""
    return Path(path).name


def _plain(values: Mapping[str, str], key: str) -> dict[str, str]:
    return {**values, **({key: _name(values[key])} if key in values else {})}
