#!/bin/bash

_onerror()
{
    exitcode=$?
    echo "-reframe: command \`$BASH_COMMAND' failed (exit code: $exitcode)"
    exit $exitcode
}

trap _onerror ERR

export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_pml=ob1
export OMPI_MCA_btl=self,vader
export OMPI_MCA_mpi_yield_when_idle=1
export LD_PRELOAD=
export SLOW_STORAGE_FOLDER=
export SLOW_STORAGE_MIB_S=
export SLOW_STORAGE_SLOWDOWN=
mkdir -p build
cmake -DCMAKE_C_COMPILER="mpicc" -DCMAKE_CUDA_COMPILER="nvcc" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -S . -B build
cmake --build build -j 4
