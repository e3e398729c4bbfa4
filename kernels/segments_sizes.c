#include "segments_sizes.h"

#include <stdio.h>

enum { WORD = 8 };

#define FIELD(member) offsetof(struct segments_settings, member)

const struct option segments_options[] = {
    {"bytes-per-process", OPTION_BYTES, FIELD(bytes_per_process), 0, OPTION_MAX, NULL,
     "a rank's in a dataset: as many segments as that takes; 0: --segments says it"},
    {"segments", OPTION_COUNT, FIELD(segments), 1, OPTION_MAX, NULL, "blocks a rank has in a dataset"},
    {"block", OPTION_BYTES, FIELD(block_bytes), 8, OPTION_MAX, NULL, "bytes of a rank's block"},
    {"transfer", OPTION_BYTES, FIELD(transfer_bytes), 8, OPTION_MAX, NULL,
     "bytes moved by one call; divides the block, or is several blocks"},
    {"layout", OPTION_CHOICE, FIELD(layout), 0, 0, "contiguous|interleaved", "ranks one after the other, or in turn"},
    {"geometry", OPTION_CHOICE, FIELD(geometry), 0, 0, "1d|2d",
     "2d: the dataset is a square whose side is all ranks' bytes, the block a square, the transfer a row of blocks"},
    {"dims", OPTION_DIMS, FIELD(dims), 1, OPTION_MAX, NULL,
     "bytes of a dataset in every dimension, slowest first; then segments, block and transfer do not count"},
    {"transfer-dims", OPTION_DIMS, FIELD(transfer_dims), 1, OPTION_MAX, NULL, "--dims: bytes moved by one call"},
    {"order", OPTION_DIMS, FIELD(order), 1, STORE_DIMENSIONS, NULL,
     "--dims: the dimensions, from 1, as they are traversed; 0: 1x2x..."},
    {"datasets", OPTION_COUNT, FIELD(datasets), 1, 100000, NULL, "datasets in a file"},
    {"files", OPTION_COUNT, FIELD(files), 1, 100000, NULL, "files, one after the other"},
    {"chunk", OPTION_DIMS, FIELD(chunk), 1, OPTION_MAX, NULL,
     "HDF5: bytes of a chunk, in every dimension; 0: contiguous"},
    {"grow", OPTION_YESNO, FIELD(grow), 0, 0, NULL,
     "HDF5: an extendible dataset begins with one transfer and grows as it is written"},
    {0}};

void segments_defaults(void *settings)
{
    struct segments_settings *s = settings;
    s->segments = 1;
    s->block_bytes = 64 << 20;
    s->transfer_bytes = 1 << 20;
    s->datasets = s->files = 1;
}

uint64_t segments_sharers(const struct segments_settings *s, int ranks)
{
    return s->common.file_per_process ? 1 : (uint64_t)ranks;
}

const char *segments_dims_text(const struct dims *dims, char *buffer, size_t bytes)
{
    size_t used = 0;
    snprintf(buffer, bytes, "0");
    for (int i = 0; i < dims->count && used < bytes; i++)
        used +=
            (size_t)snprintf(buffer + used, bytes - used, "%s%llu", i == 0 ? "" : "x", (unsigned long long)dims->n[i]);
    return buffer;
}

/* Segments, blocks and transfers of 1-D and square datasets; EXTENT is filled with the dataset's. */
static int check_segments(struct segments_settings *s, uint64_t sharing, struct dims *extent, char *problem,
                          size_t bytes)
{
    const unsigned long long block = s->block_bytes;
    const unsigned long long transfer = s->transfer_bytes;
    uint64_t line = 0;
    if (s->transfer_dims.count > 0 || s->order.count > 0)
        return snprintf(problem, bytes, "--transfer-dims and --order: belong to --dims, which is missing"), -1;
    if (s->bytes_per_process % block != 0)
        return snprintf(problem, bytes, "--bytes-per-process %llu: not a multiple of --block %llu",
                        (unsigned long long)s->bytes_per_process, block),
               -1;
    if (s->bytes_per_process > 0)
        s->segments = s->bytes_per_process / block;
    const unsigned long long segments = s->segments;
    if (checked_product(segments, block, &line) || checked_product(line, sharing, &line))
        return snprintf(problem, bytes,
                        "--segments %llu times --block %llu, %llu ranks to a file: more bytes than a file offset holds",
                        segments, block, (unsigned long long)sharing),
               -1;
    if (s->geometry == GEOMETRY_2D) {
        *extent = (struct dims){{line, line}, 2};
        return 0;
    }
    *extent = (struct dims){{line}, 1};
    if (transfer % WORD != 0 || block % WORD != 0)
        return snprintf(problem, bytes, "--%s %llu: not a multiple of 8", transfer % WORD != 0 ? "transfer" : "block",
                        transfer % WORD != 0 ? transfer : block),
               -1;
    if (block % transfer != 0 && transfer % block != 0)
        return snprintf(problem, bytes, "--transfer %llu: does not divide --block %llu, nor is it several blocks",
                        transfer, block),
               -1;
    if (transfer > block && segments % (transfer / block) != 0)
        return snprintf(problem, bytes, "--transfer %llu: it is %llu blocks, which does not divide --segments %llu",
                        transfer, transfer / block, segments),
               -1;
    return 0;
}

/* The dimensions as they are traversed, completed: a square line by line, an array as h5perf_serial does. ORDER is
 * filled with them, from 0. */
static int check_order(struct segments_settings *s, int dimensions, int *order, char *problem, size_t bytes)
{
    char text[96];
    unsigned seen = 0;
    if (s->order.count == 0)
        for (int i = 0; i < dimensions; i++)
            s->order.n[s->order.count++] = (uint64_t)(s->geometry == GEOMETRY_2D ? dimensions - i : i + 1);
    for (int i = 0; i < dimensions; i++) {
        order[i] = (int)s->order.n[i] - 1;
        seen |= i < s->order.count ? 1U << order[i] : 0;
    }
    if (s->order.count != dimensions || seen != (1U << dimensions) - 1)
        return snprintf(problem, bytes, "--order %s: each of the numbers 1 to %d once is expected, with an x between",
                        segments_dims_text(&s->order, text, sizeof text), dimensions),
               -1;
    return 0;
}

/* Boxes in an array of EXTENT: --dims, or the square of --geometry 2d. */
static int check_boxes(struct segments_settings *s, uint64_t sharing, const struct dims *extent, char *problem,
                       size_t bytes)
{
    const bool square = s->geometry == GEOMETRY_2D;
    const bool interleaved = s->layout == LAYOUT_INTERLEAVED;
    const struct dims lying = {{s->block_bytes, s->transfer_bytes}, 2};
    const struct dims standing = {{s->transfer_bytes, s->block_bytes}, 2};
    const struct dims *box = !square ? &s->transfer_dims : interleaved ? &standing : &lying;
    int order[STORE_DIMENSIONS];
    char whole[96];
    char part[96];
    segments_dims_text(extent, whole, sizeof whole);
    segments_dims_text(box, part, sizeof part);
    if (square && s->dims.count > 0)
        return snprintf(problem, bytes, "--geometry 2d: its square is not to be had with --dims %s", whole), -1;
    if (box->count != extent->count)
        return snprintf(problem, bytes, "--transfer-dims %s: as many dimensions as --dims %s has are expected", part,
                        whole),
               -1;
    if (check_order(s, extent->count, order, problem, bytes) != 0)
        return -1;
    for (int i = 0; i < extent->count; i++)
        if (extent->n[i] % box->n[i] != 0)
            return snprintf(problem, bytes,
                            "--%s: a transfer of %s bytes does not divide the dataset of %s, dimension %d",
                            square ? "transfer" : "transfer-dims", part, whole, i + 1),
                   -1;
    const int shared = interleaved ? extent->count - 1 : 0;
    if (extent->n[shared] / box->n[shared] % sharing != 0)
        return snprintf(
                   problem, bytes,
                   "--layout %s: dimension %d of the dataset of %s bytes has %llu transfers of %s, which %llu ranks "
                   "cannot share equally",
                   interleaved ? "interleaved" : "contiguous", shared + 1, whole,
                   (unsigned long long)(extent->n[shared] / box->n[shared]), part, (unsigned long long)sharing),
               -1;
    s->walk = walk_of_boxes(sharing, extent->count, extent->n, box->n, order, interleaved);
    return 0;
}

/* All files together are as large as a file offset holds. */
static int check_size(const struct segments_settings *s, const struct dims *extent, uint64_t groups, char *problem,
                      size_t bytes)
{
    uint64_t product = s->datasets * s->files * groups;
    bool fits = true;
    char text[96];
    for (int i = 0; i < extent->count; i++)
        fits = fits && checked_product(product, extent->n[i], &product) == 0;
    if (!fits)
        return snprintf(problem, bytes, "%llu files of %llu datasets of %s bytes: more bytes than a file offset holds",
                        (unsigned long long)(s->files * groups), (unsigned long long)s->datasets,
                        segments_dims_text(extent, text, sizeof text)),
               -1;
    return 0;
}

/* MPI counts in ints: the bytes of a transfer, and of a dimension where a file view describes the box. */
static int check_counts(const struct segments_settings *s, const struct dims *extent, char *problem, size_t bytes)
{
    uint64_t most = walk_transfer_bytes(&s->walk);
    for (int i = 0; i < extent->count && s->common.collective; i++)
        most = extent->n[i] > most ? extent->n[i] : most;
    if (most > INT32_MAX)
        return snprintf(problem, bytes,
                        "--interface mpiio: %llu bytes in a transfer, or of a dimension moved collectively, are more "
                        "than MPI's count holds",
                        (unsigned long long)most),
               -1;
    return 0;
}

static int check_chunk(const struct segments_settings *s, const struct dims *extent, char *problem, size_t bytes)
{
    char chunk[96];
    char whole[96];
    segments_dims_text(&s->chunk, chunk, sizeof chunk);
    if (s->chunk.count != 0 && s->chunk.count != extent->count)
        return snprintf(problem, bytes, "--chunk %s: as many dimensions as the dataset of %s bytes has are expected",
                        chunk, segments_dims_text(extent, whole, sizeof whole)),
               -1;
    if (s->walk.element == ELEMENT_WORD64 && s->chunk.n[0] % WORD != 0)
        return snprintf(problem, bytes, "--chunk %s: not a multiple of 8", chunk), -1;
    return 0;
}

static int check_grow(const struct segments_settings *s, uint64_t sharing, char *problem, size_t bytes)
{
    if (!s->grow || s->common.interface != INTERFACE_HDF5)
        return 0;
    if (sharing > 1)
        return snprintf(problem, bytes,
                        "--grow yes: %llu ranks share a file; it is for one rank or --file-per-process yes",
                        (unsigned long long)sharing),
               -1;
    if (!s->common.hdf5.extendible || s->chunk.count == 0)
        return snprintf(problem, bytes, "--grow yes: needs --extendible yes and --chunk"), -1;
    return 0;
}

int segments_check(void *settings, int ranks, char *problem, size_t bytes)
{
    struct segments_settings *s = settings;
    const uint64_t sharing = segments_sharers(s, ranks);
    struct dims extent = s->dims;
    if (extent.count == 0 && check_segments(s, sharing, &extent, problem, bytes) != 0)
        return -1;
    if (check_size(s, &extent, (uint64_t)ranks / sharing, problem, bytes) != 0)
        return -1;
    if (s->dims.count == 0 && s->geometry == GEOMETRY_1D)
        s->walk =
            walk_of_segments(sharing, s->segments, s->block_bytes, s->transfer_bytes, s->layout == LAYOUT_INTERLEAVED);
    else if (check_boxes(s, sharing, &extent, problem, bytes) != 0)
        return -1;
    if (s->walk.element == ELEMENT_BYTE && s->common.interface == INTERFACE_MPIIO &&
        check_counts(s, &extent, problem, bytes) != 0)
        return -1;
    if (check_chunk(s, &extent, problem, bytes) != 0)
        return -1;
    return check_grow(s, sharing, problem, bytes);
}
