#!/bin/bash -l
#SBATCH --job-name="rfm_MetadataCheck_HASH"
#SBATCH --ntasks=48
#SBATCH --ntasks-per-node=48
#SBATCH --cpus-per-task=1
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:30:0
#SBATCH --nodes=1
#SBATCH --account=PROJECT
#SBATCH --partition=c18m
#SBATCH --exclusive
#SBATCH --mem-per-cpu=3900M
#SBATCH --no-requeue
#SBATCH --job-name=iogauge-claix18-home
#SBATCH --dependency=singleton
module load iimpi/2023a
module load HDF5/1.14.0
module load CMake/3.26.3
. ./case_folder.sh
iogauge_case_folder --quota PYTHON 'quota -w -f $HOME' home "$HOME" 99356672 nfs nfs4
srun --cpus-per-task=1 --cpu-bind=cores WORK/stage/claix18/c18m/default/KernelBuild_HASH/build/metadata --dir "$IOGAUGE_CASE_DIR" --interface posix --collective no --repeats 5 --warmup 1 --json records.jsonl --objects 500 --directory shared --depth 0 --branch 1 --leaves no --bytes 0 --file-per-process no --collective-metadata no --libver earliest
iogauge_ended $?
