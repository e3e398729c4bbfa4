"""Derecho, NCAR: PBS Pro and mpiexec instead of Slurm and srun; Lustre with a progressive layout by default, and
GPFS.

Written from public documentation, never run there by us. Source, read 2026-11-21: https://github.com/NCAR/HPC-Docs at
commit b4f71ff435a9848d4bac3ef352dc549d9bdef3db, below docs/:
  [1] pbs/job-scripts/index.md (-A, -q main, -l select=NODES:ncpus=128:mpiprocs=RANKS, mpiexec -n RANKS -ppn
      RANKS_PER_NODE)
  [2] pbs/charging.md (queue main: whole nodes, always with ncpus=128)
  [3] pbs/job-scripts/derecho-job-script-examples-content.md (mpiexec --cpu-bind depth -n 64 -ppn 32 -d 4)
  [4] compute-systems/derecho/index.md (128 cores a node), derecho-modules-list.md (the modules and their versions)
  [5] storage-systems/glade/lustre.md (scratch: 96 OSTs; by default 1 stripe of 1 MB to 16 MB, 4 of 16 MB to 16 GB, 12
      to 64 GB, then 24), storage-systems/glade/index.md (paths and quotas; GLADE is Spectrum Scale and Lustre)

Before the first night: `export IOGAUGE_ACCOUNT=PROJECT_CODE`.

Assumptions, for documentation does not say:
  - of GLADE's spaces scratch is Lustre; that home and work are the ones on Spectrum Scale (GPFS) follows from [5]
  - hdf5-mpi goes with gcc as it does with intel in [4]
  - `lfs quota -u` tells the quota that counts ([5] prefers gladequota, whose table has one row of several for it)

PBS has nothing like Slurm's singleton: one job at a time (max_jobs), so that no two tests meet on a file system.
"""

import common  # ReFrame finds it beside this file

scratch = {
    "type": "lustre",
    "path": "/glade/derecho/scratch/$USER",
    "quota": "lfs quota -u $USER /glade/derecho/scratch",
    "target": "scratch",
}

site_configuration = {
    "systems": [
        {
            "name": "derecho",
            "descr": "Derecho, NSF National Center for Atmospheric Research",
            "hostnames": [".*"],  # chosen by --site, not by a host's name
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "main",
                    "scheduler": "pbs",
                    "launcher": "mpiexec",
                    "access": [*common.account("-A ", required=True), "-q main"],
                    "environs": ["default"],
                    "max_jobs": 1,
                    "extras": {
                        "file_systems": {
                            "scratch": scratch,  # the site's progressive layout, read back and recorded
                            "scratch-1": {**scratch, "layout": {"stripe_count": 1, "stripe_size": "1M"}},
                            "scratch-24": {**scratch, "layout": {"stripe_count": 24, "stripe_size": "16M"}},
                            "work": {"type": "gpfs", "path": "/glade/work/$USER"},
                            "home": {"type": "gpfs", "path": "/glade/u/home/$USER", "nodes": [1]},
                        },
                        "nodes": [1, 2, 4, 8, 16],
                        "ranks_per_node": [32, 64, 128],
                        "nightly_points": [[1, 128], [4, 128]],
                        "cpus_per_node": 128,
                        "launcher_options": ["-ppn {ranks_per_node}", "--cpu-bind depth", "-d {cpus_per_rank}"],
                        "options": common.CLUSTER_OPTIONS,
                    },
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "default",
            "modules": ["ncarenv/24.12", "gcc/12.4.0", "cray-mpich/8.1.29", "hdf5-mpi/1.12.3", "cmake/3.26.6"],
            "cc": "mpicc",
            "cxx": "",
            "ftn": "",
        }
    ],
    "general": common.GENERAL,
    "logging": common.LOGGING,
}
