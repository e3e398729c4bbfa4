"""JUWELS Cluster, Jülich Supercomputing Centre: GPFS from the storage cluster JUST.

Written from public documentation, never run there by us. Sources, read 2026-11-21:
  [1] https://apps.fz-juelich.de/jsc/hps/juwels/environment.html ($HOME, $PROJECT and $SCRATCH are parallel file
      systems on login and compute nodes; all but $HOME are there once `jutil env activate -p PROJECT` was called)
  [2] https://apps.fz-juelich.de/jsc/hps/just/filesystems.html (all of them are GPFS, shared by several clusters;
      blocks of 16 MB)
  [3] https://apps.fz-juelich.de/jsc/hps/juwels/batchsystem.html (Slurm; jobs are charged to a budget; srun starts
      ranks)

Before the first night, in the shell that starts it: `jutil env activate -p PROJECT` and `export
IOGAUGE_ACCOUNT=BUDGET`. Slurm takes the environment along, and with it $SCRATCH and $PROJECT.

Assumptions, for documentation does not say, or not in what we could read:
  - partition batch: whole nodes of 48 cores and 96 hardware threads, which Slurm counts as CPUs
  - modules GCC, ParaStationMPI, HDF5 and CMake of the default stage
  - no quota command: quotas are the project's, and told by jutil in a form of its own
"""

import common  # ReFrame finds it beside this file

site_configuration = {
    "systems": [
        {
            "name": "juwels",
            "descr": "JUWELS Cluster, Jülich Supercomputing Centre",
            "hostnames": [".*"],  # chosen by --site, not by a host's name
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "batch",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "sched_options": {"use_nodes_option": True},
                    "access": [*common.account(required=True), "--partition=batch"],
                    "environs": ["default"],
                    "max_jobs": 100,
                    "extras": {
                        "file_systems": {
                            "scratch": {"type": "gpfs", "path": "$SCRATCH"},
                            "project": {"type": "gpfs", "path": "$PROJECT"},
                            "home": {"type": "gpfs", "path": "$HOME", "nodes": [1]},
                        },
                        "nodes": [1, 2, 4, 8, 16],
                        "ranks_per_node": [12, 24, 48],
                        "nightly_points": [[1, 48], [4, 48]],
                        "cpus_per_node": 96,
                        "launcher_options": ["--cpu-bind=cores"],
                        "options": common.CLUSTER_OPTIONS,
                    },
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "default",
            "modules": ["GCC", "ParaStationMPI", "HDF5", "CMake"],
            "cc": "mpicc",
            "cxx": "",
            "ftn": "",
        }
    ],
    "general": common.GENERAL,
    "logging": common.LOGGING,
}
