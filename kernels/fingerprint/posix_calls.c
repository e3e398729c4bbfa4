/* POSIX calls, counted on their way to the C library. Those with 64 bits in their name are counted as those without.
 * What stdio does below fopen, and what the C library calls by itself, passes unseen: fopen of a file of the case is
 * counted, so that it is known. */
#define _GNU_SOURCE
#include "counts.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

/* Which file of the case a descriptor is of, and how it was opened: (file + 1) * ACCESSES + access; 0: none. */
enum { DESCRIPTORS = 1 << 16, ACCESSES = 4 };
static _Atomic int descriptors[DESCRIPTORS];

/* The next definition of NAME behind this library, into the function pointer at WHERE. */
static void find(const char *name, void *where)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    if (symbol == NULL) {
        fprintf(stderr, "iogauge: fingerprint: the C library has no %s\n", name);
        abort();
    }
    memcpy(where, &symbol, sizeof symbol); /* ISO C converts no pointer to an object into one to a function */
}

/* The real NAME, looked up once, as REAL. */
#define LOOK_UP(result, name, parameters)                              \
    typedef result called parameters;                                  \
    static called *_Atomic known;                                      \
    called *real = atomic_load_explicit(&known, memory_order_relaxed); \
    if (real == NULL) {                                                \
        find(#name, &real);                                            \
        atomic_store_explicit(&known, real, memory_order_relaxed);     \
    }

/* NAME with its parameters, which calls the real one and then does NOTE with its ANSWER. */
#define COUNTED(result, name, parameters, arguments, note) \
    result name parameters;                                \
    result name parameters                                 \
    {                                                      \
        LOOK_UP(result, name, parameters)                  \
        result answer = real arguments;                    \
        note;                                              \
        return answer;                                     \
    }

/* --- noting --------------------------------------------------------------------------------------------------- */

static int file_of(int fd, enum access *access)
{
    const int found = fd >= 0 && fd < DESCRIPTORS ? atomic_load(&descriptors[fd]) : 0;
    *access = (enum access)(found % ACCESSES);
    return found / ACCESSES - 1;
}

static void copied(int from, int fd)
{
    if (from >= 0 && from < DESCRIPTORS && fd >= 0 && fd < DESCRIPTORS)
        atomic_store(&descriptors[fd], atomic_load(&descriptors[from]));
}

static void opened(int folder, const char *path, const char *call, int flags, int fd)
{
    const int file = counts_file(folder, path);
    const enum access access = (flags & O_ACCMODE) == O_RDONLY ? ACCESS_READ : ACCESS_WRITE;
    if (fd >= 0 && fd < DESCRIPTORS)
        atomic_store(&descriptors[fd], file == COUNTS_NONE ? 0 : (file + 1) * ACCESSES + (int)access);
    counts_add(file, access, (flags & O_CREAT) != 0 && strcmp(call, "open") == 0 ? "open to create" : call, COUNTS_NONE,
               0, fd < 0);
}

/* A call on a descriptor that moves nothing. */
static void noted(int fd, const char *call, bool failed)
{
    enum access access;
    const int file = file_of(fd, &access);
    counts_add(file, access, call, COUNTS_NONE, 0, failed);
}

/* One by the file's name. */
static void named(int folder, const char *path, const char *call, bool failed)
{
    counts_add(counts_file(folder, path), ACCESS_NAME, call, COUNTS_NONE, 0, failed);
}

/* BYTES were asked for: how many of them were there, at the end of a file that others write, is a matter of time. */
static void moved(int fd, const char *call, off_t offset, size_t bytes, ssize_t done)
{
    enum access access;
    const int file = file_of(fd, &access);
    counts_add(file, access, call, offset, (off_t)bytes, done < 0);
}

/* The same at the descriptor's own position, which lies behind what was done. */
static void moved_on(int fd, const char *call, size_t bytes, ssize_t done)
{
    enum access access;
    LOOK_UP(off64_t, lseek64, (int of, off64_t offset, int whence))
    if (file_of(fd, &access) != COUNTS_NONE)
        moved(fd, call, done < 0 ? COUNTS_NONE : real(fd, 0, SEEK_CUR) - done, bytes, done);
}

static size_t bytes_of(const struct iovec *pieces, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += pieces[i].iov_len;
    return bytes;
}

/* --- files by name -------------------------------------------------------------------------------------------- */

#define OPENED(name, parameters, arguments, ...)          \
    int name parameters;                                  \
    int name parameters                                   \
    {                                                     \
        LOOK_UP(int, name, parameters)                    \
        mode_t mode = 0;                                  \
        if ((flags & (O_CREAT | __O_TMPFILE)) != 0) {     \
            va_list list;                                 \
            va_start(list, flags);                        \
            mode = va_arg(list, mode_t);                  \
            va_end(list);                                 \
        }                                                 \
        const int answer = real arguments;                \
        opened(__VA_ARGS__, path, "open", flags, answer); \
        return answer;                                    \
    }

OPENED(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENED(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENED(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode), folder)
OPENED(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode), folder)

/* What programs that were compiled with _FORTIFY_SOURCE call. */
COUNTED(int, __open_2, (const char *path, int flags), (path, flags), opened(AT_FDCWD, path, "open", flags, answer))
COUNTED(int, __open64_2, (const char *path, int flags), (path, flags), opened(AT_FDCWD, path, "open", flags, answer))
COUNTED(int, creat, (const char *path, mode_t mode), (path, mode),
        opened(AT_FDCWD, path, "creat", O_WRONLY | O_CREAT, answer))
COUNTED(int, creat64, (const char *path, mode_t mode), (path, mode),
        opened(AT_FDCWD, path, "creat", O_WRONLY | O_CREAT, answer))
COUNTED(FILE *, fopen, (const char *path, const char *mode), (path, mode),
        named(AT_FDCWD, path, "fopen", answer == NULL))
COUNTED(FILE *, fopen64, (const char *path, const char *mode), (path, mode),
        named(AT_FDCWD, path, "fopen", answer == NULL))

COUNTED(int, access, (const char *path, int mode), (path, mode), named(AT_FDCWD, path, "access", answer != 0))
COUNTED(int, unlink, (const char *path), (path), named(AT_FDCWD, path, "unlink", answer != 0))
COUNTED(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags),
        named(folder, path, "unlink", answer != 0))
COUNTED(int, remove, (const char *path), (path), named(AT_FDCWD, path, "unlink", answer != 0))
COUNTED(int, rename, (const char *path, const char *to), (path, to), named(AT_FDCWD, path, "rename", answer != 0))
COUNTED(int, truncate, (const char *path, off_t bytes), (path, bytes), named(AT_FDCWD, path, "truncate", answer != 0))
COUNTED(int, truncate64, (const char *path, off64_t bytes), (path, bytes),
        named(AT_FDCWD, path, "truncate", answer != 0))
COUNTED(int, mkdir, (const char *path, mode_t mode), (path, mode), named(AT_FDCWD, path, "mkdir", answer != 0))
COUNTED(int, rmdir, (const char *path), (path), named(AT_FDCWD, path, "rmdir", answer != 0))

COUNTED(int, stat, (const char *path, struct stat *status), (path, status), named(AT_FDCWD, path, "stat", answer != 0))
COUNTED(int, stat64, (const char *path, struct stat64 *status), (path, status),
        named(AT_FDCWD, path, "stat", answer != 0))
COUNTED(int, lstat, (const char *path, struct stat *status), (path, status),
        named(AT_FDCWD, path, "lstat", answer != 0))
COUNTED(int, lstat64, (const char *path, struct stat64 *status), (path, status),
        named(AT_FDCWD, path, "lstat", answer != 0))
COUNTED(int, fstatat, (int folder, const char *path, struct stat *status, int flags), (folder, path, status, flags),
        named(folder, path, "stat", answer != 0))
COUNTED(int, fstatat64, (int folder, const char *path, struct stat64 *status, int flags), (folder, path, status, flags),
        named(folder, path, "stat", answer != 0))
COUNTED(int, statx, (int folder, const char *path, int flags, unsigned mask, struct statx *status),
        (folder, path, flags, mask, status), named(folder, path, "stat", answer != 0))
COUNTED(int, statfs, (const char *path, struct statfs *status), (path, status),
        named(AT_FDCWD, path, "statfs", answer != 0))
COUNTED(int, statfs64, (const char *path, struct statfs64 *status), (path, status),
        named(AT_FDCWD, path, "statfs", answer != 0))

/* The same as programs for a C library before 2.33 call them. */
COUNTED(int, __xstat, (int version, const char *path, struct stat *status), (version, path, status),
        named(AT_FDCWD, path, "stat", answer != 0))
COUNTED(int, __xstat64, (int version, const char *path, struct stat64 *status), (version, path, status),
        named(AT_FDCWD, path, "stat", answer != 0))
COUNTED(int, __lxstat, (int version, const char *path, struct stat *status), (version, path, status),
        named(AT_FDCWD, path, "lstat", answer != 0))
COUNTED(int, __lxstat64, (int version, const char *path, struct stat64 *status), (version, path, status),
        named(AT_FDCWD, path, "lstat", answer != 0))
COUNTED(int, __fxstat, (int version, int fd, struct stat *status), (version, fd, status),
        noted(fd, "fstat", answer != 0))
COUNTED(int, __fxstat64, (int version, int fd, struct stat64 *status), (version, fd, status),
        noted(fd, "fstat", answer != 0))

/* --- open files ----------------------------------------------------------------------------------------------- */

COUNTED(ssize_t, read, (int fd, void *data, size_t bytes), (fd, data, bytes), moved_on(fd, "read", bytes, answer))
COUNTED(ssize_t, readv, (int fd, const struct iovec *pieces, int count), (fd, pieces, count),
        moved_on(fd, "readv", bytes_of(pieces, count), answer))
COUNTED(ssize_t, pread, (int fd, void *data, size_t bytes, off_t offset), (fd, data, bytes, offset),
        moved(fd, "pread", offset, bytes, answer))
COUNTED(ssize_t, pread64, (int fd, void *data, size_t bytes, off64_t offset), (fd, data, bytes, offset),
        moved(fd, "pread", offset, bytes, answer))
COUNTED(ssize_t, preadv, (int fd, const struct iovec *pieces, int count, off_t offset), (fd, pieces, count, offset),
        moved(fd, "preadv", offset, bytes_of(pieces, count), answer))
COUNTED(ssize_t, preadv64, (int fd, const struct iovec *pieces, int count, off64_t offset), (fd, pieces, count, offset),
        moved(fd, "preadv", offset, bytes_of(pieces, count), answer))
COUNTED(ssize_t, write, (int fd, const void *data, size_t bytes), (fd, data, bytes),
        moved_on(fd, "write", bytes, answer))
COUNTED(ssize_t, writev, (int fd, const struct iovec *pieces, int count), (fd, pieces, count),
        moved_on(fd, "writev", bytes_of(pieces, count), answer))
COUNTED(ssize_t, pwrite, (int fd, const void *data, size_t bytes, off_t offset), (fd, data, bytes, offset),
        moved(fd, "pwrite", offset, bytes, answer))
COUNTED(ssize_t, pwrite64, (int fd, const void *data, size_t bytes, off64_t offset), (fd, data, bytes, offset),
        moved(fd, "pwrite", offset, bytes, answer))
COUNTED(ssize_t, pwritev, (int fd, const struct iovec *pieces, int count, off_t offset), (fd, pieces, count, offset),
        moved(fd, "pwritev", offset, bytes_of(pieces, count), answer))
COUNTED(ssize_t, pwritev64, (int fd, const struct iovec *pieces, int count, off64_t offset),
        (fd, pieces, count, offset), moved(fd, "pwritev", offset, bytes_of(pieces, count), answer))

COUNTED(off_t, lseek, (int fd, off_t offset, int whence), (fd, offset, whence), noted(fd, "lseek", answer < 0))
COUNTED(off64_t, lseek64, (int fd, off64_t offset, int whence), (fd, offset, whence), noted(fd, "lseek", answer < 0))
COUNTED(int, fsync, (int fd), (fd), noted(fd, "fsync", answer != 0))
COUNTED(int, fdatasync, (int fd), (fd), noted(fd, "fdatasync", answer != 0))
COUNTED(int, ftruncate, (int fd, off_t bytes), (fd, bytes), noted(fd, "ftruncate", answer != 0))
COUNTED(int, ftruncate64, (int fd, off64_t bytes), (fd, bytes), noted(fd, "ftruncate", answer != 0))
COUNTED(int, posix_fallocate, (int fd, off_t offset, off_t bytes), (fd, offset, bytes),
        noted(fd, "posix_fallocate", answer != 0))
COUNTED(int, posix_fallocate64, (int fd, off64_t offset, off64_t bytes), (fd, offset, bytes),
        noted(fd, "posix_fallocate", answer != 0))
COUNTED(int, fstat, (int fd, struct stat *status), (fd, status), noted(fd, "fstat", answer != 0))
COUNTED(int, fstat64, (int fd, struct stat64 *status), (fd, status), noted(fd, "fstat", answer != 0))
COUNTED(int, fstatfs, (int fd, struct statfs *status), (fd, status), noted(fd, "fstatfs", answer != 0))
COUNTED(int, fstatfs64, (int fd, struct statfs64 *status), (fd, status), noted(fd, "fstatfs", answer != 0))
COUNTED(int, flock, (int fd, int operation), (fd, operation), noted(fd, "flock", answer != 0))
COUNTED(void *, mmap, (void *address, size_t bytes, int protection, int flags, int fd, off_t offset),
        (address, bytes, protection, flags, fd, offset), noted(fd, "mmap", answer == MAP_FAILED))
COUNTED(void *, mmap64, (void *address, size_t bytes, int protection, int flags, int fd, off64_t offset),
        (address, bytes, protection, flags, fd, offset), noted(fd, "mmap", answer == MAP_FAILED))

COUNTED(int, dup, (int fd), (fd), copied(fd, answer))
COUNTED(int, dup2, (int fd, int to), (fd, to), copied(fd, answer))
COUNTED(int, dup3, (int fd, int to, int flags), (fd, to, flags), copied(fd, answer))

/* Locks, and copies of descriptors. */
static void controlled(int fd, int command, int answer)
{
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        copied(fd, answer);
    else if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW)
        noted(fd, "fcntl lock", answer != 0);
}

#define CONTROLLED(name)                                                                        \
    int name(int fd, int command, ...)                                                          \
    {                                                                                           \
        LOOK_UP(int, name, (int, int, ...))                                                     \
        va_list list;                                                                           \
        va_start(list, command);                                                                \
        void *argument = va_arg(list, void *); /* whatever it is, it is passed on as it came */ \
        va_end(list);                                                                           \
        const int answer = real(fd, command, argument);                                         \
        controlled(fd, command, answer);                                                        \
        return answer;                                                                          \
    }

CONTROLLED(fcntl)
CONTROLLED(fcntl64)

/* The size that the file has then, and the end of the descriptor: before the real one, behind which another thread may
 * be given the same number. */
int close(int fd)
{
    LOOK_UP(int, close, (int))
    enum access access;
    const int file = file_of(fd, &access);
    if (file != COUNTS_NONE) {
        struct stat64 status;
        typedef int asked(int, struct stat64 *);
        asked *size = NULL;
        find("fstat64", &size);
        if (size(fd, &status) == 0 && S_ISREG(status.st_mode)) /* a folder's size is its file system's business */
            counts_size(file, status.st_size);
        atomic_store(&descriptors[fd], 0);
        counts_add(file, access, "close", COUNTS_NONE, 0, false);
    }
    return real(fd);
}
