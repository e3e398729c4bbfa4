"""The file system under test: guarded, prepared, used only below the case's own folder, and left clean."""

import shlex
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before

CASE_FOLDER = "$IOGAUGE_CASE_DIR"


class OwnFolder(rfm.RegressionTestPlugin):
    """Makes the job run in a folder of its own on ``self.file_system``.

    Needs: ``file_system`` and ``site`` (mixins.axes), ``sourcesdir`` with case_folder.sh (mixins.kernel), and from setup on
    ``bytes_written()``, the most that is on the file system at once. Gives: ``$IOGAUGE_CASE_DIR`` in the job,
    ``volume()`` after the run.
    """

    @run_before("run")
    def guard_file_system(self):
        chosen = self.site.file_systems[self.file_system]
        words = " ".join(shlex.quote(name) for name in chosen.mounted_as)
        self.prerun_cmds = [
            ". ./case_folder.sh",
            f'iogauge_case_folder {shlex.quote(self.file_system)} "{chosen.path}" {self.bytes_written()} {words}'.rstrip(),
            *(f'(cd "{CASE_FOLDER}" && {command}) || exit 2' for command in chosen.prepare),
        ]
        self.job.options += list(chosen.request)
        self.keep_files += ["case_folder.txt", "file_system.txt"]

    def volume(self) -> str:
        """What was mounted where the case ran: source and mount point, as the job saw them."""
        path = Path(self.stagedir) / "file_system.txt"
        return path.read_text(encoding="utf-8").strip() if path.exists() else ""
