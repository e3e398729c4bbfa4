#!/bin/bash
#SBATCH --job-name="rfm_MetadataCheck_HASH"
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:3:0
#SBATCH --partition=whole
#SBATCH --no-requeue
#SBATCH --job-name=iogauge-minicluster-shared
#SBATCH --dependency=singleton
export OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_io=romio321
export OMPI_MCA_btl_vader_single_copy_mechanism=none
. ./case_folder.sh
iogauge_case_folder shared "/MINICLUSTER/fs/shared" 1216512 ext2 ext3 ext4 xfs btrfs zfs f2fs overlay
mpirun -np 4 WORK/stage/minicluster/whole/default/KernelBuild_HASH/build/metadata --dir "$IOGAUGE_CASE_DIR" --interface posix --collective no --repeats 2 --warmup 0 --json records.jsonl --objects 10 --directory shared --depth 0 --branch 1 --leaves no --bytes 0 --file-per-process no --collective-metadata no --libver earliest
iogauge_ended $?
