#!/bin/bash
#SBATCH --job-name="rfm_ParticlesCheck_HASH"
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:3:0
#SBATCH --nodes=2
#SBATCH --partition=batch
#SBATCH --no-requeue
#SBATCH --job-name=iogauge-minicluster-shared
#SBATCH --dependency=singleton
export OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_io=romio321
export OMPI_MCA_btl_vader_single_copy_mechanism=none
. ./case_folder.sh
iogauge_case_folder shared "/MINICLUSTER/fs/shared" 3227648 ext2 ext3 ext4 xfs btrfs zfs f2fs overlay
srun --cpus-per-task=1 WORK/stage/minicluster/batch/default/KernelBuild_HASH/build/particles --dir "$IOGAUGE_CASE_DIR" --interface hdf5 --collective no --repeats 2 --warmup 0 --json records.jsonl --particles 8192 --steps 2 --locality CC --dimensions 1 --selection full --alignment 4096 --baseline interface=mpiio --baseline interface=posix
iogauge_ended $?
