#!/bin/bash

_onerror()
{
    exitcode=$?
    echo "-reframe: command \`$BASH_COMMAND' failed (exit code: $exitcode)"
    exit $exitcode
}

trap _onerror ERR

module load PrgEnv-gnu
module load cray-hdf5-parallel
module load cmake
mkdir -p build
cmake -DCMAKE_C_COMPILER="cc" -DCMAKE_CUDA_COMPILER="nvcc" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -S . -B build
cmake --build build -j 4
