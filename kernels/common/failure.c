#include "failure.h"

#include "made_files.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef IOGAUGE_HAVE_HDF5
#include <hdf5.h>
#endif

static const char *kernel_name = "iogauge";

void failure_set_kernel(const char *kernel)
{
    kernel_name = kernel;
}

static _Noreturn void leave(int code)
{
#ifdef IOGAUGE_HAVE_HDF5
    /* A file that could not be written cannot be flushed either: HDF5 must not try again on the way out. */
    H5dont_atexit();
#endif
    MPI_Finalize();
    exit(code);
}

void stop_all(int code, const char *format, ...)
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    made_files_remove();
    if (rank == 0) {
        va_list arguments;
        fflush(stdout);
        fprintf(stderr, "%s: error: ", kernel_name);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
    }
    leave(code);
}

void stop_rank(const char *format, ...)
{
    int rank = 0;
    va_list arguments;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "%s: error: rank %d: ", kernel_name, rank);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(stderr);
    made_files_remove();
    MPI_Abort(MPI_COMM_WORLD, EXIT_BAD_INPUT);
    _Exit(EXIT_BAD_INPUT);
}

void stop_all_if(MPI_Comm comm, int code, const char *problem)
{
    int rank = 0;
    int size = 1;
    int everyone = 1;
    char text[MESSAGE_BYTES] = "";
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_size(MPI_COMM_WORLD, &everyone);
    int first = problem[0] != '\0' ? rank : size;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm);
    if (first == size)
        return;
    snprintf(text, sizeof text, "%s", problem);
    MPI_Bcast(text, MESSAGE_BYTES, MPI_CHAR, first, comm);
    if (size == everyone)
        stop_all(code, "%s", text);
    /* The ranks that stand aside cannot be asked to finalize. */
    made_files_remove();
    MPI_Barrier(comm);
    if (rank == 0) {
        fprintf(stderr, "%s: error: %s\n", kernel_name, text);
        fflush(stderr);
        MPI_Abort(MPI_COMM_WORLD, code);
    }
    MPI_Barrier(comm); /* until the abort arrives */
    _Exit(code);
}

void failure_mpi(int error, const char *call, const char *file)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    stop_rank("%s: %s failed: %s", file, call, text);
}

#ifdef IOGAUGE_HAVE_HDF5
/* HDF5's stack from the innermost call outwards: the first description says most. */
static herr_t innermost(unsigned depth, const H5E_error2_t *entry, void *text)
{
    if (depth == 0 && entry->desc != NULL)
        snprintf(text, MESSAGE_BYTES, "%s: %s", entry->func_name, entry->desc);
    return 0;
}

void failure_hdf5(const char *call, const char *file)
{
    char text[MESSAGE_BYTES] = "HDF5 gives no reason";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, text);
    stop_rank("%s: %s failed: %s", file, call, text);
}
#endif

void failure_system(const char *call, const char *file)
{
    stop_rank("%s: %s failed: %s", file, call, strerror(errno));
}
