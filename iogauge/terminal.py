"""A night as a table and as sentences, for people at a terminal."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from iogauge.judge import Judgement, RatioRow, Row
from iogauge.night import Case, Night
from iogauge.series import parts_of
from iogauge.site_check import Finding
from iogauge.site_init import Draft
from iogauge.sweep import Speedup, Summary
from iogauge.verdict import VERDICTS, Told, of_file_systems
from iogauge.verdict import rate as rate

#: Symbol and colour of a verdict; the word always stands beside them.
STYLES = {
    "invalid": ("!", "bold magenta"),
    "regressed": ("▼", "bold red"),
    "shifted level": ("▼", "bold red"),
    "drift": ("↘", "yellow"),
    "transient": ("▽", "yellow"),
    "skipped": ("-", "yellow"),
    "improved": ("▲", "cyan"),
    "too noisy": ("~", "yellow"),
    "no reference": ("·", "dim"),
    "pass": ("✓", "green"),
}

#: Beside the verdict of a case on which the witnesses disagree.
FLAG = "[bold yellow]flagged[/]"

BANDS = {
    "found": "site",
    "missing": "none",
    "cached": "not for cached reads",
    "other configuration": "of another configuration",
}


def raw_is(row: Row) -> str:
    """What the raw rate counts."""
    return "transfers only" if row.unit == "MiB/s" else "the calls alone"


def percent(fraction: float | None) -> str:
    """A fraction as a percentage; ``-`` where there is none."""
    return "-" if fraction is None else f"{fraction:.0%}"


def verified(row: Row) -> str:
    """Was what was written read back and compared? Most upstream benchmarks cannot do it."""
    return "all" if row.verified else "no" if row.program else "NO"


def to_raw(row: Row) -> str:
    """HDF5 to MPI-IO and to POSIX."""
    found = {ratio.name: ratio.value for ratio in row.ratios}
    return " / ".join(f"{found[name]:.2f}" for name in ("to_mpiio", "to_posix") if name in found) or "-"


def limits_of(ratio: RatioRow) -> str:
    """``0.80 to 1.10`` or ``no band``."""
    if ratio.limits is None:
        return "no band"
    return f"{ratio.limits.lowest:.2f} to {ratio.limits.highest:.2f}"


def headline(night: Night) -> str:
    """What, where, with which software."""
    software = night.software
    words = [f"iogauge {software.suite if software else ''}".strip(), f"site {night.site}", f"suite {night.suite}"]
    words.append(f"{len(night.cases)} of {night.selected} cases")
    if software:
        words += [f"HDF5 {software.hdf5}", software.mpi or "no MPI"]
        words += [f"kernels {software.kernels}"] if software.kernels else []
    return " · ".join(words)


#: Counted only where there are any.
_IF_ANY = ("skipped", "shifted level", "drift", "transient")


def counts_line(night: Night) -> str:
    """``1 invalid, 0 regressed, ...`` and how many rest on ratios alone."""
    without = sum(row.band_status != "found" for _, row in night.rows)
    words = {"pass": "passed", "no reference": "without any reference"}
    counts = [(verdict, number) for verdict, number in night.counts.items() if number or verdict not in _IF_ANY]
    parts = [f"{number} {words.get(verdict, verdict)}" for verdict, number in counts]
    flagged = sum(bool(case.judgement.flags) for case in night.cases)
    return (
        ", ".join(parts)
        + (f"; {flagged} case{'s' * (flagged != 1)} flagged: Darshan disagrees" if flagged else "")
        + f"; {without} series have no site band yet"
    )


def print_night(console: Console, night: Night) -> None:
    """The table, the reasons of all that is not well, and the counts."""
    console.print(headline(night))
    if not night.complete:
        console.print(f"[bold magenta]INCOMPLETE: {escape(night.cause)}; what was measured until then is kept[/]")
    if night.build_failure:
        console.print(f"[bold magenta]{escape(night.build_failure)}[/]")
    for folder in night.removed_folders:
        console.print(f"removed what a killed job had left: {escape(folder)}")
    for note in night.notes:
        console.print(f"[yellow]note: {escape(note)}[/]")
    for sentence in of_file_systems(night.assessment) if night.assessment else ():
        console.print(f"[bold red]{escape(sentence)}[/]", soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("file system", "case", "ranks", "observed (repeats)", "to MPI-IO / POSIX"):
        table.add_column(title, no_wrap=title != "case")
    for title in ("cached", "verified", "placement", "band", "verdict"):
        table.add_column(title)
    for case, row, verdict in night.told:
        table.add_row(*_cells(case, row, verdict))
    for case in night.cases:
        if not case.judgement.rows:
            table.add_row(case.file_system, escape(case.name.partition(" ")[0]), _ranks(case), "-", "-", "-", "-",
                          case.judgement.placement or "-", "-", _styled_case(case.judgement))  # fmt: skip
    console.print(table)
    for case, verdicts in _by_case(night):
        _print_reasons(console, case, verdicts)
    for words, cases in night.built_by.items():
        console.print(f"built by  {escape(words)} ({cases} case{'s' * (cases != 1)})", soft_wrap=True)
    console.print(counts_line(night))


def _ranks(case: Case) -> str:
    return f"{case.nodes}x{case.ranks_per_node}"


def _styled(verdict: str, text: str) -> str:
    symbol, style = STYLES[verdict]
    return f"[{style}]{symbol} {escape(text)}[/]"


def _styled_verdict(verdict: Told) -> str:
    """Loud only where somebody should look."""
    symbol, style = STYLES[verdict.word]
    loud = verdict.alarm or verdict.word not in ("regressed", "shifted level")
    return f"[{style if loud else 'yellow'}]{symbol} {escape(verdict.text)}[/]"


def _styled_case(judgement: Judgement) -> str:
    """Of a case without series."""
    return _styled(judgement.verdict, "INVALID" if judgement.verdict == "invalid" else judgement.verdict)


def _cells(case: Case, row: Row, verdict: Told) -> tuple[str, ...]:
    repeats = " ".join(rate(value) for value in row.observed_repeats)
    arm = parts_of(row.key).arm
    return (
        case.file_system,
        " ".join(filter(None, (row.benchmark, row.operation, row.label, arm and f"@{arm}"))),
        _ranks(case),
        f"{rate(row.observed):>6} {row.unit}  ({repeats})",
        to_raw(row),
        percent(row.cached_fraction),
        verified(row),
        case.judgement.placement,
        BANDS[row.band_status],
        _styled_verdict(verdict) + (f" {FLAG}" if case.judgement.flags else ""),
    )


#: What of a series is explained below the table.
_EXPLAINED = ("invalid", "regressed", "shifted level", "drift", "transient", "improved")


def _by_case(night: Night) -> list[tuple[Case, list[tuple[Row, Told]]]]:
    found: dict[int, list[tuple[Row, Told]]] = defaultdict(list)
    for case, row, verdict in night.told:
        found[id(case)].append((row, verdict))
    return [(case, found[id(case)]) for case in night.cases]


def _print_reasons(console: Console, case: Case, verdicts: list[tuple[Row, Told]]) -> None:
    judgement = case.judgement
    explained = [(row, verdict) for row, verdict in verdicts if verdict.word in _EXPLAINED]
    if judgement.rows and not explained and not judgement.flags:
        return
    words = [verdict.word for _, verdict in verdicts] if judgement.rows else [judgement.verdict]
    word = min(words, key=VERDICTS.index)
    console.print(f"{_styled(word, word)}  {escape(case.name)}")
    for row, verdict in explained:
        console.print(f"    {row.key}: {escape(verdict.reason)}")
    for reason in judgement.reasons if not judgement.rows else ():
        console.print(f"    {escape(reason)}")
    for sentence in judgement.changes if explained else ():
        console.print(f"    {escape(sentence)}")
    seen = judgement.profile.sentences if judgement.profile and explained else judgement.flags
    for sentence in seen:
        console.print(f"    Darshan: {escape(sentence)}")


def print_evidence(console: Console, night: Night, key: str) -> bool:
    """The long form of every series with ``key`` in its key, or case without any with it in its name; False: none."""
    found = [(case, row, verdict) for case, row, verdict in night.told if key in row.key]
    for case, row, verdict in found:
        console.print(f"[bold]{row.key}[/]  (configuration {row.fingerprint})")
        console.print(f"  verdict     {_styled_verdict(verdict)}  {escape(verdict.reason)}", soft_wrap=True)
        if verdict.evidence:
            console.print(f"  reference   {escape(verdict.evidence)}", soft_wrap=True)
        console.print(f"  observed    {' '.join(map(rate, row.observed_repeats))} {row.unit}, open to close with flush")
        raw = " ".join(map(rate, row.raw_repeats))
        console.print(
            f"  raw         {f'{raw} {row.unit}, {raw_is(row)}' if raw else 'not told by ' + str(row.program)}"
        )
        for ratio in row.ratios:
            pairs = " ".join(f"{pair:.2f}" for pair in ratio.pairs)
            console.print(f"  {ratio.label}  {ratio.value:.2f} (pairs {pairs}); band {limits_of(ratio)}: {ratio.place}")
        console.print(f"  placement   {escape(case.judgement.placement)}")
        if case.judgement.layout:
            console.print(f"  layout      {escape(case.judgement.layout)}")
        if case.built_by:
            console.print(f"  built by    {escape(case.built_by)}", soft_wrap=True)
        for sentence in case.judgement.changes:
            console.print(f"  changed     {escape(sentence)}")
        if case.judgement.profile:
            for sentence in case.judgement.profile.sentences:
                console.print(f"  darshan     {escape(sentence)}")
            if not case.judgement.flags:
                console.print(f"  witness     {escape(case.judgement.profile.witness.text)}")
            for overhead in case.judgement.profile.overhead:
                console.print(f"  overhead    {escape(overhead.text)}")
        console.print(f"  cached      {percent(row.cached_fraction)} of the pages read were in memory")
        console.print(f"  evidence    {escape(case.stage)}", soft_wrap=True)
    without = [case for case in night.cases if not case.judgement.rows and key in case.name]
    for case in without:
        word = case.judgement.verdict
        console.print(f"[bold]{escape(case.name)}[/]")
        console.print(f"  verdict     {_styled(word, word)}  {escape('; '.join(case.judgement.reasons))}")
        console.print(f"  placement   {escape(case.judgement.placement or '-')}")
        console.print(f"  evidence    {escape(case.stage)}", soft_wrap=True)
    return bool(found or without)


#: Symbol and colour of a finding of ``site check``.
_LEVELS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "bold red")}


def print_findings(console: Console, site: str, findings: list[Finding], *, submitted: bool) -> None:
    """The table of ``site check``, and how many lines say that something is wrong."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("partition", "what", "", "found"):
        table.add_column(title, no_wrap=title != "found")
    for finding in findings:
        symbol, style = _LEVELS[finding.level]
        level = f"[{style}]{symbol} {finding.level}[/]"
        table.add_row(finding.partition or "-", escape(finding.subject), level, escape(finding.found))
    console.print(table)
    counts = Counter(finding.level for finding in findings)
    words = [f"{counts[level]} {level}{'s' * (counts[level] != 1)}" for level in ("problem", "warning")]
    line = f"{site}: {', '.join(words)}, {counts['ok']} ok"
    console.print(line + ("" if submitted else "; --submit runs two ranks on each file system"))


def print_draft(console: Console, draft: Draft, written: list[Path], name: str) -> None:
    """What ``site init`` mended and wrote, what a person has to look at, and what comes next."""
    for title, sentences in (("mended", draft.mended), ("look at", draft.look)):
        for sentence in sentences:
            console.print(f"[bold]{title:8}[/] {escape(sentence)}", soft_wrap=True)
    for path in written:
        console.print(f"[bold]wrote   [/] {escape(str(path))}", soft_wrap=True)
    console.print(
        f"next     look at these, then scripts/spack-setup --site {name} --stack hdf5 --concretize, and docs/add-a-site.md",
        soft_wrap=True,
    )


_BAR_CHARACTERS = 30


def print_sweep(console: Console, summary: Summary) -> None:
    """The spread of a sweep's cases, and a bar for each level of each option, those that matter most first."""
    console.print(
        f"[bold]{summary.operation}[/]  {summary.cases} cases, {summary.metric} {summary.unit}: {rate(summary.slowest)} to "
        f"{rate(summary.fastest)}, median {rate(summary.median)}; spread {summary.fastest / summary.slowest:.1f} times"
    )
    console.print(f"  slowest  {escape(summary.slowest_case)}")
    console.print(f"  fastest  {escape(summary.fastest_case)}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("  option", "explains", "best to worst", "value", f"mean {summary.unit}", ""):
        table.add_column(title, no_wrap=True)
    most = max(level.rate for effect in summary.effects for level in effect.levels)
    for effect in summary.effects:
        for number, level in enumerate(effect.levels):
            first = number == 0
            table.add_row(
                f"  {effect.option}" if first else "",
                percent(effect.share) if first else "",
                f"{effect.ratio:.2f}" if first else "",
                escape(level.value),
                rate(level.rate),
                "█" * max(1, round(_BAR_CHARACTERS * level.rate / most)),
            )
    console.print(table)
    rest = 1 - sum(effect.share for effect in summary.effects)
    console.print(f"  what no option explains alone (interaction and noise): {percent(max(0.0, rest))}")


def print_speedups(console: Console, speedups: list[Speedup]) -> None:
    """Parallel rates over a single process's, equal cases to each other."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("operation", "io", "to a single process with", "cases", "least", "median", "most"):
        table.add_column(title, no_wrap=True)
    for s in speedups:
        table.add_row(s.operation, s.io, s.single, str(s.cases), f"{s.least:.2f}", f"{s.median:.2f}", f"{s.most:.2f}")
    console.print(table)
