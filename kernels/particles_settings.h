/* What a case of the particles kernel is: its options, and what follows from them. */
#ifndef IOGAUGE_PARTICLES_SETTINGS_H
#define IOGAUGE_PARTICLES_SETTINGS_H

#include "common/run.h"

enum locality { CC, CI, IC, II };
enum selected { SELECT_FULL, SELECT_PARTIAL, SELECT_STRIDED, SELECT_REGION /* this and what follows */, SELECT_CS = 6 };
enum write_mode { WRITE_NEW, WRITE_OVER, WRITE_APPEND };
enum { WORD = 4 };

struct particles_settings {
    struct common_settings common;
    uint64_t particles; /* of a rank, in a step; the mean, when ranks differ */
    uint64_t dimensions;
    uint64_t columns; /* of the second dimension; 0: chosen */
    uint64_t layers;  /* of the third */
    uint64_t steps;
    double compute_seconds;
    int locality;
    double deviation; /* of the ranks' particles; 0: all have as many */
    int write_mode;
    bool write_selected;
    uint64_t delayed_close;
    uint64_t memory_bytes;
    int selection;
    double fraction;
    uint64_t stride;
    uint64_t stride_columns;
    uint64_t block;
    uint64_t block_columns;
    uint64_t blocks;
    uint64_t chunk[3]; /* rows 0: contiguous */
    /* Worked out by check: */
    uint64_t shape[3]; /* of a rank's particles; the mean, when ranks differ */
    int ranks;
    uint64_t most_elements; /* that a rank moves in a step, at most */
};

/* Elements of a row: all that share one index of the slowest dimension. */
static inline uint64_t row_elements(const struct particles_settings *s)
{
    return s->shape[1] * s->shape[2];
}

static inline bool interleaved_in_file(const struct particles_settings *s)
{
    return s->locality == CI || s->locality == II;
}

static inline bool interleaved_in_memory(const struct particles_settings *s)
{
    return s->locality == IC || s->locality == II;
}

static inline bool explicitly_asynchronous(const struct particles_settings *s)
{
    return s->common.hdf5.async == ASYNC_EXPLICIT;
}

static inline int datasets_in_step(const struct particles_settings *s)
{
    return interleaved_in_file(s) ? 1 : PARTICLE_MEMBERS;
}

#endif
