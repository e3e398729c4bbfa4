#!/bin/bash
#SBATCH --job-name="rfm_MetadataCheck_HASH"
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
#SBATCH --constraint=BEEOND
module load compiler/gnu
module load mpi/openmpi
module load lib/hdf5
module load devel/cmake
. ./case_folder.sh
iogauge_case_folder --mountpoint "/mnt/odfs/$SLURM_JOB_ID" beeond-1 "/mnt/odfs/$SLURM_JOB_ID/stripe_1" 39964672 beegfs beegfs_nodev fuse.beegfs fuse.glusterfs
iogauge_layout beeond
srun --cpus-per-task=8 --cpu-bind=cores WORK/stage/horeka/cpuonly/default/KernelBuild_HASH/build/metadata --dir "$IOGAUGE_CASE_DIR" --interface posix --collective no --repeats 5 --warmup 1 --json records.jsonl --objects 500 --directory shared --depth 0 --branch 1 --leaves no --bytes 0 --file-per-process no --collective-metadata no --libver earliest
iogauge_ended $?
iogauge_data_file_layout beeond
