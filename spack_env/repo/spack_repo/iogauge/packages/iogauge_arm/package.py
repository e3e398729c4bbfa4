"""One arm of a comparison: the kernels and what goes with them, all against one and the same HDF5 and MPI."""

from spack.package import *
from spack_repo.builtin.build_systems.bundle import BundlePackage


class IogaugeArm(BundlePackage):
    """The project's kernels and a Darshan runtime on one HDF5; with the asynchronous VOL if asked for.

    One package, so that Spack's solver gives all of it one HDF5 and one MPI, and is asked once for an arm."""

    version("1")

    variant("async", default=False, description="With the asynchronous VOL connector, which needs a threadsafe HDF5")

    depends_on("hdf5@1.10:+mpi+shared", type="run")
    depends_on("iogauge-kernels+hdf5", type="run")
    depends_on("darshan-runtime+mpi+hdf5", type="run")
    depends_on("hdf5~threadsafe", type="run", when="~async")
    depends_on("hdf5-vol-async", type="run", when="+async")
