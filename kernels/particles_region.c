#include "particles_region.h"

#include <stdlib.h>

struct span {
    uint64_t first; /* column */
    uint64_t count;
};

/* Consecutive rows of the dataset with the same columns. */
struct band {
    uint64_t first_row; /* of the dataset */
    uint64_t rows;
    uint64_t rows_before; /* of the region */
    uint64_t elements_before;
    uint64_t row_elements;
    size_t first_span;
    size_t spans;
};

struct block {
    uint64_t row;
    uint64_t rows;
    uint64_t column;
    uint64_t columns;
};

/* The cross stencil has a block at the origin, and one at every further stride as long as it ends before the last row
 * and before the last column: h5bench's rule. */
static size_t stencil_blocks(const struct region_settings *s)
{
    if (s->block[0] >= s->rows || s->block[1] >= s->columns)
        return 1;
    const uint64_t down = (s->rows - s->block[0] - 1) / s->stride[0];
    const uint64_t right = (s->columns - s->block[1] - 1) / s->stride[1];
    return (size_t)(down < right ? down : right) + 1;
}

/* The blocks whose union the region is, from top to bottom; they may overlap. */
static struct block *make_blocks(const struct region_settings *s, size_t *count)
{
    const uint64_t bottom = s->rows - s->block[0];
    const uint64_t right = s->columns - s->block[1];
    *count = s->form == REGION_CS ? stencil_blocks(s) : s->form == REGION_PRL ? 4 : 2;
    struct block *blocks = malloc(*count * sizeof *blocks);
    if (blocks == NULL)
        return NULL;
    for (size_t i = 0; i < *count; i++)
        blocks[i] = (struct block){.rows = s->block[0], .columns = s->block[1]};
    switch (s->form) {
    case REGION_LDC:
        blocks[1].row = bottom;
        blocks[1].column = right;
        break;
    case REGION_RDC:
        blocks[0].column = right;
        blocks[1].row = bottom;
        break;
    case REGION_PRL:
        blocks[0].columns = blocks[3].columns = s->columns;
        blocks[1].rows = blocks[2].rows = s->rows;
        blocks[2].column = right;
        blocks[3].row = bottom;
        break;
    case REGION_CS:
        for (size_t i = 0; i < *count; i++) {
            blocks[i].row = i * s->stride[0];
            blocks[i].column = i * s->stride[1];
        }
        break;
    }
    return blocks;
}

/* Room for one more of SIZE bytes behind COUNT: arrays grow at powers of two. */
static void *with_room(void *array, size_t count, size_t size)
{
    const bool full = (count & (count - 1)) == 0;
    return full ? realloc(array, (count == 0 ? 1 : 2 * count) * size) : array;
}

/* Add the columns of BLOCK to the last band's, which stay sorted. */
static int add_span(struct region *region, struct band *band, const struct block *block)
{
    struct span *spans = with_room(region->spans, region->span_count, sizeof *spans);
    if (spans == NULL)
        return -1;
    region->spans = spans;
    size_t place = region->span_count++;
    for (; place > band->first_span && spans[place - 1].first > block->column; place--)
        spans[place] = spans[place - 1];
    spans[place] = (struct span){.first = block->column, .count = block->columns};
    return 0;
}

/* Spans of the last band that overlap or touch become one. */
static void merge_spans(struct region *region, struct band *band)
{
    struct span *spans = region->spans;
    size_t last = band->first_span;
    for (size_t i = last + 1; i < region->span_count; i++) {
        const uint64_t end = spans[last].first + spans[last].count;
        const uint64_t other = spans[i].first + spans[i].count;
        if (spans[i].first > end)
            spans[++last] = spans[i];
        else if (other > end)
            spans[last].count = other - spans[last].first;
    }
    region->span_count = last + 1;
    band->spans = region->span_count - band->first_span;
    for (size_t i = band->first_span; i < region->span_count; i++)
        band->row_elements += spans[i].count;
}

/* The band that begins at ROW of the dataset: of all BLOCKS that hold the row, the columns; down to where one of them
 * ends or another begins. Returns the row behind it, 0 without memory. */
static uint64_t add_band(struct region *region, const struct block *blocks, size_t count, uint64_t row)
{
    struct band *bands = with_room(region->bands, region->band_count, sizeof *bands);
    if (bands == NULL)
        return 0;
    region->bands = bands;
    struct band *band = &bands[region->band_count++];
    *band = (struct band){.first_row = row,
                          .rows_before = region->rows,
                          .elements_before = region->elements,
                          .first_span = region->span_count};
    uint64_t end = UINT64_MAX;
    size_t i = 0;
    for (; i < count && blocks[i].row <= row; i++) {
        const uint64_t block_end = blocks[i].row + blocks[i].rows;
        if (block_end <= row)
            continue;
        if (add_span(region, band, &blocks[i]) != 0)
            return 0;
        end = block_end < end ? block_end : end;
    }
    if (i < count && blocks[i].row < end)
        end = blocks[i].row;
    merge_spans(region, band);
    band->rows = end - row;
    region->rows += band->rows;
    region->elements += band->rows * band->row_elements;
    return end;
}

int region_make(struct region *region, const struct region_settings *settings)
{
    size_t count = 0;
    struct block *blocks = make_blocks(settings, &count);
    *region = (struct region){0};
    if (blocks == NULL)
        return -1;
    uint64_t row = 0;
    for (size_t oldest = 0; oldest < count;) {
        if (blocks[oldest].row + blocks[oldest].rows <= row) {
            oldest++;
            continue;
        }
        if (blocks[oldest].row > row)
            row = blocks[oldest].row;
        row = add_band(region, blocks + oldest, count - oldest, row);
        if (row == 0) {
            free(blocks);
            region_free(region);
            return -1;
        }
    }
    free(blocks);
    return 0;
}

void region_free(struct region *region)
{
    free(region->bands);
    free(region->spans);
    *region = (struct region){0};
}

/* The last band that begins at or before row ROW of the region, or, BY_ELEMENTS, at or before that element. */
static const struct band *band_of(const struct region *region, uint64_t number, bool by_elements)
{
    size_t low = 0;
    size_t high = region->band_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        const struct band *band = &region->bands[middle];
        if ((by_elements ? band->elements_before : band->rows_before) <= number)
            low = middle;
        else
            high = middle;
    }
    return &region->bands[low];
}

uint64_t region_row_at(const struct region *region, uint64_t element)
{
    const struct band *band = band_of(region, element, true);
    const uint64_t behind = element - band->elements_before;
    const uint64_t row = band->rows_before + (behind + band->row_elements - 1) / band->row_elements;
    return row < region->rows ? row : region->rows;
}

uint64_t region_elements_before(const struct region *region, uint64_t row)
{
    const struct band *band = band_of(region, row, false);
    return band->elements_before + (row - band->rows_before) * band->row_elements;
}

void region_reach(const struct region *region, uint64_t from, uint64_t to, uint64_t *first, uint64_t *rows)
{
    const struct band *begin = band_of(region, from, false);
    const struct band *end = band_of(region, to > from ? to - 1 : from, false);
    *first = begin->first_row + from - begin->rows_before;
    *rows = to > from ? end->first_row + (to - end->rows_before) - *first : 0;
}

size_t region_boxes(const struct region *region, uint64_t from, uint64_t to, struct box *boxes)
{
    size_t count = 0;
    if (from >= to)
        return 0;
    for (const struct band *band = band_of(region, from, false);
         band < region->bands + region->band_count && band->rows_before < to; band++) {
        const uint64_t begin = from > band->rows_before ? from - band->rows_before : 0;
        const uint64_t end = to - band->rows_before < band->rows ? to - band->rows_before : band->rows;
        for (size_t i = 0; i < band->spans; i++, count++)
            if (boxes != NULL)
                boxes[count] =
                    (struct box){.start = {band->first_row + begin, region->spans[band->first_span + i].first},
                                 .count = {end - begin, region->spans[band->first_span + i].count}};
    }
    return count;
}
