/* Where the transfers of `segments` lie: a rank's way through a dataset, transfer after transfer. */
#ifndef IOGAUGE_SEGMENTS_WALK_H
#define IOGAUGE_SEGMENTS_WALK_H

#include "common/content.h"
#include "common/store.h"

/* A loop over transfers: COUNT of them, STRIDE elements apart in DIMENSION. */
struct walk_loop {
    int dimension;
    uint64_t count;
    uint64_t stride;
};

struct walk {
    enum element element;
    int dimensions;
    uint64_t extent[STORE_DIMENSIONS];   /* of the dataset, in elements */
    uint64_t transfer[STORE_DIMENSIONS]; /* elements of a transfer in every dimension; 1-D: of one of its blocks */
    uint64_t blocks;                     /* 1-D: a transfer's, BLOCK_STRIDE apart */
    uint64_t block_stride;
    int place_dimension; /* ranks that share the dataset begin PLACE_STRIDE apart in it */
    uint64_t place_stride;
    struct walk_loop loops[STORE_DIMENSIONS]; /* innermost first */
    int loop_count;
};

/* The shape of a row of SEGMENTS, in each a block of BLOCK bytes for each of SHARERS ranks, in 64-bit words. A transfer
 * of TRANSFER bytes is a part of a block or several of a rank's blocks. INTERLEAVED: the parts of the ranks' blocks lie
 * in turn. */
struct walk walk_of_segments(uint64_t sharers, uint64_t segments, uint64_t block, uint64_t transfer, bool interleaved);

/* Bytes in an array of DIMENSIONS, moved in boxes of TRANSFER; ORDER names the dimensions, from 0, as they are
 * traversed. SHARERS ranks have equal parts of the slowest dimension, or (INTERLEAVED) boxes in turn along the fastest.
 */
struct walk walk_of_boxes(uint64_t sharers, int dimensions, const uint64_t *extent, const uint64_t *transfer,
                          const int *order, bool interleaved);

uint64_t walk_transfers(const struct walk *walk);
uint64_t walk_transfer_bytes(const struct walk *walk);
uint64_t walk_dataset_bytes(const struct walk *walk);

/* First element of transfer number TRANSFER, of the rank at PLACE among those that share the dataset. */
void walk_start(const struct walk *walk, uint64_t place, uint64_t transfer, uint64_t *start);

/* The extent that the dataset must have to hold a transfer from START, into EXTENT where it is larger than that.
 * Returns whether EXTENT has grown. */
bool walk_grow(const struct walk *walk, const uint64_t *start, uint64_t *extent);

/* Fill or check the memory of the transfer from START. */
void walk_fill(const struct walk *walk, const uint64_t *start, uint64_t key, void *memory);
void walk_check(const struct walk *walk, const uint64_t *start, uint64_t key, const void *memory,
                struct content_mismatch *mismatch);

/* Move it. */
void walk_move(const struct walk *walk, const uint64_t *start, struct store *store, int slot, enum direction direction,
               void *memory);

#endif
