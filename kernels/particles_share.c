#include "particles_share.h"

#include "common/failure.h"

#include <math.h>
#include <stdlib.h>

static double between_0_and_1(uint64_t word)
{
    return ((double)(word >> 11) + 0.5) / 9007199254740992.0;
}

/* A number of the standard normal distribution: the same for the same seed, rank and trial (Box and Muller 1958). */
static double normal_number(uint64_t seed, int rank, uint64_t trial)
{
    const double full_circle = 8 * atan(1);
    const double radius = sqrt(-2 * log(between_0_and_1(content_key(seed, (uint64_t)rank, 2 * trial))));
    return radius * cos(full_circle * between_0_and_1(content_key(seed, (uint64_t)rank, 2 * trial + 1)));
}

/* Drawn again until it lies between one row and as far beyond the mean: the mean stays what was asked for. */
uint64_t rows_of(const struct particles_settings *s, int rank)
{
    const double mean = (double)s->shape[0];
    double rows = mean;
    if (s->deviation > 0) {
        const double deviation = s->deviation / (double)row_elements(s);
        uint64_t trial = 0;
        do
            rows = round(mean + deviation * normal_number(s->common.seed, rank, trial++));
        while (rows < 1 || rows > 2 * mean - 1);
    }
    return (uint64_t)rows;
}

static bool alone_in_file(const struct particles_settings *s)
{
    return s->common.file_per_process;
}

static uint64_t rows_of_first(const struct particles_settings *s, int ranks)
{
    uint64_t rows = 0;
    if (s->deviation <= 0)
        return (uint64_t)ranks * s->shape[0];
    for (int r = 0; r < ranks; r++)
        rows += rows_of(s, r);
    return rows;
}

uint64_t rows_before(const struct particles_settings *s, int rank)
{
    return alone_in_file(s) ? 0 : rows_of_first(s, rank);
}

uint64_t rows_in_file(const struct particles_settings *s, int rank)
{
    return alone_in_file(s) ? rows_of(s, rank) : rows_of_first(s, s->ranks);
}

uint64_t final_rows(const struct particles_settings *s, int rank)
{
    return rows_in_file(s, rank) * (s->write_mode == WRITE_APPEND ? 2 : 1);
}

static bool takes_everything(const struct particles_settings *s, enum of_what what)
{
    return s->selection == SELECT_FULL || what == OF_FIRST || (what != OF_READ && !s->write_selected);
}

/* A fraction with few digits is not a double: 0.29 of 100 rows are 29, not 28. */
uint64_t partial_rows(const struct particles_settings *s, uint64_t rows)
{
    return (uint64_t)floor(s->fraction * (double)rows + 1e-6);
}

/* The selection's part of ROWS rows that begin at FIRST. */
static struct selection part_of(const struct particles_settings *s, uint64_t first, uint64_t rows)
{
    if (s->selection == SELECT_PARTIAL) {
        const uint64_t part = partial_rows(s, rows);
        return (struct selection){.first = first, .count = part > 0, .stride = part, .block = part};
    }
    const uint64_t fitting = rows < s->block ? 0 : (rows - s->block) / s->stride + 1;
    const uint64_t count = s->blocks > 0 && s->blocks < fitting ? s->blocks : fitting;
    return (struct selection){
        .first = first, .count = count, .stride = s->stride, .block = s->block, .scattered = true};
}

static struct region whole_region(const struct particles_settings *s, int owner)
{
    struct region region;
    const struct region_settings settings = {.form = (enum region_form)(s->selection - SELECT_REGION),
                                             .rows = final_rows(s, owner),
                                             .columns = s->shape[1],
                                             .block = {s->block, s->block_columns},
                                             .stride = {s->stride, s->stride_columns}};
    if (region_make(&region, &settings) != 0)
        stop_rank("out of memory for a selection of %llu x %llu blocks", (unsigned long long)s->block,
                  (unsigned long long)s->block_columns);
    return region;
}

/* Number INDEX of the SHARERS parts of COUNT elements begins here. */
static uint64_t part_begins(uint64_t count, uint64_t index, uint64_t sharers)
{
    const uint64_t left = count % sharers;
    return count / sharers * index + (index < left ? index : left);
}

struct share share_of(const struct particles_settings *s, int owner, enum of_what what)
{
    const uint64_t rows = rows_of(s, owner);
    const uint64_t first = rows_before(s, owner);
    const uint64_t stands = rows_in_file(s, owner);
    struct share share = {.row_elements = row_elements(s)};
    if (!takes_everything(s, what) && s->selection >= SELECT_REGION) {
        const uint64_t sharers = alone_in_file(s) ? 1 : (uint64_t)s->ranks;
        const uint64_t index = alone_in_file(s) ? 0 : (uint64_t)owner;
        share.of_region = true;
        share.region = whole_region(s, owner);
        share.from = region_row_at(&share.region, part_begins(share.region.elements, index, sharers));
        share.to = region_row_at(&share.region, part_begins(share.region.elements, index + 1, sharers));
    } else if (!takes_everything(s, what)) {
        share.selection = part_of(s, first, rows);
    } else if (s->write_mode == WRITE_APPEND && what != OF_FIRST) {
        /* The rank's rows of what stood there, and of what was appended. */
        share.selection =
            (struct selection){.first = first, .count = 2, .stride = stands, .block = rows, .scattered = true};
        if (what == OF_WRITE)
            share.selection = (struct selection){.first = stands + first, .count = 1, .stride = rows, .block = rows};
    } else {
        share.selection = (struct selection){.first = first, .count = 1, .stride = rows, .block = rows};
    }
    return share;
}

void share_free(struct share *share)
{
    if (share->of_region)
        region_free(&share->region);
}

uint64_t share_elements(const struct share *share)
{
    if (share->of_region)
        return region_elements_before(&share->region, share->to) - region_elements_before(&share->region, share->from);
    return selection_rows(&share->selection) * share->row_elements;
}

static struct selection cut_region(struct share *share, uint64_t elements)
{
    const struct region *region = &share->region;
    const uint64_t before = region_elements_before(region, share->from);
    uint64_t end = region_row_at(region, before + elements);
    if (region_elements_before(region, end) - before > elements)
        end--;
    end = end < share->to ? end : share->to;
    struct selection piece = {.box_count = region_boxes(region, share->from, end, NULL), .scattered = true};
    if (piece.box_count == 0)
        return piece;
    struct box *boxes = malloc(piece.box_count * sizeof *boxes);
    if (boxes == NULL)
        stop_rank("out of memory for %zu boxes", piece.box_count);
    region_boxes(region, share->from, end, boxes);
    piece.boxes = boxes;
    share->from = end;
    return piece;
}

struct selection share_cut(struct share *share, uint64_t elements)
{
    if (share->of_region)
        return cut_region(share, elements);
    struct selection *left = &share->selection;
    const uint64_t rows = elements / share->row_elements;
    struct selection piece = *left;
    if (left->count == 0)
        return piece;
    if (share->taken == 0 && left->block <= rows) {
        piece.count = left->count < rows / left->block ? left->count : rows / left->block;
        left->first += piece.count * left->stride;
        left->count -= piece.count;
        return piece;
    }
    const uint64_t rest = left->block - share->taken;
    piece.first += share->taken;
    piece.count = 1;
    piece.block = piece.stride = rest < rows ? rest : rows;
    share->taken += piece.block;
    if (share->taken == left->block) {
        share->taken = 0;
        left->first += left->stride;
        left->count--;
    }
    return piece;
}

void selection_free(struct selection *selection)
{
    free((void *)(uintptr_t)selection->boxes);
    *selection = (struct selection){0};
}

uint64_t elements_of_all(const struct particles_settings *s, enum of_what what)
{
    const uint64_t twice = s->write_mode == WRITE_APPEND && (what == OF_READ || what == OF_WRITTEN) ? 2 : 1;
    const int files = alone_in_file(s) ? s->ranks : 1;
    uint64_t elements = 0;
    if (takes_everything(s, what))
        return twice * rows_of_first(s, s->ranks) * row_elements(s);
    if (s->selection < SELECT_REGION) {
        for (int r = 0; r < s->ranks; r++) {
            const struct selection part = part_of(s, 0, rows_of(s, r));
            elements += selection_rows(&part) * row_elements(s);
        }
        return elements;
    }
    for (int f = 0; f < files; f++) {
        struct region region = whole_region(s, f);
        elements += region.elements;
        region_free(&region);
    }
    return elements;
}
