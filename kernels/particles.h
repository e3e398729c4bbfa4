/* The particles kernel's parts: what the case is (particles.c), who moves which rows of it (particles_share.c), and the
 * moving (particles_moves.c). */
#ifndef IOGAUGE_PARTICLES_H
#define IOGAUGE_PARTICLES_H

#include "common/run.h"
#include "particles_region.h"

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

/* --- who moves what: particles_share.c --- */

/* Rows that RANK's particles are; of a dataset's rows before anything is appended, those that stand before RANK's in
 * its file, and all. */
uint64_t rows_of(const struct particles_settings *s, int rank);
uint64_t rows_before(const struct particles_settings *s, int rank);
uint64_t rows_in_file(const struct particles_settings *s, int rank);

/* Rows of ROWS that --fraction leaves. */
uint64_t partial_rows(const struct particles_settings *s, uint64_t rows);

/* Rows a dataset has in the end. */
uint64_t final_rows(const struct particles_settings *s, int rank);

/* What a rank moves of every dataset in a step: SELECTION, or rows FROM to TO of REGION. */
struct share {
    struct selection selection;
    uint64_t taken; /* rows of its first block that were cut off already */
    struct region region;
    uint64_t from;
    uint64_t to;
    bool of_region;
    uint64_t row_elements;
};

enum of_what {
    OF_FIRST,   /* what a file holds before it is overwritten or appended to */
    OF_WRITE,   /* what the measured write writes */
    OF_READ,    /* what the measured read reads */
    OF_WRITTEN, /* what is read to check the write */
};

/* OWNER's share; to be freed. */
struct share share_of(const struct particles_settings *s, int owner, enum of_what what);
void share_free(struct share *share);
uint64_t share_elements(const struct share *share);

/* Cut the next piece of at most ELEMENTS elements off a share, an empty one when nothing is left. To be freed. */
struct selection share_cut(struct share *share, uint64_t elements);
void selection_free(struct selection *selection);

/* Elements that all ranks move in a step. */
uint64_t elements_of_all(const struct particles_settings *s, enum of_what what);

/* --- the moving: particles_moves.c --- */

void particles_write(struct run *run);
void particles_read(struct run *run);

/* Elements of a buffer, within --memory-limit; and the limit that lets a buffer hold one row. */
uint64_t buffer_elements(const struct particles_settings *s);
uint64_t least_memory_bytes(const struct particles_settings *s);

#endif
