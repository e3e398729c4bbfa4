/* To preload: makes reads and writes of the files below one folder as slow as a storage of a given pace, and slower
 * still.
 *
 *   SLOW_STORAGE_FOLDER=/dev/shm/x  whose regular files; without it nothing is slowed
 *   SLOW_STORAGE_MIB_S=100          the bytes moved since a file was opened need as long as at this pace, at least
 *   SLOW_STORAGE_SLOWDOWN=0.2       the rate falls by this part: everything lasts 1 / (1 - 0.2) as long as it would
 *
 * The storage is busy from the opening of a file on, so that a process which has to wait for a core between its calls
 * is no slower than one that has a core at once. Seen are the calls of POSIX, thus those of MPI-IO and HDF5 too; mapped
 * files and asynchronous calls are not. The time is waited for asleep, as a program does whose storage is busy. A value
 * that is none ends the program: exit code 2. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static struct {
    char folder[4096];       /* with a slash at its end; empty: slow nothing */
    double bytes_per_second; /* 0: as fast as it is */
    double stretch;
} storage;

/* When the storage will have moved all that was asked for of each file so far; at first, when it was opened. Of more
 * files at once the calls alone are paced. */
static double due[1024];
static const int due_count = sizeof due / sizeof due[0];

static double number(const char *name, double most)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (text == NULL || *text == '\0')
        return 0;
    const double value = strtod(text, &end);
    if (*end != '\0' || !(value >= 0) || value > most) {
        fprintf(stderr, "slow_storage: error: %s=%s; a number from 0 to %g is expected\n", name, text, most);
        _exit(2);
    }
    return value;
}

__attribute__((constructor)) static void read_settings(void)
{
    const char *folder = getenv("SLOW_STORAGE_FOLDER");
    char *real = folder == NULL ? NULL : realpath(folder, NULL);
    if (real != NULL)
        snprintf(storage.folder, sizeof storage.folder, "%s/", real);
    free(real);
    storage.bytes_per_second = number("SLOW_STORAGE_MIB_S", 1e6) * 1048576;
    storage.stretch = 1 / (1 - number("SLOW_STORAGE_SLOWDOWN", 0.99));
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_until(double end)
{
    struct timespec t = {.tv_sec = (time_t)end};
    t.tv_nsec = (long)((end - (double)t.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static int is_on_storage(int fd)
{
    struct stat status;
    char link[64];
    char path[4096];
    if (storage.folder[0] == '\0' || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path);
    const size_t folder = strlen(storage.folder);
    return length > (ssize_t)folder && strncmp(path, storage.folder, folder) == 0;
}

/* Wait for the storage after a call that began at BEGIN and moved DONE bytes, and pass DONE on. */
static ssize_t waited(int fd, double begin, ssize_t done)
{
    const int error = errno;
    if (done >= 0 && is_on_storage(fd)) {
        const double end = begin + (now() - begin) * storage.stretch;
        double alone = begin;
        double *end_of_bytes = fd < due_count && due[fd] > 0 ? &due[fd] : &alone;
        if (storage.bytes_per_second > 0)
            *end_of_bytes += (double)done / storage.bytes_per_second * storage.stretch;
        sleep_until(*end_of_bytes > end ? *end_of_bytes : end);
    }
    errno = error;
    return done;
}

static int opened(double begin, int fd)
{
    if (fd >= 0 && fd < due_count)
        due[fd] = begin;
    return fd;
}

#define OPENED(name, parameters, ...)                                                        \
    int name parameters                                                                      \
    {                                                                                        \
        static int(*real) parameters;                                                        \
        if (real == NULL)                                                                    \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                       \
        va_list last;                                                                        \
        va_start(last, flags);                                                               \
        const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(last, mode_t) : 0; \
        va_end(last);                                                                        \
        const double begin = now();                                                          \
        return opened(begin, (real)(__VA_ARGS__, flags, mode));                              \
    }

OPENED(open, (const char *path, int flags, ...), path)
OPENED(open64, (const char *path, int flags, ...), path)
OPENED(openat, (int folder, const char *path, int flags, ...), folder, path)
OPENED(openat64, (int folder, const char *path, int flags, ...), folder, path)

#define SLOWED(type, name, parameters, ...)                  \
    type name parameters                                     \
    {                                                        \
        static type(*real) parameters;                       \
        if (real == NULL)                                    \
            *(void **)&real = dlsym(RTLD_NEXT, #name);       \
        const double begin = now();                          \
        return (type)waited(fd, begin, (real)(__VA_ARGS__)); \
    }

#define PIECES int fd, const struct iovec *pieces, int count

SLOWED(ssize_t, read, (int fd, void *data, size_t bytes), fd, data, bytes)
SLOWED(ssize_t, write, (int fd, const void *data, size_t bytes), fd, data, bytes)
SLOWED(ssize_t, pread, (int fd, void *data, size_t bytes, off_t offset), fd, data, bytes, offset)
SLOWED(ssize_t, pwrite, (int fd, const void *data, size_t bytes, off_t offset), fd, data, bytes, offset)
SLOWED(ssize_t, pread64, (int fd, void *data, size_t bytes, off64_t offset), fd, data, bytes, offset)
SLOWED(ssize_t, pwrite64, (int fd, const void *data, size_t bytes, off64_t offset), fd, data, bytes, offset)
SLOWED(ssize_t, readv, (PIECES), fd, pieces, count)
SLOWED(ssize_t, writev, (PIECES), fd, pieces, count)
SLOWED(ssize_t, preadv, (PIECES, off_t offset), fd, pieces, count, offset)
SLOWED(ssize_t, pwritev, (PIECES, off_t offset), fd, pieces, count, offset)
SLOWED(ssize_t, preadv64, (PIECES, off64_t offset), fd, pieces, count, offset)
SLOWED(ssize_t, pwritev64, (PIECES, off64_t offset), fd, pieces, count, offset)
SLOWED(ssize_t, preadv2, (PIECES, off_t offset, int flags), fd, pieces, count, offset, flags)
SLOWED(ssize_t, pwritev2, (PIECES, off_t offset, int flags), fd, pieces, count, offset, flags)
SLOWED(ssize_t, preadv64v2, (PIECES, off64_t offset, int flags), fd, pieces, count, offset, flags)
SLOWED(ssize_t, pwritev64v2, (PIECES, off64_t offset, int flags), fd, pieces, count, offset, flags)
SLOWED(int, fsync, (int fd), fd)
SLOWED(int, fdatasync, (int fd), fd)
