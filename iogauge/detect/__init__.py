"""From a row of nights to a verdict: has a series become slower, since when, by how much, and is it alone?"""

from iogauge.detect.fusion import (
    Fused,
    Hint,
    Scope,
    fuse,
    judge_file_system,
    judge_together,
    maintenance_hints,
    said_together,
    scope,
)
from iogauge.detect.nightly import NightlyDetector, Verdict
from iogauge.detect.nights import Action, Calendar, History, Night, history
from iogauge.detect.verdicts import LOOKED_BACK, Change, Finding, Judged, SeriesVerdict, Track, judge, smallest_drop

__all__ = [
    "LOOKED_BACK",
    "Action",
    "Calendar",
    "Change",
    "Finding",
    "Fused",
    "Hint",
    "History",
    "Judged",
    "Night",
    "NightlyDetector",
    "Scope",
    "SeriesVerdict",
    "Track",
    "Verdict",
    "fuse",
    "history",
    "judge",
    "judge_file_system",
    "judge_together",
    "maintenance_hints",
    "said_together",
    "scope",
    "smallest_drop",
]
