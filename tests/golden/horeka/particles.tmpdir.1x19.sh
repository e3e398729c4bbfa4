#!/bin/bash
#SBATCH --job-name="rfm_ParticlesCheck_HASH"
#SBATCH --ntasks=19
#SBATCH --ntasks-per-node=19
#SBATCH --cpus-per-task=8
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:30:0
#SBATCH --nodes=1
#SBATCH --account=PROJECT
#SBATCH --partition=cpuonly
#SBATCH --no-requeue
module load compiler/gnu
module load mpi/openmpi
module load lib/hdf5
module load devel/cmake
. ./case_folder.sh
iogauge_case_folder tmpdir "$TMPDIR" 2551349248 ext2 ext3 ext4 xfs btrfs zfs f2fs overlay
srun --cpus-per-task=8 --cpu-bind=cores WORK/stage/horeka/cpuonly/default/KernelBuild_HASH/build/particles --dir "$IOGAUGE_CASE_DIR" --interface hdf5 --collective no --repeats 5 --warmup 1 --json records.jsonl --particles 1048576 --steps 4 --locality CC --dimensions 1 --selection full --alignment 4096 --baseline interface=mpiio --baseline interface=posix
iogauge_ended $?
