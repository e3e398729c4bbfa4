"""Perlmutter, NERSC: one Lustre with several layouts, from the site's default over stripes to a progressive layout.

Written from public documentation, never run there by us. Sources, read 2026-11-21:
  [1] https://docs.nersc.gov/filesystems/perlmutter-scratch/ ($PSCRATCH; all flash; 298 OSTs; one OST by default; an
      earlier state of the page: a progressive layout of 1 OST to 1 GB, 8 to 10 GB, 24 to 100 GB, then 72)
  [2] https://docs.nersc.gov/performance/io/lustre/ (stripe_small, stripe_medium and stripe_large: 8, 24 and 72 OSTs
      with stripes of 1 MB, for files up to 10 GB, to 100 GB and beyond; no more than 128)
  [3] users' job scripts on GitHub that cite https://docs.nersc.gov/systems/perlmutter/running-jobs/ and
      https://docs.nersc.gov/jobs/affinity/ (--constraint=cpu, --qos, an account; 128 cores of two hardware threads a
      node; --cpus-per-task=2*128/ranks with --cpu-bind=cores); the pages themselves could not be read

Before the first night: `export IOGAUGE_ACCOUNT=PROJECT`.

Assumptions, for documentation does not say, or not in what we could read:
  - MB and GB of [1] and [2] are the powers of 1024 that lfs takes
  - modules PrgEnv-gnu, cray-hdf5-parallel and cmake in their default versions; `cc` is the wrapper that finds MPI and
    HDF5
  - `lfs quota` on /pscratch tells the quota that counts
"""

import common  # ReFrame finds it beside this file

scratch = {
    "type": "lustre",
    "path": "$PSCRATCH",
    "quota": "lfs quota -u $USER /pscratch",
    "target": "pscratch",
}

site_configuration = {
    "systems": [
        {
            "name": "perlmutter",
            "descr": "Perlmutter, NERSC",
            "hostnames": [".*"],  # chosen by --site, not by a host's name
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "cpu",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "sched_options": {"use_nodes_option": True},
                    "access": [*common.account(required=True), "--constraint=cpu", "--qos=regular"],
                    "environs": ["default"],
                    "max_jobs": 100,
                    "extras": {
                        "file_systems": {
                            "scratch": scratch,  # the site's default, read back and recorded
                            "scratch-small": {**scratch, "layout": {"stripe_count": 8, "stripe_size": "1M"}},
                            "scratch-large": {**scratch, "layout": {"stripe_count": 72, "stripe_size": "1M"}},
                            "scratch-pfl": {
                                **scratch,
                                "layout": {
                                    "components": [
                                        {"end": "1G", "stripe_count": 1},
                                        {"end": "10G", "stripe_count": 8},
                                        {"end": "100G", "stripe_count": 24},
                                        {"end": "EOF", "stripe_count": 72},
                                    ]
                                },
                            },
                        },
                        "nodes": [1, 2, 4, 8, 16],
                        "ranks_per_node": [32, 64, 128],
                        "nightly_points": [[1, 128], [4, 128]],
                        "cpus_per_node": 256,
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
            "modules": ["PrgEnv-gnu", "cray-hdf5-parallel", "cmake"],
            "cc": "cc",
            "cxx": "",
            "ftn": "",
        }
    ],
    "general": common.GENERAL,
    "logging": common.LOGGING,
}
