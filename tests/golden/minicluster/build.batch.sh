#!/bin/bash

_onerror()
{
    exitcode=$?
    echo "-reframe: command \`$BASH_COMMAND' failed (exit code: $exitcode)"
    exit $exitcode
}

trap _onerror ERR

export OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_io=romio321
export OMPI_MCA_btl_vader_single_copy_mechanism=none
mkdir -p build
cmake -DCMAKE_C_COMPILER="mpicc" -DCMAKE_CUDA_COMPILER="nvcc" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -S . -B build
cmake --build build -j 4
