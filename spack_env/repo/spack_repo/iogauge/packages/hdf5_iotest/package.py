"""hdf5_iotest, for which the upstream repository has no recipe."""

from spack.package import *
from spack_repo.builtin.build_systems.autotools import AutotoolsPackage


class Hdf5Iotest(AutotoolsPackage):
    """I/O performance test of HDF5: 2-D tiles of array variables over steps, in all layouts."""

    homepage = "https://github.com/HDFGroup/hdf5-iotest"
    git = "https://github.com/HDFGroup/hdf5-iotest.git"

    license("BSD-3-Clause")

    # Upstream has no releases; configure.ac calls itself 0.1.0, the date is the commit's.
    version("0.1.0-2024-12-23", commit="179b5af9ce8bf2212c718141650f12141da929d7")

    depends_on("c", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("m4", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("uuid")
    # Shared, or a preloaded Darshan sees no HDF5.
    depends_on("hdf5+mpi+shared")

    def configure_args(self):
        # configure does not look for HDF5. Its calls stand in assert(): NDEBUG would make a program that does nothing.
        hdf5 = self.spec["hdf5"]
        return [
            f"CC={self.spec['mpi'].mpicc}",
            f"CPPFLAGS=-I{hdf5.prefix.include} -UNDEBUG",
            f"LDFLAGS={hdf5.libs.search_flags}",
            "LIBS=-lhdf5 -lm",
        ]
