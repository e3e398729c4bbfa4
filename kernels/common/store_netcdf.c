/* netCDF-4: arrays of doubles or 64-bit words in files of HDF5's format; in parallel where ranks share the file. */
#include "failure.h"
#include "page_cache.h"
#include "store_parts.h"

#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct netcdf_state {
    int file;
};

static void netcdf_ok(int status, const char *call, const char *path)
{
    if (status != NC_NOERR)
        stop_rank("%s: %s failed: %s", path, call, nc_strerror(status));
}

#define NETCDF_OK(call, path) netcdf_ok((call), #call, (path))

static bool is_shared(const struct store *store)
{
    return store->settings.comm != MPI_COMM_SELF;
}

static void netcdf_open(struct store *store, bool create)
{
    struct netcdf_state *state = calloc(1, sizeof *state);
    const char *path = store->path;
    if (state == NULL)
        stop_rank("%s: out of memory", path);
    store->own = state;
    if (create && is_shared(store))
        NETCDF_OK(
            nc_create_par(path, NC_NETCDF4 | NC_NOCLOBBER, store->settings.comm, store->settings.info, &state->file),
            path);
    else if (create)
        NETCDF_OK(nc_create(path, NC_NETCDF4 | NC_NOCLOBBER, &state->file), path);
    else if (is_shared(store))
        NETCDF_OK(nc_open_par(path, NC_NOWRITE, store->settings.comm, store->settings.info, &state->file), path);
    else
        NETCDF_OK(nc_open(path, NC_NOWRITE, &state->file), path);
    /* netCDF fills variables by default, which would write every byte twice. */
    if (create)
        NETCDF_OK(nc_set_fill(state->file, NC_NOFILL, NULL), path);
}

static nc_type type_of(enum element element)
{
    return element == ELEMENT_DOUBLE ? NC_DOUBLE : NC_UINT64;
}

static void make_variable(const struct store *store, const struct dataset *dataset, int *variable)
{
    const struct netcdf_state *state = store->own;
    const char *path = store->path;
    int dimensions[STORE_DIMENSIONS];
    size_t chunk[STORE_DIMENSIONS];
    for (int i = 0; i < dataset->dimensions; i++) {
        char name[sizeof dataset->name + 16];
        snprintf(name, sizeof name, "%s_%d", dataset->name, i);
        NETCDF_OK(nc_def_dim(state->file, name, dataset->extent[i], &dimensions[i]), path);
        chunk[i] = dataset->chunk[i];
    }
    NETCDF_OK(
        nc_def_var(state->file, dataset->name, type_of(dataset->element), dataset->dimensions, dimensions, variable),
        path);
    NETCDF_OK(nc_def_var_chunking(state->file, *variable, chunk[0] > 0 ? NC_CHUNKED : NC_CONTIGUOUS,
                                  chunk[0] > 0 ? chunk : NULL),
              path);
    NETCDF_OK(nc_enddef(state->file), path);
}

static void netcdf_open_dataset(struct store *store, struct slot *slot, bool create)
{
    const struct netcdf_state *state = store->own;
    int variable = 0;
    if (create)
        make_variable(store, &slot->dataset, &variable);
    else
        NETCDF_OK(nc_inq_varid(state->file, slot->dataset.name, &variable), store->path);
    if (is_shared(store))
        NETCDF_OK(nc_var_par_access(state->file, variable, store->settings.collective ? NC_COLLECTIVE : NC_INDEPENDENT),
                  store->path);
    slot->dataset_id = variable;
}

/* netCDF knows a frame as the distance in memory of neighbours in each dimension. */
static void netcdf_move_box(struct store *store, const struct slot *slot, enum direction direction,
                            const struct box *box, const struct frame *frame, void *memory)
{
    const struct netcdf_state *state = store->own;
    const int variable = (int)slot->dataset_id;
    const int n = slot->dataset.dimensions;
    size_t start[STORE_DIMENSIONS];
    size_t count[STORE_DIMENSIONS];
    ptrdiff_t apart[STORE_DIMENSIONS];
    ptrdiff_t distance = 1;
    size_t first = 0;
    for (int i = n - 1; i >= 0; i--) {
        start[i] = box->start[i];
        count[i] = box->count[i];
        apart[i] = distance;
        if (frame != NULL)
            first += frame->start[i] * (size_t)distance;
        distance *= (ptrdiff_t)(frame != NULL ? frame->extent[i] : box->count[i]);
    }
    uint64_t *words = (uint64_t *)memory + first;
    if (direction == DIRECTION_WRITE && frame == NULL)
        NETCDF_OK(nc_put_vara(state->file, variable, start, count, words), store->path);
    else if (direction == DIRECTION_WRITE)
        NETCDF_OK(nc_put_varm(state->file, variable, start, count, NULL, apart, words), store->path);
    else if (frame == NULL)
        NETCDF_OK(nc_get_vara(state->file, variable, start, count, words), store->path);
    else
        NETCDF_OK(nc_get_varm(state->file, variable, start, count, NULL, apart, words), store->path);
}

static void netcdf_flush(struct store *store)
{
    const struct netcdf_state *state = store->own;
    NETCDF_OK(nc_sync(state->file), store->path);
    /* In parallel nc_sync ends in MPI_File_sync, else in write(2): there the sync is ours. */
    if (!is_shared(store))
        SYSTEM_OK(page_cache_write_back(store->path), store->path);
}

static void netcdf_close(struct store *store)
{
    struct netcdf_state *state = store->own;
    NETCDF_OK(nc_close(state->file), store->path);
    free(state);
}

const struct store_parts store_netcdf = {.open = netcdf_open,
                                         .open_dataset = netcdf_open_dataset,
                                         .move_box = netcdf_move_box,
                                         .flush = netcdf_flush,
                                         .close = netcdf_close};
