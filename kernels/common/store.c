#include "failure.h"
#include "made_files.h"
#include "store_parts.h"

#include <stdlib.h>
#include <string.h>

const char *const particle_member_names[PARTICLE_MEMBERS] = {"x", "y", "z", "px", "py", "pz", "id_1", "id_2"};

static const struct store_parts *parts_of(enum interface interface)
{
    switch (interface) {
    case INTERFACE_POSIX:
        return &store_posix;
    case INTERFACE_MPIIO:
        return &store_mpiio;
    case INTERFACE_HDF5:
#ifdef IOGAUGE_HAVE_HDF5
        return &store_hdf5;
#else
        return NULL;
#endif
    }
    return NULL;
}

bool store_has(enum interface interface)
{
    return parts_of(interface) != NULL;
}

static struct store *start(const char *path, const struct store_settings *settings, bool create)
{
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL || (store->path = strdup(path)) == NULL)
        stop_rank("%s: out of memory", path);
    store->parts = parts_of(settings->interface);
    store->settings = *settings;
    store->comm = settings->file_per_process ? MPI_COMM_SELF : MPI_COMM_WORLD;
    store->parts->open(store, create);
    if (create)
        made_files_add(path);
    return store;
}

struct store *store_create(const char *path, const struct store_settings *settings)
{
    return start(path, settings, true);
}

struct store *store_open(const char *path, const struct store_settings *settings)
{
    return start(path, settings, false);
}

static void set_slot(struct store *store, int slot, const struct dataset *dataset, bool create)
{
    if (slot >= store->slot_count) {
        struct slot *larger = realloc(store->slots, ((size_t)slot + 1) * sizeof *larger);
        if (larger == NULL)
            stop_rank("%s: out of memory for %d datasets", store->path, slot + 1);
        memset(larger + store->slot_count, 0, (size_t)(slot + 1 - store->slot_count) * sizeof *larger);
        store->slots = larger;
        store->slot_count = slot + 1;
    }
    store->slots[slot].dataset = *dataset;
    if (store->parts->open_dataset != NULL)
        store->parts->open_dataset(store, &store->slots[slot], create);
}

void store_make_dataset(struct store *store, int slot, const struct dataset *dataset)
{
    set_slot(store, slot, dataset, true);
}

void store_open_dataset(struct store *store, int slot, const struct dataset *dataset)
{
    set_slot(store, slot, dataset, false);
}

void store_move(struct store *store, int slot, enum direction direction, const struct selection *selection,
                void *memory)
{
    store->parts->move(store, &store->slots[slot], direction, selection, memory);
}

/* Particles as words: member m of particle i is word[i * PARTICLE_MEMBERS + m]. */
static void gather(uint32_t *array, const uint32_t *particles, int member, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        array[i] = particles[i * PARTICLE_MEMBERS + (uint64_t)member];
}

static void scatter(const uint32_t *array, uint32_t *particles, int member, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        particles[i * PARTICLE_MEMBERS + (uint64_t)member] = array[i];
}

static uint64_t elements(const struct slot *slot, const struct selection *selection, uint64_t element_bytes)
{
    return selection_rows(selection) * (slot->dataset.row_bytes / element_bytes);
}

void store_move_member(struct store *store, int number, enum direction direction, const struct selection *selection,
                       void *particles)
{
    const struct slot *slot = &store->slots[number];
    if (store->parts->move_member != NULL) {
        store->parts->move_member(store, slot, direction, selection, particles);
        return;
    }
    uint32_t *array = (uint32_t *)(void *)store->settings.scratch;
    const uint64_t count = elements(slot, selection, sizeof *array);
    if (direction == DIRECTION_WRITE)
        gather(array, particles, slot->dataset.member, count);
    store->parts->move(store, slot, direction, selection, array);
    if (direction == DIRECTION_READ)
        scatter(array, particles, slot->dataset.member, count);
}

void store_move_members(struct store *store, int number, enum direction direction, const struct selection *selection,
                        void *arrays)
{
    const struct slot *slot = &store->slots[number];
    if (store->parts->move_members != NULL) {
        store->parts->move_members(store, slot, direction, selection, arrays);
        return;
    }
    uint32_t *particles = (uint32_t *)(void *)store->settings.scratch;
    uint32_t *words = arrays;
    const uint64_t count = elements(slot, selection, PARTICLE_BYTES);
    if (direction == DIRECTION_WRITE)
        for (int m = 0; m < PARTICLE_MEMBERS; m++)
            scatter(words + (uint64_t)m * count, particles, m, count);
    store->parts->move(store, slot, direction, selection, particles);
    if (direction == DIRECTION_READ)
        for (int m = 0; m < PARTICLE_MEMBERS; m++)
            gather(words + (uint64_t)m * count, particles, m, count);
}

void store_flush(struct store *store)
{
    store->parts->flush(store);
}

void store_close(struct store *store)
{
    store->parts->close(store);
    free(store->slots);
    free(store->path);
    free(store);
}
