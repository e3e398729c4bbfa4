/* Writing one JSON object a line: enough for the records, nothing more. */
#ifndef IOGAUGE_JSON_H
#define IOGAUGE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *file;
    bool comma; /* the next value needs one before it */
};

/* KEY NULL: an element of an array. */
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_text(struct json *json, const char *key, const char *value); /* value NULL: null */
void json_whole(struct json *json, const char *key, uint64_t value);
void json_real(struct json *json, const char *key, double value); /* NaN: null */
void json_truth(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

#endif
