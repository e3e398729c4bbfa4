/* A file of datasets through POSIX, MPI-IO, HDF5 or netCDF-4: the same bytes at the same places whichever carries them.
 *
 * A dataset is an array of rows; a row is all elements behind one index of the slowest dimension. An access covers
 * whole rows: COUNT blocks of BLOCK rows, STRIDE rows apart. The raw interfaces put dataset after dataset, each at a
 * multiple of the alignment; HDF5 puts its metadata before and between them. */
#ifndef IOGAUGE_STORE_H
#define IOGAUGE_STORE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum interface { INTERFACE_HDF5, INTERFACE_MPIIO, INTERFACE_POSIX, INTERFACE_NETCDF };

/* Whose a file is: who opens it, and who looks after it. */
enum sharing {
    SHARING_ALL,     /* one file, all ranks */
    SHARING_PROCESS, /* every rank a file of its own */
    SHARING_NODE,    /* a file a host, opened by the host's first rank alone */
    SHARING_ONE      /* one file, opened by rank 0 alone */
};

enum { PARTICLE_MEMBERS = 8, PARTICLE_BYTES = 32, STORE_DIMENSIONS = 4 };

/* Names of a particle's members, VPIC-IO's: six floats and two 32-bit integers, four bytes each. */
extern const char *const particle_member_names[PARTICLE_MEMBERS];

enum element {
    ELEMENT_WORD64, /* uint64 */
    ELEMENT_DOUBLE,
    ELEMENT_BYTE,    /* uint8 */
    ELEMENT_MEMBER,  /* one member of a particle: float or int32 */
    ELEMENT_WRAPPED, /* one member as a compound type with that single member (h5bench's file type for IC) */
    ELEMENT_PARTICLE /* all eight, interleaved */
};

struct dataset {
    char name[64];
    enum element element;
    int member; /* of ELEMENT_MEMBER and ELEMENT_WRAPPED */
    int dimensions;
    uint64_t extent[STORE_DIMENSIONS];
    uint64_t row_bytes;
    uint64_t base_bytes;              /* where the raw interfaces put row 0 */
    uint64_t chunk[STORE_DIMENSIONS]; /* HDF5, netCDF-4: of elements; chunk[0] 0: contiguous */
    unsigned unlimited;               /* HDF5: bit I set: dimension I can grow */
    /* HDF5: what it is made with, store_extend does the rest; [0] 0: EXTENT */
    uint64_t first_extent[STORE_DIMENSIONS];
};

/* Elements START to START + COUNT of every dimension. */
struct box {
    uint64_t start[STORE_DIMENSIONS];
    uint64_t count[STORE_DIMENSIONS];
};

/* COUNT blocks of rows; or, where there are BOXES, these of a dataset of two dimensions: without a common element,
 * those that share a row sharing all their rows, from the first row to the last, from left to right. Packed memory
 * holds the elements in the dataset's order. Nothing at all may be selected: a rank without a part in a collective
 * access. */
struct selection {
    uint64_t first; /* row */
    uint64_t count;
    uint64_t stride;
    uint64_t block;
    const struct box *boxes;
    size_t box_count;
    bool scattered; /* some rank's may be more than one block: collective calls must be the same on all of them */
};

/* An array in memory, larger than the box that is moved: the box lies at START in it (halos around it). */
struct frame {
    uint64_t extent[STORE_DIMENSIONS];
    uint64_t start[STORE_DIMENSIONS];
};

/* HDF5's knobs, as --help names them. */
enum hdf5_driver {
    DRIVER_DEFAULT, /* mpio where ranks share the file, else sec2 */
    DRIVER_MPIO,
    DRIVER_SEC2,
    DRIVER_STDIO,
    DRIVER_CORE,
    DRIVER_SPLIT, /* over sec2 */
    DRIVER_MULTI,
    DRIVER_FAMILY,
    DRIVER_DIRECT,
    DRIVER_SUBFILING
};
enum hdf5_version { VERSION_EARLIEST, VERSION_V18, VERSION_V110, VERSION_LATEST };
enum hdf5_fill { FILL_DEFAULT, FILL_NEVER, FILL_VALUE };
enum async_mode {
    ASYNC_NO,
    ASYNC_IMPLICIT, /* the same calls, made asynchronous by the connector that is loaded */
    ASYNC_EXPLICIT  /* with event sets: the kernel waits for a batch before it touches its memory again */
};
enum hdf5_filter { FILTER_NONE, FILTER_GZIP, FILTER_SZIP };

struct hdf5_settings {
    int driver;            /* enum hdf5_driver */
    int version;           /* enum hdf5_version: the lower bound of the file format */
    int fill;              /* enum hdf5_fill */
    int filter;            /* enum hdf5_filter */
    uint64_t filter_level; /* gzip */
    int szip_coding;       /* 0: nearest neighbour, 1: entropy */
    uint64_t szip_pixels;
    uint64_t meta_block_bytes; /* 0: HDF5's own */
    uint64_t alignment_threshold_bytes;
    bool extendible; /* the slowest dimension has no limit */
    int async;       /* enum async_mode */
};

struct store_settings {
    enum interface interface;
    bool collective;
    bool collective_metadata;
    MPI_Comm comm; /* the ranks that share the file; MPI_COMM_SELF: one opens it alone */
    MPI_Info info; /* hints for MPI-IO, below HDF5 and netCDF too */
    const struct hdf5_settings *hdf5;
    uint64_t alignment_bytes;
    uint8_t *scratch; /* for CI and IC through the raw interfaces: as large as the largest access, made by the caller so
                         that no allocation is measured */
};

struct store;

bool store_has(enum interface interface);

/* Why HDF5 cannot do what SETTINGS ask, for a file that ALONE one rank opens, or NULL: a driver or filter that the
 * library was built without, a driver that ranks cannot share. */
const char *store_lacks(const struct hdf5_settings *settings, bool alone);

/* The element's size in the file. */
uint64_t element_bytes(enum element element);

/* ACT on every file that PATH stands for: several with the drivers split, multi, family and subfiling. Those that are
 * not there are left out, unless PATH is the only one. */
void store_each_file(const char *path, const struct store_settings *settings, void (*act)(const char *path, void *data),
                     void *data);

/* Make a new file at PATH (never one that exists), or open one. Collective over the ranks that share the file. */
struct store *store_create(const char *path, const struct store_settings *settings);
struct store *store_open(const char *path, const struct store_settings *settings);

/* Open one to write into it. Collective likewise. */
struct store *store_update(const char *path, const struct store_settings *settings);

/* Make or open dataset number SLOT (0, 1, ...) of the file. A dataset stays open until the store is closed or the slot
 * is used again. Collective for HDF5. */
void store_make_dataset(struct store *store, int slot, const struct dataset *dataset);
void store_open_dataset(struct store *store, int slot, const struct dataset *dataset);

/* Let the dataset in SLOT, made with a first extent, grow to EXTENT. The raw interfaces' files grow with what is
 * written. */
void store_extend(struct store *store, int slot, const uint64_t *extent);

/* Of a file that another program wrote: has the dataset, opened, the shape it was said to have, and numbers of the
 * size? Returns 0 and has them read as what they are, floats or integers; or -1 with PROBLEM filled. */
int store_check_dataset(struct store *store, int slot, char *problem, size_t problem_bytes);

/* Close a dataset before the store is closed. Collective for HDF5. */
void store_close_dataset(struct store *store, int slot);

/* ASYNC_EXPLICIT only, else nothing happens: what is asked of the store from now on belongs to batch NUMBER; wait for a
 * batch; let the background begin, for the caller computes from now on. */
void store_batch(struct store *store, int number);
void store_wait(struct store *store, int number);
void store_start_background(struct store *store);

enum direction { DIRECTION_WRITE, DIRECTION_READ };

/* Move the rows of SELECTION between the file and MEMORY (the selected rows, packed). */
void store_move(struct store *store, int slot, enum direction direction, const struct selection *selection,
                void *memory);

/* Move the elements of BOX between the file and MEMORY: packed, or lying in FRAME. */
void store_move_box(struct store *store, int slot, enum direction direction, const struct box *box,
                    const struct frame *frame, void *memory);

/* Memory: particles, eight members interleaved. File: one of their members (IC). */
void store_move_member(struct store *store, int slot, enum direction direction, const struct selection *selection,
                       void *particles);

/* Memory: eight arrays one after the other, each the selected rows of a member. File: particles (CI). HDF5 moves member
 * by member, as h5bench does; the raw interfaces interleave in memory and move once. */
void store_move_members(struct store *store, int slot, enum direction direction, const struct selection *selection,
                        void *arrays);

/* Bring what was written to storage: fsync, MPI_File_sync, or H5Fflush and the sync of the file below. */
void store_flush(struct store *store);

void store_close(struct store *store);

/* HDF5's identifier of the file, for a pattern that makes objects of its own in it. */
int64_t store_hdf5_file(const struct store *store);

static inline uint64_t selection_rows(const struct selection *selection)
{
    return selection->count * selection->block;
}

/* Elements of a selection from a dataset whose rows have ROW_ELEMENTS. */
uint64_t selection_elements(const struct selection *selection, uint64_t row_elements);

/* ACT on every run of elements that lie together in the dataset, in the order in which memory holds them: FIRST is the
 * element's number in the dataset. */
void selection_each_run(const struct selection *selection, uint64_t row_elements,
                        void (*act)(uint64_t first, uint64_t count, void *data), void *data);

#endif
