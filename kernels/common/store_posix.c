/* POSIX: one pwrite or pread a block of rows; pieces of memory that lie together in the file go in one pwritev or
 * preadv. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* pwritev */
#endif
#include "failure.h"
#include "store_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIECES = 1024 }; /* of memory in one call: Linux's IOV_MAX */

struct posix_state {
    int fd;
    struct iovec pieces[PIECES]; /* of a box, not moved yet */
    int count;
    uint64_t offset; /* of the first in the file */
    uint64_t length; /* of all together */
};

static void posix_open(struct store *store, bool create)
{
    struct posix_state *state = calloc(1, sizeof *state);
    int rank = 0;
    if (state == NULL)
        stop_rank("%s: out of memory", store->path);
    store->own = state;
    MPI_OK(MPI_Comm_rank(store->settings.comm, &rank), store->path);
    /* The first rank makes the file, the others open what it made. */
    if (create && rank == 0) {
        state->fd = open(store->path, O_RDWR | O_CREAT | O_EXCL, 0666);
        if (state->fd < 0)
            failure_system("open to create", store->path);
    }
    if (create)
        MPI_OK(MPI_Barrier(store->settings.comm), store->path);
    if (!create || rank != 0) {
        state->fd = open(store->path, create || store->update ? O_RDWR : O_RDONLY);
        if (state->fd < 0)
            failure_system("open", store->path);
    }
}

/* Forget the first DONE bytes of the pieces. */
static void advance(struct posix_state *state, uint64_t done)
{
    int first = 0;
    state->offset += done;
    state->length -= done;
    while (first < state->count && state->pieces[first].iov_len <= done)
        done -= state->pieces[first++].iov_len;
    state->count -= first;
    memmove(state->pieces, state->pieces + first, (size_t)state->count * sizeof *state->pieces);
    if (state->count > 0) {
        state->pieces[0].iov_base = (uint8_t *)state->pieces[0].iov_base + done;
        state->pieces[0].iov_len -= done;
    }
}

static ssize_t move_some(const struct posix_state *state, enum direction direction)
{
    const struct iovec *first = state->pieces;
    const off_t offset = (off_t)state->offset;
    if (state->count == 1)
        return direction == DIRECTION_WRITE ? pwrite(state->fd, first->iov_base, first->iov_len, offset)
                                            : pread(state->fd, first->iov_base, first->iov_len, offset);
    return direction == DIRECTION_WRITE ? pwritev(state->fd, first, state->count, offset)
                                        : preadv(state->fd, first, state->count, offset);
}

static void move_pieces(struct store *store, enum direction direction)
{
    struct posix_state *state = store->own;
    while (state->length > 0) {
        const ssize_t done = move_some(state, direction);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 || (done == 0 && direction == DIRECTION_WRITE))
            failure_system(direction == DIRECTION_WRITE ? "pwrite" : "pread", store->path);
        if (done == 0)
            stop_rank("%s: pread: the file ends before byte %llu", store->path,
                      (unsigned long long)(state->offset + state->length));
        advance(state, (uint64_t)done);
    }
}

/* One more piece, after those that it does not follow in the file were moved. */
static void posix_add_run(struct store *store, enum direction direction, uint64_t offset, uint64_t length, void *memory)
{
    struct posix_state *state = store->own;
    if (state->count == PIECES || offset != state->offset + state->length)
        move_pieces(store, direction);
    if (state->count == 0)
        state->offset = offset;
    state->pieces[state->count++] = (struct iovec){.iov_base = memory, .iov_len = length};
    state->length += length;
}

static void posix_move_box(struct store *store, const struct slot *slot, enum direction direction,
                           const struct box *box, const struct frame *frame, void *memory)
{
    each_run(store, slot, direction, box, frame, memory);
    move_pieces(store, direction);
}

/* Memory and file of one move, run after run. */
struct posix_walk {
    struct store *store;
    const struct dataset *dataset;
    enum direction direction;
    uint8_t *memory;
};

static void move_elements(uint64_t first, uint64_t count, void *data)
{
    struct posix_walk *walk = data;
    const uint64_t bytes = element_bytes(walk->dataset->element);
    posix_add_run(walk->store, walk->direction, walk->dataset->base_bytes + first * bytes, count * bytes, walk->memory);
    move_pieces(walk->store, walk->direction);
    walk->memory += count * bytes;
}

static void posix_move(struct store *store, const struct slot *slot, enum direction direction,
                       const struct selection *selection, void *memory)
{
    const struct dataset *dataset = &slot->dataset;
    struct posix_walk walk = {.store = store, .dataset = dataset, .direction = direction, .memory = memory};
    selection_each_run(selection, dataset->row_bytes / element_bytes(dataset->element), move_elements, &walk);
}

static void posix_flush(struct store *store)
{
    const struct posix_state *state = store->own;
    SYSTEM_OK(fsync(state->fd), store->path);
}

static void posix_close(struct store *store)
{
    struct posix_state *state = store->own;
    SYSTEM_OK(close(state->fd), store->path);
    free(state);
}

const struct store_parts store_posix = {.open = posix_open,
                                        .move = posix_move,
                                        .move_run = posix_add_run,
                                        .move_box = posix_move_box,
                                        .flush = posix_flush,
                                        .close = posix_close};
