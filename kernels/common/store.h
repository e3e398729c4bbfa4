/* A file of datasets through POSIX, MPI-IO or HDF5: the same bytes at the same places whichever carries them.
 *
 * A dataset is an array of rows; a row is all elements behind one index of the slowest dimension. An access covers
 * whole rows: COUNT blocks of BLOCK rows, STRIDE rows apart. The raw interfaces put dataset after dataset, each at a
 * multiple of the alignment; HDF5 puts its metadata before and between them. */
#ifndef IOGAUGE_STORE_H
#define IOGAUGE_STORE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum interface { INTERFACE_HDF5, INTERFACE_MPIIO, INTERFACE_POSIX };

enum { PARTICLE_MEMBERS = 8, PARTICLE_BYTES = 32, STORE_DIMENSIONS = 3 };

/* Names of a particle's members, VPIC-IO's: six floats and two 32-bit integers, four bytes each. */
extern const char *const particle_member_names[PARTICLE_MEMBERS];

enum element {
    ELEMENT_WORD64,  /* uint64 */
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
    uint64_t base_bytes; /* where the raw interfaces put row 0 */
    uint64_t chunk_rows; /* HDF5: 0 contiguous */
};

struct selection {
    uint64_t first; /* row */
    uint64_t count;
    uint64_t stride;
    uint64_t block;
};

struct store_settings {
    enum interface interface;
    bool collective;
    bool collective_metadata;
    bool file_per_process; /* every rank a file of its own, opened by it alone */
    uint64_t alignment_bytes;
    uint8_t *scratch; /* for CI and IC through the raw interfaces: as large as the largest access, made by the caller so
                         that no allocation is measured */
};

struct store;

bool store_has(enum interface interface);

/* Make a new file at PATH (never one that exists), or open one. Collective over the ranks that share the file. */
struct store *store_create(const char *path, const struct store_settings *settings);
struct store *store_open(const char *path, const struct store_settings *settings);

/* Make or open dataset number SLOT (0, 1, ...) of the file. A dataset stays open until the store is closed or the slot
 * is used again. Collective for HDF5. */
void store_make_dataset(struct store *store, int slot, const struct dataset *dataset);
void store_open_dataset(struct store *store, int slot, const struct dataset *dataset);

enum direction { DIRECTION_WRITE, DIRECTION_READ };

/* Move the rows of SELECTION between the file and MEMORY (the selected rows, packed). */
void store_move(struct store *store, int slot, enum direction direction, const struct selection *selection,
                void *memory);

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

static inline uint64_t selection_rows(const struct selection *selection)
{
    return selection->count * selection->block;
}

#endif
