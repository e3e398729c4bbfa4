/* segments: IOR's, h5perf's and h5perf_serial's patterns. A dataset is a row of segments; in each segment every rank
 * has a block, which it moves in transfers, several or a part of one at a time. Or it is an array of up to four
 * dimensions, which the ranks share along the slowest one or in turn, and move in boxes, dimension after dimension in
 * any order. */
#include "common/failure.h"
#include "common/run.h"
#include "segments_sizes.h"

#include <stdlib.h>
#include <string.h>

static int files(const void *settings)
{
    return (int)((const struct segments_settings *)settings)->files;
}

static void layout(const void *settings, int ranks, struct layout *layout)
{
    const struct segments_settings *s = settings;
    const struct walk *walk = &s->walk;
    const uint64_t alignment = s->common.alignment_bytes > 0 ? s->common.alignment_bytes : 1;
    (void)ranks;
    layout->count = (int)s->datasets;
    layout->datasets = calloc(s->datasets, sizeof *layout->datasets);
    if (layout->datasets == NULL)
        stop_rank("out of memory for %d datasets", layout->count);
    for (int d = 0; d < layout->count; d++) {
        struct dataset *dataset = &layout->datasets[d];
        *dataset = (struct dataset){.element = walk->element,
                                    .dimensions = walk->dimensions,
                                    .row_bytes = walk_dataset_bytes(walk) / walk->extent[0],
                                    .base_bytes = (layout->bytes + alignment - 1) / alignment * alignment};
        for (int i = 0; i < walk->dimensions; i++) {
            dataset->extent[i] = walk->extent[i];
            dataset->chunk[i] = s->chunk.n[i] / element_bytes(walk->element);
        }
        if (s->grow)
            memcpy(dataset->first_extent, walk->transfer, sizeof dataset->first_extent);
        snprintf(dataset->name, sizeof dataset->name, "dataset_%d", d);
        layout->bytes = dataset->base_bytes + walk_dataset_bytes(walk);
    }
}

static void rows(const void *settings, int ranks, int rank, uint64_t *first, uint64_t *count)
{
    const struct segments_settings *s = settings;
    const struct walk *walk = &s->walk;
    const bool whole_blocks = walk->element == ELEMENT_BYTE || s->segments == 1;
    const bool own_range = whole_blocks && s->layout == LAYOUT_CONTIGUOUS && !s->common.file_per_process;
    *count = own_range ? walk->extent[0] / (uint64_t)ranks : walk->extent[0];
    *first = own_range ? (uint64_t)rank * *count : 0;
}

static uint64_t logical_bytes(const void *settings, int ranks, bool of_read)
{
    const struct segments_settings *s = settings;
    (void)of_read;
    return s->files * s->datasets * walk_dataset_bytes(&s->walk) * ((uint64_t)ranks / segments_sharers(s, ranks));
}

static uint64_t access_bytes(const void *settings)
{
    return walk_transfer_bytes(&((const struct segments_settings *)settings)->walk);
}

static bool needs_scratch(const void *settings)
{
    (void)settings;
    return false;
}

static void describe_dims(struct json *json, const char *name, const struct dims *dims)
{
    json_open(json, name, '[');
    for (int i = 0; i < dims->count; i++)
        json_whole(json, NULL, dims->n[i]);
    json_close(json, ']');
}

static void describe(const void *settings, struct json *json)
{
    const struct segments_settings *s = settings;
    char word[32];
    uint64_t chunk_bytes = s->chunk.count > 0;
    for (int i = 0; i < s->chunk.count; i++)
        chunk_bytes *= s->chunk.n[i];
    if (s->dims.count > 0) {
        describe_dims(json, "dims", &s->dims);
        describe_dims(json, "transfer_dims", &s->transfer_dims);
        describe_dims(json, "order", &s->order);
    } else {
        json_whole(json, "segments", s->segments);
        json_whole(json, "block_bytes", s->block_bytes);
        json_whole(json, "transfer_bytes", s->transfer_bytes);
    }
    if (s->geometry == GEOMETRY_2D)
        json_text(json, "geometry", "2d");
    json_text(json, "layout", option_choice("contiguous|interleaved", s->layout, word, sizeof word));
    json_whole(json, "datasets", s->datasets);
    json_whole(json, "files", s->files);
    json_whole(json, "chunk_bytes", chunk_bytes);
    if (s->chunk.count > 1)
        describe_dims(json, "chunk_dims", &s->chunk);
    if (s->grow && s->common.interface == INTERFACE_HDF5)
        json_truth(json, "grow", true);
}

/* Transfers are prepared, moved and checked in batches of about this many bytes: small enough to stay in a core's
 * cache, so that what is measured moves from the same place as in a program that uses one buffer again and again. */
static const uint64_t batch_bytes = 1 << 20;

struct batch {
    uint64_t capacity;                    /* transfers */
    uint64_t (*starts)[STORE_DIMENSIONS]; /* where each begins */
    uint8_t *memory;
};

static struct batch make_batch(const struct walk *walk)
{
    const uint64_t fitting = batch_bytes / walk_transfer_bytes(walk);
    struct batch batch = {.capacity = fitting > 0 ? fitting : 1};
    batch.starts = run_memory(batch.capacity * sizeof *batch.starts);
    batch.memory = run_memory(batch.capacity * walk_transfer_bytes(walk));
    return batch;
}

static void free_batch(struct batch *batch)
{
    free(batch->starts);
    free(batch->memory);
}

/* One dataset in one direction, OWNER's part of it. The measured loop is the one between start and stop. */
static void move_dataset(struct run *run, struct store *store, int file, int d, enum direction direction, int owner,
                         struct batch *batch)
{
    const struct segments_settings *s = run->settings;
    const struct walk *walk = &s->walk;
    const uint64_t place = s->common.file_per_process ? 0 : (uint64_t)owner;
    const uint64_t transfers = walk_transfers(walk);
    const uint64_t bytes = walk_transfer_bytes(walk);
    const bool grows = s->grow && direction == DIRECTION_WRITE;
    /* Files of one rank each hold different data. */
    const uint64_t file_id =
        s->common.file_per_process ? (uint64_t)file * (uint64_t)run->world->size + (uint64_t)owner : (uint64_t)file;
    const uint64_t key = content_key(s->common.seed, file_id * s->datasets + (uint64_t)d, 0);
    uint64_t extent[STORE_DIMENSIONS];
    struct content_mismatch mismatch = {0};
    memcpy(extent, walk->transfer, sizeof extent);
    for (uint64_t first = 0; first < transfers; first += batch->capacity) {
        const uint64_t count = transfers - first < batch->capacity ? transfers - first : batch->capacity;
        stopwatch_start(run->watch, PHASE_PREPARE);
        for (uint64_t i = 0; i < count; i++) {
            walk_start(walk, place, first + i, batch->starts[i]);
            if (direction == DIRECTION_WRITE)
                walk_fill(walk, batch->starts[i], key, batch->memory + i * bytes);
        }
        if (direction == DIRECTION_READ)
            memset(batch->memory, 0xff, count * bytes); /* nothing of an earlier read may pass the check */
        stopwatch_stop(run->watch);

        stopwatch_start(run->watch, PHASE_TRANSFER);
        for (uint64_t i = 0; i < count; i++) {
            if (grows && walk_grow(walk, batch->starts[i], extent))
                store_extend(store, d, extent);
            walk_move(walk, batch->starts[i], store, d, direction, batch->memory + i * bytes);
        }
        stopwatch_stop(run->watch);

        if (direction == DIRECTION_READ) {
            stopwatch_start(run->watch, PHASE_PREPARE);
            for (uint64_t i = 0; i < count; i++)
                walk_check(walk, batch->starts[i], key, batch->memory + i * bytes, &mismatch);
            stopwatch_stop(run->watch);
        }
    }
    if (direction == DIRECTION_READ)
        run_checked(run, transfers * bytes, run->layout->datasets[d].name, 0, &mismatch);
}

static void segments_write(struct run *run)
{
    const struct segments_settings *s = run->settings;
    char path[4096];
    struct batch batch = make_batch(&s->walk);
    for (int f = 0; f < files(s); f++) {
        run_path(run, f, run->world->rank, path, sizeof path);
        stopwatch_stretch(run->watch);
        stopwatch_start(run->watch, PHASE_OPEN);
        struct store *store = store_create(path, &run->store);
        for (int d = 0; d < run->layout->count; d++)
            store_make_dataset(store, d, &run->layout->datasets[d]);
        stopwatch_stop(run->watch);
        for (int d = 0; d < run->layout->count; d++)
            move_dataset(run, store, f, d, DIRECTION_WRITE, run->world->rank, &batch);
        stopwatch_start(run->watch, PHASE_FLUSH);
        if (s->common.fsync)
            store_flush(store);
        stopwatch_stop(run->watch);
        stopwatch_start(run->watch, PHASE_CLOSE);
        store_close(store);
        stopwatch_stop(run->watch);
    }
    free_batch(&batch);
}

static void segments_read(struct run *run)
{
    const struct segments_settings *s = run->settings;
    char path[4096];
    struct batch batch = make_batch(&s->walk);
    for (int f = 0; f < files(s); f++) {
        run_path(run, f, run->source, path, sizeof path);
        stopwatch_stretch(run->watch);
        stopwatch_start(run->watch, PHASE_OPEN);
        struct store *store = store_open(path, &run->store);
        for (int d = 0; d < run->layout->count; d++)
            store_open_dataset(store, d, &run->layout->datasets[d]);
        stopwatch_stop(run->watch);
        for (int d = 0; d < run->layout->count; d++)
            move_dataset(run, store, f, d, DIRECTION_READ, run->source, &batch);
        stopwatch_start(run->watch, PHASE_CLOSE);
        store_close(store);
        stopwatch_stop(run->watch);
    }
    free_batch(&batch);
}

static const struct pattern segments = {
    .name = "segments",
    .summary =
        "IOR's and h5perf's pattern: segments, blocks and transfers, or boxes of an array, in shared or private files",
    .example =
        "mpirun -np 2 segments --dir /scratch/me --block 64M --transfer 1M --interface hdf5 --baseline interface=posix",
    .options = segments_options,
    .settings_bytes = sizeof(struct segments_settings),
    .defaults = segments_defaults,
    .check = segments_check,
    .files = files,
    .layout = layout,
    .rows = rows,
    .logical_bytes = logical_bytes,
    .access_bytes = access_bytes,
    .needs_scratch = needs_scratch,
    .describe = describe,
    .write = segments_write,
    .read = segments_read};

int main(int argc, char **argv)
{
    return run_kernel(&segments, argc, argv);
}
