"""iogauge: I/O regression tests for HPC sites on ReFrame and Spack."""

__version__ = "0.1.0"
