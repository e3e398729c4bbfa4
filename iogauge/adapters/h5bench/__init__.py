"""h5bench: its suite's JSON, the configurations of every kind, and what they print; a module a kind.

Pure functions of texts: :func:`read_json` and :func:`check_benchmark` give a :class:`Benchmark`, whose ``measurements`` are
recomputed from bytes and seconds, or refused.
"""

from iogauge.adapters.h5bench.benchmark import Announced, Benchmark
from iogauge.adapters.h5bench.patterns import (
    PARTICLE_BYTES,
    RANK_0_OPTIONS,
    Configuration,
    check_configuration,
    measurement,
    read_csv,
    read_stdout,
)
from iogauge.adapters.h5bench.runner import Run, read_folder, read_log
from iogauge.adapters.h5bench.suite import KINDS, REFUSED_KINDS, Suite, async_environment, check_benchmark, read_json

__all__ = [
    "KINDS",
    "PARTICLE_BYTES",
    "RANK_0_OPTIONS",
    "REFUSED_KINDS",
    "Announced",
    "Benchmark",
    "Configuration",
    "Run",
    "Suite",
    "async_environment",
    "check_benchmark",
    "check_configuration",
    "measurement",
    "read_csv",
    "read_folder",
    "read_json",
    "read_log",
    "read_stdout",
]
