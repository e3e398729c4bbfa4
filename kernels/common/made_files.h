/* The files that this run made and must not leave behind, whatever ends it: an error, SIGTERM, SIGINT or SIGHUP. */
#ifndef IOGAUGE_MADE_FILES_H
#define IOGAUGE_MADE_FILES_H

/* From now on a signal that ends the process removes the files first. */
void made_files_watch_signals(void);

/* PATH was or is about to be made by this run (by any of its ranks); it is removed when the run stops early. Once is
 * enough. Errors: none, the list grows. */
void made_files_add(const char *path);

/* PATH was removed or is to be kept. */
void made_files_forget(const char *path);

/* Besides these files, REMOVE(DATA) removes what else this run has made; it must be safe in a signal handler, and to
 * call twice. There is one at a time, NULL for none. Returns the DATA of the one before. */
void *made_files_also(void (*remove)(void *data), void *data);

/* Remove all of them; a file that another rank has removed already is no error. Safe in a signal handler. */
void made_files_remove(void);

#endif
