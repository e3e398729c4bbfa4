#include "run.h"

#include "cases.h"
#include "failure.h"
#include "made_files.h"
#include "page_cache.h"
#include "record.h"
#include "sweep.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, PROBLEM_BYTES = MESSAGE_BYTES };

struct session {
    const struct pattern *pattern;
    struct world world;
    struct common_settings *settings; /* as asked for */
    const struct operation *operations;
    int operation_count;
    struct sweep sweep;
    const char *swept;    /* name of the sweep's case that is running, or NULL */
    struct a_case *cases; /* of it: itself and its baselines */
    int case_count;
    char started[32];
    FILE *json; /* rank 0 */
    char json_part[PATH_BYTES];
};

static const struct operation moves[] = {{"write", false}, {"read", true}, {NULL, false}};

void *run_memory(uint64_t bytes)
{
    void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory == NULL)
        stop_rank("out of memory: a buffer of %llu bytes is needed", (unsigned long long)bytes);
    memset(memory, 0, bytes);
    return memory;
}

/* The memory that measuring needs. */
static void allocate(struct a_case *c, const struct pattern *pattern, int operations)
{
    const size_t results = (size_t)operations * c->common->repeats;
    if (pattern->operations == NULL && c->common->interface != INTERFACE_HDF5 && pattern->needs_scratch(c->settings))
        c->store.scratch = run_memory(pattern->access_bytes(c->settings));
    c->results = calloc(results, sizeof *c->results);
    if (c->results == NULL)
        stop_rank("out of memory for %zu results", results);
}

int run_opener(const struct run *run, int rank)
{
    const struct rank_place *places = run->world->places;
    int first = 0;
    switch (run->common->sharing) {
    case SHARING_ALL:
    case SHARING_ONE:
        return 0;
    case SHARING_PROCESS:
        return rank;
    case SHARING_NODE:
        while (places[first].host_index != places[rank].host_index)
            first++;
        return first;
    }
    return rank;
}

/* Files carry their folder's name: Open MPI's OMPIO names its semaphores after a file's last component alone, so that
 * two jobs with a "case0.h5" each, in folders of their own, would share one. */
const char *run_path(const struct run *run, int file, int rank, char *buffer, size_t buffer_bytes)
{
    const char *dir = run->common->dir;
    const char *foreign = run->common->foreign;
    static const char *const endings[] = {"h5", "dat", "dat", "nc"}; /* of enum interface */
    size_t end = strlen(dir);
    while (end > 0 && dir[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && dir[begin - 1] != '/')
        begin--;
    char own[32] = "";
    if (foreign != NULL) {
        snprintf(buffer, buffer_bytes, "%s/%s", dir, foreign);
        return buffer;
    }
    if (run->common->sharing == SHARING_PROCESS || run->common->sharing == SHARING_NODE)
        snprintf(own, sizeof own, "-rank%d", run_opener(run, rank));
    snprintf(buffer, buffer_bytes, "%s/%.*s-case%d-file%d%s.%s", dir, (int)(end - begin), dir + begin, run->case_number,
             file, own, endings[run->common->interface]);
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

void run_pause(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static uint64_t sum_of(const struct world *world, uint64_t mine)
{
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_UINT64_T, MPI_SUM, world->comm), "MPI");
    return mine;
}

/* --- before the run ------------------------------------------------------------------------------------------- */

static void tell(const struct session *session, const struct option *const *tables, const char *asked)
{
    const struct pattern *pattern = session->pattern;
    if (session->world.rank == 0 && strcmp(asked, "version") == 0)
        printf("%s %s (kernels %s)\n", pattern->name, IOGAUGE_VERSION, IOGAUGE_KERNELS_ID);
    else if (session->world.rank == 0) {
        printf("%s: %s\n\nexample: %s\n\n", pattern->name, pattern->summary, pattern->example);
        options_help(tables, session->settings);
        printf("\nexit codes: 0 done; 2 bad argument, folder or launcher; 3 data read back differ\n");
    }
    MPI_Finalize();
    exit(0);
}

static void set_defaults(struct session *session)
{
    common_defaults(session->settings);
    session->pattern->defaults(session->settings);
}

static void parse(struct session *session, int argc, char **argv)
{
    const struct pattern *pattern = session->pattern;
    const struct option *const tables[] = {common_options, pattern->options, NULL};
    char problem[PROBLEM_BYTES] = "";
    const char *asked = NULL;
    session->settings = calloc(1, pattern->settings_bytes);
    if (session->settings == NULL)
        stop_rank("out of memory");
    set_defaults(session);
    if (options_parse(argc, argv, tables, session->settings, &asked, problem, sizeof problem) < 0)
        stop_all(EXIT_BAD_INPUT, "%s", problem);
    if (asked != NULL) {
        set_defaults(session);
        tell(session, tables, asked);
    }
    const struct common_settings *common = session->settings;
    if (common->dir == NULL || common->dir[0] == '\0')
        stop_all(EXIT_BAD_INPUT, "--dir: missing or empty; an existing folder is required");
    if (pattern->operations != NULL && common->operation != OPERATION_BOTH)
        stop_all(EXIT_BAD_INPUT, "--operation: %s has operations of its own", pattern->name);
    if (common->resume && common->json == NULL)
        stop_all(EXIT_BAD_INPUT, "--resume yes: --json is needed: the file that the run that was cut off wrote");
    if (common->resume && common->sweeps.count == 0)
        stop_all(EXIT_BAD_INPUT, "--resume yes: there is no --sweep to go on with");
    if (pattern->prepare != NULL && pattern->prepare(session->settings, problem, sizeof problem) != 0)
        stop_all(EXIT_BAD_INPUT, "%s", problem);
}

/* OPERATION is one that the case has and was asked for. */
static bool case_does(const struct session *session, const struct a_case *c, int operation)
{
    const int only = session->settings->operation;
    if (session->pattern->operations != NULL)
        return session->pattern->count(c->settings, c->world.size, operation) > 0;
    return only == OPERATION_BOTH || (only == OPERATION_READ) == session->operations[operation].of_read;
}

/* A baseline is there to be compared with: what it does, the case does too. */
static void check_baseline(const struct session *session, int number, char *problem)
{
    for (int o = 0; o < session->operation_count; o++)
        if (case_does(session, &session->cases[number], o) && !case_does(session, &session->cases[0], o))
            snprintf(problem, PROBLEM_BYTES, "--baseline %s: does %s, which the case does not",
                     session->cases[number].differs, session->operations[o].name);
}

/* Case NUMBER of the sweep with its baselines. */
static void make_cases(struct session *session, int number)
{
    const struct common_settings *common = session->settings;
    char problem[PROBLEM_BYTES] = "";
    session->swept = session->sweep.names[number];
    session->case_count = 1 + common->baselines.count;
    session->cases = calloc((size_t)session->case_count, sizeof *session->cases);
    if (session->cases == NULL)
        stop_rank("out of memory");
    for (int i = 0; i < session->case_count; i++) {
        if (case_make(&session->cases[i], session->pattern, &session->world, common, session->swept,
                      i == 0 ? NULL : common->baselines.items[i - 1], problem, sizeof problem) == 0)
            check_baseline(session, i, problem);
        if (problem[0] != '\0')
            stop_all(EXIT_BAD_INPUT, "%s%s%s", session->swept != NULL ? session->swept : "",
                     session->swept != NULL ? ": " : "", problem);
    }
}

static void free_cases(struct session *session)
{
    for (int i = 0; i < session->case_count; i++)
        case_free(&session->cases[i]);
    free(session->cases);
}

static struct run run_of(struct session *session, int number, struct stopwatch *watch)
{
    const struct a_case *c = &session->cases[number];
    return (struct run){.world = &c->world,
                        .settings = c->settings,
                        .common = c->common,
                        .layout = &c->layout,
                        .case_number = number,
                        .source = c->reading_from[c->world.rank],
                        .store = c->store,
                        .watch = watch};
}

/* This rank measures in the case, and does not stand aside. */
static bool takes_part(const struct a_case *c)
{
    return c->world.comm != MPI_COMM_NULL;
}

static int records_of_cases(const struct session *session)
{
    int records = 0;
    for (int i = 0; i < session->case_count; i++)
        for (int o = 0; o < session->operation_count; o++)
            records += case_does(session, &session->cases[i], o);
    return records;
}

/* The files that hold RANK's data. */
static void each_file(const struct session *session, const struct run *run, int rank,
                      void (*act)(const char *path, void *data), void *data)
{
    char path[PATH_BYTES];
    for (int f = 0; f < session->pattern->files(run->settings); f++)
        store_each_file(run_path(run, f, rank, path, sizeof path), &run->store, act, data);
}

/* The files of a case that this rank looks after: those it opens. */
static void each_own_file(const struct session *session, const struct run *run,
                          void (*act)(const char *path, void *data), void *data)
{
    const int rank = run->world->rank;
    if (run_opener(run, rank) == rank)
        each_file(session, run, rank, act, data);
}

static void note_existing(const char *path, void *problem)
{
    if (access(path, F_OK) == 0)
        snprintf(problem, PROBLEM_BYTES,
                 "--dir: %s exists already; it is not overwritten (another run, or N worlds of one rank, writes here)",
                 path);
}

/* How many times the layout's bytes a case writes. */
static uint64_t layouts_of(const struct session *session, const struct a_case *c)
{
    const uint64_t files = (uint64_t)session->pattern->files(c->settings);
    switch (c->common->sharing) {
    case SHARING_PROCESS:
    case SHARING_NODE:
        return files * (uint64_t)c->world.size;
    case SHARING_ALL:
    case SHARING_ONE:
        return files;
    }
    return files;
}

static void check_room(const struct session *session, char *problem)
{
    struct statvfs space;
    const char *dir = session->settings->dir;
    if (session->pattern->operations != NULL || statvfs(dir, &space) != 0)
        return;
    const uint64_t room = (uint64_t)space.f_bavail * space.f_frsize;
    for (int i = 0; i < session->case_count; i++) {
        const struct a_case *c = &session->cases[i];
        const uint64_t bytes = c->layout.bytes * layouts_of(session, c);
        if (bytes > room)
            snprintf(problem, PROBLEM_BYTES, "--dir %s: %llu bytes are free, the case writes %llu", dir,
                     (unsigned long long)room, (unsigned long long)bytes);
    }
}

/* The folder is there, can be written and has room for the largest case; none of our files is there yet. */
static void check_folder(struct session *session)
{
    const struct common_settings *common = session->settings;
    const bool writes = common->operation != OPERATION_READ;
    char problem[PROBLEM_BYTES] = "";
    struct stat status;
    if (stat(common->dir, &status) != 0)
        snprintf(problem, sizeof problem, "--dir %s: %s", common->dir, strerror(errno));
    else if (!S_ISDIR(status.st_mode))
        snprintf(problem, sizeof problem, "--dir %s: not a folder", common->dir);
    else if (access(common->dir, writes ? R_OK | W_OK | X_OK : R_OK | X_OK) != 0)
        snprintf(problem, sizeof problem, "--dir %s: %s", common->dir, strerror(errno));
    else if (writes)
        check_room(session, problem);
    stop_all_if(session->world.comm, EXIT_BAD_INPUT, problem);
    for (int i = 0; writes && i < session->case_count; i++)
        if (takes_part(&session->cases[i])) {
            const struct run run = run_of(session, i, NULL);
            each_own_file(session, &run, note_existing, problem);
        }
    stop_all_if(session->world.comm, EXIT_BAD_INPUT, problem);
}

/* The sweep's cases, every one tried before the first is measured: bad input is found while nothing is written. */
static void plan(struct session *session)
{
    const struct option *const tables[] = {common_options, session->pattern->options, NULL};
    const char *const skip[] = {"dir", "json", "keep", "keep-empty", "resume", NULL};
    const struct common_settings *common = session->settings;
    char problem[PROBLEM_BYTES] = "";
    char text[2 * PROBLEM_BYTES];
    if (sweep_expand(&common->sweeps, common->cases, &session->sweep, problem, sizeof problem) != 0)
        stop_all(EXIT_BAD_INPUT, "%s", problem);
    const size_t used = options_text(tables, common, skip, text, sizeof text);
    if (used < sizeof text)
        snprintf(text + used, sizeof text - used, "%d ranks, kernels %s", session->world.size, IOGAUGE_KERNELS_ID);
    sweep_identify(&session->sweep, text);
    for (int i = 0; i < session->sweep.count; i++) {
        make_cases(session, i);
        check_folder(session);
        session->sweep.records[i] = records_of_cases(session);
        free_cases(session);
    }
}

/* Open the records' file now: a measurement whose record cannot be written must not begin. The records of a sweep stay
 * where the run is cut off. */
static void open_json(struct session *session)
{
    const struct common_settings *common = session->settings;
    const bool sweeps = session->sweep.names[0] != NULL;
    char problem[PROBLEM_BYTES] = "";
    struct stat there;
    if (session->world.rank == 0 && common->json != NULL) {
        snprintf(session->json_part, sizeof session->json_part, "%s.part", common->json);
        if (stat(common->json, &there) == 0 && !S_ISREG(there.st_mode)) /* a device would be replaced */
            snprintf(problem, sizeof problem, "--json %s: is not a regular file; it or a new one is expected",
                     common->json);
        else if (sweeps && !common->resume && access(session->json_part, F_OK) == 0)
            snprintf(problem, sizeof problem,
                     "--json %s: %s is there, from a run that was cut off; --resume yes goes on with it", common->json,
                     session->json_part);
        else if (common->resume)
            sweep_resume(&session->sweep, session->json_part, problem, sizeof problem);
        if (problem[0] == '\0')
            session->json = fopen(session->json_part, common->resume ? "a" : "w");
        if (problem[0] == '\0' && session->json == NULL)
            snprintf(problem, sizeof problem, "--json %s: %s", common->json, strerror(errno));
        if (session->json != NULL && !sweeps)
            made_files_add(session->json_part);
    }
    stop_all_if(session->world.comm, EXIT_BAD_INPUT, problem);
    MPI_OK(MPI_Bcast(session->sweep.done, session->sweep.count, MPI_C_BOOL, 0, session->world.comm), "MPI");
}

/* --- one case in one repeat ----------------------------------------------------------------------------------- */

static void remove_file(const char *path, void *unused)
{
    (void)unused;
    if (unlink(path) != 0)
        failure_system("unlink", path);
}

/* On parallel file systems a file has its place on the targets from the moment it is made. */
static void empty_file(const char *path, void *unused)
{
    (void)unused;
    if (truncate(path, 0) != 0)
        failure_system("truncate", path);
}

static void remember_not(const char *path, void *unused)
{
    (void)unused;
    made_files_forget(path);
}

static void add_size(const char *path, void *total)
{
    struct stat status;
    if (stat(path, &status) != 0)
        failure_system("stat", path);
    *(uint64_t *)total += (uint64_t)status.st_size;
}

static void write_back_file(const char *path, void *unused)
{
    (void)unused;
    if (page_cache_write_back(path) != 0)
        failure_system("fsync before the cache is dropped", path);
}

static void drop_file(const char *path, void *unused)
{
    (void)unused;
    if (page_cache_drop(path) != 0)
        failure_system("posix_fadvise", path);
}

/* On which ranks a file is dropped or looked at: a shared one once a host, one of a rank's own where it is read. */
static bool looks_at_cache(const struct run *run)
{
    return run->common->sharing != SHARING_ALL || run->world->host_leader == run->world->rank;
}

static void drop_cache(const struct session *session, const struct run *run)
{
    each_own_file(session, run, write_back_file, NULL);
    MPI_OK(MPI_Barrier(run->world->comm), "MPI");
    if (looks_at_cache(run))
        each_file(session, run, run->source, drop_file, NULL);
    MPI_OK(MPI_Barrier(run->world->comm), "MPI");
}

struct cached_sum {
    struct cached_pages pages;
    uint64_t unknown;
};

static void add_pages(struct cached_sum *sum, struct cached_pages pages)
{
    sum->pages.resident += pages.resident;
    sum->pages.total += pages.total;
    sum->unknown += !pages.known;
}

static void look_at_file(const char *path, void *sum)
{
    add_pages(sum, page_cache_look(path, 0, UINT64_MAX));
}

/* The raw interfaces put rows where the layout says, and so do HDF5 and netCDF-4 with contiguous datasets in one file,
 * short of their own metadata; a chunk's place is their business. */
static bool rows_lie_as_laid_out(const struct run *run)
{
    const int driver = run->common->hdf5.driver;
    if (run->common->interface == INTERFACE_MPIIO || run->common->interface == INTERFACE_POSIX)
        return true;
    if (run->common->interface == INTERFACE_NETCDF)
        return run->layout->datasets[0].chunk[0] == 0;
    return run->common->foreign == NULL && run->layout->datasets[0].chunk[0] == 0 && driver != DRIVER_SPLIT &&
           driver != DRIVER_MULTI && driver != DRIVER_FAMILY && driver != DRIVER_SUBFILING;
}

static void look_at_rows(const struct session *session, const struct run *run, struct cached_sum *sum)
{
    char path[PATH_BYTES];
    uint64_t first = 0;
    uint64_t rows = 0;
    session->pattern->rows(run->settings, run->world->size, run->source, &first, &rows);
    for (int f = 0; f < session->pattern->files(run->settings); f++)
        for (int d = 0; d < run->layout->count; d++) {
            const struct dataset *dataset = &run->layout->datasets[d];
            add_pages(sum,
                      page_cache_look(run_path(run, f, run->source, path, sizeof path),
                                      dataset->base_bytes + first * dataset->row_bytes, rows * dataset->row_bytes));
        }
}

/* Fraction of the pages that the ranks are about to read which are in memory on the reading rank's host; NaN: unknown.
 * Where the rows' place is not known the whole file counts; a file with holes tells nothing. */
static double cached_fraction(const struct session *session, const struct run *run)
{
    struct cached_sum sum = {0};
    const bool reads = run->common->sharing != SHARING_ONE || run->world->rank == 0;
    if (run->layout->sparse)
        return NAN;
    if (reads && rows_lie_as_laid_out(run))
        look_at_rows(session, run, &sum);
    else if (reads)
        each_file(session, run, run->source, look_at_file, &sum);
    const uint64_t resident = sum_of(run->world, sum.pages.resident);
    const uint64_t total = sum_of(run->world, sum.pages.total);
    if (sum_of(run->world, sum.unknown) > 0 || total == 0)
        return NAN;
    return (double)resident / (double)total;
}

static void stop_if_data_differ(const struct run *run)
{
    char problem[PROBLEM_BYTES] = "";
    if (run->mismatch.count > 0)
        snprintf(problem, sizeof problem,
                 "data differ: %s, index %llu: expected 0x%llx, found 0x%llx (rank %d, which reads rank %d's data, "
                 "found %llu words that differ)",
                 run->mismatch_where, (unsigned long long)run->mismatch.index,
                 (unsigned long long)run->mismatch.expected, (unsigned long long)run->mismatch.found, run->world->rank,
                 run->source, (unsigned long long)run->mismatch.count);
    stop_all_if(run->world->comm, EXIT_BAD_DATA, problem);
}

static uint64_t read_and_check(const struct session *session, struct run *run)
{
    session->pattern->read(run);
    stop_if_data_differ(run);
    return sum_of(run->world, run->checked_bytes);
}

static void measure_read(struct session *session, int number, struct repeat_result *result)
{
    struct stopwatch watch = {.comm = session->cases[number].world.comm};
    struct run run = run_of(session, number, &watch);
    result->cached_before_drop = cached_fraction(session, &run);
    if (run.common->drop_cache)
        drop_cache(session, &run);
    result->cached = run.common->drop_cache ? cached_fraction(session, &run) : result->cached_before_drop;
    result->verified = read_and_check(session, &run);
    result->times = stopwatch_reduce(&watch);
}

static void measure_write(struct session *session, int number, struct repeat_result *result)
{
    struct stopwatch watch = {.comm = session->cases[number].world.comm};
    struct run run = run_of(session, number, &watch);
    session->pattern->write(&run);
    result->times = stopwatch_reduce(&watch);
    result->cached = result->cached_before_drop = NAN;
}

static void note_size(struct session *session, int number)
{
    const struct run run = run_of(session, number, NULL);
    uint64_t bytes = 0;
    each_own_file(session, &run, add_size, &bytes);
    session->cases[number].file_bytes = sum_of(run.world, bytes);
}

/* Read everything back, untimed. */
static uint64_t check_everything(struct session *session, int number)
{
    struct stopwatch watch = {.comm = session->cases[number].world.comm};
    struct run run = run_of(session, number, &watch);
    run.everything = true;
    if (run.common->drop_cache)
        drop_cache(session, &run);
    const uint64_t checked = read_and_check(session, &run);
    stopwatch_reduce(&watch);
    return checked;
}

/* RESULTS [operations] of a warm-up are thrown away. */
static void move_bytes(struct session *session, int number, bool last, struct repeat_result *results)
{
    const struct a_case *c = &session->cases[number];
    const struct pattern *pattern = session->pattern;
    const int operation = c->common->operation;
    const int ranks = c->world.size;
    struct repeat_result *write = &results[0];
    struct repeat_result *read = &results[1];
    if (operation != OPERATION_READ)
        measure_write(session, number, write);
    note_size(session, number);
    if (operation != OPERATION_WRITE)
        measure_read(session, number, read);
    if (operation == OPERATION_READ)
        return; /* not our files: they stay */
    const bool all_read = operation == OPERATION_BOTH && pattern->logical_bytes(c->settings, ranks, true) ==
                                                             pattern->logical_bytes(c->settings, ranks, false);
    write->verified = all_read ? read->verified : check_everything(session, number);
    const struct run run = run_of(session, number, NULL);
    MPI_OK(MPI_Barrier(run.world->comm), "MPI");
    each_file(session, &run, run.world->rank, remember_not, NULL); /* all ranks know a shared file */
    MPI_OK(MPI_Barrier(run.world->comm), "MPI");
    if (last && c->common->keep_empty && !c->common->keep && c->differs == NULL)
        each_own_file(session, &run, empty_file, NULL);
    else if (!c->common->keep || !last)
        each_own_file(session, &run, remove_file, NULL);
    MPI_OK(MPI_Barrier(run.world->comm), "MPI");
}

static void perform_operations(struct session *session, int number, struct repeat_result *results)
{
    struct stopwatch watch = {.comm = session->cases[number].world.comm};
    for (int i = 0; i < session->operation_count; i++) {
        if (!case_does(session, &session->cases[number], i))
            continue;
        struct run run = run_of(session, number, &watch);
        session->pattern->perform(&run, i);
        stop_if_data_differ(&run);
        results[i].verified = sum_of(run.world, run.checked_bytes);
        results[i].times = stopwatch_reduce(&watch);
        results[i].cached = results[i].cached_before_drop = NAN;
    }
}

static void run_case(struct session *session, int number, bool last, struct repeat_result *results)
{
    if (!takes_part(&session->cases[number]))
        return;
    if (session->pattern->operations != NULL)
        perform_operations(session, number, results);
    else
        move_bytes(session, number, last, results);
}

static void measure(struct session *session)
{
    const struct common_settings *common = session->settings;
    const int operations = session->operation_count;
    const uint64_t rounds = common->warmup + common->repeats;
    struct repeat_result *results = calloc((size_t)operations, sizeof *results);
    if (results == NULL)
        stop_rank("out of memory");
    for (int i = 0; i < session->case_count; i++)
        allocate(&session->cases[i], session->pattern, operations);
    for (uint64_t round = 0; round < rounds; round++)
        for (int i = 0; i < session->case_count; i++) {
            const int number = (int)((round + (uint64_t)i) % (uint64_t)session->case_count);
            struct a_case *c = &session->cases[number];
            run_case(session, number, round == rounds - 1, results);
            if (c->world.size < session->world.size)
                world_meet(&session->world);
            for (int o = 0; o < operations && round >= common->warmup; o++)
                c->results[(uint64_t)o * common->repeats + round - common->warmup] = results[o];
        }
    free(results);
}

/* --- after the run -------------------------------------------------------------------------------------------- */

static struct record record_of(const struct session *session, int number, int operation)
{
    const struct a_case *c = &session->cases[number];
    const struct pattern *pattern = session->pattern;
    const bool of_read = session->operations[operation].of_read;
    const int ranks = c->world.size;
    int others = 0;
    int other_hosts = 0;
    for (int r = 0; r < ranks; r++) {
        const int from = c->reading_from[r];
        others += from != r;
        other_hosts += c->world.places[from].host_index != c->world.places[r].host_index;
    }
    return (struct record){
        .pattern = pattern,
        .world = &c->world,
        .settings = c->settings,
        .common = c->common,
        .differs = c->differs,
        .sweep_run = session->sweep.run,
        .sweep_case = session->swept,
        .operation = session->operations[operation].name,
        .of_read = of_read,
        .logical_bytes = pattern->operations == NULL ? pattern->logical_bytes(c->settings, ranks, of_read) : 0,
        .operations = pattern->operations == NULL ? 0 : pattern->count(c->settings, ranks, operation),
        .file_bytes = c->file_bytes,
        .shift = c->shift,
        .other_rank_fraction = (double)others / ranks,
        .other_host_fraction = (double)other_hosts / ranks,
        .started = session->started,
        .repeats = &c->results[(uint64_t)operation * c->common->repeats]};
}

static void each_record(const struct session *session, void (*put)(const struct record *record, FILE *file), FILE *file)
{
    for (int i = 0; i < session->case_count; i++)
        for (int o = 0; o < session->operation_count; o++) {
            if (!case_does(session, &session->cases[i], o))
                continue;
            const struct record record = record_of(session, i, o);
            put(&record, file);
        }
}

/* Rank 0: the table's rows and the records of the cases just measured. */
static void report(struct session *session)
{
    if (session->world.rank != 0)
        return;
    each_record(session, record_table_row, stdout);
    each_record(session, record_json, session->json != NULL ? session->json : stdout);
    if (session->json != NULL && fflush(session->json) != 0)
        failure_system("write of the records", session->json_part);
    if (fflush(stdout) != 0)
        failure_system("write of the results", "stdout");
}

static void close_json(struct session *session)
{
    const char *name = session->settings->json;
    if (session->json == NULL)
        return;
    if (ferror(session->json) || fclose(session->json) != 0 || rename(session->json_part, name) != 0)
        failure_system("write of the records", name);
    made_files_forget(session->json_part);
}

static void show_head(const struct session *session)
{
    if (session->world.rank == 0)
        record_table_head(session->pattern->name, &session->world, session->settings->repeats, stdout);
}

static void show_progress(const struct session *session, int number)
{
    if (session->world.rank == 0 && session->swept != NULL)
        printf("[%d/%d] %s%s\n", number + 1, session->sweep.count, session->swept,
               session->sweep.done[number] ? ": measured before" : "");
    fflush(stdout);
}

int run_kernel(const struct pattern *pattern, int argc, char **argv)
{
    struct session session = {.pattern = pattern, .operations = pattern->operations};
    if (session.operations == NULL)
        session.operations = moves;
    while (session.operations[session.operation_count].name != NULL)
        session.operation_count++;
    failure_set_kernel(pattern->name);
    session.world = world_start(&argc, &argv);
    const time_t now = time(NULL);
    struct tm utc;
    strftime(session.started, sizeof session.started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    parse(&session, argc, argv);
    plan(&session);
    made_files_watch_signals();
    open_json(&session);
    show_head(&session);
    for (int i = 0; i < session.sweep.count; i++) {
        make_cases(&session, i);
        show_progress(&session, i);
        if (!session.sweep.done[i]) {
            measure(&session);
            report(&session);
        }
        free_cases(&session);
    }
    close_json(&session);
    sweep_free(&session.sweep);
    text_list_free(&session.settings->baselines);
    text_list_free(&session.settings->sweeps);
    free(session.settings);
    free(session.world.places);
    MPI_OK(MPI_Finalize(), "MPI");
    return 0;
}
