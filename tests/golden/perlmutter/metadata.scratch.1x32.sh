#!/bin/bash
#SBATCH --job-name="rfm_MetadataCheck_HASH"
#SBATCH --ntasks=32
#SBATCH --ntasks-per-node=32
#SBATCH --cpus-per-task=8
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:30:0
#SBATCH --nodes=1
#SBATCH --account=PROJECT
#SBATCH --constraint=cpu
#SBATCH --qos=regular
#SBATCH --no-requeue
#SBATCH --job-name=iogauge-perlmutter-pscratch
#SBATCH --dependency=singleton
module load PrgEnv-gnu
module load cray-hdf5-parallel
module load cmake
. ./case_folder.sh
iogauge_case_folder --quota PYTHON 'lfs quota -u $USER /pscratch' scratch "$PSCRATCH" 66588672 lustre
iogauge_layout lustre
srun --cpus-per-task=8 --cpu-bind=cores WORK/stage/perlmutter/cpu/default/KernelBuild_HASH/build/metadata --dir "$IOGAUGE_CASE_DIR" --interface posix --collective no --repeats 5 --warmup 1 --json records.jsonl --objects 500 --directory shared --depth 0 --branch 1 --leaves no --bytes 0 --file-per-process no --collective-metadata no --libver earliest
iogauge_ended $?
iogauge_data_file_layout lustre
