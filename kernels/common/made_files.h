/* The files that this run made and must not leave behind, whatever ends it: an error, SIGTERM, SIGINT or SIGHUP. */
#ifndef IOGAUGE_MADE_FILES_H
#define IOGAUGE_MADE_FILES_H

/* From now on a signal that ends the process removes the files first. */
void made_files_watch_signals(void);

/* PATH was made by this run (by any of its ranks); it is removed when the run stops early. Errors: none, the list
 * grows. */
void made_files_add(const char *path);

/* PATH was removed or is to be kept. */
void made_files_forget(const char *path);

/* Remove all of them; a file that another rank has removed already is no error. Safe in a signal handler. */
void made_files_remove(void);

#endif
