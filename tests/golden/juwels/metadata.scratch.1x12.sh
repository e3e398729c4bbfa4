#!/bin/bash
#SBATCH --job-name="rfm_MetadataCheck_HASH"
#SBATCH --ntasks=12
#SBATCH --ntasks-per-node=12
#SBATCH --cpus-per-task=8
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:30:0
#SBATCH --nodes=1
#SBATCH --account=PROJECT
#SBATCH --partition=batch
#SBATCH --no-requeue
#SBATCH --job-name=iogauge-juwels-scratch
#SBATCH --dependency=singleton
module load GCC
module load ParaStationMPI
module load HDF5
module load CMake
. ./case_folder.sh
iogauge_case_folder scratch "$SCRATCH" 25628672 gpfs
iogauge_layout gpfs
srun --cpus-per-task=8 --cpu-bind=cores WORK/stage/juwels/batch/default/KernelBuild_HASH/build/metadata --dir "$IOGAUGE_CASE_DIR" --interface posix --collective no --repeats 5 --warmup 1 --json records.jsonl --objects 500 --directory shared --depth 0 --branch 1 --leaves no --bytes 0 --file-per-process no --collective-metadata no --libver earliest
iogauge_ended $?
iogauge_data_file_layout gpfs
