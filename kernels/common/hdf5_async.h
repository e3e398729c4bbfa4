/* Asynchronous HDF5: event sets, which version 1.13 brought, and connectors that execute in the background. What older
 * versions lack is made up for here: there every call ends when it is done. */
#ifndef IOGAUGE_HDF5_ASYNC_H
#define IOGAUGE_HDF5_ASYNC_H

#include "store.h"

#include <hdf5.h>

#if !H5_VERSION_GE(1, 13, 0)
#define H5ES_NONE 0
#define H5ES_WAIT_FOREVER UINT64_MAX
#define H5Dcreate_async(file, name, type, space, links, creation, access, events) \
    ((void)(events), H5Dcreate2(file, name, type, space, links, creation, access))
#define H5Dopen_async(file, name, access, events) ((void)(events), H5Dopen2(file, name, access))
#define H5Dset_extent_async(dataset, extent, events) ((void)(events), H5Dset_extent(dataset, extent))
#define H5Dwrite_async(dataset, type, memory_space, space, transfer, memory, events) \
    ((void)(events), H5Dwrite(dataset, type, memory_space, space, transfer, memory))
#define H5Dread_async(dataset, type, memory_space, space, transfer, memory, events) \
    ((void)(events), H5Dread(dataset, type, memory_space, space, transfer, memory))
#define H5Dclose_async(dataset, events) ((void)(events), H5Dclose(dataset))
#endif

/* Why HDF5's calls would not be made in MODE, or NULL: the version, the connector that is loaded, MPI's threads. */
const char *async_lacks(enum async_mode mode);

/* A new event set. */
hid_t async_make_events(const char *path);

/* Wait that long for all that EVENTS stand for; no time at all makes the background begin, if it has not. Returns how
 * many calls there were: none means that nothing was put in the background. */
size_t async_wait(hid_t events, uint64_t nanoseconds, const char *path);

void async_close_events(hid_t events, const char *path);

#endif
