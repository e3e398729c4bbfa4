/* A sweep: one case for every combination of the values given with --sweep, and what of it an earlier run that was cut
 * off has measured already. */
#ifndef IOGAUGE_SWEEP_H
#define IOGAUGE_SWEEP_H

#include "options.h"

#include <stdbool.h>
#include <stdint.h>

struct sweep {
    int count;    /* at least 1 */
    char **names; /* "rank=2,layout=chunked"; a single NULL where nothing is swept */
    int *records; /* of each case; the caller's to fill in */
    bool *done;   /* measured by an earlier run */
    char run[17]; /* what the records of one sweep share: a hash of all options, the ranks and the kernels */
};

/* The combinations of SWEEPS whose name fits the shell pattern CASES, or the one with that number (from 1; NULL:
 * all); the first sweep changes slowest.
 * Returns 0, or -1 with PROBLEM filled. */
int sweep_expand(const struct text_list *sweeps, const char *cases, struct sweep *sweep, char *problem,
                 size_t problem_bytes);

/* TEXT: every option with its value, and whatever else must be the same for records to belong together. */
void sweep_identify(struct sweep *sweep, const char *text);

/* Read PATH, the records of a run that was cut off: cases with all of their records are marked done, and lines of
 * unfinished cases are dropped from the file. Returns 0, or -1 with PROBLEM filled: a line that is no record of this
 * sweep. */
int sweep_resume(struct sweep *sweep, const char *path, char *problem, size_t problem_bytes);

void sweep_free(struct sweep *sweep);

#endif
