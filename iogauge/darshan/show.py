"""A log for people at a terminal: ``iogauge darshan LOG``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from iogauge.adapters.kernel import read_records
from iogauge.darshan.changes import changes
from iogauge.darshan.log import read_log
from iogauge.darshan.overhead import Overhead
from iogauge.darshan.preload import files_of_case
from iogauge.darshan.profile import profile
from iogauge.darshan.rules import Claim, Finding, diagnose
from iogauge.darshan.summary import Summary
from iogauge.darshan.witness import Witness
from iogauge.errors import InputError, Refusal
from iogauge.measurement import Measurement
from iogauge.quota import in_units


class Look(BaseModel):
    """All that is to be said of a log; ``witness`` only where the benchmark's records are at hand."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    summary: Summary
    changes: tuple[str, ...]
    findings: tuple[Finding, ...]
    witness: Witness | None
    overhead: tuple[Overhead, ...] = ()

    @property
    def flags(self) -> bool:
        """The log and the benchmark disagree."""
        disagrees = self.witness is not None and self.witness.agrees is False
        return disagrees or any(finding.rule == "bytes-disagree" for finding in self.findings)


def look(
    logs: Sequence[Path], *, records: Path | None, without: Path | None, only: str, good: Path | None, said: Claim
) -> Look:
    """Read a run's logs, and what they are to be compared with. Raises :class:`InputError` for what cannot be read."""
    try:
        re.compile(only)
    except re.error as error:
        raise InputError(f"{only!r} is no regular expression: {error}", key="--only") from error
    only = files_of_case() if records is not None else only
    summary = _read(logs, only)
    told = changes(_read([good], only), summary) if good is not None else ()
    if records is None:
        return Look(summary=summary, changes=told, findings=diagnose(summary, said), witness=None)
    twin = _measurements(without) if without is not None else []
    found = profile(logs[0].name, summary, _measurements(records), twin)
    return Look(summary=summary, changes=told, findings=found.findings, witness=found.witness, overhead=found.overhead)


def _measurements(records: Path) -> list[Measurement]:
    try:
        return read_records(records)
    except Refusal as refusal:
        raise InputError(str(refusal), file=records) from refusal


def _read(logs: Sequence[Path], only: str) -> Summary:
    try:
        summary = read_log(*logs, only=only)
    except Refusal as refusal:
        raise InputError(str(refusal), file=logs[0]) from refusal
    if not summary.layers:
        raise InputError("has no records of such files" if only else "has no records of files", file=logs[0])
    return summary


def print_look(console: Console, shown: Look) -> None:
    """What changed first, then the diagnosis, then the table of modules."""
    summary = shown.summary
    console.print(
        f"Darshan {summary.darshan} · {summary.ranks} ranks · {summary.run_seconds:.3g} s · "
        f"{summary.started:%Y-%m-%d %H:%M} UTC · {escape(summary.command)}"
    )
    for sentence in shown.changes:
        console.print(f"[bold]changed[/]  {escape(sentence)}")
    if shown.witness is not None:
        style = "bold yellow" if shown.witness.agrees is False else "default"
        console.print(f"[{style}]witness[/]  {escape(shown.witness.text)}")
    for finding in shown.findings:
        console.print(f"[bold]{finding.rule}[/]  {escape(finding.text)}")
    if not shown.findings:
        console.print("nothing to say: no rule found anything")
    for cost in shown.overhead:
        console.print(f"overhead  {cost.text}")
    console.print(_table(summary))


def _table(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("module", "files", "ranks a file", "calls", "read", "written", "time of the slowest rank", "MiB/s"):
        table.add_column(title, no_wrap=True)
    for module, layer in summary.layers.items():
        ranks = {layer.least_ranks, layer.most_ranks}
        rate = layer.aggregate_mib_s
        table.add_row(
            module,
            str(layer.files),
            " to ".join(map(str, sorted(ranks))),
            str(layer.calls),
            in_units(layer.bytes_read),
            in_units(layer.bytes_written),
            f"{layer.aggregate_seconds:.4g} s",
            "-" if rate is None else f"{rate:.4g}",
        )
    return table
