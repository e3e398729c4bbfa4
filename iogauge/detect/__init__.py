"""From a row of nights to a verdict: has a series become slower, since when, and by how much?"""

from iogauge.detect.nightly import NightlyDetector, Verdict

__all__ = ["NightlyDetector", "Verdict"]
