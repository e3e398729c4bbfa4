#include "stopwatch.h"

#include "failure.h"

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
    MPI_OK(MPI_Barrier(watch->comm), "MPI");
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

enum { COLUMNS = PHASES + 1 };

/* The largest or smallest over ranks, stretch by stretch, added up into SECONDS [COLUMNS]. */
static void reduce_stretches(const struct stopwatch *watch, const double *mine, MPI_Op op, double *seconds)
{
    double *over_ranks = calloc(watch->count * COLUMNS + 1, sizeof *over_ranks);
    if (over_ranks == NULL)
        stop_rank("out of memory for %zu timings", watch->count);
    MPI_OK(MPI_Allreduce(mine, over_ranks, (int)(watch->count * COLUMNS), MPI_DOUBLE, op, watch->comm), "MPI");
    for (size_t i = 0; i < watch->count * COLUMNS; i++)
        seconds[i % COLUMNS] += over_ranks[i];
    free(over_ranks);
}

struct phase_times stopwatch_reduce(struct stopwatch *watch)
{
    struct phase_times times = {0};
    double most[COLUMNS] = {0};
    double least[COLUMNS] = {0};
    double *mine = calloc(watch->count * COLUMNS + 1, sizeof *mine);
    if (mine == NULL)
        stop_rank("out of memory for %zu timings", watch->count);
    for (size_t i = 0; i < watch->count; i++)
        for (int p = 0; p < PHASES; p++) {
            mine[i * COLUMNS + (size_t)p] = watch->stretches[i].seconds[p];
            if (p != PHASE_PREPARE)
                mine[i * COLUMNS + PHASES] += watch->stretches[i].seconds[p];
        }
    reduce_stretches(watch, mine, MPI_MAX, most);
    reduce_stretches(watch, mine, MPI_MIN, least);
    memcpy(times.seconds, most, sizeof times.seconds);
    memcpy(times.least_seconds, least, sizeof times.least_seconds);
    times.total_seconds = most[PHASES];
    times.least_total_seconds = least[PHASES];
    free(mine);
    free(watch->stretches);
    *watch = (struct stopwatch){.comm = watch->comm};
    return times;
}
