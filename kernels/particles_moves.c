#include "particles_moves.h"

#include "common/failure.h"
#include "particles_share.h"

#include <stdlib.h>
#include <string.h>

/* A piece of a step, on its way between memory and the file. */
struct buffer {
    uint32_t *memory;
    struct selection selection;
    uint64_t step;
    bool busy;
};

/* One pass over the steps of a file. */
struct pass {
    struct run *run;
    const struct particles_settings *settings;
    enum of_what what;
    enum direction direction;
    int owner; /* whose data */
    struct share share;
    struct store *store;
    struct buffer *buffers;
    uint64_t buffer_count;
    uint64_t piece_elements;
    uint64_t pieces; /* of a step; ranks that have fewer take part with empty ones */
    uint64_t moved;
};

/* Bytes of the raw interfaces' scratch for each element. */
static uint64_t scratch_bytes(const struct particles_settings *s)
{
    if (s->common.interface == INTERFACE_HDF5 || interleaved_in_memory(s) == interleaved_in_file(s))
        return 0;
    return interleaved_in_file(s) ? PARTICLE_BYTES : WORD;
}

/* Asynchronous calls need a second buffer to prepare the next piece in; a limit with room for more has more in flight.
 */
static uint64_t buffer_count(const struct particles_settings *s)
{
    uint64_t count = s->memory_bytes / (s->most_elements * PARTICLE_BYTES);
    if (!explicitly_asynchronous(s))
        return 1;
    count = count < s->steps ? count : s->steps;
    return count > 2 ? count : 2;
}

uint64_t buffer_elements(const struct particles_settings *s)
{
    if (s->memory_bytes == 0)
        return s->most_elements;
    const uint64_t fitting = s->memory_bytes / (buffer_count(s) * PARTICLE_BYTES + scratch_bytes(s));
    return fitting < s->most_elements ? fitting : s->most_elements;
}

uint64_t least_memory_bytes(const struct particles_settings *s)
{
    return row_elements(s) * (buffer_count(s) * PARTICLE_BYTES + scratch_bytes(s));
}

/* --- what the data are ---------------------------------------------------------------------------------------- */

/* Runs of a member's words, in memory and in its dataset at once. */
struct walk {
    uint32_t *words;
    uint64_t apart; /* from word to word */
    uint64_t key;
    struct content_mismatch mismatch;
    uint64_t words_before; /* of the dataset: they stood there before, and are not counted as what was written */
    uint64_t counted;
};

static void fill_run(uint64_t first, uint64_t count, void *data)
{
    struct walk *walk = data;
    content_fill32(walk->words, count, walk->apart, walk->key, first);
    walk->words += count * walk->apart;
}

static void check_run(uint64_t first, uint64_t count, void *data)
{
    struct walk *walk = data;
    content_check32(walk->words, count, walk->apart, walk->key, first, &walk->mismatch);
    walk->words += count * walk->apart;
    walk->counted += first >= walk->words_before ? count : 0;
}

/* Member M of the particles in BUFFER. What overwrites has other words than what it overwrites. */
static struct walk walk_along(const struct pass *pass, const struct buffer *buffer, uint64_t m)
{
    const struct particles_settings *s = pass->settings;
    const bool interleaved = interleaved_in_memory(s);
    const uint64_t count = selection_elements(&buffer->selection, row_elements(s));
    const uint64_t file = s->common.file_per_process ? (uint64_t)pass->owner : 0;
    const uint64_t written_over = s->write_mode == WRITE_OVER && pass->what != OF_FIRST ? s->steps : 0;
    return (struct walk){.words = buffer->memory + (interleaved ? m : m * count),
                         .apart = interleaved ? PARTICLE_MEMBERS : 1,
                         .key = content_key(s->common.seed, file * PARTICLE_MEMBERS + m, buffer->step + written_over),
                         .words_before = s->write_mode == WRITE_APPEND && pass->what == OF_WRITTEN
                                             ? rows_in_file(s, pass->owner) * row_elements(s)
                                             : 0};
}

static void fill_buffer(const struct pass *pass, struct buffer *buffer)
{
    for (uint64_t m = 0; m < PARTICLE_MEMBERS; m++) {
        struct walk walk = walk_along(pass, buffer, m);
        selection_each_run(&buffer->selection, row_elements(pass->settings), fill_run, &walk);
    }
}

static void check_buffer(const struct pass *pass, struct buffer *buffer)
{
    if (pass->settings->common.foreign != NULL)
        return; /* what it holds is not ours to say */
    for (uint64_t m = 0; m < PARTICLE_MEMBERS; m++) {
        struct walk walk = walk_along(pass, buffer, m);
        char name[64];
        selection_each_run(&buffer->selection, row_elements(pass->settings), check_run, &walk);
        snprintf(name, sizeof name, "Timestep_%llu/%s", (unsigned long long)buffer->step, particle_member_names[m]);
        run_checked(pass->run, walk.counted * WORD, name, buffer->step, &walk.mismatch);
    }
}

/* --- moving ---------------------------------------------------------------------------------------------------- */

/* The measured calls of one piece. */
static void move(const struct pass *pass, const struct buffer *buffer)
{
    const struct particles_settings *s = pass->settings;
    const struct selection *selection = &buffer->selection;
    const int slot = (int)buffer->step * datasets_in_step(s);
    const uint64_t count = selection_elements(selection, row_elements(s));
    switch ((enum locality)s->locality) {
    case CC:
        for (int m = 0; m < PARTICLE_MEMBERS; m++)
            store_move(pass->store, slot + m, pass->direction, selection, buffer->memory + (uint64_t)m * count);
        break;
    case CI:
        store_move_members(pass->store, slot, pass->direction, selection, buffer->memory);
        break;
    case IC:
        for (int m = 0; m < PARTICLE_MEMBERS; m++)
            store_move_member(pass->store, slot + m, pass->direction, selection, buffer->memory);
        break;
    case II:
        store_move(pass->store, slot, pass->direction, selection, buffer->memory);
        break;
    }
}

static void open_datasets(const struct pass *pass, uint64_t step)
{
    const struct particles_settings *s = pass->settings;
    const bool makes = pass->what == OF_FIRST || (pass->what == OF_WRITE && s->write_mode == WRITE_NEW);
    const bool extends = pass->what == OF_WRITE && s->write_mode == WRITE_APPEND;
    const int first = (int)step * datasets_in_step(s);
    for (int d = first; d < first + datasets_in_step(s); d++) {
        struct dataset dataset = pass->run->layout->datasets[d];
        dataset.extent[0] = makes || extends ? rows_in_file(s, pass->owner) : final_rows(s, pass->owner);
        if (makes)
            store_make_dataset(pass->store, d, &dataset);
        else
            store_open_dataset(pass->store, d, &dataset);
        if (extends) {
            dataset.extent[0] = final_rows(s, pass->owner);
            store_extend(pass->store, d, dataset.extent);
        }
    }
}

/* Of another program's file: the step's datasets are what they were said to be. */
static void check_foreign_datasets(const struct pass *pass, uint64_t step)
{
    const struct particles_settings *s = pass->settings;
    const int first = (int)step * datasets_in_step(s);
    char found[256] = "";
    char problem[MESSAGE_BYTES] = "";
    if (s->common.foreign == NULL)
        return;
    for (int d = first; d < first + datasets_in_step(s) && problem[0] == '\0'; d++)
        if (store_check_dataset(pass->store, d, found, sizeof found) != 0)
            snprintf(problem, sizeof problem, "--foreign %s: %s", s->common.foreign, found);
    stop_all_if(pass->run->world->comm, EXIT_BAD_INPUT, problem);
}

/* The datasets of the step that --delayed-close lets be closed now. */
static void close_datasets(const struct pass *pass, uint64_t step)
{
    const struct particles_settings *s = pass->settings;
    if (step < s->delayed_close || s->delayed_close >= s->steps)
        return;
    const int first = (int)(step - s->delayed_close) * datasets_in_step(s);
    stopwatch_start(pass->run->watch, PHASE_CLOSE);
    for (int d = first; d < first + datasets_in_step(s); d++)
        store_close_dataset(pass->store, d);
    stopwatch_stop(pass->run->watch);
}

/* Wait for what is in buffer NUMBER, so that it can be used again; what was read is checked. */
static void finish(struct pass *pass, uint64_t number)
{
    struct buffer *buffer = &pass->buffers[number];
    struct stopwatch *watch = pass->run->watch;
    if (!buffer->busy)
        return;
    if (explicitly_asynchronous(pass->settings)) {
        stopwatch_start(watch, PHASE_TRANSFER);
        store_wait(pass->store, (int)number);
        stopwatch_stop(watch);
    }
    stopwatch_start(watch, PHASE_PREPARE);
    if (pass->direction == DIRECTION_READ)
        check_buffer(pass, buffer);
    selection_free(&buffer->selection);
    stopwatch_stop(watch);
    buffer->busy = false;
}

static void move_piece(struct pass *pass, uint64_t step, struct share *left, bool first)
{
    struct stopwatch *watch = pass->run->watch;
    const uint64_t number = pass->moved++ % pass->buffer_count;
    struct buffer *buffer = &pass->buffers[number];
    finish(pass, number);
    stopwatch_start(watch, PHASE_PREPARE);
    buffer->selection = share_cut(left, pass->piece_elements);
    buffer->step = step;
    buffer->busy = true;
    if (pass->direction == DIRECTION_WRITE)
        fill_buffer(pass, buffer);
    else /* nothing of an earlier read may pass the check */
        memset(buffer->memory, 0xff, selection_elements(&buffer->selection, left->row_elements) * PARTICLE_BYTES);
    stopwatch_stop(watch);

    stopwatch_stretch(watch);
    store_batch(pass->store, (int)number);
    stopwatch_start(watch, PHASE_OPEN);
    if (first)
        open_datasets(pass, step);
    stopwatch_stop(watch);
    stopwatch_start(watch, PHASE_PREPARE);
    if (first)
        check_foreign_datasets(pass, step);
    stopwatch_stop(watch);
    stopwatch_start(watch, PHASE_TRANSFER);
    move(pass, buffer);
    stopwatch_stop(watch);
    if (!explicitly_asynchronous(pass->settings))
        finish(pass, number);
}

static void move_steps(struct pass *pass)
{
    const struct particles_settings *s = pass->settings;
    for (uint64_t step = 0; step < s->steps; step++) {
        struct share left = pass->share;
        if (step > 0 && s->compute_seconds > 0) {
            store_start_background(pass->store);
            run_pause(s->compute_seconds);
        }
        for (uint64_t piece = 0; piece < pass->pieces; piece++)
            move_piece(pass, step, &left, piece == 0);
        close_datasets(pass, step);
    }
    for (uint64_t i = 0; i < pass->buffer_count; i++)
        finish(pass, pass->moved++ % pass->buffer_count);
}

/* --- a pass ---------------------------------------------------------------------------------------------------- */

static uint64_t count_pieces(struct share left, uint64_t elements)
{
    uint64_t pieces = 0;
    for (bool more = true; more;) {
        struct selection piece = share_cut(&left, elements);
        more = selection_elements(&piece, left.row_elements) > 0;
        pieces += more;
        selection_free(&piece);
    }
    return pieces > 0 ? pieces : 1;
}

static struct pass begin(struct run *run, enum of_what what)
{
    const struct particles_settings *s = run->settings;
    struct pass pass = {.run = run,
                        .settings = s,
                        .what = what,
                        .direction = what == OF_READ || what == OF_WRITTEN ? DIRECTION_READ : DIRECTION_WRITE,
                        .buffer_count = buffer_count(s),
                        .piece_elements = buffer_elements(s)};
    pass.owner = pass.direction == DIRECTION_READ ? run->source : run->world->rank;
    pass.share = share_of(s, pass.owner, what);
    pass.pieces = count_pieces(pass.share, pass.piece_elements);
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &pass.pieces, 1, MPI_UINT64_T, MPI_MAX, run->world->comm), "MPI");
    pass.buffers = calloc(pass.buffer_count, sizeof *pass.buffers);
    if (pass.buffers == NULL)
        stop_rank("out of memory for %llu buffers", (unsigned long long)pass.buffer_count);
    const uint64_t share = share_elements(&pass.share);
    const uint64_t elements = share < pass.piece_elements ? share : pass.piece_elements;
    for (uint64_t i = 0; i < pass.buffer_count; i++)
        pass.buffers[i].memory = run_memory((elements > 0 ? elements : 1) * PARTICLE_BYTES);
    return pass;
}

static void end(struct pass *pass)
{
    for (uint64_t i = 0; i < pass->buffer_count; i++)
        free(pass->buffers[i].memory);
    free(pass->buffers);
    share_free(&pass->share);
}

static void write_pass(struct run *run, enum of_what what)
{
    const struct particles_settings *s = run->settings;
    struct pass pass = begin(run, what);
    char path[4096];
    run_path(run, 0, run->world->rank, path, sizeof path);
    stopwatch_stretch(run->watch);
    stopwatch_start(run->watch, PHASE_OPEN);
    pass.store = what == OF_FIRST || s->write_mode == WRITE_NEW ? store_create(path, &run->store)
                                                                : store_update(path, &run->store);
    stopwatch_stop(run->watch);
    move_steps(&pass);
    stopwatch_start(run->watch, PHASE_FLUSH);
    if (s->common.fsync)
        store_flush(pass.store);
    stopwatch_stop(run->watch);
    stopwatch_start(run->watch, PHASE_CLOSE);
    store_close(pass.store);
    stopwatch_stop(run->watch);
    end(&pass);
}

void particles_write(struct run *run)
{
    const struct particles_settings *s = run->settings;
    if (s->write_mode != WRITE_NEW) {
        struct stopwatch unused = {.comm = run->world->comm};
        struct run first = *run;
        first.watch = &unused;
        write_pass(&first, OF_FIRST);
        stopwatch_reduce(&unused);
    }
    write_pass(run, OF_WRITE);
}

void particles_read(struct run *run)
{
    struct pass pass = begin(run, run->everything ? OF_WRITTEN : OF_READ);
    char path[4096];
    run_path(run, 0, run->source, path, sizeof path);
    stopwatch_stretch(run->watch);
    stopwatch_start(run->watch, PHASE_OPEN);
    pass.store = store_open(path, &run->store);
    stopwatch_stop(run->watch);
    move_steps(&pass);
    stopwatch_stretch(run->watch);
    stopwatch_start(run->watch, PHASE_CLOSE);
    store_close(pass.store);
    stopwatch_stop(run->watch);
    end(&pass);
}
