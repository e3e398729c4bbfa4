/* A case: the settings asked for, or a baseline's, checked, with the layout and the ranks that follow from them. */
#ifndef IOGAUGE_CASES_H
#define IOGAUGE_CASES_H

#include "pattern.h"
#include "record.h"

enum { OPERATION_BOTH, OPERATION_WRITE, OPERATION_READ };

struct a_case {
    void *settings;
    const struct common_settings *common;
    const char *differs; /* the --baseline text, NULL for the main case */
    struct world world;  /* the ranks that take part */
    int *reading_from;   /* [ranks] whose data each rank reads */
    int shift;
    struct layout layout;
    struct store_settings store;
    uint64_t file_bytes;
    struct repeat_result *results; /* [operations][repeats] */
};

/* The options that every kernel has. */
extern const struct option common_options[];

/* The words that a common option with a choice takes. */
const char *common_choices(const char *name);

void common_defaults(struct common_settings *common);

/* Work out a case of PATTERN from SETTINGS with the changes of FROM_SWEEP and DIFFERS (each "name=value,..." or NULL).
 * Returns 0, or -1 with PROBLEM filled. Collective. */
int case_make(struct a_case *c, const struct pattern *pattern, const struct world *world, const void *settings,
              const char *from_sweep, const char *differs, char *problem, size_t problem_bytes);

void case_free(struct a_case *c);

#endif
