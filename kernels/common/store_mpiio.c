/* MPI-IO: explicit offsets; a strided collective access through a file view. */
#include "failure.h"
#include "store_parts.h"

#include <limits.h>
#include <stdlib.h>

struct mpiio_state {
    MPI_File file;
};

static void mpiio_open(struct store *store, bool create)
{
    struct mpiio_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        stop_rank("%s: out of memory", store->path);
    store->own = state;
    const int mode = create          ? MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL
                     : store->update ? MPI_MODE_RDWR
                                     : MPI_MODE_RDONLY;
    MPI_OK(MPI_File_open(store->settings.comm, store->path, mode, store->settings.info, &state->file), store->path);
}

/* What MPI counts: four-byte words, so that an access of 2 GiB and more has a count that fits, or bytes where it must.
 */
struct unit {
    MPI_Datatype type;
    uint64_t bytes;
};

static struct unit unit_of(uint64_t bytes)
{
    return bytes % 4 == 0 ? (struct unit){MPI_UINT32_T, 4} : (struct unit){MPI_BYTE, 1};
}

static void complete(const struct store *store, const MPI_Status *status, struct unit unit, int units)
{
    int done = 0;
    MPI_OK(MPI_Get_count(status, unit.type, &done), store->path);
    if (done != units)
        stop_rank("%s: MPI-IO moved %d of %d units of %d bytes and reported no error", store->path, done, units,
                  (int)unit.bytes);
}

static void move_at(struct store *store, MPI_Offset offset, void *memory, uint64_t bytes, enum direction direction)
{
    const struct mpiio_state *state = store->own;
    const struct unit unit = unit_of(bytes);
    const int units = (int)(bytes / unit.bytes); /* it fits: checked with the arguments */
    MPI_Status status;
    if (direction == DIRECTION_WRITE && store->settings.collective)
        MPI_OK(MPI_File_write_at_all(state->file, offset, memory, units, unit.type, &status), store->path);
    else if (direction == DIRECTION_WRITE)
        MPI_OK(MPI_File_write_at(state->file, offset, memory, units, unit.type, &status), store->path);
    else if (store->settings.collective)
        MPI_OK(MPI_File_read_at_all(state->file, offset, memory, units, unit.type, &status), store->path);
    else
        MPI_OK(MPI_File_read_at(state->file, offset, memory, units, unit.type, &status), store->path);
    complete(store, &status, unit, units);
}

/* One collective call for all that TYPE, from OFFSET on, lets through. TYPE is freed; MPI_DATATYPE_NULL: nothing. */
static void move_through_view(struct store *store, MPI_Offset offset, MPI_Datatype type, int words, void *memory,
                              enum direction direction)
{
    const struct mpiio_state *state = store->own;
    MPI_Datatype view = MPI_UINT32_T;
    MPI_Status status;
    if (type != MPI_DATATYPE_NULL) {
        MPI_OK(MPI_Type_commit(&type), store->path);
        view = type;
    }
    MPI_OK(MPI_File_set_view(state->file, offset, MPI_UINT32_T, view, "native", MPI_INFO_NULL), store->path);
    if (direction == DIRECTION_WRITE)
        MPI_OK(MPI_File_write_all(state->file, memory, words, MPI_UINT32_T, &status), store->path);
    else
        MPI_OK(MPI_File_read_all(state->file, memory, words, MPI_UINT32_T, &status), store->path);
    complete(store, &status, unit_of(4), words);
    MPI_OK(MPI_File_set_view(state->file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), store->path);
    if (type != MPI_DATATYPE_NULL)
        MPI_OK(MPI_Type_free(&type), store->path);
}

/* Memory and file of one move, run after run: moved at once, or collected for one collective call. */
struct mpiio_walk {
    struct store *store;
    const struct dataset *dataset;
    enum direction direction;
    uint8_t *memory;
    int *lengths; /* words */
    MPI_Aint *places;
    int count;
};

static void move_elements(uint64_t first, uint64_t count, void *data)
{
    struct mpiio_walk *walk = data;
    const uint64_t bytes = element_bytes(walk->dataset->element);
    move_at(walk->store, (MPI_Offset)(walk->dataset->base_bytes + first * bytes), walk->memory, count * bytes,
            walk->direction);
    walk->memory += count * bytes;
}

static void collect_elements(uint64_t first, uint64_t count, void *data)
{
    struct mpiio_walk *walk = data;
    const uint64_t bytes = element_bytes(walk->dataset->element);
    if (walk->lengths != NULL) {
        walk->lengths[walk->count] = (int)(count * bytes / 4);
        walk->places[walk->count] = (MPI_Aint)(first * bytes);
    }
    walk->count++;
}

static MPI_Datatype type_of_boxes(struct store *store, const struct dataset *dataset, const struct selection *selection)
{
    const uint64_t row_elements = dataset->row_bytes / element_bytes(dataset->element);
    struct mpiio_walk walk = {.dataset = dataset};
    MPI_Datatype type;
    selection_each_run(selection, row_elements, collect_elements, &walk);
    walk.lengths = malloc((size_t)walk.count * sizeof *walk.lengths);
    walk.places = malloc((size_t)walk.count * sizeof *walk.places);
    if (walk.lengths == NULL || walk.places == NULL)
        stop_rank("%s: out of memory for %d pieces", store->path, walk.count);
    walk.count = 0;
    selection_each_run(selection, row_elements, collect_elements, &walk);
    MPI_OK(MPI_Type_create_hindexed(walk.count, walk.lengths, walk.places, MPI_UINT32_T, &type), store->path);
    free(walk.lengths);
    free(walk.places);
    return type;
}

static void move_collectively(struct store *store, const struct dataset *dataset, enum direction direction,
                              const struct selection *selection, void *memory)
{
    const uint64_t row = dataset->row_bytes;
    const uint64_t bytes = element_bytes(dataset->element);
    const int words = (int)(selection_elements(selection, row / bytes) * bytes / 4);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (selection->box_count > 0)
        type = type_of_boxes(store, dataset, selection);
    else if (selection->count > 0)
        MPI_OK(MPI_Type_create_hvector((int)selection->count, (int)(selection->block * row / 4),
                                       (MPI_Aint)(selection->stride * row), MPI_UINT32_T, &type),
               store->path);
    move_through_view(store, (MPI_Offset)(dataset->base_bytes + selection->first * row), type, words, memory,
                      direction);
}

/* An access fits an int: checked with the arguments. */
static void mpiio_move(struct store *store, const struct slot *slot, enum direction direction,
                       const struct selection *selection, void *memory)
{
    const struct dataset *dataset = &slot->dataset;
    struct mpiio_walk walk = {.store = store, .dataset = dataset, .direction = direction, .memory = memory};
    if (store->settings.collective && (selection->count > 1 || selection->scattered))
        move_collectively(store, dataset, direction, selection, memory);
    else if (store->settings.collective && selection->count == 0)
        move_at(store, (MPI_Offset)dataset->base_bytes, memory, 0, direction);
    else
        selection_each_run(selection, dataset->row_bytes / element_bytes(dataset->element), move_elements, &walk);
}

static void mpiio_move_run(struct store *store, enum direction direction, uint64_t offset, uint64_t length,
                           void *memory)
{
    move_at(store, (MPI_Offset)offset, memory, length, direction);
}

static MPI_Datatype subarray(const struct store *store, int dimensions, const uint64_t *extent, const uint64_t *start,
                             const uint64_t *count, struct unit unit, uint64_t units)
{
    int whole[STORE_DIMENSIONS + 1];
    int part[STORE_DIMENSIONS + 1];
    int first[STORE_DIMENSIONS + 1];
    MPI_Datatype type;
    for (int i = 0; i < dimensions; i++) {
        if (extent[i] > INT_MAX)
            stop_rank("%s: a dimension of %llu elements is more than MPI's subarrays hold", store->path,
                      (unsigned long long)extent[i]);
        whole[i] = (int)extent[i];
        part[i] = (int)count[i];
        first[i] = (int)start[i];
    }
    whole[dimensions] = part[dimensions] = (int)units;
    first[dimensions] = 0;
    MPI_OK(MPI_Type_create_subarray(dimensions + 1, whole, part, first, MPI_ORDER_C, unit.type, &type), store->path);
    MPI_OK(MPI_Type_commit(&type), store->path);
    return type;
}

/* Collective: one call for the whole box, through a file view. */
static void mpiio_move_box(struct store *store, const struct slot *slot, enum direction direction,
                           const struct box *box, const struct frame *frame, void *memory)
{
    const struct mpiio_state *state = store->own;
    const struct dataset *dataset = &slot->dataset;
    const struct unit unit = unit_of(element_bytes(dataset->element));
    const uint64_t units = element_bytes(dataset->element) / unit.bytes; /* of an element */
    const uint64_t all_units = box_elements(dataset, box) * units;
    MPI_Status status;
    if (!store->settings.collective) {
        each_run(store, slot, direction, box, frame, memory);
        return;
    }
    MPI_Datatype file = subarray(store, dataset->dimensions, dataset->extent, box->start, box->count, unit, units);
    MPI_Datatype place = unit.type;
    if (frame != NULL)
        place = subarray(store, dataset->dimensions, frame->extent, frame->start, box->count, unit, units);
    const int count = frame != NULL ? 1 : (int)all_units;
    MPI_OK(MPI_File_set_view(state->file, (MPI_Offset)dataset->base_bytes, unit.type, file, "native", MPI_INFO_NULL),
           store->path);
    if (direction == DIRECTION_WRITE)
        MPI_OK(MPI_File_write_all(state->file, memory, count, place, &status), store->path);
    else
        MPI_OK(MPI_File_read_all(state->file, memory, count, place, &status), store->path);
    complete(store, &status, unit, (int)all_units);
    MPI_OK(MPI_File_set_view(state->file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), store->path);
    MPI_OK(MPI_Type_free(&file), store->path);
    if (frame != NULL)
        MPI_OK(MPI_Type_free(&place), store->path);
}

static void mpiio_flush(struct store *store)
{
    const struct mpiio_state *state = store->own;
    MPI_OK(MPI_File_sync(state->file), store->path);
}

static void mpiio_close(struct store *store)
{
    struct mpiio_state *state = store->own;
    MPI_OK(MPI_File_close(&state->file), store->path);
    free(state);
}

const struct store_parts store_mpiio = {.open = mpiio_open,
                                        .move = mpiio_move,
                                        .move_run = mpiio_move_run,
                                        .move_box = mpiio_move_box,
                                        .flush = mpiio_flush,
                                        .close = mpiio_close};
