/* The metadata kernel's directories and files. */
#include "common/made_files.h"
#include "metadata_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* --- steps ---------------------------------------------------------------------------------------------------- */

static void make_directory(struct work *work, struct item *item)
{
    if (mkdir(item->path, 0777) != 0)
        work_failed(work, "mkdir", item->path);
}

static void remove_directory(struct work *work, struct item *item)
{
    if (rmdir(item->path) != 0)
        work_failed(work, "rmdir", item->path);
}

static void make_file(struct work *work, struct item *item)
{
    item->fd = open(item->path, O_CREAT | O_EXCL | O_WRONLY, 0666);
    if (item->fd < 0)
        work_failed(work, "open", item->path);
}

static void write_file(struct work *work, struct item *item)
{
    const uint64_t bytes = work->bytes;
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t now = write(item->fd, item->data + done, bytes - done);
        if (now <= 0) {
            work_failed(work, "write", item->path);
            return;
        }
        done += (uint64_t)now;
    }
}

/* An empty file has nothing of its own to bring to storage: its directory has. */
static void sync_file(struct work *work, struct item *item)
{
    if (work->settings->common.fsync && work->bytes > 0 && fsync(item->fd) != 0)
        work_failed(work, "fsync", item->path);
}

static void open_file(struct work *work, struct item *item)
{
    item->fd = open(item->path, O_RDONLY);
    if (item->fd < 0)
        work_failed(work, "open", item->path);
}

static void close_file(struct work *work, struct item *item)
{
    if (close(item->fd) != 0)
        work_failed(work, "close", item->path);
}

static void check_closed(struct work *work, struct item *item)
{
    if (fcntl(item->fd, F_GETFD) != -1)
        work_wrong(work, item->path, "expected a closed descriptor, found an open one");
}

static void read_file(struct work *work, struct item *item)
{
    const uint64_t bytes = work->bytes;
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t now = read(item->fd, item->data + done, bytes - done);
        if (now < 0) {
            work_failed(work, "read", item->path);
            return;
        }
        if (now == 0)
            return; /* the check will say what is missing */
        done += (uint64_t)now;
    }
}

static void remove_file(struct work *work, struct item *item)
{
    if (unlink(item->path) != 0)
        work_failed(work, "unlink", item->path);
}

static void rename_object(struct work *work, struct item *item)
{
    if (rename(item->path, item->second) != 0)
        work_failed(work, "rename", item->path);
}

static void spoil_status(struct work *work, struct item *item)
{
    (void)work;
    memset(&item->status, 0, sizeof item->status);
}

static void stat_object(struct work *work, struct item *item)
{
    if (stat(item->path, &item->status) != 0)
        work_failed(work, "stat", item->path);
}

static void stat_open_file(struct work *work, struct item *item)
{
    if (fstat(item->fd, &item->status) != 0)
        work_failed(work, "fstat", item->path);
}

static const char *type_name(mode_t mode)
{
    return S_ISDIR(mode) ? "a directory" : S_ISREG(mode) ? "a file" : "neither a file nor a directory";
}

static void check_directory(struct work *work, struct item *item)
{
    if (!S_ISDIR(item->status.st_mode))
        work_wrong(work, item->path, "expected a directory, found %s", type_name(item->status.st_mode));
}

static void check_file(struct work *work, struct item *item)
{
    const mode_t mode = item->status.st_mode;
    if (!S_ISREG(mode) || (uint64_t)item->status.st_size != work->bytes)
        work_wrong(work, item->path, "expected a file of %llu bytes, found %s of %llu bytes",
                   (unsigned long long)work->bytes, type_name(mode), (unsigned long long)item->status.st_size);
}

static void open_directory(struct work *work, struct item *item)
{
    item->listing = opendir(item->path);
    if (item->listing == NULL)
        work_failed(work, "opendir", item->path);
}

static void list_directory(struct work *work, struct item *item)
{
    const struct dirent *entry = NULL;
    if (item->listing == NULL)
        return;
    errno = 0;
    while ((entry = readdir(item->listing)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            names_add(&work->names, entry->d_name);
    if (errno != 0)
        work_failed(work, "readdir", item->path);
}

static void close_directory(struct work *work, struct item *item)
{
    if (item->listing != NULL && closedir(item->listing) != 0)
        work_failed(work, "closedir", item->path);
}

static const struct step create_directories[] = {{PHASE_TRANSFER, make_directory}, {0}};
static const struct step stat_directories[] = {
    {PHASE_PREPARE, spoil_status}, {PHASE_TRANSFER, stat_object}, {PHASE_PREPARE, check_directory}, {0}};
static const struct step rename_objects[] = {{PHASE_TRANSFER, rename_object}, {0}};
static const struct step remove_directories[] = {{PHASE_TRANSFER, remove_directory}, {0}};
static const struct step create_files[] = {{PHASE_PREPARE, work_make_data}, {PHASE_TRANSFER, make_file},
                                           {PHASE_TRANSFER, write_file},    {PHASE_FLUSH, sync_file},
                                           {PHASE_CLOSE, close_file},       {0}};
static const struct step stat_files[] = {
    {PHASE_PREPARE, spoil_status}, {PHASE_TRANSFER, stat_object}, {PHASE_PREPARE, check_file}, {0}};
static const struct step open_files[] = {{PHASE_TRANSFER, open_file},
                                         {PHASE_PREPARE, stat_open_file},
                                         {PHASE_PREPARE, check_file},
                                         {PHASE_PREPARE, close_file},
                                         {0}};
static const struct step close_files[] = {
    {PHASE_PREPARE, open_file}, {PHASE_TRANSFER, close_file}, {PHASE_PREPARE, check_closed}, {0}};
static const struct step read_files[] = {{PHASE_PREPARE, work_spoil_data}, {PHASE_OPEN, open_file},
                                         {PHASE_TRANSFER, read_file},      {PHASE_CLOSE, close_file},
                                         {PHASE_PREPARE, work_check_data}, {0}};
static const struct step remove_files[] = {{PHASE_TRANSFER, remove_file}, {0}};
static const struct step list_directories[] = {{PHASE_OPEN, open_directory},
                                               {PHASE_TRANSFER, list_directory},
                                               {PHASE_CLOSE, close_directory},
                                               {PHASE_PREPARE, work_check_names},
                                               {0}};

const struct action metadata_posix_actions[GROUP_CREATE] = {
    [DIR_CREATE] = {FAMILY_DIRECTORIES, WALK_OBJECTS, create_directories, .first = true, .changes = true,
                    .checked = true, .left = LEFT_MADE},
    [DIR_STAT] = {FAMILY_DIRECTORIES, WALK_OBJECTS, stat_directories},
    [DIR_LIST] = {FAMILY_DIRECTORIES, WALK_DIRECTORIES, list_directories, .left = LEFT_MADE},
    [DIR_RENAME] = {FAMILY_DIRECTORIES, WALK_OBJECTS, rename_objects, .changes = true, .checked = true,
                    .left = LEFT_RENAMED},
    [DIR_REMOVE] = {FAMILY_DIRECTORIES, WALK_OBJECTS, remove_directories, .last = true, .changes = true,
                    .renamed = true, .checked = true, .left = LEFT_NONE},
    [FILE_CREATE] = {FAMILY_FILES, WALK_OBJECTS, create_files, .first = true, .changes = true, .checked = true,
                     .left = LEFT_MADE},
    [FILE_STAT] = {FAMILY_FILES, WALK_OBJECTS, stat_files},
    [FILE_OPEN] = {FAMILY_FILES, WALK_OBJECTS, open_files},
    [FILE_CLOSE] = {FAMILY_FILES, WALK_OBJECTS, close_files},
    [FILE_READ] = {FAMILY_FILES, WALK_OBJECTS, read_files},
    [FILE_LIST] = {FAMILY_FILES, WALK_DIRECTORIES, list_directories, .left = LEFT_MADE},
    [FILE_RENAME] = {FAMILY_FILES, WALK_OBJECTS, rename_objects, .changes = true, .checked = true,
                     .left = LEFT_RENAMED},
    [FILE_REMOVE] = {FAMILY_FILES, WALK_OBJECTS, remove_files, .last = true, .changes = true, .renamed = true,
                     .checked = true, .left = LEFT_NONE}};

/* --- around them ---------------------------------------------------------------------------------------------- */

/* What the ranks have made, or may have. Launchers kill all ranks once one of them has died: so every rank removes its
 * own objects, then helps the others until nothing is left; and does so again, for ranks that were not told to stop yet
 * may still be making objects. Only names of this run are touched: directories go when they are empty. */
struct left_over {
    struct tree tree;
    uint64_t rank;
};

static void remove_objects_of(const struct tree *tree, uint64_t rank)
{
    char path[TREE_PATH_BYTES];
    for (uint64_t i = 0; i < tree->objects; i++)
        for (int renamed = 0; renamed < 2; renamed++) {
            tree_object_path(tree, rank, i, renamed, path);
            if (unlink(path) != 0 && (errno == EISDIR || errno == EPERM))
                rmdir(path);
        }
    for (uint64_t k = tree->directories; k-- > 0;) {
        tree_directory_path(tree, rank, k, path);
        rmdir(path);
    }
    rmdir(tree->top);
}

static void remove_left_over(void *data)
{
    enum { ROUNDS = 40 };
    const struct timespec pause = {.tv_nsec = 20000000};
    const struct left_over *left = data;
    const struct tree *tree = &left->tree;
    for (int round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < tree->ranks; i++) {
            if (access(tree->top, F_OK) != 0)
                return;
            remove_objects_of(tree, (left->rank + i) % tree->ranks);
        }
        nanosleep(&pause, NULL);
    }
}

/* Enough free bytes for all that the case does, and free inodes where the file system counts them. */
static void check_room(struct work *work)
{
    const struct tree *tree = &work->tree;
    const struct metadata_settings *settings = work->settings;
    const char *dir = settings->common.dir;
    const uint64_t objects = tree->objects * tree->ranks;
    const uint64_t inodes = objects + tree->directories * (tree->own ? tree->ranks : 1) + 1;
    const uint64_t bytes = settings->family == FAMILY_DIRECTORIES ? 0 : objects * settings->bytes;
    struct statvfs space;
    if (statvfs(dir, &space) != 0)
        return;
    const uint64_t room = (uint64_t)space.f_bavail * space.f_frsize;
    if (space.f_files > 0 && space.f_favail < inodes)
        snprintf(work->failed, sizeof work->failed, "--dir %s: %llu inodes are free, the case makes %llu", dir,
                 (unsigned long long)space.f_favail, (unsigned long long)inodes);
    else if (room < bytes)
        snprintf(work->failed, sizeof work->failed, "--dir %s: %llu bytes are free, the case writes %llu", dir,
                 (unsigned long long)room, (unsigned long long)bytes);
}

static void make_tree_directory(struct work *work, const char *path)
{
    if (work->failed[0] == '\0' && mkdir(path, 0777) != 0)
        work_failed(work, "mkdir", path);
}

static void make_tree(struct work *work)
{
    const MPI_Comm comm = work->run->world->comm;
    const uint64_t rank = (uint64_t)work->run->world->rank;
    char path[TREE_PATH_BYTES];
    struct left_over *left = run_memory(sizeof *left);
    *left = (struct left_over){.tree = work->tree, .rank = rank};
    if (rank == 0) {
        check_room(work);
        make_tree_directory(work, work->tree.top);
        /* Not before: another's directory of that name is none of ours. */
        if (work->failed[0] == '\0')
            made_files_also(remove_left_over, left);
    }
    stop_all_if(comm, EXIT_BAD_INPUT, work->failed);
    made_files_also(remove_left_over, left);
    if (work->tree.own || rank == 0)
        for (uint64_t k = work->tree.own ? 0 : 1; k < work->tree.directories; k++) {
            tree_directory_path(&work->tree, rank, k, path);
            make_tree_directory(work, path);
        }
}

static void remove_tree_directory(struct work *work, const char *path)
{
    if (work->failed[0] == '\0' && rmdir(path) != 0)
        work_failed(work, "rmdir", path);
}

static void remove_tree(struct work *work)
{
    const MPI_Comm comm = work->run->world->comm;
    const uint64_t rank = (uint64_t)work->run->world->rank;
    char path[TREE_PATH_BYTES];
    if (work->tree.own || rank == 0)
        for (uint64_t k = work->tree.directories; k-- > (work->tree.own ? 0 : 1);) {
            tree_directory_path(&work->tree, rank, k, path);
            remove_tree_directory(work, path);
        }
    stop_all_if(comm, EXIT_BAD_INPUT, work->failed);
    if (rank == 0)
        remove_tree_directory(work, work->tree.top);
    stop_all_if(comm, EXIT_BAD_INPUT, work->failed);
    free(made_files_also(NULL, NULL));
}

static void nothing_to_open(struct work *work, const struct action *action)
{
    (void)work;
    (void)action;
}

static void nothing_to_close(struct work *work)
{
    (void)work;
}

/* What changed is in directories. A file system that has nothing to bring to storage may say so with EINVAL. */
static void sync_directories(struct work *work)
{
    const struct tree *tree = &work->tree;
    char path[TREE_PATH_BYTES];
    for (uint64_t k = tree->first_used; k < tree->directories; k++) {
        tree_directory_path(tree, work->rank, k, path);
        const int fd = open(path, O_RDONLY | O_DIRECTORY);
        if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
            work_failed(work, "fsync", path);
        if (fd >= 0)
            close(fd);
    }
}

const struct medium metadata_posix = {.make = make_tree,
                                      .open = nothing_to_open,
                                      .flush = sync_directories,
                                      .close = nothing_to_close,
                                      .remove = remove_tree,
                                      .listing = list_directories};
