/* Which names the metadata kernel makes, and where: objects in a tree of directories (or HDF5 groups), one tree for all
 * ranks or one a rank. Everything here is a function of numbers, and safe in a signal handler where it says so. */
#ifndef IOGAUGE_METADATA_TREE_H
#define IOGAUGE_METADATA_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TREE_PATH_BYTES = 4096, NAME_BYTES = 32 };

/* Directory 0 is the tree's top; directory k > 0 lies in directory (k - 1) / branch. */
struct tree {
    char top[TREE_PATH_BYTES];
    bool own;        /* every rank a tree of its own: top/rank-R */
    uint64_t ranks;  /* whose objects are in a tree that is shared */
    uint64_t branch; /* directories in a directory */
    uint64_t directories;
    uint64_t first_used; /* the first directory with objects in it: 0, or the first leaf */
    uint64_t objects;    /* of a rank */
};

/* Directories of a tree DEPTH levels below its top, and the first of the lowest level. Returns 0, or -1 when there are
 * more than can be counted. */
int tree_count(uint64_t depth, uint64_t branch, uint64_t *directories, uint64_t *first_leaf);

/* The objects of a rank lie in the used directories one after the other, as evenly as they go: those in DIRECTORY are
 * FIRST to FIRST + COUNT. */
void tree_objects_in(const struct tree *tree, uint64_t directory, uint64_t *first, uint64_t *count);

/* Bytes of the longest path there can be below a top with TOP_BYTES, with its end. */
size_t tree_longest_path(size_t top_bytes, uint64_t depth);

/* Paths, into PATH [TREE_PATH_BYTES], which the longest fits. Safe in a signal handler. */
void tree_directory_path(const struct tree *tree, uint64_t rank, uint64_t directory, char *path);
void tree_object_path(const struct tree *tree, uint64_t rank, uint64_t object, bool renamed, char *path);

/* Names PREFIX-a with a from FIRST on, COUNT of them; or, where IN_EACH is not 0, PREFIX-a-b with IN_EACH b from
 * FIRST_B on for every a. */
struct name_range {
    const char *prefix;
    uint64_t first;
    uint64_t count;
    uint64_t first_b;
    uint64_t in_each;
};

enum { NAME_RANGES = 2 };

/* Names that a listing has found, against those that must be there. */
struct names {
    struct name_range ranges[NAME_RANGES];
    uint64_t expected;
    uint64_t found; /* may be more than there is room for */
    uint64_t room;
    char (*text)[NAME_BYTES];
};

/* What a directory of the tree must hold: its own directories, and its objects under their first or second name. */
enum objects_left { LEFT_NONE, LEFT_MADE, LEFT_RENAMED };

/* Begin a listing: RANGES are what must be found. Grows the room to one name more than that: of so many found names
 * one at least is wrong. Returns 0, or -1 without memory. */
int names_expect(struct names *names, const struct name_range ranges[NAME_RANGES]);
int names_expect_directory(struct names *names, const struct tree *tree, uint64_t rank, uint64_t directory,
                           enum objects_left left);

void names_add(struct names *names, const char *name);

/* Returns 0 when exactly the expected names were found, each once; else -1 with PROBLEM filled. */
int names_check(const struct names *names, char *problem, size_t problem_bytes);

#endif
