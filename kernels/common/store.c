#include "failure.h"
#include "made_files.h"
#include "store_parts.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    case INTERFACE_NETCDF:
#ifdef IOGAUGE_HAVE_NETCDF
        return &store_netcdf;
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

static void remember(const char *path, void *unused)
{
    (void)unused;
    made_files_add(path);
}

static struct store *start(const char *path, const struct store_settings *settings, bool create, bool update)
{
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL || (store->path = strdup(path)) == NULL)
        stop_rank("%s: out of memory", path);
    store->parts = parts_of(settings->interface);
    store->settings = *settings;
    store->update = update;
    /* What is not there yet is known before it is made: a signal may come meanwhile. */
    if (create && access(path, F_OK) != 0 && errno == ENOENT)
        made_files_add(path);
    store->parts->open(store, create);
    if (create)
        store_each_file(path, settings, remember, NULL);
    return store;
}

#ifndef IOGAUGE_HAVE_HDF5
const char *store_lacks(const struct hdf5_settings *settings, bool alone)
{
    (void)settings;
    (void)alone;
    return NULL;
}
#endif

struct store *store_create(const char *path, const struct store_settings *settings)
{
    return start(path, settings, true, false);
}

struct store *store_open(const char *path, const struct store_settings *settings)
{
    return start(path, settings, false, false);
}

struct store *store_update(const char *path, const struct store_settings *settings)
{
    return start(path, settings, false, true);
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

void store_extend(struct store *store, int slot, const uint64_t *extent)
{
    if (store->parts->extend != NULL)
        store->parts->extend(store, &store->slots[slot], extent);
}

int store_check_dataset(struct store *store, int number, char *problem, size_t problem_bytes)
{
    if (store->parts->check_dataset == NULL)
        return 0;
    return store->parts->check_dataset(store, &store->slots[number], problem, problem_bytes);
}

void store_close_dataset(struct store *store, int number)
{
    if (store->parts->close_dataset != NULL)
        store->parts->close_dataset(store, &store->slots[number]);
}

void store_batch(struct store *store, int number)
{
    if (store->parts->batch != NULL)
        store->parts->batch(store, number);
}

void store_wait(struct store *store, int number)
{
    if (store->parts->wait != NULL)
        store->parts->wait(store, number);
}

void store_start_background(struct store *store)
{
    if (store->parts->start_background != NULL)
        store->parts->start_background(store);
}

uint64_t selection_elements(const struct selection *selection, uint64_t row_elements)
{
    uint64_t elements = selection_rows(selection) * row_elements;
    for (size_t i = 0; i < selection->box_count; i++)
        elements += selection->boxes[i].count[0] * selection->boxes[i].count[1];
    return elements;
}

/* Boxes side by side, row by row; one that is as wide as the dataset is one run. */
static void each_run_of_row(const struct box *boxes, size_t count, uint64_t row_elements,
                            void (*act)(uint64_t first, uint64_t count, void *data), void *data)
{
    const uint64_t first = boxes[0].start[0];
    if (boxes[0].count[1] == row_elements) {
        act(first * row_elements, boxes[0].count[0] * row_elements, data);
        return;
    }
    for (uint64_t row = first; row < first + boxes[0].count[0]; row++)
        for (size_t i = 0; i < count; i++)
            act(row * row_elements + boxes[i].start[1], boxes[i].count[1], data);
}

void selection_each_run(const struct selection *selection, uint64_t row_elements,
                        void (*act)(uint64_t first, uint64_t count, void *data), void *data)
{
    size_t end = 0;
    for (uint64_t k = 0; k < selection->count; k++)
        act((selection->first + k * selection->stride) * row_elements, selection->block * row_elements, data);
    for (size_t i = 0; i < selection->box_count; i = end) {
        while (end < selection->box_count && selection->boxes[end].start[0] == selection->boxes[i].start[0])
            end++;
        each_run_of_row(selection->boxes + i, end - i, row_elements, act, data);
    }
}

void store_move(struct store *store, int slot, enum direction direction, const struct selection *selection,
                void *memory)
{
    store->parts->move(store, &store->slots[slot], direction, selection, memory);
}

uint64_t element_bytes(enum element element)
{
    const uint64_t bytes[] = {[ELEMENT_WORD64] = 8, [ELEMENT_DOUBLE] = 8,  [ELEMENT_BYTE] = 1,
                              [ELEMENT_MEMBER] = 4, [ELEMENT_WRAPPED] = 4, [ELEMENT_PARTICLE] = PARTICLE_BYTES};
    return bytes[element];
}

uint64_t box_elements(const struct dataset *dataset, const struct box *box)
{
    uint64_t elements = 1;
    for (int i = 0; i < dataset->dimensions; i++)
        elements *= box->count[i];
    return elements;
}

/* Row-major place of an element in an array of EXTENT. */
static uint64_t place_of(int dimensions, const uint64_t *extent, const uint64_t *index)
{
    uint64_t place = 0;
    for (int i = 0; i < dimensions; i++)
        place = place * extent[i] + index[i];
    return place;
}

void each_run(struct store *store, const struct slot *slot, enum direction direction, const struct box *box,
              const struct frame *frame, void *memory)
{
    const struct dataset *dataset = &slot->dataset;
    const int n = dataset->dimensions;
    const uint64_t bytes = element_bytes(dataset->element);
    const uint64_t *extent = frame != NULL ? frame->extent : box->count;
    uint64_t at[STORE_DIMENSIONS] = {0}; /* within the box */
    uint64_t run = 1;
    int outer = n; /* dimensions below this one are walked, the others are one run */
    while (outer > 0) {
        outer--;
        run *= box->count[outer];
        if (box->count[outer] != dataset->extent[outer] || box->count[outer] != extent[outer])
            break;
    }
    for (;;) {
        uint64_t in_file[STORE_DIMENSIONS];
        uint64_t in_memory[STORE_DIMENSIONS];
        for (int i = 0; i < n; i++) {
            in_file[i] = box->start[i] + at[i];
            in_memory[i] = (frame != NULL ? frame->start[i] : 0) + at[i];
        }
        store->parts->move_run(store, direction, dataset->base_bytes + place_of(n, dataset->extent, in_file) * bytes,
                               run * bytes, (uint8_t *)memory + place_of(n, extent, in_memory) * bytes);
        int i = outer;
        while (i > 0 && ++at[i - 1] == box->count[i - 1])
            at[--i] = 0;
        if (i == 0)
            return;
    }
}

void store_move_box(struct store *store, int number, enum direction direction, const struct box *box,
                    const struct frame *frame, void *memory)
{
    const struct slot *slot = &store->slots[number];
    if (store->parts->move_box != NULL)
        store->parts->move_box(store, slot, direction, box, frame, memory);
    else
        each_run(store, slot, direction, box, frame, memory);
}

static void act_if_there(const char *path, void (*act)(const char *path, void *data), void *data)
{
    if (access(path, F_OK) == 0)
        act(path, data);
}

void store_each_file(const char *path, const struct store_settings *settings, void (*act)(const char *path, void *data),
                     void *data)
{
    static const char *const of_split[] = {"-m.h5", "-r.h5", NULL};
    static const char *const of_multi[] = {"-s.h5", "-b.h5", "-r.h5", "-g.h5", "-l.h5", "-o.h5", NULL};
    const bool hdf5 = settings->interface == INTERFACE_HDF5;
    const int driver = hdf5 ? settings->hdf5->driver : DRIVER_DEFAULT;
    const char *const *endings = driver == DRIVER_SPLIT ? of_split : driver == DRIVER_MULTI ? of_multi : NULL;
    char name[MESSAGE_BYTES];
    if (endings != NULL) {
        for (; *endings != NULL; endings++) {
            snprintf(name, sizeof name, "%s%s", path, *endings);
            act_if_there(name, act, data);
        }
    } else if (driver == DRIVER_FAMILY) {
        for (int i = 0; snprintf(name, sizeof name, "%s-%d", path, i), access(name, F_OK) == 0; i++)
            act(name, data);
    } else {
        act(path, data);
    }
    if (driver == DRIVER_SUBFILING) {
        glob_t found = {0};
        snprintf(name, sizeof name, "%s.subfile_*", path);
        if (glob(name, 0, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc; i++)
                act(found.gl_pathv[i], data);
        globfree(&found);
    }
}

/* Particles as words: member m of particle i is word[i * PARTICLE_MEMBERS + m]. */
static void take_member(uint32_t *array, const uint32_t *particles, int member, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        array[i] = particles[i * PARTICLE_MEMBERS + (uint64_t)member];
}

static void put_member(const uint32_t *array, uint32_t *particles, int member, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        particles[i * PARTICLE_MEMBERS + (uint64_t)member] = array[i];
}

static uint64_t elements(const struct slot *slot, const struct selection *selection, uint64_t element_bytes)
{
    return selection_elements(selection, slot->dataset.row_bytes / element_bytes);
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
        take_member(array, particles, slot->dataset.member, count);
    store->parts->move(store, slot, direction, selection, array);
    if (direction == DIRECTION_READ)
        put_member(array, particles, slot->dataset.member, count);
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
            put_member(words + (uint64_t)m * count, particles, m, count);
    store->parts->move(store, slot, direction, selection, particles);
    if (direction == DIRECTION_READ)
        for (int m = 0; m < PARTICLE_MEMBERS; m++)
            take_member(words + (uint64_t)m * count, particles, m, count);
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
