/* HDF5: the MPI-IO driver for a shared file, sec2 for a file of one rank; one hyperslab an access. */
#include "failure.h"
#include "store_parts.h"

#include <errno.h>
#include <hdf5.h>
#include <stdlib.h>
#include <unistd.h>

struct hdf5_state {
    hid_t file;
    hid_t transfer; /* dataset transfer properties */
    hid_t links;    /* link creation: make the groups on the way */
    hid_t memory;   /* dataspace of the last access's memory; most accesses are alike */
    hsize_t memory_elements;
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

static void hdf5_open(struct store *store, bool create)
{
    struct hdf5_state *state = calloc(1, sizeof *state);
    const char *path = store->path;
    const struct store_settings *settings = &store->settings;
    if (state == NULL)
        stop_rank("%s: out of memory", path);
    store->own = state;
    HDF5_OK(H5Eset_auto2(H5E_DEFAULT, NULL, NULL), path); /* failure_hdf5 says it in one line */

    const hid_t access = HDF5_OK(H5Pcreate(H5P_FILE_ACCESS), path);
    if (settings->file_per_process) {
        HDF5_OK(H5Pset_fapl_sec2(access), path);
    } else {
        HDF5_OK(H5Pset_fapl_mpio(access, store->comm, MPI_INFO_NULL), path);
        HDF5_OK(H5Pset_all_coll_metadata_ops(access, settings->collective_metadata), path);
        HDF5_OK(H5Pset_coll_metadata_write(access, settings->collective_metadata), path);
    }
    if (settings->alignment_bytes > 0)
        HDF5_OK(H5Pset_alignment(access, 4096, settings->alignment_bytes), path);
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

static hid_t file_type(const struct hdf5_state *state, const struct dataset *dataset)
{
    switch (dataset->element) {
    case ELEMENT_WORD64:
        return H5T_NATIVE_UINT64;
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

static void hdf5_open_dataset(struct store *store, struct slot *slot, bool create)
{
    const struct hdf5_state *state = store->own;
    const struct dataset *dataset = &slot->dataset;
    hsize_t extent[STORE_DIMENSIONS];
    close_slot(slot, store->path);
    if (!create) {
        slot->dataset_id = HDF5_OK(H5Dopen2(state->file, dataset->name, H5P_DEFAULT), store->path);
        slot->space_id = HDF5_OK(H5Dget_space((hid_t)slot->dataset_id), store->path);
        return;
    }
    for (int i = 0; i < dataset->dimensions; i++)
        extent[i] = dataset->extent[i];
    slot->space_id = HDF5_OK(H5Screate_simple(dataset->dimensions, extent, NULL), store->path);
    const hid_t creation = HDF5_OK(H5Pcreate(H5P_DATASET_CREATE), store->path);
    if (dataset->chunk_rows > 0) {
        extent[0] = dataset->chunk_rows;
        HDF5_OK(H5Pset_chunk(creation, dataset->dimensions, extent), store->path);
    }
    slot->dataset_id = HDF5_OK(H5Dcreate2(state->file, dataset->name, file_type(state, dataset), (hid_t)slot->space_id,
                                          state->links, creation, H5P_DEFAULT),
                               store->path);
    HDF5_OK(H5Pclose(creation), store->path);
}

static void select_rows(struct store *store, const struct slot *slot, const struct selection *selection)
{
    struct hdf5_state *state = store->own;
    const struct dataset *dataset = &slot->dataset;
    hsize_t start[STORE_DIMENSIONS] = {selection->first, 0, 0};
    hsize_t stride[STORE_DIMENSIONS] = {selection->stride, 1, 1};
    hsize_t count[STORE_DIMENSIONS] = {selection->count, 1, 1};
    hsize_t block[STORE_DIMENSIONS] = {selection->block, 1, 1};
    hsize_t elements = selection_rows(selection);
    if (selection->count == 1)
        stride[0] = selection->block;
    for (int i = 1; i < dataset->dimensions; i++) {
        block[i] = stride[i] = dataset->extent[i];
        elements *= dataset->extent[i];
    }
    HDF5_OK(H5Sselect_hyperslab((hid_t)slot->space_id, H5S_SELECT_SET, start, stride, count, block), store->path);
    if (state->memory_elements != elements) {
        if (state->memory > 0)
            HDF5_OK(H5Sclose(state->memory), store->path);
        state->memory = HDF5_OK(H5Screate_simple(1, &elements, NULL), store->path);
        state->memory_elements = elements;
    }
}

static void move_as(struct store *store, const struct slot *slot, enum direction direction, hid_t type, void *memory)
{
    const struct hdf5_state *state = store->own;
    const hid_t dataset = (hid_t)slot->dataset_id;
    const hid_t space = (hid_t)slot->space_id;
    if (direction == DIRECTION_WRITE)
        HDF5_OK(H5Dwrite(dataset, type, state->memory, space, state->transfer, memory), store->path);
    else
        HDF5_OK(H5Dread(dataset, type, state->memory, space, state->transfer, memory), store->path);
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

static void hdf5_flush(struct store *store)
{
    const struct hdf5_state *state = store->own;
    HDF5_OK(H5Fflush(state->file, H5F_SCOPE_GLOBAL), store->path);
    /* H5Fflush ends in write(2) for sec2: the sync is ours. With the MPI-IO driver it calls MPI_File_sync itself. */
    if (store->settings.file_per_process) {
        void *handle = NULL;
        HDF5_OK(H5Fget_vfd_handle(state->file, H5P_DEFAULT, &handle), store->path);
        SYSTEM_OK(fsync(*(const int *)handle), store->path);
    }
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
    HDF5_OK(H5Pclose(state->links), path);
    HDF5_OK(H5Pclose(state->transfer), path);
    HDF5_OK(H5Fclose(state->file), path);
    free(state);
}

const struct store_parts store_hdf5 = {.open = hdf5_open,
                                       .open_dataset = hdf5_open_dataset,
                                       .move = hdf5_move,
                                       .move_member = hdf5_move_member,
                                       .move_members = hdf5_move_members,
                                       .flush = hdf5_flush,
                                       .close = hdf5_close};
