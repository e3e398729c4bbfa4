"""Upstream's Darshan runtime, built by the MPI's own compiler wrapper."""

from spack.package import *
from spack_repo.builtin.packages.darshan_runtime.package import DarshanRuntime as UpstreamDarshanRuntime


class DarshanRuntime(UpstreamDarshanRuntime):
    """Upstream gives configure the plain compiler and finds mpi.h in the MPI's prefix only. Where it lies elsewhere, as on
    Debian or Cray, Darshan is then configured without MPI, and a parallel HDF5 is refused."""

    def configure_args(self):
        compiler = [f"CC={self.spec['mpi'].mpicc}"] if self.spec.satisfies("+mpi") else []
        return [*super().configure_args(), *compiler]
