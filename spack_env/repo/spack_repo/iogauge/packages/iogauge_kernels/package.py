"""The project's own I/O kernels, as one commit of its repository has them."""

from spack.package import *
from spack_repo.builtin.build_systems.cmake import CMakePackage


class IogaugeKernels(CMakePackage):
    """I/O kernels (blocks, metadata, particles, segments, tiles) through POSIX, MPI-IO, HDF5 and netCDF-4, which verify
    their data, measure each phase and leave one JSON record an operation."""

    # Where the commits come from is not in the hash: scripts/spack-setup puts its own clone of the checkout in this place
    # (package_attributes), so that the address of nobody's clone is written down here.
    git = "file:///named/by/spack-setup"

    license("BSD-3-Clause")

    # Used as @git.COMMIT=0.1.0: one prefix for each commit. The version is that of kernels/CMakeLists.txt.
    version("0.1.0", branch="main")

    variant("hdf5", default=True, description="Build the HDF5 interface")
    variant("netcdf", default=False, when="+hdf5", description="Build the netCDF-4 interface")

    depends_on("c", type="build")
    depends_on("cmake@3.16:", type="build")
    depends_on("mpi")
    # Shared, or a preloaded Darshan sees no HDF5.
    depends_on("hdf5@1.10:+mpi+shared", when="+hdf5")
    depends_on("netcdf-c+mpi", when="+netcdf")
    depends_on("pkgconfig", type="build", when="+netcdf")

    root_cmakelists_dir = "kernels"

    def cmake_args(self):
        args = [
            self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc),
            self.define_from_variant("IOGAUGE_HDF5", "hdf5"),
            self.define("IOGAUGE_NETCDF", "ON" if self.spec.satisfies("+netcdf") else "OFF"),
            self.define("BUILD_TESTING", self.run_tests),
        ]
        if self.spec.satisfies("+hdf5"):
            args += [
                self.define("HDF5_ROOT", self.spec["hdf5"].prefix),
                self.define("HDF5_C_COMPILER_EXECUTABLE", self.spec["hdf5"].prefix.bin.h5pcc),
            ]
        if self.spec.satisfies("+netcdf"):
            args.append(self.define("NETCDF_ROOT", self.spec["netcdf-c"].prefix))
        return args
