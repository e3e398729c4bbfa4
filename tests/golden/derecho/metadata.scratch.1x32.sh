#!/bin/bash
#PBS -N rfm_MetadataChe
#PBS -o rfm_job.out
#PBS -e rfm_job.err
#PBS -l walltime=0:30:0
#PBS -l select=1:mpiprocs=32:ncpus=128
#PBS -A PROJECT
#PBS -q main
cd WORK/stage/derecho/main/default/MetadataCheck_HASH
module load ncarenv/24.12
module load gcc/12.4.0
module load cray-mpich/8.1.29
module load hdf5-mpi/1.12.3
module load cmake/3.26.6
. ./case_folder.sh
iogauge_case_folder --quota PYTHON 'lfs quota -u $USER /glade/derecho/scratch' scratch "/glade/derecho/scratch/$USER" 66588672 lustre
iogauge_layout lustre
mpiexec -n 32 -ppn 32 --cpu-bind depth -d 4 WORK/stage/derecho/main/default/KernelBuild_HASH/build/metadata --dir "$IOGAUGE_CASE_DIR" --interface posix --collective no --repeats 5 --warmup 1 --json records.jsonl --objects 500 --directory shared --depth 0 --branch 1 --leaves no --bytes 0 --file-per-process no --collective-metadata no --libver earliest
iogauge_ended $?
iogauge_data_file_layout lustre
