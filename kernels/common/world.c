#ifndef _GNU_SOURCE /* HDF5 1.14 and newer define it for all who link them */
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "world.h"

#include "failure.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The lowest logical processor of the physical core that CPU belongs to; CPU itself where the kernel does not tell. */
static int core_of(int cpu)
{
    char path[128];
    int core = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        if (fscanf(file, "%d", &core) != 1)
            core = cpu;
        fclose(file);
    }
    return core < WORLD_CPUS ? core : cpu;
}

static void look_at_myself(struct rank_place *place)
{
    memset(place, 0, sizeof *place);
    if (gethostname(place->host, sizeof place->host - 1) != 0)
        snprintf(place->host, sizeof place->host, "unknown");
    place->pid = (int32_t)getpid();
    cpu_set_t *allowed = CPU_ALLOC(WORLD_CPUS);
    const size_t bytes = CPU_ALLOC_SIZE(WORLD_CPUS);
    if (allowed == NULL)
        return;
    if (sched_getaffinity(0, bytes, allowed) == 0)
        for (size_t cpu = 0; cpu < WORLD_CPUS; cpu++)
            if (CPU_ISSET_S(cpu, bytes, allowed)) {
                const int core = core_of((int)cpu);
                place->cpus[cpu / 8] |= (uint8_t)(1 << (cpu % 8));
                place->cores[core / 8] |= (uint8_t)(1 << (core % 8));
            }
    CPU_FREE(allowed);
}

/* How many processes the launcher says it started, or 0. The innermost launcher's variable comes first. */
static int launched(const char **variable)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && atoi(value) > 0) {
            *variable = names[i];
            return atoi(value);
        }
    }
    return 0;
}

/* Hosts in order of each one's first rank; a rank that stands aside leaves the places as they are. */
static void number_hosts(struct world *world)
{
    world->hosts = 0;
    world->host_leader = world->rank;
    for (int r = 0; r < world->size; r++) {
        int first = 0;
        while (strcmp(world->places[first].host, world->places[r].host) != 0)
            first++;
        world->places[r].host_index = first == r ? world->hosts++ : world->places[first].host_index;
        if (r == world->rank)
            world->host_leader = first;
    }
}

/* Threads beside the kernel's own call MPI in HDF5's connectors and in its driver subfiling; without them MPI need not
 * lock anything. */
static int threads_needed(int argc, char **argv)
{
    bool needed = getenv("HDF5_VOL_CONNECTOR") != NULL;
    for (int i = 1; i < argc; i++)
        needed = needed || strstr(argv[i], "subfiling") != NULL;
    return needed ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
}

struct world world_start(int *argc, char ***argv)
{
    struct world world = {.comm = MPI_COMM_WORLD};
    struct rank_place mine;
    const char *variable = "";
    int threads = MPI_THREAD_SINGLE;
    MPI_Init_thread(argc, argv, threads_needed(*argc, *argv), &threads);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_OK(MPI_Comm_rank(MPI_COMM_WORLD, &world.rank), "MPI");
    MPI_OK(MPI_Comm_size(MPI_COMM_WORLD, &world.size), "MPI");

    const int processes = launched(&variable);
    if (processes != 0 && processes != world.size)
        stop_all(
            EXIT_BAD_INPUT,
            "the launcher started %d processes (%s) but MPI's world has %d rank%s: this launcher does not belong to "
            "the MPI library that the kernel was built with",
            processes, variable, world.size, world.size == 1 ? "" : "s");

    world.places = calloc((size_t)world.size, sizeof *world.places);
    if (world.places == NULL)
        stop_rank("out of memory for the placement of %d ranks", world.size);
    look_at_myself(&mine);
    MPI_OK(MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, world.places, (int)sizeof mine, MPI_BYTE, MPI_COMM_WORLD),
           "MPI");

    number_hosts(&world);
    return world;
}

struct world world_of_first(const struct world *world, int ranks)
{
    struct world first = *world;
    MPI_OK(MPI_Comm_split(world->comm, world->rank < ranks ? 0 : MPI_UNDEFINED, world->rank, &first.comm), "MPI");
    if (first.comm != MPI_COMM_NULL)
        MPI_OK(MPI_Comm_set_errhandler(first.comm, MPI_ERRORS_RETURN), "MPI");
    first.size = ranks;
    number_hosts(&first);
    return first;
}

void world_meet(const struct world *world)
{
    const struct timespec while_waiting = {.tv_nsec = 200000};
    MPI_Request request;
    int all_here = 0;
    MPI_OK(MPI_Ibarrier(world->comm, &request), "MPI");
    for (;;) {
        MPI_OK(MPI_Test(&request, &all_here, MPI_STATUS_IGNORE), "MPI");
        if (all_here)
            return;
        nanosleep(&while_waiting, NULL);
    }
}

int world_reading_from(const struct world *world, int shift, int *from)
{
    const int size = world->size;
    int *order = malloc((size_t)size * sizeof *order); /* ranks, host by host */
    int most = 0;
    int n = 0;
    if (order == NULL)
        stop_rank("out of memory for the order of %d ranks", size);
    for (int host = 0; host < world->hosts; host++) {
        const int before = n;
        for (int r = 0; r < size; r++)
            if (world->places[r].host_index == host)
                order[n++] = r;
        most = n - before > most ? n - before : most;
    }
    if (shift == 0)
        shift = world->hosts > 1 ? most : 1;
    shift %= size;
    for (int i = 0; i < size; i++)
        from[order[i]] = order[(i + shift) % size];
    free(order);
    return shift;
}
