#include "hints.h"

#include "failure.h"

#include <stdio.h>
#include <string.h>

/* Take the next KEY=VALUE from *TEXT, which moves on. Returns 1, 0 at the end, or -1 for something else. */
static int next_hint(const char **text, char key[MPI_MAX_INFO_KEY], char value[MPI_MAX_INFO_VAL])
{
    if (*text == NULL || **text == '\0')
        return 0;
    const size_t length = strcspn(*text, ";");
    const size_t key_length = strcspn(*text, "=;");
    if (key_length == 0 || key_length >= length || key_length >= MPI_MAX_INFO_KEY)
        return -1;
    const size_t value_length = length - key_length - 1;
    if (value_length == 0 || value_length >= MPI_MAX_INFO_VAL)
        return -1;
    memcpy(key, *text, key_length);
    key[key_length] = '\0';
    memcpy(value, *text + key_length + 1, value_length);
    value[value_length] = '\0';
    *text += length + ((*text)[length] == ';');
    return 1;
}

int hints_check(const char *text, char *problem, size_t problem_bytes)
{
    char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL];
    const char *rest = text;
    int found;
    do
        found = next_hint(&rest, key, value);
    while (found == 1);
    if (found == 0)
        return 0;
    return snprintf(problem, problem_bytes, "--mpi-info %s: KEY=VALUE[;KEY=VALUE...] is expected, such as cb_nodes=4",
                    text),
           -1;
}

MPI_Info hints_make(const char *text)
{
    char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL];
    MPI_Info info = MPI_INFO_NULL;
    for (const char *rest = text; next_hint(&rest, key, value) == 1;) {
        if (info == MPI_INFO_NULL)
            MPI_OK(MPI_Info_create(&info), "MPI");
        MPI_OK(MPI_Info_set(info, key, value), "MPI");
    }
    return info;
}

void hints_free(MPI_Info *info)
{
    if (*info != MPI_INFO_NULL)
        MPI_OK(MPI_Info_free(info), "MPI");
}
