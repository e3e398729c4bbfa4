#!/bin/bash
export OMPI_MCA_btl_vader_single_copy_mechanism=none
. ./case_folder.sh
iogauge_case_folder disk "/SCRATCH" 1871872
mpirun -np 1 WORK/stage/local/default/default/KernelBuild_HASH/build/metadata --dir "$IOGAUGE_CASE_DIR" --interface posix --collective no --repeats 7 --warmup 1 --json records.jsonl --objects 200 --directory shared --depth 0 --branch 1 --leaves no --bytes 0 --file-per-process no --collective-metadata no --libver earliest
iogauge_ended $?
