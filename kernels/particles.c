/* particles: VPIC-IO's write and BD-CATS-IO's read as h5bench has them. Every rank has particles of eight members,
 * written in time steps with emulated computing between. Locality says how members lie in memory and in the file:
 * contiguous (an array a member) or interleaved (an array of particles): CC, CI, IC, II. */
#include "common/failure.h"
#include "common/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CC, CI, IC, II };
enum { SELECT_FULL, SELECT_PARTIAL, SELECT_STRIDED };
enum { WORD = 4 };

struct particles_settings {
    struct common_settings common;
    uint64_t particles; /* of a rank, in a step */
    uint64_t dimensions;
    uint64_t steps;
    double compute_seconds;
    int locality;
    int selection;
    double fraction;
    uint64_t stride;
    uint64_t block;
    uint64_t chunk_rows;
    uint64_t shape[STORE_DIMENSIONS]; /* of a rank's particles; worked out by check */
};

#define FIELD(member) offsetof(struct particles_settings, member)

static const struct option particles_options[] = {
    {"particles", OPTION_COUNT, FIELD(particles), 1, OPTION_MAX, NULL, "particles a rank has in a step"},
    {"dimensions", OPTION_COUNT, FIELD(dimensions), 1, 3, NULL, "of the arrays; ranks divide the slowest"},
    {"steps", OPTION_COUNT, FIELD(steps), 1, 1000000, NULL, "time steps"},
    {"compute-seconds", OPTION_REAL, FIELD(compute_seconds), 0, 86400, NULL, "pause between steps, not counted"},
    {"locality", OPTION_CHOICE, FIELD(locality), 0, 0, "CC|CI|IC|II",
     "contiguous or interleaved, in memory and in the file"},
    {"selection", OPTION_CHOICE, FIELD(selection), 0, 0, "full|partial|strided", "what is read of it"},
    {"fraction", OPTION_REAL, FIELD(fraction), 0, 1, NULL, "partial: part of each rank's rows, the first ones"},
    {"stride", OPTION_COUNT, FIELD(stride), 1, OPTION_MAX, NULL, "strided: rows from block to block"},
    {"block", OPTION_COUNT, FIELD(block), 1, OPTION_MAX, NULL, "strided: rows of a block"},
    {"chunk", OPTION_COUNT, FIELD(chunk_rows), 0, 4294967295.0, NULL,
     "HDF5: rows (of the slowest dimension) of a chunk; 0: contiguous"},
    {0}};

static void defaults(void *settings)
{
    struct particles_settings *s = settings;
    s->particles = 1 << 20;
    s->dimensions = 1;
    s->steps = 2;
    s->fraction = 0.5;
    s->stride = 4096;
    s->block = 1024;
}

/* The largest divisor of COUNT that is no larger than LIMIT. */
static uint64_t divisor_below(uint64_t count, uint64_t limit)
{
    while (limit > 1 && count % limit != 0)
        limit--;
    return limit;
}

/* As near to a square or a cube as the number of particles allows, the slowest dimension the largest. */
static int work_out_shape(struct particles_settings *s)
{
    const double particles = (double)s->particles;
    s->shape[0] = s->particles;
    s->shape[1] = s->shape[2] = 1;
    if (s->dimensions == 3)
        s->shape[2] = divisor_below(s->particles, (uint64_t)(cbrt(particles) + 0.5));
    if (s->dimensions >= 2)
        s->shape[1] =
            divisor_below(s->particles / s->shape[2], (uint64_t)(sqrt(particles / (double)s->shape[2]) + 0.5));
    s->shape[0] = s->particles / s->shape[1] / s->shape[2];
    for (uint64_t i = 1; i < s->dimensions; i++)
        if (s->shape[i] == 1)
            return -1;
    return 0;
}

static uint64_t sharers(const struct particles_settings *s, int ranks)
{
    return s->common.file_per_process ? 1 : (uint64_t)ranks;
}

static bool interleaved_in_file(const struct particles_settings *s)
{
    return s->locality == CI || s->locality == II;
}

static int check(void *settings, int ranks, char *problem, size_t bytes)
{
    struct particles_settings *s = settings;
    uint64_t product = 0;
    if (checked_product(s->particles, PARTICLE_BYTES, &product) || checked_product(product, s->steps, &product) ||
        checked_product(product, (uint64_t)ranks, &product))
        return snprintf(problem, bytes,
                        "--particles %llu times 32 bytes, %llu steps and %d ranks: more bytes than a file offset holds",
                        (unsigned long long)s->particles, (unsigned long long)s->steps, ranks),
               -1;
    if (work_out_shape(s) != 0)
        return snprintf(problem, bytes, "--particles %llu: cannot be laid out in --dimensions %llu (too few divisors)",
                        (unsigned long long)s->particles, (unsigned long long)s->dimensions),
               -1;
    const unsigned long long rows = s->shape[0];
    if (s->selection == SELECT_PARTIAL && floor(s->fraction * (double)s->shape[0]) < 1)
        return snprintf(problem, bytes, "--fraction %g: not one of a rank's %llu rows is left", s->fraction, rows), -1;
    if (s->selection == SELECT_STRIDED && s->block > s->shape[0])
        return snprintf(problem, bytes, "--block %llu: larger than a rank's %llu rows", (unsigned long long)s->block,
                        rows),
               -1;
    if (s->selection == SELECT_STRIDED && s->stride < s->block)
        return snprintf(problem, bytes, "--stride %llu: smaller than --block %llu", (unsigned long long)s->stride,
                        (unsigned long long)s->block),
               -1;
    return 0;
}

static int files(const void *settings)
{
    (void)settings;
    return 1;
}

static int datasets_in_step(const struct particles_settings *s)
{
    return interleaved_in_file(s) ? 1 : PARTICLE_MEMBERS;
}

static enum element element_in_file(const struct particles_settings *s)
{
    if (interleaved_in_file(s))
        return ELEMENT_PARTICLE;
    return s->locality == IC ? ELEMENT_WRAPPED : ELEMENT_MEMBER;
}

static void layout(const void *settings, int ranks, struct layout *layout)
{
    const struct particles_settings *s = settings;
    const uint64_t alignment = s->common.alignment_bytes > 0 ? s->common.alignment_bytes : 1;
    const int per_step = datasets_in_step(s);
    const uint64_t row_elements = s->shape[1] * s->shape[2];
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
                                    .extent = {s->shape[0] * sharers(s, ranks), s->shape[1], s->shape[2]},
                                    .row_bytes = row_elements * (interleaved_in_file(s) ? PARTICLE_BYTES : WORD),
                                    .base_bytes = (layout->bytes + alignment - 1) / alignment * alignment,
                                    .chunk = {s->chunk_rows, s->shape[1], s->shape[2]}};
        snprintf(dataset->name, sizeof dataset->name, "Timestep_%d/%s", i / per_step,
                 interleaved_in_file(s) ? "particles" : particle_member_names[member]);
        layout->bytes = dataset->base_bytes + dataset->extent[0] * dataset->row_bytes;
    }
}

static void rows(const void *settings, int ranks, int rank, uint64_t *first, uint64_t *count)
{
    const struct particles_settings *s = settings;
    (void)ranks;
    *first = s->common.file_per_process ? 0 : (uint64_t)rank * s->shape[0];
    *count = s->shape[0];
}

/* OWNER's rows, all of them or what --selection leaves of them. */
static struct selection select_rows(const struct particles_settings *s, int owner, bool everything)
{
    const uint64_t first = s->common.file_per_process ? 0 : (uint64_t)owner * s->shape[0];
    const int selection = everything ? SELECT_FULL : s->selection;
    if (selection == SELECT_PARTIAL) {
        const uint64_t part = (uint64_t)floor(s->fraction * (double)s->shape[0]);
        return (struct selection){.first = first, .count = 1, .stride = part, .block = part};
    }
    if (selection == SELECT_STRIDED)
        return (struct selection){
            .first = first, .count = (s->shape[0] - s->block) / s->stride + 1, .stride = s->stride, .block = s->block};
    return (struct selection){.first = first, .count = 1, .stride = s->shape[0], .block = s->shape[0]};
}

static uint64_t logical_bytes(const void *settings, int ranks, bool of_read)
{
    const struct particles_settings *s = settings;
    const struct selection selection = select_rows(s, 0, !of_read);
    return selection_rows(&selection) * s->shape[1] * s->shape[2] * PARTICLE_BYTES * s->steps * (uint64_t)ranks;
}

static uint64_t access_bytes(const void *settings)
{
    const struct particles_settings *s = settings;
    return s->particles * (interleaved_in_file(s) ? PARTICLE_BYTES : WORD);
}

static bool needs_scratch(const void *settings)
{
    const int locality = ((const struct particles_settings *)settings)->locality;
    return locality == CI || locality == IC;
}

static void describe(const void *settings, struct json *json)
{
    const struct particles_settings *s = settings;
    char word[32];
    json_text(json, "locality", option_choice("CC|CI|IC|II", s->locality, word, sizeof word));
    json_whole(json, "dimensions", s->dimensions);
    json_open(json, "shape", '[');
    for (uint64_t i = 0; i < s->dimensions; i++)
        json_whole(json, NULL, s->shape[i]);
    json_close(json, ']');
    json_whole(json, "particles", s->particles);
    json_whole(json, "steps", s->steps);
    json_real(json, "compute_seconds", s->compute_seconds);
    json_text(json, "selection", option_choice("full|partial|strided", s->selection, word, sizeof word));
    json_real(json, "fraction", s->selection == SELECT_PARTIAL ? s->fraction : 1.0);
    json_whole(json, "stride", s->selection == SELECT_STRIDED ? s->stride : 0);
    json_whole(json, "block", s->selection == SELECT_STRIDED ? s->block : 0);
    json_whole(json, "chunk", s->chunk_rows);
}

/* Where member M of a step begins in memory that holds COUNT particles, and how far its elements lie apart, in words.
 */
static uint32_t *member_at(const struct particles_settings *s, uint32_t *memory, int m, uint64_t count, uint64_t *apart)
{
    const bool interleaved = s->locality == IC || s->locality == II;
    *apart = interleaved ? PARTICLE_MEMBERS : 1;
    return interleaved ? memory + m : memory + (uint64_t)m * count;
}

static uint64_t member_key(const struct run *run, int m, uint64_t step, int owner)
{
    const struct particles_settings *s = run->settings;
    const uint64_t file = s->common.file_per_process ? (uint64_t)owner : 0;
    return content_key(s->common.seed, file * PARTICLE_MEMBERS + (uint64_t)m, step);
}

static void fill_step(struct run *run, uint32_t *memory, uint64_t step)
{
    const struct particles_settings *s = run->settings;
    const struct selection all = select_rows(s, run->world->rank, true);
    uint64_t apart = 1;
    for (int m = 0; m < PARTICLE_MEMBERS; m++) {
        uint32_t *words = member_at(s, memory, m, s->particles, &apart);
        content_fill32(words, s->particles, apart, member_key(run, m, step, run->world->rank),
                       all.first * s->shape[1] * s->shape[2]);
    }
}

static void check_step(struct run *run, uint32_t *memory, uint64_t step, const struct selection *selection)
{
    const struct particles_settings *s = run->settings;
    const uint64_t row = s->shape[1] * s->shape[2];
    const uint64_t block = selection->block * row;
    const uint64_t count = selection_rows(selection) * row;
    uint64_t apart = 1;
    for (int m = 0; m < PARTICLE_MEMBERS; m++) {
        struct content_mismatch mismatch = {0};
        char name[64];
        uint32_t *words = member_at(s, memory, m, count, &apart);
        for (uint64_t k = 0; k < selection->count; k++)
            content_check32(words + k * block * apart, block, apart, member_key(run, m, step, run->source),
                            (selection->first + k * selection->stride) * row, &mismatch);
        snprintf(name, sizeof name, "Timestep_%llu/%s", (unsigned long long)step, particle_member_names[m]);
        run_checked(run, count * WORD, name, step, &mismatch);
    }
}

/* The measured calls of one step. */
static void move_step(const struct particles_settings *s, struct store *store, int slot, enum direction direction,
                      const struct selection *selection, uint32_t *memory)
{
    const uint64_t count = selection_rows(selection) * s->shape[1] * s->shape[2];
    switch (s->locality) {
    case CC:
        for (int m = 0; m < PARTICLE_MEMBERS; m++)
            store_move(store, slot + m, direction, selection, memory + (uint64_t)m * count);
        break;
    case CI:
        store_move_members(store, slot, direction, selection, memory);
        break;
    case IC:
        for (int m = 0; m < PARTICLE_MEMBERS; m++)
            store_move_member(store, slot + m, direction, selection, memory);
        break;
    case II:
        store_move(store, slot, direction, selection, memory);
        break;
    }
}

static void particles_write(struct run *run)
{
    const struct particles_settings *s = run->settings;
    const struct selection all = select_rows(s, run->world->rank, true);
    const int per_step = datasets_in_step(s);
    uint32_t *memory = run_memory(s->particles * PARTICLE_BYTES);
    char path[4096];
    run_path(run, 0, run->world->rank, path, sizeof path);
    stopwatch_stretch(run->watch);
    stopwatch_start(run->watch, PHASE_OPEN);
    struct store *store = store_create(path, &run->store);
    stopwatch_stop(run->watch);
    for (int step = 0; step < (int)s->steps; step++) {
        if (step > 0 && s->compute_seconds > 0)
            run_pause(s->compute_seconds);
        stopwatch_start(run->watch, PHASE_PREPARE);
        fill_step(run, memory, (uint64_t)step);
        stopwatch_stop(run->watch);

        stopwatch_stretch(run->watch);
        stopwatch_start(run->watch, PHASE_OPEN);
        for (int d = step * per_step; d < (step + 1) * per_step; d++)
            store_make_dataset(store, d, &run->layout->datasets[d]);
        stopwatch_stop(run->watch);
        stopwatch_start(run->watch, PHASE_TRANSFER);
        move_step(s, store, step * per_step, DIRECTION_WRITE, &all, memory);
        stopwatch_stop(run->watch);
    }
    stopwatch_start(run->watch, PHASE_FLUSH);
    if (s->common.fsync)
        store_flush(store);
    stopwatch_stop(run->watch);
    stopwatch_start(run->watch, PHASE_CLOSE);
    store_close(store);
    stopwatch_stop(run->watch);
    free(memory);
}

static void particles_read(struct run *run)
{
    const struct particles_settings *s = run->settings;
    const struct selection selection = select_rows(s, run->source, run->everything);
    const uint64_t bytes = selection_rows(&selection) * s->shape[1] * s->shape[2] * PARTICLE_BYTES;
    const int per_step = datasets_in_step(s);
    uint32_t *memory = run_memory(bytes);
    char path[4096];
    run_path(run, 0, run->source, path, sizeof path);
    stopwatch_stretch(run->watch);
    stopwatch_start(run->watch, PHASE_OPEN);
    struct store *store = store_open(path, &run->store);
    stopwatch_stop(run->watch);
    for (int step = 0; step < (int)s->steps; step++) {
        if (step > 0 && s->compute_seconds > 0)
            run_pause(s->compute_seconds);
        stopwatch_start(run->watch, PHASE_PREPARE);
        memset(memory, 0xff, bytes); /* nothing of an earlier read may pass the check */
        stopwatch_stop(run->watch);

        stopwatch_stretch(run->watch);
        stopwatch_start(run->watch, PHASE_OPEN);
        for (int d = step * per_step; d < (step + 1) * per_step; d++)
            store_open_dataset(store, d, &run->layout->datasets[d]);
        stopwatch_stop(run->watch);
        stopwatch_start(run->watch, PHASE_TRANSFER);
        move_step(s, store, step * per_step, DIRECTION_READ, &selection, memory);
        stopwatch_stop(run->watch);
        stopwatch_start(run->watch, PHASE_PREPARE);
        check_step(run, memory, (uint64_t)step, &selection);
        stopwatch_stop(run->watch);
    }
    stopwatch_stretch(run->watch);
    stopwatch_start(run->watch, PHASE_CLOSE);
    store_close(store);
    stopwatch_stop(run->watch);
    free(memory);
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
