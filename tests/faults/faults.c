/* Defects to preload into a real run, each switched on by an environment variable:
 *   FAULT_SLOW_HDF5=0.7   H5Dwrite and H5Dread take 1/0.7 of their time
 *   FAULT_KEEP_CACHE=1    posix_fadvise is answered but not done, so that nothing leaves the page cache
 *   FAULT_FLIP_BYTE=1     one bit of the first large pwrite is changed on its way
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stretch(double begin)
{
    const char *factor = getenv("FAULT_SLOW_HDF5");
    const double end = factor == NULL ? 0 : begin + (now() - begin) / atof(factor);
    while (now() < end)
        ;
}

herr_t H5Dwrite(hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t transfer, const void *data)
{
    herr_t (*real)(hid_t, hid_t, hid_t, hid_t, hid_t, const void *) = dlsym(RTLD_NEXT, "H5Dwrite");
    const double begin = now();
    const herr_t status = real(dataset, type, memory, file, transfer, data);
    stretch(begin);
    return status;
}

herr_t H5Dread(hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t transfer, void *data)
{
    herr_t (*real)(hid_t, hid_t, hid_t, hid_t, hid_t, void *) = dlsym(RTLD_NEXT, "H5Dread");
    const double begin = now();
    const herr_t status = real(dataset, type, memory, file, transfer, data);
    stretch(begin);
    return status;
}

static int fadvise(const char *name, int fd, off_t offset, off_t length, int advice)
{
    if (getenv("FAULT_KEEP_CACHE") != NULL)
        return 0;
    int (*real)(int, off_t, off_t, int) = dlsym(RTLD_NEXT, name);
    return real(fd, offset, length, advice);
}

int posix_fadvise(int fd, off_t offset, off_t length, int advice)
{
    return fadvise("posix_fadvise", fd, offset, length, advice);
}

int posix_fadvise64(int fd, off_t offset, off_t length, int advice)
{
    return fadvise("posix_fadvise64", fd, offset, length, advice);
}

static ssize_t write_flipped(const char *name, int fd, const void *data, size_t bytes, off_t offset)
{
    static int done;
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, name);
    if (getenv("FAULT_FLIP_BYTE") == NULL || done || bytes < 65536)
        return real(fd, data, bytes, offset);
    done = 1;
    char *copy = malloc(bytes);
    memcpy(copy, data, bytes);
    copy[bytes / 2] ^= 1;
    const ssize_t written = real(fd, copy, bytes, offset);
    free(copy);
    return written;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    return write_flipped("pwrite", fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off_t offset)
{
    return write_flipped("pwrite64", fd, data, bytes, offset);
}
