#!/bin/bash -l

_onerror()
{
    exitcode=$?
    echo "-reframe: command \`$BASH_COMMAND' failed (exit code: $exitcode)"
    exit $exitcode
}

trap _onerror ERR

module load iimpi/2023a
module load HDF5/1.14.0
module load CMake/3.26.3
mkdir -p build
cmake -DCMAKE_C_COMPILER="mpiicc" -DCMAKE_CUDA_COMPILER="nvcc" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -S . -B build
cmake --build build -j 4
