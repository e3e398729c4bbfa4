"""The mini-cluster of scripts/minicluster: a real Slurm with four nodes on one machine, to try everything out on.

Two partitions over one shared file system: ReFrame's slurm backend with srun, and squeue with mpirun, whose series are of
arm ``@whole``. All nodes share this machine's cores, so that
rates say little here; what is true here is everything else.
"""

import os
from pathlib import Path

import common  # ReFrame finds it beside this file

# Where scripts/minicluster has it; `scripts/minicluster run` says it, should it be elsewhere.
cluster = Path(os.environ.get("MINICLUSTER_FOLDER") or common.HOME / "minicluster")
os.environ["SLURM_CONF"] = str(cluster / "etc" / "slurm.conf")

environment = [
    # Ranks of several nodes share the machine's cores: those that wait must let the others run.
    ["OMPI_MCA_mpi_yield_when_idle", "1"],
    # On GlusterFS (FUSE) Open MPI's own MPI-IO has been seen to hang; ROMIO has not.
    ["OMPI_MCA_io", "romio321"],
    ["OMPI_MCA_btl_vader_single_copy_mechanism", "none"],
]
if os.geteuid() == 0:
    environment += [["OMPI_ALLOW_RUN_AS_ROOT", "1"], ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"]]

# What --beeond makes: a GlusterFS over the job's nodes, or, where that cannot be had, a folder mounted on them.
made_as = cluster / "minicluster.env"
gluster = not made_as.exists() or "MINICLUSTER_BEEOND=gluster" in made_as.read_text().splitlines()
beeond = {"type": "beeond" if gluster else "other", "path": "$BEEOND", "request": ["--beeond"]}

shared = {"type": "local", "path": str(cluster / "fs" / "shared")}
small = {"type": "local", "path": str(cluster / "fs" / "small")}

# Small, and few repeats: the night is to end in minutes on two cores.
FEW = {"repeats": 2, "warmup": 0}
SIZES = {
    "blocks": {"size": "16x16x16", **FEW},
    "formats": {"arrays": 4, **FEW},
    "metadata": {"objects": 10, **FEW},
    "particles": {"particles": 1 << 13, **FEW},
    "segments": {"block_bytes": 1 << 20, "transfer_bytes": 1 << 18, "rounds": 1, **FEW},
    "tiles": {"arrays": 2, "rows": 64, "columns": 64, **FEW},
    "upgrade": {"mebibytes": 1},
}

site_configuration = {
    "systems": [
        {
            "name": "minicluster",
            "descr": "four nodes on one machine, by scripts/minicluster",
            "hostnames": [".*"],
            "modules_system": "nomod",
            "partitions": [
                {
                    "name": "batch",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "access": ["--partition=batch"],
                    "environs": ["default"],
                    "env_vars": environment,
                    "max_jobs": 100,
                    "sched_options": {"use_nodes_option": True},
                    "extras": {
                        "file_systems": {
                            "shared": shared,
                            "beeond": beeond,
                            "node": {"type": "local", "path": str(cluster / "fs" / "node"), "nodes": [1]},
                            "small": {**small, "nodes": [1], "nightly": False},
                        },
                        "nodes": [1, 2, 4],
                        "ranks_per_node": [1, 2],
                        "points": [[1, 2], [2, 1]],
                        "nightly_points": [[1, 2], [2, 2], [4, 2]],
                        "options": SIZES,
                        "portable_bands": False,  # so small files, on nodes that share two cores
                    },
                },
                {
                    "name": "whole",
                    "scheduler": "squeue",
                    "launcher": "mpirun",
                    "access": ["--partition=whole"],
                    "environs": ["default"],
                    "env_vars": environment,
                    "max_jobs": 100,
                    "extras": {
                        "file_systems": {"shared": shared},
                        "nodes": [2],
                        "ranks_per_node": [2],
                        "options": SIZES,
                        "portable_bands": False,  # so small files, on nodes that share two cores
                    },
                },
            ],
        }
    ],
    "environments": [
        {
            "name": "default",
            "cc": "mpicc",
            "cxx": "",
            "ftn": "",
            "target_systems": ["minicluster"],
            "extras": {**common.darshan(), **common.kernels()},
        }
    ],
    "general": [{**common.GENERAL[0], "poll_rate_min": 10}],
    "logging": common.LOGGING,
}
