"""The original File Format Comparison (File-Format-Testing): HDF5, netCDF4 and Zarr by one Python process, as it is."""

import shutil
from functools import cached_property
from pathlib import Path

from reframe.core.builtins import parameter, run_before, variable

from iogauge import series
from iogauge.adapters import fft
from iogauge.errors import InputError

from .mixins.axes import environ_of, site_test
from .mixins.upstream import IN_STAGE, Launching, UpstreamCheck, second_names

#: Dimensions and elements of an array; ``own``: a site's own YAML, or a folder of them, as its runner has.
ARRAYS = {
    "vector": [1 << 20],
    "matrix": [1024, 1024],
    "tensor": [128, 128, 64],
    "own": [],
}

NIGHTLY = {"matrix"}


@site_test
class FileFormatComparisonCheck(UpstreamCheck):
    """Five trials of each format in a launch; a launch for each configuration.

    ``program`` is its checkout, or the runner.py in it; ``python`` the Python with what it needs, zarr before 3 above all. In
    the environment's extras: ``programs: {fft: PATH, fft-python: PATH}``.
    """

    kernel = "fft"
    package = "asriniket/File-Format-Testing, and as fft-python a Python with zarr before 3"
    nightly = NIGHTLY
    serial = True
    can_be_profiled = False  # h5py and netCDF4 bring an HDF5 each, over which nothing can be preloaded
    nodes = parameter([1], type=int, loggable=True)
    ranks_per_node = parameter([1], type=int, loggable=True)
    case = parameter(list(ARRAYS), type=str, loggable=True)
    time_limit = "30m"

    python = variable(str, value="")
    datasets = variable(int, value=4)
    repeats = 1  # of its five trials
    launch_seconds = 900

    @property
    def is_own(self):
        return self.case == "own"

    def executables(self):
        return [fft.RUNNER, "python3"]

    def find(self, name, environs):
        """Its script is not executable."""
        extras = [environ_of(environ).programs for environ in environs]
        if name != fft.RUNNER:
            named = next(filter(None, [self.python, *(programs.get("fft-python", "") for programs in extras)]), name)
            found = shutil.which(Path(named).expanduser())
            return None if found is None else str(Path(found).absolute())
        for place in filter(None, [self.program, *(programs.get("fft", "") for programs in extras)]):
            path = Path(place).expanduser()
            script = path / name if path.is_dir() else path
            if script.name == name and script.is_file():
                return str(script.absolute())
        return None

    @cached_property
    def configurations(self):
        """Name in the stage folder, text and meaning of each YAML."""
        if not self.is_own:
            elements = tuple(ARRAYS[self.case])
            one = fft.Configuration(FILE_NAME="arrays", NUMBER_DATASETS=self.datasets, NUMBER_ELEMENTS=elements)
            return [("configuration-0.yaml", one.text(), one)]
        own = Path(self.own).expanduser()
        paths = sorted(own.glob("*.yaml")) if own.is_dir() else [own]
        if not paths:
            raise InputError("a YAML, or a folder with some (*.yaml), is expected", file=own)
        read = [fft.read_configuration(path) for path in paths]
        texts = [path.read_text(encoding="utf-8") for path in paths]
        return [(f"configuration-{n}.yaml", text, one) for n, (text, one) in enumerate(zip(texts, read, strict=True))]

    def check_own(self, ranks):
        _ = self.configurations

    def keys(self):
        patterns = [fft.pattern_of(one, self.own_hash(text)) for _, text, one in self.configurations]
        return [
            self.series_key(operation, series.label_of(self.kernel, pattern, False), interface)
            for pattern in patterns
            for name, interface in fft.FORMATS.items()
            for operation in fft.operations_of(name)
        ]

    @run_before("run")
    def write_configurations(self):
        for name, text, _ in self.configurations:
            Path(self.stagedir, name).write_text(text, encoding="utf-8")
            self.keep_files += [name]

    def launches(self):
        python = [self.path_of("python3"), "-B"]  # nothing is written into the checkout
        # What matplotlib writes stays in the case's folder.
        environment = {"MPLBACKEND": "Agg", "MPLCONFIGDIR": "matplotlib"}
        folders = " ".join(f"{fft.FOLDER}/{name}" for name in ("configuration_files", "data", "files", "files_read"))
        found = [Launching("versions", [*python, "-c", fft.VERSIONS], environment=environment)]
        return found + [
            Launching(
                f"launch {number + 1} of {one.name}",
                [*python, self.path_of(fft.RUNNER)],
                [one.result(format_) for format_ in fft.FORMATS],
                environment=environment,
                before=[
                    f"rm -rf {fft.FOLDER}",
                    f"mkdir -p {folders}",
                    f'cp "{IN_STAGE}{name}" {fft.FOLDER}/configuration_files/',
                    *second_names(one.files),
                ],
            )
            for name, _, one in self.configurations
            for number in range(self.repeats)
        ]

    def measured(self, job, launches):
        versions = fft.read_versions(launches[0])
        found = []
        for number, (_, text, one) in enumerate(self.configurations):
            first = 1 + number * self.repeats
            mine = launches[first : first + self.repeats]
            found += fft.measurements(job, mine, one, versions=versions, own=self.own_hash(text))
        return found

    def bytes_written(self):
        return max(one.most_bytes for _, _, one in self.configurations)
