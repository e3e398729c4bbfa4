#!/bin/bash
#SBATCH --job-name="rfm_ParticlesCheck_HASH"
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
iogauge_case_folder --quota PYTHON 'lfs quota -u $USER /pscratch' scratch-large "$PSCRATCH" 4296179712 lustre
iogauge_layout lustre -c 72 -S 1048576
srun --cpus-per-task=8 --cpu-bind=cores WORK/stage/perlmutter/cpu/default/KernelBuild_HASH/build/particles --dir "$IOGAUGE_CASE_DIR" --interface hdf5 --collective no --repeats 5 --warmup 1 --json records.jsonl --keep-empty yes --particles 1048576 --steps 4 --locality CC --dimensions 1 --selection full --alignment 4096 --baseline interface=mpiio --baseline interface=posix
iogauge_ended $?
iogauge_data_file_layout lustre
