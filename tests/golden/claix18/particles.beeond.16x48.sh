#!/bin/bash -l
#SBATCH --job-name="rfm_ParticlesCheck_HASH"
#SBATCH --ntasks=768
#SBATCH --ntasks-per-node=48
#SBATCH --cpus-per-task=1
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=4:0:0
#SBATCH --nodes=16
#SBATCH --account=PROJECT
#SBATCH --partition=c18m
#SBATCH --exclusive
#SBATCH --mem-per-cpu=3900M
#SBATCH --no-requeue
#SBATCH --beeond
module load iimpi/2023a
module load HDF5/1.14.0
module load CMake/3.26.3
. ./case_folder.sh
iogauge_case_folder beeond "$BEEOND" 515397328896 beegfs beegfs_nodev fuse.beegfs fuse.glusterfs
iogauge_layout beeond
srun --cpus-per-task=1 --cpu-bind=cores WORK/stage/claix18/c18m/default/KernelBuild_HASH/build/particles --dir "$IOGAUGE_CASE_DIR" --interface hdf5 --collective no --repeats 3 --warmup 0 --json records.jsonl --keep-empty yes --particles 4194304 --steps 5 --locality CC --dimensions 1 --selection full --alignment 4096 --baseline interface=mpiio --baseline interface=posix
iogauge_ended $?
iogauge_data_file_layout beeond
