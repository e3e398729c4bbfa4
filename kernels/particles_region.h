/* The selections of 2-D data that h5bench's read has besides rows: two diagonal corners (LDC, RDC), the peripheral
 * frame (PRL) and the cross stencil (CS), of any size, as rows that ranks and buffers can share.
 *
 * A region is a set of elements of a ROWS x COLUMNS dataset. Its rows are those of the dataset in which it has
 * elements, numbered from 0; its elements are numbered row by row. */
#ifndef IOGAUGE_PARTICLES_REGION_H
#define IOGAUGE_PARTICLES_REGION_H

#include "common/store.h"

enum region_form { REGION_LDC, REGION_RDC, REGION_PRL, REGION_CS };

struct region_settings {
    enum region_form form;
    uint64_t rows; /* of the dataset */
    uint64_t columns;
    uint64_t block[2];  /* rows and columns of a block (LDC, RDC, CS), or how thick the frame is (PRL); at most the
                           dataset's */
    uint64_t stride[2]; /* CS: from block to block */
};

struct region {
    struct band *bands;
    size_t band_count;
    struct span *spans;
    size_t span_count;
    uint64_t rows;
    uint64_t elements;
};

/* Work out the region. Returns 0, or -1 when there is no memory for it. */
int region_make(struct region *region, const struct region_settings *settings);
void region_free(struct region *region);

/* The first row of the region whose elements begin with number ELEMENT or later; the number of rows, if there is none.
 * Rows from region_row_at(a) to region_row_at(b) and from there to region_row_at(c) have no row in common and leave
 * none out. */
uint64_t region_row_at(const struct region *region, uint64_t element);

/* Elements of the region's rows before ROW. */
uint64_t region_elements_before(const struct region *region, uint64_t row);

/* The rows of the dataset among which rows FROM to TO of the region lie: the first, and how many. */
void region_reach(const struct region *region, uint64_t from, uint64_t to, uint64_t *first, uint64_t *rows);

/* The part of the region from its row FROM up to TO as boxes of the dataset, which have no element in common. Boxes
 * that share a row of the dataset share all their rows and stand from left to right; otherwise they stand from top to
 * bottom. Returns their number; BOXES may be NULL. */
size_t region_boxes(const struct region *region, uint64_t from, uint64_t to, struct box *boxes);

#endif
