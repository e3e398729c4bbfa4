"""The newest night for people on a login node: what is slower, in words, worst first; and one series at length."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from rich.console import Console
from rich.text import Text

from iogauge.assess.record import Assessment, FileSystemState, SeriesState
from iogauge.detect.verdicts import WORDS
from iogauge.plain import one_line
from iogauge.terminal import STYLES
from iogauge.tonight import Alarm, Tonight
from iogauge.verdict import of_file_system, rate, site_option

#: Without ``--all`` no more alarms than these are shown, and no more of what is only told.
MOST_ALARMS, MOST_TOLD = 20, 8

#: Of a file system that is slower as a whole, which is said in one line, so many series are shown, those that lost most.
MOST_OF_A_WHOLE = 3

#: What is told though it is no alarm, worst first.
TOLD = ("shifted level", "drift", "transient", "improved")

PLAIN_WIDTH = 80

_ALL_IS_WELL = "nothing is slower"

_BLOCKS = "▁▂▃▄▅▆▇█"

Rates = Mapping[str, Mapping[datetime.date, float]]


class Status(BaseModel):
    """What ``iogauge status --json`` prints."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: str = Field(default="iogauge.status/1", alias="schema")
    site: str
    last: datetime.datetime
    problem: str
    exit_code: int
    headline: str
    alarms: tuple[dict[str, Any], ...]
    assessment: Assessment | None


def as_record(tonight: Tonight) -> Status:
    """The same as the text, for programs."""
    alarms = [
        {"name": one.name, "file_system": one.file_system, "word": one.word, "text": one.text, "began": one.began}
        for one in tonight.alarms
    ]
    return Status(
        site=tonight.site,
        last=tonight.last,
        problem=tonight.problem,
        exit_code=tonight.exit_code,
        headline=headline(tonight),
        alarms=tuple(alarms),
        assessment=tonight.assessment,
    )


def sparkline(rates: Sequence[float]) -> str:
    """A character a night, from nothing to the best of them: what halves is half as high."""
    best = max(rates, default=0.0)
    if best <= 0:
        return ""
    return "".join(_BLOCKS[min(int(value / best * len(_BLOCKS)), len(_BLOCKS) - 1)] for value in rates)


def headline(tonight: Tonight) -> str:
    """The night in one sentence."""
    slower = [one for one in tonight.file_systems if one.scope is not None and _is_news(one, tonight)]
    found = Counter(one.word for one in tonight.alarms)
    parts = []
    if slower or found["shifted level"]:
        count = found["shifted level"]
        scopes = ", ".join(one.scope.text for one in slower if one.scope)
        series = f"{count} series"
        parts.append("SLOWER: " + (scopes + f" ({series})" * bool(count) if scopes else series))
    parts += [f"{word.upper()}: {found[word]}" for word in ("regressed", "invalid") if found[word]]
    if tonight.exit_code == 2:
        parts.append("NOT MEASURED, or not all")
    elif tonight.unassessed:
        parts.append("NOT JUDGED against the nights before")
    return one_line("; ".join(parts)) or _ALL_IS_WELL


def _is_news(one: FileSystemState, tonight: Tonight) -> bool:
    """Is something of it slower that is not known to be?"""
    return one in tonight.slower_as_a_whole or any(
        alarm.word == "shifted level" and alarm.file_system == one.name for alarm in tonight.alarms
    )


def lines(tonight: Tonight, rates: Rates, now: datetime.datetime, *, every: bool = False) -> Iterator[Text]:
    """The whole status. ``rates`` by key and date are drawn as sparklines, where there are any."""
    news = headline(tonight)
    yield _styled(news, "bold green" if news == _ALL_IS_WELL else "bold red")
    yield _line(_when(tonight, now))
    if tonight.problem:
        yield _styled(f"! {one_line(tonight.problem)}", "bold magenta")
    for note in tonight.assessment.notes if tonight.assessment else ():
        yield _styled(f"note: {one_line(note)}", "yellow")
    yield from _file_systems(tonight)
    yield from _alarms(tonight, rates, every=every)
    yield from _told(tonight, rates, every=every)
    if every:
        yield from _all(tonight, rates)
    yield Text()
    yield _line(_counts(tonight))
    if tonight.alarms:
        yield _styled(f"next: iogauge show KEY{site_option(tonight.site)} (a part of the key is enough)", "dim")


def _line(text: str) -> Text:
    return Text(text, overflow="fold")


def _styled(text: str, style: str) -> Text:
    return Text(text, style=style, overflow="fold")


def _when(tonight: Tonight, now: datetime.datetime) -> str:
    hours = (now - tonight.last).total_seconds() / 3600
    ago = f"{hours / 24:.0f} days" if hours >= 48 else f"{max(hours, 0):.0f} hours"
    suite = f", suite {tonight.night.suite}" if tonight.night else ""
    return f"site {tonight.site}{suite}, night of {tonight.date}, ended {ago} ago"


def _file_systems(tonight: Tonight) -> Iterator[Text]:
    """Every file system with its verdict and scope; one with too few series is told by them."""
    together = {one.name: one for one in tonight.file_systems}
    names = sorted({state.file_system for state in tonight.tonight} | {one.file_system for one in tonight.alarms})
    width = max(map(len, names), default=0)
    for name in names:
        mine = [state for state in tonight.tonight if state.file_system == name]
        alarms = [one for one in tonight.alarms if one.file_system == name]
        found = together.get(name)
        word, said = _of_file_system(found, mine, alarms, tonight)
        symbol, style = STYLES[word]
        yield Text.assemble((f"{symbol} {name:{width}}  ", style), (said, style), overflow="fold")
        for hint in found.hints if found else ():
            yield _styled(f"  {'':{width}}  {one_line(hint)}", "dim")


def _of_file_system(
    found: FileSystemState | None, mine: Sequence[SeriesState], alarms: Sequence[Alarm], tonight: Tonight
) -> tuple[str, str]:
    """Its verdict, and that in words."""
    if found is not None and found.scope is not None and tonight.assessment is not None:
        word = "shifted level" if _is_news(found, tonight) else "drift"
        return word, one_line(of_file_system(tonight.assessment, found))
    if alarms:
        return alarms[0].word, f"{len(alarms)} alarm{'s' * (len(alarms) != 1)} in {len(mine)} series"
    words = Counter(tonight.verdicts[state.key].word for state in mine)
    young, noisy = words["no reference"], words["too noisy"]
    if young == len(mine):
        return "no reference", f"no reference yet ({len(mine)} series)"
    if young + noisy == len(mine):
        return "too noisy", ", ".join([f"{noisy} series too noisy"] + [f"{young} without reference"] * bool(young))
    if found is not None and found.word not in ("pass", "no reference", "shifted level"):
        return found.word, f"{found.word}: {one_line(found.reason)}"
    counts = [f"{len(mine) - young - noisy} series"] + [f"{noisy} too noisy"] * bool(noisy)
    return "pass", f"steady ({', '.join(counts + [f'{young} without reference'] * bool(young))})"


def _alarms(tonight: Tonight, rates: Rates, *, every: bool) -> Iterator[Text]:
    alarms = tonight.alarms
    shown = alarms if every else tuple(_worst(tonight))[:MOST_ALARMS]
    if len(alarms) == len(shown) + 1:  # a line that says so would take the place of the last one
        shown = alarms
    for one in shown:
        symbol, style = STYLES[one.word]
        yield Text()
        yield Text.assemble((f"{symbol} {one.word.upper()}  ", style), (one_line(one.name), "bold"), overflow="fold")
        yield _line(f"  {one_line(one.text)}")
        drawn = sparkline(tuple(rates.get(one.name, {}).values()))
        if drawn:
            yield _line(f"  {drawn}")
    if len(alarms) > len(shown):
        yield Text()
        yield _line(f"and {len(alarms) - len(shown)} more alarms: --all")


def _worst(tonight: Tonight) -> Iterator[Alarm]:
    """The alarms without most of those that a file system tells as a whole."""
    whole = {one.name for one in tonight.slower_as_a_whole}
    kept: Counter[str] = Counter()
    for one in tonight.alarms:
        if one.word == "shifted level" and one.file_system in whole:
            kept[one.file_system] += 1
            if kept[one.file_system] > MOST_OF_A_WHOLE:
                continue
        yield one


def _told(tonight: Tonight, rates: Rates, *, every: bool) -> Iterator[Text]:
    alarms = {one.name for one in tonight.alarms}
    found = [state for state in tonight.tonight if tonight.verdicts[state.key].word in TOLD or state.muted]
    found = sorted((s for s in found if s.key not in alarms), key=lambda s: (WORDS.index(s.word), s.key))
    if found:
        yield Text()
        yield _line("told, no alarm:")
    for state in found if every else found[:MOST_TOLD]:
        verdict = tonight.verdicts[state.key]
        symbol, style = STYLES[verdict.word]
        why = reason(state) if verdict.word == state.word else verdict.reason or verdict.text
        words = (f"  {symbol} {verdict.word}  ", style), (state.key, ""), (f": {one_line(why)}", "")
        yield Text.assemble(*words, overflow="fold")
    if len(found) > MOST_TOLD and not every:
        yield _line(f"  and {len(found) - MOST_TOLD} more: --all")


def reason(state: SeriesState) -> str:
    """The verdict's reason, and who has muted it until when."""
    muted = state.muted
    if muted is None:
        return state.reason
    return f"{state.reason or state.word}; muted until {muted.until} by {muted.who}: {muted.why}"


def _all(tonight: Tonight, rates: Rates) -> Iterator[Text]:
    yield Text()
    yield _line("every series:")
    for state in sorted(tonight.tonight, key=lambda s: (s.file_system, s.key)):
        word = tonight.verdicts[state.key].word
        symbol, style = STYLES[word]
        drawn = sparkline(tuple(rates.get(state.key, {}).values()))
        numbers = f"{rate(state.rate)} of {rate(state.reference)} {state.unit}"
        yield Text.assemble((f"{symbol} {word:13} ", style), state.key, overflow="fold")
        yield _line(f"  {numbers:28} {drawn}".rstrip())


def _counts(tonight: Tonight) -> str:
    words = [f"{number} {word}" for word, number in tonight.counts.items() if number]
    known = tonight.assessment.series if tonight.assessment else ()
    older = len(known) - len(tonight.tonight)
    return (", ".join(words) or "nothing was measured") + (f"; {older} series not on this night" if older else "")


def print_lines(console: Console, found: Iterable[Text], hang: int = 4) -> None:
    """As wide as the terminal, or 80 columns; what does not fit goes on below, ``hang`` columns further to the right."""
    width = console.width if console.is_terminal else PLAIN_WIDTH
    for line in found:
        begin, *rest = line.wrap(console, width) or [line]
        begin.rstrip()
        console.print(begin, soft_wrap=True)
        if rest:
            indent = " " * (len(line.plain) - len(line.plain.lstrip(" ")) + hang)
            left = line[len(line.plain) - len(line.plain[len(begin.plain) :].lstrip(" ")) :]
            for part in left.wrap(console, max(width - len(indent), 20)):
                part.rstrip()
                console.print(Text(indent) + part, soft_wrap=True)
