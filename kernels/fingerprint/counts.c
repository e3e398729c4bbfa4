#define _GNU_SOURCE
#include "counts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More different accesses than this belong to a case that is too large to be told call by call: they are only numbered.
 */
enum { MOST_COUNTS = 1 << 21, FIRST_COUNTS = 1 << 10 };

struct count {
    const char *call; /* NULL: the place is free */
    off_t offset;
    off_t bytes;
    uint64_t times;
    int file;
    enum access access;
    bool failed;
};

struct file {
    char *path;
    off_t bytes; /* when it was closed; COUNTS_NONE: it was not */
};

/* A library that is preloaded has nobody to hand its state to. */
static struct {
    pthread_mutex_t mutex;
    const char *folder;
    const char *to;
    pid_t process;
    int rank;
    int ranks;
    bool finalized;
    uint64_t lost;
    struct file *files;
    int file_count;
    struct count *counts; /* hashed, open addressing */
    size_t used;
    size_t room;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = COUNTS_NONE};

/* A signal handler that unlinks may come while its own thread is in here. */
static _Thread_local bool inside;

__attribute__((constructor)) static void begin(void)
{
    all.folder = getenv("IOGAUGE_FINGERPRINT_CASE");
    all.to = getenv("IOGAUGE_FINGERPRINT_TO");
    all.process = getpid();
}

static bool enter(void)
{
    if (inside)
        return false;
    inside = true;
    pthread_mutex_lock(&all.mutex);
    return true;
}

static void leave(void)
{
    pthread_mutex_unlock(&all.mutex);
    inside = false;
}

/* --- files ---------------------------------------------------------------------------------------------------- */

/* PATH without doubled slashes and "." into BUFFER, absolute; false: it does not fit, or the folder has no name. */
static bool absolute(int folder, const char *path, char *buffer, size_t buffer_bytes)
{
    size_t length = 0;
    if (path[0] != '/') {
        char link[64];
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        const ssize_t found = readlink(link, buffer, buffer_bytes - 1);
        if (found <= 0)
            return false;
        length = (size_t)found;
    }
    while (*path != '\0') {
        const size_t part = strcspn(path, "/");
        if (part > 0 && !(part == 1 && path[0] == '.')) {
            if (length + part + 2 > buffer_bytes)
                return false;
            buffer[length++] = '/';
            memcpy(buffer + length, path, part);
            length += part;
        }
        path += part + (path[part] == '/');
    }
    buffer[length] = '\0';
    return true;
}

static int number_of(const char *path)
{
    for (int i = 0; i < all.file_count; i++)
        if (strcmp(all.files[i].path, path) == 0)
            return i;
    struct file *more = realloc(all.files, ((size_t)all.file_count + 1) * sizeof *more);
    char *copy = strdup(path);
    if (more != NULL)
        all.files = more;
    if (more == NULL || copy == NULL) {
        free(copy);
        all.lost++;
        return COUNTS_NONE;
    }
    all.files[all.file_count] = (struct file){.path = copy, .bytes = COUNTS_NONE};
    return all.file_count++;
}

int counts_file(int folder, const char *path)
{
    char buffer[PATH_MAX];
    const int error = errno;
    int number = COUNTS_NONE;
    if (all.folder == NULL || path == NULL)
        return COUNTS_NONE;
    const size_t length = strlen(all.folder);
    if (absolute(folder, path, buffer, sizeof buffer) && strncmp(buffer, all.folder, length) == 0 &&
        buffer[length] == '/' && enter()) {
        number = number_of(buffer + length + 1);
        leave();
    }
    errno = error;
    return number;
}

void counts_size(int file, off_t bytes)
{
    if (file == COUNTS_NONE || !enter())
        return;
    all.files[file].bytes = bytes;
    leave();
}

/* --- calls ---------------------------------------------------------------------------------------------------- */

static bool same(const struct count *a, const struct count *b)
{
    return a->file == b->file && a->access == b->access && a->offset == b->offset && a->bytes == b->bytes &&
           a->failed == b->failed && strcmp(a->call, b->call) == 0;
}

/* Where KEY is, or would be put: some place is free always. */
static struct count *place_of(struct count *counts, size_t room, const struct count *key)
{
    uint64_t hash = (uint64_t)key->offset * 0x9e3779b97f4a7c15U + (uint64_t)key->bytes;
    hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9U + (uint64_t)key->file * 64 + (uint64_t)key->access;
    for (const char *c = key->call; *c != '\0'; c++)
        hash = hash * 31 + (unsigned char)*c;
    size_t i = (size_t)(hash ^ (hash >> 32)) & (room - 1);
    while (counts[i].call != NULL && !same(&counts[i], key))
        i = (i + 1) & (room - 1);
    return &counts[i];
}

static bool make_room(void)
{
    if (all.used * 2 < all.room)
        return true;
    const size_t room = all.room == 0 ? FIRST_COUNTS : all.room * 2;
    struct count *counts = all.used < MOST_COUNTS ? calloc(room, sizeof *counts) : NULL;
    if (counts == NULL)
        return false;
    for (size_t i = 0; i < all.room; i++)
        if (all.counts[i].call != NULL)
            *place_of(counts, room, &all.counts[i]) = all.counts[i];
    free(all.counts);
    all.counts = counts;
    all.room = room;
    return true;
}

void counts_add(int file, enum access access, const char *call, off_t offset, off_t bytes, bool failed)
{
    const struct count key = {call, offset, bytes, 0, file, access, failed};
    const int error = errno;
    if (file == COUNTS_NONE)
        return;
    if (!enter())
        return;
    if (!make_room()) {
        all.lost++;
    } else {
        struct count *place = place_of(all.counts, all.room, &key);
        if (place->call == NULL) {
            *place = key;
            all.used++;
        }
        place->times++;
    }
    leave();
    errno = error;
}

/* --- the end -------------------------------------------------------------------------------------------------- */

void counts_rank(int rank, int ranks)
{
    all.rank = rank;
    all.ranks = ranks;
}

void counts_finalized(void)
{
    all.finalized = true;
}

static void put_text(FILE *file, const char *text)
{
    putc('"', file);
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
            fprintf(file, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            putc(*text, file);
    putc('"', file);
}

static void put(FILE *file, const char *host)
{
    static const char *const accesses[] = {"name", "read", "write"}; /* of enum access */
    fprintf(file, "{\"schema\": \"iogauge.calls/1\", \"rank\": %d, \"ranks\": %d, \"host\": ", all.rank, all.ranks);
    put_text(file, host);
    fprintf(file, ", \"finalized\": %s, \"lost\": %llu, \"files\": [", all.finalized ? "true" : "false",
            (unsigned long long)all.lost);
    for (int i = 0; i < all.file_count; i++) {
        fprintf(file, "%s{\"name\": ", i > 0 ? ", " : "");
        put_text(file, all.files[i].path);
        if (all.files[i].bytes == COUNTS_NONE)
            fputs(", \"bytes\": null}", file);
        else
            fprintf(file, ", \"bytes\": %lld}", (long long)all.files[i].bytes);
    }
    fputs("], \"calls\": [", file);
    const char *comma = "";
    for (size_t i = 0; i < all.room; i++) {
        const struct count *c = &all.counts[i];
        if (c->call == NULL)
            continue;
        fprintf(file, "%s\n[%d, \"%s\", \"%s\", %s, %lld, %lld, %llu]", comma, c->file, accesses[c->access], c->call,
                c->failed ? "true" : "false", (long long)c->offset, (long long)c->bytes, (unsigned long long)c->times);
        comma = ",";
    }
    fputs("]}\n", file);
}

/* What a process did that is no rank and touched no file of the case (the launcher, its daemons) is nobody's business.
 */
__attribute__((destructor)) static void end(void)
{
    char host[256] = "";
    char path[PATH_MAX];
    char part[PATH_MAX + 8];
    if (all.to == NULL || all.process != getpid() || (all.rank == COUNTS_NONE && all.file_count == 0))
        return;
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/rank%d-%s-%ld.json", all.to, all.rank, host, (long)getpid());
    snprintf(part, sizeof part, "%s.part", path);
    pthread_mutex_lock(&all.mutex);
    FILE *file = fopen(part, "w");
    if (file != NULL) {
        put(file, host);
        const bool written = !ferror(file);
        if (fclose(file) != 0 || !written || rename(part, path) != 0)
            fprintf(stderr, "iogauge: fingerprint: %s: %s\n", path, strerror(errno));
    } else {
        fprintf(stderr, "iogauge: fingerprint: %s: %s\n", part, strerror(errno));
    }
    pthread_mutex_unlock(&all.mutex);
    for (int i = 0; i < all.file_count; i++)
        free(all.files[i].path);
    free(all.files);
    free(all.counts);
    all.file_count = 0;
    all.files = NULL;
    all.counts = NULL;
    all.used = all.room = 0;
    all.folder = NULL;
}
