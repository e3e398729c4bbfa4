"""The scripts that start a program on all ranks in an arm's environment: as it is, and under Darshan."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from iogauge.darshan.preload import DISABLE, LINKED, variables


def script(commands: Sequence[str], launcher: Sequence[str]) -> str:
    """``commands`` of the shell make the environment. The script's arguments are the program and its options."""
    return _script(commands, f'exec {shlex.join(launcher)} "$@"')


def script_under_darshan(commands: Sequence[str], launcher: Sequence[str], runtime: str, guard: Path) -> str:
    """``runtime``: a word of the shell that is the library, or ``linked``. ``guard``: the job's functions, which refuse what
    cannot be preloaded. The script's arguments are the folder of the log and of its configuration, the log's name, the
    program and its options.
    """
    linked = runtime == LINKED
    library = "" if linked else "$library${LD_PRELOAD:+:$LD_PRELOAD}"
    settings = [f'"{name}={value}"' for name, value in variables(library, "$folder", "$log").items()]
    return _script(
        commands,
        "folder=$1 log=$2",
        "shift 2",
        *([] if linked else [f". {shlex.quote(str(guard))}", f"library={runtime}", 'iogauge_darshan "$library" "$1"']),
        f'exec {shlex.join(launcher)} env -u {DISABLE} {" ".join(settings)} "$@"',
    )


def _script(*parts: Sequence[str] | str) -> str:
    lines = [line for part in parts for line in ([part] if isinstance(part, str) else part)]
    return "\n".join(["#!/usr/bin/env bash", *lines]) + "\n"
