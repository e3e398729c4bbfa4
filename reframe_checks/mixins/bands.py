"""From records to performance variables: the judge's bands become ReFrame's references."""

from collections import Counter
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import loggable, run_after, run_before, variable

from iogauge import series
from iogauge.bands import load_portable_bands, load_site_bands
from iogauge.judge import Judgement, Row

REFERENCE_VALUES = Path(__file__).resolve().parents[2] / "reference_values"


#: Operations that are rated in MiB/s.
MOVES_BYTES = ("write", "read", "overwrite", "append")


def variables_of(keys: list[str]) -> dict[str, str]:
    """The beginnings of performance variables' names to the series' keys: the operation, with the pattern where several have
    the operation, and with the interface where several of these have the pattern."""
    named = {key: (parts.operation, parts.label, parts.interface) for key in keys for parts in [series.parts_of(key)]}
    operations = Counter(words[0] for words in named.values())
    patterns = Counter(words[:2] for words in named.values())

    def length(words):
        return 1 if operations[words[0]] == 1 else 2 if patterns[words[:2]] == 1 else 3

    return {"_".join(words[: length(words)]): key for key, words in named.items()}


def by_variable(judgement: Judgement) -> dict[str, Row]:
    """The same to the judged rows."""
    rows = {row.key: row for row in judgement.main_rows}
    return {name: rows[key] for name, key in variables_of(list(rows)).items()}


class Bands(rfm.RegressionTestPlugin):
    """Looks bands up by the stable key, and registers what the judge found.

    Needs: ``kernel``, ``interface``, ``operations``, ``pattern_label()``, ``series_arm`` by setup; ``judged``
    (:class:`Judgement` or None) after sanity.
    A check with other series than one for each of its ``operations`` gives ``keys()``.

    Gives: ``announced()`` and its keys, ``series_keys``, from setup on, and ``band_key``, the first of them, and
    ``band_status`` (found or missing, for all of them).
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

    def series_key(self, operation: str, label: str = "", interface: str = "") -> str:
        """Of the check's own pattern and interface, where no others are given."""
        return series.key_of(
            self.kernel,
            operation,
            self.file_system,
            self.nodes,
            self.ranks_per_node,
            label or self.pattern_label(),
            interface or self.interface,
            self.series_arm,
        )

    def keys(self) -> list[str]:
        """The series that will be measured."""
        return [self.series_key(operation) for operation in self.operations]

    def announced(self) -> dict[str, str]:
        """What will be measured: the beginning of a performance variable's name to the series' key."""
        return variables_of(self.keys())

    @loggable
    @property
    def series_keys(self):
        """Before setup those of all partitions and environs where the test can run."""
        keys = self.announced().values()
        if self.current_partition is not None:
            return list(keys)
        return [f"{key}@{arm}" if arm else key for arm in self.series_arms for key in keys]

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
        for beginning, key in self.announced().items():
            name = f"{beginning}_observed"
            unit = "MiB/s" if series.parts_of(key).operation in MOVES_BYTES else "operations/s"
            self.perf_variables[name] = sn.make_performance_function(sn.defer(0), unit)
            bands = self.site_bands().find(key)
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

        for beginning, row in by_variable(judgement).items():
            report(f"{beginning}_observed", row.observed, row.limits, row.unit)
            if row.raw is not None:
                report(f"{beginning}_raw", row.raw, None, row.unit)
            for ratio in row.ratios:
                limits = ratio.limits if ratio.place in ("below", "inside", "above") else None
                report(f"{beginning}_{ratio.name}", ratio.value, limits, "1")
        if references:
            self.reference = {self.current_partition.fullname: references}
