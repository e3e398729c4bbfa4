/* h5layout FILE: how HDF5 has laid out a file, as one JSON document: the superblock, the file's space, and of every
 * object its header, of every dataset its type, its shape and where its bytes lie. Reads the file, changes nothing. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call of HDF5 that fails ends the program: half a layout is none. */
static long long checked(long long answer, const char *call, const char *name)
{
    if (answer < 0) {
        fprintf(stderr, "h5layout: error: %s: %s failed\n", name, call);
        exit(2);
    }
    return answer;
}
#define CHECKED(call, name) checked((long long)(call), #call, name)

static void put_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
            printf("\\u%04x", (unsigned)(unsigned char)*text);
        else
            putchar(*text);
    putchar('"');
}

static void put_numbers(const char *key, const hsize_t *numbers, int count)
{
    printf(", \"%s\": [", key);
    for (int i = 0; i < count; i++)
        if (numbers[i] == H5S_UNLIMITED)
            printf("%s-1", i > 0 ? ", " : "");
        else
            printf("%s%llu", i > 0 ? ", " : "", (unsigned long long)numbers[i]);
    putchar(']');
}

/* --- objects -------------------------------------------------------------------------------------------------- */

static void put_header(hid_t object, const char *name)
{
#if H5_VERSION_GE(1, 12, 0)
    H5O_native_info_t info;
    H5O_info2_t counts;
    CHECKED(H5Oget_native_info(object, &info, H5O_NATIVE_INFO_HDR), name);
    CHECKED(H5Oget_info3(object, &counts, H5O_INFO_NUM_ATTRS), name);
#else
    H5O_info_t info;
    CHECKED(H5Oget_info(object, &info), name);
    const H5O_info_t counts = info;
#endif
    printf(", \"header_version\": %u, \"header_messages\": %u, \"header_bytes\": %llu, \"header_free_bytes\": %llu, "
           "\"attributes\": %llu",
           info.hdr.version, info.hdr.nmesgs, (unsigned long long)info.hdr.space.total,
           (unsigned long long)info.hdr.space.free, (unsigned long long)counts.num_attrs);
}

static void put_group(hid_t group, const char *name)
{
    H5G_info_t info;
    CHECKED(H5Gget_info(group, &info), name);
    const char *storage = info.storage_type == H5G_STORAGE_TYPE_SYMBOL_TABLE ? "symbol table"
                          : info.storage_type == H5G_STORAGE_TYPE_COMPACT    ? "compact"
                                                                             : "dense";
    printf(", \"links\": %llu, \"link_storage\": \"%s\"", (unsigned long long)info.nlinks, storage);
}

static void put_type(hid_t dataset, const char *name)
{
    static const char *const classes[] = {"integer",  "float",     "time", "string", "bitfield", "opaque",
                                          "compound", "reference", "enum", "vlen",   "array",    "complex"};
    const hid_t type = CHECKED(H5Dget_type(dataset), name);
    const size_t class = (size_t)CHECKED(H5Tget_class(type), name);
    printf(", \"type\": \"%s\", \"element_bytes\": %llu",
           class < sizeof classes / sizeof *classes ? classes[class] : "other", (unsigned long long)H5Tget_size(type));
    H5Tclose(type);
}

static int put_space(hid_t dataset, const char *name)
{
    hsize_t extent[H5S_MAX_RANK];
    hsize_t limit[H5S_MAX_RANK];
    const hid_t space = CHECKED(H5Dget_space(dataset), name);
    const int dimensions = (int)CHECKED(H5Sget_simple_extent_dims(space, extent, limit), name);
    put_numbers("extent", extent, dimensions);
    put_numbers("limit", limit, dimensions);
    H5Sclose(space);
    return dimensions;
}

static void put_filters(hid_t made, const char *name)
{
    const int count = (int)CHECKED(H5Pget_nfilters(made), name);
    printf(", \"filters\": [");
    for (int i = 0; i < count; i++) {
        unsigned flags = 0;
        size_t values = 0;
        char filter[64] = "";
        unsigned configuration = 0;
        CHECKED(H5Pget_filter2(made, (unsigned)i, &flags, &values, NULL, sizeof filter, filter, &configuration), name);
        printf("%s", i > 0 ? ", " : "");
        put_text(filter);
    }
    putchar(']');
}

/* Where each chunk lies and how long it is. */
static void put_chunks(hid_t dataset, const char *name)
{
    printf(", \"chunks\": [");
#if H5_VERSION_GE(1, 10, 5)
    hsize_t count = 0;
    const hid_t space = CHECKED(H5Dget_space(dataset), name);
    CHECKED(H5Dget_num_chunks(dataset, space, &count), name);
    for (hsize_t i = 0; i < count; i++) {
        hsize_t offset[H5S_MAX_RANK];
        unsigned mask = 0;
        haddr_t address = 0;
        hsize_t bytes = 0;
        CHECKED(H5Dget_chunk_info(dataset, space, i, offset, &mask, &address, &bytes), name);
        printf("%s[%llu, %llu]", i > 0 ? ", " : "", (unsigned long long)address, (unsigned long long)bytes);
    }
    H5Sclose(space);
#else
    (void)dataset;
    (void)name;
#endif
    putchar(']');
}

static void put_layout(hid_t dataset, hid_t made, int dimensions, const char *name)
{
    hsize_t chunk[H5S_MAX_RANK];
    haddr_t address = HADDR_UNDEF;
    switch (H5Pget_layout(made)) {
    case H5D_CONTIGUOUS:
        address = H5Dget_offset(dataset); /* undefined until something is written */
        printf(", \"layout\": \"contiguous\"");
        if (address != HADDR_UNDEF)
            printf(", \"offset\": %llu", (unsigned long long)address);
        break;
    case H5D_CHUNKED:
        printf(", \"layout\": \"chunked\"");
        put_numbers("chunk", chunk, (int)CHECKED(H5Pget_chunk(made, dimensions, chunk), name));
        put_chunks(dataset, name);
        break;
    case H5D_COMPACT:
        printf(", \"layout\": \"compact\"");
        break;
    default:
        printf(", \"layout\": \"other\"");
    }
}

static void put_dataset(hid_t dataset, const char *name)
{
    static const char *const allocations[] = {"default", "early", "late", "incremental"};
    static const char *const fills[] = {"allocation", "never", "if set"};
    H5D_alloc_time_t allocation = H5D_ALLOC_TIME_DEFAULT;
    H5D_fill_time_t fill = H5D_FILL_TIME_ALLOC;
    const hid_t made = CHECKED(H5Dget_create_plist(dataset), name);
    put_type(dataset, name);
    const int dimensions = put_space(dataset, name);
    put_layout(dataset, made, dimensions, name);
    put_filters(made, name);
    CHECKED(H5Pget_alloc_time(made, &allocation), name);
    CHECKED(H5Pget_fill_time(made, &fill), name);
    printf(", \"stored_bytes\": %llu, \"allocated\": \"%s\", \"filled\": \"%s\"",
           (unsigned long long)H5Dget_storage_size(dataset), allocations[allocation], fills[fill]);
    H5Pclose(made);
}

/* DATA: what stands before it. */
#if H5_VERSION_GE(1, 12, 0)
static herr_t put_object(hid_t top, const char *name, const H5O_info2_t *info, void *data)
#else
static herr_t put_object(hid_t top, const char *name, const H5O_info_t *info, void *data)
#endif
{
    const char **comma = data;
    const hid_t object = CHECKED(H5Oopen(top, name, H5P_DEFAULT), name);
    const H5I_type_t kind = H5Iget_type(object);
    (void)info; /* asked for again, with what is needed only */
    printf("%s\n{\"name\": ", *comma);
    *comma = ",";
    put_text(strcmp(name, ".") == 0 ? "" : name);
    printf(", \"kind\": \"%s\"", kind == H5I_GROUP ? "group" : kind == H5I_DATASET ? "dataset" : "type");
    put_header(object, name);
    if (kind == H5I_GROUP)
        put_group(object, name);
    else if (kind == H5I_DATASET)
        put_dataset(object, name);
    putchar('}');
    H5Oclose(object);
    return 0;
}

/* --- the file ------------------------------------------------------------------------------------------------- */

static void put_file(hid_t file, const char *name)
{
    static const char *const strategies[] = {"aggregate and free-space managers", "pages", "aggregate", "none"};
    H5F_info2_t info;
    H5F_fspace_strategy_t strategy = H5F_FSPACE_STRATEGY_AGGR;
    hbool_t persists = 0;
    hsize_t threshold = 0;
    hsize_t page = 0;
    const hid_t made = CHECKED(H5Fget_create_plist(file), name);
    CHECKED(H5Fget_info2(file, &info), name);
    CHECKED(H5Pget_file_space_strategy(made, &strategy, &persists, &threshold), name);
    CHECKED(H5Pget_file_space_page_size(made, &page), name);
    printf("\"superblock_version\": %u, \"superblock_bytes\": %llu, \"space_strategy\": \"%s\", \"page_bytes\": %llu, "
           "\"free_bytes\": %lld",
           info.super.version, (unsigned long long)(info.super.super_size + info.super.super_ext_size),
           (size_t)strategy < sizeof strategies / sizeof *strategies ? strategies[strategy] : "other",
           (unsigned long long)page, CHECKED(H5Fget_freespace(file), name));
    H5Pclose(made);
}

int main(int argc, char **argv)
{
    unsigned version[3] = {0};
    const char *comma = "";
    if (argc != 2 || argv[1][0] == '-') {
        fprintf(stderr, "h5layout: how HDF5 has laid out a file, as JSON\nexample: h5layout data.h5\n");
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    CHECKED(H5get_libversion(&version[0], &version[1], &version[2]), "HDF5");
    const hid_t file = CHECKED(H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT), argv[1]);
    printf("{\"schema\": \"iogauge.layout/1\", \"hdf5\": \"%u.%u.%u\", ", version[0], version[1], version[2]);
    put_file(file, argv[1]);
    printf(", \"objects\": [");
#if H5_VERSION_GE(1, 12, 0)
    CHECKED(H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, put_object, &comma, H5O_INFO_BASIC), argv[1]);
#else
    CHECKED(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, put_object, &comma), argv[1]);
#endif
    printf("]}\n");
    H5Fclose(file);
    return fflush(stdout) == 0 ? 0 : 2;
}
