"""Why a job did not end as it should: in the scheduler's, the guard's, the program's or the shell's words."""

import re
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM

import reframe as rfm
from reframe.core.builtins import run_before

from iogauge.scheduler import SLURM, why_being_ended, why_cancelled, why_ended


class Ended(rfm.RegressionTestPlugin):
    """Keeps the program's exit code, which ReFrame does not tell; ``voice`` is the word before ``: error:`` in what it says,
    where it is not ``kernel``; ``called`` is what it is called there."""

    voice = ""
    called = "kernel"

    @run_before("run")
    def keep_exit_code(self):
        self.postrun_cmds = ["iogauge_ended $?", *self.postrun_cmds]
        self.keep_files += ["exit_code.txt"]

    def failure(self) -> str:
        """Empty when the job ended as it should."""
        stage = Path(self.stagedir)
        text = self._exit_code()
        if text == "0":
            return ""
        errors = self._errors()
        said = re.findall(rf"^(?:iogauge: guard|{self.voice or self.kernel}: error): (.*)$", errors, re.MULTILINE)
        cause = why_ended(self.job.state, errors)
        if cause:
            cause = why_being_ended(self.job.jobid, cause)
            return f"the job was ended before its time: {cause}{self._why_cancelled()}"
        ended = (
            f"the {self.called} ended with exit code {text}" if text else f"the job ended before the {self.called} did"
        )
        last = [line for line in errors.splitlines() if line.strip(" -")][-3:]
        afterwards = stage / "free_afterwards.txt"
        free = f"; {afterwards.read_text(encoding='utf-8').strip()}" if afterwards.exists() else ""
        return f"{ended}: {said[0] if said else ' / '.join(last) or 'nothing on stderr'}{free}"

    def ended_from_outside(self) -> bool:
        """By the scheduler, by a signal, or with its node: the program itself has found no fault."""
        code = self._exit_code()
        by_signal = code.isdigit() and int(code) in {128 + number for number in (SIGHUP, SIGINT, SIGKILL, SIGTERM)}
        return code != "0" and (not code or by_signal or bool(why_ended(self.job.state, self._errors())))

    def _exit_code(self) -> str:
        """Empty where the job ended before it could be written down."""
        file = Path(self.stagedir, "exit_code.txt")
        return file.read_text(encoding="utf-8").strip() if file.exists() else ""

    def _errors(self) -> str:
        file = Path(self.stagedir, str(self.stderr))
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def _why_cancelled(self) -> str:
        if "CANCELLED" not in (self.job.state or "") or self.current_partition.scheduler.registered_name not in SLURM:
            return ""
        waited = self.job.max_pending_time if self.job.is_cancelling else None
        reason = why_cancelled(self.job.jobid, self.job.submit_time, waited)
        return f"; {reason}" if reason else ""
