/* How a kernel stops: every MPI, HDF5 and system call goes through one of these checks, which name the call,
 * the rank and the file; every stop removes the files that this run made. */
#ifndef IOGAUGE_FAILURE_H
#define IOGAUGE_FAILURE_H

#include <mpi.h>
#include <stdint.h>

enum { MESSAGE_BYTES = 8192 }; /* a path and a sentence */

enum exit_code { EXIT_BAD_INPUT = 2, EXIT_BAD_DATA = 3 };

/* Name the kernel that messages begin with. */
void failure_set_kernel(const char *kernel);

/* Something every rank knows to be wrong (an argument): rank 0 says it, MPI ends, all ranks exit with CODE.
 * Collective. */
_Noreturn void stop_all(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Something only this rank knows: say it, remove the run's files, and end every rank through MPI_Abort. */
_Noreturn void stop_rank(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Agree on a local finding: where any rank of COMM has PROBLEM non-empty, the lowest such rank's text stops all ranks,
 * also those outside of COMM. Collective over COMM. */
void stop_all_if(MPI_Comm comm, int code, const char *problem);

_Noreturn void failure_mpi(int error, const char *call, const char *file);
_Noreturn void failure_hdf5(const char *call, const char *file);
_Noreturn void failure_system(const char *call, const char *file);

#define MPI_OK(call, file)                            \
    do {                                              \
        const int mpi_ok_error = (call);              \
        if (mpi_ok_error != MPI_SUCCESS)              \
            failure_mpi(mpi_ok_error, #call, (file)); \
    } while (0)

/* Evaluates to the call's value: an identifier or a status, negative when the call failed. */
#define HDF5_OK(call, file) hdf5_ok((int64_t)(call), #call, (file))

#define SYSTEM_OK(call, file)              \
    do {                                   \
        if ((call) != 0)                   \
            failure_system(#call, (file)); \
    } while (0)

static inline int64_t hdf5_ok(int64_t value, const char *call, const char *file)
{
    if (value < 0)
        failure_hdf5(call, file);
    return value;
}

#endif
