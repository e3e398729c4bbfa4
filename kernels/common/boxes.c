#include "boxes.h"

#include <string.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool box_common(int dimensions, const struct box *a, const struct box *b, struct box *common)
{
    *common = (struct box){0};
    for (int i = 0; i < dimensions; i++) {
        const uint64_t start = a->start[i] > b->start[i] ? a->start[i] : b->start[i];
        const uint64_t end = least(a->start[i] + a->count[i], b->start[i] + b->count[i]);
        if (start >= end)
            return false;
        common->start[i] = start;
        common->count[i] = end - start;
    }
    return true;
}

/* Full rows from the fastest dimension on, then as many as fit, then one of each. */
static void piece_shape(int dimensions, const struct box *whole, uint64_t most, uint64_t *shape)
{
    for (int i = dimensions - 1; i >= 0; i--) {
        shape[i] = most > 0 ? least(whole->count[i], most) : 1;
        most = shape[i] == whole->count[i] ? most / shape[i] : 0;
    }
}

bool box_next_piece(int dimensions, const struct box *whole, uint64_t most, struct box *piece)
{
    uint64_t shape[STORE_DIMENSIONS];
    int i = dimensions - 1;
    piece_shape(dimensions, whole, most, shape);
    if (piece->count[0] == 0) {
        *piece = *whole;
        i = -2;
    }
    for (; i >= 0; i--) {
        piece->start[i] += shape[i];
        if (piece->start[i] < whole->start[i] + whole->count[i])
            break;
        piece->start[i] = whole->start[i];
    }
    if (i == -1)
        return false;
    for (i = 0; i < dimensions; i++)
        piece->count[i] = least(shape[i], whole->start[i] + whole->count[i] - piece->start[i]);
    return true;
}

static uint64_t place_in(int dimensions, const struct frame *frame, const uint64_t *at)
{
    uint64_t place = 0;
    for (int i = 0; i < dimensions; i++)
        place = place * frame->extent[i] + frame->start[i] + at[i];
    return place;
}

void box_copy64(int dimensions, const uint64_t *count, uint64_t *to, const struct frame *to_frame, const uint64_t *from,
                const struct frame *from_frame)
{
    uint64_t at[STORE_DIMENSIONS] = {0};
    const uint64_t line_bytes = count[dimensions - 1] * sizeof *to;
    for (int i = 0; i >= 0;) {
        memcpy(to + place_in(dimensions, to_frame, at), from + place_in(dimensions, from_frame, at), line_bytes);
        for (i = dimensions - 2; i >= 0 && ++at[i] == count[i]; i--)
            at[i] = 0;
    }
}
