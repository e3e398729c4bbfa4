/* particles: VPIC-IO's write and BD-CATS-IO's read as h5bench has them. Every rank has particles of eight members,
 * written in time steps with emulated computing between. Locality says how members lie in memory and in the file:
 * contiguous (an array a member) or interleaved (an array of particles): CC, CI, IC, II. */
#include "common/cases.h"
#include "common/failure.h"
#include "particles_moves.h"
#include "particles_share.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#define FIELD(member) offsetof(struct particles_settings, member)

static const char localities[] = "CC|CI|IC|II";
static const char selections[] = "full|partial|strided|LDC|RDC|PRL|CS";
static const char write_modes[] = "new|overwrite|append";

/* Steps after which a step's datasets are closed: so many that the file is closed first. */
enum { CLOSED_WITH_FILE = 1000000 };

static const struct option particles_options[] = {
    {"particles", OPTION_COUNT, FIELD(particles), 1, OPTION_MAX, NULL, "particles a rank has in a step"},
    {"stdev", OPTION_REAL, FIELD(deviation), 0, OPTION_MAX, NULL,
     "of the ranks' particles: drawn from a normal distribution; 0: all ranks have --particles"},
    {"dimensions", OPTION_COUNT, FIELD(dimensions), 1, 3, NULL, "of the arrays; ranks divide the slowest"},
    {"columns", OPTION_COUNT, FIELD(columns), 0, OPTION_MAX, NULL,
     "second dimension; 0: as near to a square as can be"},
    {"layers", OPTION_COUNT, FIELD(layers), 0, OPTION_MAX, NULL, "third dimension; 0: as near to a cube as can be"},
    {"steps", OPTION_COUNT, FIELD(steps), 1, 1000000, NULL, "time steps"},
    {"compute-seconds", OPTION_REAL, FIELD(compute_seconds), 0, 86400, NULL, "pause between steps, not counted"},
    {"locality", OPTION_CHOICE, FIELD(locality), 0, 0, localities,
     "contiguous or interleaved, in memory and in the file"},
    {"write-mode", OPTION_CHOICE, FIELD(write_mode), 0, 0, write_modes,
     "a new file, or one that has data, made outside the clock: as many again are written over it or behind it"},
    {"write-selected", OPTION_YESNO, FIELD(write_selected), 0, 0, NULL, "write, too, only what --selection says"},
    {"delayed-close", OPTION_COUNT, FIELD(delayed_close), 0, CLOSED_WITH_FILE, NULL,
     "steps after which a step's datasets are closed; from --steps on: with the file"},
    {"memory-limit", OPTION_BYTES, FIELD(memory_bytes), 0, OPTION_MAX, NULL,
     "for a rank's buffers: data move in pieces that fit; 0: whatever a step needs"},
    ASYNC_OPTION,
    {"selection", OPTION_CHOICE, FIELD(selection), 0, 0, selections,
     "what is read of it; of two dimensions: left or right diagonal corners, frame (PRL), cross stencil"},
    {"fraction", OPTION_REAL, FIELD(fraction), 0, 1, NULL, "partial: part of each rank's rows, the first ones"},
    {"stride", OPTION_COUNT, FIELD(stride), 1, OPTION_MAX, NULL, "strided, CS: rows from block to block"},
    {"stride-columns", OPTION_COUNT, FIELD(stride_columns), 1, OPTION_MAX, NULL, "CS: columns from block to block"},
    {"block", OPTION_COUNT, FIELD(block), 1, OPTION_MAX, NULL,
     "strided, LDC, RDC, CS: rows of a block; PRL: of the frame's top and bottom"},
    {"block-columns", OPTION_COUNT, FIELD(block_columns), 1, OPTION_MAX, NULL,
     "LDC, RDC, CS: columns of a block; PRL: of the frame's sides"},
    {"blocks", OPTION_COUNT, FIELD(blocks), 0, OPTION_MAX, NULL, "strided: of a rank; 0: as many as fit"},
    {"chunk", OPTION_COUNT, FIELD(chunk[0]), 0, 4294967295.0, NULL,
     "HDF5: rows (of the slowest dimension) of a chunk; 0: contiguous"},
    {"chunk-columns", OPTION_COUNT, FIELD(chunk[1]), 0, 4294967295.0, NULL, "HDF5: second dimension; 0: all of it"},
    {"chunk-layers", OPTION_COUNT, FIELD(chunk[2]), 0, 4294967295.0, NULL, "HDF5: third dimension; 0: all of it"},
    {"foreign", OPTION_TEXT, FIELD(common.foreign), 0, 0, NULL,
     "read this file of --dir, which h5bench wrote (CC): shape, type and count are checked, the content is not"},
    {0}};

static void defaults(void *settings)
{
    struct particles_settings *s = settings;
    s->particles = 1 << 20;
    s->dimensions = 1;
    s->steps = 2;
    s->delayed_close = CLOSED_WITH_FILE;
    s->fraction = 0.5;
    s->stride = s->stride_columns = 4096;
    s->block = s->block_columns = 1024;
}

/* --- is it possible? -------------------------------------------------------------------------------------------- */

static int refuse(char *problem, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int refuse(char *problem, size_t bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, bytes, format, arguments);
    va_end(arguments);
    return -1;
}

typedef unsigned long long number; /* as printf has it */

/* The largest divisor of COUNT that is no larger than LIMIT. */
static uint64_t divisor_below(uint64_t count, uint64_t limit)
{
    while (limit > 1 && count % limit != 0)
        limit--;
    return limit;
}

/* As near to a square or a cube as the number of particles allows, the slowest dimension the largest, where no size was
 * given. */
static int work_out_shape(struct particles_settings *s, char *problem, size_t bytes)
{
    const double particles = (double)s->particles;
    const uint64_t given[3] = {0, s->columns, s->layers};
    s->shape[1] = s->shape[2] = 1;
    if (s->dimensions < 2 && s->columns > 0)
        return refuse(problem, bytes, "--columns %llu: --dimensions 2 or 3 is needed", (number)s->columns);
    if (s->dimensions < 3 && s->layers > 0)
        return refuse(problem, bytes, "--layers %llu: --dimensions 3 is needed", (number)s->layers);
    if (s->dimensions == 3)
        s->shape[2] = s->layers > 0 ? s->layers : divisor_below(s->particles, (uint64_t)(cbrt(particles) + 0.5));
    if (s->dimensions >= 2)
        s->shape[1] = s->columns > 0 ? s->columns
                                     : divisor_below(s->particles / s->shape[2],
                                                     (uint64_t)(sqrt(particles / (double)s->shape[2]) + 0.5));
    s->shape[0] = s->particles / s->shape[1] / s->shape[2];
    if (s->shape[0] * s->shape[1] * s->shape[2] != s->particles)
        return refuse(problem, bytes, "--particles %llu: not a multiple of --columns %llu, --layers %llu",
                      (number)s->particles, (number)s->shape[1], (number)s->shape[2]);
    for (uint64_t i = 1; i < s->dimensions; i++)
        if (s->shape[i] == 1 && given[i] == 0)
            return refuse(problem, bytes,
                          "--particles %llu: cannot be laid out in --dimensions %llu (too few divisors)",
                          (number)s->particles, (number)s->dimensions);
    return 0;
}

static int check_size(const struct particles_settings *s, char *problem, size_t bytes)
{
    uint64_t product = 0;
    if (checked_product(s->particles, PARTICLE_BYTES, &product) || checked_product(product, s->steps, &product) ||
        checked_product(product, (uint64_t)s->ranks, &product) ||
        checked_product(product, s->write_mode == WRITE_APPEND ? 2 : 1, &product) ||
        checked_product(product, s->deviation > 0 ? 2 : 1, &product))
        return refuse(problem, bytes,
                      "--particles %llu times 32 bytes, %llu steps and %d ranks: more bytes than a file offset holds",
                      (number)s->particles, (number)s->steps, s->ranks);
    if (s->deviation > (double)s->particles)
        return refuse(problem, bytes, "--stdev %g: more than the mean, --particles %llu", s->deviation,
                      (number)s->particles);
    return 0;
}

static int check_strided(const struct particles_settings *s, char *problem, size_t bytes)
{
    const uint64_t rows = s->shape[0];
    if (s->block > rows)
        return refuse(problem, bytes, "--block %llu: larger than a rank's %llu rows", (number)s->block, (number)rows);
    if (s->stride < s->block)
        return refuse(problem, bytes, "--stride %llu: smaller than --block %llu", (number)s->stride, (number)s->block);
    if (s->blocks > (rows - s->block) / s->stride + 1)
        return refuse(problem, bytes, "--blocks %llu: a rank's %llu rows hold %llu of them", (number)s->blocks,
                      (number)rows, (number)((rows - s->block) / s->stride + 1));
    return 0;
}

static int check_region(const struct particles_settings *s, char *problem, size_t bytes)
{
    char name[16];
    option_choice(selections, s->selection, name, sizeof name);
    if (s->dimensions != 2)
        return refuse(problem, bytes, "--selection %s: --dimensions 2 is needed", name);
    if (s->block_columns > s->shape[1])
        return refuse(problem, bytes, "--block-columns %llu: more than the dataset's %llu columns",
                      (number)s->block_columns, (number)s->shape[1]);
    for (int owner = 0; owner < (s->common.file_per_process ? s->ranks : 1); owner++)
        if (s->block > final_rows(s, owner))
            return refuse(problem, bytes, "--block %llu: more than the dataset's %llu rows", (number)s->block,
                          (number)final_rows(s, owner));
    return 0;
}

static int check_selection(const struct particles_settings *s, char *problem, size_t bytes)
{
    const uint64_t rows = s->shape[0];
    if (s->selection == SELECT_PARTIAL && partial_rows(s, rows) == 0)
        return refuse(problem, bytes, "--fraction %g: not one of a rank's %llu rows is left", s->fraction,
                      (number)rows);
    if (s->selection == SELECT_STRIDED)
        return check_strided(s, problem, bytes);
    if (s->selection >= SELECT_REGION)
        return check_region(s, problem, bytes);
    return 0;
}

static int check_writing(const struct particles_settings *s, char *problem, size_t bytes)
{
    const bool hdf5 = s->common.interface == INTERFACE_HDF5;
    if (s->write_mode == WRITE_APPEND && hdf5 && !s->common.hdf5.extendible)
        return refuse(problem, bytes, "--write-mode append: HDF5's datasets must be able to grow; --extendible yes");
    if (s->write_mode == WRITE_APPEND && s->write_selected)
        return refuse(problem, bytes, "--write-selected yes: --write-mode append appends whole rows");
    if (s->common.hdf5.async != ASYNC_NO && !hdf5)
        return refuse(problem, bytes, "--async: only through HDF5");
    return 0;
}

static int check_foreign(const struct particles_settings *s, char *problem, size_t bytes)
{
    if (s->common.foreign == NULL)
        return 0;
    if (s->common.operation != OPERATION_READ)
        return refuse(problem, bytes, "--foreign %s: only with --operation read", s->common.foreign);
    if (s->common.interface != INTERFACE_HDF5 || s->locality != CC || s->common.file_per_process ||
        s->write_mode != WRITE_NEW)
        return refuse(problem, bytes,
                      "--foreign %s: only through HDF5, a file that all ranks share, --locality CC, --write-mode new",
                      s->common.foreign);
    return 0;
}

static int check_memory(struct particles_settings *s, char *problem, size_t bytes)
{
    const uint64_t most_rows = s->deviation > 0 ? 2 * s->shape[0] - 1 : s->shape[0];
    s->most_elements = most_rows * row_elements(s) * (s->write_mode == WRITE_APPEND ? 2 : 1);
    if (s->selection >= SELECT_REGION)
        s->most_elements += s->shape[1]; /* shares of a region are cut at rows */
    if (buffer_elements(s) < row_elements(s))
        return refuse(problem, bytes, "--memory-limit %llu: a rank needs %llu bytes for a row of %llu particles",
                      (number)s->memory_bytes, (number)least_memory_bytes(s), (number)row_elements(s));
    return 0;
}

static int check(void *settings, int ranks, char *problem, size_t bytes)
{
    struct particles_settings *s = settings;
    s->ranks = ranks;
    if (check_size(s, problem, bytes) != 0 || work_out_shape(s, problem, bytes) != 0 ||
        check_selection(s, problem, bytes) != 0 || check_writing(s, problem, bytes) != 0 ||
        check_foreign(s, problem, bytes) != 0)
        return -1;
    return check_memory(s, problem, bytes);
}

/* --- what it is ------------------------------------------------------------------------------------------------- */

static int files(const void *settings)
{
    (void)settings;
    return 1;
}

static enum element element_in_file(const struct particles_settings *s)
{
    if (interleaved_in_file(s))
        return ELEMENT_PARTICLE;
    return s->locality == IC ? ELEMENT_WRAPPED : ELEMENT_MEMBER;
}

/* Rows of the longest dataset: files of one rank differ where ranks do. */
static uint64_t most_rows(const struct particles_settings *s)
{
    uint64_t most = final_rows(s, 0);
    for (int r = 1; r < s->ranks && s->common.file_per_process && s->deviation > 0; r++)
        most = final_rows(s, r) > most ? final_rows(s, r) : most;
    return most;
}

static void layout(const void *settings, int ranks, struct layout *layout)
{
    const struct particles_settings *s = settings;
    const uint64_t alignment = s->common.alignment_bytes > 0 ? s->common.alignment_bytes : 1;
    const int per_step = datasets_in_step(s);
    const uint64_t rows = most_rows(s);
    (void)ranks;
    layout->count = (int)s->steps * per_step;
    layout->datasets = calloc((size_t)layout->count, sizeof *layout->datasets);
    if (layout->datasets == NULL)
        stop_rank("out of memory for %d datasets", layout->count);
    for (int i = 0; i < layout->count; i++) {
        struct dataset *dataset = &layout->datasets[i];
        const int member = i % per_step;
        *dataset = (struct dataset){.element = element_in_file(s),
                                    .member = member,
                                    .dimensions = (int)s->dimensions,
                                    .extent = {rows, s->shape[1], s->shape[2]},
                                    .row_bytes = row_elements(s) * (interleaved_in_file(s) ? PARTICLE_BYTES : WORD),
                                    .base_bytes = (layout->bytes + alignment - 1) / alignment * alignment,
                                    .chunk = {s->chunk[0], s->chunk[1] > 0 ? s->chunk[1] : s->shape[1],
                                              s->chunk[2] > 0 ? s->chunk[2] : s->shape[2]}};
        snprintf(dataset->name, sizeof dataset->name, "Timestep_%d/%s", i / per_step,
                 interleaved_in_file(s) ? "particles" : particle_member_names[member]);
        layout->bytes = dataset->base_bytes + dataset->extent[0] * dataset->row_bytes;
    }
}

static void rows(const void *settings, int ranks, int rank, uint64_t *first, uint64_t *count)
{
    const struct particles_settings *s = settings;
    (void)ranks;
    *first = rows_before(s, rank);
    *count = rows_of(s, rank);
    if (s->write_mode == WRITE_APPEND)
        *count += rows_in_file(s, rank);
    if (s->selection >= SELECT_REGION) {
        struct share share = share_of(s, rank, OF_READ);
        region_reach(&share.region, share.from, share.to, first, count);
        share_free(&share);
    }
}

static uint64_t logical_bytes(const void *settings, int ranks, bool of_read)
{
    const struct particles_settings *s = settings;
    (void)ranks;
    return elements_of_all(s, of_read ? OF_READ : OF_WRITE) * PARTICLE_BYTES * s->steps;
}

static uint64_t access_bytes(const void *settings)
{
    const struct particles_settings *s = settings;
    return buffer_elements(s) * (interleaved_in_file(s) ? PARTICLE_BYTES : WORD);
}

static bool needs_scratch(const void *settings)
{
    const struct particles_settings *s = settings;
    return interleaved_in_memory(s) != interleaved_in_file(s);
}

/* What was asked for beyond a plain write of equal shares and its read; a record without these words has none of it. */
static void describe_more(const struct particles_settings *s, struct json *json)
{
    char word[32];
    if (s->deviation > 0)
        json_real(json, "stdev", s->deviation);
    if (s->write_mode != WRITE_NEW)
        json_text(json, "write_mode", option_choice(write_modes, s->write_mode, word, sizeof word));
    if (s->write_selected && s->selection != SELECT_FULL)
        json_truth(json, "write_selected", true);
    if (s->delayed_close < s->steps)
        json_whole(json, "delayed_close", s->delayed_close);
    if (s->memory_bytes > 0)
        json_whole(json, "memory_limit_bytes", s->memory_bytes);
    if (s->selection == SELECT_STRIDED && s->blocks > 0)
        json_whole(json, "blocks", s->blocks);
    if (s->selection >= SELECT_REGION)
        json_whole(json, "block_columns", s->block_columns);
    if (s->selection == SELECT_CS)
        json_whole(json, "stride_columns", s->stride_columns);
    if (s->chunk[0] > 0 && s->chunk[1] > 0)
        json_whole(json, "chunk_columns", s->chunk[1]);
    if (s->chunk[0] > 0 && s->chunk[2] > 0)
        json_whole(json, "chunk_layers", s->chunk[2]);
    if (s->common.foreign != NULL)
        json_text(json, "content", "foreign");
}

static void describe(const void *settings, struct json *json)
{
    const struct particles_settings *s = settings;
    const bool strides = s->selection == SELECT_STRIDED || s->selection == SELECT_CS;
    const bool blocks = s->selection == SELECT_STRIDED || s->selection >= SELECT_REGION;
    char word[32];
    json_text(json, "locality", option_choice(localities, s->locality, word, sizeof word));
    json_whole(json, "dimensions", s->dimensions);
    json_open(json, "shape", '[');
    for (uint64_t i = 0; i < s->dimensions; i++)
        json_whole(json, NULL, s->shape[i]);
    json_close(json, ']');
    json_whole(json, "particles", s->particles);
    json_whole(json, "steps", s->steps);
    json_real(json, "compute_seconds", s->compute_seconds);
    json_text(json, "selection", option_choice(selections, s->selection, word, sizeof word));
    json_real(json, "fraction", s->selection == SELECT_PARTIAL ? s->fraction : 1.0);
    json_whole(json, "stride", strides ? s->stride : 0);
    json_whole(json, "block", blocks ? s->block : 0);
    json_whole(json, "chunk", s->chunk[0]);
    describe_more(s, json);
}

static const struct pattern particles = {
    .name = "particles",
    .summary = "VPIC-IO's write and BD-CATS-IO's read (h5bench): particles of eight members in time steps",
    .example = "mpirun -np 2 particles --dir /scratch/me --particles 1M --locality CC --baseline interface=mpiio",
    .options = particles_options,
    .settings_bytes = sizeof(struct particles_settings),
    .defaults = defaults,
    .check = check,
    .files = files,
    .layout = layout,
    .rows = rows,
    .logical_bytes = logical_bytes,
    .access_bytes = access_bytes,
    .needs_scratch = needs_scratch,
    .describe = describe,
    .write = particles_write,
    .read = particles_read};

int main(int argc, char **argv)
{
    return run_kernel(&particles, argc, argv);
}
