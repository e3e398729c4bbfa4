/* blocks: benchio's pattern. A 3-D array of doubles is divided among a 3-D grid of ranks; each has its block in memory
 * with halos around it, which are not written. Four kinds of writers: all ranks into one file, each into a file of its
 * own, one of each node for the node's ranks, or one for all. What was written is read back, another rank's block. */
#include "common/boxes.h"
#include "common/failure.h"
#include "common/gather.h"
#include "common/run.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSIONS = 3, WORD = 8 };
enum { SIZE_LOCAL, SIZE_GLOBAL };
enum { WRITERS_ALL, WRITERS_PROCESS, WRITERS_NODE, WRITERS_ONE };
enum { ALONG_SLOWEST, ALONG_FASTEST };
enum { STRIP_AUTO, STRIP_CALL, STRIP_COPY };

/* Memory that no data may come into or from: the halos, and the blocks before a read. */
static const int blank_byte = 0xff;
static const uint64_t blank_word = UINT64_MAX;

struct blocks_settings {
    struct common_settings common;
    struct dims size;
    int size_is;
    struct dims grid;
    int ranks_along;
    uint64_t halo;
    int strip;
    int writers;
    struct dims chunk;
    struct dims within;
    struct dims at;
    /* worked out by check */
    uint64_t processes[DIMENSIONS];
    uint64_t block[DIMENSIONS];  /* of a rank */
    uint64_t extent[DIMENSIONS]; /* of the whole array, as one file holds it */
};

#define FIELD(member) offsetof(struct blocks_settings, member)

static const struct option blocks_options[] = {
    {"size", OPTION_DIMS, FIELD(size), 1, INT_MAX, NULL, "elements of the array, the slowest dimension first"},
    {"size-is", OPTION_CHOICE, FIELD(size_is), 0, 0, "local|global", "of a rank's block, or of all blocks together"},
    {"grid", OPTION_DIMS, FIELD(grid), 0, INT_MAX, NULL,
     "ranks in each dimension; where 0, chosen as MPI_Dims_create does"},
    {"ranks-along", OPTION_CHOICE, FIELD(ranks_along), 0, 0, "slowest|fastest",
     "the dimension in which the next rank is the neighbour: benchio's, or a C program's"},
    {"halo", OPTION_COUNT, FIELD(halo), 0, 1 << 20, NULL, "elements around a block in memory, not written"},
    {"strip", OPTION_CHOICE, FIELD(strip), 0, 0, "auto|call|copy",
     "halos are left out by the data call, or by a copy before it; auto: copy for netCDF"},
    {"writers", OPTION_CHOICE, FIELD(writers), 0, 0, "all|process|node|one",
     "one file by all ranks; a file per process; per node, by one rank of it; one file by rank 0"},
    {"chunk", OPTION_DIMS, FIELD(chunk), 1, INT_MAX, NULL, "HDF5, netCDF: elements of a chunk; 0: contiguous"},
    {"within", OPTION_DIMS, FIELD(within), 1, INT_MAX, NULL,
     "the dataset is this large and the blocks are a part of it; the rest is never written; 0: they fill it"},
    {"at", OPTION_DIMS, FIELD(at), 0, INT_MAX, NULL, "where in it the first block begins; 0: at its begin"},
    {0}};

static void defaults(void *settings)
{
    struct blocks_settings *s = settings;
    s->size = (struct dims){.n = {128, 128, 128}, .count = DIMENSIONS};
    s->halo = 1;
}

/* One rank moves the data of several. */
static bool gathers(const struct blocks_settings *s)
{
    return s->writers == WRITERS_NODE || s->writers == WRITERS_ONE;
}

static const char *text_of(const uint64_t *n, char *buffer, size_t bytes)
{
    snprintf(buffer, bytes, "%llux%llux%llu", (unsigned long long)n[0], (unsigned long long)n[1],
             (unsigned long long)n[2]);
    return buffer;
}

static int check_dims(const char *name, const struct dims *dims, char *problem, size_t bytes)
{
    if (dims->count != 0 && dims->count != DIMENSIONS)
        return snprintf(problem, bytes, "--%s: %d numbers were given; 3 are expected, such as 64x64x64", name,
                        dims->count),
               -1;
    return 0;
}

static int choose_grid(struct blocks_settings *s, int ranks, char *problem, size_t bytes)
{
    int grid[DIMENSIONS] = {0};
    uint64_t given = 1;
    char text[64];
    bool open = false;
    for (int i = 0; i < DIMENSIONS; i++) {
        grid[i] = s->grid.count > 0 ? (int)s->grid.n[i] : 0;
        open = open || grid[i] == 0;
        if (grid[i] > 0 && checked_product(given, (uint64_t)grid[i], &given) != 0)
            given = INT64_MAX;
    }
    if ((uint64_t)ranks % given != 0 || (!open && given != (uint64_t)ranks))
        return snprintf(problem, bytes, "--grid %s: does not make %d, the number of ranks",
                        text_of(s->grid.n, text, sizeof text), ranks),
               -1;
    MPI_OK(MPI_Dims_create(ranks, DIMENSIONS, grid), "MPI");
    for (int i = 0; i < DIMENSIONS; i++)
        s->processes[i] = (uint64_t)grid[i];
    return 0;
}

/* The blocks' size from that of the array: what does not divide is refused, for a truncated array is another one. */
static int divide_size(struct blocks_settings *s, char *problem, size_t bytes)
{
    char fits[128] = "";
    char size[64];
    char grid[64];
    size_t used = 0;
    bool divides = true;
    for (int i = 0; i < DIMENSIONS; i++) {
        const uint64_t n = s->size.n[i];
        const uint64_t p = s->processes[i];
        const unsigned long long below = n / p * p;
        const char *separator = i > 0 ? " x " : "";
        s->block[i] = s->size_is == SIZE_GLOBAL ? n / p : n;
        if (s->size_is == SIZE_LOCAL || n % p == 0)
            used += (size_t)snprintf(fits + used, sizeof fits - used, "%s%llu", separator, (unsigned long long)n);
        else if (below == 0)
            used += (size_t)snprintf(fits + used, sizeof fits - used, "%s%llu", separator, (unsigned long long)p);
        else
            used += (size_t)snprintf(fits + used, sizeof fits - used, "%s(%llu or %llu)", separator, below,
                                     below + (unsigned long long)p);
        divides = divides && (s->size_is == SIZE_LOCAL || n % p == 0);
    }
    if (!divides)
        return snprintf(problem, bytes, "--size %s --size-is global: does not divide by the process grid %s; %s would",
                        text_of(s->size.n, size, sizeof size), text_of(s->processes, grid, sizeof grid), fits),
               -1;
    return 0;
}

/* The extent of the whole array, in numbers that MPI's types and a file offset hold. */
static int check_extent(struct blocks_settings *s, int ranks, char *problem, size_t bytes)
{
    uint64_t in_memory = WORD;
    uint64_t in_file = WORD;
    char text[64];
    bool fits = true;
    for (int i = 0; i < DIMENSIONS; i++) {
        const uint64_t all = s->block[i] * s->processes[i];
        s->extent[i] = s->within.count > 0 ? s->within.n[i] : all;
        if (s->within.count > 0 && s->at.n[i] + all > s->extent[i])
            return snprintf(problem, bytes,
                            "--within %s: dimension %d holds %llu elements; --at %llu and %llu of the "
                            "blocks are more",
                            text_of(s->within.n, text, sizeof text), i + 1, (unsigned long long)s->extent[i],
                            (unsigned long long)s->at.n[i], (unsigned long long)all),
                   -1;
        fits = fits && s->extent[i] <= INT_MAX && s->block[i] + 2 * s->halo <= INT_MAX &&
               checked_product(in_file, s->extent[i], &in_file) == 0 &&
               checked_product(in_memory, s->block[i] + 2 * s->halo, &in_memory) == 0;
    }
    if (!fits || checked_product(in_memory, (uint64_t)ranks, &in_memory) != 0)
        return snprintf(problem, bytes,
                        "--size %s on %d ranks: a dimension of 2^31 elements or more, or more bytes than a file offset "
                        "holds",
                        text_of(s->size.n, text, sizeof text), ranks),
               -1;
    return 0;
}

/* Extent of the file that holds the blocks of RANKS ranks. */
static void file_extent(const struct blocks_settings *s, uint64_t ranks, uint64_t *extent)
{
    const bool one_file = s->writers == WRITERS_ALL || s->writers == WRITERS_ONE;
    for (int i = 0; i < DIMENSIONS; i++)
        extent[i] = one_file ? s->extent[i] : s->block[i];
    if (s->writers == WRITERS_NODE)
        extent[0] *= ranks;
}

/* A dataset much larger than what is written of it must stay full of holes. */
static int check_within(const struct blocks_settings *s, const char *writers, char *problem, size_t bytes)
{
    const struct hdf5_settings *hdf5 = &s->common.hdf5;
    if (s->within.count > 0 && s->writers != WRITERS_ALL && s->writers != WRITERS_ONE)
        return snprintf(problem, bytes, "--within: with --writers %s the files hold the ranks' blocks and nothing else",
                        writers),
               -1;
    if (s->within.count > 0 && s->common.interface == INTERFACE_HDF5 &&
        (hdf5->fill == FILL_VALUE || hdf5->filter != FILTER_NONE || hdf5->driver == DRIVER_CORE))
        return snprintf(problem, bytes,
                        "--within: with --fill value, --compress or --driver core HDF5 makes the rest of "
                        "the dataset as well"),
               -1;
    return 0;
}

static int check_writers(struct blocks_settings *s, char *problem, size_t bytes)
{
    static const enum sharing sharing[] = {SHARING_ALL, SHARING_PROCESS, SHARING_NODE, SHARING_ONE};
    char word[32];
    if (s->common.file_per_process && s->writers == WRITERS_ALL)
        s->writers = WRITERS_PROCESS;
    option_choice("all|process|node|one", s->writers, word, sizeof word);
    if (s->common.file_per_process && s->writers != WRITERS_PROCESS)
        return snprintf(problem, bytes, "--writers %s: contradicts --file-per-process yes", word), -1;
    if (s->strip != STRIP_AUTO && gathers(s))
        return snprintf(problem, bytes, "--strip: with --writers %s messages leave the halos out", word), -1;
    s->common.file_per_process = s->writers == WRITERS_PROCESS;
    s->common.sharing = sharing[s->writers];
    return check_within(s, word, problem, bytes);
}

static int check(void *settings, int ranks, char *problem, size_t bytes)
{
    struct blocks_settings *s = settings;
    if (s->size.count == 0)
        return snprintf(problem, bytes, "--size 0: 3 numbers are expected, such as 64x64x64"), -1;
    if (s->at.count > 0 && s->within.count == 0)
        return snprintf(problem, bytes,
                        "--at: says where the blocks lie --within a larger dataset, which is not given"),
               -1;
    if (check_dims("size", &s->size, problem, bytes) != 0 || check_dims("grid", &s->grid, problem, bytes) != 0 ||
        check_dims("chunk", &s->chunk, problem, bytes) != 0 || check_dims("within", &s->within, problem, bytes) != 0 ||
        check_dims("at", &s->at, problem, bytes) != 0 || check_writers(s, problem, bytes) != 0 ||
        choose_grid(s, ranks, problem, bytes) != 0 || divide_size(s, problem, bytes) != 0 ||
        check_extent(s, ranks, problem, bytes) != 0)
        return -1;
    return 0;
}

static int files(const void *settings)
{
    (void)settings;
    return 1;
}

static uint64_t block_bytes(const struct blocks_settings *s)
{
    return s->block[0] * s->block[1] * s->block[2] * WORD;
}

/* The one dataset of a file with the blocks of RANKS ranks. */
static struct dataset dataset_of(const struct blocks_settings *s, uint64_t ranks)
{
    struct dataset dataset = {.name = "data", .element = ELEMENT_DOUBLE, .dimensions = DIMENSIONS};
    file_extent(s, ranks, dataset.extent);
    dataset.row_bytes = dataset.extent[1] * dataset.extent[2] * WORD;
    for (int i = 0; i < s->chunk.count; i++)
        dataset.chunk[i] = s->chunk.n[i];
    return dataset;
}

/* Bytes that are really written: the rest of a larger dataset stays a hole. */
static void layout(const void *settings, int ranks, struct layout *layout)
{
    const struct blocks_settings *s = settings;
    const bool one_file = s->writers == WRITERS_ALL || s->writers == WRITERS_ONE;
    layout->count = 1;
    layout->datasets = calloc(1, sizeof *layout->datasets);
    if (layout->datasets == NULL)
        stop_rank("out of memory");
    layout->datasets[0] = dataset_of(s, 1);
    layout->bytes = block_bytes(s) * (one_file ? (uint64_t)ranks : 1);
    layout->sparse = s->within.count > 0;
}

static void coordinates(const struct blocks_settings *s, int rank, uint64_t *coordinates)
{
    uint64_t rest = (uint64_t)rank;
    for (int i = 0; i < DIMENSIONS; i++) {
        const int d = s->ranks_along == ALONG_SLOWEST ? i : DIMENSIONS - 1 - i;
        coordinates[d] = rest % s->processes[d];
        rest /= s->processes[d];
    }
}

/* Where RANK's block lies in the whole array. */
static struct box box_of(const struct blocks_settings *s, int rank)
{
    struct box box = {0};
    uint64_t coordinate[DIMENSIONS];
    coordinates(s, rank, coordinate);
    for (int i = 0; i < DIMENSIONS; i++) {
        box.start[i] = s->at.n[i] + coordinate[i] * s->block[i];
        box.count[i] = s->block[i];
    }
    return box;
}

/* Of a file that one rank reads for others: all that there may be. */
static void rows(const void *settings, int ranks, int rank, uint64_t *first, uint64_t *count)
{
    const struct blocks_settings *s = settings;
    *first = s->writers == WRITERS_ALL ? box_of(s, rank).start[0] : 0;
    *count = s->block[0] * (gathers(s) ? (uint64_t)ranks : 1);
}

static uint64_t logical_bytes(const void *settings, int ranks, bool of_read)
{
    (void)of_read;
    return block_bytes(settings) * (uint64_t)ranks;
}

static uint64_t access_bytes(const void *settings)
{
    const struct blocks_settings *s = settings;
    return gathers(s) && block_bytes(s) > GATHER_BYTES ? GATHER_BYTES : block_bytes(s);
}

static bool needs_scratch(const void *settings)
{
    (void)settings;
    return false;
}

static bool copies(const struct blocks_settings *s)
{
    return s->halo > 0 && !gathers(s) &&
           (s->strip == STRIP_COPY || (s->strip == STRIP_AUTO && s->common.interface == INTERFACE_NETCDF));
}

static void describe_dims(struct json *json, const char *key, const uint64_t *n)
{
    json_open(json, key, '[');
    for (int i = 0; i < DIMENSIONS; i++)
        json_whole(json, NULL, n[i]);
    json_close(json, ']');
}

static void describe(const void *settings, struct json *json)
{
    const struct blocks_settings *s = settings;
    char word[32];
    uint64_t all[DIMENSIONS];
    for (int i = 0; i < DIMENSIONS; i++)
        all[i] = s->block[i] * s->processes[i];
    describe_dims(json, "block", s->block);
    describe_dims(json, "size", all);
    json_text(json, "size_is", option_choice("local|global", s->size_is, word, sizeof word));
    describe_dims(json, "grid", s->processes);
    json_text(json, "ranks_along", option_choice("slowest|fastest", s->ranks_along, word, sizeof word));
    json_whole(json, "halo", s->halo);
    json_text(json, "strip", s->halo == 0 ? "nothing" : gathers(s) ? "message" : copies(s) ? "copy" : "call");
    json_text(json, "writers", option_choice("all|process|node|one", s->writers, word, sizeof word));
    describe_dims(json, "chunk", s->chunk.n);
    describe_dims(json, "within", s->within.n);
    describe_dims(json, "at", s->at.n);
}

/* --- a block in memory ---------------------------------------------------------------------------------------- */

struct block {
    uint64_t *words;
    uint64_t *packed; /* without halos, where a copy leaves them out; else NULL */
    struct frame frame;
    uint64_t bytes; /* with halos */
};

static struct block make_block(const struct blocks_settings *s)
{
    struct block block = {.bytes = WORD};
    for (int i = 0; i < DIMENSIONS; i++) {
        block.frame.extent[i] = s->block[i] + 2 * s->halo;
        block.frame.start[i] = s->halo;
        block.bytes *= block.frame.extent[i];
    }
    block.words = run_memory(block.bytes);
    memset(block.words, blank_byte, block.bytes);
    if (copies(s))
        block.packed = run_memory(block_bytes(s));
    return block;
}

static void free_block(struct block *block)
{
    free(block->words);
    free(block->packed);
}

/* The word's place in the whole array is its index, whichever file it lies in. */
static void each_line(const struct run *run, const struct block *block, int owner,
                      void (*act)(uint64_t *words, uint64_t count, uint64_t key, uint64_t index, void *data),
                      void *data)
{
    const struct blocks_settings *s = run->settings;
    const struct box box = box_of(s, owner);
    const uint64_t key = content_key(s->common.seed, 0, 0);
    const uint64_t *frame = block->frame.extent;
    for (uint64_t i = 0; i < s->block[0]; i++)
        for (uint64_t j = 0; j < s->block[1]; j++) {
            uint64_t *line = block->words + ((i + s->halo) * frame[1] + j + s->halo) * frame[2] + s->halo;
            const uint64_t index = ((box.start[0] + i) * s->extent[1] + box.start[1] + j) * s->extent[2] + box.start[2];
            act(line, s->block[2], key, index, data);
        }
}

static void fill_line(uint64_t *words, uint64_t count, uint64_t key, uint64_t index, void *unused)
{
    (void)unused;
    content_fill64(words, count, key, index);
}

/* A line that was looked at is blank again, so that what is not blank in the end is in the halos. */
static void check_line(uint64_t *words, uint64_t count, uint64_t key, uint64_t index, void *mismatch)
{
    content_check64(words, count, key, index, mismatch);
    memset(words, blank_byte, count * sizeof *words);
}

static void check_block(struct run *run, const struct block *block)
{
    struct content_mismatch mismatch = {0};
    struct content_mismatch halo = {0};
    each_line(run, block, run->source, check_line, &mismatch);
    run_checked(run, block_bytes(run->settings), run->layout->datasets[0].name, 0, &mismatch);
    for (uint64_t i = block->bytes / WORD; i-- > 0;)
        if (block->words[i] != blank_word)
            halo = (struct content_mismatch){halo.count + 1, i, blank_word, block->words[i]};
    run_checked(run, 0, "data, halo in memory", 0, &halo);
}

/* --- the operations ------------------------------------------------------------------------------------------- */

/* Who opens whose file, who is to have whose block, and what gathering needs; made before anything is measured. */
struct company {
    int *openers; /* [ranks]: who opens the file with the rank's data */
    int *sources; /* [ranks]: whose block the rank moves */
    struct part *parts;
    uint64_t *pieces; /* on ranks that move other ranks' data */
};

static struct company make_company(const struct run *run, int source)
{
    const size_t ranks = (size_t)run->world->size;
    struct company company = {.openers = run_memory(ranks * sizeof *company.openers),
                              .sources = run_memory(ranks * sizeof *company.sources),
                              .parts = run_memory(ranks * sizeof *company.parts)};
    for (int r = 0; r < run->world->size; r++)
        company.openers[r] = run_opener(run, r);
    MPI_OK(MPI_Allgather(&source, 1, MPI_INT, company.sources, 1, MPI_INT, run->world->comm), "MPI");
    if (gathers(run->settings) && company.openers[run->world->rank] == run->world->rank)
        company.pieces = run_memory(2 * GATHER_BYTES);
    return company;
}

static void free_company(struct company *company)
{
    free(company->openers);
    free(company->sources);
    free(company->parts);
    free(company->pieces);
}

/* How many of the first RANKS ranks have their data in the file that HOME opens. */
static uint64_t sharers(const struct company *company, int home, int ranks)
{
    uint64_t count = 0;
    for (int r = 0; r < ranks; r++)
        count += company->openers[r] == home;
    return count;
}

/* OWNER's block in the file that holds it. */
static struct box box_in_file(const struct run *run, const struct company *company, int owner)
{
    const struct blocks_settings *s = run->settings;
    struct box box = box_of(s, owner);
    if (s->writers == WRITERS_PROCESS || s->writers == WRITERS_NODE)
        memset(box.start, 0, sizeof box.start);
    if (s->writers == WRITERS_NODE)
        box.start[0] = sharers(company, company->openers[owner], owner) * s->block[0];
    return box;
}

/* The ranks that this one serves with HOME's file and their boxes there; of a rank that is served, its own. */
static int collect_parts(const struct run *run, const struct company *company, int home)
{
    const int me = run->world->rank;
    int count = 0;
    for (int r = 0; r < run->world->size; r++) {
        const bool mine = r == me || company->openers[r] == me;
        if (mine && company->openers[company->sources[r]] == home)
            company->parts[count++] = (struct part){r, box_in_file(run, company, company->sources[r])};
    }
    return count;
}

/* All that HOME's file holds of the ranks' blocks. */
static struct box whole_of(const struct run *run, const struct company *company, int home)
{
    const struct blocks_settings *s = run->settings;
    struct box whole = {0};
    for (int i = 0; i < DIMENSIONS; i++) {
        const bool one = s->writers == WRITERS_ONE;
        whole.start[i] = one ? s->at.n[i] : 0;
        whole.count[i] = one ? s->block[i] * s->processes[i] : s->block[i];
    }
    if (s->writers == WRITERS_NODE)
        whole.count[0] *= sharers(company, home, run->world->size);
    return whole;
}

/* The measured calls where each rank moves its own block. */
static void move_own(const struct run *run, struct store *store, enum direction direction, const struct box *box,
                     const struct block *block)
{
    const struct blocks_settings *s = run->settings;
    const struct frame no_halo = {.extent = {s->block[0], s->block[1], s->block[2]}};
    if (block->packed == NULL) {
        store_move_box(store, 0, direction, box, s->halo > 0 ? &block->frame : NULL, block->words);
        return;
    }
    if (direction == DIRECTION_WRITE)
        box_copy64(DIMENSIONS, box->count, block->packed, &no_halo, block->words, &block->frame);
    store_move_box(store, 0, direction, box, NULL, block->packed);
    if (direction == DIRECTION_READ)
        box_copy64(DIMENSIONS, box->count, block->words, &block->frame, block->packed, &no_halo);
}

static struct store *open_file(const struct run *run, enum direction direction, const struct company *company, int home)
{
    const struct dataset dataset = dataset_of(run->settings, sharers(company, home, run->world->size));
    struct store *store;
    char path[4096];
    run_path(run, 0, home, path, sizeof path);
    if (direction == DIRECTION_WRITE) {
        store = store_create(path, &run->store);
        store_make_dataset(store, 0, &dataset);
    } else {
        store = store_open(path, &run->store);
        store_open_dataset(store, 0, &dataset);
    }
    return store;
}

static void close_file(const struct run *run, struct store *store, enum direction direction)
{
    stopwatch_start(run->watch, PHASE_FLUSH);
    if (direction == DIRECTION_WRITE && run->common->fsync)
        store_flush(store);
    stopwatch_stop(run->watch);
    stopwatch_start(run->watch, PHASE_CLOSE);
    store_close(store);
    stopwatch_stop(run->watch);
}

/* Every rank opens the file with OWNER's block, shared or not, and moves that block. */
static void move_directly(const struct run *run, enum direction direction, const struct company *company, int owner,
                          const struct block *block)
{
    const struct box box = box_in_file(run, company, owner);
    stopwatch_start(run->watch, PHASE_OPEN);
    struct store *store = open_file(run, direction, company, owner);
    stopwatch_stop(run->watch);
    stopwatch_start(run->watch, PHASE_TRANSFER);
    move_own(run, store, direction, &box, block);
    stopwatch_stop(run->watch);
    close_file(run, store, direction);
}

/* HOME's file, opened by one rank that moves the data of others: those wait for it to be open, and that is no transfer.
 */
static void move_through_one(const struct run *run, enum direction direction, const struct company *company, int home,
                             const struct block *block)
{
    const struct gather gather = {.comm = run->world->comm,
                                  .dimensions = DIMENSIONS,
                                  .whole = whole_of(run, company, home),
                                  .mover = company->openers[run->world->rank],
                                  .parts = company->parts,
                                  .count = collect_parts(run, company, home),
                                  .words = block->words,
                                  .frame = &block->frame,
                                  .pieces = company->pieces};
    const bool moves = gather.mover == run->world->rank;
    struct store *store = NULL;
    if (gather.count == 0)
        return;
    stopwatch_start(run->watch, PHASE_OPEN);
    if (moves)
        store = open_file(run, direction, company, home);
    gather_begin(&gather);
    stopwatch_stop(run->watch);
    stopwatch_start(run->watch, PHASE_TRANSFER);
    gather_move(&gather, store, direction);
    stopwatch_stop(run->watch);
    if (moves)
        close_file(run, store, direction);
}

static void move_blocks(struct run *run, enum direction direction, int owner)
{
    struct block block = make_block(run->settings);
    struct company company = make_company(run, owner);
    if (direction == DIRECTION_WRITE)
        each_line(run, &block, owner, fill_line, NULL);
    stopwatch_stretch(run->watch);
    if (!gathers(run->settings))
        move_directly(run, direction, &company, owner, &block);
    for (int home = 0; home < run->world->size && gathers(run->settings); home++)
        if (company.openers[home] == home)
            move_through_one(run, direction, &company, home, &block);
    if (direction == DIRECTION_READ)
        check_block(run, &block);
    free_company(&company);
    free_block(&block);
}

static void blocks_write(struct run *run)
{
    move_blocks(run, DIRECTION_WRITE, run->world->rank);
}

static void blocks_read(struct run *run)
{
    move_blocks(run, DIRECTION_READ, run->source);
}

static const struct pattern blocks = {
    .name = "blocks",
    .summary = "benchio's pattern: a 3-D array in blocks with halos, written by all ranks, by one, or one a node",
    .example = "mpirun -np 4 blocks --dir /scratch/me --size 128x128x128 --collective yes --baseline interface=mpiio",
    .options = blocks_options,
    .settings_bytes = sizeof(struct blocks_settings),
    .defaults = defaults,
    .check = check,
    .files = files,
    .layout = layout,
    .rows = rows,
    .logical_bytes = logical_bytes,
    .access_bytes = access_bytes,
    .needs_scratch = needs_scratch,
    .describe = describe,
    .netcdf = true,
    .write = blocks_write,
    .read = blocks_read};

int main(int argc, char **argv)
{
    return run_kernel(&blocks, argc, argv);
}
