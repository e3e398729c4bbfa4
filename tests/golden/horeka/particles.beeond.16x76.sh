#!/bin/bash
#SBATCH --job-name="rfm_ParticlesCheck_HASH"
#SBATCH --ntasks=1216
#SBATCH --ntasks-per-node=76
#SBATCH --cpus-per-task=2
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:30:0
#SBATCH --nodes=16
#SBATCH --account=PROJECT
#SBATCH --partition=cpuonly
#SBATCH --no-requeue
#SBATCH --constraint=BEEOND
module load compiler/gnu
module load mpi/openmpi
module load lib/hdf5
module load devel/cmake
. ./case_folder.sh
iogauge_case_folder --mountpoint "/mnt/odfs/$SLURM_JOB_ID" beeond "/mnt/odfs/$SLURM_JOB_ID/stripe_default" 163209969664 beegfs beegfs_nodev fuse.beegfs fuse.glusterfs
iogauge_layout beeond
srun --cpus-per-task=2 --cpu-bind=cores WORK/stage/horeka/cpuonly/default/KernelBuild_HASH/build/particles --dir "$IOGAUGE_CASE_DIR" --interface hdf5 --collective no --repeats 5 --warmup 1 --json records.jsonl --keep-empty yes --particles 1048576 --steps 4 --locality CC --dimensions 1 --selection full --alignment 4096 --baseline interface=mpiio --baseline interface=posix
iogauge_ended $?
iogauge_data_file_layout beeond
