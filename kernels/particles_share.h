/* The particles kernel: who moves which rows of a case. */
#ifndef IOGAUGE_PARTICLES_SHARE_H
#define IOGAUGE_PARTICLES_SHARE_H

#include "particles_region.h"
#include "particles_settings.h"

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

#endif
