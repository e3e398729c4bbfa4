#include "made_files.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A signal handler sees only static storage: an array of slots, each NULL or a path, that only ever grows. A slot is
 * set or cleared by one pointer store, so that the handler finds the list whole at any moment. */
static char *volatile *slots;
static volatile size_t slot_count;

static void (*volatile remove_others)(void *data);
static void *volatile others;

/* Launchers kill all ranks at once when one of them has died: the others get time to remove what is theirs. Another
 * thread than this one may have been about to make a file: that one is removed the second time. */
static void remove_and_die(int signal_number)
{
    const struct timespec pause = {.tv_nsec = 200000000};
    made_files_remove();
    nanosleep(&pause, NULL);
    made_files_remove();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void made_files_watch_signals(void)
{
    const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action = {.sa_handler = remove_and_die, .sa_flags = (int)SA_RESETHAND};
        sigemptyset(&action.sa_mask);
        sigaction(signals[i], &action, NULL);
    }
}

static bool known(const char *path)
{
    for (size_t i = 0; i < slot_count; i++)
        if (slots[i] != NULL && strcmp(slots[i], path) == 0)
            return true;
    return false;
}

void made_files_add(const char *path)
{
    if (known(path))
        return;
    char *copy = strdup(path);
    if (copy == NULL) {
        unlink(path);
        fprintf(stderr, "out of memory\n");
        abort();
    }
    for (size_t i = 0; i < slot_count; i++)
        if (slots[i] == NULL) {
            slots[i] = copy;
            return;
        }
    char *volatile *larger = calloc(slot_count * 2 + 16, sizeof *larger);
    if (larger == NULL) {
        unlink(path);
        abort();
    }
    for (size_t i = 0; i < slot_count; i++)
        larger[i] = slots[i];
    larger[slot_count] = copy;
    char *volatile *old = slots;
    slots = larger;
    slot_count = slot_count + 1;
    free((void *)old);
}

void made_files_forget(const char *path)
{
    for (size_t i = 0; i < slot_count; i++) {
        char *entry = slots[i];
        if (entry != NULL && strcmp(entry, path) == 0) {
            slots[i] = NULL;
            free(entry);
        }
    }
}

void *made_files_also(void (*remove)(void *data), void *data)
{
    void *before = others;
    remove_others = NULL; /* never with data that are not its own */
    others = data;
    remove_others = remove;
    return before;
}

void made_files_remove(void)
{
    if (remove_others != NULL)
        remove_others(others);
    for (size_t i = 0; i < slot_count; i++)
        if (slots[i] != NULL)
            unlink(slots[i]);
}
