/* segments: IOR's and h5perf's pattern. A dataset is a row of segments; in each segment every rank has a block, which
 * it moves in transfers. Blocks lie one after the other, or transfer by transfer in turn (interleaved). */
#include "common/failure.h"
#include "common/run.h"

#include <stdlib.h>
#include <string.h>

enum { LAYOUT_CONTIGUOUS, LAYOUT_INTERLEAVED, WORD = 8 };

/* Transfers are prepared, moved and checked in batches of about this many bytes: small enough to stay in a core's
 * cache, so that what is measured moves from the same place as in a program that uses one buffer again and again. */
static const uint64_t batch_bytes = 1 << 20;

struct segments_settings {
    struct common_settings common;
    uint64_t segments;
    uint64_t block_bytes;
    uint64_t transfer_bytes;
    int layout;
    uint64_t datasets;
    uint64_t files;
    uint64_t chunk_bytes;
};

#define FIELD(member) offsetof(struct segments_settings, member)

static const struct option segments_options[] = {
    {"segments", OPTION_COUNT, FIELD(segments), 1, OPTION_MAX, NULL, "blocks a rank has in a dataset"},
    {"block", OPTION_BYTES, FIELD(block_bytes), 8, OPTION_MAX, NULL, "bytes of a rank's block"},
    {"transfer", OPTION_BYTES, FIELD(transfer_bytes), 8, OPTION_MAX, NULL,
     "bytes moved by one call; divides the block"},
    {"layout", OPTION_CHOICE, FIELD(layout), 0, 0, "contiguous|interleaved", "ranks one after the other, or in turn"},
    {"datasets", OPTION_COUNT, FIELD(datasets), 1, 100000, NULL, "datasets in a file"},
    {"files", OPTION_COUNT, FIELD(files), 1, 100000, NULL, "files, one after the other"},
    {"chunk", OPTION_BYTES, FIELD(chunk_bytes), 0, 4294967288.0, NULL, "HDF5: bytes of a chunk; 0: contiguous"},
    {0}};

static void defaults(void *settings)
{
    struct segments_settings *s = settings;
    s->segments = 1;
    s->block_bytes = 64 << 20;
    s->transfer_bytes = 1 << 20;
    s->datasets = s->files = 1;
}

/* Ranks that share a file. */
static uint64_t sharers(const struct segments_settings *s, int ranks)
{
    return s->common.file_per_process ? 1 : (uint64_t)ranks;
}

static uint64_t dataset_bytes(const struct segments_settings *s, int ranks)
{
    return s->segments * s->block_bytes * sharers(s, ranks);
}

static int check(void *settings, int ranks, char *problem, size_t bytes)
{
    const struct segments_settings *s = settings;
    const unsigned long long block = s->block_bytes;
    const unsigned long long transfer = s->transfer_bytes;
    uint64_t product = 0;
    if (transfer % WORD != 0)
        return snprintf(problem, bytes, "--transfer %llu: not a multiple of 8", transfer), -1;
    if (block % transfer != 0)
        return snprintf(problem, bytes, "--transfer %llu: does not divide --block %llu", transfer, block), -1;
    if (checked_product(s->segments, block, &product) || checked_product(product, (uint64_t)ranks, &product) ||
        checked_product(product, s->datasets, &product) || checked_product(product, s->files, &product))
        return snprintf(
                   problem, bytes,
                   "--segments %llu times --block %llu times %d ranks, %llu datasets, %llu files: more bytes than a "
                   "file offset holds",
                   (unsigned long long)s->segments, block, ranks, (unsigned long long)s->datasets,
                   (unsigned long long)s->files),
               -1;
    if (s->chunk_bytes % WORD != 0)
        return snprintf(problem, bytes, "--chunk %llu: not a multiple of 8", (unsigned long long)s->chunk_bytes), -1;
    return 0;
}

static int files(const void *settings)
{
    return (int)((const struct segments_settings *)settings)->files;
}

static void layout(const void *settings, int ranks, struct layout *layout)
{
    const struct segments_settings *s = settings;
    const uint64_t alignment = s->common.alignment_bytes > 0 ? s->common.alignment_bytes : 1;
    layout->count = (int)s->datasets;
    layout->datasets = calloc(s->datasets, sizeof *layout->datasets);
    if (layout->datasets == NULL)
        stop_rank("out of memory for %d datasets", layout->count);
    for (int d = 0; d < layout->count; d++) {
        struct dataset *dataset = &layout->datasets[d];
        *dataset = (struct dataset){.element = ELEMENT_WORD64,
                                    .dimensions = 1,
                                    .extent = {dataset_bytes(s, ranks) / WORD},
                                    .row_bytes = WORD,
                                    .base_bytes = (layout->bytes + alignment - 1) / alignment * alignment,
                                    .chunk = {s->chunk_bytes / WORD}};
        snprintf(dataset->name, sizeof dataset->name, "dataset_%d", d);
        layout->bytes = dataset->base_bytes + dataset_bytes(s, ranks);
    }
}

static void rows(const void *settings, int ranks, int rank, uint64_t *first, uint64_t *count)
{
    const struct segments_settings *s = settings;
    const bool own_range = s->segments == 1 && s->layout == LAYOUT_CONTIGUOUS && !s->common.file_per_process;
    *count = own_range ? s->block_bytes / WORD : dataset_bytes(s, ranks) / WORD;
    *first = own_range ? (uint64_t)rank * *count : 0;
}

static uint64_t logical_bytes(const void *settings, int ranks, bool of_read)
{
    const struct segments_settings *s = settings;
    (void)of_read;
    return s->files * s->datasets * s->segments * s->block_bytes * (uint64_t)ranks;
}

static uint64_t access_bytes(const void *settings)
{
    return ((const struct segments_settings *)settings)->transfer_bytes;
}

static bool needs_scratch(const void *settings)
{
    (void)settings;
    return false;
}

static void describe(const void *settings, struct json *json)
{
    const struct segments_settings *s = settings;
    char word[32];
    json_whole(json, "segments", s->segments);
    json_whole(json, "block_bytes", s->block_bytes);
    json_whole(json, "transfer_bytes", s->transfer_bytes);
    json_text(json, "layout", option_choice("contiguous|interleaved", s->layout, word, sizeof word));
    json_whole(json, "datasets", s->datasets);
    json_whole(json, "files", s->files);
    json_whole(json, "chunk_bytes", s->chunk_bytes);
}

/* First row of transfer number T of RANK in a dataset. */
static uint64_t row_of(const struct segments_settings *s, uint64_t sharers_of_file, uint64_t rank, uint64_t t)
{
    const uint64_t per_block = s->block_bytes / s->transfer_bytes;
    const uint64_t segment = t / per_block * s->block_bytes * sharers_of_file;
    const uint64_t inside = s->layout == LAYOUT_CONTIGUOUS
                                ? rank * s->block_bytes + t % per_block * s->transfer_bytes
                                : (t % per_block * sharers_of_file + rank) * s->transfer_bytes;
    return (segment + inside) / WORD;
}

struct batch {
    uint64_t capacity; /* transfers */
    uint64_t *rows;    /* where each begins */
    uint8_t *memory;
};

static struct batch make_batch(const struct segments_settings *s)
{
    const uint64_t fitting = batch_bytes / s->transfer_bytes;
    struct batch batch = {.capacity = fitting > 0 ? fitting : 1};
    batch.rows = run_memory(batch.capacity * sizeof *batch.rows);
    batch.memory = run_memory(batch.capacity * s->transfer_bytes);
    return batch;
}

static void free_batch(struct batch *batch)
{
    free(batch->rows);
    free(batch->memory);
}

/* One dataset in one direction, OWNER's part of it. The measured loop is the one between start and stop. */
static void move_dataset(struct run *run, struct store *store, int file, int d, enum direction direction, int owner,
                         struct batch *batch)
{
    const struct segments_settings *s = run->settings;
    const uint64_t shared_by = sharers(s, run->world->size);
    const uint64_t place = s->common.file_per_process ? 0 : (uint64_t)owner;
    const uint64_t transfers = s->segments * (s->block_bytes / s->transfer_bytes);
    const uint64_t words = s->transfer_bytes / WORD;
    /* Files of one rank each hold different data. */
    const uint64_t file_id =
        s->common.file_per_process ? (uint64_t)file * (uint64_t)run->world->size + (uint64_t)owner : (uint64_t)file;
    const uint64_t key = content_key(s->common.seed, file_id * s->datasets + (uint64_t)d, 0);
    struct content_mismatch mismatch = {0};
    for (uint64_t first = 0; first < transfers; first += batch->capacity) {
        const uint64_t count = transfers - first < batch->capacity ? transfers - first : batch->capacity;
        stopwatch_start(run->watch, PHASE_PREPARE);
        for (uint64_t i = 0; i < count; i++) {
            batch->rows[i] = row_of(s, shared_by, place, first + i);
            if (direction == DIRECTION_WRITE)
                content_fill64((uint64_t *)(void *)(batch->memory + i * s->transfer_bytes), words, key, batch->rows[i]);
        }
        if (direction == DIRECTION_READ)
            memset(batch->memory, 0xff, count * s->transfer_bytes); /* nothing of an earlier read may pass the check */
        stopwatch_stop(run->watch);

        struct selection selection = {.count = 1, .stride = words, .block = words};
        stopwatch_start(run->watch, PHASE_TRANSFER);
        for (uint64_t i = 0; i < count; i++) {
            selection.first = batch->rows[i];
            store_move(store, d, direction, &selection, batch->memory + i * s->transfer_bytes);
        }
        stopwatch_stop(run->watch);

        if (direction == DIRECTION_READ) {
            stopwatch_start(run->watch, PHASE_PREPARE);
            for (uint64_t i = 0; i < count; i++)
                content_check64((const uint64_t *)(const void *)(batch->memory + i * s->transfer_bytes), words, key,
                                batch->rows[i], &mismatch);
            stopwatch_stop(run->watch);
        }
    }
    if (direction == DIRECTION_READ)
        run_checked(run, transfers * s->transfer_bytes, run->layout->datasets[d].name, 0, &mismatch);
}

static void segments_write(struct run *run)
{
    const struct segments_settings *s = run->settings;
    char path[4096];
    struct batch batch = make_batch(s);
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
    struct batch batch = make_batch(s);
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
    .summary = "IOR's and h5perf's pattern: segments, blocks and transfers in shared files or a file per process",
    .example =
        "mpirun -np 2 segments --dir /scratch/me --block 64M --transfer 1M --interface hdf5 --baseline interface=posix",
    .options = segments_options,
    .settings_bytes = sizeof(struct segments_settings),
    .defaults = defaults,
    .check = check,
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
