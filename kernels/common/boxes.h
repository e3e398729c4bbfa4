/* Boxes of n-dimensional arrays: what two have in common, cutting one into pieces, and copying one between frames. */
#ifndef IOGAUGE_BOXES_H
#define IOGAUGE_BOXES_H

#include "store.h"

/* What A and B both hold, in COMMON; false: nothing. */
bool box_common(int dimensions, const struct box *a, const struct box *b, struct box *common);

/* The next piece of WHOLE in row-major order, of at most MOST elements (at least 1): full rows as long as they fit, so
 * that a piece of a whole array lies together. PIECE of zeros: the first. Returns false after the last. */
bool box_next_piece(int dimensions, const struct box *whole, uint64_t most, struct box *piece);

/* Copy COUNT eight-byte words of every dimension from one frame's place to another's. */
void box_copy64(int dimensions, const uint64_t *count, uint64_t *to, const struct frame *to_frame, const uint64_t *from,
                const struct frame *from_frame);

#endif
