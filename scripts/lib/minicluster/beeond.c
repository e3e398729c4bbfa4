/* SPANK plugin of the mini-cluster: makes --beeond an option of sbatch, salloc and srun, and sets BEEOND in the job.
 *
 * The prolog finds SPANK_BEEOND in its environment and makes the file system FOLDER/JOBID; FOLDER is the plugin's
 * argument. */
#include <slurm/spank.h>

#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

SPANK_PLUGIN(beeond, 1)

enum { PATH_BYTES = 4096 };

static int requested = 0;

static int request(int value, const char *argument, int remote)
{
    (void)value;
    (void)argument;
    (void)remote;
    requested = 1;
    return 0;
}

static struct spank_option options[] = {
    {"beeond", NULL, "a file system of the job's own over its nodes; $BEEOND names it", 0, 0, request},
    SPANK_OPTIONS_TABLE_END,
};

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
    (void)arguments;
    if (count != 1) {
        slurm_error("beeond: plugstack.conf has to name the folder of the jobs' file systems");
        return ESPANK_BAD_ARG;
    }
    const spank_context_t context = spank_context();
    if (context == S_CTX_ALLOCATOR || context == S_CTX_LOCAL || context == S_CTX_REMOTE)
        return (int)spank_option_register(spank, options);
    return ESPANK_SUCCESS;
}

/* In sbatch, salloc and srun: what the prolog and epilog of the job are to find. */
int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments)
{
    (void)count;
    (void)arguments;
    const spank_context_t context = spank_context();
    if (!requested || (context != S_CTX_ALLOCATOR && context != S_CTX_LOCAL))
        return ESPANK_SUCCESS;
    return (int)spank_job_control_setenv(spank, "BEEOND", "1", 1);
}

/* In every step, the batch step too. That the job's file system exists is what counts: however a step was started, it
 * has no need to know the options of the job. */
int slurm_spank_user_init(spank_t spank, int count, char **arguments)
{
    (void)count;
    uint32_t job = 0;
    char path[PATH_BYTES];
    struct stat status;
    const spank_err_t known = spank_get_item(spank, S_JOB_ID, &job);
    if (known != ESPANK_SUCCESS)
        return (int)known;
    const int length = snprintf(path, sizeof path, "%s/%u", arguments[0], job);
    if (length < 0 || (size_t)length >= sizeof path)
        return ESPANK_BAD_ARG;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return ESPANK_SUCCESS;
    return (int)spank_setenv(spank, "BEEOND", path, 1);
}
