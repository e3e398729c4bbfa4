"""What the scheduler is told of a storage test beside its size: whose it is, and that it has its file system alone."""

import os
import shlex
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before

from iogauge.nightly import NIGHT_VARIABLE
from iogauge.scheduler import SLURM, comment_of


class OneAtATime(rfm.RegressionTestPlugin):
    """No job waits for ever, and under Slurm two cases on one file system never run at once, while cases on different ones do.

    Needs: ``file_system`` and ``site`` (mixins.axes). Jobs of one user with one name and ``--dependency=singleton`` run one
    after the other, whichever ReFrame submitted them; so the name is that of the file system. With another scheduler
    the partition's ``max_jobs`` keeps them apart.
    """

    @run_before("run")
    def limit_waiting(self):
        if self.max_pending_time is None:
            self.max_pending_time = self.site.max_pending_time

    @run_before("run")
    def keep_apart(self):
        if self.current_partition.scheduler.registered_name not in SLURM:
            return
        chosen = self.site.file_systems[self.file_system]
        # A job that Slurm starts once more after a node has failed would write over what the first one left.
        options = ["--no-requeue"]
        if chosen.exclusive:
            options += [
                f"--job-name=iogauge-{self.current_system.name}-{self.site.target_of(self.file_system)}",
                "--dependency=singleton",
            ]
        if NIGHT_VARIABLE in os.environ:
            options.append(shlex.join([f"--comment={comment_of(Path(os.environ[NIGHT_VARIABLE]))}"]))
        self.job.options += options
