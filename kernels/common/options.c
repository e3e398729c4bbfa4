#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(char *problem, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int refuse(char *problem, size_t bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, bytes, format, arguments);
    va_end(arguments);
    return -1;
}

static const struct option *find(const struct option *const *tables, const char *name, size_t length)
{
    for (; *tables != NULL; tables++)
        for (const struct option *o = *tables; o->name != NULL; o++)
            if (strlen(o->name) == length && strncmp(o->name, name, length) == 0)
                return o;
    return NULL;
}

const char *option_choice(const char *choices, int position, char *buffer, size_t buffer_bytes)
{
    const char *word = choices;
    for (; position > 0 && (word = strchr(word, '|')) != NULL; position--)
        word++;
    snprintf(buffer, buffer_bytes, "%.*s", word == NULL ? 0 : (int)strcspn(word, "|"), word == NULL ? "" : word);
    return buffer;
}

static int set_number(const struct option *o, const char *text, void *where, char *problem, size_t bytes)
{
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    if (end != text && o->type != OPTION_REAL) {
        const char *units = "KMGTkmgt";
        const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
        if (unit != NULL) {
            value *= pow(1024.0, (double)((unit - units) % 4 + 1));
            end++;
        }
    }
    if (end == text || *end != '\0' || errno != 0 || !isfinite(value))
        return refuse(problem, bytes, "--%s %s: not a number%s", o->name, text,
                      o->type == OPTION_REAL ? "" : " (a whole number, with K, M, G or T for powers of 1024)");
    if (o->type != OPTION_REAL && value != floor(value))
        return refuse(problem, bytes, "--%s %s: not a whole number", o->name, text);
    if (value < o->low || value > o->high)
        return refuse(problem, bytes, "--%s %s: out of range; allowed: %.17g to %.17g", o->name, text, o->low, o->high);
    if (o->type == OPTION_REAL)
        *(double *)where = value;
    else
        *(uint64_t *)where = (uint64_t)value;
    return 0;
}

static int set_dims(const struct option *o, const char *text, struct dims *dims, char *problem, size_t bytes)
{
    const struct option one = {.name = o->name, .type = OPTION_COUNT, .low = o->low, .high = o->high};
    char number[32];
    struct dims read = {0};
    if (strcmp(text, "0") == 0) {
        *dims = read;
        return 0;
    }
    for (const char *word = text;; word++) {
        const size_t length = strcspn(word, "x");
        if (read.count == OPTION_DIMENSIONS || length == 0 || length >= sizeof number)
            return refuse(problem, bytes, "--%s %s: up to %d numbers with an x between them are expected, such as 4x4",
                          o->name, text, OPTION_DIMENSIONS);
        snprintf(number, sizeof number, "%.*s", (int)length, word);
        if (set_number(&one, number, &read.n[read.count++], problem, bytes) != 0)
            return -1;
        word += length;
        if (*word == '\0')
            break;
    }
    *dims = read;
    return 0;
}

int text_list_add(struct text_list *list, const char *text)
{
    char *copy = strdup(text);
    char **items = copy != NULL ? realloc(list->items, ((size_t)list->count + 1) * sizeof *items) : NULL;
    if (items == NULL) {
        free(copy);
        return -1;
    }
    list->items = items;
    list->items[list->count++] = copy;
    return 0;
}

void text_list_free(struct text_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct text_list){0};
}

static int set(const struct option *o, const char *text, void *settings, char *problem, size_t bytes)
{
    void *where = (char *)settings + o->offset;
    char word[64];
    switch (o->type) {
    case OPTION_BYTES:
    case OPTION_COUNT:
    case OPTION_REAL:
        return set_number(o, text, where, problem, bytes);
    case OPTION_YESNO:
        if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
            return refuse(problem, bytes, "--%s %s: allowed: yes|no", o->name, text);
        *(bool *)where = strcmp(text, "yes") == 0;
        return 0;
    case OPTION_CHOICE:
        for (int i = 0; *option_choice(o->choices, i, word, sizeof word) != '\0'; i++)
            if (strcmp(word, text) == 0) {
                *(int *)where = i;
                return 0;
            }
        return refuse(problem, bytes, "--%s %s: allowed: %s", o->name, text, o->choices);
    case OPTION_TEXT:
        *(const char **)where = text;
        return 0;
    case OPTION_DIMS:
        return set_dims(o, text, where, problem, bytes);
    case OPTION_LIST:
        return text_list_add(where, text) == 0 ? 0 : refuse(problem, bytes, "--%s %s: out of memory", o->name, text);
    }
    return -1;
}

int options_parse(int argc, char **argv, const struct option *const *tables, void *settings, const char **asked,
                  char *problem, size_t problem_bytes)
{
    *asked = NULL;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--help") == 0 || strcmp(word, "--version") == 0) {
            *asked = word + 2;
            return 1;
        }
        if (strncmp(word, "--", 2) != 0)
            return refuse(problem, problem_bytes, "%s: not an option; see --help", word);
        const size_t length = strcspn(word + 2, "=");
        const struct option *o = find(tables, word + 2, length);
        if (o == NULL)
            return refuse(problem, problem_bytes, "--%.*s: unknown option; see --help", (int)length, word + 2);
        const char *value = word[2 + length] == '=' ? word + 3 + length : i + 1 < argc ? argv[++i] : NULL;
        if (value == NULL)
            return refuse(problem, problem_bytes, "--%s: a value is missing", o->name);
        if (set(o, value, settings, problem, problem_bytes) != 0)
            return -1;
    }
    return 0;
}

/* One "name=value"; COPY is its own memory, kept where the settings point into it. */
static int override_one(const char *from, const char *text, char *copy, const struct option *const *tables,
                        void *settings, char *problem, size_t problem_bytes)
{
    char *equals = copy != NULL ? strchr(copy, '=') : NULL;
    const struct option *o = equals != NULL ? find(tables, copy, (size_t)(equals - copy)) : NULL;
    int result = 0;
    if (equals == NULL)
        result = refuse(problem, problem_bytes, "--%s %s: NAME=VALUE[,NAME=VALUE...] is expected", from, text);
    else if (o == NULL)
        result = refuse(problem, problem_bytes, "--%s %s: unknown option %.*s", from, text, (int)(equals - copy), copy);
    else
        result = set(o, equals + 1, settings, problem, problem_bytes);
    if (o == NULL || o->type != OPTION_TEXT)
        free(copy);
    return result;
}

int options_override(const char *from, const char *text, const struct option *const *tables, void *settings,
                     char *problem, size_t problem_bytes)
{
    if (*text == '\0')
        return refuse(problem, problem_bytes, "--%s: empty; NAME=VALUE[,NAME=VALUE...] is expected", from);
    for (const char *entry = text; *entry != '\0';) {
        const size_t length = strcspn(entry, ",");
        if (override_one(from, text, strndup(entry, length), tables, settings, problem, problem_bytes) != 0)
            return -1;
        entry += length + (entry[length] == ',');
    }
    return 0;
}

/* The value as it would be given; nothing for texts that are not set and for lists. */
static const char *value_text(const struct option *o, const void *settings, char *buffer, size_t bytes)
{
    const void *where = (const char *)settings + o->offset;
    size_t used = 0;
    buffer[0] = '\0';
    switch (o->type) {
    case OPTION_BYTES:
    case OPTION_COUNT:
        snprintf(buffer, bytes, "%llu", (unsigned long long)*(const uint64_t *)where);
        break;
    case OPTION_REAL:
        snprintf(buffer, bytes, "%g", *(const double *)where);
        break;
    case OPTION_YESNO:
        snprintf(buffer, bytes, "%s", *(const bool *)where ? "yes" : "no");
        break;
    case OPTION_CHOICE:
        option_choice(o->choices, *(const int *)where, buffer, bytes);
        break;
    case OPTION_TEXT:
        if (*(const char *const *)where != NULL)
            snprintf(buffer, bytes, "%s", *(const char *const *)where);
        break;
    case OPTION_DIMS: {
        const struct dims *dims = where;
        snprintf(buffer, bytes, "0");
        for (int i = 0; i < dims->count && used < bytes; i++)
            used += (size_t)snprintf(buffer + used, bytes - used, "%s%llu", i == 0 ? "" : "x",
                                     (unsigned long long)dims->n[i]);
        break;
    }
    case OPTION_LIST:
        break;
    }
    return buffer;
}

static bool is_among(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

size_t options_text(const struct option *const *tables, const void *settings, const char *const *skip, char *buffer,
                    size_t buffer_bytes)
{
    char value[4096];
    size_t used = 0;
    for (; *tables != NULL; tables++)
        for (const struct option *o = *tables; o->name != NULL; o++)
            if (!is_among(o->name, skip)) {
                const size_t left = used < buffer_bytes ? buffer_bytes - used : 0;
                used += (size_t)snprintf(left > 0 ? buffer + used : NULL, left, "%s=%s\n", o->name,
                                         value_text(o, settings, value, sizeof value));
            }
    return used;
}

void options_help(const struct option *const *tables, const void *settings)
{
    for (; *tables != NULL; tables++)
        for (const struct option *o = *tables; o->name != NULL; o++) {
            char left[96];
            char value[128];
            const char *kind[] = {"BYTES", "N", "X", "yes|no", o->choices, "TEXT", "NxN", "TEXT"};
            snprintf(left, sizeof left, "--%s %s", o->name, kind[o->type]);
            value_text(o, settings, value, sizeof value);
            printf("  %-44s %s", left, o->help);
            if (value[0] != '\0' && o->type != OPTION_TEXT)
                printf(" [%s]", value);
            putchar('\n');
        }
}
