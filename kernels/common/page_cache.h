/* How much of a file the operating system holds in memory, and asking it to let go. */
#ifndef IOGAUGE_PAGE_CACHE_H
#define IOGAUGE_PAGE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct cached_pages {
    uint64_t resident;
    uint64_t total;
    bool known; /* false: neither cachestat nor mincore could tell */
};

/* Pages of PATH's bytes [FIRST, FIRST + LENGTH) that are resident on this host: cachestat(2) of Linux 6.5, else
 * mincore(2). LENGTH beyond the end of the file is cut. */
struct cached_pages page_cache_look(const char *path, uint64_t first, uint64_t length);

/* Bring the file's dirty pages to storage. Returns 0, or -1 with errno. */
int page_cache_write_back(const char *path);

/* Ask the kernel to drop the file's clean pages on this host (posix_fadvise). Only a request: look again afterwards. */
int page_cache_drop(const char *path);

#endif
