"""Upstream's h5bench, whose openPMD programs start."""

from spack.package import *
from spack_repo.builtin.packages.h5bench.package import H5bench as UpstreamH5bench


class H5bench(UpstreamH5bench):
    """h5bench builds openPMD's library for its two programs, and never installs it: they take it up statically."""

    def cmake_args(self):
        return [*super().cmake_args(), self.define("openPMD_BUILD_SHARED_LIBS", False)]
