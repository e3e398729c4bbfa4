"""mdtest's pattern, and the like in HDF5: many directories and files, or groups, datasets and attributes."""

from reframe.core.builtins import parameter, variable

from iogauge.quota import in_units

from .mixins.axes import site_test
from .mixins.kernel import KernelCheck

FILE_SYSTEM = ("dir-create", "dir-stat", "dir-list", "dir-rename", "dir-remove",
               "file-create", "file-stat", "file-open", "file-close", "file-list", "file-rename", "file-remove")  # fmt: skip
OBJECTS = ("group-create", "group-open", "group-iterate", "dataset-create", "dataset-open", "dataset-iterate",
           "attribute-create", "attribute-read", "attribute-iterate")  # fmt: skip

#: Where the objects are: the options that are not the default. The bytes are those of IO500's mdtest-hard.
PLACES = {
    "shared": {},
    "private": {"directory": "private"},
    "shared-with-bytes": {"bytes": 3901},
    "private-tree": {"directory": "private", "depth": 2, "branch": 4, "leaves": True},
    "hdf5-shared": {},
    "hdf5-private": {"directory": "private"},
    "hdf5-collective-metadata": {"collective_metadata": True},
    "hdf5-file-per-process": {"file_per_process": True},
    "hdf5-latest": {"libver": "latest"},
}

NIGHTLY = {"shared", "hdf5-shared"}
SCALING = {"shared"}


@site_test
class MetadataCheck(KernelCheck):
    """Shared and private places; what is not the default is compared with the default in the same job."""

    kernel = "metadata"
    nightly = NIGHTLY
    scaling = SCALING
    leaves_a_file = False
    darshan_without = ("H5D",)  # a record an object and rank would be too many
    place = parameter(list(PLACES), type=str, loggable=True)

    objects = variable(int, value=200)  # a rank's, of each kind

    @property
    def darshan_records(self):
        """Files of a rank, by both their names, and those that it looks at, of the case and its baseline, warming up too."""
        return 16 * self.objects

    @property
    def interface(self):
        return "hdf5" if self.place.startswith("hdf5") else "posix"

    @property
    def operations(self):
        if self.interface == "hdf5":
            return OBJECTS
        return (*FILE_SYSTEM, "file-read") if self.pattern()["bytes"] else FILE_SYSTEM

    def pattern(self):
        default = {
            "directory": "shared",
            "depth": 0,
            "branch": 1,
            "leaves": False,
            "bytes": 0,
            "file_per_process": False,
            "collective_metadata": False,
            "libver": "earliest",
        }
        return default | PLACES[self.place]

    def pattern_options(self):
        words = {
            name: ("no", "yes")[value] if isinstance(value, bool) else value for name, value in self.pattern().items()
        }
        return {"objects": self.objects} | {name.replace("_", "-"): word for name, word in words.items()}

    def baselines(self):
        against = {
            "directory": "directory=shared",
            "collective_metadata": "collective-metadata=no",
            "file_per_process": "file-per-process=no",
            "libver": "libver=earliest",
        }
        return [against[name] for name in PLACES[self.place] if name in against]

    def bytes_written(self):
        # A block of the file system, a directory, or what HDF5 needs for an object, is 4 KiB at most.
        pattern = self.pattern()
        tree = sum(pattern["branch"] ** level for level in range(pattern["depth"] + 1))
        trees = self.num_tasks if pattern["directory"] == "private" else 1
        objects = self.objects * self.num_tasks * (pattern["bytes"] + (4 << 10))
        return objects + tree * trees * (4 << 10) + (1 << 20)

    def byte_terms(self):
        return f"{self.objects} objects x {in_units(self.pattern()['bytes'] + (4 << 10))}"
