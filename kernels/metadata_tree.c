#include "metadata_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tree_count(uint64_t depth, uint64_t branch, uint64_t *directories, uint64_t *first_leaf)
{
    uint64_t level = 1;
    *directories = 1;
    *first_leaf = 0;
    for (uint64_t d = 0; d < depth; d++) {
        *first_leaf = *directories;
        if (__builtin_mul_overflow(level, branch, &level) || __builtin_add_overflow(*directories, level, directories))
            return -1;
    }
    return 0;
}

/* Lowest object that lies in the used directory NUMBER or a later one. */
static uint64_t first_object(const struct tree *tree, uint64_t number)
{
    const uint64_t used = tree->directories - tree->first_used;
    return (number * tree->objects + used - 1) / used;
}

void tree_objects_in(const struct tree *tree, uint64_t directory, uint64_t *first, uint64_t *count)
{
    *first = *count = 0;
    if (directory < tree->first_used)
        return;
    *first = first_object(tree, directory - tree->first_used);
    *count = first_object(tree, directory - tree->first_used + 1) - *first;
}

static char *put_text(char *at, const char *text)
{
    while (*text != '\0')
        *at++ = *text++;
    *at = '\0';
    return at;
}

static char *put_number(char *at, uint64_t number)
{
    char digits[20];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        *at++ = digits[--count];
    *at = '\0';
    return at;
}

static char *put_directory(const struct tree *tree, uint64_t rank, uint64_t directory, char *at)
{
    if (directory == 0) {
        at = put_text(at, tree->top);
        return tree->own ? put_number(put_text(at, "/rank-"), rank) : at;
    }
    at = put_directory(tree, rank, (directory - 1) / tree->branch, at);
    return put_number(put_text(at, "/tree-"), directory);
}

size_t tree_longest_path(size_t top_bytes, uint64_t depth)
{
    return top_bytes + (size_t)(depth + 2) * NAME_BYTES + 1;
}

void tree_directory_path(const struct tree *tree, uint64_t rank, uint64_t directory, char *path)
{
    put_directory(tree, rank, directory, path);
}

void tree_object_path(const struct tree *tree, uint64_t rank, uint64_t object, bool renamed, char *path)
{
    const uint64_t used = tree->directories - tree->first_used;
    char *at = put_directory(tree, rank, tree->first_used + object * used / tree->objects, path);
    at = put_number(put_text(at, renamed ? "/renamed-" : "/item-"), rank);
    put_number(put_text(at, "-"), object);
}

static uint64_t range_names(const struct name_range *range)
{
    return range->count * (range->in_each > 0 ? range->in_each : 1);
}

int names_expect(struct names *names, const struct name_range ranges[NAME_RANGES])
{
    names->expected = names->found = 0;
    for (int i = 0; i < NAME_RANGES; i++) {
        names->ranges[i] = ranges[i];
        names->expected += range_names(&ranges[i]);
    }
    if (names->room > names->expected)
        return 0;
    free(names->text);
    names->room = names->expected + 1;
    names->text = malloc(names->room * sizeof *names->text);
    if (names->text == NULL)
        return -1;
    memset(names->text, 0xff, names->room * sizeof *names->text); /* no page fault while names are listed */
    return 0;
}

int names_expect_directory(struct names *names, const struct tree *tree, uint64_t rank, uint64_t directory,
                           enum objects_left left)
{
    const uint64_t first_child = directory * tree->branch + 1;
    struct name_range ranges[NAME_RANGES] = {
        {.prefix = left == LEFT_RENAMED ? "renamed" : "item",
         .first = tree->own ? rank : 0,
         .count = tree->own ? 1 : tree->ranks},
        {.prefix = "tree", .first = first_child, .count = first_child < tree->directories ? tree->branch : 0}};
    tree_objects_in(tree, directory, &ranges[0].first_b, &ranges[0].in_each);
    if (left == LEFT_NONE || ranges[0].in_each == 0)
        ranges[0].count = 0;
    return names_expect(names, ranges);
}

void names_add(struct names *names, const char *name)
{
    if (names->found < names->room) {
        const size_t length = strnlen(name, NAME_BYTES - 1); /* a longer name is none of ours */
        memcpy(names->text[names->found], name, length);
        names->text[names->found][length] = '\0';
    }
    names->found++;
}

/* Skip "-NUMBER" as the kernel writes it. Returns where it ends, or NULL. */
static const char *number_at(const char *text, uint64_t *number)
{
    if (text == NULL || text[0] != '-' || text[1] < '0' || text[1] > '9' ||
        (text[1] == '0' && text[2] >= '0' && text[2] <= '9'))
        return NULL;
    char *end = NULL;
    *number = strtoull(text + 1, &end, 10);
    return end;
}

/* Position of NAME among the expected ones, or -1. */
static int64_t place_of(const struct names *names, const char *name)
{
    uint64_t before = 0;
    for (int i = 0; i < NAME_RANGES; i++) {
        const struct name_range *range = &names->ranges[i];
        const size_t length = range->prefix == NULL ? 0 : strlen(range->prefix);
        uint64_t a = 0;
        uint64_t b = 0;
        if (length > 0 && strncmp(name, range->prefix, length) == 0) {
            const char *end = number_at(name + length, &a);
            if (range->in_each > 0)
                end = number_at(end, &b);
            const bool inside =
                a - range->first < range->count && (range->in_each == 0 || b - range->first_b < range->in_each);
            if (end != NULL && *end == '\0' && inside)
                return (int64_t)(before + (range->in_each == 0
                                               ? a - range->first
                                               : (a - range->first) * range->in_each + b - range->first_b));
        }
        before += range_names(range);
    }
    return -1;
}

static void name_of(const struct names *names, uint64_t place, char *name)
{
    const struct name_range *range = names->ranges;
    for (; place >= range_names(range); range++)
        place -= range_names(range);
    const uint64_t each = range->in_each > 0 ? range->in_each : 1;
    char *at = put_number(put_text(put_text(name, range->prefix), "-"), range->first + place / each);
    if (range->in_each > 0)
        put_number(put_text(at, "-"), range->first_b + place % each);
}

int names_check(const struct names *names, char *problem, size_t problem_bytes)
{
    const uint64_t listed = names->found < names->room ? names->found : names->room;
    const char *what = NULL;
    char name[NAME_BYTES] = "";
    uint8_t *seen = calloc(names->expected / 8 + 1, 1);
    if (seen == NULL)
        return snprintf(problem, problem_bytes, "out of memory for %llu names", (unsigned long long)names->expected),
               -1;
    for (uint64_t i = 0; i < listed && what == NULL; i++) {
        const int64_t place = place_of(names, names->text[i]);
        memcpy(name, names->text[i], sizeof name);
        if (place < 0)
            what = "does not belong there";
        else if (seen[place / 8] & 1 << place % 8)
            what = "is there twice";
        else
            seen[place / 8] |= (uint8_t)(1 << place % 8);
    }
    for (uint64_t place = 0; place < names->expected && what == NULL; place++)
        if (!(seen[place / 8] & 1 << place % 8)) {
            name_of(names, place, name);
            what = "is missing";
        }
    free(seen);
    if (what == NULL)
        return 0;
    snprintf(problem, problem_bytes, "expected %llu names, found %llu: %s %s", (unsigned long long)names->expected,
             (unsigned long long)names->found, name, what);
    return -1;
}
