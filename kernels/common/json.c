#include "json.h"

#include <math.h>

static void text(FILE *file, const char *value)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(file, "\\u%04x", *c);
        else
            fputc(*c, file);
    }
    fputc('"', file);
}

static void begin(struct json *json, const char *key)
{
    if (json->comma)
        fputs(", ", json->file);
    json->comma = true;
    if (key != NULL) {
        text(json->file, key);
        fputs(": ", json->file);
    }
}

void json_open(struct json *json, const char *key, char bracket)
{
    begin(json, key);
    fputc(bracket, json->file);
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    fputc(bracket, json->file);
    json->comma = true;
}

void json_text(struct json *json, const char *key, const char *value)
{
    begin(json, key);
    if (value == NULL)
        fputs("null", json->file);
    else
        text(json->file, value);
}

void json_whole(struct json *json, const char *key, uint64_t value)
{
    begin(json, key);
    fprintf(json->file, "%llu", (unsigned long long)value);
}

void json_real(struct json *json, const char *key, double value)
{
    begin(json, key);
    if (isfinite(value))
        fprintf(json->file, "%.9g", value);
    else
        fputs("null", json->file);
}

void json_truth(struct json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->file);
}

void json_null(struct json *json, const char *key)
{
    begin(json, key);
    fputs("null", json->file);
}
