#include "cases.h"

#include "failure.h"
#include "hints.h"

#include <stdlib.h>
#include <string.h>

#define COMMON(member) offsetof(struct common_settings, member)

const struct option common_options[] = {
    {"dir", OPTION_TEXT, COMMON(dir), 0, 0, NULL, "existing folder for the files (required)"},
    {"operation", OPTION_CHOICE, COMMON(operation), 0, 0, "write,read|write|read",
     "read alone takes files that an earlier run kept"},
    {"interface", OPTION_CHOICE, COMMON(interface), 0, 0, "hdf5|mpiio|posix|netcdf", "what carries the bytes"},
    {"collective", OPTION_YESNO, COMMON(collective), 0, 0, NULL, "collective data transfers"},
    {"collective-metadata", OPTION_YESNO, COMMON(collective_metadata), 0, 0, NULL, "HDF5: collective metadata"},
    {"file-per-process", OPTION_YESNO, COMMON(file_per_process), 0, 0, NULL, "every rank a file of its own"},
    {"alignment", OPTION_BYTES, COMMON(alignment_bytes), 0, 1099511627776.0, NULL,
     "datasets begin at multiples of this; 0: wherever"},
    {"alignment-threshold", OPTION_BYTES, COMMON(hdf5.alignment_threshold_bytes), 0, 1099511627776.0, NULL,
     "HDF5: smaller objects are not aligned"},
    {"driver", OPTION_CHOICE, COMMON(hdf5.driver), 0, 0,
     "default|mpio|sec2|stdio|core|split|multi|family|direct|subfiling", "HDF5: file driver"},
    {"libver", OPTION_CHOICE, COMMON(hdf5.version), 0, 0, "earliest|v18|v110|latest",
     "HDF5: oldest version that must read the file"},
    {"meta-block", OPTION_BYTES, COMMON(hdf5.meta_block_bytes), 0, 1073741824.0, NULL,
     "HDF5: metadata come in blocks of this; 0: HDF5's own"},
    {"fill", OPTION_CHOICE, COMMON(hdf5.fill), 0, 0, "default|never|value", "HDF5: value before anything is written"},
    {"compress", OPTION_CHOICE, COMMON(hdf5.filter), 0, 0, "none|gzip|szip", "HDF5: filter of chunked datasets"},
    {"szip-coding", OPTION_CHOICE, COMMON(hdf5.szip_coding), 0, 0, "nn|ec", "szip's: nearest neighbour or entropy"},
    {"szip-pixels", OPTION_COUNT, COMMON(hdf5.szip_pixels), 2, 32, NULL, "szip's pixels in a block: even"},
    {"compress-level", OPTION_COUNT, COMMON(hdf5.filter_level), 0, 9, NULL, "gzip's"},
    {"extendible", OPTION_YESNO, COMMON(hdf5.extendible), 0, 0, NULL, "HDF5: no limit to the slowest dimension"},
    {"mpi-info", OPTION_TEXT, COMMON(mpi_info), 0, 0, NULL,
     "hints for MPI-IO, HDF5 and netCDF: KEY=VALUE[;KEY=VALUE...]"},
    {"processes", OPTION_COUNT, COMMON(processes), 0, 1000000, NULL, "ranks that take part, the first ones; 0: all"},
    {"fsync", OPTION_YESNO, COMMON(fsync), 0, 0, NULL, "bring data to storage before close: the flush phase"},
    {"repeats", OPTION_COUNT, COMMON(repeats), 1, 100000, NULL, "measured repeats"},
    {"warmup", OPTION_COUNT, COMMON(warmup), 0, 1000, NULL, "repeats before them, not reported"},
    {"drop-cache", OPTION_YESNO, COMMON(drop_cache), 0, 0, NULL, "ask the system to drop the file before a read"},
    {"shift", OPTION_COUNT, COMMON(shift), 0, 1000000, NULL,
     "read what the rank this many places on wrote; 0: another host's"},
    {"seed", OPTION_COUNT, COMMON(seed), 0, OPTION_MAX, NULL, "of the data"},
    {"keep", OPTION_YESNO, COMMON(keep), 0, 0, NULL, "keep the last repeat's files"},
    {"keep-empty", OPTION_YESNO, COMMON(keep_empty), 0, 0, NULL,
     "keep those of the case itself, not its baselines', emptied: their layout on the storage can still be read"},
    {"json", OPTION_TEXT, COMMON(json), 0, 0, NULL, "file for the records; else stdout's last lines"},
    {"baseline", OPTION_LIST, COMMON(baselines), 0, 0, NULL,
     "NAME=VALUE[,...]: the case with these options changed, interleaved with it"},
    {"sweep", OPTION_LIST, COMMON(sweeps), 0, 0, NULL,
     "NAME=VALUE|VALUE[|...]: a case for each value; several sweeps: for each combination"},
    {"cases", OPTION_TEXT, COMMON(cases), 0, 0, NULL,
     "of a sweep: only cases whose name fits, such as '*rank=2*', or the case of that number"},
    {"resume", OPTION_YESNO, COMMON(resume), 0, 0, NULL,
     "of a sweep that was cut off: only the cases not in --json yet"},
    {0}};

const char *common_choices(const char *name)
{
    const struct option *option = common_options;
    while (option->name != NULL && strcmp(option->name, name) != 0)
        option++;
    return option->choices;
}

void common_defaults(struct common_settings *common)
{
    common->fsync = common->drop_cache = true;
    common->repeats = 5;
    common->warmup = common->seed = 1;
    common->hdf5.filter_level = 6;
    common->hdf5.szip_pixels = 8;
    common->hdf5.alignment_threshold_bytes = 4096;
}

/* Opened by one rank alone. */
static bool alone(const struct common_settings *common)
{
    return common->sharing != SHARING_ALL;
}

static int check_hdf5(const struct common_settings *common, int ranks, char *problem, size_t bytes)
{
    const struct hdf5_settings *hdf5 = &common->hdf5;
    const char *lacks = common->interface == INTERFACE_HDF5 ? store_lacks(hdf5, alone(common) || ranks == 1) : NULL;
    if (lacks != NULL)
        return snprintf(problem, bytes, "%s", lacks), -1;
    if (common->interface == INTERFACE_HDF5 && hdf5->driver == DRIVER_MPIO && alone(common))
        return snprintf(problem, bytes, "--driver mpio: only for a shared file"), -1;
    if (hdf5->szip_pixels % 2 != 0)
        return snprintf(problem, bytes, "--szip-pixels %llu: an even number is needed",
                        (unsigned long long)hdf5->szip_pixels),
               -1;
    if (hdf5->driver == DRIVER_FAMILY && strchr(common->dir, '%') != NULL)
        return snprintf(problem, bytes, "--driver family: HDF5 takes the %% in --dir %s for its own", common->dir), -1;
    return 0;
}

static int check_interface(const struct common_settings *common, const struct pattern *pattern, char *problem,
                           size_t bytes)
{
    if (common->interface == INTERFACE_NETCDF && !pattern->netcdf)
        return snprintf(problem, bytes, "--interface netcdf: not for %s; allowed: hdf5|mpiio|posix", pattern->name), -1;
    if (store_has((enum interface)common->interface))
        return 0;
    if (common->interface == INTERFACE_NETCDF)
        return snprintf(problem, bytes,
                        "--interface netcdf: these kernels were built without netCDF-4: a parallel netCDF library is "
                        "missing that was built with their MPI and HDF5 (Debian with Open MPI: libnetcdf-mpi-dev)"),
               -1;
    return snprintf(problem, bytes, "--interface hdf5: these kernels were built without HDF5"), -1;
}

static int check_common(const struct common_settings *common, int ranks, char *problem, size_t bytes)
{
    const bool shared_hdf5 = common->interface == INTERFACE_HDF5 && !alone(common);
    if (common->collective && common->interface == INTERFACE_POSIX)
        return snprintf(problem, bytes, "--collective yes: --interface posix has no collective transfers"), -1;
    if (common->collective && alone(common))
        return snprintf(problem, bytes,
                        "--collective yes: where one rank opens a file alone (--file-per-process yes, or one writer) "
                        "there is nobody to share with"),
               -1;
    if (common->collective_metadata && !shared_hdf5)
        return snprintf(problem, bytes, "--collective-metadata yes: only for a shared file through HDF5"), -1;
    if (common->alignment_bytes % 8 != 0)
        return snprintf(problem, bytes, "--alignment %llu: not a multiple of 8",
                        (unsigned long long)common->alignment_bytes),
               -1;
    if (hints_check(common->mpi_info, problem, bytes) != 0)
        return -1;
    return check_hdf5(common, ranks, problem, bytes);
}

/* Chunks fit their dataset; filters and limits that need chunks have them. */
static int check_chunks(const struct common_settings *common, const struct layout *layout, int ranks, char *problem,
                        size_t bytes)
{
    const struct hdf5_settings *hdf5 = &common->hdf5;
    if (common->interface != INTERFACE_HDF5 && common->interface != INTERFACE_NETCDF)
        return 0;
    for (int d = 0; d < layout->count; d++) {
        const struct dataset *dataset = &layout->datasets[d];
        uint64_t chunk_bytes = element_bytes(dataset->element);
        if (dataset->chunk[0] == 0 && (hdf5->filter != FILTER_NONE || hdf5->extendible))
            return snprintf(problem, bytes, "%s: a chunked dataset is needed; see --chunk",
                            hdf5->extendible ? "--extendible yes" : "--compress"),
                   -1;
        for (int i = 0; i < dataset->dimensions && dataset->chunk[0] > 0; i++) {
            if (dataset->chunk[i] > dataset->extent[i])
                return snprintf(problem, bytes, "--chunk: %llu elements in dimension %d, more than the dataset's %llu",
                                (unsigned long long)dataset->chunk[i], i + 1, (unsigned long long)dataset->extent[i]),
                       -1;
            if (checked_product(chunk_bytes, dataset->chunk[i], &chunk_bytes) || chunk_bytes > UINT32_MAX)
                return snprintf(problem, bytes, "--chunk: a chunk of 4 GiB or more is more than HDF5 takes"), -1;
        }
    }
    if (hdf5->filter != FILTER_NONE && !alone(common) && ranks > 1 && !common->collective)
        return snprintf(problem, bytes,
                        "--compress: ranks that share a file must write collectively; --collective yes"),
               -1;
    return 0;
}

/* A baseline is measured beside its case, repeat by repeat: what shapes the run is not its own. */
static int apply_differences(const char *differs, const struct option *const *tables, struct common_settings *common,
                             char *problem, size_t bytes)
{
    const struct common_settings before = *common;
    if (options_override("baseline", differs, tables, common, problem, bytes) != 0)
        return -1;
    if (common->dir != before.dir || common->json != before.json || common->operation != before.operation ||
        common->repeats != before.repeats || common->warmup != before.warmup || common->keep != before.keep ||
        common->keep_empty != before.keep_empty || common->drop_cache != before.drop_cache ||
        common->shift != before.shift || common->seed != before.seed ||
        common->baselines.count != before.baselines.count || common->sweeps.count != before.sweeps.count ||
        common->cases != before.cases || common->resume != before.resume)
        return snprintf(problem, bytes,
                        "--baseline %s: a baseline shares dir, json, operation, repeats, warmup, keep, keep-empty, "
                        "drop-cache, "
                        "shift, seed, sweep, cases and resume with the case",
                        differs),
               -1;
    return 0;
}

/* What the interface cannot do is not asked of a baseline: one through POSIX is an independent one. */
static void drop_impossible(struct common_settings *common)
{
    if (common->interface == INTERFACE_POSIX || common->file_per_process)
        common->collective = false;
    if (common->interface != INTERFACE_HDF5 || common->file_per_process)
        common->collective_metadata = false;
    if (common->interface != INTERFACE_HDF5)
        common->hdf5.async = ASYNC_NO;
}

static struct store_settings store_of(const struct a_case *c)
{
    const struct common_settings *common = c->common;
    return (struct store_settings){.interface = (enum interface)common->interface,
                                   .collective = common->collective,
                                   .collective_metadata = common->collective_metadata,
                                   .comm = alone(common) ? MPI_COMM_SELF : c->world.comm,
                                   .info = hints_make(common->mpi_info),
                                   .hdf5 = &common->hdf5,
                                   .alignment_bytes = common->alignment_bytes};
}

/* The ranks that take part, and whose data each of them reads. */
static int choose_ranks(struct a_case *c, const struct world *world, char *problem, size_t bytes)
{
    const struct common_settings *common = c->common;
    const int ranks = common->processes == 0 ? world->size : (int)common->processes;
    if (ranks > world->size)
        return snprintf(problem, bytes, "--processes %d: there are %d ranks; 0 to %d is allowed", ranks, world->size,
                        world->size),
               -1;
    if (common->shift > 0 && common->shift >= (uint64_t)ranks)
        return snprintf(problem, bytes, "--shift %llu: there are %d ranks; 0 to %d is allowed",
                        (unsigned long long)common->shift, ranks, ranks - 1),
               -1;
    c->world = ranks == world->size ? *world : world_of_first(world, ranks);
    c->reading_from = malloc((size_t)ranks * sizeof *c->reading_from);
    if (c->reading_from == NULL)
        return snprintf(problem, bytes, "out of memory for %d ranks", ranks), -1;
    c->shift = world_reading_from(&c->world, (int)common->shift, c->reading_from);
    return 0;
}

int case_make(struct a_case *c, const struct pattern *pattern, const struct world *world, const void *settings,
              const char *from_sweep, const char *differs, char *problem, size_t bytes)
{
    const struct option *const tables[] = {common_options, pattern->options, NULL};
    *c = (struct a_case){.differs = differs, .settings = malloc(pattern->settings_bytes)};
    if (c->settings == NULL)
        return snprintf(problem, bytes, "out of memory"), -1;
    memcpy(c->settings, settings, pattern->settings_bytes);
    struct common_settings *common = c->settings;
    c->common = common;
    if (from_sweep != NULL && options_override("sweep", from_sweep, tables, common, problem, bytes) != 0)
        return -1;
    if (differs != NULL) {
        if (apply_differences(differs, tables, common, problem, bytes) != 0)
            return -1;
        drop_impossible(common);
    }
    if (pattern->adjust != NULL)
        pattern->adjust(common);
    common->sharing = common->file_per_process ? SHARING_PROCESS : SHARING_ALL;
    if (check_interface(common, pattern, problem, bytes) != 0 || choose_ranks(c, world, problem, bytes) != 0 ||
        pattern->check(common, c->world.size, problem, bytes) != 0 ||
        check_common(common, c->world.size, problem, bytes) != 0)
        return -1;
    c->store = store_of(c);
    if (pattern->operations != NULL)
        return 0;
    pattern->layout(common, c->world.size, &c->layout);
    if (common->interface == INTERFACE_MPIIO && pattern->access_bytes(common) / 4 > INT32_MAX)
        return snprintf(problem, bytes, "--interface mpiio: one access of %llu bytes is more than MPI's count holds",
                        (unsigned long long)pattern->access_bytes(common)),
               -1;
    return check_chunks(common, &c->layout, c->world.size, problem, bytes);
}

void case_free(struct a_case *c)
{
    if (c->world.comm != MPI_COMM_WORLD && c->world.comm != MPI_COMM_NULL)
        MPI_OK(MPI_Comm_free(&c->world.comm), "MPI");
    if (c->common != NULL && c->store.hdf5 != NULL) /* made to its end */
        hints_free(&c->store.info);
    free(c->settings);
    free(c->reading_from);
    free(c->layout.datasets);
    free(c->store.scratch);
    free(c->results);
}
