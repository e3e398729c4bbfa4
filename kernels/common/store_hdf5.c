/* HDF5: the MPI-IO driver for a shared file, sec2 for a file of one rank; one hyperslab an access. */
#include "failure.h"
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
    if (settings->filter == FILTER_GZIP && !can_filter(H5Z_FILTER_DEFLATE))
        return "--compress gzip: this HDF5 was built without it";
    if (settings->filter == FILTER_SZIP && !can_filter(H5Z_FILTER_SZIP))
        return "--compress szip: this HDF5 was built without its encoder";
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
    HDF5_OK(H5Pset_fapl_mpio(access, store->settings.comm, MPI_INFO_NULL), store->path);
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
        HDF5_OK(H5Pset_mpi_params(access, store->settings.comm, MPI_INFO_NULL), path);
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
        state->file = HDF5_OK(H5Fopen(path, H5F_ACC_RDONLY, access), path);
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

static void close_slot(struct slot *slot, const char *path)
{
    if (slot->dataset_id > 0)
        HDF5_OK(H5Dclose((hid_t)slot->dataset_id), path);
    if (slot->space_id > 0)
        HDF5_OK(H5Sclose((hid_t)slot->space_id), path);
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

static void hdf5_open_dataset(struct store *store, struct slot *slot, bool create)
{
    const struct hdf5_state *state = store->own;
    const struct dataset *dataset = &slot->dataset;
    hsize_t extent[STORE_DIMENSIONS];
    hsize_t limit[STORE_DIMENSIONS];
    const unsigned unlimited = dataset->unlimited | (store->settings.hdf5->extendible ? 1u : 0u);
    close_slot(slot, store->path);
    if (!create) {
        slot->dataset_id = HDF5_OK(H5Dopen2(state->file, dataset->name, H5P_DEFAULT), store->path);
        slot->space_id = HDF5_OK(H5Dget_space((hid_t)slot->dataset_id), store->path);
        return;
    }
    const bool grows = dataset->first_extent[0] > 0;
    for (int i = 0; i < dataset->dimensions; i++) {
        extent[i] = grows ? dataset->first_extent[i] : dataset->extent[i];
        limit[i] = grows || (unlimited >> i & 1) != 0 ? H5S_UNLIMITED : extent[i];
    }
    slot->space_id = HDF5_OK(H5Screate_simple(dataset->dimensions, extent, limit), store->path);
    const hid_t creation = dataset_creation(store, dataset);
    slot->dataset_id = HDF5_OK(H5Dcreate2(state->file, dataset->name, file_type(state, dataset), (hid_t)slot->space_id,
                                          state->links, creation, H5P_DEFAULT),
                               store->path);
    HDF5_OK(H5Pclose(creation), store->path);
}

static void hdf5_extend(struct store *store, struct slot *slot, const uint64_t *extent)
{
    hsize_t sizes[STORE_DIMENSIONS];
    for (int i = 0; i < STORE_DIMENSIONS; i++)
        sizes[i] = extent[i];
    HDF5_OK(H5Dset_extent((hid_t)slot->dataset_id, sizes), store->path);
    HDF5_OK(H5Sset_extent_simple((hid_t)slot->space_id, slot->dataset.dimensions, sizes, NULL), store->path);
}

static void move_between(struct store *store, const struct slot *slot, enum direction direction, hid_t type,
                         hid_t in_memory, void *memory)
{
    const struct hdf5_state *state = store->own;
    const hid_t dataset = (hid_t)slot->dataset_id;
    const hid_t space = (hid_t)slot->space_id;
    if (direction == DIRECTION_WRITE)
        HDF5_OK(H5Dwrite(dataset, type, in_memory, space, state->transfer, memory), store->path);
    else
        HDF5_OK(H5Dread(dataset, type, in_memory, space, state->transfer, memory), store->path);
}

static void move_as(struct store *store, const struct slot *slot, enum direction direction, hid_t type, void *memory)
{
    const struct hdf5_state *state = store->own;
    move_between(store, slot, direction, type, state->memory, memory);
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
    hsize_t elements = selection_rows(selection);
    if (selection->count == 1)
        stride[0] = selection->block;
    for (int i = 1; i < dataset->dimensions; i++) {
        block[i] = stride[i] = dataset->extent[i];
        elements *= dataset->extent[i];
    }
    HDF5_OK(H5Sselect_hyperslab((hid_t)slot->space_id, H5S_SELECT_SET, start, stride, count, block), store->path);
    pack_memory(store, elements);
}

static void to_sizes(hsize_t *sizes, const uint64_t *values)
{
    for (int i = 0; i < STORE_DIMENSIONS; i++)
        sizes[i] = values[i];
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
    move_between(store, slot, direction, file_type(state, dataset), state->frame_space, memory);
}

static void hdf5_move(struct store *store, const struct slot *slot, enum direction direction,
                      const struct selection *selection, void *memory)
{
    select_rows(store, slot, selection);
    move_as(store, slot, direction, file_type(store->own, &slot->dataset), memory);
}

static void hdf5_move_member(struct store *store, const struct slot *slot, enum direction direction,
                             const struct selection *selection, void *particles)
{
    const struct hdf5_state *state = store->own;
    select_rows(store, slot, selection);
    move_as(store, slot, direction, state->particle, particles);
}

static void hdf5_move_members(struct store *store, const struct slot *slot, enum direction direction,
                              const struct selection *selection, void *arrays)
{
    const struct hdf5_state *state = store->own;
    select_rows(store, slot, selection);
    for (size_t m = 0; m < PARTICLE_MEMBERS; m++)
        move_as(store, slot, direction, state->wrapped[m], (uint32_t *)arrays + m * state->memory_elements);
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
    HDF5_OK(H5Fflush(state->file, H5F_SCOPE_GLOBAL), store->path);
    /* Below the MPI-IO driver H5Fflush ends in MPI_File_sync, below the others in write(2): there the sync is ours. */
    if (!through_mpi(store))
        store_each_file(store->path, &store->settings, sync_file, NULL);
}

static void hdf5_close(struct store *store)
{
    struct hdf5_state *state = store->own;
    const char *path = store->path;
    for (int i = 0; i < store->slot_count; i++)
        close_slot(&store->slots[i], path);
    if (state->memory > 0)
        HDF5_OK(H5Sclose(state->memory), path);
    for (int m = 0; m < PARTICLE_MEMBERS; m++)
        HDF5_OK(H5Tclose(state->wrapped[m]), path);
    HDF5_OK(H5Tclose(state->particle), path);
    if (state->frame_space > 0)
        HDF5_OK(H5Sclose(state->frame_space), path);
    HDF5_OK(H5Pclose(state->links), path);
    HDF5_OK(H5Pclose(state->transfer), path);
    HDF5_OK(H5Fclose(state->file), path);
    free(state);
}

const struct store_parts store_hdf5 = {.open = hdf5_open,
                                       .open_dataset = hdf5_open_dataset,
                                       .extend = hdf5_extend,
                                       .move = hdf5_move,
                                       .move_member = hdf5_move_member,
                                       .move_members = hdf5_move_members,
                                       .move_box = hdf5_move_box,
                                       .flush = hdf5_flush,
                                       .close = hdf5_close};
