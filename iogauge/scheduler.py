"""What a scheduler says of jobs: why one ended early, and which ones a night has left behind."""

from __future__ import annotations

import re
import subprocess
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from iogauge.commands import Unreadable, run_briefly
from iogauge.errors import InputError

#: Jobs that were told to end have this long to be gone: by default KillWait is 30 s, UnkillableStepTimeout 60 s, and a message
#: that a busy node did not take is sent once more after a minute.
GONE_SECONDS = 180

#: Slurm's controller has this long to answer; its commands retry for a minute.
ANSWER_SECONDS = 15

#: ReFrame's names of the backends that submit to Slurm.
SLURM = ("slurm", "squeue")

_TIME_LIMIT = "its time limit was reached"

#: A job that starts step after step may begin one when Slurm has ended those before: its state is then COMPLETED.
_BEING_ENDED = "Slurm was ending it"

#: What Slurm's daemons, PBS and LSF write into a job's standard error when they end it, and Slurm's states (sacct's manual).
_SAID = (
    (r"DUE TO TIME LIMIT|PBS: job killed: walltime|TERM_RUNLIMIT", _TIME_LIMIT),
    (r"DUE TO NODE FAILURE|NODE FAILURE", "one of its nodes failed"),
    (r"DUE TO PREEMPTION", "it was preempted"),
    (r"oom[-_ ]kill|Out Of Memory|TERM_MEMLIMIT|PBS: job killed: mem", "it was killed for want of memory"),
    (r"\*\*\* JOB .* CANCELLED AT|TERM_OWNER|TERM_ADMIN", "it was cancelled"),
)
_STATES = {
    "TIMEOUT": _TIME_LIMIT,
    "NODE_FAIL": "one of its nodes failed",
    "BOOT_FAIL": "one of its nodes failed to start",
    "PREEMPTED": "it was preempted",
    "OUT_OF_MEMORY": "it was killed for want of memory",
    "DEADLINE": "its deadline passed",
    "CANCELLED": "it was cancelled",
}


def why_ended(state: str | None, said: str) -> str:
    """Why the scheduler ended a job, from its final ``state`` (Slurm's) and its standard error; empty when it did not."""
    for name in (state or "").split(","):
        if name in _STATES and name != "CANCELLED":
            return _STATES[name]
    for pattern, cause in _SAID:
        if re.search(pattern, said):
            return cause
    if "CANCELLED" in (state or ""):
        return _STATES["CANCELLED"]
    return _BEING_ENDED if "Job/step already completing or completed" in said else ""


def why_being_ended(job: str, cause: str) -> str:
    """The ``cause`` that :func:`why_ended` gave for a job of Slurm; more of it where its step came too late to be told why."""
    if cause == _BEING_ENDED:
        with suppress(OSError, Unreadable, ValueError):
            fields = "--format=elapsedraw,timelimitraw"
            _, out, _ = run_briefly(["sacct", "-X", "--noheader", "--parsable2", fields, f"--jobs={job}"])
            seconds, minutes = map(int, out.split("|"))
            return _TIME_LIMIT if seconds >= 60 * minutes else cause
    return cause


def why_cancelled(job: str, submitted: float, waited_seconds: float | None) -> str:
    """Why a job of Slurm was cancelled, as far as Slurm tells; empty when it does not.

    ``submitted``: when, in seconds since the epoch. ``waited_seconds``: it was cancelled after it had waited for that long.
    """
    with suppress(OSError, Unreadable):
        if waited_seconds is None:
            nodes = _prolog_failed_on(datetime.fromtimestamp(int(submitted)))
            return f"the prolog failed on {nodes}" if nodes else ""
        _, reason, _ = run_briefly(["sacct", "-X", "--noheader", "--parsable2", "--format=reason", f"--jobs={job}"])
        word = f", by Slurm's word for the reason: {reason.strip()}" if reason.strip() not in ("", "None") else ""
        return f"it had waited {waited_seconds:g} s{word}"
    return ""


def _prolog_failed_on(since: datetime) -> str:
    """Slurm drains a node whose prolog fails, and cancels the job if it must not be queued again."""
    _, out, _ = run_briefly(["sinfo", "--noheader", "--list-reasons", "--format=%H %N %E"])
    rows = [line.split(maxsplit=2) for line in out.splitlines()]
    return ", ".join(
        nodes
        for at, nodes, reason in (row for row in rows if len(row) == 3)
        if "prolog" in reason.lower() and at >= since.isoformat()
    )


def check_slurm() -> None:
    """Raises :class:`InputError` when Slurm's commands are missing or its controller does not answer."""
    try:
        subprocess.run(["scontrol", "ping"], capture_output=True, text=True, check=True, timeout=ANSWER_SECONDS)
    except FileNotFoundError as error:
        raise InputError("the site uses Slurm, and there is no scontrol on PATH") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"Slurm does not answer within {ANSWER_SECONDS} s: scontrol ping; is it running?") from error
    except subprocess.CalledProcessError as error:
        said = " ".join((error.stderr or error.stdout).split())
        raise InputError(f"Slurm does not answer: scontrol ping: {said}") from error


def mpi_type_for(mpi: str | None) -> str:
    """The ``SLURM_MPI_TYPE`` that srun needs for ranks of this MPI (``openmpi`` or ``mpich``) to find each other; empty: the
    cluster's own default is right, or nothing is known.

    MPICH speaks PMI-2 unless it was built with PMIx (srun's manual, ``--mpi``); under PMIx each of its ranks is alone.
    """
    if mpi != "mpich":
        return ""
    with suppress(OSError, Unreadable):
        _, out, _ = run_briefly(["scontrol", "show", "config"])
        default = re.search(r"^MpiDefault\s*=\s*(\S+)", out, re.MULTILINE)
        return "pmi2" if default and default[1].startswith("pmix") else ""
    return ""


def comment_of(night: Path) -> str:
    """The comment by which Slurm's jobs of a night are known."""
    return f"iogauge-night:{night}"


def cancel_jobs_of(night: Path) -> list[str]:
    """Cancel the Slurm jobs of a night that are still there, and wait until they are gone; returns their ids.

    A night that submitted nothing to Slurm has none. Raises :class:`InputError` when Slurm does not answer, or a job does
    not end: what is still running would be measured with the next night.
    """
    jobs = jobs_left_of(night)
    if jobs:
        subprocess.run(["scancel", *jobs], capture_output=True, check=False)
        end = time.monotonic() + GONE_SECONDS
        while left := _jobs_of(night):
            if time.monotonic() > end:
                raise InputError(f"jobs {', '.join(left)} of that night were cancelled and do not end", file=night)
            time.sleep(0.5)
    return jobs


def jobs_left_of(night: Path) -> list[str]:
    """The Slurm jobs of a night that are still there. Raises :class:`InputError` when Slurm does not answer."""
    if any("#SBATCH" in script.read_text(encoding="utf-8") for script in night.rglob("rfm_job.sh")):
        return _jobs_of(night)
    return []


def _jobs_of(night: Path) -> list[str]:
    command = ["squeue", "--me", "--noheader", "--format=%A %k"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip()
        raise InputError(f"squeue does not say which jobs of that night are left: {said}", file=night) from error
    pairs = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return [job for job, *comment in pairs if comment == [comment_of(night)]]
