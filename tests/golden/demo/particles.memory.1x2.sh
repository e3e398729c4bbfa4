#!/bin/bash
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_pml=ob1
export OMPI_MCA_btl=self,vader
export OMPI_MCA_mpi_yield_when_idle=1
export LD_PRELOAD=
export SLOW_STORAGE_FOLDER=
export SLOW_STORAGE_MIB_S=
export SLOW_STORAGE_SLOWDOWN=
. ./case_folder.sh
iogauge_case_folder memory "/dev/shm" 34684928 tmpfs ramfs
mpirun -np 2 WORK/stage/demo/default/default/KernelBuild_HASH/build/particles --dir "$IOGAUGE_CASE_DIR" --interface hdf5 --collective no --repeats 7 --warmup 1 --json records.jsonl --particles 262144 --steps 2 --locality CC --dimensions 1 --selection full --alignment 4096 --baseline interface=mpiio --baseline interface=posix
iogauge_ended $?
