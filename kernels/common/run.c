#include "run.h"

#include "failure.h"
#include "made_files.h"
#include "page_cache.h"
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, PROBLEM_BYTES = MESSAGE_BYTES };
enum { OPERATION_BOTH, OPERATION_WRITE, OPERATION_READ };

#define COMMON(member) offsetof(struct common_settings, member)

static const struct option common_options[] = {
    {"dir", OPTION_TEXT, COMMON(dir), 0, 0, NULL, "existing folder for the files (required)"},
    {"operation", OPTION_CHOICE, COMMON(operation), 0, 0, "write,read|write|read",
     "read alone takes files that an earlier run kept"},
    {"interface", OPTION_CHOICE, COMMON(interface), 0, 0, "hdf5|mpiio|posix", "what carries the bytes"},
    {"collective", OPTION_YESNO, COMMON(collective), 0, 0, NULL, "collective data transfers"},
    {"collective-metadata", OPTION_YESNO, COMMON(collective_metadata), 0, 0, NULL, "HDF5: collective metadata"},
    {"file-per-process", OPTION_YESNO, COMMON(file_per_process), 0, 0, NULL, "every rank a file of its own"},
    {"alignment", OPTION_BYTES, COMMON(alignment_bytes), 0, 1099511627776.0, NULL,
     "datasets begin at multiples of this; 0: wherever"},
    {"fsync", OPTION_YESNO, COMMON(fsync), 0, 0, NULL, "bring data to storage before close: the flush phase"},
    {"repeats", OPTION_COUNT, COMMON(repeats), 1, 100000, NULL, "measured repeats"},
    {"warmup", OPTION_COUNT, COMMON(warmup), 0, 1000, NULL, "repeats before them, not reported"},
    {"drop-cache", OPTION_YESNO, COMMON(drop_cache), 0, 0, NULL, "ask the system to drop the file before a read"},
    {"shift", OPTION_COUNT, COMMON(shift), 0, 1000000, NULL,
     "read what the rank this many places on wrote; 0: another host's"},
    {"seed", OPTION_COUNT, COMMON(seed), 0, OPTION_MAX, NULL, "of the data"},
    {"keep", OPTION_YESNO, COMMON(keep), 0, 0, NULL, "keep the last repeat's files"},
    {"json", OPTION_TEXT, COMMON(json), 0, 0, NULL, "file for the records; else stdout's last lines"},
    {"baseline", OPTION_LIST, COMMON(baselines), 0, 0, NULL,
     "NAME=VALUE[,...]: the case with these options changed, interleaved with it"},
    {0}};

struct a_case {
    void *settings;
    const struct common_settings *common;
    struct layout layout;
    struct store_settings store;
    const char *differs;
    uint64_t file_bytes;
    struct repeat_result *writes;
    struct repeat_result *reads;
};

struct session {
    const struct pattern *pattern;
    struct world world;
    struct a_case *cases;
    int case_count;
    int *reading_from; /* [ranks] */
    int shift;
    double other_rank_fraction;
    double other_host_fraction;
    char started[32];
    FILE *json; /* rank 0 */
    char json_part[PATH_BYTES];
};

void *run_memory(uint64_t bytes)
{
    void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory == NULL)
        stop_rank("out of memory: a buffer of %llu bytes is needed", (unsigned long long)bytes);
    memset(memory, 0, bytes);
    return memory;
}

/* Files carry their folder's name: Open MPI's OMPIO names its semaphores after a file's last component alone, so that
 * two jobs with a "case0.h5" each, in folders of their own, would share one. */
const char *run_path(const struct run *run, int file, int rank, char *buffer, size_t buffer_bytes)
{
    const char *dir = run->common->dir;
    const char *ending = run->common->interface == INTERFACE_HDF5 ? "h5" : "dat";
    size_t end = strlen(dir);
    while (end > 0 && dir[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && dir[begin - 1] != '/')
        begin--;
    char own[32] = "";
    if (run->common->file_per_process)
        snprintf(own, sizeof own, "-rank%d", rank);
    snprintf(buffer, buffer_bytes, "%s/%.*s-case%d-file%d%s.%s", dir, (int)(end - begin), dir + begin, run->case_number,
             file, own, ending);
    return buffer;
}

void run_checked(struct run *run, uint64_t bytes, const char *dataset, uint64_t step,
                 const struct content_mismatch *mismatch)
{
    run->checked_bytes += bytes;
    if (mismatch->count > 0 && run->mismatch.count == 0) {
        run->mismatch = *mismatch;
        snprintf(run->mismatch_where, sizeof run->mismatch_where, "dataset %s, step %llu", dataset,
                 (unsigned long long)step);
    } else {
        run->mismatch.count += mismatch->count;
    }
}

static uint64_t sum_of(uint64_t mine)
{
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD), "MPI");
    return mine;
}

/* --- before the run ------------------------------------------------------------------------------------------- */

static int check_common(const struct common_settings *common, char *problem, size_t bytes)
{
    if (!store_has((enum interface)common->interface))
        return snprintf(problem, bytes, "--interface hdf5: these kernels were built without HDF5"), -1;
    if (common->collective && common->interface == INTERFACE_POSIX)
        return snprintf(problem, bytes, "--collective yes: --interface posix has no collective transfers"), -1;
    if (common->collective && common->file_per_process)
        return snprintf(problem, bytes, "--collective yes: with --file-per-process yes there is nobody to share with"),
               -1;
    if (common->collective_metadata && (common->interface != INTERFACE_HDF5 || common->file_per_process))
        return snprintf(problem, bytes, "--collective-metadata yes: only for a shared file through HDF5"), -1;
    if (common->alignment_bytes % 8 != 0)
        return snprintf(problem, bytes, "--alignment %llu: not a multiple of 8",
                        (unsigned long long)common->alignment_bytes),
               -1;
    return 0;
}

/* The case's settings: checked, completed, its layout worked out. */
static int make_case(struct session *session, int number, const void *settings, const char *differs, char *problem)
{
    const struct pattern *pattern = session->pattern;
    const struct option *const tables[] = {common_options, pattern->options, NULL};
    struct a_case *c = &session->cases[number];
    c->settings = malloc(pattern->settings_bytes);
    if (c->settings == NULL)
        stop_rank("out of memory");
    memcpy(c->settings, settings, pattern->settings_bytes);
    struct common_settings *common = c->settings;
    if (differs != NULL) {
        const struct common_settings before = *common;
        if (options_override(differs, tables, c->settings, problem, PROBLEM_BYTES) != 0)
            return -1;
        if (common->dir != before.dir || common->json != before.json || common->operation != before.operation ||
            common->repeats != before.repeats || common->warmup != before.warmup || common->keep != before.keep ||
            common->drop_cache != before.drop_cache || common->shift != before.shift || common->seed != before.seed ||
            common->baselines.count != before.baselines.count)
            return snprintf(problem, PROBLEM_BYTES,
                            "--baseline %s: a baseline shares dir, json, operation, repeats, warmup, keep, drop-cache, "
                            "shift "
                            "and seed with the case",
                            differs),
                   -1;
        /* What the interface cannot do is not asked of it: a baseline through POSIX is an independent one. */
        if (common->interface == INTERFACE_POSIX)
            common->collective = false;
        if (common->interface != INTERFACE_HDF5 || common->file_per_process)
            common->collective_metadata = false;
        if (common->file_per_process)
            common->collective = false;
    }
    if (check_common(common, problem, PROBLEM_BYTES) != 0 ||
        pattern->check(c->settings, session->world.size, problem, PROBLEM_BYTES) != 0)
        return -1;
    c->common = common;
    c->differs = differs;
    pattern->layout(c->settings, session->world.size, &c->layout);
    if (common->interface == INTERFACE_MPIIO && pattern->access_bytes(c->settings) / 4 > INT32_MAX)
        return snprintf(problem, PROBLEM_BYTES,
                        "--interface mpiio: one access of %llu bytes is more than MPI's count holds",
                        (unsigned long long)pattern->access_bytes(c->settings)),
               -1;
    c->store = (struct store_settings){.interface = (enum interface)common->interface,
                                       .collective = common->collective,
                                       .collective_metadata = common->collective_metadata,
                                       .file_per_process = common->file_per_process,
                                       .alignment_bytes = common->alignment_bytes};
    if (common->interface != INTERFACE_HDF5 && pattern->needs_scratch(c->settings))
        c->store.scratch = run_memory(pattern->access_bytes(c->settings));
    c->writes = calloc(common->repeats, sizeof *c->writes);
    c->reads = calloc(common->repeats, sizeof *c->reads);
    if (c->writes == NULL || c->reads == NULL)
        stop_rank("out of memory for %llu repeats", (unsigned long long)common->repeats);
    return 0;
}

static void make_cases(struct session *session, int argc, char **argv)
{
    const struct pattern *pattern = session->pattern;
    const struct option *const tables[] = {common_options, pattern->options, NULL};
    char problem[PROBLEM_BYTES] = "";
    const char *asked = NULL;
    struct common_settings *settings = calloc(1, pattern->settings_bytes);
    if (settings == NULL)
        stop_rank("out of memory");
    settings->fsync = settings->drop_cache = true;
    settings->repeats = 5;
    settings->warmup = settings->seed = 1;
    pattern->defaults(settings);
    const struct common_settings defaults = *settings;
    if (options_parse(argc, argv, tables, settings, &asked, problem, sizeof problem) < 0)
        stop_all(EXIT_BAD_INPUT, "%s", problem);
    if (asked != NULL) {
        if (session->world.rank == 0 && strcmp(asked, "version") == 0)
            printf("%s %s (kernels %s)\n", pattern->name, IOGAUGE_VERSION, IOGAUGE_KERNELS_ID);
        else if (session->world.rank == 0) {
            printf("%s: %s\n\nexample: %s\n\n", pattern->name, pattern->summary, pattern->example);
            *settings = defaults;
            options_help(tables, settings);
            printf("\nexit codes: 0 done; 2 bad argument, folder or launcher; 3 data read back differ\n");
        }
        MPI_Finalize();
        exit(0);
    }
    if (settings->dir == NULL || settings->dir[0] == '\0')
        stop_all(EXIT_BAD_INPUT, "--dir: missing or empty; an existing folder is required");

    if (settings->shift > 0 && settings->shift >= (uint64_t)session->world.size)
        stop_all(EXIT_BAD_INPUT, "--shift %llu: there are %d ranks; 0 to %d is allowed",
                 (unsigned long long)settings->shift, session->world.size, session->world.size - 1);

    session->case_count = 1 + settings->baselines.count;
    session->cases = calloc((size_t)session->case_count, sizeof *session->cases);
    if (session->cases == NULL)
        stop_rank("out of memory");
    for (int i = 0; i < session->case_count; i++)
        if (make_case(session, i, settings, i == 0 ? NULL : settings->baselines.items[i - 1], problem) != 0)
            stop_all(EXIT_BAD_INPUT, "%s", problem);
    free(settings);
}

static struct run run_of(struct session *session, int number, struct stopwatch *watch)
{
    const struct a_case *c = &session->cases[number];
    return (struct run){.world = &session->world,
                        .settings = c->settings,
                        .common = c->common,
                        .layout = &c->layout,
                        .case_number = number,
                        .source = session->reading_from[session->world.rank],
                        .store = c->store,
                        .watch = watch};
}

/* The files of a case that this rank looks after: its own, or the shared ones on rank 0. */
static void each_own_file(const struct session *session, const struct run *run,
                          void (*act)(const char *path, void *data), void *data)
{
    char path[PATH_BYTES];
    const int rank = session->world.rank;
    if (!run->common->file_per_process && rank != 0)
        return;
    for (int f = 0; f < session->pattern->files(run->settings); f++)
        act(run_path(run, f, rank, path, sizeof path), data);
}

static void note_existing(const char *path, void *problem)
{
    if (access(path, F_OK) == 0)
        snprintf(problem, PROBLEM_BYTES,
                 "--dir: %s exists already; it is not overwritten (another run, or N worlds of one rank, writes here)",
                 path);
}

/* The folder is there, can be written and has room for the largest case; none of our files is there yet. */
static void check_folder(struct session *session)
{
    const struct common_settings *common = session->cases[0].common;
    char problem[PROBLEM_BYTES] = "";
    struct stat status;
    struct statvfs space;
    const bool writes = common->operation != OPERATION_READ;
    if (stat(common->dir, &status) != 0)
        snprintf(problem, sizeof problem, "--dir %s: %s", common->dir, strerror(errno));
    else if (!S_ISDIR(status.st_mode))
        snprintf(problem, sizeof problem, "--dir %s: not a folder", common->dir);
    else if (access(common->dir, writes ? R_OK | W_OK | X_OK : R_OK | X_OK) != 0)
        snprintf(problem, sizeof problem, "--dir %s: %s", common->dir, strerror(errno));
    else if (writes && statvfs(common->dir, &space) == 0) {
        const uint64_t room = (uint64_t)space.f_bavail * space.f_frsize;
        for (int i = 0; i < session->case_count; i++) {
            const struct a_case *c = &session->cases[i];
            const uint64_t files = (uint64_t)session->pattern->files(c->settings) *
                                   (c->common->file_per_process ? (uint64_t)session->world.size : 1);
            if (c->layout.bytes * files > room)
                snprintf(problem, sizeof problem, "--dir %s: %llu bytes are free, the case writes %llu", common->dir,
                         (unsigned long long)room, (unsigned long long)(c->layout.bytes * files));
        }
    }
    stop_all_if(EXIT_BAD_INPUT, problem);
    for (int i = 0; writes && i < session->case_count; i++) {
        const struct run run = run_of(session, i, NULL);
        each_own_file(session, &run, note_existing, problem);
    }
    stop_all_if(EXIT_BAD_INPUT, problem);
}

/* Open the records' file now: a measurement whose record cannot be written must not begin. */
static void open_json(struct session *session)
{
    char problem[PROBLEM_BYTES] = "";
    const char *name = session->cases[0].common->json;
    if (session->world.rank == 0 && name != NULL) {
        snprintf(session->json_part, sizeof session->json_part, "%s.part", name);
        session->json = fopen(session->json_part, "w");
        if (session->json == NULL)
            snprintf(problem, sizeof problem, "--json %s: %s", name, strerror(errno));
        else
            made_files_add(session->json_part);
    }
    stop_all_if(EXIT_BAD_INPUT, problem);
}

static void plan_reading(struct session *session)
{
    const struct world *world = &session->world;
    int others = 0;
    int other_hosts = 0;
    session->reading_from = malloc((size_t)world->size * sizeof *session->reading_from);
    if (session->reading_from == NULL)
        stop_rank("out of memory");
    session->shift = world_reading_from(world, (int)session->cases[0].common->shift, session->reading_from);
    for (int r = 0; r < world->size; r++) {
        const int from = session->reading_from[r];
        others += from != r;
        other_hosts += world->places[from].host_index != world->places[r].host_index;
    }
    session->other_rank_fraction = (double)others / world->size;
    session->other_host_fraction = (double)other_hosts / world->size;
}

/* --- one case in one repeat ----------------------------------------------------------------------------------- */

static void remove_file(const char *path, void *unused)
{
    (void)unused;
    if (unlink(path) != 0)
        failure_system("unlink", path);
}

static void add_size(const char *path, void *total)
{
    struct stat status;
    if (stat(path, &status) != 0)
        failure_system("stat", path);
    *(uint64_t *)total += (uint64_t)status.st_size;
}

/* All ranks forget, for all of them know the shared files. */
static void forget_files(const struct session *session, const struct run *run)
{
    char path[PATH_BYTES];
    for (int f = 0; f < session->pattern->files(run->settings); f++)
        made_files_forget(run_path(run, f, session->world.rank, path, sizeof path));
}

static void write_back_file(const char *path, void *unused)
{
    (void)unused;
    if (page_cache_write_back(path) != 0)
        failure_system("fsync before the cache is dropped", path);
}

/* Every rank that reads a file of its own drops it; a shared file is dropped once on each host. */
static void drop_cache(const struct session *session, const struct run *run)
{
    char path[PATH_BYTES];
    each_own_file(session, run, write_back_file, NULL);
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD), "MPI");
    if (run->common->file_per_process || session->world.host_leader)
        for (int f = 0; f < session->pattern->files(run->settings); f++) {
            run_path(run, f, run->source, path, sizeof path);
            if (page_cache_drop(path) != 0)
                failure_system("posix_fadvise", path);
        }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD), "MPI");
}

/* Fraction of the pages that the ranks are about to read which are in memory on the reading rank's host; NaN: unknown.
 * A chunked dataset's place is HDF5's business: there the whole file counts. Through HDF5 the places are the raw
 * layout's, short of the file's own metadata. */
static double cached_fraction(const struct session *session, const struct run *run)
{
    char path[PATH_BYTES];
    uint64_t first = 0;
    uint64_t rows = 0;
    uint64_t unknown = 0;
    struct cached_pages sum = {0};
    const struct pattern *pattern = session->pattern;
    pattern->rows(run->settings, session->world.size, run->source, &first, &rows);
    for (int f = 0; f < pattern->files(run->settings); f++) {
        run_path(run, f, run->source, path, sizeof path);
        for (int d = 0; d < run->layout->count; d++) {
            const struct dataset *dataset = &run->layout->datasets[d];
            const bool whole = run->common->interface == INTERFACE_HDF5 && dataset->chunk_rows > 0;
            if (whole && d > 0)
                break;
            const struct cached_pages pages =
                whole ? page_cache_look(path, 0, UINT64_MAX)
                      : page_cache_look(path, dataset->base_bytes + first * dataset->row_bytes,
                                        rows * dataset->row_bytes);
            sum.resident += pages.resident;
            sum.total += pages.total;
            unknown += !pages.known;
        }
    }
    const uint64_t resident = sum_of(sum.resident);
    const uint64_t total = sum_of(sum.total);
    if (sum_of(unknown) > 0 || total == 0)
        return NAN;
    return (double)resident / (double)total;
}

static uint64_t read_and_check(struct session *session, struct run *run)
{
    char problem[PROBLEM_BYTES] = "";
    session->pattern->read(run);
    if (run->mismatch.count > 0)
        snprintf(problem, sizeof problem,
                 "data differ: %s, index %llu: expected 0x%llx, found 0x%llx (rank %d, which reads rank %d's data, "
                 "found %llu "
                 "words that differ)",
                 run->mismatch_where, (unsigned long long)run->mismatch.index,
                 (unsigned long long)run->mismatch.expected, (unsigned long long)run->mismatch.found,
                 session->world.rank, run->source, (unsigned long long)run->mismatch.count);
    stop_all_if(EXIT_BAD_DATA, problem);
    return sum_of(run->checked_bytes);
}

static void measure_read(struct session *session, int number, struct repeat_result *result)
{
    struct stopwatch watch = {0};
    struct run run = run_of(session, number, &watch);
    result->cached_before_drop = cached_fraction(session, &run);
    if (run.common->drop_cache)
        drop_cache(session, &run);
    result->cached = run.common->drop_cache ? cached_fraction(session, &run) : result->cached_before_drop;
    result->verified_bytes = read_and_check(session, &run);
    result->times = stopwatch_reduce(&watch);
}

static void measure_write(struct session *session, int number, struct repeat_result *result)
{
    struct stopwatch watch = {0};
    struct run run = run_of(session, number, &watch);
    uint64_t bytes = 0;
    session->pattern->write(&run);
    result->times = stopwatch_reduce(&watch);
    result->cached = result->cached_before_drop = NAN;
    each_own_file(session, &run, add_size, &bytes);
    session->cases[number].file_bytes = sum_of(bytes);
}

/* Read everything back, untimed. */
static uint64_t check_everything(struct session *session, int number)
{
    struct stopwatch watch = {0};
    struct run run = run_of(session, number, &watch);
    run.everything = true;
    if (run.common->drop_cache)
        drop_cache(session, &run);
    const uint64_t checked = read_and_check(session, &run);
    stopwatch_reduce(&watch);
    return checked;
}

/* RESULTS of a warm-up are thrown away. */
static void run_case(struct session *session, int number, bool last, struct repeat_result *write,
                     struct repeat_result *read)
{
    struct a_case *c = &session->cases[number];
    const int operation = c->common->operation;
    const struct pattern *pattern = session->pattern;
    const int ranks = session->world.size;
    if (operation != OPERATION_READ)
        measure_write(session, number, write);
    if (operation != OPERATION_WRITE)
        measure_read(session, number, read);
    if (operation == OPERATION_READ) {
        struct run run = run_of(session, number, NULL);
        uint64_t bytes = 0;
        each_own_file(session, &run, add_size, &bytes);
        c->file_bytes = sum_of(bytes);
        return; /* not our files: they stay */
    }
    const bool all_read = operation == OPERATION_BOTH && pattern->logical_bytes(c->settings, ranks, true) ==
                                                             pattern->logical_bytes(c->settings, ranks, false);
    write->verified_bytes = all_read ? read->verified_bytes : check_everything(session, number);
    const struct run run = run_of(session, number, NULL);
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD), "MPI");
    if (!c->common->keep || !last)
        each_own_file(session, &run, remove_file, NULL);
    forget_files(session, &run);
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD), "MPI");
}

static void measure(struct session *session)
{
    const struct common_settings *common = session->cases[0].common;
    const uint64_t rounds = common->warmup + common->repeats;
    for (uint64_t round = 0; round < rounds; round++)
        for (int i = 0; i < session->case_count; i++) {
            const int number = (int)((round + (uint64_t)i) % (uint64_t)session->case_count);
            struct a_case *c = &session->cases[number];
            struct repeat_result unused[2] = {{.cached = NAN}, {.cached = NAN}};
            const bool counts = round >= common->warmup;
            const uint64_t repeat = counts ? round - common->warmup : 0;
            run_case(session, number, round == rounds - 1, counts ? &c->writes[repeat] : &unused[0],
                     counts ? &c->reads[repeat] : &unused[1]);
        }
}

/* --- after the run -------------------------------------------------------------------------------------------- */

static void report_to(struct session *session, bool as_json, FILE *file)
{
    for (int i = 0; i < session->case_count; i++)
        for (int of_read = 0; of_read < 2; of_read++) {
            const struct a_case *c = &session->cases[i];
            if (c->common->operation == (of_read ? OPERATION_WRITE : OPERATION_READ))
                continue;
            const struct record record = {
                .pattern = session->pattern,
                .world = &session->world,
                .settings = c->settings,
                .common = c->common,
                .differs = c->differs,
                .of_read = of_read,
                .logical_bytes = session->pattern->logical_bytes(c->settings, session->world.size, of_read),
                .file_bytes = c->file_bytes,
                .shift = session->shift,
                .other_rank_fraction = session->other_rank_fraction,
                .other_host_fraction = session->other_host_fraction,
                .started = session->started,
                .repeats = of_read ? c->reads : c->writes};
            if (as_json)
                record_json(&record, file);
            else {
                if (i == 0 && (!of_read || c->common->operation == OPERATION_READ))
                    record_table_head(&record, file);
                record_table_row(&record, file);
            }
        }
}

static void report(struct session *session)
{
    const char *name = session->cases[0].common->json;
    if (session->world.rank != 0)
        return;
    report_to(session, false, stdout);
    if (session->json == NULL) {
        report_to(session, true, stdout);
    } else {
        report_to(session, true, session->json);
        if (ferror(session->json) || fclose(session->json) != 0 || rename(session->json_part, name) != 0)
            failure_system("write of the records", name);
        made_files_forget(session->json_part);
    }
    if (fflush(stdout) != 0)
        failure_system("write of the results", "stdout");
}

static void end(struct session *session)
{
    for (int i = 0; i < session->case_count; i++) {
        free(session->cases[i].settings);
        free(session->cases[i].layout.datasets);
        free(session->cases[i].store.scratch);
        free(session->cases[i].writes);
        free(session->cases[i].reads);
    }
    free(session->cases);
    free(session->reading_from);
    free(session->world.places);
}

int run_kernel(const struct pattern *pattern, int argc, char **argv)
{
    struct session session = {.pattern = pattern};
    failure_set_kernel(pattern->name);
    session.world = world_start(&argc, &argv);
    const time_t now = time(NULL);
    struct tm utc;
    strftime(session.started, sizeof session.started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    make_cases(&session, argc, argv);
    plan_reading(&session);
    check_folder(&session);
    made_files_watch_signals();
    open_json(&session);
    measure(&session);
    report(&session);
    end(&session);
    MPI_OK(MPI_Finalize(), "MPI");
    return 0;
}
