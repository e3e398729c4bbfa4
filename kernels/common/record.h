/* The results: one JSON object an operation (measurement.schema.json) and a table for people. Rank 0 only. */
#ifndef IOGAUGE_RECORD_H
#define IOGAUGE_RECORD_H

#include "pattern.h"

struct repeat_result {
    struct phase_times times;
    uint64_t verified;         /* bytes, or operations */
    double cached_before_drop; /* NaN: not known, or a write */
    double cached;
};

struct record {
    const struct pattern *pattern;
    const struct world *world;
    const void *settings;
    const struct common_settings *common;
    const char *differs;    /* the --baseline text, NULL for the main case */
    const char *sweep_run;  /* see sweep.h */
    const char *sweep_case; /* NULL: no sweep */
    const char *operation;
    bool of_read;
    uint64_t logical_bytes; /* 0 where operations are counted */
    uint64_t operations;    /* 0 where bytes are moved */
    uint64_t file_bytes;
    int shift;
    double other_rank_fraction;
    double other_host_fraction;
    const char *started;
    const struct repeat_result *repeats;
};

void record_json(const struct record *record, FILE *file);
/* What every record begins with, the key "sweep" included: it tells whose record it is. */
void record_opening(struct json *json, const char *sweep_run, const char *sweep_case);

void record_table_head(const char *name, const struct world *world, uint64_t repeats, FILE *file);
void record_table_row(const struct record *record, FILE *file);

#endif
