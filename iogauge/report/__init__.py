"""A night as one self-contained HTML page: verdicts first, then plots, then the table, then the machine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from markupsafe import Markup

from iogauge import __version__, terminal
from iogauge.judge import RatioRow, Row
from iogauge.machine import Load
from iogauge.night import NIGHTS_FOR_A_REFERENCE, Case, Night, write_whole
from iogauge.report.templates import environment
from iogauge.verdict import VERDICTS, Verdict, of_file_systems, rate

#: Of a machine at rest: above these, others worked on it during the night.
_BUSY_LOAD_PER_CORE = 0.5
_BUSY_STEAL_FRACTION = 0.02


def render(night: Night) -> str:
    """The page; it needs no network and no script."""
    from iogauge.report import plots  # matplotlib takes a second to load, and most commands draw nothing

    made = environment()
    made.globals.update(
        {
            "rate": rate,
            "look": look,
            "verified": terminal.verified,
            "percent": terminal.percent,
            "limits_of": terminal.limits_of,
            "bands": terminal.BANDS,
            "symbols": {verdict: symbol for verdict, (symbol, _) in terminal.STYLES.items()},
            "ratio_columns": ratio_columns,
            "ranks": lambda case: f"{case.nodes}x{case.ranks_per_node}",
        }
    )
    verdict, words = banner(night)
    return made.get_template("night.html.j2").render(
        night=night,
        name=night.started.strftime("%Y%m%dT%H%M%SZ"),
        headline=terminal.headline(night),
        verdict=verdict,
        words=words,
        counts=terminal.counts_line(night),
        notable=notable(night),
        slower=list(of_file_systems(night.assessment)) if night.assessment else [],
        busy=busy(night.machine.load, night.machine.cores),
        told=list(night.told),
        nights_for_a_reference=NIGHTS_FOR_A_REFERENCE,
        rates=[(title, Markup(svg)) for title, svg in plots.rates(night)],
        ratios=[(title, Markup(svg)) for title, svg in plots.ratios(night)],
        version=__version__,
    )


def write_report(night: Night, path: Path) -> Path:
    """Write the page whole or not at all; returns ``path``."""
    write_whole(path, render(night))
    return path


#: As loud as another verdict: the page has no colours of their own for these.
_LOUDNESS = {"shifted level": "regressed", "drift": "too noisy", "transient": "too noisy"}


def look(verdict: str) -> str:
    """The verdict's class in the style sheet."""
    return _LOUDNESS.get(verdict, verdict).replace(" ", "-")


def banner(night: Night) -> tuple[Verdict, str]:
    """The night in a few words, and the verdict whose colour and symbol they get."""
    counts = night.counts
    if night.build_failure:
        return "invalid", "Could not measure: the kernels could not be built"
    if not night.complete:
        return "invalid", f"Incomplete: {night.cause}"
    if len(night.cases) == counts["skipped"]:
        return "invalid", "Nothing was measured"
    left_out = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    loud = Counter[Verdict](verdict.word for _, _, verdict in night.told if verdict.alarm)
    loud["invalid"] = counts["invalid"]
    if bad := [verdict for verdict in VERDICTS if loud[verdict]]:
        return bad[0], ", ".join(f"{loud[verdict]} {verdict}" for verdict in bad) + left_out
    noisy = f", {counts['too noisy']} too noisy to judge" if counts["too noisy"] else ""
    if counts["improved"]:
        return "improved", f"Nothing is slower, {counts['improved']} improved{noisy}{left_out}"
    if counts["pass"]:
        return "pass", f"Nothing is slower{noisy}{left_out}"
    if noisy:
        return "too noisy", f"Too noisy to judge{left_out}"
    return "no reference", f"Measured; nothing to compare with yet{left_out}"


def notable(night: Night) -> list[tuple[Verdict, Case, Row | None, tuple[str, ...]]]:
    """What to look at, worst first: verdict, case, its series (none where nothing true was measured), reasons."""
    found: list[tuple[Verdict, Case, Row | None, tuple[str, ...]]] = [
        (verdict, case, None, case.judgement.reasons)
        for verdict in VERDICTS
        for case in night.cases
        if not case.judgement.rows and case.judgement.verdict == verdict
    ]
    verdicts = list(night.told)
    for word in ("regressed", "shifted level", "drift", "transient", "improved"):
        found += [
            (verdict.word, case, row, (verdict.reason, *case.judgement.diagnosis))
            for case, row, verdict in verdicts
            if verdict.word == word
        ]
    told = {id(case) for _, case, _, _ in found}
    for case in night.cases:
        if case.judgement.flags and id(case) not in told:
            found.append((case.judgement.verdict, case, case.judgement.main_rows[0], case.judgement.flags))
    return found


def busy(load: Load, cores: int) -> str:
    """A sentence when others kept the machine from the night; empty when it was at rest."""
    reasons = []
    if load.before > _BUSY_LOAD_PER_CORE * max(1, cores):
        reasons.append(f"the load average was {load.before:.2f} before it began")
    if load.steal_fraction > _BUSY_STEAL_FRACTION:
        reasons.append(f"the hypervisor took {load.steal_fraction:.1%} of the processor time")
    return " and ".join(reasons)


def ratio_columns(row: Row) -> list[tuple[str, list[RatioRow]]]:
    """The ratios for the table: to MPI-IO, to POSIX, and all others, each observed and raw."""
    columns: dict[str, list[RatioRow]] = {"to MPI-IO": [], "to POSIX": [], "to other patterns": []}
    names = {"to_mpiio": "to MPI-IO", "to_posix": "to POSIX"}
    for ratio in row.ratios:
        columns[names.get(ratio.name.removesuffix("_raw"), "to other patterns")].append(ratio)
    return list(columns.items())
