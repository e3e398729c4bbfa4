/* What one process did to the case's files: how often each call was made at each place with each size. Filled by the
 * calls that are preloaded before the real ones, and left as a file of JSON when the process ends. Safe with several
 * threads.
 *
 * IOGAUGE_FINGERPRINT_CASE  the case's folder, absolute: files below it are counted, no others
 * IOGAUGE_FINGERPRINT_TO    the folder for what was counted, one file a process; shared by all nodes */
#ifndef IOGAUGE_FINGERPRINT_COUNTS_H
#define IOGAUGE_FINGERPRINT_COUNTS_H

#include <stdbool.h>
#include <sys/types.h>

#pragma GCC visibility push(hidden)

enum { COUNTS_NONE = -1 }; /* no file of the case; no offset */

/* How a file was opened when a call was made on it. */
enum access { ACCESS_NAME, ACCESS_READ, ACCESS_WRITE };

/* Number of the file at PATH, taken from FOLDER (a descriptor, or AT_FDCWD) where it is relative; COUNTS_NONE for those
 * that are none of the case's. */
int counts_file(int folder, const char *path);

/* CALL was made on FILE, with its offset and the bytes that it asked for, where it has such. Nothing for COUNTS_NONE.
 * errno stays. */
void counts_add(int file, enum access access, const char *call, off_t offset, off_t bytes, bool failed);

/* The size of FILE when it was closed; the last one stays. */
void counts_size(int file, off_t bytes);

/* The process is RANK of RANKS in MPI; it has left MPI in good order. */
void counts_rank(int rank, int ranks);
void counts_finalized(void);

#pragma GCC visibility pop

#endif
