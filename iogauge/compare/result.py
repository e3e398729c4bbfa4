"""What a comparison has shown, and what to do next: plain values, kept as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from iogauge import placement
from iogauge.compare.exchange import Exchange, sizes, unreadable
from iogauge.compare.lines import read_lines
from iogauge.compare.otherwise import Otherwise
from iogauge.compare.plan import EXCHANGES_FILE, OTHERWISE_FILE, PLAN_FILE, RUNS_FILE, Plan
from iogauge.compare.runs import Run, rates_of, read_runs, whole_pairs
from iogauge.compare.sequential import Finding, Outcome, judge
from iogauge.errors import Refusal
from iogauge.history.comparisons import Compared, Step
from iogauge.measurement import SOFTWARE_NAMES, Software
from iogauge.night import write_whole
from iogauge.validation import read_record

Stopped = Literal["decided", "time", "interrupted", "broken"]

#: What goes on with a comparison that was interrupted, behind the names of its arms.
RESUME = "iogauge compare ... --resume latest"

#: Worst first.
FINDINGS: tuple[Finding, ...] = ("slower", "undecided", "not slower", "faster")


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Ratio(_Value):
    """A ratio of rates, second arm to first, with the limits that hold for all of a comparison at once and at every look
    (``None``: not bounded), and what was found. ``provable``: the least margin by which it is proven not to be slower."""

    finding: Finding
    ratio: float
    lowest: float | None
    highest: float | None
    provable: float


class Result(_Value):
    """One operation of one pattern. Observed rates are in ``unit``, shape (pairs,), in the order of the pairs.

    ``raw`` (transfers only) is none where the kernel does not tell them apart. ``series``: what is left of the key of such a
    series without its place, ``benchmark/operation/pattern/interface``.
    """

    pattern: str
    series: str
    operation: str
    unit: str
    observed: Ratio
    raw: Ratio | None
    first: tuple[float, ...]
    second: tuple[float, ...]

    @property
    def name(self) -> str:
        """Pattern and operation."""
        return f"{self.pattern} {self.operation}"

    @property
    def slower(self) -> bool:
        """Observed, or in the transfers alone."""
        return "slower" in (self.observed.finding, self.raw and self.raw.finding)


class ArmShown(_Value):
    """An arm, and the software that its runs named."""

    name: str
    software: Software


class Comparison(_Value):
    """Two arms on one site's file system. ``margin``, ``alpha`` and ``seed`` are the plan's.

    ``hosts``: ranks by host; ``placement``: where ranks were proven to be. Of all allocations, where it was taken up again.

    ``stopped``: all was ``decided``, the ``time`` was up, ``interrupted`` or ``broken``, by ``problem``. A broken one
    has no results.
    """

    schema_: Literal["iogauge.comparison/1"] = Field(default="iogauge.comparison/1", alias="schema")
    site: str
    partition: str = ""
    file_system: str
    arms: tuple[ArmShown, ...]
    hosts: dict[str, int]
    placement: str = ""
    started: AwareDatetime | None
    seed: int
    margin: float
    alpha: float
    stopped: Stopped
    problem: str = ""
    results: tuple[Result, ...]
    exchanges: tuple[Exchange, ...] = ()
    otherwise: tuple[Otherwise, ...] = ()

    @property
    def where(self) -> str:
        """The site, with its partition where it has one."""
        return f"{self.site}:{self.partition}" if self.partition else self.site

    @property
    def counts(self) -> dict[Finding, int]:
        """Operations by what was found of their observed rates, worst first."""
        found = [result.observed.finding for result in self.results]
        return {finding: found.count(finding) for finding in FINDINGS}

    @property
    def exit_code(self) -> int:
        """1: something is slower, or a file cannot be read; 2: it could not be compared; 0 otherwise."""
        if self.stopped == "broken" or not self.results:
            return 2
        if any(result.slower for result in self.results) or unreadable(self.exchanges):
            return 1
        return 2 if self.stopped == "interrupted" and self.counts["undecided"] else 0

    def save(self, path: Path) -> None:
        """Write it whole or not at all."""
        write_whole(path, self.model_dump_json(by_alias=True, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Comparison:
        """Read a record. Raises :class:`InputError` for what is not one."""
        return read_record(cls, path, "a comparison")


def of_folder(folder: Path, *, stopped: Stopped, problem: str = "") -> Comparison:
    """What the files in ``folder`` show. Raises OSError without a plan, and ValueError for a plan of another version."""
    plan = Plan.model_validate_json((folder / PLAN_FILE).read_bytes())
    try:
        runs = read_runs(folder / RUNS_FILE)
        exchanges = read_lines(folder / EXCHANGES_FILE, Exchange)
        otherwise = read_lines(folder / OTHERWISE_FILE, Otherwise)
    except Refusal as refusal:
        return summarise(plan, [], stopped="broken", problem=str(refusal))
    return summarise(plan, runs, exchanges, otherwise, stopped=stopped, problem=problem)


def summarise(
    plan: Plan,
    runs: Sequence[Run],
    exchanges: Sequence[Exchange] = (),
    otherwise: Sequence[Otherwise] = (),
    *,
    stopped: Stopped,
    problem: str = "",
) -> Comparison:
    """From the runs to what they show. Runs that cannot be compared make it broken, whatever stopped it."""
    try:
        results = () if stopped == "broken" else _results(plan, runs)
    except Refusal as refusal:
        results, stopped, problem = (), "broken", str(refusal)
    arms = []
    for arm in plan.arms:
        mine = [run.main[0].software for run in runs if run.arm == arm.name and run.main]
        arms += [ArmShown(name=arm.name, software=mine[0])] if mine else []
    places = [m for run in runs for m in run.main[:1]]
    return Comparison(
        site=plan.site,
        partition=plan.partition,
        file_system=plan.file_system,
        arms=tuple(arms),
        hosts={host: len(ranks) for m in places for host, ranks in sorted(m.hosts.items())},
        placement=", ".join(dict.fromkeys(map(placement.summary, places))),
        started=min((m.started for run in runs for m in run.main), default=None),
        seed=plan.seed,
        margin=plan.margin,
        alpha=plan.alpha,
        stopped=stopped,
        problem=problem,
        results=results,
        exchanges=tuple(exchanges),
        otherwise=tuple(otherwise),
    )


def _results(plan: Plan, runs: Sequence[Run]) -> tuple[Result, ...]:
    names = [arm.name for arm in plan.arms]
    rates = [one for pattern in plan.patterns for one in rates_of(whole_pairs(runs, pattern.name, names))]
    known = judge({one.name: one.log_ratios for one in rates}, margin=plan.margin, alpha=plan.alpha)
    found = {(one.pattern, one.operation, one.metric): _ratio(known[one.name]) for one in rates}
    return tuple(
        Result(
            pattern=one.pattern,
            series=one.series,
            operation=one.operation,
            unit=one.unit,
            observed=found[one.pattern, one.operation, "observed"],
            raw=found.get((one.pattern, one.operation, "raw")),
            first=one.first,
            second=one.second,
        )
        for one in rates
        if one.metric == "observed"
    )


def _ratio(outcome: Outcome) -> Ratio:
    return Ratio(
        finding=outcome.finding,
        ratio=outcome.ratio,
        lowest=outcome.lowest if outcome.lowest > 0 else None,
        highest=outcome.highest if math.isfinite(outcome.highest) else None,
        provable=outcome.provable,
    )


def step_of(comparison: Comparison) -> Compared | None:
    """What the history is told: none where nothing was compared, or the arms differ in no library that is named there."""
    if len(comparison.arms) < 2 or not comparison.results or comparison.started is None:
        return None
    first, second = (arm.software.model_dump() for arm in comparison.arms)
    versions = {
        name: (str(first[field]), str(second[field]))
        for field, name in SOFTWARE_NAMES.items()
        if first[field] != second[field] and field != "spack_arm"
    }
    results = {
        result.series: Step(ratio=result.observed.ratio, lowest=result.observed.lowest) for result in comparison.results
    }
    at = int(comparison.started.timestamp())
    if not versions:
        return None
    return Compared(site=comparison.site, file_system=comparison.file_system, at=at, versions=versions, results=results)


def in_words(found: Ratio) -> str:
    """``12 % slower (6 to 18 %)``, or what else was found."""
    if found.finding in ("slower", "faster"):
        limits = [found.highest, found.lowest] if found.finding == "slower" else [found.lowest, found.highest]
        least, most = ("?" if limit is None else f"{abs(1 - limit):.0%}" for limit in limits)
        return f"{abs(1 - found.ratio):.0%} {found.finding} ({least} to {most})"
    proven = "nothing is proven yet" if found.lowest is None else f"not slower by more than {found.provable:.0%}"
    return proven if found.finding == "not slower" else f"undecided; {proven}"


def next_steps(comparison: Comparison) -> str:
    """A paragraph for who reads it: what it means, and what to do."""
    if comparison.stopped == "broken" or not comparison.results:
        problem = comparison.problem or "no pair was finished"
        again = f"{RESUME} goes on" if comparison.stopped == "interrupted" else "Mend that and compare again"
        return f"There is no verdict: {problem}. {again}."
    words = []
    if strange := unreadable(comparison.exchanges):
        words.append(f"Files do not pass from one to the other: {strange[0]}{' (and more)' * (len(strange) > 1)}.")
    if slower := [result for result in comparison.results if result.slower]:
        words.append(
            f"{len(slower)} of {len(comparison.results)} operations are slower; most so {_worst(slower)}. "
            f"{_cause(comparison, slower)} Keep the old version as the default until the cause is known."
        )
    if comparison.stopped == "interrupted":
        words.append(f"It was interrupted: {comparison.problem or 'stopped'}. {RESUME} goes on where it was.")
    if left := [result.observed for result in comparison.results if result.observed.finding == "undecided"]:
        least = max(found.provable for found in left)
        words.append(
            f"{len(left)} are undecided: at worst, {least:.0%} slower is not ruled out. More time (--time-limit) or a wider "
            f"--margin decides; a quieter file system does it sooner."
        )
    if differ := sizes(comparison.exchanges):
        name, by_arm = next(iter(differ.items()))
        told = ", ".join(f"{arm} {size}" for arm, size in by_arm.items())
        words.append(f"{len(differ)} patterns' files differ in size ({name}: {told} bytes).")
    done = comparison.results and not any(result.slower for result in comparison.results)
    if done and not left and not unreadable(comparison.exchanges):
        words.insert(0, f"Nothing is slower by more than {comparison.margin:.0%}: the upgrade can go ahead.")
    return " ".join(words)


def _cause(comparison: Comparison, slower: Sequence[Result]) -> str:
    """What their calls say of it."""
    told = {one.pattern: one.differences for one in comparison.otherwise if one.differences}
    for result in slower:
        if result.pattern in told:
            return f"Its calls differ: {told[result.pattern][0]}."
    known = {one.pattern for one in comparison.otherwise if not one.problem}
    same = known and all(result.pattern in known for result in slower)
    return "The calls are the same in both: the time is spent in the library." if same else ""


def _worst(slower: Sequence[Result]) -> str:
    """The one that lost most, and where it lost it."""
    ratios = {
        (result.name, metric): found
        for result in slower
        for metric, found in (("", result.observed), (" in its transfers", result.raw))
        if found is not None and found.finding == "slower"
    }
    (name, metric), found = min(ratios.items(), key=lambda entry: entry[1].ratio)
    return f"{name}{metric}, {in_words(found)}"
