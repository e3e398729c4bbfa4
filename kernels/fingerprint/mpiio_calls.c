/* MPI-IO calls, counted by MPI's profiling interface. Those that an MPI library makes inside of another one are its own
 * business and not counted. Fortran's are not seen where the library does not go through C's. */
#define _GNU_SOURCE
#include "counts.h"

#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct handle {
    MPI_File handle;
    int file;
    enum access access;
};

static struct {
    pthread_mutex_t mutex;
    struct handle *items;
    int count;
} open_files = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* How many MPI-IO calls this thread is in. */
static _Thread_local int depth;

/* --- noting --------------------------------------------------------------------------------------------------- */

static struct handle *look_up(MPI_File handle)
{
    for (int i = 0; i < open_files.count; i++)
        if (open_files.items[i].handle == handle)
            return &open_files.items[i];
    return NULL;
}

static struct handle of(MPI_File handle)
{
    pthread_mutex_lock(&open_files.mutex);
    const struct handle *found = look_up(handle);
    const struct handle copy = found != NULL ? *found : (struct handle){.file = COUNTS_NONE};
    pthread_mutex_unlock(&open_files.mutex);
    return copy;
}

/* ROMIO takes "ufs:/path" and the like. */
static int file_at(const char *path)
{
    const size_t kind = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789");
    return counts_file(AT_FDCWD, kind > 1 && path[kind] == ':' ? path + kind + 1 : path);
}

static void opened(const char *path, int mode, MPI_File handle, int answer)
{
    const enum access access = (mode & MPI_MODE_RDONLY) != 0 ? ACCESS_READ : ACCESS_WRITE;
    const int file = file_at(path);
    counts_add(file, access, "MPI_File_open", COUNTS_NONE, 0, answer != MPI_SUCCESS);
    if (file == COUNTS_NONE || answer != MPI_SUCCESS)
        return;
    pthread_mutex_lock(&open_files.mutex);
    struct handle *items = realloc(open_files.items, ((size_t)open_files.count + 1) * sizeof *items);
    if (items != NULL) {
        open_files.items = items;
        items[open_files.count++] = (struct handle){handle, file, access};
    }
    pthread_mutex_unlock(&open_files.mutex);
}

static void forget(MPI_File handle)
{
    pthread_mutex_lock(&open_files.mutex);
    struct handle *found = look_up(handle);
    if (found != NULL)
        *found = open_files.items[--open_files.count];
    if (open_files.count == 0) {
        free(open_files.items);
        open_files.items = NULL;
    }
    pthread_mutex_unlock(&open_files.mutex);
}

static void noted(MPI_File handle, const char *call, int answer)
{
    const struct handle h = of(handle);
    counts_add(h.file, h.access, call, COUNTS_NONE, 0, answer != MPI_SUCCESS);
}

static void moved(MPI_File handle, const char *call, MPI_Count count, MPI_Datatype type, int answer)
{
    const struct handle h = of(handle);
    MPI_Count bytes = 0;
    if (h.file != COUNTS_NONE && PMPI_Type_size_x(type, &bytes) == MPI_SUCCESS)
        counts_add(h.file, h.access, call, COUNTS_NONE, (off_t)(bytes * count), answer != MPI_SUCCESS);
}

/* MPI_NAME, which calls the real one and does NOTE with its ANSWER where no other MPI-IO call made it. */
#define COUNTED(name, parameters, arguments, note) \
    int MPI_##name parameters                      \
    {                                              \
        depth++;                                   \
        const int answer = PMPI_##name arguments;  \
        depth--;                                   \
        if (depth == 0) {                          \
            note;                                  \
        }                                          \
        return answer;                             \
    }

/* --- the process ---------------------------------------------------------------------------------------------- */

static void started(int answer)
{
    int rank = 0;
    int ranks = 0;
    if (answer == MPI_SUCCESS && PMPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS &&
        PMPI_Comm_size(MPI_COMM_WORLD, &ranks) == MPI_SUCCESS)
        counts_rank(rank, ranks);
}

static void ended(int answer)
{
    if (answer == MPI_SUCCESS)
        counts_finalized();
}

COUNTED(Init, (int *count, char ***arguments), (count, arguments), started(answer))
COUNTED(Init_thread, (int *count, char ***arguments, int asked, int *given), (count, arguments, asked, given),
        started(answer))
COUNTED(Finalize, (void), (), ended(answer))

/* --- files ---------------------------------------------------------------------------------------------------- */

COUNTED(File_open, (MPI_Comm comm, const char *path, int mode, MPI_Info info, MPI_File *file),
        (comm, path, mode, info, file), opened(path, mode, *file, answer))
COUNTED(File_delete, (const char *path, MPI_Info info), (path, info),
        counts_add(file_at(path), ACCESS_NAME, "MPI_File_delete", COUNTS_NONE, 0, answer != MPI_SUCCESS))
COUNTED(File_set_view,
        (MPI_File file, MPI_Offset offset, MPI_Datatype element, MPI_Datatype type, const char *name, MPI_Info info),
        (file, offset, element, type, name, info), noted(file, "MPI_File_set_view", answer))
COUNTED(File_set_size, (MPI_File file, MPI_Offset bytes), (file, bytes), noted(file, "MPI_File_set_size", answer))
COUNTED(File_preallocate, (MPI_File file, MPI_Offset bytes), (file, bytes), noted(file, "MPI_File_preallocate", answer))
COUNTED(File_get_size, (MPI_File file, MPI_Offset *bytes), (file, bytes), noted(file, "MPI_File_get_size", answer))
COUNTED(File_set_atomicity, (MPI_File file, int flag), (file, flag), noted(file, "MPI_File_set_atomicity", answer))
COUNTED(File_seek, (MPI_File file, MPI_Offset offset, int whence), (file, offset, whence),
        noted(file, "MPI_File_seek", answer))
COUNTED(File_seek_shared, (MPI_File file, MPI_Offset offset, int whence), (file, offset, whence),
        noted(file, "MPI_File_seek_shared", answer))
COUNTED(File_sync, (MPI_File file), (file), noted(file, "MPI_File_sync", answer))

int MPI_File_close(MPI_File *file)
{
    noted(*file, "MPI_File_close", MPI_SUCCESS);
    forget(*file); /* before another one may be given the same handle */
    depth++;
    const int answer = PMPI_File_close(file);
    depth--;
    return answer;
}

/* --- data: each kind of call with numbers as int, and as MPI_Count where MPI is 4 or newer ---------------------- */

#define PLACED_(name, last, memory, number, ...)                                                                 \
    COUNTED(File_##name, (MPI_File file, MPI_Offset offset, memory data, number count, MPI_Datatype type, last), \
            (file, offset, data, count, type, answered), moved(file, "MPI_File_" __VA_ARGS__, count, type, answer))
#define AT_POINTER_(name, last, memory, number, ...)                                          \
    COUNTED(File_##name, (MPI_File file, memory data, number count, MPI_Datatype type, last), \
            (file, data, count, type, answered), moved(file, "MPI_File_" __VA_ARGS__, count, type, answer))
#define PLACED_BEGUN_(name, memory, number, ...)                                                           \
    COUNTED(File_##name, (MPI_File file, MPI_Offset offset, memory data, number count, MPI_Datatype type), \
            (file, offset, data, count, type), moved(file, "MPI_File_" __VA_ARGS__, count, type, answer))
#define BEGUN_(name, memory, number, ...)                                                                          \
    COUNTED(File_##name, (MPI_File file, memory data, number count, MPI_Datatype type), (file, data, count, type), \
            moved(file, "MPI_File_" __VA_ARGS__, count, type, answer))

#if MPI_VERSION >= 4
#define PLACED(name, last, memory) \
    PLACED_(name, last, memory, int, #name) PLACED_(name##_c, last, memory, MPI_Count, #name)
#define AT_POINTER(name, last, memory) \
    AT_POINTER_(name, last, memory, int, #name) AT_POINTER_(name##_c, last, memory, MPI_Count, #name)
#define PLACED_BEGUN(name, memory) \
    PLACED_BEGUN_(name, memory, int, #name) PLACED_BEGUN_(name##_c, memory, MPI_Count, #name)
#define BEGUN(name, memory) BEGUN_(name, memory, int, #name) BEGUN_(name##_c, memory, MPI_Count, #name)
#else
#define PLACED(name, last, memory) PLACED_(name, last, memory, int, #name)
#define AT_POINTER(name, last, memory) AT_POINTER_(name, last, memory, int, #name)
#define PLACED_BEGUN(name, memory) PLACED_BEGUN_(name, memory, int, #name)
#define BEGUN(name, memory) BEGUN_(name, memory, int, #name)
#endif

#define STATUS MPI_Status *answered
#define REQUEST MPI_Request *answered

PLACED(read_at, STATUS, void *)
PLACED(read_at_all, STATUS, void *)
PLACED(iread_at, REQUEST, void *)
PLACED(iread_at_all, REQUEST, void *)
AT_POINTER(read, STATUS, void *)
AT_POINTER(read_all, STATUS, void *)
AT_POINTER(read_shared, STATUS, void *)
AT_POINTER(read_ordered, STATUS, void *)
AT_POINTER(iread, REQUEST, void *)
AT_POINTER(iread_all, REQUEST, void *)
AT_POINTER(iread_shared, REQUEST, void *)
PLACED_BEGUN(read_at_all_begin, void *)
BEGUN(read_all_begin, void *)
BEGUN(read_ordered_begin, void *)

PLACED(write_at, STATUS, const void *)
PLACED(write_at_all, STATUS, const void *)
PLACED(iwrite_at, REQUEST, const void *)
PLACED(iwrite_at_all, REQUEST, const void *)
AT_POINTER(write, STATUS, const void *)
AT_POINTER(write_all, STATUS, const void *)
AT_POINTER(write_shared, STATUS, const void *)
AT_POINTER(write_ordered, STATUS, const void *)
AT_POINTER(iwrite, REQUEST, const void *)
AT_POINTER(iwrite_all, REQUEST, const void *)
AT_POINTER(iwrite_shared, REQUEST, const void *)
PLACED_BEGUN(write_at_all_begin, const void *)
BEGUN(write_all_begin, const void *)
BEGUN(write_ordered_begin, const void *)
