/* Times of one operation on one rank, and their reduction over ranks: the slowest rank counts.
 *
 * An operation is a row of stretches. Ranks enter a stretch together, after a barrier; inside it each rank's time is
 * booked to phases. A stretch takes as long as its slowest rank, the operation as long as its stretches together.
 * Making and checking data stands between transfers but is no I/O: it is booked as PHASE_PREPARE and not in the total.
 */
#ifndef IOGAUGE_STOPWATCH_H
#define IOGAUGE_STOPWATCH_H

#include <mpi.h>
#include <stddef.h>

enum phase { PHASE_OPEN, PHASE_TRANSFER, PHASE_FLUSH, PHASE_CLOSE, PHASE_PREPARE, PHASES };

struct stretch {
    double seconds[PHASES];
};

struct stopwatch {
    MPI_Comm comm; /* the ranks that take part */
    struct stretch *stretches;
    size_t count;
    size_t capacity;
    enum phase running;
    double since;
};

struct phase_times {
    double seconds[PHASES];       /* per phase: the slowest rank of every stretch, summed */
    double total_seconds;         /* the slowest rank of every stretch over all phases but PREPARE, summed */
    double least_seconds[PHASES]; /* the same of the fastest rank */
    double least_total_seconds;
};

/* Barrier, then a new stretch. Collective. */
void stopwatch_stretch(struct stopwatch *watch);

/* Book the time up to stopwatch_stop to PHASE. */
void stopwatch_start(struct stopwatch *watch, enum phase phase);
void stopwatch_stop(struct stopwatch *watch);

/* The result over all ranks, on every rank; the stopwatch is emptied. Collective. */
struct phase_times stopwatch_reduce(struct stopwatch *watch);

#endif
