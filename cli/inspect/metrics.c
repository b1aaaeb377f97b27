/* The metrics of a store, and when jobs that must succeed regularly last did. */
#include "inspect/metrics.h"

#include "process/host.h"
#include "record/record.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <idem/journal.h>
#include <idem/operator.h>
#include <idem/sqlite.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Jobs that are expected ---- */

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

/* ---- Metrics ---- */

static int64_t age_of(const struct cli_snapshot *snapshot, int64_t ms)
{
    return ms == 0 ? 0 : snapshot->now_ms - ms;
}

static void add_snapshot(struct idem_metrics *m,
                         const struct cli_snapshot *snapshot)
{
    m->up = true;
    m->now_ms = snapshot->now_ms;
    m->overdue = snapshot->overdue;
    m->in_progress = snapshot->in_progress;
    m->retry = snapshot->retry;
    m->retry_attempts = snapshot->retry_attempts;
    m->failed = snapshot->failed_len;
    m->unknown = snapshot->unknown;
    m->unreadable = snapshot->unreadable;
    m->failed_outcomes = snapshot->failed_outcomes;
    m->oldest_ms = age_of(snapshot, snapshot->oldest_ms);
    m->oldest_retry_ms = age_of(snapshot, snapshot->oldest_retry_ms);
}

static void add_jobs(struct idem_metrics *m, const struct cli_jobs *jobs)
{
    for (; m->jobs_len < jobs->len; m->jobs_len++) {
        const struct cli_job *job = &jobs->list[m->jobs_len];

        m->jobs[m->jobs_len] =
            (struct idem_metrics_job){job->pattern, job->success_ms};
    }
}

static void add_log(struct idem_metrics *m, struct idem_store *store)
{
    struct idem_sqlite_log_info log = IDEM_SQLITE_LOG_INFO_INIT;

    m->has_log = idem_sqlite_log(store, &log, NULL) == 0;
    m->log_len = log.len;
    m->log_held = log.pid != 0;
}

static void add_journal(struct idem_metrics *m)
{
    struct idem_journal_usage usage = IDEM_JOURNAL_USAGE_INIT;

    if (cli_journal_read_usage(&usage)) {
        m->has_journal = true;
        m->journal_entries = usage.entries;
        m->journal_room = usage.room;
    }
}

/* A store in a file keeps counters for all processes that ever used it. A store that many
 * machines share keeps none; the meter then has those of this host. */
int cli_metrics(struct idem_store *store, const struct cli_snapshot *snapshot,
                struct cli_jobs *jobs, struct idem_metrics *ret_metrics,
                struct idem_error *ret_error)
{
    static const struct idem_metrics none = IDEM_METRICS_INIT;
    struct idem_meter *meter = cli_meter();
    int rc = 0;

    *ret_metrics = none;
    ret_metrics->now_ms = cli_now_ms();
    if (store != NULL) {
        ret_metrics->store = idem_store_url(store);
        if (!idem_store_is_remote(store)) {
            rc = idem_count(store, &ret_metrics->counters, ret_error);
            ret_metrics->has_counters = rc == 0;
            rc = rc == IDEM_ENOTFOUND ? 0 : rc; /* The store keeps none. */
        }
    }
    if (snapshot != NULL && rc == 0) {
        rc = cli_jobs_look(jobs, store, /* scope= */ NULL, IDEM_NEVER,
                           ret_error);
    }
    if (snapshot != NULL) {
        add_snapshot(ret_metrics, snapshot);
        add_jobs(ret_metrics, jobs);
        if (store != NULL && !idem_store_is_remote(store)) {
            add_log(ret_metrics, store);
        }
    }
    if (meter != NULL) {
        idem_meter_read(meter, ret_metrics);
    }
    add_journal(ret_metrics);
    return rc;
}

static int cannot_write(const char *path)
{
    cli_say("cannot write the metrics to %s: %s", path, strerror(errno));
    return CLI_OUTPUT_FAILED;
}

/* Replaces the file in one step, so that a reader gets all of the old one or all of the
 * new one. Other users may read it. */
static int replace(const char *path, const char *text, size_t len)
{
    char *temp = NULL;
    bool done = false;
    int fd;

    if (asprintf(&temp, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        errno = ENOMEM;
        return cannot_write(path);
    }
    fd =
        open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0) {
        done = write(fd, text, len) == (ssize_t)len;
        done = close(fd) == 0 && done && rename(temp, path) == 0;
        if (!done) {
            int why = errno;

            (void)unlink(temp);
            errno = why;
        }
    }
    free(temp);
    return done ? 0 : cannot_write(path);
}

int cli_metrics_write(const struct idem_metrics *metrics, bool is_emf,
                      const char *path)
{
    static char text[IDEM_METRICS_TEXT_MAX];
    struct idem_metrics shown = *metrics;
    size_t len;
    int rc;

    if (is_emf) {
        /* CloudWatch adds up the values that it gets, so it must not get totals. */
        shown.has_counters = false;
        shown.has_calls = false;
        rc = idem_metrics_emf(&shown, /* before= */ NULL, "idem", text,
                              sizeof(text) - 1, &len);
        text[rc == 0 ? len++ : 0] = '\n';
    } else {
        rc = idem_metrics_prometheus(metrics, text, sizeof(text), &len);
    }
    if (rc != 0) {
        cli_say("the metrics do not fit");
        return CLI_INTERNAL;
    }
    if (path != NULL && strcmp(path, "-") != 0) {
        return replace(path, text, len);
    }
    (void)fwrite(text, 1, len, stdout);
    return 0;
}
