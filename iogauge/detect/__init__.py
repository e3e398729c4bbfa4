"""From a row of nights to a verdict: has a series become slower, since when, by how much, and is it alone?"""

from iogauge.detect.fusion import Hint, Scope, judge_file_system, maintenance_hints, scope
from iogauge.detect.nightly import NightlyDetector, Verdict
from iogauge.detect.nights import Action, Calendar, History, Night, history
from iogauge.detect.verdicts import Change, Finding, Judged, SeriesVerdict, Track, judge, smallest_drop

__all__ = [
    "Action",
    "Calendar",
    "Change",
    "Finding",
    "Hint",
    "History",
    "Judged",
    "Night",
    "NightlyDetector",
    "Scope",
    "SeriesVerdict",
    "Track",
    "Verdict",
    "history",
    "judge",
    "judge_file_system",
    "maintenance_hints",
    "scope",
    "smallest_drop",
]
