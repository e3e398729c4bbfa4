"""HoreKa, KIT: BeeOND by constraint, with a folder for each stripe count; GPFS; a node's own disk.

Written from public documentation, never run there by us. Sources, read 2026-11-21:
  [1] https://www.nhr.kit.edu/userdocs/horeka/batch_slurm_beeond/ (constraints BEEOND, BEEOND_4MDS, BEEOND_MAXMDS;
      mounted at /mnt/odfs/$SLURM_JOB_ID with folders stripe_1, stripe_default (4), stripe_4, _8, _16, _32; 750 GB a
      node; on fewer nodes than stripes a file has as many stripes as there are nodes)
  [2] https://www.nhr.kit.edu/userdocs/horeka/filesystems/ (workspaces and $HOME are IBM Spectrum Scale with quotas;
      $TMPDIR is on the node's own SSD)
  [3] https://www.nhr.kit.edu/userdocs/horeka/batch/ (Slurm; partition cpuonly for the nodes without GPUs; 1600 MB for
      a CPU)

Before the first night: `export IOGAUGE_WORKSPACE=$(ws_find NAME)` of a workspace, and IOGAUGE_ACCOUNT where there are
several projects.

Assumptions, for documentation does not say, or not in what we could read:
  - nodes have 76 cores and 152 hardware threads, which Slurm counts as CPUs; cpuonly gives whole nodes
  - modules compiler/gnu, mpi/openmpi, lib/hdf5 and devel/cmake in their default versions; srun starts this Open MPI
  - no quota command: the file system's name for mmlsquota is not known to us
"""

import common  # ReFrame finds it beside this file

# Two BeeONDs are on the nodes of two jobs, and in nobody's way.
beeond = {
    "type": "beeond",
    "request": ["--constraint=BEEOND"],
    "guard": {"mountpoint": "/mnt/odfs/$SLURM_JOB_ID"},
    "target": "beeond",
    "exclusive": False,
}

site_configuration = {
    "systems": [
        {
            "name": "horeka",
            "descr": "HoreKa, Karlsruhe Institute of Technology",
            "hostnames": [".*"],  # chosen by --site, not by a host's name
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "cpuonly",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "sched_options": {"use_nodes_option": True},
                    "access": [*common.account(), "--partition=cpuonly"],
                    "environs": ["default"],
                    "max_jobs": 100,
                    "extras": {
                        "file_systems": {
                            "beeond-1": {**beeond, "path": "/mnt/odfs/$SLURM_JOB_ID/stripe_1"},
                            "beeond": {**beeond, "path": "/mnt/odfs/$SLURM_JOB_ID/stripe_default"},
                            "beeond-16": {**beeond, "path": "/mnt/odfs/$SLURM_JOB_ID/stripe_16", "nodes": [16]},
                            "workspace": {"type": "gpfs", "path": "$IOGAUGE_WORKSPACE"},
                            "tmpdir": {"type": "local", "path": "$TMPDIR", "nodes": [1], "exclusive": False},
                        },
                        "nodes": [1, 2, 4, 8, 16],
                        "ranks_per_node": [19, 38, 76],
                        "nightly_points": [[1, 76], [4, 76]],
                        "cpus_per_node": 152,
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
            "modules": ["compiler/gnu", "mpi/openmpi", "lib/hdf5", "devel/cmake"],
            "cc": "mpicc",
            "cxx": "",
            "ftn": "",
        }
    ],
    "general": common.GENERAL,
    "logging": common.LOGGING,
}
