/* Where the ranks run: hosts, processors, cores. Gathered once, before anything is measured. */
#ifndef IOGAUGE_WORLD_H
#define IOGAUGE_WORLD_H

#include <mpi.h>
#include <stdint.h>

enum { WORLD_HOST_BYTES = 256, WORLD_CPUS = 4096 };

struct rank_place {
    char host[WORLD_HOST_BYTES];
    int32_t pid;
    int32_t host_index;            /* in order of each host's first rank */
    uint8_t cpus[WORLD_CPUS / 8];  /* bit set: the rank may run on this logical processor */
    uint8_t cores[WORLD_CPUS / 8]; /* the physical cores behind them, by their lowest logical processor */
};

struct world {
    MPI_Comm comm; /* of the ranks that take part; MPI_COMM_NULL on a rank that stands aside */
    int rank;
    int size;
    int hosts;
    int host_leader;           /* the lowest rank of this rank's host */
    struct rank_place *places; /* [size], on every rank */
};

/* Start MPI and gather the placement. Stops all ranks when the launcher started another number of processes than MPI's
 * world has ranks (a launcher that does not fit the MPI library starts N worlds of one). Collective. */
struct world world_start(int *argc, char ***argv);

/* The first RANKS ranks of WORLD as a world of its own; it shares the places. Collective over WORLD. */
struct world world_of_first(const struct world *world, int ranks);

/* Until all ranks of WORLD are here; those that wait leave their processors alone. Collective over WORLD. */
void world_meet(const struct world *world);

/* The rank whose data each rank reads: the one SHIFT places on when ranks are ordered host by host.
 * SHIFT 0: the largest number of ranks on one host, so that with two or more equally filled hosts every reader is on
 * another host than the writer; on one host 1. FROM [size] is filled. Returns the shift used. */
int world_reading_from(const struct world *world, int shift, int *from);

static inline int bit_is_set(const uint8_t *bits, int i)
{
    return (bits[i / 8] >> (i % 8)) & 1;
}

#endif
