#include "ini.h"

#include "failure.h"

#include <ctype.h>
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES = 65536 };

/* The whole text on every rank; NULL with PROBLEM filled where it cannot be read. */
static char *read_everywhere(const char *path, char *problem, size_t bytes)
{
    int rank = 0;
    int length = 0;
    char *text = calloc(1, FILE_BYTES);
    if (text == NULL)
        stop_rank("%s: out of memory", path);
    MPI_OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI");
    if (rank == 0) {
        FILE *file = fopen(path, "r");
        length = file == NULL ? -errno : (int)fread(text, 1, FILE_BYTES, file);
        if (file != NULL && ferror(file))
            length = -errno;
        if (file != NULL)
            fclose(file);
    }
    MPI_OK(MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI");
    if (length < 0)
        snprintf(problem, bytes, "%s: %s", path, strerror(-length));
    else if (length == FILE_BYTES)
        snprintf(problem, bytes, "%s: longer than %d bytes", path, FILE_BYTES - 1);
    else {
        MPI_OK(MPI_Bcast(text, FILE_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD), "MPI");
        return text;
    }
    free(text);
    return NULL;
}

static char *trimmed(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (size_t end = strlen(text); end > 0 && isspace((unsigned char)text[end - 1]); end--)
        text[end - 1] = '\0';
    return text;
}

/* One line, trimmed and neither blank nor a comment. */
static int take_line(char *line, const char *section, bool *inside, ini_take *take, void *data, char *problem,
                     size_t bytes)
{
    if (line[0] == '[') {
        line[strcspn(line, "]")] = '\0';
        *inside = strcmp(line + 1, section) == 0;
        if (!*inside)
            return snprintf(problem, bytes, "unknown section [%s]; allowed: [%s]", line + 1, section), -1;
        return 0;
    }
    char *equals = strchr(line, '=');
    if (!*inside)
        return snprintf(problem, bytes, "%s: stands before [%s]", line, section), -1;
    if (equals == NULL)
        return snprintf(problem, bytes, "%s: key = value is expected", line), -1;
    *equals = '\0';
    char *comment = strstr(equals + 1, " ;");
    if (comment != NULL)
        *comment = '\0';
    return take(data, trimmed(line), trimmed(equals + 1), problem, bytes);
}

int ini_read(const char *path, const char *section, ini_take *take, void *data, char *problem, size_t bytes)
{
    char *text = read_everywhere(path, problem, bytes);
    char why[MESSAGE_BYTES / 2] = "";
    bool inside = false;
    int result = text == NULL ? -1 : 0;
    char *line = text;
    for (int number = 1; result == 0 && line != NULL; number++) {
        char *next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        line = trimmed(line);
        if (*line != '\0' && *line != '#' && *line != ';' &&
            take_line(line, section, &inside, take, data, why, sizeof why) != 0)
            result = -1, snprintf(problem, bytes, "%s, line %d: %s", path, number, why);
        line = next;
    }
    free(text);
    return result;
}
