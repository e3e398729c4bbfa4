/* tiles: hdf5_iotest's pattern. Steps of a simulation, in each a number of 2-D arrays; every rank has a tile of each
 * array. The same arrays are laid out in datasets of rank 2 (one an array and step), 3 (one a step, or one an array) or
 * 4 (one in all): logically the same data, written in very different ways. */
#include "common/cases.h"
#include "common/failure.h"
#include "common/ini.h"
#include "common/run.h"

#include <stdlib.h>
#include <string.h>

enum { SCALING_WEAK, SCALING_STRONG };
enum { SLOWEST_STEP, SLOWEST_ARRAY };
enum { LAYOUT_CONTIGUOUS, LAYOUT_CHUNKED };
enum { IO_INDEPENDENT, IO_COLLECTIVE, IO_POSIX, IO_CORE, IO_MPI_UNI };
enum { SUITE_NONE, SUITE_BASELINE, SUITE_PRODUCT };
enum { WORD = 8, MOST_SWEEPS = 16 };

struct tiles_settings {
    struct common_settings common;
    const char *ini;
    int suite;
    uint64_t steps;
    uint64_t arrays;
    uint64_t rows;
    uint64_t columns;
    uint64_t process_rows; /* 0: as many as there are ranks */
    uint64_t process_columns;
    int scaling;
    uint64_t rank;
    int slowest;
    int layout;
    int io;
    double delay_seconds;
    /* Worked out by check: a rank's tile, and the whole array. */
    uint64_t tile[2];
    uint64_t whole[2];
};

#define FIELD(member) offsetof(struct tiles_settings, member)

static const struct option tiles_options[] = {
    {"ini", OPTION_TEXT, FIELD(ini), 0, 0, NULL,
     "hdf5_iotest's configuration; the whole product unless one-case is set"},
    {"suite", OPTION_CHOICE, FIELD(suite), 0, 0, "none|baseline|product",
     "sweep over rank, slowest, layout, fill and libver: single-process, or independent and collective"},
    {"steps", OPTION_COUNT, FIELD(steps), 1, 1000000, NULL, "time steps"},
    {"arrays", OPTION_COUNT, FIELD(arrays), 1, 1000000, NULL, "2-D arrays in a step"},
    {"rows", OPTION_COUNT, FIELD(rows), 2, OPTION_MAX, NULL, "of an array: a rank's (weak) or in all (strong)"},
    {"columns", OPTION_COUNT, FIELD(columns), 2, OPTION_MAX, NULL, "likewise"},
    {"process-rows", OPTION_COUNT, FIELD(process_rows), 0, 1000000, NULL, "of the process grid; 0: all ranks"},
    {"process-columns", OPTION_COUNT, FIELD(process_columns), 1, 1000000, NULL, "of the process grid"},
    {"scaling", OPTION_CHOICE, FIELD(scaling), 0, 0, "weak|strong",
     "rows and columns are a rank's, or the whole array's"},
    {"rank", OPTION_COUNT, FIELD(rank), 2, 4, NULL, "dimensions of the datasets"},
    {"slowest", OPTION_CHOICE, FIELD(slowest), 0, 0, "step|array", "slowest changing dimension"},
    {"layout", OPTION_CHOICE, FIELD(layout), 0, 0, "contiguous|chunked", "HDF5: of the datasets; a tile is a chunk"},
    {"io", OPTION_CHOICE, FIELD(io), 0, 0, "independent|collective|posix|core|mpi-io-uni",
     "all ranks through MPI-IO, or rank 0 alone through HDF5's sec2, core or mpio driver"},
    ASYNC_OPTION,
    {"delay", OPTION_REAL, FIELD(delay_seconds), 0, 86400, NULL, "seconds between steps, not counted"},
    {0}};

static void defaults(void *settings)
{
    struct tiles_settings *s = settings;
    s->steps = 4;
    s->arrays = 16;
    s->rows = 100;
    s->columns = 200;
    s->process_columns = 1;
    s->rank = 2;
    s->common.collective_metadata = true;
    s->common.hdf5.alignment_threshold_bytes = 0;
}

/* --- hdf5_iotest's configuration ---------------------------------------------------------------------------------- */

/* A key of hdf5_iotest and the option that it is here. */
struct ini_key {
    const char *key;
    const char *option; /* NULL: handled by name */
};

static const struct ini_key ini_keys[] = {{"steps", "steps"},
                                          {"arrays", "arrays"},
                                          {"rows", "rows"},
                                          {"columns", "columns"},
                                          {"process-rows", "process-rows"},
                                          {"process-columns", "process-columns"},
                                          {"scaling", "scaling"},
                                          {"dataset-rank", "rank"},
                                          {"slowest-dimension", "slowest"},
                                          {"layout", "layout"},
                                          {"libver-bound-low", "libver"},
                                          {"mpi-io", "io"},
                                          {"alignment-threshold", "alignment-threshold"},
                                          {"meta-block-size", "meta-block"},
                                          {"one-case", "cases"},
                                          {"gzip", "compress-level"},
                                          {"alignment-increment", NULL},
                                          {"libver-bound-high", NULL},
                                          {"fill-values", NULL},
                                          {"single-process", NULL},
                                          {"split", NULL},
                                          {"szip", NULL},
                                          {"async", NULL},
                                          {"delay", NULL},
                                          {"restart", NULL},
                                          {"version", NULL},
                                          {"hdf5-file", NULL},
                                          {"csv-file", NULL},
                                          {NULL, NULL}};

static int only(const char *key, const char *value, const char *allowed, char *problem, size_t bytes)
{
    if (strcmp(value, allowed) == 0)
        return 0;
    return snprintf(problem, bytes, "%s = %s: allowed: %s", key, value, allowed), -1;
}

/* The position of VALUE among "a|b|c", or -1 with PROBLEM filled. */
static int one_of(const char *key, const char *value, const char *allowed, char *problem, size_t bytes)
{
    char word[64];
    for (int i = 0; *option_choice(allowed, i, word, sizeof word) != '\0'; i++)
        if (strcmp(word, value) == 0)
            return i;
    snprintf(problem, bytes, "%s = %s: allowed: %s", key, value, allowed);
    return -1;
}

/* "10", "10 s", "500 ms", "2 min" and "20 us" as hdf5_iotest reads them. */
static int take_delay(struct tiles_settings *s, const char *value, char *problem, size_t bytes)
{
    char *unit = NULL;
    const double seconds_of[] = {1.0, 1.0, 60.0, 60.0, 1e-3, 1e-6};
    const double number = strtod(value, &unit);
    while (*unit == ' ')
        unit++;
    const int kind = *unit == '\0' ? 0 : one_of("delay's unit", unit, "s|sec|m|min|ms|us", problem, bytes);
    if (unit == value || number < 0)
        return snprintf(problem, bytes, "delay = %s: a number with s, min, ms or us is expected", value), -1;
    s->delay_seconds = number * seconds_of[kind < 0 ? 0 : kind];
    return kind < 0 ? -1 : 0;
}

/* "H5_SZIP_NN_OPTION_MASK, 8" */
static int take_szip(struct tiles_settings *s, const char *value, char *problem, size_t bytes)
{
    char mask[64] = "";
    unsigned pixels = 0;
    if (sscanf(value, "%63[A-Z0-9_a-z] , %u", mask, &pixels) != 2 || pixels < 2 || pixels > 32)
        return snprintf(problem, bytes, "szip = %s: MASK, PIXELS is expected, such as H5_SZIP_NN_OPTION_MASK, 8",
                        value),
               -1;
    s->common.hdf5.filter = FILTER_SZIP;
    s->common.hdf5.szip_pixels = pixels;
    s->common.hdf5.szip_coding = one_of("szip", mask, "H5_SZIP_NN_OPTION_MASK|H5_SZIP_EC_OPTION_MASK", problem, bytes);
    return s->common.hdf5.szip_coding < 0 ? -1 : 0;
}

/* Keys that are no option of the same values. */
static int take_by_name(struct tiles_settings *s, const char *key, const char *value, char *problem, size_t bytes)
{
    struct common_settings *common = &s->common;
    if (strcmp(key, "version") == 0)
        return only(key, value, "0", problem, bytes);
    if (strcmp(key, "libver-bound-high") == 0)
        return only(key, value, "latest", problem, bytes);
    if (strcmp(key, "delay") == 0)
        return take_delay(s, value, problem, bytes);
    if (strcmp(key, "szip") == 0)
        return take_szip(s, value, problem, bytes);
    if (strcmp(key, "alignment-increment") == 0) {
        const char *const increment = strcmp(value, "1") == 0 ? "0" : value; /* 1: anywhere */
        char *end = NULL;
        common->alignment_bytes = strtoull(increment, &end, 10);
        if (*end != '\0' || end == increment)
            return snprintf(problem, bytes, "%s = %s: a number of bytes is expected", key, value), -1;
        return 0;
    }
    int position = 0;
    if (strcmp(key, "fill-values") == 0) {
        position = one_of(key, value, "true|false", problem, bytes);
        common->hdf5.fill = position == 0 ? FILL_VALUE : FILL_NEVER;
    } else if (strcmp(key, "single-process") == 0) {
        position = one_of(key, value, "posix|core|mpi-io-uni", problem, bytes);
        s->io = IO_POSIX + position;
    } else if (strcmp(key, "split") == 0) {
        position = one_of(key, value, "0|1", problem, bytes);
        common->hdf5.driver = position == 1 ? DRIVER_SPLIT : DRIVER_DEFAULT;
    } else if (strcmp(key, "restart") == 0) {
        position = one_of(key, value, "0|1", problem, bytes);
        common->resume = position == 1;
    } else if (strcmp(key, "async") == 0) {
        position = one_of(key, value, "0|1", problem, bytes);
        common->hdf5.async = position == 1 ? ASYNC_EXPLICIT : ASYNC_NO;
    }
    return position < 0 ? -1 : 0; /* hdf5-file, csv-file: --dir and --json say where */
}

struct ini_target {
    struct tiles_settings *settings;
    uint64_t seen; /* a bit a key: a key given twice is an error */
};

static int take_key(void *data, const char *key, const char *value, char *problem, size_t bytes)
{
    const struct option *const tables[] = {common_options, tiles_options, NULL};
    struct ini_target *target = data;
    const struct ini_key *known = ini_keys;
    char change[512];
    char why[1024] = "";
    while (known->key != NULL && strcmp(known->key, key) != 0)
        known++;
    if (known->key == NULL)
        return snprintf(problem, bytes, "unknown key %s; hdf5_iotest's are expected (docs/knobs.md)", key), -1;
    const uint64_t bit = UINT64_C(1) << (known - ini_keys);
    if (target->seen & bit)
        return snprintf(problem, bytes, "key %s is given a second time", key), -1;
    target->seen |= bit;
    if (strcmp(key, "gzip") == 0)
        target->settings->common.hdf5.filter = FILTER_GZIP;
    if (known->option == NULL)
        return take_by_name(target->settings, key, value, problem, bytes);
    snprintf(change, sizeof change, "%s=%s", known->option, value);
    if (options_override("ini", change, tables, target->settings, why, sizeof why) != 0)
        return snprintf(problem, bytes, "%s = %s: %s", key, value, why), -1;
    return 0;
}

/* --- the product of cases ----------------------------------------------------------------------------------------- */

static bool is_swept(const struct text_list *sweeps, const char *name)
{
    for (int i = 0; i < sweeps->count; i++)
        if (strncmp(sweeps->items[i], name, strlen(name)) == 0 && sweeps->items[i][strlen(name)] == '=')
            return true;
    return false;
}

/* Unless the option is swept already, in the order of hdf5_iotest's loops: case numbers are the same as there. */
static int add_sweep(struct tiles_settings *s, const char *name, const char *values, char *problem, size_t bytes)
{
    struct text_list *sweeps = &s->common.sweeps;
    char text[256];
    snprintf(text, sizeof text, "%s=%s", name, values);
    if (!is_swept(sweeps, name) && text_list_add(sweeps, text) != 0)
        return snprintf(problem, bytes, "out of memory"), -1;
    return 0;
}

/* hdf5_iotest sweeps over a second value of these only where one is set. */
static int add_second(struct tiles_settings *s, const char *name, uint64_t first, uint64_t second, char *problem,
                      size_t bytes)
{
    char values[64];
    snprintf(values, sizeof values, "%llu|%llu", (unsigned long long)first, (unsigned long long)second);
    return first == second ? 0 : add_sweep(s, name, values, problem, bytes);
}

static int add_product(struct tiles_settings *s, const char *io, char *problem, size_t bytes)
{
    enum { HDF5_META_BLOCK_BYTES = 2048 };
    const uint64_t meta = s->common.hdf5.meta_block_bytes;
    if (add_sweep(s, "rank", "2|3|4", problem, bytes) != 0 ||
        add_sweep(s, "slowest", "step|array", problem, bytes) != 0 ||
        add_sweep(s, "layout", "contiguous|chunked", problem, bytes) != 0 ||
        add_sweep(s, "fill", "value|never", problem, bytes) != 0 ||
        add_second(s, "alignment", 0, s->common.alignment_bytes, problem, bytes) != 0 ||
        add_second(s, "meta-block", HDF5_META_BLOCK_BYTES, meta == 0 ? HDF5_META_BLOCK_BYTES : meta, problem, bytes) !=
            0 ||
        add_sweep(s, "libver", "earliest|latest", problem, bytes) != 0)
        return -1;
    return add_sweep(s, "io", io, problem, bytes);
}

static int prepare(void *settings, char *problem, size_t bytes)
{
    struct tiles_settings *s = settings;
    char single[64];
    int ranks = 0;
    MPI_OK(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI");
    if (s->ini != NULL) {
        struct ini_target target = {.settings = s};
        s->suite = SUITE_PRODUCT;
        if (ini_read(s->ini, "DEFAULT", take_key, &target, problem, bytes) != 0)
            return -1;
        if (s->common.resume && s->common.json == NULL)
            return snprintf(problem, bytes, "%s: restart = 1: --json is needed", s->ini), -1;
    }
    if (s->common.interface != INTERFACE_HDF5)
        s->common.collective_metadata = false;
    if (s->suite == SUITE_BASELINE)
        return add_product(s, "posix|core|mpi-io-uni", problem, bytes);
    if (s->suite == SUITE_NONE)
        return 0;
    option_choice("independent|collective|posix|core|mpi-io-uni", s->io, single, sizeof single);
    if (ranks == 1)
        return add_product(s, s->io < IO_POSIX ? "posix" : single, problem, bytes);
    return add_product(s, "independent|collective", problem, bytes);
}

/* --- one case ------------------------------------------------------------------------------------------------------
 */

/* What --io stands for in the options that every kernel has. */
static void adjust(void *settings)
{
    struct tiles_settings *s = settings;
    struct common_settings *common = &s->common;
    const int single[] = {[IO_POSIX] = DRIVER_SEC2, [IO_CORE] = DRIVER_CORE, [IO_MPI_UNI] = DRIVER_MPIO};
    if (common->collective && s->io == IO_INDEPENDENT)
        s->io = IO_COLLECTIVE;
    common->collective = s->io == IO_COLLECTIVE && common->interface != INTERFACE_POSIX;
    if (s->io >= IO_POSIX) {
        common->processes = 1;
        s->process_rows = s->process_columns = 1;
        common->collective_metadata = s->io == IO_MPI_UNI && common->interface == INTERFACE_HDF5;
        if (common->hdf5.driver != DRIVER_SPLIT)
            common->hdf5.driver = single[s->io];
    }
    /* A filter needs chunks, and ranks that write together: the other cases of a product go without. */
    if (s->suite != SUITE_NONE && (s->layout == LAYOUT_CONTIGUOUS || s->io == IO_INDEPENDENT))
        common->hdf5.filter = FILTER_NONE;
    if (s->io == IO_MPI_UNI && common->hdf5.filter != FILTER_NONE)
        common->collective = true;
}

static int check(void *settings, int ranks, char *problem, size_t bytes)
{
    struct tiles_settings *s = settings;
    uint64_t product = WORD;
    const uint64_t process_rows = s->process_rows == 0 ? (uint64_t)ranks / s->process_columns : s->process_rows;
    const uint64_t grid[2] = {process_rows, s->process_columns};
    const uint64_t asked[2] = {s->rows, s->columns};
    const char *const names[2] = {"rows", "columns"};
    if (process_rows * s->process_columns != (uint64_t)ranks)
        return snprintf(problem, bytes,
                        "--process-rows %llu times --process-columns %llu: is not the %d ranks there are",
                        (unsigned long long)process_rows, (unsigned long long)s->process_columns, ranks),
               -1;
    s->process_rows = process_rows;
    for (int i = 0; i < 2; i++) {
        if (s->scaling == SCALING_STRONG && asked[i] % grid[i] != 0)
            return snprintf(problem, bytes, "--%s %llu: --process-%s %llu does not divide it", names[i],
                            (unsigned long long)asked[i], names[i], (unsigned long long)grid[i]),
                   -1;
        s->tile[i] = s->scaling == SCALING_STRONG ? asked[i] / grid[i] : asked[i];
        s->whole[i] = s->tile[i] * grid[i];
        if (checked_product(product, s->whole[i], &product))
            product = INT64_MAX;
    }
    if (checked_product(product, s->steps, &product) || checked_product(product, s->arrays, &product))
        return snprintf(problem, bytes,
                        "--rows %llu times --columns %llu, %llu arrays and %llu steps: more bytes than a file offset "
                        "holds",
                        (unsigned long long)s->rows, (unsigned long long)s->columns, (unsigned long long)s->arrays,
                        (unsigned long long)s->steps),
               -1;
    if (s->common.hdf5.async != ASYNC_NO && s->common.interface != INTERFACE_HDF5)
        return snprintf(problem, bytes, "--async: only through HDF5"), -1;
    if (s->common.file_per_process)
        return snprintf(problem, bytes, "--file-per-process yes: the ranks of tiles share their arrays"), -1;
    if (s->layout == LAYOUT_CHUNKED && s->common.interface != INTERFACE_HDF5)
        s->layout = LAYOUT_CONTIGUOUS; /* a baseline: the raw interfaces know no chunks */
    return 0;
}

static int files(const void *settings)
{
    (void)settings;
    return 1;
}

static bool step_is_slowest(const struct tiles_settings *s)
{
    return s->slowest == SLOWEST_STEP;
}

/* The dataset that holds array ARRAY of step STEP. */
static int dataset_of(const struct tiles_settings *s, uint64_t step, uint64_t array)
{
    if (s->rank == 4)
        return 0;
    if (s->rank == 3)
        return (int)(step_is_slowest(s) ? step : array);
    return (int)(step_is_slowest(s) ? step * s->arrays + array : array * s->steps + step);
}

static uint64_t count_datasets(const struct tiles_settings *s)
{
    const uint64_t of_rank[] = {0, 0, s->steps * s->arrays, step_is_slowest(s) ? s->steps : s->arrays, 1};
    return of_rank[s->rank];
}

/* Extents and chunks as hdf5_iotest has them; the step dimension of chunked datasets can grow. */
static struct dataset shape_of(const struct tiles_settings *s, int number)
{
    const bool chunked = s->layout == LAYOUT_CHUNKED;
    const int slow = (int)s->rank - 2;
    const uint64_t slowest = step_is_slowest(s) ? s->steps : s->arrays;
    const uint64_t second = step_is_slowest(s) ? s->arrays : s->steps;
    const uint64_t position = (uint64_t)number;
    struct dataset dataset = {.element = ELEMENT_WORD64, .dimensions = (int)s->rank};
    for (int i = 0; i < 2; i++) {
        dataset.extent[slow + i] = s->whole[i];
        dataset.chunk[slow + i] = chunked ? s->tile[i] : 0;
    }
    if (s->rank == 2)
        snprintf(dataset.name, sizeof dataset.name,
                 step_is_slowest(s) ? "step=%llu/array=%llu" : "array=%llu/step=%llu",
                 (unsigned long long)(position / second), (unsigned long long)(position % second));
    if (s->rank == 3) {
        snprintf(dataset.name, sizeof dataset.name, step_is_slowest(s) ? "step=%d" : "array=%d", number);
        dataset.extent[0] = second;
        dataset.chunk[0] = chunked ? 1 : 0;
        dataset.unlimited = chunked && !step_is_slowest(s) ? 1u : 0u;
    }
    if (s->rank == 4) {
        snprintf(dataset.name, sizeof dataset.name, "dataset");
        dataset.extent[0] = slowest;
        dataset.extent[1] = second;
        dataset.chunk[0] = chunked ? (step_is_slowest(s) ? 1 : s->arrays) : 0;
        dataset.chunk[1] = chunked ? (step_is_slowest(s) ? s->arrays : 1) : 0;
        dataset.unlimited = chunked ? (step_is_slowest(s) ? 1u : 2u) : 0u;
    }
    return dataset;
}

static void layout(const void *settings, int ranks, struct layout *layout)
{
    const struct tiles_settings *s = settings;
    const uint64_t alignment = s->common.alignment_bytes > 0 ? s->common.alignment_bytes : 1;
    (void)ranks;
    layout->count = (int)count_datasets(s);
    layout->datasets = calloc((size_t)layout->count, sizeof *layout->datasets);
    if (layout->datasets == NULL)
        stop_rank("out of memory for %d datasets", layout->count);
    for (int d = 0; d < layout->count; d++) {
        struct dataset *dataset = &layout->datasets[d];
        *dataset = shape_of(s, d);
        dataset->row_bytes = WORD;
        for (int i = 1; i < dataset->dimensions; i++)
            dataset->row_bytes *= dataset->extent[i];
        dataset->base_bytes = (layout->bytes + alignment - 1) / alignment * alignment;
        layout->bytes = dataset->base_bytes + dataset->extent[0] * dataset->row_bytes;
    }
}

static void rows(const void *settings, int ranks, int rank, uint64_t *first, uint64_t *count)
{
    const struct tiles_settings *s = settings;
    const struct dataset dataset = shape_of(s, 0);
    (void)ranks;
    *first = s->rank == 2 ? (uint64_t)rank / s->process_columns * s->tile[0] : 0;
    *count = s->rank == 2 ? s->tile[0] : dataset.extent[0];
}

static uint64_t logical_bytes(const void *settings, int ranks, bool of_read)
{
    const struct tiles_settings *s = settings;
    (void)ranks;
    (void)of_read;
    return s->steps * s->arrays * s->whole[0] * s->whole[1] * WORD;
}

static uint64_t access_bytes(const void *settings)
{
    const struct tiles_settings *s = settings;
    return s->tile[0] * s->tile[1] * WORD;
}

static bool needs_scratch(const void *settings)
{
    (void)settings;
    return false;
}

static void describe(const void *settings, struct json *json)
{
    const struct tiles_settings *s = settings;
    char word[32];
    json_whole(json, "steps", s->steps);
    json_whole(json, "arrays", s->arrays);
    json_whole(json, "rows", s->rows);
    json_whole(json, "columns", s->columns);
    json_whole(json, "process_rows", s->process_rows);
    json_whole(json, "process_columns", s->process_columns);
    json_text(json, "scaling", option_choice("weak|strong", s->scaling, word, sizeof word));
    json_whole(json, "rank", s->rank);
    json_text(json, "slowest", option_choice("step|array", s->slowest, word, sizeof word));
    json_text(json, "layout", option_choice("contiguous|chunked", s->layout, word, sizeof word));
    json_text(json, "io", option_choice("independent|collective|posix|core|mpi-io-uni", s->io, word, sizeof word));
    json_real(json, "compute_seconds", s->delay_seconds);
}

/* RANK's tile of an array, in the dataset that holds it. */
static struct box tile_box(const struct tiles_settings *s, int rank, uint64_t step, uint64_t array)
{
    const int slow = (int)s->rank - 2;
    const uint64_t at[2] = {(uint64_t)rank / s->process_columns, (uint64_t)rank % s->process_columns};
    struct box box = {0};
    for (int i = 0; i < 2; i++) {
        box.start[slow + i] = at[i] * s->tile[i];
        box.count[slow + i] = s->tile[i];
    }
    if (s->rank == 3)
        box.start[0] = step_is_slowest(s) ? array : step;
    if (s->rank == 4) {
        box.start[0] = step_is_slowest(s) ? step : array;
        box.start[1] = step_is_slowest(s) ? array : step;
    }
    for (int i = 0; i < slow; i++)
        box.count[i] = 1;
    return box;
}

/* Row R of the tile begins at this element of its dataset. */
static uint64_t element_at(const struct dataset *dataset, const struct box *box, uint64_t r)
{
    uint64_t place = 0;
    for (int i = 0; i < dataset->dimensions; i++)
        place = place * dataset->extent[i] + box->start[i] + (i == dataset->dimensions - 2 ? r : 0);
    return place;
}

static void fill_tile(struct run *run, int d, const struct box *box, uint64_t *memory)
{
    const struct tiles_settings *s = run->settings;
    const uint64_t key = content_key(s->common.seed, (uint64_t)d, 0);
    stopwatch_start(run->watch, PHASE_PREPARE);
    for (uint64_t r = 0; r < s->tile[0]; r++)
        content_fill64(memory + r * s->tile[1], s->tile[1], key, element_at(&run->layout->datasets[d], box, r));
    stopwatch_stop(run->watch);
}

static void check_tile(struct run *run, int d, const struct box *box, const uint64_t *memory, uint64_t step)
{
    const struct tiles_settings *s = run->settings;
    const uint64_t key = content_key(s->common.seed, (uint64_t)d, 0);
    struct content_mismatch mismatch = {0};
    stopwatch_start(run->watch, PHASE_PREPARE);
    for (uint64_t r = 0; r < s->tile[0]; r++)
        content_check64(memory + r * s->tile[1], s->tile[1], key, element_at(&run->layout->datasets[d], box, r),
                        &mismatch);
    run_checked(run, access_bytes(s), run->layout->datasets[d].name, step, &mismatch);
    stopwatch_stop(run->watch);
}

/* The dataset of (STEP, ARRAY) becomes the one that is open; a first visit makes it. One is open at a time, as in
 * hdf5_iotest. */
static void turn_to(struct run *run, struct store *store, enum direction direction, uint64_t step, uint64_t array,
                    int *open)
{
    const struct tiles_settings *s = run->settings;
    const int d = dataset_of(s, step, array);
    const bool first_visit = s->rank != 3 || step_is_slowest(s) || step == 0;
    if (d == *open)
        return;
    stopwatch_start(run->watch, PHASE_OPEN);
    if (direction == DIRECTION_WRITE && first_visit)
        store_make_dataset(store, 0, &run->layout->datasets[d]);
    else
        store_open_dataset(store, 0, &run->layout->datasets[d]);
    stopwatch_stop(run->watch);
    *open = d;
}

/* Tiles that are in memory at once: of all arrays of a step where the calls go on in the background. */
static uint64_t tiles_in_memory(const struct tiles_settings *s)
{
    return s->common.hdf5.async == ASYNC_EXPLICIT ? s->arrays : 1;
}

/* The data calls of one step. */
static void move_step(struct run *run, struct store *store, enum direction direction, int owner, uint64_t step,
                      uint64_t *memory, int *open)
{
    const struct tiles_settings *s = run->settings;
    for (uint64_t array = 0; array < s->arrays; array++) {
        const struct box box = tile_box(s, owner, step, array);
        uint64_t *tile = memory + array % tiles_in_memory(s) * s->tile[0] * s->tile[1];
        turn_to(run, store, direction, step, array, open);
        if (direction == DIRECTION_WRITE)
            fill_tile(run, *open, &box, tile);
        stopwatch_start(run->watch, PHASE_TRANSFER);
        store_move_box(store, 0, direction, &box, NULL, tile);
        stopwatch_stop(run->watch);
        if (direction == DIRECTION_READ && tiles_in_memory(s) == 1)
            check_tile(run, *open, &box, tile, step);
    }
}

/* Until the calls of a step are done that go on in the background; what they read is checked. */
static void finish_step(struct run *run, struct store *store, enum direction direction, int owner, uint64_t step,
                        const uint64_t *memory)
{
    const struct tiles_settings *s = run->settings;
    if (s->common.hdf5.async != ASYNC_EXPLICIT)
        return;
    stopwatch_start(run->watch, PHASE_TRANSFER);
    store_wait(store, 0);
    stopwatch_stop(run->watch);
    for (uint64_t array = 0; array < s->arrays && direction == DIRECTION_READ; array++) {
        const struct box box = tile_box(s, owner, step, array);
        check_tile(run, dataset_of(s, step, array), &box, memory + array * s->tile[0] * s->tile[1], step);
    }
}

static void move_tiles(struct run *run, struct store *store, enum direction direction, int owner)
{
    const struct tiles_settings *s = run->settings;
    uint64_t *memory = run_memory(tiles_in_memory(s) * access_bytes(s));
    int open = -1;
    for (uint64_t step = 0; step < s->steps; step++) {
        store_batch(store, 0);
        move_step(run, store, direction, owner, step, memory, &open);
        if (step + 1 < s->steps && s->delay_seconds > 0) {
            store_start_background(store);
            run_pause(s->delay_seconds);
        }
        finish_step(run, store, direction, owner, step, memory);
    }
    free(memory);
}

static void tiles_write(struct run *run)
{
    char path[4096];
    run_path(run, 0, run->world->rank, path, sizeof path);
    stopwatch_stretch(run->watch);
    stopwatch_start(run->watch, PHASE_OPEN);
    struct store *store = store_create(path, &run->store);
    stopwatch_stop(run->watch);
    move_tiles(run, store, DIRECTION_WRITE, run->world->rank);
    stopwatch_start(run->watch, PHASE_FLUSH);
    if (run->common->fsync)
        store_flush(store);
    stopwatch_stop(run->watch);
    stopwatch_start(run->watch, PHASE_CLOSE);
    store_close(store);
    stopwatch_stop(run->watch);
}

static void tiles_read(struct run *run)
{
    char path[4096];
    run_path(run, 0, run->source, path, sizeof path);
    stopwatch_stretch(run->watch);
    stopwatch_start(run->watch, PHASE_OPEN);
    struct store *store = store_open(path, &run->store);
    stopwatch_stop(run->watch);
    move_tiles(run, store, DIRECTION_READ, run->source);
    stopwatch_start(run->watch, PHASE_CLOSE);
    store_close(store);
    stopwatch_stop(run->watch);
}

static const struct pattern tiles = {
    .name = "tiles",
    .summary = "hdf5_iotest's pattern: 2-D tiles of arrays over time steps, in datasets of rank 2, 3 or 4",
    .example = "mpirun -np 2 tiles --dir /scratch/me --suite product --json tiles.jsonl",
    .options = tiles_options,
    .settings_bytes = sizeof(struct tiles_settings),
    .defaults = defaults,
    .prepare = prepare,
    .adjust = adjust,
    .check = check,
    .files = files,
    .layout = layout,
    .rows = rows,
    .logical_bytes = logical_bytes,
    .access_bytes = access_bytes,
    .needs_scratch = needs_scratch,
    .describe = describe,
    .write = tiles_write,
    .read = tiles_read};

int main(int argc, char **argv)
{
    return run_kernel(&tiles, argc, argv);
}
