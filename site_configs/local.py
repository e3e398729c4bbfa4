"""The embedded default site: this machine, ReFrame's local scheduler and mpirun. No Slurm, no Spack, no root."""

import os
import shutil
import subprocess
from pathlib import Path

import common  # ReFrame finds it beside this file

# The disk is whatever IOGAUGE_SCRATCH, else the checkout, lies on.
scratch = Path(os.environ.get("IOGAUGE_SCRATCH") or common.HOME / "scratch")
if "IOGAUGE_SCRATCH" not in os.environ:
    scratch.mkdir(parents=True, exist_ok=True)

cores = len(os.sched_getaffinity(0))

# Debian's parallel netCDF-4, built with Open MPI.
netcdf = (
    shutil.which("pkg-config") is not None and subprocess.run(["pkg-config", "--exists", "netcdf-mpi"]).returncode == 0
)

site_configuration = {
    "systems": [
        {
            "name": "local",
            "descr": "this machine",
            "hostnames": [".*"],
            "modules_system": "nomod",
            "partitions": [
                {
                    "name": "default",
                    "scheduler": "local",
                    "launcher": "mpirun",
                    "environs": ["default"],
                    "max_jobs": 1,
                    "env_vars": common.OPEN_MPI,
                    "extras": {
                        "file_systems": {
                            "disk": {"type": "other", "path": str(scratch)},
                            "memory": {"type": "memory", "path": "/dev/shm"},
                        },
                        "nodes": [1],
                        "ranks_per_node": [ranks for ranks in (1, 2) if ranks <= cores],
                        "netcdf": netcdf,
                    },
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "default",
            "cc": "mpicc",
            "cxx": "",
            "ftn": "",
            "target_systems": ["local"],
            "extras": {**common.darshan(), **common.kernels()},
        }
    ],
    # Cases take a second or two: look more often than ReFrame would, so that none waits for the next look.
    "general": [{**common.GENERAL[0], "poll_rate_min": 10}],
    "logging": common.LOGGING,
}
