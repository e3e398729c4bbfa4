/* What the three interfaces implement; only store*.c include it. */
#ifndef IOGAUGE_STORE_PARTS_H
#define IOGAUGE_STORE_PARTS_H

#include "store.h"

struct slot {
    struct dataset dataset;
    int64_t dataset_id; /* HDF5 identifiers, kept as integers so that this header needs no HDF5 */
    int64_t space_id;
};

struct store {
    const struct store_parts *parts;
    struct store_settings settings;
    char *path;
    MPI_Comm comm; /* the ranks that share the file */
    struct slot *slots;
    int slot_count;
    void *own; /* the interface's state */
};

struct store_parts {
    void (*open)(struct store *store, bool create);
    void (*open_dataset)(struct store *store, struct slot *slot, bool create); /* NULL: nothing to do */
    void (*move)(struct store *store, const struct slot *slot, enum direction direction,
                 const struct selection *selection, void *memory);
    /* NULL: the common part packs in memory and calls move */
    void (*move_member)(struct store *store, const struct slot *slot, enum direction direction,
                        const struct selection *selection, void *particles);
    void (*move_members)(struct store *store, const struct slot *slot, enum direction direction,
                         const struct selection *selection, void *arrays);
    void (*flush)(struct store *store);
    void (*close)(struct store *store);
};

extern const struct store_parts store_posix;
extern const struct store_parts store_mpiio;
#ifdef IOGAUGE_HAVE_HDF5
extern const struct store_parts store_hdf5;
#endif

#endif
