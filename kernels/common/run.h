/* What every kernel does around its pattern: options, placement, repeats, baselines, caches, verification, records.
 *
 * A pattern says what it writes and reads; the run calls it once a case and repeat. The first case is the one asked
 * for; each --baseline is that case with some options changed. In every repeat all cases run one after the other, and
 * each repeat begins with another case, so that drift and neighbours hit all alike. */
#ifndef IOGAUGE_RUN_H
#define IOGAUGE_RUN_H

#include "pattern.h"

/* The whole program. Returns the exit code. */
int run_kernel(const struct pattern *pattern, int argc, char **argv);

/* Path of file number FILE of the run's case as RANK has it (a shared file has one path for all), into BUFFER. */
const char *run_path(const struct run *run, int file, int rank, char *buffer, size_t buffer_bytes);

/* Book a comparison: BYTES were compared; a first mismatch is remembered with the dataset's name. */
void run_checked(struct run *run, uint64_t bytes, const char *dataset, uint64_t step,
                 const struct content_mismatch *mismatch);

/* Memory for data, touched once so that no page fault is measured. Stops the rank when there is none. */
void *run_memory(uint64_t bytes);

/* The rank that opens the file in which RANK's data are. */
int run_opener(const struct run *run, int rank);

/* Emulated computing: sleep, in no rate. */
void run_pause(double seconds);

#endif
