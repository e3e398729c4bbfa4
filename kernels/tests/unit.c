/* What can be tested without ranks or files: boxes, content, options, and the choice of the rank to read from. */
#include "common/boxes.h"
#include "common/content.h"
#include "common/options.h"
#include "common/page_cache.h"
#include "common/world.h"
#include "metadata_tree.h"
#include "segments_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures;

#define EXPECT(condition)                                                                 \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            failures++;                                                                   \
        }                                                                                 \
    } while (0)

enum { WORDS = 1000 };

static void content_is_checked_word_by_word(void)
{
    uint64_t words[WORDS];
    const uint64_t key = content_key(1, 2, 3);
    content_fill64(words, WORDS, key, 500);
    struct content_mismatch mismatch = {0};
    content_check64(words, WORDS, key, 500, &mismatch);
    EXPECT(mismatch.count == 0);
    words[7] ^= 1;
    words[9] ^= 1;
    content_check64(words, WORDS, key, 500, &mismatch);
    EXPECT(mismatch.count == 2);
    EXPECT(mismatch.index == 507);
    EXPECT(mismatch.found == (mismatch.expected ^ 1));
}

static void content_tells_seed_dataset_step_and_place(void)
{
    const uint64_t key = content_key(1, 2, 3);
    EXPECT(key != content_key(2, 2, 3));
    EXPECT(key != content_key(1, 3, 3));
    EXPECT(key != content_key(1, 2, 4));
    EXPECT(key != content_key(1, 3, 2));
    uint64_t words[WORDS];
    struct content_mismatch moved = {0};
    content_fill64(words, WORDS, key, 0);
    content_check64(words, WORDS, key, 1, &moved);
    EXPECT(moved.count == WORDS);
}

static void bytes_are_those_of_the_words(void)
{
    uint64_t words[WORDS];
    uint8_t bytes[WORDS];
    const uint64_t key = content_key(1, 2, 3);
    struct content_mismatch mismatch = {0};
    content_fill64(words, WORDS, key, 0);
    for (uint64_t first = 0; first < 20; first++) {
        content_fill8(bytes, WORDS, key, first);
        content_check8(bytes, WORDS, key, first, &mismatch);
        EXPECT(mismatch.count == 0);
        for (uint64_t i = 0; i < WORDS; i++)
            EXPECT(bytes[i] == (uint8_t)(words[(first + i) / 8] >> (first + i) % 8 * 8));
    }
    bytes[500] ^= 1;
    content_check8(bytes, WORDS, key, 19, &mismatch);
    EXPECT(mismatch.count == 1 && mismatch.index == 519 && mismatch.found == (mismatch.expected ^ 1));
}

/* Every element of the dataset is in one transfer of one rank. */
static bool covers_once(const struct walk *walk, uint64_t sharers)
{
    enum { MOST = 4096 };
    int seen[MOST] = {0};
    uint64_t start[STORE_DIMENSIONS];
    uint64_t extent[STORE_DIMENSIONS] = {1, 1, 1, 1};
    uint64_t count[STORE_DIMENSIONS] = {1, 1, 1, 1};
    for (int i = 0; i < walk->dimensions; i++) {
        extent[i] = walk->extent[i];
        count[i] = walk->transfer[i];
    }
    for (uint64_t place = 0; place < sharers; place++)
        for (uint64_t t = 0; t < walk_transfers(walk); t++) {
            walk_start(walk, place, t, start);
            for (uint64_t b = 0; b < walk->blocks; b++)
                for (uint64_t i = start[0] + b * walk->block_stride, e = i + count[0]; i < e; i++)
                    for (uint64_t j = start[1]; j < start[1] + count[1]; j++)
                        for (uint64_t k = start[2]; k < start[2] + count[2]; k++)
                            for (uint64_t l = start[3]; l < start[3] + count[3]; l++)
                                seen[((i * extent[1] + j) * extent[2] + k) * extent[3] + l]++;
        }
    for (uint64_t i = 0; i < extent[0] * extent[1] * extent[2] * extent[3]; i++)
        if (seen[i] != 1)
            return false;
    return true;
}

static void segments_are_covered_once(void)
{
    const uint64_t sizes[][3] = {{1, 64, 64}, {3, 64, 16}, {6, 16, 16}, {6, 16, 48}}; /* segments, block, transfer */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint64_t sharers = 1; sharers <= 3; sharers++)
            for (int interleaved = 0; interleaved < 2; interleaved++) {
                const struct walk walk =
                    walk_of_segments(sharers, sizes[i][0], sizes[i][1], sizes[i][2], interleaved != 0);
                EXPECT(walk_transfer_bytes(&walk) == sizes[i][2]);
                EXPECT(walk_dataset_bytes(&walk) == sizes[i][0] * sizes[i][1] * sharers);
                EXPECT(covers_once(&walk, sharers));
            }
}

static void boxes_are_covered_once_in_the_order_asked_for(void)
{
    const uint64_t extent[] = {12, 10, 6};
    const uint64_t transfer[] = {2, 5, 1};
    const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    uint64_t start[STORE_DIMENSIONS];
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        for (uint64_t sharers = 1; sharers <= 3; sharers++)
            for (int interleaved = 0; interleaved < 2; interleaved++) {
                const struct walk walk = walk_of_boxes(sharers, 3, extent, transfer, orders[i], interleaved != 0);
                EXPECT(covers_once(&walk, sharers));
            }
    /* h5perf_serial: -r 2,3,1 traverses dimension 2 first, dimension 1 last. */
    const struct walk walk = walk_of_boxes(1, 3, extent, transfer, orders[2], false);
    for (uint64_t t = 0; t < walk_transfers(&walk); t++) {
        walk_start(&walk, 0, t, start);
        EXPECT(start[1] == t % 2 * 5 && start[2] == t / 2 % 6 && start[0] == t / 12 * 2);
    }
    const struct walk in_turn = walk_of_boxes(3, 3, extent, transfer, orders[1], true);
    walk_start(&in_turn, 2, 1, start);
    EXPECT(start[0] == 0 && start[1] == 0 && start[2] == 5);
}

static void a_growing_dataset_holds_what_is_written(void)
{
    const uint64_t extent[] = {4, 6};
    const uint64_t transfer[] = {2, 3};
    const int order[] = {1, 0};
    const struct walk walk = walk_of_boxes(1, 2, extent, transfer, order, false);
    uint64_t size[STORE_DIMENSIONS] = {2, 3};
    uint64_t start[STORE_DIMENSIONS];
    const uint64_t expected[][3] = {{2, 3, 0}, {2, 6, 1}, {4, 6, 1}, {4, 6, 0}}; /* extent, and whether it has grown */
    for (uint64_t t = 0; t < walk_transfers(&walk); t++) {
        walk_start(&walk, 0, t, start);
        EXPECT(walk_grow(&walk, start, size) == (expected[t][2] != 0));
        EXPECT(size[0] == expected[t][0] && size[1] == expected[t][1]);
    }
}

static void the_content_of_a_transfer_is_that_of_its_place(void)
{
    const uint64_t extent[] = {4, 3, 5};
    const uint64_t transfer[] = {2, 3, 5};
    const int order[] = {0, 1, 2};
    const uint64_t key = content_key(1, 0, 0);
    uint8_t whole[4 * 3 * 5];
    uint8_t half[2 * 3 * 5];
    uint64_t start[STORE_DIMENSIONS];
    struct content_mismatch mismatch = {0};
    struct walk walk = walk_of_boxes(1, 3, extent, transfer, order, false);
    content_fill8(whole, sizeof whole, key, 0);
    walk_start(&walk, 0, 1, start);
    walk_fill(&walk, start, key, half);
    EXPECT(memcmp(half, whole + sizeof half, sizeof half) == 0);
    half[17] ^= 1;
    walk_check(&walk, start, key, half, &mismatch);
    EXPECT(mismatch.count == 1 && mismatch.index == sizeof half + 17);

    uint64_t words[4];
    uint64_t all[16];
    walk = walk_of_segments(2, 4, 16, 32, false); /* four segments, two ranks, two blocks of two words a transfer */
    content_fill64(all, 16, key, 0);
    walk_start(&walk, 1, 1, start);
    walk_fill(&walk, start, key, words);
    EXPECT(words[0] == all[10] && words[1] == all[11] && words[2] == all[14] && words[3] == all[15]);
}

static void particles_are_finite_and_strided(void)
{
    uint32_t words[WORDS * 8] = {0};
    const uint64_t key = content_key(1, 0, 0);
    struct content_mismatch mismatch = {0};
    content_fill32(words + 3, WORDS, 8, key, 10);
    content_check32(words + 3, WORDS, 8, key, 10, &mismatch);
    EXPECT(mismatch.count == 0);
    EXPECT(words[0] == 0 && words[4] == 0);
    for (int i = 0; i < WORDS; i++)
        EXPECT((words[i * 8 + 3] & 0x40000000u) == 0); /* the exponent of a NaN has this bit */
    words[3 + 8 * 20] ^= 0x100;
    content_check32(words + 3, WORDS, 8, key, 10, &mismatch);
    EXPECT(mismatch.count == 1 && mismatch.index == 30);
}

struct example {
    uint64_t size;
    double part;
    bool yes;
    int choice;
    struct text_list list;
};

static const struct option example_options[] = {
    {"size", OPTION_BYTES, offsetof(struct example, size), 1, 1e15, NULL, ""},
    {"part", OPTION_REAL, offsetof(struct example, part), 0, 1, NULL, ""},
    {"yes", OPTION_YESNO, offsetof(struct example, yes), 0, 0, NULL, ""},
    {"choice", OPTION_CHOICE, offsetof(struct example, choice), 0, 0, "a|bb|c", ""},
    {"list", OPTION_LIST, offsetof(struct example, list), 0, 0, NULL, ""},
    {0}};

static int parse(struct example *example, int count, const char **words, char *problem)
{
    const struct option *const tables[] = {example_options, NULL};
    const char *asked = NULL;
    char *arguments[16] = {"kernel"};
    for (int i = 0; i < count; i++)
        arguments[i + 1] = (char *)(uintptr_t)words[i];
    return options_parse(count + 1, arguments, tables, example, &asked, problem, 256);
}

static void options_take_units_and_both_spellings(void)
{
    char problem[256] = "";
    struct example example = {0};
    EXPECT(parse(&example, 3, (const char *[]){"--size", "3M", "--choice=bb"}, problem) == 0);
    EXPECT(example.size == 3 << 20);
    EXPECT(example.choice == 1);
    EXPECT(parse(&example, 4, (const char *[]){"--yes", "yes", "--part", "0.25"}, problem) == 0);
    EXPECT(example.yes && example.part == 0.25);
}

static void bad_options_are_named(void)
{
    struct example example = {0};
    const char *bad[][2] = {{"--size", "0"},        {"--size", "-1"},  {"--size", "1e300"}, {"--size", "1.5"},
                            {"--size", "4X"},       {"--size", "nan"}, {"--part", "2"},     {"--yes", "maybe"},
                            {"--choice", "b"},      {"--choice", ""},  {"--sizes", "1"},    {"size", "1"},
                            {"--size", "99999999T"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char problem[256] = "";
        EXPECT(parse(&example, 2, bad[i], problem) == -1);
        EXPECT(strstr(problem, bad[i][0]) != NULL);
    }
    char problem[256] = "";
    EXPECT(parse(&example, 1, (const char *[]){"--size"}, problem) == -1);
    EXPECT(strstr(problem, "missing") != NULL);
}

static void overrides_change_only_what_they_name(void)
{
    const struct option *const tables[] = {example_options, NULL};
    char problem[256] = "";
    struct example example = {.size = 5, .part = 0.5};
    EXPECT(options_override("baseline", "choice=c,size=1K", tables, &example, problem, sizeof problem) == 0);
    EXPECT(example.choice == 2 && example.size == 1024 && example.part == 0.5);
    EXPECT(options_override("baseline", "", tables, &example, problem, sizeof problem) == -1);
    EXPECT(options_override("baseline", "size", tables, &example, problem, sizeof problem) == -1);
    EXPECT(options_override("baseline", "other=1", tables, &example, problem, sizeof problem) == -1);
}

static void readers_are_on_another_host(void)
{
    struct rank_place places[6] = {{.host_index = 0}, {.host_index = 1}, {.host_index = 0},
                                   {.host_index = 1}, {.host_index = 0}, {.host_index = 1}};
    const struct world two_hosts = {.size = 6, .hosts = 2, .places = places};
    int from[6];
    int seen[6] = {0};
    EXPECT(world_reading_from(&two_hosts, 0, from) == 3);
    for (int r = 0; r < 6; r++) {
        EXPECT(places[from[r]].host_index != places[r].host_index);
        seen[from[r]]++;
    }
    for (int r = 0; r < 6; r++)
        EXPECT(seen[r] == 1);
    struct rank_place alone[3] = {{.host_index = 0}, {.host_index = 0}, {.host_index = 0}};
    const struct world one_host = {.size = 3, .hosts = 1, .places = alone};
    EXPECT(world_reading_from(&one_host, 0, from) == 1);
    EXPECT(from[0] == 1 && from[2] == 0);
    EXPECT(world_reading_from(&one_host, 2, from) == 2 && from[0] == 2);
}

static void cached_pages_are_counted(void)
{
    char path[] = "page-cache-XXXXXX";
    enum { BYTES = 1 << 20 };
    static char bytes[BYTES];
    const int fd = mkstemp(path);
    EXPECT(fd >= 0 && write(fd, bytes, BYTES) == BYTES && close(fd) == 0);
    const struct cached_pages written = page_cache_look(path, 0, BYTES);
    EXPECT(written.known && written.total > 0 && written.resident == written.total);
    const struct cached_pages half = page_cache_look(path, BYTES / 2, UINT64_MAX);
    EXPECT(half.known && half.total == written.total / 2);
    EXPECT(page_cache_look(path, 2 * BYTES, 1).total == 0);
    EXPECT(page_cache_write_back(path) == 0 && page_cache_drop(path) == 0);
    EXPECT(!page_cache_look("no such file", 0, 1).known);
    unlink(path);
}

static void boxes_have_their_overlap_in_common(void)
{
    const struct box a = {.start = {0, 5, 10}, .count = {4, 5, 10}};
    struct box common;
    EXPECT(box_common(3, &a, &(struct box){.start = {3, 0, 15}, .count = {9, 7, 2}}, &common));
    EXPECT(common.start[0] == 3 && common.start[1] == 5 && common.start[2] == 15);
    EXPECT(common.count[0] == 1 && common.count[1] == 2 && common.count[2] == 2);
    EXPECT(!box_common(3, &a, &(struct box){.start = {4, 5, 10}, .count = {1, 1, 1}}, &common));
    /* places whose number in an array is beyond 2^32 */
    const uint64_t far = UINT64_C(1) << 33;
    EXPECT(box_common(1, &(struct box){.start = {far}, .count = {9}}, &(struct box){.start = {far + 8}, .count = {9}},
                      &common));
    EXPECT(common.start[0] == far + 8 && common.count[0] == 1);
}

static void pieces_are_full_rows_and_cover_a_box_once_in_order(void)
{
    const struct box whole = {.start = {2, 3, 4}, .count = {5, 6, 7}};
    const uint64_t sizes[] = {1, 2, 6, 7, 8, 20, 42, 43, 100, 209, 210, 1000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct box piece = {0};
        uint64_t next = 0; /* row-major place in WHOLE of the first element that no piece had */
        while (box_next_piece(3, &whole, sizes[s], &piece)) {
            uint64_t place = 0;
            for (int i = 0; i < 3; i++) {
                EXPECT(piece.start[i] >= whole.start[i]);
                EXPECT(piece.start[i] + piece.count[i] <= whole.start[i] + whole.count[i]);
                place = place * whole.count[i] + piece.start[i] - whole.start[i];
            }
            EXPECT(place == next);
            EXPECT(piece.count[0] == 1 || (piece.count[1] == 6 && piece.count[2] == 7));
            EXPECT(piece.count[1] == 1 || piece.count[2] == 7);
            next += piece.count[0] * piece.count[1] * piece.count[2];
            EXPECT(piece.count[0] * piece.count[1] * piece.count[2] <= sizes[s]);
        }
        EXPECT(next == 210);
    }
}

static void a_box_is_copied_between_frames(void)
{
    enum { X = 5, Y = 6 };
    uint64_t from[4 * Y * X] = {0};
    uint64_t to[3 * 4 * 4] = {0};
    const uint64_t count[] = {2, 3, 2};
    const struct frame in_from = {.extent = {4, Y, X}, .start = {1, 2, 3}};
    const struct frame in_to = {.extent = {3, 4, 4}, .start = {1, 0, 2}};
    int copied = 0;
    for (uint64_t i = 0; i < sizeof from / sizeof *from; i++)
        from[i] = i + 1;
    box_copy64(3, count, to, &in_to, from, &in_from);
    for (uint64_t i = 0; i < 2; i++)
        for (uint64_t j = 0; j < 3; j++)
            for (uint64_t k = 0; k < 2; k++)
                EXPECT(to[((i + 1) * 4 + j) * 4 + k + 2] == from[((i + 1) * Y + j + 2) * X + k + 3]);
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        copied += to[i] != 0;
    EXPECT(copied == 12);
}

static void objects_fill_the_tree_evenly_and_once(void)
{
    struct tree tree = {.top = "/t", .ranks = 2, .branch = 3, .objects = 50};
    uint64_t first_leaf = 0;
    EXPECT(tree_count(2, 3, &tree.directories, &first_leaf) == 0);
    EXPECT(tree.directories == 13 && first_leaf == 4);
    EXPECT(tree_count(64, 1, &tree.directories, &first_leaf) == 0);
    EXPECT(tree.directories == 65 && first_leaf == 64);
    EXPECT(tree_count(64, 2, &tree.directories, &first_leaf) == -1);
    for (int leaves = 0; leaves < 2; leaves++) {
        uint64_t next = 0;
        tree_count(2, 3, &tree.directories, &first_leaf);
        tree.first_used = leaves ? first_leaf : 0;
        const uint64_t used = tree.directories - tree.first_used;
        for (uint64_t k = 0; k < tree.directories; k++) {
            char directory[TREE_PATH_BYTES];
            char object[TREE_PATH_BYTES];
            uint64_t first = 0;
            uint64_t count = 0;
            tree_objects_in(&tree, k, &first, &count);
            tree_directory_path(&tree, 1, k, directory);
            EXPECT(k < tree.first_used ? count == 0 : first == next && count - tree.objects / used <= 1);
            for (uint64_t i = first; i < first + count; i++) {
                tree_object_path(&tree, 1, i, false, object);
                EXPECT(strncmp(object, directory, strlen(directory)) == 0);
                EXPECT(strncmp(object + strlen(directory), "/item-1-", 8) == 0);
            }
            next += count;
        }
        EXPECT(next == tree.objects);
    }
}

static void paths_say_tree_rank_and_object(void)
{
    struct tree tree = {.top = "/t", .own = true, .ranks = 4, .branch = 2, .directories = 7, .objects = 7};
    char path[TREE_PATH_BYTES];
    tree_object_path(&tree, 3, 6, false, path);
    EXPECT(strcmp(path, "/t/rank-3/tree-2/tree-6/item-3-6") == 0);
    tree_object_path(&tree, 0, 0, true, path);
    EXPECT(strcmp(path, "/t/rank-0/renamed-0-0") == 0);
    EXPECT(strlen("/t/rank-3/tree-2/tree-6/item-3-6") < tree_longest_path(strlen(tree.top), 2));
}

/* What names_check says of a listing of directory 0 of a tree shared by two ranks with two objects each. */
static bool listing_is_right(int count, const char **found, char *problem)
{
    const struct tree tree = {.top = "/t", .ranks = 2, .branch = 1, .directories = 2, .objects = 4};
    struct names names = {0};
    EXPECT(names_expect_directory(&names, &tree, 0, 0, LEFT_MADE) == 0);
    EXPECT(names.expected == 5);
    for (int i = 0; i < count; i++)
        names_add(&names, found[i]);
    const int result = names_check(&names, problem, 256);
    free(names.text);
    return result == 0;
}

static void a_listing_needs_every_name_once_and_no_other(void)
{
    char problem[256] = "";
    EXPECT(listing_is_right(5, (const char *[]){"item-1-1", "item-0-0", "tree-1", "item-0-1", "item-1-0"}, problem));
    EXPECT(!listing_is_right(4, (const char *[]){"item-1-1", "item-0-0", "tree-1", "item-1-0"}, problem));
    EXPECT(strcmp(problem, "expected 5 names, found 4: item-0-1 is missing") == 0);
    EXPECT(!listing_is_right(5, (const char *[]){"item-1-1", "item-0-0", "tree-1", "item-1-1", "item-1-0"}, problem));
    EXPECT(strcmp(problem, "expected 5 names, found 5: item-1-1 is there twice") == 0);
    const char *wrong[] = {"item-2-0",
                           "item-0-2",
                           "item-00-1",
                           "item-0-1x",
                           "item-0-",
                           "item",
                           "tree-2",
                           "renamed-0-1",
                           "item-0-1-a-name-that-is-longer-than-any-of-ours",
                           "item-18446744073709551616-1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT(!listing_is_right(5, (const char *[]){"item-1-1", "item-0-0", "tree-1", wrong[i], "item-1-0"}, problem));
        EXPECT(strstr(problem, "does not belong there") != NULL);
    }
    const char *many[] = {"item-1-1", "item-0-0", "tree-1", "item-0-1", "item-1-0", "more-1", "more-2", "more-3"};
    EXPECT(!listing_is_right(8, many, problem));
    EXPECT(strcmp(problem, "expected 5 names, found 8: more-1 does not belong there") == 0);
}

int main(void)
{
    boxes_have_their_overlap_in_common();
    pieces_are_full_rows_and_cover_a_box_once_in_order();
    a_box_is_copied_between_frames();
    content_is_checked_word_by_word();
    content_tells_seed_dataset_step_and_place();
    bytes_are_those_of_the_words();
    segments_are_covered_once();
    boxes_are_covered_once_in_the_order_asked_for();
    a_growing_dataset_holds_what_is_written();
    the_content_of_a_transfer_is_that_of_its_place();
    particles_are_finite_and_strided();
    options_take_units_and_both_spellings();
    bad_options_are_named();
    overrides_change_only_what_they_name();
    readers_are_on_another_host();
    cached_pages_are_counted();
    objects_fill_the_tree_evenly_and_once();
    paths_say_tree_rank_and_object();
    a_listing_needs_every_name_once_and_no_other();
    return failures == 0 ? 0 : 1;
}
