#!/bin/bash
#SBATCH --job-name="rfm_ParticlesCheck_HASH"
#SBATCH --ntasks=48
#SBATCH --ntasks-per-node=48
#SBATCH --cpus-per-task=2
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:30:0
#SBATCH --nodes=1
#SBATCH --account=PROJECT
#SBATCH --partition=batch
#SBATCH --no-requeue
#SBATCH --job-name=iogauge-juwels-home
#SBATCH --dependency=singleton
module load GCC
module load ParaStationMPI
module load HDF5
module load CMake
. ./case_folder.sh
iogauge_case_folder home "$HOME" 6443663360 gpfs
iogauge_layout gpfs
srun --cpus-per-task=2 --cpu-bind=cores WORK/stage/juwels/batch/default/KernelBuild_HASH/build/particles --dir "$IOGAUGE_CASE_DIR" --interface hdf5 --collective no --repeats 5 --warmup 1 --json records.jsonl --keep-empty yes --particles 1048576 --steps 4 --locality CC --dimensions 1 --selection full --alignment 4096 --baseline interface=mpiio --baseline interface=posix
iogauge_ended $?
iogauge_data_file_layout gpfs
