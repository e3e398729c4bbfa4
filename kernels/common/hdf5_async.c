#include "hdf5_async.h"

#include "failure.h"

#include <stdlib.h>

#if H5_VERSION_GE(1, 13, 0)

#if H5_VERSION_GE(1, 13, 3)
typedef uint64_t capabilities;
#else
typedef unsigned capabilities;
#endif

/* Does the connector that files are opened with say that it can execute in the background? */
static bool connector_is_asynchronous(void)
{
    capabilities flags = 0;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    const bool known = access >= 0 && H5Pget_vol_cap_flags(access, &flags) >= 0;
    if (access >= 0)
        H5Pclose(access);
    return known && (flags & H5VL_CAP_FLAG_ASYNC) != 0;
}

/* The connector async can be told to leave calls without an event set alone. */
static bool implicit_is_switched_off(void)
{
    const char *value = getenv("HDF5_ASYNC_DISABLE_IMPLICIT_NON_DSET_RW");
    return value != NULL && atoi(value) > 0;
}

const char *async_lacks(enum async_mode mode)
{
    int threads = MPI_THREAD_SINGLE;
    if (H5open() < 0)
        return "HDF5 does not start: is the connector that HDF5_VOL_CONNECTOR names in HDF5_PLUGIN_PATH?";
    const bool asynchronous = connector_is_asynchronous();
    if (mode == ASYNC_NO)
        return asynchronous
                   ? "HDF5_VOL_CONNECTOR has an asynchronous connector loaded, calls would not be synchronous: "
                     "unset it, or say so with --async (kernels that have it)"
                   : NULL;
    if (!asynchronous)
        return "--async: no asynchronous connector is loaded, calls would be synchronous; the connector async is "
               "loaded "
               "by HDF5_VOL_CONNECTOR=\"async under_vol=0;under_info={}\" with its folder in HDF5_PLUGIN_PATH";
    if (mode == ASYNC_IMPLICIT && implicit_is_switched_off())
        return "--async implicit: HDF5_ASYNC_DISABLE_IMPLICIT_NON_DSET_RW is set, calls would be synchronous";
    MPI_Query_thread(&threads);
    if (threads < MPI_THREAD_MULTIPLE)
        return "--async: this MPI has no MPI_THREAD_MULTIPLE, which calls in the background need";
    return NULL;
}

hid_t async_make_events(const char *path)
{
    return HDF5_OK(H5EScreate(), path);
}

static void stop_with_reason(hid_t events, const char *path)
{
    H5ES_err_info_t first = {0};
    size_t cleared = 0;
    if (H5ESget_err_info(events, 1, &first, &cleared) >= 0 && cleared == 1)
        stop_rank("%s: %s failed in the background", path, first.api_name);
    stop_rank("%s: a call failed in the background", path);
}

size_t async_wait(hid_t events, uint64_t nanoseconds, const char *path)
{
    size_t count = 0;
    size_t running = 0;
    hbool_t failed = false;
    HDF5_OK(H5ESget_count(events, &count), path);
    const herr_t status = H5ESwait(events, nanoseconds, &running, &failed);
    if (failed)
        stop_with_reason(events, path);
    HDF5_OK(status, path);
    return count;
}

void async_close_events(hid_t events, const char *path)
{
    HDF5_OK(H5ESclose(events), path);
}

#else

const char *async_lacks(enum async_mode mode)
{
    return mode == ASYNC_NO ? NULL : "--async: HDF5 1.13 or newer is needed, for event sets; this is " H5_VERS_INFO;
}

/* The rest is never called: there is no mode with event sets. */

hid_t async_make_events(const char *path)
{
    (void)path;
    return H5ES_NONE;
}

size_t async_wait(hid_t events, uint64_t nanoseconds, const char *path)
{
    (void)events;
    (void)nanoseconds;
    (void)path;
    return 0;
}

void async_close_events(hid_t events, const char *path)
{
    (void)events;
    (void)path;
}

#endif
