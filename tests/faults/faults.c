/* Defects to preload into a real run, each switched on by an environment variable:
 *   FAULT_SLOW_HDF5=0.7   H5Dwrite and H5Dread take 1/0.7 of their time
 *   FAULT_SPILL=1         H5Dread changes the first byte of the memory that it is given, whatever was selected of it
 *   FAULT_KEEP_CACHE=1    posix_fadvise is answered but not done, so that nothing leaves the page cache
 *   FAULT_SLOW_CREATE=1   a file that was just made is handed over half a second later, or when a signal came
 *   FAULT_FLIP_BYTE=1     one bit of the first large pwrite is changed on its way
 *   FAULT_FSYNC=16        an fsync of the case's file after every 16 H5Dwrite of a rank
 *   FAULT_SPLIT=1         the first large pwrite is made in two halves
 *   FAULT_UNALIGNED=3     HDF5 puts the third contiguous dataset 2 KiB behind where it would
 *   FAULT_LIE=mkdir       the third such call on one of the metadata kernel's objects is answered but not done; so with
 *                         open, write, stat, rename, rmdir, unlink, readdir (a name left out), H5Gcreate2, H5Dcreate2,
 *                         H5Acreate2 (another name) and H5Awrite. readdir-twice and write-flip: a name comes twice, a bit
 *                         is changed
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The case's file, as it was opened last. */
static int data_fd = -1;

static void sync_sometimes(void)
{
    static int writes;
    const char *every = getenv("FAULT_FSYNC");
    if (every != NULL && ++writes % atoi(every) == 0)
        fsync(data_fd);
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
    sync_sometimes();
    return status;
}

herr_t H5Dread(hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t transfer, void *data)
{
    herr_t (*real)(hid_t, hid_t, hid_t, hid_t, hid_t, void *) = dlsym(RTLD_NEXT, "H5Dread");
    const double begin = now();
    const herr_t status = real(dataset, type, memory, file, transfer, data);
    if (getenv("FAULT_SPILL") != NULL)
        *(unsigned char *)data ^= 1;
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

static ssize_t write_otherwise(const char *name, int fd, const void *data, size_t bytes, off_t offset)
{
    static int done;
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, name);
    if ((getenv("FAULT_FLIP_BYTE") == NULL && getenv("FAULT_SPLIT") == NULL) || done || bytes < 65536)
        return real(fd, data, bytes, offset);
    done = 1;
    if (getenv("FAULT_SPLIT") != NULL) {
        const ssize_t half = real(fd, data, bytes / 2, offset);
        return half + real(fd, (const char *)data + half, bytes - (size_t)half, offset + half);
    }
    char *copy = malloc(bytes);
    memcpy(copy, data, bytes);
    copy[bytes / 2] ^= 1;
    const ssize_t written = real(fd, copy, bytes, offset);
    free(copy);
    return written;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    return write_otherwise("pwrite", fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off_t offset)
{
    return write_otherwise("pwrite64", fd, data, bytes, offset);
}

/* This is the call that lies. */
static int lies(const char *call, const char *path)
{
    static int calls;
    const char *chosen = getenv("FAULT_LIE");
    return chosen != NULL && strcmp(chosen, call) == 0 &&
           (strstr(path, "item-") != NULL || strstr(path, "renamed-") != NULL || strstr(path, "attribute-") != NULL) &&
           ++calls == 3;
}

int mkdir(const char *path, mode_t mode)
{
    int (*real)(const char *, mode_t) = dlsym(RTLD_NEXT, "mkdir");
    return lies("mkdir", path) ? 0 : real(path, mode);
}

int rmdir(const char *path)
{
    int (*real)(const char *) = dlsym(RTLD_NEXT, "rmdir");
    return lies("rmdir", path) ? 0 : real(path);
}

int unlink(const char *path)
{
    int (*real)(const char *) = dlsym(RTLD_NEXT, "unlink");
    return lies("unlink", path) ? 0 : real(path);
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    return lies("rename", from) ? 0 : real(from, to);
}

static int open_as(const char *name, const char *path, int flags, mode_t mode)
{
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, name);
    const int fd = (flags & O_CREAT) != 0 && lies("open", path) ? real("/dev/null", O_WRONLY) : real(path, flags, mode);
    if (strstr(path, "-case0-file0.h5") != NULL && path[strlen(path) - 1] == '5')
        data_fd = fd;
    if ((flags & O_CREAT) != 0 && fd >= 0 && getenv("FAULT_SLOW_CREATE") != NULL)
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    return fd;
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return open_as("open64", path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return open_as("open", path, flags, mode);
}

int stat64(const char *path, struct stat64 *status)
{
    int (*real)(const char *, struct stat64 *) = dlsym(RTLD_NEXT, "stat64");
    return lies("stat", path) ? 0 : real(path, status);
}

struct dirent64 *readdir64(DIR *listing)
{
    static __thread struct dirent64 *again;
    struct dirent64 *(*real)(DIR *) = dlsym(RTLD_NEXT, "readdir64");
    struct dirent64 *entry = again != NULL ? again : real(listing);
    again = NULL;
    if (entry != NULL && lies("readdir", entry->d_name))
        entry = real(listing);
    if (entry != NULL && lies("readdir-twice", entry->d_name))
        again = entry;
    return entry;
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    char link[64];
    char path[4096] = "";
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (getenv("FAULT_LIE") != NULL) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, path, sizeof path - 1) > 0 && lies("write", path))
            return (ssize_t)bytes;
        if (lies("write-flip", path)) {
            char *copy = malloc(bytes);
            memcpy(copy, data, bytes);
            copy[bytes / 2] ^= 1;
            const ssize_t written = real(fd, copy, bytes);
            free(copy);
            return written;
        }
    }
    return real(fd, data, bytes);
}

/* NAME with its end changed, where this is the call that lies. */
static const char *other_name(const char *call, const char *name, char *buffer, size_t bytes)
{
    if (!lies(call, name))
        return name;
    snprintf(buffer, bytes, "%s-other", name);
    return buffer;
}

hid_t H5Gcreate2(hid_t file, const char *name, hid_t links, hid_t creation, hid_t access)
{
    char buffer[4096];
    hid_t (*real)(hid_t, const char *, hid_t, hid_t, hid_t) = dlsym(RTLD_NEXT, "H5Gcreate2");
    return real(file, other_name("H5Gcreate2", name, buffer, sizeof buffer), links, creation, access);
}

/* HDF5's own, below H5Dcreate: where a dataset's bytes are to lie in the file. */
haddr_t H5MF_alloc(void *file, int type, hsize_t bytes);
haddr_t H5MF_alloc(void *file, int type, hsize_t bytes)
{
    enum { OF_DATA = 3, SHIFT_BYTES = 2048 }; /* H5FD_MEM_DRAW */
    static int datasets;
    haddr_t (*real)(void *, int, hsize_t) = dlsym(RTLD_NEXT, "H5MF_alloc");
    const char *chosen = getenv("FAULT_UNALIGNED");
    const int shifted = chosen != NULL && type == OF_DATA && ++datasets == atoi(chosen);
    return real(file, type, bytes + (shifted ? SHIFT_BYTES : 0)) + (shifted ? SHIFT_BYTES : 0);
}

hid_t H5Dcreate2(hid_t file, const char *name, hid_t type, hid_t space, hid_t links, hid_t creation, hid_t access)
{
    char buffer[4096];
    hid_t (*real)(hid_t, const char *, hid_t, hid_t, hid_t, hid_t, hid_t) = dlsym(RTLD_NEXT, "H5Dcreate2");
    return real(file, other_name("H5Dcreate2", name, buffer, sizeof buffer), type, space, links, creation, access);
}

hid_t H5Acreate2(hid_t object, const char *name, hid_t type, hid_t space, hid_t creation, hid_t access)
{
    char buffer[4096];
    hid_t (*real)(hid_t, const char *, hid_t, hid_t, hid_t, hid_t) = dlsym(RTLD_NEXT, "H5Acreate2");
    return real(object, other_name("H5Acreate2", name, buffer, sizeof buffer), type, space, creation, access);
}

herr_t H5Awrite(hid_t attribute, hid_t type, const void *data)
{
    herr_t (*real)(hid_t, hid_t, const void *) = dlsym(RTLD_NEXT, "H5Awrite");
    const uint64_t zero = 0;
    return real(attribute, type, lies("H5Awrite", "attribute-") ? &zero : data);
}
