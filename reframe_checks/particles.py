"""VPIC-IO's write and BD-CATS-IO's read as h5bench has them: particles of eight variables in time steps."""

import shlex
from typing import Any

from reframe.core.builtins import parameter, run_after, run_before, variable

from iogauge.quota import in_units

from .mixins.axes import site_test
from .mixins.kernel import KernelCheck

PARTICLE_BYTES = 32

#: Locality, dimensions, selection of the nightly suite. The crossings of all are in the full suite.
NIGHTLY = {
    ("CC", 1, "full"),
    ("CI", 1, "full"),
    ("IC", 1, "full"),
    ("II", 1, "full"),
    ("CC", 2, "full"),
    ("CC", 3, "full"),
    ("CC", 1, "partial"),
    ("CC", 1, "strided"),
}
SCALING = {("CC", 1, "full")}

#: What else h5bench varies, CC: the kernel's options beyond the sizes, and the option that the case without it has; a
#: process that has loaded an asynchronous connector makes no synchronous calls.
MODES: dict[str, tuple[dict[str, Any], str]] = {
    "LDC": ({"dimensions": 2, "selection": "LDC"}, "selection=full"),
    "RDC": ({"dimensions": 2, "selection": "RDC"}, "selection=full"),
    "PRL": ({"dimensions": 2, "selection": "PRL"}, "selection=full"),
    "CS": ({"dimensions": 2, "selection": "CS"}, "selection=full"),
    "strided-write": ({"selection": "strided", "write-selected": "yes"}, "selection=full"),
    "overwrite": ({"write-mode": "overwrite"}, "write-mode=new"),
    "append": ({"write-mode": "append", "extendible": "yes", "chunk": 1 << 14}, "write-mode=new"),
    "unlimited": ({"extendible": "yes", "chunk": 1 << 14}, "extendible=no"),
    "unlimited-gzip": (
        {"extendible": "yes", "chunk": 1 << 14, "compress": "gzip", "collective": "yes"},
        "compress=none",
    ),
    "varied": ({"stdev": 1 << 16}, "stdev=0"),
    "closed-at-once": ({"delayed-close": 0}, "delayed-close=1000000"),
    "limited": ({"memory-limit": 1 << 20}, "memory-limit=0"),
    "subfiling": ({"driver": "subfiling"}, "driver=default"),
    "async-implicit": ({"async": "implicit", "compute-seconds": 0.2}, ""),
    "async-explicit": ({"async": "explicit", "compute-seconds": 0.2, "delayed-close": 0}, ""),
}

NIGHTLY_MODES = {"PRL"}

#: What a site's environment says in its features when its HDF5 has it. The async connector is found by HDF5_PLUGIN_PATH,
#: which the environment sets; the check loads it.
NEEDED_FEATURE = {"subfiling": "hdf5-subfiling", "async-implicit": "hdf5-async", "async-explicit": "hdf5-async"}


class Particles(KernelCheck):
    """Sizes, and what follows from them."""

    kernel = "particles"

    particles = variable(int, value=1 << 18)  # a rank's, in a step
    steps = variable(int, value=2)
    fraction = variable(float, value=0.5)
    alignment = variable(int, value=4096)

    def blocks_of_strided(self, dimensions: int) -> dict[str, Any]:
        """A quarter of the rows, in blocks of about 4 KiB a variable."""
        row = max(1, round(self.particles ** (1 - 1 / dimensions)))
        block = max(1, 1024 // row)
        return {"block": block, "stride": 4 * block}

    def bytes_written(self):
        # The alignment costs at most one unit a dataset; HDF5 needs less than a KiB for one.
        data = self.particles * PARTICLE_BYTES * self.steps * self.num_tasks
        return data + 8 * self.steps * (self.alignment + (1 << 10)) + (1 << 20)

    def byte_terms(self):
        return f"{self.steps} steps x {in_units(self.particles * PARTICLE_BYTES)}"


@site_test
class ParticlesCheck(Particles):
    """Localities, dimensions and selections; compared with CC, 1-D and the full read in the same job."""

    nightly = NIGHTLY
    scaling = SCALING
    locality = parameter(["CC", "CI", "IC", "II"], type=str, loggable=True)
    dimensions = parameter([1, 2, 3], type=int, loggable=True)
    selection = parameter(["full", "partial", "strided"], type=str, loggable=True)

    def pattern(self):
        return {
            "locality": self.locality,
            "dimensions": self.dimensions,
            "selection": self.selection,
            "chunk": 0,
            "file_per_process": False,
        }

    def pattern_options(self):
        options = {
            "particles": self.particles,
            "steps": self.steps,
            "locality": self.locality,
            "dimensions": self.dimensions,
            "selection": self.selection,
            "alignment": self.alignment,
        }
        if self.selection == "partial":
            options["fraction"] = self.fraction
        if self.selection == "strided":
            options |= self.blocks_of_strided(self.dimensions)
        return options

    def baselines(self):
        others = super().baselines()
        if self.locality != "CC":
            others.append("locality=CC")
        if self.dimensions != 1:
            others.append("dimensions=1")
        if self.selection != "full":
            others.append("selection=full")
        return others


@site_test
class ParticlesModesCheck(Particles):
    """What h5bench varies beyond those; compared with the case that lacks just that."""

    nightly = NIGHTLY_MODES
    mode = parameter(list(MODES), type=str, loggable=True)

    @run_after("init")
    def need_feature(self):
        if self.mode in NEEDED_FEATURE:
            self.valid_prog_environs = [f"+{NEEDED_FEATURE[self.mode]}"]

    @run_before("run")
    def load_connector(self):
        if self.mode.startswith("async"):
            self.env_vars["HDF5_VOL_CONNECTOR"] = "'async under_vol=0;under_info={}'"
            if self.arm and self.arm.vol:
                self.env_vars.update({n: shlex.quote(value) for n, value in self.arm.vol.variables.items()})

    @property
    def collective(self):
        return MODES[self.mode][0].get("collective") == "yes"

    def pattern(self):
        options = MODES[self.mode][0]
        names = {"write-mode": "write_mode", "delayed-close": "delayed_close", "memory-limit": "memory_limit_bytes"}
        names |= {name: name for name in ("dimensions", "selection", "chunk", "stdev", "compress", "driver", "async")}
        named = {names[option]: value for option, value in options.items() if option in names}
        truths = {option.replace("-", "_"): options.get(option) == "yes" for option in ("extendible", "write-selected")}
        plain = {"locality": "CC", "dimensions": 1, "selection": "full", "chunk": 0, "file_per_process": False}
        return {**plain, **named, **truths}

    def pattern_options(self):
        options = MODES[self.mode][0]
        sizes: dict[str, Any] = {"particles": self.particles, "steps": self.steps, "alignment": self.alignment}
        if options.get("selection") == "strided":
            sizes |= self.blocks_of_strided(1)
        elif "selection" in options:
            sizes |= self.blocks_of_region()
        return {**sizes, **options}

    def blocks_of_region(self) -> dict[str, Any]:
        """An eighth of the dataset's rows and columns; the stencil: sixteen blocks on the diagonal, half as far apart."""
        columns = max(1, round(self.particles**0.5))
        rows = columns * self.num_tasks
        parts = 32 if self.mode == "CS" else 8
        return {
            "block": max(1, rows // parts),
            "block-columns": max(1, columns // parts),
            "stride": max(1, rows // 16),
            "stride-columns": max(1, columns // 16),
        }

    def baselines(self):
        without = MODES[self.mode][1]
        return [*super().baselines(), *([without] if without else [])]

    @property
    def most_times(self):
        """Appending doubles what is there, and a varied number of particles may be up to twice the mean."""
        return 2 if self.mode in ("append", "varied") else 1

    def bytes_written(self):
        options = MODES[self.mode][0]
        chunk_bytes = 4 * options.get("chunk", 0)
        whole = self.most_times * super().bytes_written()
        if not chunk_bytes:
            return whole
        # Each dataset's last chunk is whole; every chunk has its entry in an index, and compressed, where random data do
        # not shrink, some bytes more and a place of its own.
        chunks = whole // chunk_bytes + 8 * self.steps
        return whole + 8 * self.steps * chunk_bytes + chunks * (256 + self.alignment * ("compress" in options))

    def byte_terms(self):
        return ("2 x " if self.most_times == 2 else "") + super().byte_terms()
