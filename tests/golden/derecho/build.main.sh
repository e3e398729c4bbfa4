#!/bin/bash

_onerror()
{
    exitcode=$?
    echo "-reframe: command \`$BASH_COMMAND' failed (exit code: $exitcode)"
    exit $exitcode
}

trap _onerror ERR

module load ncarenv/24.12
module load gcc/12.4.0
module load cray-mpich/8.1.29
module load hdf5-mpi/1.12.3
module load cmake/3.26.6
mkdir -p build
cmake -DCMAKE_C_COMPILER="mpicc" -DCMAKE_CUDA_COMPILER="nvcc" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -S . -B build
cmake --build build -j 4
