"""Commands that look at file systems, and hang when those do. Only the standard library is needed: jobs use it too."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

#: A file system or a quota server that does not answer must not hold a night.
ANSWER_SECONDS = 30


class Unreadable(Exception):
    """Something that cannot be known; ``str()`` says why."""


def run_whole(command: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command with all that it starts: what ends this process, Ctrl-C for example, ends them first."""
    return _run(command, env)


def run_briefly(command: str | Sequence[str], seconds: float | None = None) -> tuple[int, str, str]:
    """Exit code, output and errors of a command, or of a line of shell.

    Raises :class:`Unreadable` when it does not end in ``seconds`` (default :data:`ANSWER_SECONDS`).
    """
    limit = ANSWER_SECONDS if seconds is None else seconds
    words = ["bash", "-c", command] if isinstance(command, str) else command
    try:
        done = _run(words, {**os.environ, "LC_ALL": "C"}, limit)
    except subprocess.TimeoutExpired:
        raise Unreadable(f"no answer in {limit:g} s") from None
    return done.returncode, done.stdout, done.stderr


def _run(
    command: Sequence[str], env: Mapping[str, str], seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Whatever ends the waiting kills the command with all that it has started.

    With a limit nobody waits for them to be gone: a process that hangs in a file system cannot be killed.
    """
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        if seconds is None:
            process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)
