"""A site's configuration to copy: every option, explained. docs/add-a-site.md leads through it.

It is ReFrame's configuration (https://reframe-hpc.readthedocs.io/en/stable/config_reference.html) with one thing
more: the partition's `extras`, which iogauge reads and checks. What is commented out there has the value shown when
it is left out.

Say in this place where the facts come from (address and date), and what is assumed.
"""

import common  # ReFrame finds it beside this file

# One real file system may stand here several times under different names, each with a layout of its own. `target` says that
# they are one, so that no two cases use it at once.
scratch = {
    # nfs, beeond (or another BeeGFS), lustre, gpfs, local (a node's disk), memory, other. The job refuses to write where
    # something else is mounted, so that an empty or mistaken path never fills the wrong file system.
    "type": "lustre",
    # Where tests work: a shell expression that is evaluated in the job. The folder must be there and writable; each case makes
    # one of its own in it, and removes it. Nothing else is touched.
    "path": "$SCRATCH",
    # What tells how much is left, in the login shell and in the job. Understood are lfs quota, beegfs-ctl --getquota,
    # mmlsquota and quota; any other command must print one number, the bytes left, or `unlimited`. Without it only the free
    # space is looked at.
    "quota": "lfs quota -u $USER /scratch",
    # What this and other entries share. Left out: the entry is a file system of its own.
    "target": "scratch",
    # Days on which there usually is maintenance, of the month, of the week, or both: a slow night that begins on one of them
    # is no surprise (docs/detection.md). Left out: none.
    "maintenance": {"days_of_month": [1], "weekdays": ["Tuesday"]},
}

site_configuration = {
    "systems": [
        {
            "name": "template",  # as this file's name: bands are in reference_values/NAME.yaml
            "descr": "a site to copy",
            "hostnames": [".*"],  # chosen by --site, not by a host's name
            "modules_system": "lmod",  # or envmod (Environment Modules from 4.1 on), spack, nomod
            "partitions": [
                {
                    "name": "compute",
                    # slurm (needs sacct), squeue (without accounting), pbs, lsf, flux, sge, oar, local
                    "scheduler": "slurm",
                    # srun, mpirun, mpirun-openmpi, mpirun-intelmpi, mpiexec, alps, ibrun, lrun, local
                    "launcher": "srun",
                    # Slurm: say the number of nodes too, or it may take more.
                    "sched_options": {"use_nodes_option": True},
                    # Options of every job. account() takes IOGAUGE_ACCOUNT: no project is written into a configuration.
                    # Whole nodes: another job on them would be measured too.
                    "access": [*common.account(required=False), "--partition=compute", "--exclusive"],
                    "environs": ["default"],
                    # Environment of every job, as pairs.
                    "env_vars": [["OMP_NUM_THREADS", "1"]],
                    # Jobs submitted at once. With a scheduler other than Slurm 1, so that no two tests meet on a file system.
                    "max_jobs": 100,
                    "extras": {
                        # Any number of them, several of one type. Names are part of what a series is called: keep them.
                        "file_systems": {
                            # Lustre as the site has set it; the layout is read back and recorded all the same.
                            "scratch": scratch,
                            # Lustre with stripes: a count (-1: all targets), a size (K, M, G; a multiple of 64K), a pool.
                            # A file that lies otherwise makes the case invalid.
                            "scratch-8": {
                                **scratch,
                                "layout": {"stripe_count": 8, "stripe_size": "1M", "pool": "flash"},
                            },
                            # Lustre with a progressive layout; mdt: on the metadata target.
                            "scratch-pfl": {
                                **scratch,
                                "layout": {
                                    "components": [
                                        {"end": "64K", "mdt": True},
                                        {"end": "1G", "stripe_count": 1, "stripe_size": "1M"},
                                        {"end": "EOF", "stripe_count": -1, "stripe_size": "4M"},
                                    ]
                                },
                            },
                            # Made for the job and gone with it: the request goes into the job script.
                            "beeond": {
                                "type": "beeond",
                                "path": "$BEEOND",
                                "request": ["--beeond"],
                                "layout": {"targets": 4, "chunk_size": "512K"},
                                # What the job makes sure of besides path, space and quota: a mount point, and the types that
                                # are right, instead of those that follow from `type`; none at all: any.
                                "guard": {"mountpoint": "$BEEOND", "mounted_as": ["beegfs", "beegfs_nodev"]},
                                # On the job's own nodes two are in nobody's way. Left out: no two cases on it at once.
                                "exclusive": False,
                            },
                            # A node's own disk narrows the axes below to what can use it.
                            "tmp": {
                                "type": "local",
                                "path": "$TMPDIR",
                                "nodes": [1],
                                "ranks_per_node": [12, 24, 48],
                                # Commands run in the case's own folder, before anything is written there.
                                "prepare": ["chmod 700 ."],
                                "exclusive": False,
                                # "nightly": False,  # only in the suite full
                            },
                        },
                        # The axes. A point is a number of nodes with a number of ranks on each.
                        "nodes": [1, 2, 4, 8, 16],
                        "ranks_per_node": [12, 24, 48],
                        # Where all patterns are tried. Left out: at the smallest and at the largest point. At the other
                        # points only the few patterns that stand for their kernel in scaling are tried (suite full).
                        "points": [[1, 48], [16, 48]],
                        # Where the nightly suite runs. Left out: at those points.
                        "nightly_points": [[1, 48], [4, 48]],
                        # As the scheduler counts CPUs (hardware threads, where they are on): each rank is given its share.
                        # Left out: one.
                        "cpus_per_node": 96,
                        # Options of the launcher; {nodes}, {ranks}, {ranks_per_node} and {cpus_per_rank} are replaced.
                        "launcher_options": ["--cpu-bind=cores"],
                        # "oversubscribe": False,  # True: ranks may share cores, which is invalid otherwise
                        # "portable_bands": True,  # False: ratios are shown and not judged
                        # A job that has not begun by then is cancelled: nodes that are down do not hold the night.
                        # "max_pending_time": "12h",
                        # "checks": ["particles.py", "ior.py"],  # nights look at no others
                        # "netcdf": False,  # True: there is a parallel netCDF-4 for the same MPI and HDF5
                        # Sizes: kernel to variable to value; `-S` on the command line wins. Left out, the checks' own, which
                        # are a laptop's. All kernels have repeats, warmup and time_limit (of the job).
                        "options": {
                            **common.CLUSTER_OPTIONS,
                            # A rank's particles in a step (32 bytes each), part of them in a partial read, alignment in bytes.
                            "particles": {
                                "particles": 1 << 20,
                                "steps": 4,
                                "fraction": 0.5,
                                "alignment": 4096,
                                "repeats": 5,
                                "warmup": 1,
                                "time_limit": "30m",
                            },
                            # blocks, metadata, particles, segments, tiles: with_baselines (False: the case alone, without the
                            # same through MPI-IO and POSIX beside it: a third of the time, and no ratios).
                            # Others: blocks: size. formats: arrays, rows, columns, chunk_rows, chunk_columns,
                            # compression_level. metadata: objects. segments: segments, block_bytes, transfer_bytes,
                            # alignment; beside h5perf_serial: program, rounds. tiles: steps, arrays, rows, columns.
                            # Upstream benchmarks have program and launch_seconds, and ior, h5perf: block_bytes,
                            # transfer_bytes; hdf5_iotest: steps, arrays, rows, columns; benchio: size; h5bench: particles,
                            # steps, compute, metadata_steps, e3sm_map, plugin_path (of its async connector); fft: python,
                            # datasets. upgrade (iogauge compare): mebibytes, margin, time_limit_minutes.
                        },
                    },
                }
            ],
        }
    ],
    # Compiler wrapper of the MPI library whose HDF5 is tested, and the modules that bring both, CMake too. Features that an
    # HDF5 may have: hdf5-subfiling, hdf5-async.
    "environments": [
        {
            "name": "default",
            "modules": ["gcc", "openmpi", "hdf5", "cmake"],
            "features": [],
            # Darshan's library, built for this MPI and HDF5, as a shell expression evaluated in the job: cases then run
            # under Darshan (docs/darshan.md), unless -S darshan=0. "linked": kernels are linked with it, through the
            # darshan-config of the build's PATH; for statically linked ones. Left out: without Darshan.
            # "darshan_serial" is the same for Python: a runtime without MPI, for a serial HDF5.
            # "extras": {"darshan": "$DARSHAN_RUNTIME_DIR/lib/libdarshan.so"},
            # Another HDF5 or MPI to compare with (docs/upgrade-hdf5.md) is one environment more, with the feature "arm":
            # nightly suites leave it out. "hdf5" is the version that its programs have to load, "launcher" what starts them
            # where it is not the partition's: "extras": {"hdf5": "1.14.6", "launcher": "mpirun.mpich"}.
            # Where upstream benchmarks are, by kernel: "extras": {"programs": {"ior": "/sw/ior/bin"}}.
            # Kernels, upstream benchmarks and Darshan from an arm of a Spack stack (docs/spack.md), instead of the CMake
            # build, PATH and "darshan": "extras": {"spack": {"stack": "hdf5", "arm": "hdf5-1.14"}}. One environment for each
            # arm; ReFrame allows no dot in its name.
            # Kernels that are installed already (cmake --install), for a site whose nights are not to build them:
            # "extras": {"kernels": "/sw/iogauge/bin"}.
            "cc": "mpicc",
            "cxx": "",
            "ftn": "",
        }
    ],
    # {**common.GENERAL[0], "use_login_shell": True} where jobs have no `module` otherwise.
    "general": common.GENERAL,
    "logging": common.LOGGING,
}
