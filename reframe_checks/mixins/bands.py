"""From records to performance variables: the judge's bands become ReFrame's references."""

from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import loggable, run_after, run_before, variable

from iogauge import series
from iogauge.bands import load_portable_bands, load_site_bands
from iogauge.judge import Judgement

REFERENCE_VALUES = Path(__file__).resolve().parents[2] / "reference_values"


class Bands(rfm.RegressionTestPlugin):
    """Looks bands up by the stable key, and registers what the judge found.

    Needs: ``kernel``, ``interface``, ``operations``, ``pattern_label()`` by setup; ``judged``
    (:class:`Judgement` or None) after sanity.
    Gives: ``series_keys`` of all operations from init on; ``band_key``, the first of them, and ``band_status`` (found or
    missing, for all of them) from setup on.
    """

    band_key = variable(str, value="", loggable=True)
    band_status = variable(str, value="", loggable=True)
    verdict = variable(str, value="", loggable=True)
    judgement = variable(typ.Dict, value={}, loggable=True)

    operations = ("write", "read")
    judged = None

    def site_bands(self):
        return load_site_bands(REFERENCE_VALUES, self.current_system.name)

    def portable_bands(self):
        bands = load_portable_bands(REFERENCE_VALUES)
        return bands if self.site.portable_bands else bands.model_copy(update={"bands": []})

    def series_key(self, operation: str) -> str:
        return series.key_of(
            self.kernel,
            operation,
            self.file_system,
            self.nodes,
            self.ranks_per_node,
            self.pattern_label(),
            self.interface,
        )

    @loggable
    @property
    def series_keys(self):
        return [self.series_key(operation) for operation in self.operations]

    @run_after("setup")
    def look_up_bands(self):
        found = [self.site_bands().find(key) is not None for key in self.series_keys]
        self.band_key = self.series_keys[0]
        self.band_status = "found" if all(found) else "missing"

    @run_before("performance")
    def register(self):
        """Rates and ratios with their references; only being slower makes ReFrame fail the test."""
        if self.is_dry_run():
            self._register_expected()
        elif self.judged is not None:
            self._register_judged(self.judged)

    def _register_expected(self):
        """What a run will report, so that ``--dry-run -S require_reference=1`` names every case without a band."""
        references = {}
        for operation in self.operations:
            name = f"{operation}_observed"
            unit = "MiB/s" if operation in ("write", "read") else "operations/s"
            self.perf_variables[name] = sn.make_performance_function(sn.defer(0), unit)
            bands = self.site_bands().find(self.series_key(operation))
            if bands is not None and bands.observed is not None:
                band = bands.observed
                references[name] = (band.reference, band.lower, None, unit)
        if references:
            self.reference = {self.current_partition.fullname: references}

    def _register_judged(self, judgement: Judgement):
        references = {}

        def report(name, value, limits, unit):
            self.perf_variables[name] = sn.make_performance_function(sn.defer(value), unit)
            if limits is not None:
                lower = limits.lowest / limits.reference - 1
                references[name] = (limits.reference, lower, None, unit)

        for row in judgement.main_rows:
            report(f"{row.operation}_observed", row.observed, row.limits, row.unit)
            report(f"{row.operation}_raw", row.raw, None, row.unit)
            for ratio in row.ratios:
                limits = ratio.limits if ratio.place in ("below", "inside", "above") else None
                report(f"{row.operation}_{ratio.name}", ratio.value, limits, "1")
        if references:
            self.reference = {self.current_partition.fullname: references}
