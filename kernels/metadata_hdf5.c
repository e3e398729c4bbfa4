/* The metadata kernel's HDF5 objects: groups, datasets and attributes, each kind in a file of its own. Ranks that share
 * a file make its objects together, as HDF5 demands; they look at them each on its own, or with --collective-metadata
 * together as well. */
#include "common/made_files.h"
#include "metadata_parts.h"

#include <hdf5.h>
#include <string.h>
#include <unistd.h>

/* --- steps ---------------------------------------------------------------------------------------------------- */

static void make_group(struct work *work, struct item *item)
{
    item->object =
        HDF5_OK(H5Gcreate2((hid_t)work->file, item->path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), work->file_path);
}

static void open_group(struct work *work, struct item *item)
{
    item->object = HDF5_OK(H5Gopen2((hid_t)work->file, item->path, H5P_DEFAULT), work->file_path);
}

static void check_group(struct work *work, struct item *item)
{
    H5G_info_t info = {0};
    if (H5Iget_type((hid_t)item->object) != H5I_GROUP) {
        work_wrong(work, item->path, "expected a group, found another object");
        return;
    }
    HDF5_OK(H5Gget_info((hid_t)item->object, &info), work->file_path);
    if (info.nlinks != 0)
        work_wrong(work, item->path, "expected an empty group, found %llu links", (unsigned long long)info.nlinks);
}

static void close_group(struct work *work, struct item *item)
{
    HDF5_OK(H5Gclose((hid_t)item->object), work->file_path);
}

static void make_dataset(struct work *work, struct item *item)
{
    item->object = HDF5_OK(H5Dcreate2((hid_t)work->file, item->path, H5T_NATIVE_UINT8, (hid_t)work->space, H5P_DEFAULT,
                                      H5P_DEFAULT, H5P_DEFAULT),
                           work->file_path);
}

static void open_dataset(struct work *work, struct item *item)
{
    item->object = HDF5_OK(H5Dopen2((hid_t)work->file, item->path, H5P_DEFAULT), work->file_path);
}

static void check_dataset(struct work *work, struct item *item)
{
    hsize_t extent = 0;
    const hid_t space = HDF5_OK(H5Dget_space((hid_t)item->object), work->file_path);
    const hid_t type = HDF5_OK(H5Dget_type((hid_t)item->object), work->file_path);
    const int dimensions = (int)HDF5_OK(H5Sget_simple_extent_ndims(space), work->file_path);
    if (dimensions == 1)
        HDF5_OK(H5Sget_simple_extent_dims(space, &extent, NULL), work->file_path);
    const bool right = dimensions == 1 && extent == work->settings->bytes && H5Tequal(type, H5T_NATIVE_UINT8) > 0;
    if (!right)
        work_wrong(work, item->path, "expected 1 dimension of %llu bytes, found %d of %llu elements of %zu bytes",
                   (unsigned long long)work->settings->bytes, dimensions, (unsigned long long)extent,
                   H5Tget_size(type));
    HDF5_OK(H5Tclose(type), work->file_path);
    HDF5_OK(H5Sclose(space), work->file_path);
}

static void close_dataset(struct work *work, struct item *item)
{
    HDF5_OK(H5Dclose((hid_t)item->object), work->file_path);
}

static void make_attribute(struct work *work, struct item *item)
{
    item->attribute = HDF5_OK(
        H5Acreate2((hid_t)item->object, item->second, H5T_NATIVE_UINT64, (hid_t)work->scalar, H5P_DEFAULT, H5P_DEFAULT),
        work->file_path);
    HDF5_OK(H5Awrite((hid_t)item->attribute, H5T_NATIVE_UINT64, item->data), work->file_path);
}

static void read_attribute(struct work *work, struct item *item)
{
    item->attribute = HDF5_OK(H5Aopen((hid_t)item->object, item->second, H5P_DEFAULT), work->file_path);
    HDF5_OK(H5Aread((hid_t)item->attribute, H5T_NATIVE_UINT64, item->data), work->file_path);
}

static void close_attribute(struct work *work, struct item *item)
{
    HDF5_OK(H5Aclose((hid_t)item->attribute), work->file_path);
}

static herr_t add_link(hid_t group, const char *name, const H5L_info_t *info, void *names)
{
    (void)group;
    (void)info;
    names_add(names, name);
    return 0;
}

static void list_links(struct work *work, struct item *item)
{
    HDF5_OK(H5Literate((hid_t)item->object, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, add_link, &work->names),
            work->file_path);
}

static herr_t add_attribute(hid_t dataset, const char *name, const H5A_info_t *info, void *names)
{
    (void)dataset;
    (void)info;
    names_add(names, name);
    return 0;
}

static void list_attributes(struct work *work, struct item *item)
{
    HDF5_OK(H5Aiterate2((hid_t)item->object, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, add_attribute, &work->names),
            work->file_path);
}

static const struct step create_groups[] = {{PHASE_TRANSFER, make_group}, {PHASE_CLOSE, close_group}, {0}};
static const struct step open_groups[] = {
    {PHASE_TRANSFER, open_group}, {PHASE_PREPARE, check_group}, {PHASE_CLOSE, close_group}, {0}};
static const struct step create_datasets[] = {{PHASE_TRANSFER, make_dataset}, {PHASE_CLOSE, close_dataset}, {0}};
static const struct step open_datasets[] = {
    {PHASE_TRANSFER, open_dataset}, {PHASE_PREPARE, check_dataset}, {PHASE_CLOSE, close_dataset}, {0}};
static const struct step create_attributes[] = {{PHASE_PREPARE, work_make_data},  {PHASE_PREPARE, open_dataset},
                                                {PHASE_TRANSFER, make_attribute}, {PHASE_CLOSE, close_attribute},
                                                {PHASE_PREPARE, close_dataset},   {0}};
static const struct step read_attributes[] = {{PHASE_PREPARE, work_spoil_data},
                                              {PHASE_PREPARE, open_dataset},
                                              {PHASE_TRANSFER, read_attribute},
                                              {PHASE_CLOSE, close_attribute},
                                              {PHASE_PREPARE, close_dataset},
                                              {PHASE_PREPARE, work_check_data},
                                              {0}};
static const struct step iterate_attributes[] = {{PHASE_PREPARE, open_dataset},
                                                 {PHASE_TRANSFER, list_attributes},
                                                 {PHASE_PREPARE, close_dataset},
                                                 {PHASE_PREPARE, work_check_names},
                                                 {0}};
static const struct step iterate_links[] = {{PHASE_OPEN, open_group},
                                            {PHASE_TRANSFER, list_links},
                                            {PHASE_CLOSE, close_group},
                                            {PHASE_PREPARE, work_check_names},
                                            {0}};
/* The datasets that attributes are put on. */
static const struct step prepare_datasets[] = {{PHASE_PREPARE, make_dataset}, {PHASE_PREPARE, close_dataset}, {0}};

#define HDF5_ACTION(operation) [(operation) - GROUP_CREATE]

const struct action metadata_hdf5_actions[OPERATIONS - GROUP_CREATE] = {
    HDF5_ACTION(GROUP_CREATE) = {FAMILY_GROUPS, WALK_OBJECTS, create_groups, .first = true, .changes = true,
                                 .checked = true, .left = LEFT_MADE},
    HDF5_ACTION(GROUP_OPEN) = {FAMILY_GROUPS, WALK_OBJECTS, open_groups},
    HDF5_ACTION(GROUP_ITERATE) = {FAMILY_GROUPS, WALK_DIRECTORIES, iterate_links, .last = true, .left = LEFT_MADE},
    HDF5_ACTION(DATASET_CREATE) = {FAMILY_DATASETS, WALK_OBJECTS, create_datasets, .first = true, .changes = true,
                                   .checked = true, .left = LEFT_MADE},
    HDF5_ACTION(DATASET_OPEN) = {FAMILY_DATASETS, WALK_OBJECTS, open_datasets},
    HDF5_ACTION(DATASET_ITERATE) = {FAMILY_DATASETS, WALK_DIRECTORIES, iterate_links, .last = true, .left = LEFT_MADE},
    HDF5_ACTION(ATTRIBUTE_CREATE) = {FAMILY_ATTRIBUTES, WALK_ATTRIBUTES, create_attributes, .first = true,
                                     .changes = true, .checked = true, .left = LEFT_MADE},
    HDF5_ACTION(ATTRIBUTE_READ) = {FAMILY_ATTRIBUTES, WALK_ATTRIBUTES, read_attributes},
    HDF5_ACTION(ATTRIBUTE_ITERATE) = {FAMILY_ATTRIBUTES, WALK_DATASETS, iterate_attributes, .last = true}};

/* --- around them ---------------------------------------------------------------------------------------------- */

static bool opens_file(const struct work *work)
{
    return run_opener(work->run, work->run->world->rank) == work->run->world->rank;
}

static void make_tree_group(struct work *work, const char *path)
{
    const hid_t group =
        HDF5_OK(H5Gcreate2((hid_t)work->file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), work->file_path);
    HDF5_OK(H5Gclose(group), work->file_path);
}

/* All ranks that share the file make all of its groups. */
static void make_tree(struct work *work)
{
    const struct tree *tree = &work->tree;
    const bool shared = work->run->common->sharing == SHARING_ALL;
    const uint64_t first = shared ? 0 : work->rank;
    const uint64_t end = shared && tree->own ? tree->ranks : first + 1;
    char path[TREE_PATH_BYTES];
    if (tree->own)
        make_tree_group(work, tree->top);
    for (uint64_t rank = first; rank < end; rank++)
        for (uint64_t k = 0; k < tree->directories; k++) {
            tree_directory_path(tree, rank, k, path);
            make_tree_group(work, path);
        }
}

static void hdf5_open(struct work *work, const struct action *action)
{
    const bool create = action != NULL && action->first;
    const struct store_settings *settings = &work->run->store;
    const hsize_t extent = work->settings->bytes;
    stopwatch_start(work->watch, PHASE_OPEN);
    work->store = create ? store_create(work->file_path, settings) : store_open(work->file_path, settings);
    stopwatch_stop(work->watch);
    stopwatch_start(work->watch, PHASE_PREPARE);
    work->file = store_hdf5_file(work->store);
    work->space = HDF5_OK(H5Screate_simple(1, &extent, NULL), work->file_path);
    work->scalar = HDF5_OK(H5Screate(H5S_SCALAR), work->file_path);
    if (create)
        make_tree(work);
    stopwatch_stop(work->watch);
    if (create && action->family == FAMILY_ATTRIBUTES) {
        work_walk(work, WALK_OBJECTS, prepare_datasets, work->run->common->sharing == SHARING_ALL, false, LEFT_MADE);
        stopwatch_start(work->watch, PHASE_PREPARE);
        store_flush(work->store);
        stopwatch_stop(work->watch);
    }
}

static void hdf5_flush(struct work *work)
{
    store_flush(work->store);
}

static void hdf5_close(struct work *work)
{
    HDF5_OK(H5Sclose((hid_t)work->space), work->file_path);
    HDF5_OK(H5Sclose((hid_t)work->scalar), work->file_path);
    stopwatch_start(work->watch, PHASE_CLOSE);
    store_close(work->store);
    stopwatch_stop(work->watch);
}

static void forget(const char *path, void *unused)
{
    (void)unused;
    made_files_forget(path);
}

static void remove_part(const char *path, void *work)
{
    if (unlink(path) != 0)
        work_failed(work, "unlink", path);
}

/* All ranks know a shared file; one of them removes it. */
static void remove_file(struct work *work)
{
    const struct run *run = work->run;
    char path[TREE_PATH_BYTES];
    run_path(run, work->file_number, run->world->rank, path, sizeof path);
    MPI_OK(MPI_Barrier(run->world->comm), path);
    store_each_file(path, &run->store, forget, NULL);
    MPI_OK(MPI_Barrier(run->world->comm), path);
    if (opens_file(work))
        store_each_file(path, &run->store, remove_part, work);
    stop_all_if(run->world->comm, EXIT_BAD_INPUT, work->failed);
}

const struct medium metadata_hdf5 = {.open = hdf5_open,
                                     .flush = hdf5_flush,
                                     .close = hdf5_close,
                                     .remove = remove_file,
                                     .listing = iterate_links,
                                     .attributes = iterate_attributes};
