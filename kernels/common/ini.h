/* INI files: "key = value" lines below one [section]; comments and blank lines are skipped. */
#ifndef IOGAUGE_INI_H
#define IOGAUGE_INI_H

#include <stdbool.h>
#include <stddef.h>

/* Takes one entry. Returns 0, or -1 with PROBLEM filled: what is wrong and what is allowed. KEY and VALUE live as long
 * as the call. */
typedef int ini_take(void *data, const char *key, const char *value, char *problem, size_t problem_bytes);

/* Read the entries of SECTION from the file at PATH; rank 0 reads, all ranks take. Another section is an error.
 * Returns 0, or -1 with PROBLEM filled: file, line, and TAKE's words. Collective. */
int ini_read(const char *path, const char *section, ini_take *take, void *data, char *problem, size_t problem_bytes);

#endif
