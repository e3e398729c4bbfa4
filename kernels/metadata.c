/* metadata: many objects made, looked at, listed, renamed and removed, in operations a second. Directories and files as
 * mdtest has them, or groups, datasets and attributes in HDF5 files. No rate is reported of objects that were not
 * there: after every operation that changes something a listing must find the names that are due, and no others. */
#include "metadata_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(member) offsetof(struct metadata_settings, member)

static const char directories[] = "shared|private";
static const char families[] = "all|directories|files|groups|datasets|attributes";

static const struct option metadata_options[] = {
    {"objects", OPTION_COUNT, FIELD(objects), 1, 1073741824.0, NULL,
     "directories and files, or groups and datasets, of a rank"},
    {"bytes", OPTION_BYTES, FIELD(bytes), 0, 1073741824.0, NULL,
     "written into every file; HDF5: size of every dataset, which stays unwritten"},
    {"attributes", OPTION_COUNT, FIELD(attributes), 1, 4096, NULL, "HDF5: attributes of a dataset"},
    {"directory", OPTION_CHOICE, FIELD(directory), 0, 0, directories,
     "one tree of directories (HDF5: groups) for all ranks, or one each"},
    {"depth", OPTION_COUNT, FIELD(depth), 0, 64, NULL, "levels of directories below the tree's top"},
    {"branch", OPTION_COUNT, FIELD(branch), 1, 1048576, NULL, "directories in a directory of the tree"},
    {"leaves", OPTION_YESNO, FIELD(leaves), 0, 0, NULL, "objects only in the tree's lowest level"},
    {"family", OPTION_CHOICE, FIELD(family), 0, 0, families, "only these operations"},
    {0}};

static const struct operation operations[] = {[DIR_CREATE] = {"dir-create", false},
                                              [DIR_STAT] = {"dir-stat", true},
                                              [DIR_LIST] = {"dir-list", true},
                                              [DIR_RENAME] = {"dir-rename", true},
                                              [DIR_REMOVE] = {"dir-remove", true},
                                              [FILE_CREATE] = {"file-create", false},
                                              [FILE_STAT] = {"file-stat", true},
                                              [FILE_OPEN] = {"file-open", true},
                                              [FILE_CLOSE] = {"file-close", true},
                                              [FILE_READ] = {"file-read", true},
                                              [FILE_LIST] = {"file-list", true},
                                              [FILE_RENAME] = {"file-rename", true},
                                              [FILE_REMOVE] = {"file-remove", true},
                                              [GROUP_CREATE] = {"group-create", false},
                                              [GROUP_OPEN] = {"group-open", true},
                                              [GROUP_ITERATE] = {"group-iterate", true},
                                              [DATASET_CREATE] = {"dataset-create", false},
                                              [DATASET_OPEN] = {"dataset-open", true},
                                              [DATASET_ITERATE] = {"dataset-iterate", true},
                                              [ATTRIBUTE_CREATE] = {"attribute-create", false},
                                              [ATTRIBUTE_READ] = {"attribute-read", true},
                                              [ATTRIBUTE_ITERATE] = {"attribute-iterate", true},
                                              [OPERATIONS] = {NULL, false}};

/* NULL: these kernels were built without HDF5. */
static const struct action *action_of(int operation)
{
    if (operation < GROUP_CREATE)
        return &metadata_posix_actions[operation];
#ifdef IOGAUGE_HAVE_HDF5
    return &metadata_hdf5_actions[operation - GROUP_CREATE];
#else
    return NULL;
#endif
}

static const struct medium *medium_of(int operation)
{
#ifdef IOGAUGE_HAVE_HDF5
    return operation < GROUP_CREATE ? &metadata_posix : &metadata_hdf5;
#else
    (void)operation;
    return &metadata_posix;
#endif
}

/* --- the case ------------------------------------------------------------------------------------------------- */

static void defaults(void *settings)
{
    struct metadata_settings *s = settings;
    s->common.interface = INTERFACE_POSIX;
    s->objects = 1000;
    s->attributes = s->branch = 1;
}

static bool own_trees(const struct metadata_settings *s)
{
    return s->directory == DIRECTORY_PRIVATE || s->common.file_per_process;
}

static int check_tree(const struct metadata_settings *s, int ranks, char *problem, size_t bytes)
{
    uint64_t count = 0;
    uint64_t first_leaf = 0;
    uint64_t total = 0;
    const size_t top_bytes = 2 * strlen(s->common.dir) + 64; /* run_path has the folder's name twice */
    if (tree_longest_path(top_bytes, s->depth) > TREE_PATH_BYTES)
        return snprintf(problem, bytes, "--dir, --depth %llu: paths of more than %d bytes",
                        (unsigned long long)s->depth, TREE_PATH_BYTES - 1),
               -1;
    if (tree_count(s->depth, s->branch, &count, &first_leaf) != 0 || count - (s->leaves ? first_leaf : 0) > s->objects)
        return snprintf(problem, bytes,
                        "--depth %llu, --branch %llu: more directories to hold objects than a rank's --objects %llu",
                        (unsigned long long)s->depth, (unsigned long long)s->branch, (unsigned long long)s->objects),
               -1;
    if (checked_product(s->objects, (uint64_t)ranks, &total) || checked_product(total, s->attributes, &total) ||
        checked_product(total, s->bytes + 1, &total))
        return snprintf(problem, bytes, "--objects %llu times %d ranks: more than can be counted",
                        (unsigned long long)s->objects, ranks),
               -1;
    return 0;
}

/* What would have no effect is refused. */
static int check(void *settings, int ranks, char *problem, size_t bytes)
{
    const struct metadata_settings *s = settings;
    const struct common_settings *common = &s->common;
    const bool hdf5 = common->interface == INTERFACE_HDF5;
    const bool of_hdf5 = s->family >= FAMILY_GROUPS;
    char word[32];
    if (common->interface == INTERFACE_MPIIO)
        return snprintf(problem, bytes, "--interface mpiio: allowed: posix (directories and files), hdf5 (objects)"),
               -1;
    if (s->family != FAMILY_ALL && of_hdf5 != hdf5)
        return snprintf(problem, bytes, "--family %s: --interface %s has %s",
                        option_choice(families, s->family, word, sizeof word), hdf5 ? "hdf5" : "posix",
                        hdf5 ? "groups, datasets and attributes" : "directories and files"),
               -1;
    if (common->collective)
        return snprintf(problem, bytes, "--collective yes: no data are transferred; see --collective-metadata"), -1;
    if (common->keep || common->keep_empty)
        return snprintf(problem, bytes, "--keep%s yes: to remove what was made is part of what is measured",
                        common->keep ? "" : "-empty"),
               -1;
    if (!hdf5 && common->file_per_process)
        return snprintf(problem, bytes, "--file-per-process yes: only for --interface hdf5; see --directory private"),
               -1;
    if (common->file_per_process && s->directory == DIRECTORY_PRIVATE)
        return snprintf(problem, bytes, "--directory private: with --file-per-process yes every rank has its own file"),
               -1;
    if (hdf5 && (common->hdf5.fill != FILL_DEFAULT || common->hdf5.filter != FILTER_NONE || common->hdf5.extendible))
        return snprintf(problem, bytes, "--fill, --compress, --extendible: the datasets hold no data"), -1;
    return check_tree(s, ranks, problem, bytes);
}

/* Paths that a family has of its own: the top of its tree, or its file. */
static int files(const void *settings)
{
    const struct metadata_settings *s = settings;
    return s->common.interface == INTERFACE_HDF5 ? FAMILY_ATTRIBUTES - FAMILY_GROUPS + 1
                                                 : FAMILY_FILES - FAMILY_DIRECTORIES + 1;
}

/* What all ranks do in an operation; 0: it is none of this case's. */
static uint64_t count(const void *settings, int ranks, int operation)
{
    const struct metadata_settings *s = settings;
    const struct action *action = action_of(operation);
    const uint64_t objects = s->objects * (uint64_t)ranks;
    uint64_t in_tree = 0;
    uint64_t unused = 0;
    if (action == NULL || (operation >= GROUP_CREATE) != (s->common.interface == INTERFACE_HDF5) ||
        (s->family != FAMILY_ALL && (enum family)s->family != action->family) ||
        (operation == FILE_READ && s->bytes == 0))
        return 0;
    switch (action->walk) {
    case WALK_OBJECTS:
        return objects;
    case WALK_ATTRIBUTES:
    case WALK_DATASETS:
        return objects * s->attributes;
    case WALK_DIRECTORIES: /* the names listed: objects, and the tree's own directories but for its top */
        tree_count(s->depth, s->branch, &in_tree, &unused);
        return objects + (in_tree - 1) * (own_trees(s) ? (uint64_t)ranks : 1);
    }
    return 0;
}

static void describe(const void *settings, struct json *json)
{
    const struct metadata_settings *s = settings;
    char word[32];
    json_whole(json, "objects", s->objects);
    json_whole(json, "bytes", s->bytes);
    if (s->common.interface == INTERFACE_HDF5)
        json_whole(json, "attributes", s->attributes);
    json_text(json, "directory", option_choice(directories, s->directory, word, sizeof word));
    json_whole(json, "depth", s->depth);
    json_whole(json, "branch", s->branch);
    json_truth(json, "leaves", s->leaves);
    json_text(json, "family", option_choice(families, s->family, word, sizeof word));
}

/* --- an operation --------------------------------------------------------------------------------------------- */

void work_failed(struct work *work, const char *call, const char *path)
{
    if (work->failed[0] == '\0')
        snprintf(work->failed, sizeof work->failed, "%s: %s: %s failed: %s", work->name, path, call, strerror(errno));
}

void work_wrong(struct work *work, const char *path, const char *format, ...)
{
    va_list arguments;
    if (work->wrong[0] != '\0')
        return;
    const int used = snprintf(work->wrong, sizeof work->wrong, "%s: %s: ", work->name, path);
    va_start(arguments, format);
    vsnprintf(work->wrong + used, sizeof work->wrong - (size_t)used, format, arguments);
    va_end(arguments);
}

static void stop_if_bad(const struct work *work)
{
    stop_all_if(work->run->world->comm, EXIT_BAD_INPUT, work->failed);
    stop_all_if(work->run->world->comm, EXIT_BAD_DATA, work->wrong);
}

/* An item's data are a function of the seed, its rank and its number. */
static void fill(const struct work *work, const struct item *item, uint8_t *data)
{
    content_fill64((uint64_t *)(void *)data, (work->bytes + 7) / 8,
                   content_key(work->settings->common.seed, item->rank, item->number), 0);
}

void work_make_data(struct work *work, struct item *item)
{
    fill(work, item, item->data);
}

void work_spoil_data(struct work *work, struct item *item)
{
    memset(item->data, 0xff, work->bytes);
}

void work_check_data(struct work *work, struct item *item)
{
    uint64_t i = 0;
    fill(work, item, work->expected);
    if (memcmp(item->data, work->expected, work->bytes) == 0)
        return;
    while (item->data[i] == work->expected[i])
        i++;
    work_wrong(work, item->path, "byte %llu: expected 0x%02x, found 0x%02x", (unsigned long long)i, work->expected[i],
               item->data[i]);
}

void work_check_names(struct work *work, struct item *item)
{
    char problem[256];
    if (names_check(&work->names, problem, sizeof problem) != 0)
        work_wrong(work, item->path, "%s", problem);
}

/* The numbers of the items that a rank does, and of whose ranks' items. */
struct part {
    uint64_t first_rank;
    uint64_t end_rank;
    uint64_t first;
    uint64_t end;
    uint64_t step;
};

static struct part part_of(const struct work *work, enum walk walk, bool together)
{
    const struct tree *tree = &work->tree;
    const struct world *world = work->run->world;
    const uint64_t attributes = walk == WALK_ATTRIBUTES ? work->settings->attributes : 1;
    struct part part = {.first_rank = together ? 0 : work->rank,
                        .end_rank = together ? (uint64_t)world->size : work->rank + 1,
                        .end = walk == WALK_DIRECTORIES ? tree->directories : tree->objects * attributes,
                        .step = 1};
    if (walk == WALK_DIRECTORIES && !tree->own) {
        /* Of a shared tree every directory is listed once: by one rank, or by all of them together. */
        part.end_rank = part.first_rank + 1;
        part.first = together ? 0 : (uint64_t)world->rank;
        part.step = together ? 1 : (uint64_t)world->size;
    }
    return part;
}

/* What all ranks do together counts once. */
static bool counts_here(const struct work *work, enum walk walk, bool together, const struct item *item)
{
    const struct world *world = work->run->world;
    if (!together)
        return true;
    if (walk == WALK_DIRECTORIES && !work->tree.own)
        return item->number % (uint64_t)world->size == (uint64_t)world->rank;
    return item->rank == (uint64_t)world->rank;
}

static void begin_item(struct work *work, enum walk walk, bool renamed, enum objects_left left, struct item *item)
{
    const struct tree *tree = &work->tree;
    const uint64_t attributes = work->settings->attributes;
    const struct name_range attribute_names[NAME_RANGES] = {{.prefix = "attribute", .count = attributes}};
    int without_memory = 0;
    switch (walk) {
    case WALK_OBJECTS:
        tree_object_path(tree, item->rank, item->number, renamed, item->path);
        tree_object_path(tree, item->rank, item->number, true, item->second);
        break;
    case WALK_ATTRIBUTES:
        tree_object_path(tree, item->rank, item->number / attributes, false, item->path);
        snprintf(item->second, sizeof item->second, "attribute-%llu", (unsigned long long)(item->number % attributes));
        break;
    case WALK_DIRECTORIES:
        tree_directory_path(tree, item->rank, item->number, item->path);
        without_memory = names_expect_directory(&work->names, tree, item->rank, item->number, left);
        break;
    case WALK_DATASETS:
        tree_object_path(tree, item->rank, item->number, false, item->path);
        without_memory = names_expect(&work->names, attribute_names);
        break;
    }
    if (without_memory)
        stop_rank("%s: out of memory for %llu names", item->path, (unsigned long long)work->names.room);
}

/* The measured loop. */
static void do_steps(struct work *work, const struct step *steps, uint64_t items)
{
    for (const struct step *step = steps; step->call != NULL; step++) {
        stopwatch_start(work->watch, step->phase);
        for (uint64_t i = 0; i < items; i++)
            step->call(work, &work->items[i]);
        stopwatch_stop(work->watch);
    }
}

uint64_t work_walk(struct work *work, enum walk walk, const struct step *steps, bool together, bool renamed,
                   enum objects_left left)
{
    const struct part part = part_of(work, walk, together);
    const bool lists = walk == WALK_DIRECTORIES || walk == WALK_DATASETS;
    const uint64_t at_once = lists ? 1 : work->at_once;
    uint64_t counted = 0;
    for (uint64_t rank = part.first_rank; rank < part.end_rank; rank++)
        for (uint64_t number = part.first; number < part.end && work->failed[0] == '\0';) {
            uint64_t items = 0;
            stopwatch_start(work->watch, PHASE_PREPARE);
            for (; items < at_once && number < part.end; items++, number += part.step) {
                struct item *item = &work->items[items];
                item->rank = rank;
                item->number = number;
                begin_item(work, walk, renamed, left, item);
                if (counts_here(work, walk, together, item))
                    counted += lists ? work->names.expected : 1;
            }
            stopwatch_stop(work->watch);
            do_steps(work, steps, items);
        }
    return counted;
}

/* Where the objects are. HDF5: inside a file. */
static void choose_tree(struct work *work, const struct action *action)
{
    const struct metadata_settings *s = work->settings;
    struct tree *tree = &work->tree;
    uint64_t first_leaf = 0;
    tree->own = own_trees(s);
    tree->ranks = (uint64_t)work->run->world->size;
    tree->objects = s->objects;
    tree->branch = s->branch;
    tree_count(s->depth, s->branch, &tree->directories, &first_leaf);
    tree->first_used = s->leaves ? first_leaf : 0;
    if (s->common.interface == INTERFACE_HDF5) {
        work->file_number = (int)action->family - FAMILY_GROUPS;
        snprintf(tree->top, sizeof tree->top, "/tree");
    } else {
        run_path(work->run, (int)action->family - FAMILY_DIRECTORIES, 0, tree->top, sizeof tree->top);
    }
}

static void choose_file(struct work *work, int rank)
{
    work->rank = (uint64_t)rank;
    run_path(work->run, work->file_number, rank, work->file_path, sizeof work->file_path);
}

/* As many items at once as fit a core's cache with their data, and no more than a process may have open. */
static struct work *begin(struct run *run, const struct action *action, int operation)
{
    enum { MOST_AT_ONCE = 64, BATCH_BYTES = 1 << 20 };
    struct work *work = run_memory(sizeof *work);
    work->run = run;
    work->watch = run->watch;
    work->settings = run->settings;
    work->name = operations[operation].name;
    work->bytes = action->family == FAMILY_FILES ? work->settings->bytes : action->walk == WALK_ATTRIBUTES ? 8 : 0;
    const uint64_t room = work->bytes / 8 * 8 + 8;
    work->at_once = room * MOST_AT_ONCE <= BATCH_BYTES ? MOST_AT_ONCE : BATCH_BYTES / room;
    work->at_once = work->at_once > 0 ? work->at_once : 1;
    work->items = run_memory(work->at_once * sizeof *work->items);
    work->data = run_memory(work->at_once * room);
    work->expected = run_memory(room);
    for (uint64_t i = 0; i < work->at_once; i++)
        work->items[i].data = work->data + i * room;
    choose_tree(work, action);
    choose_file(work, operations[operation].of_read ? run->source : run->world->rank);
    return work;
}

static void end(struct work *work)
{
    free(work->names.text);
    free(work->expected);
    free(work->data);
    free(work->items);
    free(work);
}

/* All ranks list what they read of: the names that are due must be there, and no others. In no rate. */
static void check_what_is_left(struct work *work, const struct action *action, const struct medium *medium)
{
    struct stopwatch unread = {.comm = work->run->world->comm};
    const bool together = work->run->store.collective_metadata;
    work->watch = &unread;
    choose_file(work, work->run->source);
    stopwatch_stretch(&unread);
    medium->open(work, NULL);
    if (action->family == FAMILY_ATTRIBUTES)
        work_walk(work, WALK_DATASETS, medium->attributes, together, false, action->left);
    else
        work_walk(work, WALK_DIRECTORIES, medium->listing, together, false, action->left);
    medium->close(work);
    stopwatch_reduce(&unread);
    stop_if_bad(work);
}

static void perform(struct run *run, int operation)
{
    const struct action *action = action_of(operation);
    const struct medium *medium = medium_of(operation);
    struct work *work = begin(run, action, operation);
    const bool shared_hdf5 = run->common->interface == INTERFACE_HDF5 && run->common->sharing == SHARING_ALL;
    const bool together = shared_hdf5 && (action->first || run->store.collective_metadata);
    if (action->first && medium->make != NULL) {
        medium->make(work);
        stop_if_bad(work);
    }
    stopwatch_stretch(run->watch);
    medium->open(work, action);
    run->checked_bytes += work_walk(work, action->walk, action->steps, together, action->renamed, action->left);
    stopwatch_start(run->watch, PHASE_FLUSH);
    if (action->changes && run->common->fsync)
        medium->flush(work);
    stopwatch_stop(run->watch);
    medium->close(work);
    stop_if_bad(work);
    if (action->checked)
        check_what_is_left(work, action, medium);
    if (action->last)
        medium->remove(work);
    end(work);
}

static const struct pattern metadata = {
    .name = "metadata",
    .summary = "mdtest's pattern, and the like in HDF5: many directories and files, or groups, datasets and attributes",
    .example = "mpirun -np 2 metadata --dir /scratch/me --objects 1000 --directory private",
    .options = metadata_options,
    .settings_bytes = sizeof(struct metadata_settings),
    .defaults = defaults,
    .check = check,
    .files = files,
    .describe = describe,
    .operations = operations,
    .count = count,
    .perform = perform};

int main(int argc, char **argv)
{
    return run_kernel(&metadata, argc, argv);
}
