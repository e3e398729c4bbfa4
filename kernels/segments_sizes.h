/* The sizes of `segments`: its options, what they may be together, and the walk through a dataset that follows. */
#ifndef IOGAUGE_SEGMENTS_SIZES_H
#define IOGAUGE_SEGMENTS_SIZES_H

#include "common/run.h"
#include "segments_walk.h"

enum { LAYOUT_CONTIGUOUS, LAYOUT_INTERLEAVED };
enum { GEOMETRY_1D, GEOMETRY_2D };

struct segments_settings {
    struct common_settings common;
    uint64_t bytes_per_process;
    uint64_t segments;
    uint64_t block_bytes;
    uint64_t transfer_bytes;
    int geometry;
    struct dims dims;
    struct dims transfer_dims;
    struct dims order;
    int layout;
    uint64_t datasets;
    uint64_t files;
    struct dims chunk;
    bool grow;
    struct walk walk; /* worked out by check */
};

extern const struct option segments_options[];

void segments_defaults(void *settings);

/* Checks SETTINGS and works out the walk. Returns 0, or -1 with PROBLEM filled. */
int segments_check(void *settings, int ranks, char *problem, size_t problem_bytes);

/* Ranks that share a file. */
uint64_t segments_sharers(const struct segments_settings *settings, int ranks);

/* "4x4x2" */
const char *segments_dims_text(const struct dims *dims, char *buffer, size_t bytes);

#endif
