/* What a kernel's pattern is to the rest: its settings, its layout, and what it does in a repeat. */
#ifndef IOGAUGE_PATTERN_H
#define IOGAUGE_PATTERN_H

#include "content.h"
#include "json.h"
#include "options.h"
#include "stopwatch.h"
#include "store.h"
#include "world.h"

/* The first member of every pattern's settings. */
struct common_settings {
    const char *dir;
    const char *json;
    const char *mpi_info; /* hints, see hints.h; NULL: none */
    struct text_list baselines;
    struct text_list sweeps;
    const char *cases; /* of a sweep: a pattern of names */
    bool resume;
    uint64_t processes; /* 0: all */
    int operation;
    int interface;
    bool collective;
    bool collective_metadata;
    bool file_per_process;
    bool fsync;
    bool drop_cache;
    bool keep;
    bool keep_empty;
    uint64_t alignment_bytes;
    struct hdf5_settings hdf5;
    const char *foreign;  /* name of a file in dir that another program wrote, or NULL */
    enum sharing sharing; /* worked out: from file_per_process, or by the pattern's check */
    uint64_t repeats;
    uint64_t warmup;
    uint64_t shift;
    uint64_t seed;
};

/* For the option tables of patterns that can wait for what is in the background. */
#define ASYNC_CHOICES "no|implicit|explicit"
#define ASYNC_OPTION                               \
    {"async",                                      \
     OPTION_CHOICE,                                \
     offsetof(struct common_settings, hdf5.async), \
     0,                                            \
     0,                                            \
     ASYNC_CHOICES,                                \
     "HDF5 1.13 and newer: calls that a connector executes in the background; explicit: with event sets"}

/* The datasets of a file, in file order. */
struct layout {
    struct dataset *datasets;
    int count;
    uint64_t bytes; /* of a file through a raw interface; in a file a node: of one rank in it */
    bool sparse;    /* parts of the datasets are never written, and so never in memory */
};

/* One case in one repeat, as a pattern's write and read see it. */
struct run {
    const struct world *world;
    const void *settings; /* the pattern's own */
    const struct common_settings *common;
    const struct layout *layout;
    int case_number;
    int source;      /* read: the rank whose data this rank reads */
    bool everything; /* read: all of it, whatever selection is set: the check of what was written */
    struct store_settings store;
    struct stopwatch *watch;
    uint64_t checked_bytes; /* or operations, of a pattern with operations of its own */
    struct content_mismatch mismatch;
    char mismatch_where[160];
};

/* What a pattern does in a repeat, one after the other. */
struct operation {
    const char *name;
    bool of_read; /* it looks at what another rank made */
};

struct pattern {
    const char *name;
    const char *summary;
    const char *example;
    const struct option *options;
    size_t settings_bytes;
    void (*defaults)(void *settings);
    /* After the options were read and before cases are made of them; NULL: nothing to do. As check. */
    int (*prepare)(void *settings, char *problem, size_t problem_bytes);
    /* Before the ranks of a case are chosen; NULL: nothing to do. */
    void (*adjust)(void *settings);
    /* Check and complete SETTINGS for RANKS ranks. Returns 0, or -1 with PROBLEM filled. */
    int (*check)(void *settings, int ranks, char *problem, size_t problem_bytes);
    int (*files)(const void *settings);
    void (*layout)(const void *settings, int ranks, struct layout *layout);
    /* Rows of every dataset that RANK writes lie within [FIRST, FIRST + ROWS). */
    void (*rows)(const void *settings, int ranks, int rank, uint64_t *first, uint64_t *rows);
    uint64_t (*logical_bytes)(const void *settings, int ranks, bool of_read);
    /* Bytes of the largest single access, for the raw interfaces' scratch and MPI-IO's limit. */
    uint64_t (*access_bytes)(const void *settings);
    bool (*needs_scratch)(const void *settings);
    void (*describe)(const void *settings, struct json *json);
    bool netcdf; /* its datasets are arrays of numbers, moved by store_move_box alone: netCDF-4 can carry them */
    /* Patterns that move bytes: */
    void (*write)(struct run *run);
    void (*read)(struct run *run);
    /* Others have operations of their own instead (ends with a NULL name). Each is performed once a repeat, times
     * itself with the run's stopwatch, and books what it verified; COUNT is what all ranks together do in it;
     * one that counts 0 is none of the case's. */
    const struct operation *operations;
    uint64_t (*count)(const void *settings, int ranks, int operation);
    void (*perform)(struct run *run, int operation);
};

/* A product that must fit: returns 0 and sets RESULT, or -1. */
static inline int checked_product(uint64_t a, uint64_t b, uint64_t *result)
{
    return __builtin_mul_overflow(a, b, result) || *result > INT64_MAX / 2 ? -1 : 0;
}

#endif
