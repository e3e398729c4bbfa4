#include "record.h"

#include "cases.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#ifdef IOGAUGE_HAVE_HDF5
#include <hdf5.h>
#endif
#ifdef IOGAUGE_HAVE_NETCDF
#include <netcdf.h>
#endif

static const char *const interface_names[] = {"hdf5", "mpiio", "posix", "netcdf"};
static const double mib = 1048576.0;

/* "name=value,..." as an object. */
static void describe_changes(struct json *json, const char *key, const char *differs)
{
    json_open(json, key, '{');
    while (differs != NULL && *differs != '\0') {
        char name[64];
        char value[128];
        const size_t name_length = strcspn(differs, "=");
        const size_t value_length = strcspn(differs + name_length + 1, ",");
        snprintf(name, sizeof name, "%.*s", (int)name_length, differs);
        snprintf(value, sizeof value, "%.*s", (int)value_length, differs + name_length + 1);
        json_text(json, name, value);
        differs += name_length + 1 + value_length;
        differs += *differs == ',';
    }
    json_close(json, '}');
}

static void describe_bits(struct json *json, const char *key, const uint8_t *bits)
{
    json_open(json, key, '[');
    for (int i = 0; i < WORLD_CPUS; i++)
        if (bit_is_set(bits, i))
            json_whole(json, NULL, (uint64_t)i);
    json_close(json, ']');
}

static void describe_places(struct json *json, const struct world *world)
{
    json_whole(json, "ranks", (uint64_t)world->size);
    json_open(json, "hosts", '{');
    for (int host = 0; host < world->hosts; host++) {
        bool named = false;
        for (int r = 0; r < world->size; r++) {
            if (world->places[r].host_index != host)
                continue;
            if (!named)
                json_open(json, world->places[r].host, '[');
            named = true;
            json_whole(json, NULL, (uint64_t)r);
        }
        json_close(json, ']');
    }
    json_close(json, '}');
    json_open(json, "placement", '[');
    for (int r = 0; r < world->size; r++) {
        json_open(json, NULL, '{');
        json_whole(json, "rank", (uint64_t)r);
        json_text(json, "host", world->places[r].host);
        json_whole(json, "pid", (uint64_t)world->places[r].pid);
        describe_bits(json, "cpus", world->places[r].cpus);
        describe_bits(json, "cores", world->places[r].cores);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void describe_software(struct json *json)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    json_open(json, "software", '{');
#ifdef IOGAUGE_HAVE_HDF5
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
    json_text(json, "hdf5", text);
#else
    json_null(json, "hdf5");
#endif
#ifdef IOGAUGE_HAVE_NETCDF
    snprintf(text, sizeof text, "%.*s", (int)strcspn(nc_inq_libvers(), " "), nc_inq_libvers());
    json_text(json, "netcdf", text);
#endif
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    for (char *tab = text; (tab = strchr(tab, '\t')) != NULL;)
        *tab = ' ';
    json_text(json, "mpi", text);
    json_text(json, "suite", IOGAUGE_VERSION);
    json_text(json, "kernels", IOGAUGE_KERNELS_ID);
    json_text(json, "compiler", IOGAUGE_COMPILER);
    json_close(json, '}');
}

/* The fastest rank's times. */
static void describe_least(struct json *json, const struct phase_times *times)
{
    json_open(json, "least", '{');
    json_real(json, "open_seconds", times->least_seconds[PHASE_OPEN]);
    json_real(json, "transfer_seconds", times->least_seconds[PHASE_TRANSFER]);
    json_real(json, "flush_seconds", times->least_seconds[PHASE_FLUSH]);
    json_real(json, "close_seconds", times->least_seconds[PHASE_CLOSE]);
    json_real(json, "total_seconds", times->least_total_seconds);
    json_close(json, '}');
}

static void describe_repeats(struct json *json, const struct record *record)
{
    json_open(json, "repeats", '[');
    for (uint64_t i = 0; i < record->common->repeats; i++) {
        const struct repeat_result *repeat = &record->repeats[i];
        json_open(json, NULL, '{');
        json_real(json, "open_seconds", repeat->times.seconds[PHASE_OPEN]);
        json_real(json, "transfer_seconds", repeat->times.seconds[PHASE_TRANSFER]);
        json_real(json, "flush_seconds", repeat->times.seconds[PHASE_FLUSH]);
        json_real(json, "close_seconds", repeat->times.seconds[PHASE_CLOSE]);
        json_real(json, "total_seconds", repeat->times.total_seconds);
        json_real(json, "prepare_seconds", repeat->times.seconds[PHASE_PREPARE]);
        describe_least(json, &repeat->times);
        json_whole(json, "verified_bytes", record->operations == 0 ? repeat->verified : 0);
        json_whole(json, "verified_operations", record->operations == 0 ? 0 : repeat->verified);
        json_whole(json, "mismatches", 0); /* a mismatch ends the run before any record */
        json_real(json, "cached_fraction_before_drop", repeat->cached_before_drop);
        json_real(json, "cached_fraction", repeat->cached);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void record_opening(struct json *json, const char *sweep_run, const char *sweep_case)
{
    json_open(json, NULL, '{');
    json_text(json, "schema", "iogauge.measurement/1");
    if (sweep_case == NULL) {
        json_null(json, "sweep");
        return;
    }
    json_open(json, "sweep", '{');
    json_text(json, "run", sweep_run);
    describe_changes(json, "case", sweep_case);
    json_close(json, '}');
}

static void describe_common(struct json *json, const struct common_settings *common)
{
    const struct hdf5_settings *hdf5 = &common->hdf5;
    char word[32];
    json_truth(json, "file_per_process", common->file_per_process);
    json_truth(json, "collective_metadata", common->collective_metadata);
    json_whole(json, "alignment_bytes", common->alignment_bytes);
    json_truth(json, "fsync", common->fsync);
    if (common->mpi_info != NULL && common->interface != INTERFACE_POSIX)
        json_text(json, "mpi_info", common->mpi_info);
    if (common->interface != INTERFACE_HDF5)
        return;
    json_text(json, "driver", option_choice(common_choices("driver"), hdf5->driver, word, sizeof word));
    json_text(json, "libver", option_choice(common_choices("libver"), hdf5->version, word, sizeof word));
    json_text(json, "fill", option_choice(common_choices("fill"), hdf5->fill, word, sizeof word));
    json_text(json, "compress", option_choice(common_choices("compress"), hdf5->filter, word, sizeof word));
    json_whole(json, "compress_level", hdf5->filter == FILTER_GZIP ? hdf5->filter_level : 0);
    json_whole(json, "meta_block_bytes", hdf5->meta_block_bytes);
    json_whole(json, "alignment_threshold_bytes", hdf5->alignment_threshold_bytes);
    json_truth(json, "extendible", hdf5->extendible);
    if (hdf5->async != ASYNC_NO) {
        option_choice(ASYNC_CHOICES, hdf5->async, word, sizeof word);
        json_text(json, "async", word);
        json_text(json, "async_in_effect", word); /* any other would have ended the run */
    }
}

void record_json(const struct record *record, FILE *file)
{
    struct json json = {.file = file};
    const struct common_settings *common = record->common;
    record_opening(&json, record->sweep_run, record->sweep_case);
    json_text(&json, "benchmark", record->pattern->name);
    json_text(&json, "operation", record->operation);
    json_text(&json, "interface", interface_names[common->interface]);
    json_text(&json, "role", record->differs == NULL ? "main" : "baseline");
    describe_changes(&json, "differs", record->differs);
    json_truth(&json, "collective", common->collective);
    json_open(&json, "pattern", '{');
    record->pattern->describe(record->settings, &json);
    describe_common(&json, common);
    json_close(&json, '}');
    json_whole(&json, "logical_bytes", record->logical_bytes);
    json_whole(&json, "operations", record->operations);
    json_whole(&json, "file_bytes", record->file_bytes);
    if (record->of_read) {
        json_open(&json, "read_shift", '{');
        json_whole(&json, "ranks", (uint64_t)record->shift);
        json_real(&json, "other_rank_fraction", record->other_rank_fraction);
        json_real(&json, "other_host_fraction", record->other_host_fraction);
        json_close(&json, '}');
    } else {
        json_null(&json, "read_shift");
    }
    json_whole(&json, "seed", common->seed);
    json_text(&json, "started", record->started);
    describe_repeats(&json, record);
    describe_places(&json, record->world);
    describe_software(&json);
    json_close(&json, '}');
    fputc('\n', file);
}

void record_table_head(const char *name, const struct world *world, uint64_t repeats, FILE *file)
{
    fprintf(file,
            "%s on %d rank%s, %d host%s; %llu repeats; MiB = 2^20 bytes; observed: open to close with the flush, raw: "
            "transfers only\n",
            name, world->size, world->size == 1 ? "" : "s", world->hosts, world->hosts == 1 ? "" : "s",
            (unsigned long long)repeats);
    fprintf(file, "%-16s %-9s %-28s %12s %12s %12s %12s %12s %-12s %8s\n", "operation", "interface",
            "differs from the case asked", "moved", "observed max", "average", "min", "raw max", "unit", "cached");
}

void record_table_row(const struct record *record, FILE *file)
{
    const bool counts = record->operations > 0;
    const double moved = counts ? (double)record->operations : (double)record->logical_bytes / mib;
    const uint64_t repeats = record->common->repeats;
    double best = INFINITY;
    double worst = 0.0;
    double best_raw = INFINITY;
    double seconds = 0.0;
    double cached = NAN;
    for (uint64_t i = 0; i < repeats; i++) {
        const struct repeat_result *repeat = &record->repeats[i];
        best = fmin(best, repeat->times.total_seconds);
        worst = fmax(worst, repeat->times.total_seconds);
        best_raw = fmin(best_raw, repeat->times.seconds[PHASE_TRANSFER]);
        seconds += repeat->times.total_seconds;
        cached = fmax(cached, repeat->cached);
    }
    char cached_text[16] = "-";
    if (isfinite(cached))
        snprintf(cached_text, sizeof cached_text, "%.0f %%", cached * 100.0);
    fprintf(file, "%-16s %-9s %-28s %12.2f %12.1f %12.1f %12.1f %12.1f %-12s %8s\n", record->operation,
            interface_names[record->common->interface], record->differs == NULL ? "" : record->differs, moved,
            moved / best, moved * (double)repeats / seconds, moved / worst, moved / best_raw,
            counts ? "operations/s" : "MiB/s", cached_text);
}
