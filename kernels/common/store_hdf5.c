/* HDF5: the MPI-IO driver for a shared file, sec2 for a file of one rank; one hyperslab an access. */
#include "failure.h"
#include "hdf5_async.h"
#include "store_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hdf5_state {
    hid_t file;
    hid_t transfer; /* dataset transfer properties */
    hid_t links;    /* link creation: make the groups on the way */
    hid_t memory;   /* dataspace of the last access's memory; most accesses are alike */
    hsize_t memory_elements;
    struct frame frame; /* of the last box that lay in one */
    struct box framed;
    hid_t frame_space;
    struct box *boxes; /* of the last selection that had some, and the dataspace with them selected */
    size_t box_count;
    hid_t boxes_space;
    hid_t *batches; /* event sets */
    int batch_count;
    hid_t events;                    /* of the batch that calls belong to now, or H5ES_NONE */
    hid_t particle;                  /* compound of all members */
    hid_t wrapped[PARTICLE_MEMBERS]; /* compounds of one member each */
};

static hid_t member_type(int member)
{
    return member < 6 ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT32;
}

static void make_types(struct hdf5_state *state, const char *path)
{
    state->particle = HDF5_OK(H5Tcreate(H5T_COMPOUND, PARTICLE_BYTES), path);
    for (int m = 0; m < PARTICLE_MEMBERS; m++) {
        const char *name = particle_member_names[m];
        HDF5_OK(H5Tinsert(state->particle, name, (size_t)m * 4, member_type(m)), path);
        state->wrapped[m] = HDF5_OK(H5Tcreate(H5T_COMPOUND, 4), path);
        HDF5_OK(H5Tinsert(state->wrapped[m], name, 0, member_type(m)), path);
    }
}

/* A driver's member files end in these; family numbers them. */
enum { FAMILY_MEMBER_BYTES = 1 << 28, CORE_INCREMENT_BYTES = 1 << 20 };

static bool can_filter(H5Z_filter_t filter)
{
    unsigned flags = 0;
    return H5Zfilter_avail(filter) > 0 && H5Zget_filter_info(filter, &flags) >= 0 &&
           (flags & H5Z_FILTER_CONFIG_ENCODE_ENABLED) != 0;
}

const char *store_lacks(const struct hdf5_settings *settings, bool alone)
{
    const int driver = settings->driver;
    const char *lacks = async_lacks((enum async_mode)settings->async);
    if (lacks != NULL)
        return lacks;
    if (settings->filter == FILTER_GZIP && !can_filter(H5Z_FILTER_DEFLATE))
        return "--compress gzip: this HDF5 was built without it";
    if (settings->filter == FILTER_SZIP && !can_filter(H5Z_FILTER_SZIP))
        return "--compress szip: this HDF5 was built without its encoder";
#if !H5_VERSION_GE(1, 13, 1)
    /* Seen with 1.10.8: our data cannot be compressed, szip leaves them as they are, and through MPI-IO HDF5 does not
     * note that it did: what was written cannot be read. */
    if (settings->filter == FILTER_SZIP && (driver == DRIVER_DEFAULT || driver == DRIVER_MPIO))
        return "--compress szip: through MPI-IO this HDF5 writes what it cannot read again; --driver sec2, with "
               "--processes 1 or --file-per-process yes, is needed";
#endif
#ifndef H5_HAVE_DIRECT
    if (driver == DRIVER_DIRECT)
        return "--driver direct: this HDF5 was built without it";
#endif
#ifndef H5_HAVE_SUBFILING_VFD
    if (driver == DRIVER_SUBFILING)
        return "--driver subfiling: this HDF5 was built without it (1.14 and newer have it as an option)";
#endif
    /* Seen with 1.10.8: below the split driver HDF5 does not know of the other ranks, so that each of them places data
     * and writes fill values as if it were alone, over what the others wrote. */
    if (!alone && driver == DRIVER_SPLIT)
        return "--driver split: ranks that share a file overwrite each other's data through it (HDF5 does not tell "
               "them "
               "apart there); --processes 1 or --file-per-process yes is needed";
    if (!alone && driver != DRIVER_DEFAULT && driver != DRIVER_MPIO && driver != DRIVER_SUBFILING)
        return "--driver: only default, mpio and subfiling can share a file between ranks; --processes 1 or "
               "--file-per-process yes is needed";
    return NULL;
}

/* The bytes go through MPI-IO at last. */
static bool through_mpi(const struct store *store)
{
    const int driver = store->settings.hdf5->driver;
    const bool alone = store->settings.comm == MPI_COMM_SELF;
    return driver == DRIVER_MPIO || driver == DRIVER_SUBFILING || (!alone && driver == DRIVER_DEFAULT);
}

static void set_mpio(const struct store *store, hid_t access)
{
    const bool collective = store->settings.collective_metadata;
    HDF5_OK(H5Pset_fapl_mpio(access, store->settings.comm, store->settings.info), store->path);
    HDF5_OK(H5Pset_all_coll_metadata_ops(access, collective), store->path);
    HDF5_OK(H5Pset_coll_metadata_write(access, collective), store->path);
}

static void set_driver(const struct store *store, hid_t access)
{
    const char *path = store->path;
    const bool alone = store->settings.comm == MPI_COMM_SELF;
    switch ((enum hdf5_driver)store->settings.hdf5->driver) {
    case DRIVER_DEFAULT:
        if (alone)
            HDF5_OK(H5Pset_fapl_sec2(access), path);
        else
            set_mpio(store, access);
        break;
    case DRIVER_MPIO:
        set_mpio(store, access);
        break;
    case DRIVER_SEC2:
        HDF5_OK(H5Pset_fapl_sec2(access), path);
        break;
    case DRIVER_STDIO:
        HDF5_OK(H5Pset_fapl_stdio(access), path);
        break;
    case DRIVER_CORE:
        HDF5_OK(H5Pset_fapl_core(access, CORE_INCREMENT_BYTES, true), path);
        break;
    case DRIVER_SPLIT: {
        const hid_t part = HDF5_OK(H5Pcreate(H5P_FILE_ACCESS), path);
        HDF5_OK(H5Pset_fapl_sec2(part), path);
        HDF5_OK(H5Pset_fapl_split(access, "-m.h5", part, "-r.h5", part), path);
        HDF5_OK(H5Pclose(part), path);
        break;
    }
    case DRIVER_MULTI:
        HDF5_OK(H5Pset_fapl_multi(access, NULL, NULL, NULL, NULL, true), path);
        break;
    case DRIVER_FAMILY:
        HDF5_OK(H5Pset_fapl_family(access, FAMILY_MEMBER_BYTES, H5P_DEFAULT), path);
        break;
    case DRIVER_DIRECT:
#ifdef H5_HAVE_DIRECT
        HDF5_OK(H5Pset_fapl_direct(access, 0, 0, 0), path);
#endif
        break;
    case DRIVER_SUBFILING:
#ifdef H5_HAVE_SUBFILING_VFD
        HDF5_OK(H5Pset_mpi_params(access, store->settings.comm, store->settings.info), path);
        HDF5_OK(H5Pset_fapl_subfiling(access, NULL), path);
#endif
        break;
    }
}

static void hdf5_open(struct store *store, bool create)
{
    static const H5F_libver_t versions[] = {H5F_LIBVER_EARLIEST, H5F_LIBVER_V18, H5F_LIBVER_V110, H5F_LIBVER_LATEST};
    struct hdf5_state *state = calloc(1, sizeof *state);
    const struct store_settings *settings = &store->settings;
    const struct hdf5_settings *knobs = settings->hdf5;
    char path[MESSAGE_BYTES];
    if (state == NULL)
        stop_rank("%s: out of memory", store->path);
    store->own = state;
    snprintf(path, sizeof path, "%s%s", store->path, knobs->driver == DRIVER_FAMILY ? "-%d" : "");
    HDF5_OK(H5Eset_auto2(H5E_DEFAULT, NULL, NULL), path); /* failure_hdf5 says it in one line */

    const hid_t access = HDF5_OK(H5Pcreate(H5P_FILE_ACCESS), path);
    set_driver(store, access);
    HDF5_OK(H5Pset_libver_bounds(access, versions[knobs->version], H5F_LIBVER_LATEST), path);
    if (settings->alignment_bytes > 0)
        HDF5_OK(H5Pset_alignment(access, knobs->alignment_threshold_bytes, settings->alignment_bytes), path);
    if (knobs->meta_block_bytes > 0)
        HDF5_OK(H5Pset_meta_block_size(access, knobs->meta_block_bytes), path);
    if (create)
        state->file = HDF5_OK(H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, access), path);
    else
        state->file = HDF5_OK(H5Fopen(path, store->update ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access), path);
    HDF5_OK(H5Pclose(access), path);

    state->transfer = HDF5_OK(H5Pcreate(H5P_DATASET_XFER), path);
    if (settings->collective)
        HDF5_OK(H5Pset_dxpl_mpio(state->transfer, H5FD_MPIO_COLLECTIVE), path);
    state->links = HDF5_OK(H5Pcreate(H5P_LINK_CREATE), path);
    HDF5_OK(H5Pset_create_intermediate_group(state->links, 1), path);
    make_types(state, path);
}

int64_t store_hdf5_file(const struct store *store)
{
    const struct hdf5_state *state = store->own;
    return state->file;
}

static hid_t file_type(const struct hdf5_state *state, const struct dataset *dataset)
{
    switch (dataset->element) {
    case ELEMENT_WORD64:
        return H5T_NATIVE_UINT64;
    case ELEMENT_DOUBLE:
        return H5T_NATIVE_DOUBLE;
    case ELEMENT_BYTE:
        return H5T_NATIVE_UINT8;
    case ELEMENT_MEMBER:
        return member_type(dataset->member);
    case ELEMENT_WRAPPED:
        return state->wrapped[dataset->member];
    case ELEMENT_PARTICLE:
        return state->particle;
    }
    return H5I_INVALID_HID;
}

static void hdf5_close_dataset(struct store *store, struct slot *slot)
{
    const struct hdf5_state *state = store->own;
    if (slot->dataset_id > 0)
        HDF5_OK(IN_BATCH(state->events, H5Dclose, (hid_t)slot->dataset_id), store->path);
    if (slot->space_id > 0)
        HDF5_OK(H5Sclose((hid_t)slot->space_id), store->path);
    slot->dataset_id = 0;
    slot->space_id = 0;
}

/* What a fill value looks like: no word of the content. */
static const uint64_t fill_word = UINT64_C(0xf1f1f1f1f1f1f1f1);

static hid_t dataset_creation(const struct store *store, const struct dataset *dataset)
{
    const struct hdf5_settings *knobs = store->settings.hdf5;
    const char *path = store->path;
    const hid_t creation = HDF5_OK(H5Pcreate(H5P_DATASET_CREATE), path);
    if (dataset->chunk[0] > 0) {
        hsize_t chunk[STORE_DIMENSIONS];
        for (int i = 0; i < dataset->dimensions; i++)
            chunk[i] = dataset->chunk[i];
        HDF5_OK(H5Pset_chunk(creation, dataset->dimensions, chunk), path);
    }
    if (knobs->filter == FILTER_GZIP)
        HDF5_OK(H5Pset_deflate(creation, (unsigned)knobs->filter_level), path);
    if (knobs->filter == FILTER_SZIP)
        HDF5_OK(H5Pset_szip(creation, knobs->szip_coding == 0 ? H5_SZIP_NN_OPTION_MASK : H5_SZIP_EC_OPTION_MASK,
                            (unsigned)knobs->szip_pixels),
                path);
    if (knobs->fill == FILL_NEVER)
        HDF5_OK(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER), path);
    if (knobs->fill == FILL_VALUE) {
        const uint64_t words[PARTICLE_BYTES / sizeof fill_word] = {fill_word, fill_word, fill_word, fill_word};
        HDF5_OK(H5Pset_fill_value(creation, file_type(store->own, dataset), words), path);
        HDF5_OK(H5Pset_fill_time(creation, H5D_FILL_TIME_ALLOC), path);
    }
    return creation;
}

static hid_t make_space(const struct store *store, const struct dataset *dataset)
{
    const unsigned unlimited = dataset->unlimited | (store->settings.hdf5->extendible ? 1u : 0u);
    const bool grows = dataset->first_extent[0] > 0;
    hsize_t extent[STORE_DIMENSIONS];
    hsize_t limit[STORE_DIMENSIONS];
    for (int i = 0; i < dataset->dimensions; i++) {
        extent[i] = grows ? dataset->first_extent[i] : dataset->extent[i];
        limit[i] = grows || (unlimited >> i & 1) != 0 ? H5S_UNLIMITED : extent[i];
    }
    return HDF5_OK(H5Screate_simple(dataset->dimensions, extent, limit), store->path);
}

static _Noreturn void failure_dataset(const char *call, const struct store *store, const struct dataset *dataset)
{
    char where[MESSAGE_BYTES];
    snprintf(where, sizeof where, "%s: %s", store->path, dataset->name);
    failure_hdf5(call, where);
}

static void hdf5_open_dataset(struct store *store, struct slot *slot, bool create)
{
    const struct hdf5_state *state = store->own;
    const struct dataset *dataset = &slot->dataset;
    const char *path = store->path;
    hdf5_close_dataset(store, slot);
    if (create) {
        const hid_t creation = dataset_creation(store, dataset);
        slot->space_id = make_space(store, dataset);
        slot->dataset_id =
            HDF5_OK(IN_BATCH(state->events, H5Dcreate, state->file, dataset->name, file_type(state, dataset),
                             (hid_t)slot->space_id, state->links, creation, H5P_DEFAULT),
                    path);
        HDF5_OK(H5Pclose(creation), path);
        return;
    }
    const hid_t opened = IN_BATCH(state->events, H5Dopen, state->file, dataset->name, H5P_DEFAULT);
    if (opened < 0)
        failure_dataset("H5Dopen", store, dataset);
    slot->dataset_id = opened;
    /* To ask the dataset would be to wait for it. */
    slot->space_id =
        state->events != H5ES_NONE ? make_space(store, dataset) : HDF5_OK(H5Dget_space((hid_t)slot->dataset_id), path);
}

static void hdf5_extend(struct store *store, struct slot *slot, const uint64_t *extent)
{
    const struct hdf5_state *state = store->own;
    hsize_t sizes[STORE_DIMENSIONS];
    for (int i = 0; i < STORE_DIMENSIONS; i++)
        sizes[i] = extent[i];
    HDF5_OK(IN_BATCH(state->events, H5Dset_extent, (hid_t)slot->dataset_id, sizes), store->path);
    HDF5_OK(H5Sset_extent_simple((hid_t)slot->space_id, slot->dataset.dimensions, sizes, NULL), store->path);
}

static int hdf5_check_dataset(const struct store *store, struct slot *slot, char *problem, size_t bytes)
{
    const struct dataset *dataset = &slot->dataset;
    const hid_t space = HDF5_OK(H5Dget_space((hid_t)slot->dataset_id), store->path);
    const hid_t type = HDF5_OK(H5Dget_type((hid_t)slot->dataset_id), store->path);
    const int dimensions = (int)HDF5_OK(H5Sget_simple_extent_ndims(space), store->path);
    const H5T_class_t class = H5Tget_class(type);
    const size_t size = H5Tget_size(type);
    hsize_t extent[H5S_MAX_RANK] = {0};
    HDF5_OK(H5Sget_simple_extent_dims(space, extent, NULL), store->path);
    HDF5_OK(H5Tclose(type), store->path);
    HDF5_OK(H5Sclose(space), store->path);
    if (dimensions != dataset->dimensions)
        return snprintf(problem, bytes, "%s has %d dimensions, not %d", dataset->name, dimensions, dataset->dimensions),
               -1;
    for (int i = 0; i < dimensions; i++)
        if (extent[i] != dataset->extent[i])
            return snprintf(problem, bytes, "%s has %llu elements in dimension %d, not %llu", dataset->name,
                            (unsigned long long)extent[i], i + 1, (unsigned long long)dataset->extent[i]),
                   -1;
    if ((class != H5T_FLOAT && class != H5T_INTEGER) || size != element_bytes(dataset->element))
        return snprintf(problem, bytes, "%s does not hold numbers of %llu bytes", dataset->name,
                        (unsigned long long)element_bytes(dataset->element)),
               -1;
    slot->memory_type_id = class == H5T_FLOAT ? H5T_NATIVE_FLOAT : H5T_NATIVE_INT32;
    return 0;
}

/* --- batches of asynchronous calls ----------------------------------------------------------------------------- */

static void hdf5_batch(struct store *store, int number)
{
    struct hdf5_state *state = store->own;
    if (store->settings.hdf5->async != ASYNC_EXPLICIT)
        return;
    if (number >= state->batch_count) {
        hid_t *larger = realloc(state->batches, ((size_t)number + 1) * sizeof *larger);
        if (larger == NULL)
            stop_rank("%s: out of memory for %d batches", store->path, number + 1);
        state->batches = larger;
        while (state->batch_count <= number)
            larger[state->batch_count++] = async_make_events(store->path);
    }
    state->events = state->batches[number];
}

static void hdf5_wait(struct store *store, int number)
{
    const struct hdf5_state *state = store->own;
    if (store->settings.hdf5->async == ASYNC_EXPLICIT &&
        async_wait(state->batches[number], H5ES_WAIT_FOREVER, store->path) == 0)
        stop_rank("%s: --async explicit: the connector put no call in the background, all were synchronous",
                  store->path);
}

static void hdf5_start_background(struct store *store)
{
    const struct hdf5_state *state = store->own;
    if (state->events != H5ES_NONE)
        async_wait(state->events, 0, store->path);
}

/* Whatever is in the background comes to its end; calls end when they are done from now on. */
static void end_batches(struct store *store)
{
    struct hdf5_state *state = store->own;
    for (int i = 0; i < state->batch_count; i++) {
        async_wait(state->batches[i], H5ES_WAIT_FOREVER, store->path);
        async_close_events(state->batches[i], store->path);
    }
    free(state->batches);
    state->batches = NULL;
    state->batch_count = 0;
    state->events = H5ES_NONE;
}

/* --- moving ---------------------------------------------------------------------------------------------------- */

static void move_between(struct store *store, const struct slot *slot, enum direction direction, hid_t type,
                         hid_t in_memory, hid_t in_file, void *memory)
{
    const struct hdf5_state *state = store->own;
    const hid_t dataset = (hid_t)slot->dataset_id;
    if (direction == DIRECTION_WRITE)
        HDF5_OK(IN_BATCH(state->events, H5Dwrite, dataset, type, in_memory, in_file, state->transfer, memory),
                store->path);
    else
        HDF5_OK(IN_BATCH(state->events, H5Dread, dataset, type, in_memory, in_file, state->transfer, memory),
                store->path);
}

/* The dataspace of packed memory; made anew only when the number of elements changes. */
static void pack_memory(struct store *store, hsize_t elements)
{
    struct hdf5_state *state = store->own;
    if (state->memory_elements == elements)
        return;
    if (state->memory > 0)
        HDF5_OK(H5Sclose(state->memory), store->path);
    state->memory = HDF5_OK(H5Screate_simple(1, &elements, NULL), store->path);
    state->memory_elements = elements;
}

static void select_rows(struct store *store, const struct slot *slot, const struct selection *selection)
{
    const struct dataset *dataset = &slot->dataset;
    hsize_t start[STORE_DIMENSIONS] = {selection->first, 0, 0, 0};
    hsize_t stride[STORE_DIMENSIONS] = {selection->stride, 1, 1, 1};
    hsize_t count[STORE_DIMENSIONS] = {selection->count, 1, 1, 1};
    hsize_t block[STORE_DIMENSIONS] = {selection->block, 1, 1, 1};
    if (selection->count == 1)
        stride[0] = selection->block;
    for (int i = 1; i < dataset->dimensions; i++)
        block[i] = stride[i] = dataset->extent[i];
    if (selection->count == 0)
        HDF5_OK(H5Sselect_none((hid_t)slot->space_id), store->path);
    else
        HDF5_OK(H5Sselect_hyperslab((hid_t)slot->space_id, H5S_SELECT_SET, start, stride, count, block), store->path);
}

static void to_sizes(hsize_t *sizes, const uint64_t *values)
{
    for (int i = 0; i < STORE_DIMENSIONS; i++)
        sizes[i] = values[i];
}

/* The dataspace with all boxes selected; made anew only when they change, for that takes longer the more there are. */
static hid_t select_boxes(struct store *store, const struct slot *slot, const struct selection *selection)
{
    struct hdf5_state *state = store->own;
    const size_t bytes = selection->box_count * sizeof *selection->boxes;
    if (state->box_count == selection->box_count && memcmp(state->boxes, selection->boxes, bytes) == 0)
        return state->boxes_space;
    if (state->boxes_space > 0)
        HDF5_OK(H5Sclose(state->boxes_space), store->path);
    free(state->boxes);
    state->boxes = malloc(bytes);
    if (state->boxes == NULL)
        stop_rank("%s: out of memory for %zu boxes", store->path, selection->box_count);
    memcpy(state->boxes, selection->boxes, bytes);
    state->box_count = selection->box_count;
    state->boxes_space = HDF5_OK(H5Scopy((hid_t)slot->space_id), store->path);
    for (size_t i = 0; i < selection->box_count; i++) {
        hsize_t start[STORE_DIMENSIONS];
        hsize_t count[STORE_DIMENSIONS];
        to_sizes(start, selection->boxes[i].start);
        to_sizes(count, selection->boxes[i].count);
        HDF5_OK(
            H5Sselect_hyperslab(state->boxes_space, i == 0 ? H5S_SELECT_SET : H5S_SELECT_OR, start, NULL, count, NULL),
            store->path);
    }
    return state->boxes_space;
}

/* Select in the file, and as many elements of packed memory. Returns the file's dataspace. */
static hid_t select_in_file(struct store *store, const struct slot *slot, const struct selection *selection)
{
    const struct dataset *dataset = &slot->dataset;
    pack_memory(store, selection_elements(selection, dataset->row_bytes / element_bytes(dataset->element)));
    if (selection->box_count > 0)
        return select_boxes(store, slot, selection);
    select_rows(store, slot, selection);
    return (hid_t)slot->space_id;
}

/* The dataspace of a box in a larger array; made anew only when either changes. */
static void frame_memory(struct store *store, int dimensions, const struct box *box, const struct frame *frame)
{
    struct hdf5_state *state = store->own;
    hsize_t extent[STORE_DIMENSIONS];
    hsize_t start[STORE_DIMENSIONS];
    hsize_t count[STORE_DIMENSIONS];
    if (state->frame_space > 0 && memcmp(&state->frame, frame, sizeof *frame) == 0 &&
        memcmp(state->framed.count, box->count, sizeof box->count) == 0)
        return;
    if (state->frame_space > 0)
        HDF5_OK(H5Sclose(state->frame_space), store->path);
    to_sizes(extent, frame->extent);
    to_sizes(start, frame->start);
    to_sizes(count, box->count);
    state->frame_space = HDF5_OK(H5Screate_simple(dimensions, extent, NULL), store->path);
    HDF5_OK(H5Sselect_hyperslab(state->frame_space, H5S_SELECT_SET, start, NULL, count, NULL), store->path);
    state->frame = *frame;
    state->framed = *box;
}

/* Memory has the box's own dimensions also where it is packed: for a chunked dataset HDF5 goes from element to element
 * when the shapes differ. */
static void hdf5_move_box(struct store *store, const struct slot *slot, enum direction direction, const struct box *box,
                          const struct frame *frame, void *memory)
{
    const struct hdf5_state *state = store->own;
    const struct dataset *dataset = &slot->dataset;
    struct frame packed = {{0}, {0}};
    hsize_t start[STORE_DIMENSIONS];
    hsize_t count[STORE_DIMENSIONS];
    to_sizes(start, box->start);
    to_sizes(count, box->count);
    HDF5_OK(H5Sselect_hyperslab((hid_t)slot->space_id, H5S_SELECT_SET, start, NULL, count, NULL), store->path);
    memcpy(packed.extent, box->count, sizeof packed.extent);
    frame_memory(store, dataset->dimensions, box, frame != NULL ? frame : &packed);
    move_between(store, slot, direction, file_type(state, dataset), state->frame_space, (hid_t)slot->space_id, memory);
}

static void hdf5_move(struct store *store, const struct slot *slot, enum direction direction,
                      const struct selection *selection, void *memory)
{
    const struct hdf5_state *state = store->own;
    const hid_t space = select_in_file(store, slot, selection);
    const hid_t type = slot->memory_type_id > 0 ? (hid_t)slot->memory_type_id : file_type(state, &slot->dataset);
    move_between(store, slot, direction, type, state->memory, space, memory);
}

static void hdf5_move_member(struct store *store, const struct slot *slot, enum direction direction,
                             const struct selection *selection, void *particles)
{
    const struct hdf5_state *state = store->own;
    const hid_t space = select_in_file(store, slot, selection);
    move_between(store, slot, direction, state->particle, state->memory, space, particles);
}

static void hdf5_move_members(struct store *store, const struct slot *slot, enum direction direction,
                              const struct selection *selection, void *arrays)
{
    const struct hdf5_state *state = store->own;
    const hid_t space = select_in_file(store, slot, selection);
    for (size_t m = 0; m < PARTICLE_MEMBERS; m++)
        move_between(store, slot, direction, state->wrapped[m], state->memory, space,
                     (uint32_t *)arrays + m * state->memory_elements);
}

static void sync_file(const char *path, void *unused)
{
    (void)unused;
    const int fd = open(path, O_RDONLY);
    if (fd < 0)
        failure_system("open to sync", path);
    SYSTEM_OK(fsync(fd), path);
    SYSTEM_OK(close(fd), path);
}

static void hdf5_flush(struct store *store)
{
    const struct hdf5_state *state = store->own;
    end_batches(store);
    HDF5_OK(H5Fflush(state->file, H5F_SCOPE_GLOBAL), store->path);
    /* Below the MPI-IO driver H5Fflush ends in MPI_File_sync, below the others in write(2): there the sync is ours. */
    if (!through_mpi(store))
        store_each_file(store->path, &store->settings, sync_file, NULL);
}

static void hdf5_close(struct store *store)
{
    struct hdf5_state *state = store->own;
    const char *path = store->path;
    end_batches(store);
    for (int i = 0; i < store->slot_count; i++)
        hdf5_close_dataset(store, &store->slots[i]);
    if (state->memory > 0)
        HDF5_OK(H5Sclose(state->memory), path);
    for (int m = 0; m < PARTICLE_MEMBERS; m++)
        HDF5_OK(H5Tclose(state->wrapped[m]), path);
    HDF5_OK(H5Tclose(state->particle), path);
    if (state->frame_space > 0)
        HDF5_OK(H5Sclose(state->frame_space), path);
    if (state->boxes_space > 0)
        HDF5_OK(H5Sclose(state->boxes_space), path);
    free(state->boxes);
    HDF5_OK(H5Pclose(state->links), path);
    HDF5_OK(H5Pclose(state->transfer), path);
    HDF5_OK(H5Fclose(state->file), path);
    free(state);
}

const struct store_parts store_hdf5 = {.open = hdf5_open,
                                       .open_dataset = hdf5_open_dataset,
                                       .extend = hdf5_extend,
                                       .check_dataset = hdf5_check_dataset,
                                       .close_dataset = hdf5_close_dataset,
                                       .batch = hdf5_batch,
                                       .wait = hdf5_wait,
                                       .start_background = hdf5_start_background,
                                       .move = hdf5_move,
                                       .move_member = hdf5_move_member,
                                       .move_members = hdf5_move_members,
                                       .move_box = hdf5_move_box,
                                       .flush = hdf5_flush,
                                       .close = hdf5_close};
