"""Commands that may hang in a file system: nothing of them is left, however the waiting ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import wait_until

from iogauge.commands import Unreadable, run_briefly, run_whole


def hangs(note: Path) -> str:
    """A line of shell that never ends; ``note`` gets the number of a process that it has started."""
    return f"sleep 1000 & echo $! > {note}.new; mv {note}.new {note}; wait"


def is_gone(note: Path) -> bool:
    """Ended; that nobody has asked for its exit code yet is nothing."""
    stat = Path("/proc", note.read_text().strip(), "stat")
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_command_that_does_not_end_in_time_is_killed_with_what_it_started(tmp_path):
    note = tmp_path / "number"
    with pytest.raises(Unreadable, match="no answer in 1 s"):
        run_briefly(hangs(note), 1)
    wait_until(lambda: not note.exists() or is_gone(note))


@pytest.mark.parametrize("run", [run_briefly, lambda command: run_whole(["bash", "-c", command], {**os.environ})])
def test_an_interrupt_kills_the_command_with_what_it_started(run, tmp_path, monkeypatch):
    note = tmp_path / "number"

    def interrupted(*_, **__):
        wait_until(note.exists)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(hangs(note))
    wait_until(lambda: is_gone(note))


def test_what_a_command_says_is_handed_on():
    assert run_briefly("echo said; echo complained >&2; exit 3") == (3, "said\n", "complained\n")
    done = run_whole([sys.executable, "-c", "import os; print(os.environ['WHO'])"], {"WHO": "ada"})
    assert (done.returncode, done.stdout) == (0, "ada\n")
