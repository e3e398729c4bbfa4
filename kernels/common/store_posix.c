/* POSIX: one pwrite or pread a block of rows. */
#include "failure.h"
#include "store_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct posix_state {
    int fd;
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
        state->fd = open(store->path, create ? O_RDWR : O_RDONLY);
        if (state->fd < 0)
            failure_system("open", store->path);
    }
}

static void write_all(const struct store *store, int fd, const uint8_t *bytes, uint64_t length, uint64_t offset)
{
    while (length > 0) {
        const ssize_t done = pwrite(fd, bytes, length, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            failure_system("pwrite", store->path);
        bytes += done;
        offset += (uint64_t)done;
        length -= (uint64_t)done;
    }
}

static void read_all(const struct store *store, int fd, uint8_t *bytes, uint64_t length, uint64_t offset)
{
    while (length > 0) {
        const ssize_t done = pread(fd, bytes, length, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            failure_system("pread", store->path);
        if (done == 0)
            stop_rank("%s: pread: the file ends before byte %llu", store->path, (unsigned long long)(offset + length));
        bytes += done;
        offset += (uint64_t)done;
        length -= (uint64_t)done;
    }
}

static void posix_move_run(struct store *store, enum direction direction, uint64_t offset, uint64_t length,
                           void *memory)
{
    const struct posix_state *state = store->own;
    if (direction == DIRECTION_WRITE)
        write_all(store, state->fd, memory, length, offset);
    else
        read_all(store, state->fd, memory, length, offset);
}

static void posix_move(struct store *store, const struct slot *slot, enum direction direction,
                       const struct selection *selection, void *memory)
{
    const uint64_t row = slot->dataset.row_bytes;
    const uint64_t bytes = selection->block * row;
    for (uint64_t k = 0; k < selection->count; k++) {
        const uint64_t offset = slot->dataset.base_bytes + (selection->first + k * selection->stride) * row;
        posix_move_run(store, direction, offset, bytes, (uint8_t *)memory + k * bytes);
    }
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

const struct store_parts store_posix = {
    .open = posix_open, .move = posix_move, .move_run = posix_move_run, .flush = posix_flush, .close = posix_close};
