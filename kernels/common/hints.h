/* MPI's hints for a file ("info"), given as text: KEY=VALUE;KEY=VALUE. Which keys there are, and whether one is heeded,
 * is the MPI library's affair (MPI standard 4.0, 14.2.8). */
#ifndef IOGAUGE_HINTS_H
#define IOGAUGE_HINTS_H

#include <mpi.h>
#include <stddef.h>

/* Is TEXT (NULL: none) of that form? Returns 0, or -1 with PROBLEM filled. */
int hints_check(const char *text, char *problem, size_t problem_bytes);

/* The info object of a TEXT that was checked; MPI_INFO_NULL without hints. Whoever makes it frees it. */
MPI_Info hints_make(const char *text);

void hints_free(MPI_Info *info);

#endif
