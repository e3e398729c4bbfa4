"""The demonstration's site: a storage in memory with a pace of its own, which scripts/demo slows (docs/demo.md)."""

import os

import common  # ReFrame finds it beside this file

memory, library, kernels = (os.environ.get(f"IOGAUGE_DEMO_{name}", "") for name in ("MEMORY", "LIBRARY", "KERNELS"))

# What makes the storage slow is in the job's environment, the same in each night but for the slowdown; nothing else of a
# night knows of it.
storage = [
    ["LD_PRELOAD", library],
    ["SLOW_STORAGE_FOLDER", memory],
    ["SLOW_STORAGE_MIB_S", os.environ.get("IOGAUGE_DEMO_MIB_S", "")],
    ["SLOW_STORAGE_SLOWDOWN", os.environ.get("IOGAUGE_DEMO_SLOWDOWN", "")],
]

# Open MPI need not look for networks: all ranks are here. Two cases run at a time: ranks that wait let the others' run.
ONE_NODE = [["OMPI_MCA_pml", "ob1"], ["OMPI_MCA_btl", "self,vader"], ["OMPI_MCA_mpi_yield_when_idle", "1"]]

site_configuration = {
    "systems": [
        {
            "name": "demo",
            "descr": "a storage in memory, as slow as it is told to be",
            "hostnames": [".*"],
            "modules_system": "nomod",
            "partitions": [
                {
                    "name": "default",
                    "scheduler": "local",
                    "launcher": "mpirun",
                    "environs": ["default"],
                    "max_jobs": 2,
                    "env_vars": [*common.OPEN_MPI, *ONE_NODE, *storage],
                    "extras": {
                        "file_systems": {"memory": {"type": "memory", "path": memory or "/dev/shm"}},
                        "nodes": [1],
                        "ranks_per_node": [min(2, len(os.sched_getaffinity(0)))],
                        "checks": ["segments.py"],
                        "portable_bands": False,  # they are of memory with its own pace
                        "options": {
                            "segments": {
                                "block_bytes": 4 << 20,
                                "transfer_bytes": 4 << 20,
                                "repeats": 3,
                                "warmup": 0,
                                "with_baselines": False,
                            },
                        },
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
            "target_systems": ["demo"],
            "extras": {"kernels": kernels} if kernels else {},
        }
    ],
    "general": [{**common.GENERAL[0], "poll_rate_min": 10}],
    "logging": common.LOGGING,
}
