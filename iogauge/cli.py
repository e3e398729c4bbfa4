"""The command ``iogauge``. Exit codes: 0 nothing is slower, 1 something regressed or is invalid, 2 could not measure."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import click

from iogauge import __version__


class Listed(NamedTuple):
    """A command that is not loaded yet: where it is, and what the list of all says of it."""

    module: str
    name: str
    sentence: str


#: In the order of the alphabet.
COMMANDS = {
    "arms": Listed(
        "arms_cli", "arms_command", "List the arms of this machine, or build some and say what each really is."
    ),
    "bands": Listed(
        "bands_cli", "bands_group", "Fit, look at and accept the bands of a site's rates, reference_values/SITE.yaml."
    ),
    "check-config": Listed(
        "site_cli", "check_config_command", "Check a site's configuration and all bands; nothing is run."
    ),
    "clean": Listed("night_cli", "clean_command", "Remove case folders that killed jobs left on file systems."),
    "compare": Listed(
        "compare.cli", "compare_command", "Is ARM_B slower than ARM_A? Runs of both in turn, until that is decided."
    ),
    "darshan": Listed(
        "darshan.cli", "darshan_command", "Say what a Darshan log has seen, and what is worth knowing of it."
    ),
    "export": Listed(
        "notify.cli", "export_command", "Write the newest night's verdicts for programs that collect such."
    ),
    "fingerprint": Listed(
        "fingerprint.cli", "fingerprint_group", "What a case asks of the storage, call by call, and what changed in it."
    ),
    "history": Listed(
        "history.cli",
        "history_group",
        "What all nights measured: take reports in, look, give tables out, say what is known.",
    ),
    "import": Listed(
        "history.import_cli",
        "import_command",
        "Take outputs of benchmarks and Darshan logs that you kept into the history.",
    ),
    "nightly": Listed("night_cli", "nightly_command", "Run a suite, judge it, and write the report."),
    "notify": Listed("notify.cli", "notify_command", "Tell people what changed since they were told last."),
    "report": Listed(
        "night_cli", "report_command", "Write the report: HTML pages of all series, to read without a network."
    ),
    "show": Listed(
        "night_cli", "show_command", "Show a series at length, a night's table, or the evidence of its verdicts."
    ),
    "site": Listed("site_cli", "site_group", "Check a site, or draft the configuration of a new one."),
    "status": Listed("status_cli", "status_command", "Say what is slower since when, worst first."),
    "sweep": Listed(
        "sweep_cli", "sweep_command", "Show how far the cases of a sweep lie apart, and which option causes it."
    ),
}


class Commands(click.Group):
    """Loads the command that was asked for, and no other: what all of them need takes a second or two."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"iogauge.{found.module}"), found.name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # while the command is loaded; click's own answer, 1, says that something is slower
            click.echo("iogauge: error: interrupted", err=True)
            raise SystemExit(2) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, found.sentence) for name, found in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="iogauge")
def main() -> None:
    """I/O regression tests for HPC sites.

    Example: iogauge nightly --site local
    """
