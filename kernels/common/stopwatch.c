#include "stopwatch.h"

#include "failure.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

void stopwatch_stretch(struct stopwatch *watch)
{
    if (watch->count == watch->capacity) {
        const size_t capacity = watch->capacity * 2 + 16;
        struct stretch *larger = realloc(watch->stretches, capacity * sizeof *larger);
        if (larger == NULL)
            stop_rank("out of memory for %zu timings", capacity);
        watch->stretches = larger;
        watch->capacity = capacity;
    }
    memset(&watch->stretches[watch->count++], 0, sizeof *watch->stretches);
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD), "MPI");
}

void stopwatch_start(struct stopwatch *watch, enum phase phase)
{
    watch->running = phase;
    watch->since = MPI_Wtime();
}

void stopwatch_stop(struct stopwatch *watch)
{
    watch->stretches[watch->count - 1].seconds[watch->running] += MPI_Wtime() - watch->since;
}

struct phase_times stopwatch_reduce(struct stopwatch *watch)
{
    enum { COLUMNS = PHASES + 1 };
    struct phase_times times = {0};
    double *slowest = calloc(watch->count * COLUMNS + 1, sizeof *slowest);
    if (slowest == NULL)
        stop_rank("out of memory for %zu timings", watch->count);
    for (size_t i = 0; i < watch->count; i++)
        for (int p = 0; p < PHASES; p++) {
            slowest[i * COLUMNS + (size_t)p] = watch->stretches[i].seconds[p];
            if (p != PHASE_PREPARE)
                slowest[i * COLUMNS + PHASES] += watch->stretches[i].seconds[p];
        }
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, slowest, (int)(watch->count * COLUMNS), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD),
           "MPI");
    for (size_t i = 0; i < watch->count; i++) {
        for (int p = 0; p < PHASES; p++)
            times.seconds[p] += slowest[i * COLUMNS + (size_t)p];
        times.total_seconds += slowest[i * COLUMNS + PHASES];
    }
    free(slowest);
    free(watch->stretches);
    memset(watch, 0, sizeof *watch);
    return times;
}
