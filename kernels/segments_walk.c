#include "segments_walk.h"

#include <string.h>

static uint64_t product(const uint64_t *values, int count)
{
    uint64_t result = 1;
    for (int i = 0; i < count; i++)
        result *= values[i];
    return result;
}

struct walk walk_of_segments(uint64_t sharers, uint64_t segments, uint64_t block, uint64_t transfer, bool interleaved)
{
    const uint64_t word = element_bytes(ELEMENT_WORD64);
    const uint64_t parts = transfer < block ? block / transfer : 1;
    const uint64_t blocks = transfer > block ? transfer / block : 1;
    const uint64_t part = (transfer < block ? transfer : block) / word;
    const uint64_t segment = sharers * block / word;
    return (struct walk){.element = ELEMENT_WORD64,
                         .dimensions = 1,
                         .extent = {segments * segment},
                         .transfer = {part},
                         .blocks = blocks,
                         .block_stride = segment,
                         .place_stride = interleaved ? part : block / word,
                         .loops = {{.count = parts, .stride = interleaved ? sharers * part : part},
                                   {.count = segments / blocks, .stride = blocks * segment}},
                         .loop_count = 2};
}

struct walk walk_of_boxes(uint64_t sharers, int dimensions, const uint64_t *extent, const uint64_t *transfer,
                          const int *order, bool interleaved)
{
    const int shared = interleaved ? dimensions - 1 : 0;
    struct walk walk = {.element = ELEMENT_BYTE,
                        .dimensions = dimensions,
                        .blocks = 1,
                        .place_dimension = shared,
                        .place_stride = interleaved ? transfer[shared] : extent[shared] / sharers,
                        .loop_count = dimensions};
    for (int i = 0; i < dimensions; i++) {
        const int d = order[i];
        walk.extent[d] = extent[d];
        walk.transfer[d] = transfer[d];
        walk.loops[i] = (struct walk_loop){.dimension = d, .count = extent[d] / transfer[d], .stride = transfer[d]};
        if (d == shared) {
            walk.loops[i].count /= sharers;
            walk.loops[i].stride *= interleaved ? sharers : 1;
        }
    }
    return walk;
}

uint64_t walk_transfers(const struct walk *walk)
{
    uint64_t transfers = 1;
    for (int i = 0; i < walk->loop_count; i++)
        transfers *= walk->loops[i].count;
    return transfers;
}

uint64_t walk_transfer_bytes(const struct walk *walk)
{
    return product(walk->transfer, walk->dimensions) * walk->blocks * element_bytes(walk->element);
}

uint64_t walk_dataset_bytes(const struct walk *walk)
{
    return product(walk->extent, walk->dimensions) * element_bytes(walk->element);
}

void walk_start(const struct walk *walk, uint64_t place, uint64_t transfer, uint64_t *start)
{
    memset(start, 0, STORE_DIMENSIONS * sizeof *start);
    start[walk->place_dimension] = place * walk->place_stride;
    for (int i = 0; i < walk->loop_count; i++) {
        const struct walk_loop *loop = &walk->loops[i];
        start[loop->dimension] += transfer % loop->count * loop->stride;
        transfer /= loop->count;
    }
}

bool walk_grow(const struct walk *walk, const uint64_t *start, uint64_t *extent)
{
    bool grown = false;
    for (int i = 0; i < walk->dimensions; i++) {
        const uint64_t end = start[i] + (walk->blocks - 1) * walk->block_stride + walk->transfer[i];
        grown = grown || end > extent[i];
        extent[i] = end > extent[i] ? end : extent[i];
    }
    return grown;
}

/* A transfer's memory is a row of runs that lie together in the dataset: its blocks, or its lines along the fastest
 * dimension. */
static uint64_t runs(const struct walk *walk)
{
    return walk->blocks * product(walk->transfer, walk->dimensions - 1);
}

/* Place of a run's first element in the dataset, row-major. */
static uint64_t run_index(const struct walk *walk, const uint64_t *start, uint64_t run)
{
    const int last = walk->dimensions - 1;
    uint64_t index = start[last] + run % walk->blocks * walk->block_stride;
    uint64_t elements = walk->extent[last];
    run /= walk->blocks;
    for (int i = last - 1; i >= 0; i--) {
        index += (start[i] + run % walk->transfer[i]) * elements;
        elements *= walk->extent[i];
        run /= walk->transfer[i];
    }
    return index;
}

void walk_fill(const struct walk *walk, const uint64_t *start, uint64_t key, void *memory)
{
    const uint64_t length = walk->transfer[walk->dimensions - 1];
    for (uint64_t r = 0; r < runs(walk); r++)
        if (walk->element == ELEMENT_BYTE)
            content_fill8((uint8_t *)memory + r * length, length, key, run_index(walk, start, r));
        else
            content_fill64((uint64_t *)memory + r * length, length, key, run_index(walk, start, r));
}

void walk_check(const struct walk *walk, const uint64_t *start, uint64_t key, const void *memory,
                struct content_mismatch *mismatch)
{
    const uint64_t length = walk->transfer[walk->dimensions - 1];
    for (uint64_t r = 0; r < runs(walk); r++)
        if (walk->element == ELEMENT_BYTE)
            content_check8((const uint8_t *)memory + r * length, length, key, run_index(walk, start, r), mismatch);
        else
            content_check64((const uint64_t *)memory + r * length, length, key, run_index(walk, start, r), mismatch);
}

void walk_move(const struct walk *walk, const uint64_t *start, struct store *store, int slot, enum direction direction,
               void *memory)
{
    if (walk->element == ELEMENT_BYTE) {
        struct box box = {{0}, {0}};
        memcpy(box.start, start, sizeof box.start);
        memcpy(box.count, walk->transfer, sizeof box.count);
        store_move_box(store, slot, direction, &box, NULL, memory);
    } else {
        const struct selection blocks = {.first = start[0],
                                         .count = walk->blocks,
                                         .stride = walk->blocks > 1 ? walk->block_stride : walk->transfer[0],
                                         .block = walk->transfer[0]};
        store_move(store, slot, direction, &blocks, memory);
    }
}
