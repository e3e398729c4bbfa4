/* What the interfaces implement; only store*.c include it. */
#ifndef IOGAUGE_STORE_PARTS_H
#define IOGAUGE_STORE_PARTS_H

#include "store.h"

struct slot {
    struct dataset dataset;
    int64_t dataset_id; /* HDF5 identifiers, kept as integers so that this header needs no HDF5 */
    int64_t space_id;
    int64_t memory_type_id; /* 0: the element's own */
};

struct store {
    const struct store_parts *parts;
    struct store_settings settings;
    char *path;
    bool update; /* opened to write into it */
    struct slot *slots;
    int slot_count;
    void *own; /* the interface's state */
};

struct store_parts {
    void (*open)(struct store *store, bool create);
    void (*open_dataset)(struct store *store, struct slot *slot, bool create);      /* NULL: nothing to do */
    void (*extend)(struct store *store, struct slot *slot, const uint64_t *extent); /* likewise */
    /* NULL, these five: nothing to do */
    int (*check_dataset)(const struct store *store, struct slot *slot, char *problem, size_t problem_bytes);
    void (*close_dataset)(struct store *store, struct slot *slot);
    void (*batch)(struct store *store, int number);
    void (*wait)(struct store *store, int number);
    void (*start_background)(struct store *store);
    void (*move)(struct store *store, const struct slot *slot, enum direction direction,
                 const struct selection *selection, void *memory);
    /* LENGTH bytes that lie together, at OFFSET of the file; raw interfaces only */
    void (*move_run)(struct store *store, enum direction direction, uint64_t offset, uint64_t length, void *memory);
    /* NULL: the common part calls move_run for every run of bytes */
    void (*move_box)(struct store *store, const struct slot *slot, enum direction direction, const struct box *box,
                     const struct frame *frame, void *memory);
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
#ifdef IOGAUGE_HAVE_NETCDF
extern const struct store_parts store_netcdf;
#endif

/* Number of elements in a box of DATASET. */
uint64_t box_elements(const struct dataset *dataset, const struct box *box);

/* Move a box run by run, a run being what lies together both in the file and in memory. */
void each_run(struct store *store, const struct slot *slot, enum direction direction, const struct box *box,
              const struct frame *frame, void *memory);

#endif
