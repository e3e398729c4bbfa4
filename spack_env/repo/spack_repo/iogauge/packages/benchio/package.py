"""benchio, for which the upstream repository has no recipe."""

from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Benchio(Package):
    """Parallel write benchmark of a 3-D array in blocks with halos: serial, MPI-IO, HDF5 and netCDF."""

    homepage = "https://github.com/davidhenty/benchio"
    git = "https://github.com/davidhenty/benchio.git"

    # Upstream has no releases.
    version("2025-11-25", commit="0c682b6a71bef5a29abb9b8f104604314696d013")

    variant("netcdf", default=False, description="Build the netCDF layer")

    depends_on("fortran", type="build")
    depends_on("mpi")
    # Shared, or a preloaded Darshan sees no HDF5.
    depends_on("hdf5+mpi+fortran+shared")
    depends_on("netcdf-fortran", when="+netcdf")
    depends_on("netcdf-c+mpi", when="+netcdf")

    def sources(self):
        """Each file after the modules that it uses. ADIOS2 is left out: it measures no HDF5, and takes long to build."""
        netcdf = ["netcdf.f90"] if self.spec.satisfies("+netcdf") else []
        return ["benchutil.f90", "mpiio.f90", "serial.f90", *netcdf, "hdf5.f90", "benchio.f90"]

    def patch(self):
        left_out = {"adios": "adioswrite"}
        if not self.spec.satisfies("+netcdf"):
            left_out["ionetcdf"] = "netcdfwrite"
        for module, call in left_out.items():
            filter_file(rf"^\s*use {module}\s*$", "", "benchio.f90")
            filter_file(rf"call {call}\(.*", f'stop "benchio was built without {call}"', "benchio.f90")

    def install(self, spec, prefix):
        compiler = Executable(spec["mpi"].mpifc)
        flags = ["-O3", f"-I{spec['hdf5'].prefix.include}", f"-I{spec['hdf5'].prefix.mod}"]
        libraries = spec["hdf5:fortran"].libs.ld_flags.split()
        if spec.satisfies("+netcdf"):
            flags.append(f"-I{spec['netcdf-fortran'].prefix.include}")
            libraries = spec["netcdf-fortran"].libs.ld_flags.split() + libraries
        compiler(*flags, "-o", "benchio", *self.sources(), *libraries)
        mkdirp(prefix.bin)
        install("benchio", prefix.bin)
