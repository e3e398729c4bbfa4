/* What the parts of the metadata kernel share: its settings, and an operation as a row of steps over items. */
#ifndef IOGAUGE_METADATA_PARTS_H
#define IOGAUGE_METADATA_PARTS_H

#include "common/failure.h"
#include "common/run.h"
#include "metadata_tree.h"

#include <dirent.h>
#include <sys/stat.h>

enum family { FAMILY_ALL, FAMILY_DIRECTORIES, FAMILY_FILES, FAMILY_GROUPS, FAMILY_DATASETS, FAMILY_ATTRIBUTES };
enum directory { DIRECTORY_SHARED, DIRECTORY_PRIVATE };

struct metadata_settings {
    struct common_settings common;
    uint64_t objects;    /* a rank's, of each family */
    uint64_t bytes;      /* of a file or dataset */
    uint64_t attributes; /* of a dataset */
    uint64_t depth;
    uint64_t branch;
    bool leaves;
    int directory; /* enum directory */
    int family;    /* enum family */
};

enum operation_number {
    DIR_CREATE,
    DIR_STAT,
    DIR_LIST,
    DIR_RENAME,
    DIR_REMOVE,
    FILE_CREATE,
    FILE_STAT,
    FILE_OPEN,
    FILE_CLOSE,
    FILE_READ,
    FILE_LIST,
    FILE_RENAME,
    FILE_REMOVE,
    GROUP_CREATE,
    GROUP_OPEN,
    GROUP_ITERATE,
    DATASET_CREATE,
    DATASET_OPEN,
    DATASET_ITERATE,
    ATTRIBUTE_CREATE,
    ATTRIBUTE_READ,
    ATTRIBUTE_ITERATE,
    OPERATIONS
};

/* What an operation goes over, item by item. */
enum walk {
    WALK_OBJECTS,
    WALK_ATTRIBUTES, /* of every dataset, one by one */
    WALK_DIRECTORIES,
    WALK_DATASETS /* for all attributes of each */
};

struct item {
    uint64_t rank; /* whose */
    uint64_t number;
    char path[TREE_PATH_BYTES];
    char second[TREE_PATH_BYTES]; /* the path after a renaming, or an attribute's name */
    uint8_t *data;                /* a file's bytes, or an attribute's word */
    int fd;
    DIR *listing;
    struct stat status;
    int64_t object; /* HDF5's identifiers */
    int64_t attribute;
};

/* One operation of one case in one repeat, on one rank. */
struct work {
    struct run *run;
    const struct metadata_settings *settings;
    const char *name;        /* of the operation */
    struct stopwatch *watch; /* the run's, or one that nobody reads */
    struct tree tree;
    uint64_t rank;    /* whose objects this rank makes or looks at, where ranks do not all do all of it */
    uint64_t bytes;   /* of an item's data */
    uint64_t at_once; /* items in a batch */
    struct item *items;
    uint8_t *data;
    uint8_t *expected; /* an item's data as they must be */
    struct names names;
    char failed[MESSAGE_BYTES];
    char wrong[MESSAGE_BYTES];
    struct store *store; /* HDF5 */
    int file_number;
    char file_path[TREE_PATH_BYTES];
    int64_t file;
    int64_t space;  /* of a dataset */
    int64_t scalar; /* of an attribute */
};

/* One call on an item. A row of steps is done batch by batch: each step on all items of the batch, booked to its phase;
 * PHASE_PREPARE is what is no part of the operation. */
struct step {
    enum phase phase;
    void (*call)(struct work *work, struct item *item);
};

struct action {
    enum family family;
    enum walk walk;
    const struct step *steps;
    bool first;   /* of its family: the tree or file is made */
    bool last;    /* ... and removed */
    bool changes; /* there is something to flush */
    bool renamed; /* the objects have their second name by then */
    bool checked; /* afterwards a listing must find LEFT, and nothing else */
    enum objects_left left;
};

/* What stands around an operation's steps. */
struct medium {
    void (*make)(struct work *work);                              /* before the clock runs; NULL: nothing */
    void (*open)(struct work *work, const struct action *action); /* ACTION NULL: to look only */
    void (*flush)(struct work *work);
    void (*close)(struct work *work);
    void (*remove)(struct work *work);
    /* Fill the names and check them: of a directory's objects, of a dataset's attributes. */
    const struct step *listing;
    const struct step *attributes;
};

extern const struct action metadata_posix_actions[GROUP_CREATE];
extern const struct medium metadata_posix;
#ifdef IOGAUGE_HAVE_HDF5
extern const struct action metadata_hdf5_actions[OPERATIONS - GROUP_CREATE];
extern const struct medium metadata_hdf5;
#endif

/* A call failed with errno, or what it did is not what it should be. The first of each is kept; all ranks stop after
 * the operation. */
void work_failed(struct work *work, const char *call, const char *path);
void work_wrong(struct work *work, const char *path, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Steps that both interfaces have: an item's data made, overwritten before a read, and compared; and the names that
 * were listed compared with those that ITEM's directory or dataset must hold. */
void work_make_data(struct work *work, struct item *item);
void work_spoil_data(struct work *work, struct item *item);
void work_check_data(struct work *work, struct item *item);
void work_check_names(struct work *work, struct item *item);

/* Do STEPS on every item of WALK that is this rank's to do: of its own objects, of another rank's, or with TOGETHER
 * of all ranks' together with all ranks. Returns how many operations of them count as this rank's. */
uint64_t work_walk(struct work *work, enum walk walk, const struct step *steps, bool together, bool renamed,
                   enum objects_left left);

#endif
