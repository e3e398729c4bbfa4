#include "sweep.h"

#include "record.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CASES = 100000, NAME_BYTES = 1024 };

/* Number of values of "name=a|b|c"; 0: not of that form. */
static uint64_t count_values(const char *sweep)
{
    const char *value = strchr(sweep, '=');
    uint64_t count = 0;
    if (value == NULL || value == sweep || strchr(sweep, ',') != NULL)
        return 0;
    do {
        const size_t length = strcspn(++value, "|");
        if (length == 0)
            return 0;
        value += length;
        count++;
    } while (*value == '|');
    return count;
}

static bool same_name(const char *a, const char *b)
{
    const size_t length = strcspn(a, "=");
    return length == strcspn(b, "=") && strncmp(a, b, length) == 0;
}

/* Name of combination NUMBER: the last sweep changes fastest. */
static void name_case(const struct text_list *sweeps, uint64_t number, char *name, size_t bytes)
{
    size_t used = 0;
    uint64_t faster = 1;
    for (int i = 0; i < sweeps->count; i++)
        faster *= count_values(sweeps->items[i]);
    for (int i = 0; i < sweeps->count && used < bytes; i++) {
        const char *sweep = sweeps->items[i];
        const uint64_t values = count_values(sweep);
        const size_t length = strcspn(sweep, "=");
        char value[NAME_BYTES];
        faster /= values;
        option_choice(sweep + length + 1, (int)(number / faster % values), value, sizeof value);
        used += (size_t)snprintf(name + used, bytes - used, "%s%.*s=%s", i == 0 ? "" : ",", (int)length, sweep, value);
    }
}

int sweep_expand(const struct text_list *sweeps, const char *cases, struct sweep *sweep, char *problem, size_t bytes)
{
    uint64_t combinations = 1;
    char name[NAME_BYTES] = "";
    const uint64_t number = cases != NULL && cases[strspn(cases, "0123456789")] == '\0' ? strtoull(cases, NULL, 10) : 0;
    *sweep = (struct sweep){0};
    for (int i = 0; i < sweeps->count; i++) {
        const uint64_t values = count_values(sweeps->items[i]);
        if (values == 0)
            return snprintf(problem, bytes, "--sweep %s: NAME=VALUE|VALUE[|...] is expected", sweeps->items[i]), -1;
        for (int j = 0; j < i; j++)
            if (same_name(sweeps->items[i], sweeps->items[j]))
                return snprintf(problem, bytes, "--sweep %s: %s sweeps the same option", sweeps->items[i],
                                sweeps->items[j]),
                       -1;
        combinations *= values;
        if (combinations > MOST_CASES)
            return snprintf(problem, bytes, "--sweep: more than %d cases", MOST_CASES), -1;
    }
    if (sweeps->count == 0 && cases != NULL)
        return snprintf(problem, bytes, "--cases %s: there is no --sweep to choose from", cases), -1;
    sweep->names = calloc(combinations, sizeof *sweep->names);
    sweep->done = calloc(combinations, sizeof *sweep->done);
    sweep->records = calloc(combinations, sizeof *sweep->records);
    if (sweep->names == NULL || sweep->done == NULL || sweep->records == NULL)
        return snprintf(problem, bytes, "out of memory for %llu cases", (unsigned long long)combinations), -1;
    for (uint64_t i = 0; i < combinations && sweeps->count > 0; i++) {
        name_case(sweeps, i, name, sizeof name);
        if (cases == NULL || (number > 0 ? i + 1 == number : fnmatch(cases, name, 0) == 0))
            sweep->names[sweep->count++] = strdup(name);
    }
    if (sweeps->count == 0)
        sweep->count = 1;
    if (sweep->count == 0)
        return snprintf(problem, bytes, "--cases %s: fits none of the %llu cases; the last is %s", cases,
                        (unsigned long long)combinations, name),
               -1;
    return 0;
}

/* FNV-1a: Fowler, Noll, Vo; IETF draft-eastlake-fnv. */
void sweep_identify(struct sweep *sweep, const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    snprintf(sweep->run, sizeof sweep->run, "%016llx", (unsigned long long)hash);
}

/* What each record of a case begins with; to be freed. */
static char *opening_of(const struct sweep *sweep, int number)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (memory == NULL)
        return NULL;
    struct json json = {.file = memory};
    record_opening(&json, sweep->run, sweep->names[number]);
    fclose(memory);
    return text;
}

struct earlier {
    char **openings; /* [cases] */
    int *records;    /* [cases] complete lines found */
    char *text;      /* the whole file */
};

static void free_earlier(const struct sweep *sweep, struct earlier *earlier)
{
    for (int i = 0; i < sweep->count && earlier->openings != NULL; i++)
        free(earlier->openings[i]);
    free(earlier->openings);
    free(earlier->records);
    free(earlier->text);
}

static char *text_of(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    if (file == NULL)
        return NULL;
    if (getdelim(&text, &size, '\0', file) < 0 && !ferror(file) && text != NULL)
        text[0] = '\0';
    fclose(file);
    return text;
}

/* The case that a line belongs to; -1: none. */
static int case_of(const struct sweep *sweep, const struct earlier *earlier, const char *line)
{
    for (int i = 0; i < sweep->count; i++)
        if (strncmp(line, earlier->openings[i], strlen(earlier->openings[i])) == 0)
            return i;
    return -1;
}

static int write_finished(const struct sweep *sweep, const struct earlier *earlier, const char *path)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.new", path);
    FILE *file = fopen(name, "w");
    if (file == NULL)
        return -1;
    for (const char *line = earlier->text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        if (sweep->done[case_of(sweep, earlier, line)])
            fwrite(line, 1, (size_t)(end + 1 - line), file);
    const bool failed = ferror(file) != 0;
    return fclose(file) != 0 || failed || rename(name, path) != 0 ? -1 : 0;
}

int sweep_resume(struct sweep *sweep, const char *path, char *problem, size_t bytes)
{
    struct earlier earlier = {.openings = calloc((size_t)sweep->count, sizeof *earlier.openings),
                              .records = calloc((size_t)sweep->count, sizeof *earlier.records),
                              .text = text_of(path)};
    int result = 0;
    int number = 1;
    if (earlier.text == NULL || earlier.openings == NULL || earlier.records == NULL) {
        snprintf(problem, bytes, "--resume yes: %s: %s", path, strerror(errno));
        free_earlier(sweep, &earlier);
        return -1;
    }
    for (int i = 0; i < sweep->count; i++)
        earlier.openings[i] = opening_of(sweep, i);
    for (const char *line = earlier.text, *end; result == 0 && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const int found = case_of(sweep, &earlier, line);
        if (found < 0)
            result = -1, snprintf(problem, bytes,
                                  "--resume yes: %s, line %d: not a record of this sweep: other options, other cases, "
                                  "other ranks or other kernels",
                                  path, number);
        else
            sweep->done[found] = ++earlier.records[found] == sweep->records[found];
        number++;
    }
    if (result == 0 && write_finished(sweep, &earlier, path) != 0)
        result = -1, snprintf(problem, bytes, "--resume yes: %s: %s", path, strerror(errno));
    free_earlier(sweep, &earlier);
    return result;
}

void sweep_free(struct sweep *sweep)
{
    for (int i = 0; i < sweep->count; i++)
        free(sweep->names[i]);
    free(sweep->names);
    free(sweep->done);
    free(sweep->records);
}
