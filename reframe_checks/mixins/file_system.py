"""The file system under test: enough of it, guarded, prepared, used only below the case's own folder, and left clean."""

import shlex
import sys
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.logging import getlogger

from iogauge import layout
from iogauge.errors import Refusal
from iogauge.preflight import Preflight
from iogauge.quota import in_units

CASE_FOLDER = "$IOGAUGE_CASE_DIR"

#: For all cases of a run of ReFrame.
_preflight = Preflight(tell=lambda note: getlogger().warning(f"iogauge: {note}"))


class OwnFolder(rfm.RegressionTestPlugin):
    """Makes the job run in a folder of its own on ``self.file_system``, when what it writes fits there.

    Needs: ``file_system`` and ``site`` (mixins.axes), ``sourcesdir`` with case_folder.sh (mixins.kernel), and from setup on
    ``bytes_written()``: the most that is on the file system at once, exactly or a little more, never less. Gives:
    ``$IOGAUGE_CASE_DIR`` in the job; after the run ``volume()`` and ``layout_found()``.
    """

    skip_reason = variable(str, value="", loggable=True)

    def skip(self, msg=None):
        """ReFrame's report does not keep the message."""
        self.skip_reason = msg or "no reason given"
        super().skip(msg)

    def byte_terms(self) -> str:
        """What a rank writes, as a product."""
        return in_units(self.bytes_written() // self.num_tasks)

    @run_before("run")
    def preflight(self):
        if self.is_dry_run():
            return
        terms = f"{self.nodes}x{self.ranks_per_node} ranks x {self.byte_terms()}"
        chosen = self.site.file_systems[self.file_system]
        here = self.current_partition.scheduler.registered_name == "local"
        reason = _preflight.begin(self._own_name(), self.bytes_written(), terms, self.file_system, chosen, here=here)
        self.skip_if(bool(reason), reason)

    @run_after("run")
    def note_end(self):
        _preflight.end(self._own_name())

    def _own_name(self) -> str:
        return f"{self.unique_name} @{self.current_partition.fullname}+{self.current_environ.name}"

    @run_before("run")
    def guard_file_system(self):
        chosen = self.site.file_systems[self.file_system]
        options = []
        if chosen.guard.mountpoint is not None:
            options.append(f'--mountpoint "{chosen.guard.mountpoint}"')
        if chosen.quota is not None:
            options.append(f"--quota {shlex.quote(sys.executable)} {shlex.quote(chosen.quota)}")
        where = [shlex.quote(self.file_system), f'"{chosen.path}"', str(self.bytes_written())]
        self.prerun_cmds = [
            ". ./case_folder.sh",
            " ".join(["iogauge_case_folder", *options, *where, *map(shlex.quote, chosen.mounted_as)]),
            *self._set_layout(chosen),
            *(f'(cd "{CASE_FOLDER}" && {command}) || exit 2' for command in chosen.prepare),
        ]
        self.job.options += list(chosen.request)
        self.keep_files += ["case_folder.txt", "file_system.txt"]
        if chosen.quota is not None:
            self.keep_files += ["quota.txt"]

    def layout_can_be_read(self) -> bool:
        """Are there tools for this type of file system that tell how files lie on its targets?"""
        return layout.can_be_read(self.site.file_systems[self.file_system].type)

    def _set_layout(self, chosen):
        if not self.layout_can_be_read():
            return []
        self.postrun_cmds = [*self.postrun_cmds, f"iogauge_data_file_layout {chosen.type}"]
        self.keep_files += [layout.FOLDER_FILE, layout.DATA_FILE]
        return [shlex.join(["iogauge_layout", chosen.type, *chosen.layout.arguments()])]

    def layout_found(self) -> str:
        """How the case's files lay on the targets, in words. Raises :class:`Refusal` when it was asked for otherwise."""
        words, problems = layout.verdict(self.site.file_systems[self.file_system].layout, *self._layouts())
        if problems:
            raise Refusal("; ".join(problems))
        return words

    def _layouts(self) -> tuple[layout.Found | None, layout.Found | None]:
        return layout.read_back(self.site.file_systems[self.file_system].type, Path(self.stagedir))

    def volume(self) -> str:
        """What was mounted where the case ran, as the job saw it: source, type, mount point, and the layout if it is known."""
        path = Path(self.stagedir) / "file_system.txt"
        mounted = path.read_text(encoding="utf-8").strip() if path.exists() else ""
        known = [str(found) for found in self._layouts() if found is not None and not found.unknown]
        return " ".join([mounted, *known[-1:]])
