/* When work that is to succeed again and again last did. */
#include "inspect/jobs.h"

#include "record/record.h"
#include "text/text.h"

#include <fnmatch.h>
#include <idem/operator.h>

bool cli_matches(const struct idem_record *record, const char *pattern)
{
    char key[4 * IDEM_KEY_MAX + 1];

    return fnmatch(pattern, cli_escape(record->key, key, sizeof(key)),
                   FNM_NOESCAPE) == 0;
}

int cli_jobs_read(const struct cli_command *command, const char *text,
                  struct cli_jobs *ret_jobs)
{
    char *rest = ret_jobs->text;

    ret_jobs->len = 0;
    if (text == NULL) {
        return 0;
    }
    (void)snprintf(ret_jobs->text, sizeof(ret_jobs->text), "%s", text);
    while (rest != NULL) {
        char *pattern = strsep(&rest, ",");

        if (*pattern == '\0' || ret_jobs->len == IDEM_METRICS_JOBS) {
            return cli_usage(command,
                             "--missing: 1 to %d patterns of keys, with commas "
                             "between them: 'backup@*,report@*'",
                             IDEM_METRICS_JOBS);
        }
        ret_jobs->list[ret_jobs->len++] = (struct cli_job){.pattern = pattern};
    }
    return 0;
}

struct looking {
    struct cli_jobs *jobs;
    int64_t enough_ms;
};

static void note(struct cli_job *job, const struct idem_record *r)
{
    if (job->kept_ms == 0 || r->retention_ms < job->kept_ms) {
        job->kept_ms = r->retention_ms;
    }
    if (idem_outcome_succeeded(r) && r->ended_ms > job->success_ms) {
        job->success_ms = r->ended_ms;
    }
}

static int see(void *ctx, int code, const struct idem_record *r)
{
    const struct looking *looking = ctx;
    bool enough = true;
    size_t i;

    for (i = 0; i < looking->jobs->len; i++) {
        struct cli_job *job = &looking->jobs->list[i];

        if (code == 0 && !cli_is_alert(r) && cli_matches(r, job->pattern)) {
            note(job, r);
        }
        enough = enough && job->success_ms >= looking->enough_ms;
    }
    return enough;
}

int cli_jobs_look(struct cli_jobs *jobs, struct idem_store *store,
                  const struct idem_slice *scope, int64_t enough_ms,
                  struct idem_error *ret_error)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct looking looking = {jobs, enough_ms};
    size_t i;

    if (jobs->len == 0) {
        return 0;
    }
    for (i = 0; i < jobs->len; i++) {
        jobs->list[i].success_ms = 0;
        jobs->list[i].kept_ms = 0;
    }
    filter.newest_first = true;
    if (scope != NULL) {
        filter.any_scope = false;
        filter.scope = *scope;
    }
    return idem_list(store, &filter, see, &looking, /* ret_now_ms= */ NULL,
                     ret_error);
}
