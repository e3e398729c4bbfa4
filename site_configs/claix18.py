"""CLAIX-2018, RWTH Aachen University, with the axes and the volume of the study of HDF5 on its file systems.

Written from public documentation, never run there by us. Sources, read 2026-11-21:
  [1] https://help.itc.rwth-aachen.de/service/rhr4fjjutttf/article/da307ec2c60940b29bd42ac483fc3ea7/ (file systems:
      $HOME, 150 GB, and $WORK, 250 GB, are NFS; $HPCWORK is Lustre, 1 TB and 50,000 files; $BEEOND is made for a job
      of its nodes' disks, at most 400 GB a node)
  [2] a job script of h5bench for CLAIX, public on GitHub: `#SBATCH --beeond`, `--nodes`, `--ntasks-per-node`,
      `--mem-per-cpu=3900M`, $BEEOND, `module load HDF5`
  [3] the study (of which we know no public page): 1 to 16 nodes of 48 cores, 6 to 48 ranks a node, HDF5 1.14.0, 5
      steps of 4,194,304 particles a rank, three runs not in a row of which the best counts; cases with 384 and 768
      ranks were lost to the quota of 250 GB

Assumptions, for documentation does not say:
  - the partition's name c18m, as users' scripts have it; $MPIEXEC of the site is srun
  - HDF5 1.14.0 is the module that goes with EasyBuild's toolchain iimpi/2023a, and CMake/3.26.3 is in the same tree
  - whole nodes (--exclusive), so that no other job shares disks and network; the study's scripts do not ask for them
  - a login shell, so that `module` is there for bash, which is not the site's default shell
  - `quota -w -f` and `lfs quota -u` tell what is left; [1] calls the quotas those of trees
  - a job may take four hours: 480 GiB a pass, on 768 ranks, through three interfaces

Three runs not in a row are here three ``repeats`` in one job: HDF5, MPI-IO and POSIX take turns, so that no two runs
of one are neighbours, and without a warm-up, for the best of the three counts anyway, as a band does.
"""

import common  # ReFrame finds it beside this file

site_configuration = {
    "systems": [
        {
            "name": "claix18",
            "descr": "CLAIX-2018, RWTH Aachen University",
            "hostnames": [".*"],  # chosen by --site, not by a host's name
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "c18m",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "sched_options": {"use_nodes_option": True},
                    # Without an account jobs are the user's own.
                    "access": [*common.account(), "--partition=c18m", "--exclusive", "--mem-per-cpu=3900M"],
                    "environs": ["default"],
                    "max_jobs": 100,
                    "extras": {
                        "file_systems": {
                            "home": {"type": "nfs", "path": "$HOME", "quota": "quota -w -f $HOME"},
                            "work": {"type": "nfs", "path": "$WORK", "quota": "quota -w -f $WORK"},
                            "hpcwork": {
                                "type": "lustre",
                                "path": "$HPCWORK",
                                "quota": "lfs quota -u $USER $HPCWORK",
                            },
                            # On the job's own nodes: two of them are in nobody's way.
                            "beeond": {
                                "type": "beeond",
                                "path": "$BEEOND",
                                "request": ["--beeond"],
                                "exclusive": False,
                            },
                        },
                        "nodes": [1, 2, 4, 8, 16],
                        "ranks_per_node": [6, 12, 16, 24, 32, 48],
                        "points": [[1, 48], [16, 48]],
                        "nightly_points": [[1, 48], [4, 48]],
                        "launcher_options": ["--cpu-bind=cores"],
                        "options": {
                            **common.CLUSTER_OPTIONS,
                            "particles": {
                                "particles": 4194304,
                                "steps": 5,
                                "repeats": 3,
                                "warmup": 0,
                                "time_limit": "4h",
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
            "modules": ["iimpi/2023a", "HDF5/1.14.0", "CMake/3.26.3"],
            "cc": "mpiicc",
            "cxx": "",
            "ftn": "",
        }
    ],
    "general": [{**common.GENERAL[0], "use_login_shell": True}],
    "logging": common.LOGGING,
}
