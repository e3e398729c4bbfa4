"""A night as a whole: its record, the assessment beside it, and the earlier run of the same night; the better one counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from iogauge.assess.record import Assessment
from iogauge.errors import InputError
from iogauge.judge import VERDICTS, Judgement, Row
from iogauge.night import Case, Night

#: In a night's folder, beside ``night.json``.
ASSESSMENT = "assessment.json"


def read_night(folder: Path) -> Night:
    """The night in a folder, with all that lies beside its record. Of a second run it is both runs together.

    What cannot be read besides the record is noted. Raises :class:`InputError` when there is no record.
    """
    night = _with_assessment(Night.load(folder / "night.json"), folder)
    if not night.first_run:
        return night
    try:
        return combined(read_night(folder.parent / night.first_run), night)
    except InputError as problem:
        return _noted(night, f"the first run of this night is not here any more, this one counts alone: {problem}")


def _with_assessment(night: Night, folder: Path) -> Night:
    try:
        known = Assessment.load(folder / ASSESSMENT) if (folder / ASSESSMENT).exists() else None
    except InputError as problem:
        return _noted(night, f"the verdicts are those of one night alone: {problem}")
    return night.model_copy(update={"assessment": known})


def _noted(night: Night, *notes: str) -> Night:
    return night.model_copy(update={"notes": tuple(dict.fromkeys((*night.notes, *notes)))})


def combined(first: Night, second: Night) -> Night:
    """Two runs of one night: of each series the better one counts. A run that did not end, or measured nothing, does not.

    A case that is invalid in one of them is invalid: no rate of another hour makes wrong data right.
    """
    if problem := _why_not(second):
        assessment = second.assessment or first.assessment
        told = _noted(
            first, *second.notes, f"the second run of this night, {_when(second)}: {problem}; the first counts"
        )
        return told.model_copy(update={"assessment": assessment})
    if problem := _why_not(first):
        return _noted(second, *first.notes, f"the first run of this night, {_when(first)}: {problem}; this one counts")
    both = f"two runs of this night, {_when(first)} and {_when(second)}: of each series the better one counts"
    cases = tuple(_cases(first, second))
    known = {"cases": cases, "selected": max(first.selected, second.selected, len(cases))}
    return _noted(second, *first.notes, both).model_copy(update=known)


def _why_not(night: Night) -> str:
    """Why a run does not count; empty: it does."""
    if night.build_failure or not night.complete:
        return night.build_failure or night.cause
    return "" if any(case.judgement.verdict != "skipped" for case in night.cases) else "nothing was measured"


def _when(night: Night) -> str:
    return f"{night.started:%Y-%m-%d %H:%M} UTC"


def _cases(first: Night, second: Night) -> Iterator[Case]:
    earlier = {_name(case): case for case in first.cases}
    for case in second.cases:
        before = earlier.pop(_name(case), None)
        yield case if before is None else _better(before, case, _when(first))
    yield from earlier.values()


def _name(case: Case) -> tuple[str, str, str]:
    return case.name, case.partition, case.environ


def _better(first: Case, second: Case, when: str) -> Case:
    if second.judgement.verdict == "invalid" or first.judgement.verdict == "skipped":
        return second
    if first.judgement.verdict == "invalid":
        reasons = (*first.judgement.reasons, f"so in the run of {when}")
        return first.model_copy(update={"judgement": first.judgement.model_copy(update={"reasons": reasons})})
    if second.judgement.verdict == "skipped":
        return first
    earlier = {(row.key, row.fingerprint): row for row in first.judgement.rows}
    pairs = [(earlier.pop((row.key, row.fingerprint), None), row) for row in second.judgement.rows]
    rows = (*(row if before is None else _best(before, row) for before, row in pairs), *earlier.values())
    mains = [(before, row) for before, row in pairs if row.role == "main" and before is not None]
    # What belongs to no single series (stage, placement, Darshan) is of the run with the better first one.
    kept = first if mains and mains[0][0].observed > mains[0][1].observed else second
    return kept.model_copy(update={"judgement": _judgement(kept.judgement, rows)})


def _best(first: Row, second: Row) -> Row:
    """The row of the better run, ratios and all, with the repeats of both."""
    better = first if first.observed > second.observed else second
    repeats = {
        "observed_repeats": (*first.observed_repeats, *second.observed_repeats),
        "raw_repeats": (*first.raw_repeats, *second.raw_repeats),
    }
    return better.model_copy(update=repeats)


def _judgement(of: Judgement, rows: tuple[Row, ...]) -> Judgement:
    mains = [row for row in rows if row.role == "main"]
    verdict = min((row.verdict for row in mains), key=VERDICTS.index)
    reasons = tuple(f"{row.operation}: {row.reason}" for row in mains if row.reason)
    return of.model_copy(update={"rows": rows, "verdict": verdict, "reasons": reasons})
