"""Tonight's verdicts as JUnit XML, as test servers take them: a test case for each series, a suite for each file system."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from junitparser import Error, Failure, JUnitXml, Properties, Property, Skipped, TestCase, TestSuite

from iogauge.assess.record import SeriesState
from iogauge.plain import one_line, printable
from iogauge.status import reason
from iogauge.tonight import Alarm, Tonight
from iogauge.verdict import Verdict, of_file_system

#: Verdicts from which nothing follows, and those that are known where they are no alarm.
_NO_VERDICT: tuple[Verdict, ...] = ("no reference", "too noisy", "shifted level", "regressed")


def as_xml(tonight: Tonight) -> str:
    """The document. An alarm is a failure, what is invalid an error; skipped is what has no verdict, is under maintenance, or
    is slower and known."""
    document = JUnitXml(f"iogauge {tonight.site}")
    by_file_system: dict[str, list[TestCase]] = defaultdict(list)
    for file_system, case in _cases(tonight):
        by_file_system[file_system].append(case)
    for name, cases in sorted(by_file_system.items()):
        suite = TestSuite(printable(f"iogauge.{tonight.site}.{name}"))
        began = tonight.night.started if tonight.night else tonight.last
        # The schema's form has no zone.
        suite.timestamp = began.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        suite.hostname = tonight.night.machine.host if tonight.night else tonight.site
        suite.add_property("site", tonight.site)
        suite.add_property("night", str(tonight.date))
        if tonight.problem:
            suite.add_property("problem", one_line(tonight.problem))
        suite.add_testcases(cases)
        document.add_testsuite(suite)
    document.update_statistics()
    text: str = document.tostring().decode("utf-8")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _cases(tonight: Tonight) -> Iterator[tuple[str, TestCase]]:
    alarms = {one.name: one for one in reversed(tonight.alarms)}
    seconds = {row.key: case.seconds for case, row in (tonight.night.rows if tonight.night else ())}
    for state in tonight.tonight:
        case = _case(state.key, f"{tonight.site}.{state.file_system}.{state.benchmark}", seconds.get(state.key))
        case.append(_properties(state, tonight.verdicts[state.key].word))
        result = _result(state, tonight.verdicts[state.key].word, alarms.pop(state.key, None))
        if result is not None:
            case.append(result)
        yield state.file_system, case
    for alarm in alarms.values():  # cases and series without an assessment
        case = _case(alarm.name, f"{tonight.site}.{alarm.file_system}", None)
        case.append(_of_alarm(alarm))
        yield alarm.file_system, case
    for one in tonight.slower_as_a_whole:
        if tonight.assessment is not None and one.scope is not None and not one.scope.keys:
            case = _case(one.scope.text, f"{tonight.site}.{one.name}", None)
            case.append(_of_alarm(Alarm(one.name, one.name, "shifted level", of_file_system(tonight.assessment, one))))
            yield one.name, case


def _case(name: str, group: str, seconds: float | None) -> TestCase:
    return TestCase(one_line(name), one_line(group), seconds or 0.0)


def _result(state: SeriesState, word: Verdict, alarm: Alarm | None) -> Any:
    if alarm is not None:
        return _of_alarm(alarm)
    if word in _NO_VERDICT or state.maintenance:
        return Skipped(one_line(f"{word}: {reason(state)}"), word)
    return None


def _of_alarm(alarm: Alarm) -> Any:
    form = Error if alarm.word == "invalid" else Failure
    result = form(one_line(alarm.text), alarm.word)
    result.text = printable(alarm.text)
    return result


def _properties(state: SeriesState, word: Verdict) -> Properties:
    move = state.move
    values = {
        "verdict": word,
        "rate": state.rate,
        "reference": state.reference,
        "unit": state.unit,
        "repeats": " ".join(map(str, state.repeats)) or None,
        "fingerprint": state.fingerprint,
        "since": move.began if move else None,
        "changes": ", ".join(move.changes) if move and move.changes else None,
        "smallest_slowdown": None if state.smallest_drop is None else f"{state.smallest_drop:.2f}",
    }
    found = Properties()
    for name, value in values.items():
        if value is not None:
            found.add_property(Property(name, printable(str(value))))
    return found
