/* A kernel's options: one table says name, type, range and meaning; the parser, --help and --baseline all read it. */
#ifndef IOGAUGE_OPTIONS_H
#define IOGAUGE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_BYTES,  /* uint64_t, accepts K, M, G, T: powers of 1024 */
    OPTION_COUNT,  /* uint64_t, likewise (counts of particles are often powers of two) */
    OPTION_REAL,   /* double */
    OPTION_YESNO,  /* bool */
    OPTION_CHOICE, /* int: the position in `choices` */
    OPTION_TEXT,   /* const char * */
    OPTION_DIMS,   /* struct dims: 4x4x2; 0 for none */
    OPTION_LIST    /* struct text_list: may be given several times */
};

enum { OPTION_DIMENSIONS = 4 };

struct dims {
    uint64_t n[OPTION_DIMENSIONS];
    int count; /* 0: none given */
};

struct text_list {
    char **items;
    int count;
};

/* Add a copy of TEXT. Returns 0, or -1 without memory. */
int text_list_add(struct text_list *list, const char *text);
void text_list_free(struct text_list *list);

struct option {
    const char *name;
    enum option_type type;
    size_t offset; /* of the value in the settings struct */
    double low;    /* smallest and largest value of a number */
    double high;
    const char *choices; /* "hdf5|mpiio|posix" */
    const char *help;
};

/* Largest number an option takes: doubles hold it exactly, and products of it are checked apart. */
#define OPTION_MAX 9007199254740992.0 /* 2^53 */

/* Set SETTINGS from ARGV. TABLES: arrays that end with a NULL name; the list of arrays ends with NULL.
 * Returns 0, or 1 after --help or --version was asked for (see ASKED). A bad argument: PROBLEM is filled with what is
 * wrong and what is allowed, and -1 is returned. */
int options_parse(int argc, char **argv, const struct option *const *tables, void *settings, const char **asked,
                  char *problem, size_t problem_bytes);

/* Apply "name=value,name=value", given with option FROM, to SETTINGS. Returns 0, or -1 with PROBLEM filled. */
int options_override(const char *from, const char *text, const struct option *const *tables, void *settings,
                     char *problem, size_t problem_bytes);

/* Print the table for people, with the defaults found in SETTINGS. */
void options_help(const struct option *const *tables, const void *settings);

/* The word at POSITION of "a|b|c", in BUFFER. */
const char *option_choice(const char *choices, int position, char *buffer, size_t buffer_bytes);

/* Every option with its value, "name=value" a line, into BUFFER; the options named in SKIP (ends with NULL) left out.
 * Returns the bytes needed, as snprintf does. */
size_t options_text(const struct option *const *tables, const void *settings, const char *const *skip, char *buffer,
                    size_t buffer_bytes);

#endif
