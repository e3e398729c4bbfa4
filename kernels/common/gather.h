/* One rank moves the data of several between a file that it alone has open and their memory, in pieces of the file of
 * bounded size: a message a rank and piece. Eight-byte words. */
#ifndef IOGAUGE_GATHER_H
#define IOGAUGE_GATHER_H

#include "store.h"

/* Bytes of a piece: small enough to stay in a core's cache between message and file. */
enum { GATHER_BYTES = 1 << 20 };

/* A rank that takes part, and its box in the file. */
struct part {
    int rank;
    struct box box;
};

struct gather {
    MPI_Comm comm;
    int dimensions;
    struct box whole;         /* all that the file holds */
    int mover;                /* the rank that has the file open */
    const struct part *parts; /* of the mover, all of them; of another rank, its own */
    int count;
    uint64_t *words;           /* this rank's memory */
    const struct frame *frame; /* where its box lies in it */
    uint64_t *pieces;          /* of the mover: 2 * GATHER_BYTES */
};

/* The mover has opened the file: until then the others wait. Collective over the ranks that take part. */
void gather_begin(const struct gather *gather);

/* Write the parts, gathered piece by piece, or read and hand them out, two pieces under way. STORE: the mover's, whose
 * dataset 0 it is; NULL on the others. Collective over the ranks that take part. */
void gather_move(const struct gather *gather, struct store *store, enum direction direction);

#endif
