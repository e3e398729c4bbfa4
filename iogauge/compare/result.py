"""What a comparison has shown, and what to do next: plain values, kept as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from iogauge import placement
from iogauge.compare.exchange import Exchange, sizes, unreadable
from iogauge.compare.lines import read_latest
from iogauge.compare.otherwise import Otherwise
from iogauge.compare.plan import EXCHANGES_FILE, OTHERWISE_FILE, PLAN_FILE, PROFILED_FILE, RUNS_FILE, Plan
from iogauge.compare.profiled import Profiled, why_none
from iogauge.compare.runs import Run, rates_of, read_runs, whole_pairs
from iogauge.compare.sequential import Finding, Outcome, judge
from iogauge.errors import Refusal
from iogauge.measurement import Software
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
    """Two arms on one site's file system. ``margin``, ``alpha``, ``seed``, ``repeats`` and ``time_limit_seconds`` are the
    plan's; records of old may not have the last two.

    ``hosts``: ranks by host; ``placement``: where ranks were proven to be. Of all allocations, where it was taken up again.

    ``stopped``: all was ``decided``, the ``time`` was up, ``interrupted`` or ``broken``, by ``problem``. A broken one
    has no results. ``otherwise``: by the project's own counter; ``profiled``: by Darshan, or why not, ``without_darshan``.
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
    repeats: int | None = None
    time_limit_seconds: float | None = None
    stopped: Stopped
    problem: str = ""
    results: tuple[Result, ...]
    exchanges: tuple[Exchange, ...] = ()
    otherwise: tuple[Otherwise, ...] = ()
    profiled: tuple[Profiled, ...] = ()
    without_darshan: str = ""

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
        """1: something is slower, or a file cannot be read; 2: it could not be compared, was interrupted before all was
        decided, or nothing was decided in time; 0 otherwise."""
        if self.stopped == "broken" or not self.results:
            return 2
        if any(result.slower for result in self.results) or unreadable(self.exchanges):
            return 1
        undecided = self.counts["undecided"]
        return 2 if undecided == len(self.results) or (undecided and self.stopped == "interrupted") else 0

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
        exchanges = read_latest(folder / EXCHANGES_FILE, Exchange, lambda one: (one.pattern, one.writer, one.reader))
        otherwise = read_latest(folder / OTHERWISE_FILE, Otherwise, lambda one: one.pattern)
        profiled = read_latest(folder / PROFILED_FILE, Profiled, lambda one: one.pattern)
    except Refusal as refusal:
        return summarise(plan, [], stopped="broken", problem=str(refusal))
    return summarise(plan, runs, exchanges, otherwise, profiled, stopped=stopped, problem=problem)


def summarise(
    plan: Plan,
    runs: Sequence[Run],
    exchanges: Sequence[Exchange] = (),
    otherwise: Sequence[Otherwise] = (),
    profiled: Sequence[Profiled] = (),
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
        repeats=plan.repeats,
        time_limit_seconds=plan.time_limit_seconds,
        stopped=stopped,
        problem=problem,
        results=results,
        exchanges=tuple(exchanges),
        otherwise=tuple(otherwise),
        profiled=tuple(profiled),
        without_darshan=why_none(plan),
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


def count(number: int, what: str) -> str:
    """``1 pair``, ``2 pairs``."""
    return f"{number} {what}{'s' * (number != 1)}"


def percent(fraction: float) -> str:
    """``12%``, ``0.4%``: with two digits."""
    return f"{fraction:.0%}" if fraction >= 0.1 else f"{100 * fraction:.2g}%"


def in_words(found: Ratio) -> str:
    """``12% slower (6% to 18%)``, or what else was found."""
    if found.finding in ("slower", "faster"):
        limits = [found.highest, found.lowest] if found.finding == "slower" else [found.lowest, found.highest]
        least, most = ("?" if limit is None else percent(abs(1 - limit)) for limit in limits)
        return f"{percent(abs(1 - found.ratio))} {found.finding} ({least} to {most})"
    proven = "nothing is proven yet" if found.lowest is None else f"not slower by more than {percent(found.provable)}"
    return proven if found.finding == "not slower" else f"undecided; {proven}"


def why(found: Ratio, pairs: int, margin: float) -> str:
    """Why that was found: what the pairs do not refute, against 1 and the margin."""
    if found.lowest is None and found.highest is None:
        return f"nothing is bounded after {count(pairs, 'pair')}"
    lowest, highest = ("?" if limit is None else f"{limit:.3f}" for limit in (found.lowest, found.highest))
    low, high, worst = found.lowest or 0.0, found.highest or math.inf, 1 - margin
    held: dict[Finding, tuple[bool, str]] = {
        "slower": (high < 1, "all of it is below 1"),
        "faster": (low > 1, "all of it is above 1"),
        "not slower": (low >= worst, f"none of it is below {worst:.3g}"),
        "undecided": (low < worst < high, f"on both sides of {worst:.3g}" + " and of 1" * (low < 1 < high)),
    }
    is_so, reason = held[found.finding]
    return f"{lowest} to {highest} after {count(pairs, 'pair')}: {reason if is_so else 'judged with all the others (Holm)'}"


def untold(comparison: Comparison) -> list[str]:
    """Why something could not be told, the same reason once."""
    patterns: dict[tuple[str, str], list[str]] = {}
    for who, found in (("the counter", comparison.otherwise), ("Darshan", comparison.profiled)):
        for one in found:
            if one.problem:
                patterns.setdefault((who, one.problem), []).append(one.pattern)
    told = [f"{', '.join(names)}: not told by {who}: {problem}" for (who, problem), names in patterns.items()]
    return [*told, comparison.without_darshan] if comparison.without_darshan else told


def next_steps(comparison: Comparison) -> str:
    """A paragraph for who reads it: what it means, and what to do."""
    if comparison.stopped == "broken" or not comparison.results:
        problem = comparison.problem or "no pair was finished"
        goes_on = f"{RESUME} goes on" + " with the runs that are kept" * bool(comparison.arms)
        if comparison.stopped != "interrupted":
            goes_on = "Mend that and compare again" + f", or {goes_on}" * bool(comparison.arms)
        return f"There is no verdict: {problem}. {goes_on}."
    words = []
    if strange := unreadable(comparison.exchanges):
        words.append(f"Files do not pass from one to the other: {strange[0]}{' (and more)' * (len(strange) > 1)}.")
    if slower := [result for result in comparison.results if result.slower]:
        are = "are" if len(slower) > 1 else "is"
        words.append(
            f"{len(slower)} of {len(comparison.results)} operations {are} slower; most so {_worst(slower)}. "
            f"{_cause(comparison, slower)} Keep the old version as the default until the cause is known."
        )
    if comparison.stopped == "interrupted":
        words.append(f"It was interrupted: {comparison.problem or 'stopped'}. {RESUME} goes on where it was.")
    undecided = [result for result in comparison.results if result.observed.finding == "undecided"]
    if left := [result.observed for result in undecided if not result.slower]:
        least = max(found.provable for found in left)
        known = f"at worst, {percent(least)} slower is not ruled out" if least < 1 else "of some nothing is known yet"
        are = "are" if len(left) > 1 else "is"
        words.append(
            f"{len(left)} {are} undecided: {known}. More time decides "
            f"(iogauge compare with the same arms, --resume latest and --time-limit), or a wider --margin from the start; a "
            f"quieter file system does it sooner."
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
    """What their calls say of it: by the counter, else by Darshan."""
    known: set[str] = set()
    for found in (comparison.otherwise, comparison.profiled):
        told = {one.pattern: one.differences for one in found if not one.problem}
        known |= told.keys()
        for result in slower:
            if told.get(result.pattern):
                return f"The calls of {result.pattern} differ: {told[result.pattern][0]}; look there first."
    if not known or any(result.pattern not in known for result in slower):
        return ""
    return "The calls are the same in both: the time is spent in the library, which a profiler (perf) shows."


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
