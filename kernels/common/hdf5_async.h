/* Asynchronous HDF5: event sets, which version 1.13 brought, and connectors that execute in the background. What older
 * versions lack is made up for here: there every call ends when it is done. */
#ifndef IOGAUGE_HDF5_ASYNC_H
#define IOGAUGE_HDF5_ASYNC_H

#include "store.h"

#include <hdf5.h>

/* HDF5's function NAME with the given arguments: with an event set as NAME_async, outside a batch as itself, for
 * profilers do not know the former. */
#if H5_VERSION_GE(1, 13, 0)
#define IN_BATCH(events, name, ...) ((events) == H5ES_NONE ? name(__VA_ARGS__) : name##_async(__VA_ARGS__, (events)))
#else
#define H5ES_NONE 0
#define H5ES_WAIT_FOREVER UINT64_MAX
#define IN_BATCH(events, name, ...) ((void)(events), name(__VA_ARGS__))
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
