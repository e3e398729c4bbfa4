"""The File Format Comparison's pattern: many arrays in HDF5, Zarr 3 and netCDF-4, by one Python process."""

import importlib.util
import json
import shlex
import sys
from pathlib import Path

from reframe.core.builtins import parameter, run_after, run_before, variable

from iogauge.darshan.preload import SERIAL_EXTRA, files_in_case_folder, hdf5_of_h5py

from .mixins.axes import CHECKOUT, site_test
from .mixins.darshan import OnceMore
from .mixins.file_system import CASE_FOLDER
from .mixins.kernel import RecordsCheck

#: Name in the kernel to the package that it needs; the first is the main case.
FORMATS = {"hdf5": "h5py", "zarr": "zarr", "netcdf": "netCDF4"}

#: How each array is stored: in one chunk or in several, compressed or not.
STORAGE = {
    "whole": {"chunked": False, "compress": "none"},
    "chunked": {"chunked": True, "compress": "none"},
    "whole-gzip": {"chunked": False, "compress": "gzip"},
    "chunked-gzip": {"chunked": True, "compress": "gzip"},
}

NIGHTLY = {"chunked"}


def available() -> list[str]:
    """The formats whose packages are installed for the Python that runs ReFrame; zarr 3 needs Python 3.11."""
    return [name for name, package in FORMATS.items() if importlib.util.find_spec(package)]


@site_test
class FormatsCheck(OnceMore, RecordsCheck):
    """Arrays created, written, opened and read in HDF5; the other formats beside it, in the same chunks, as baselines."""

    kernel = "formats"
    nightly = NIGHTLY
    serial = True
    darshan_extra = SERIAL_EXTRA
    darshan_program = "python"
    nodes = parameter([1], type=int, loggable=True)
    ranks_per_node = parameter([1], type=int, loggable=True)
    storage = parameter(list(STORAGE), type=str, loggable=True)
    operations = ("create", "write", "open", "read")

    arrays = variable(int, value=16)
    rows = variable(int, value=256)
    columns = variable(int, value=128)
    chunk_rows = variable(int, value=128)
    chunk_columns = variable(int, value=64)
    compression_level = variable(int, value=4)

    @run_after("setup")
    def need_packages(self):
        self.skip_if("hdf5" not in available(), f"{sys.executable} has no h5py: install iogauge[formats]")

    @property
    def elements(self):
        return [self.rows, self.columns]

    @property
    def chunk(self):
        return [self.chunk_rows, self.chunk_columns] if STORAGE[self.storage]["chunked"] else self.elements

    def pattern(self):
        return {"elements": self.elements, "chunk": self.chunk, "compress": STORAGE[self.storage]["compress"]}

    @run_before("run")
    def set_command(self):
        compress = STORAGE[self.storage]["compress"]
        sizes = {
            "FILE_NAME": "arrays",
            "NUMBER_DATASETS": self.arrays,
            "NUMBER_ELEMENTS": self.elements,
            "CHUNK_ELEMENTS": self.chunk,
            "COMPRESSION": compress,
        }
        if compress != "none":
            sizes["COMPRESSION_LEVEL"] = self.compression_level
        Path(self.stagedir, "formats.yaml").write_text(json.dumps(sizes), encoding="utf-8")  # JSON is YAML
        self.keep_files += ["formats.yaml"]
        self.executable = shlex.quote(sys.executable)
        self.executable_opts = self._options(CASE_FOLDER, available(), self.repeats, self.warmup, self.records_file)

    def _options(self, folder, formats, repeats, warmup, records):
        return [
            shlex.quote(str(CHECKOUT / "kernels" / "formats")),
            "--config formats.yaml",
            f'--dir "{folder}"',
            f"--formats {','.join(formats)}",
            f"--repeats {repeats}",
            f"--warmup {warmup}",
            f"--json {records}",
        ]

    def options_of(self, folder, repeats, warmup, records):
        # HDF5 alone: each of the packages brings an HDF5 of its own, and only one of them can be preloaded.
        return self._options(folder, [next(iter(FORMATS))], repeats, warmup, records)

    def darshan_libraries(self):
        return [hdf5_of_h5py()]

    def data_files(self):
        return files_in_case_folder(r"darshan/.*")

    def bytes_written(self):
        # One format is there at a time; a file of Zarr's takes a block at least, and the chunks at the edge are whole.
        rows, columns = self.chunk
        chunks = -(-self.rows // rows) * -(-self.columns // columns)
        return self.arrays * (chunks * (rows * columns * 4 + 4096) + 16384) + (1 << 20)
