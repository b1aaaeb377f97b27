/* Alerts about the store or this host, not about a single record. */
#include "inspect/watch.h"
#include "process/host.h"
#include "record/verdict.h"
#include "store/journal.h"
#include "text/error.h"
#include "text/json.h"
#include "text/text.h"

#include <idem/setting.h>
#include <stdlib.h>

/* A jump of the store's time at a boot that a person should know of. */
#define JUMP_MAX_MS (INT64_C(24) * 3600 * 1000)

/* The name of an alert that is raised once an hour for as long as it lasts. */
static void hour_name(char name[CLI_ALERT_NAME_MAX], const char *what,
                      enum cli_level level, int64_t now_ms)
{
    (void)snprintf(name, CLI_ALERT_NAME_MAX, "%s/%s/%lld", what,
                   cli_levels[level], (long long)(now_ms / 3600000));
}

void watcher_tell_many(struct watcher *watch)
{
    enum cli_level level = cli_alert_level(&watch->limits, &watch->snapshot,
                                           CLI_ALERT_IN_PROGRESS);
    char name[CLI_ALERT_NAME_MAX];
    struct cli_json line;
    char text[64];

    if (level != CLI_LEVEL_OK) {
        cli_log_begin(&line, cli_levels[level], "in_progress");
        cli_json_count(&line, "in_progress", watch->snapshot.in_progress);
        hour_name(name, "in_progress", level, watch->snapshot.now_ms);
        (void)snprintf(text, sizeof(text),
                       "%llu are in progress, more than the limit",
                       (unsigned long long)watch->snapshot.in_progress);
        watcher_tell(watch, name, text, &line, !watch->many);
    }
    watch->many = level != CLI_LEVEL_OK;
}

/* ---- Work that has not succeeded in time ---- */

static bool is_missing(const struct watcher *watch, const struct cli_job *job)
{
    return job->success_ms < watch->snapshot.now_ms - watch->args->within_ms;
}

size_t watcher_missing(const struct watcher *watch)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < watch->jobs.len; i++) {
        n += is_missing(watch, &watch->jobs.list[i]);
    }
    return n;
}

static void tell_job(struct watcher *watch, struct cli_job *job)
{
    const char *store = watch->args->store != NULL || watch->args->hook == NULL
                            ? watch->args->store
                            : secure_getenv("IDEM_STORE");
    char name[IDEM_KEY_MAX + 1];
    char within[32];
    char since[48];
    struct cli_json line;
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    cli_log_begin(&line, cli_levels[CLI_LEVEL_CRITICAL], "missing");
    cli_json_bytes(&line, "keys", idem_str(job->pattern));
    cli_json_ms(&line, "within_ms", watch->args->within_ms);
    cli_json_ms(&line, "success_ms", job->success_ms);
    (void)snprintf(name, sizeof(name), "missing/%lld/%.220s",
                   (long long)job->success_ms, job->pattern);
    idem_setting_time(watch->args->within_ms, within);
    cli_time_text(job->success_ms, since);
    if (f != NULL) {
        (void)fprintf(
            f, "no success of %s within %s; the last: %s; see: idem list",
            job->pattern, within,
            job->success_ms != 0 ? since : "none on record");
        if (store != NULL && *store != '\0') {
            (void)fputs(" --store=", f);
            cli_print_url(f, store);
        }
        (void)fputs(" --match ", f);
        cli_print_quoted(f, idem_str(job->pattern));
        (void)fclose(f);
    }
    watcher_tell(watch, name, text, &line, !job->told);
    free(text);
}

/* If the store forgets a success before --within has passed, the job looks as if it had
 * never succeeded. */
static void warn_of_retention(const struct watcher *watch,
                              const struct cli_job *job)
{
    char within[32];
    char kept[32];

    idem_setting_time(watch->args->within_ms, within);
    idem_setting_time(job->kept_ms, kept);
    cli_say("--within %s is longer than %s keeps its records (%s): raise its "
            "--retention, or a success is forgotten too early",
            within, job->pattern, kept);
}

void watcher_tell_missing(struct watcher *watch)
{
    size_t i;

    for (i = 0; i < watch->jobs.len; i++) {
        struct cli_job *job = &watch->jobs.list[i];
        bool missing = is_missing(watch, job);

        if (!watch->warned && job->kept_ms != 0 &&
            job->kept_ms < watch->args->within_ms) {
            warn_of_retention(watch, job);
        }
        if (missing) {
            tell_job(watch, job);
        }
        job->told = missing;
    }
    watch->warned = true;
}

/* ---- The store's time, its log, and the journal ---- */

bool watcher_has_jumped(struct watcher *watch)
{
    watch->jump_ms = 0;
    watch->doubt_ms = 0;
    (void)idem_sqlite_clock(watch->store, &watch->jump_ms, &watch->doubt_ms,
                            /* ret_error= */ NULL);
    return watch->jump_ms > JUMP_MAX_MS;
}

void watcher_tell_clock(struct watcher *watch, bool jumped)
{
    char name[CLI_ALERT_NAME_MAX];
    struct cli_json line;

    if (jumped) {
        cli_log_begin(&line, cli_levels[CLI_LEVEL_WARNING], "clock");
        cli_json_ms(&line, "jump_ms", watch->jump_ms);
        cli_json_ms(&line, "doubt_ms", watch->doubt_ms);
        (void)snprintf(name, sizeof(name), "clock/%lld",
                       (long long)watch->jump_ms);
        watcher_tell(watch, name,
                     "the store's time jumped at this boot; see: idem doctor",
                     &line, !watch->jumped);
    }
    watch->jumped = jumped;
}

bool watcher_is_log_held(struct watcher *watch)
{
    static const struct idem_sqlite_log_info none = IDEM_SQLITE_LOG_INFO_INIT;

    watch->log = none;
    (void)idem_sqlite_log(watch->store, &watch->log, /* ret_error= */ NULL);
    return watch->log.pid != 0;
}

void watcher_tell_log(struct watcher *watch)
{
    int64_t pid = watch->log.pid;
    char name[CLI_ALERT_NAME_MAX];
    struct cli_json line;
    char text[160];

    if (pid != 0) {
        cli_log_begin(&line, cli_levels[CLI_LEVEL_WARNING], "log");
        cli_json_count(&line, "log_bytes", watch->log.len);
        cli_json_count(&line, "pid", (uint64_t)pid);
        cli_json_bytes(&line, "process", idem_str(watch->log.process));
        (void)snprintf(name, sizeof(name), "log/%lld", (long long)pid);
        (void)snprintf(
            text, sizeof(text),
            "the store's log has %llu MB and cannot shrink: process %lld keeps a transaction open; see: idem doctor",
            (unsigned long long)(watch->log.len >> 20), (long long)pid);
        watcher_tell(watch, name, text, &line, pid != watch->log_pid);
    }
    watch->log_pid = pid;
}

enum cli_level watcher_journal_level(struct watcher *watch)
{
    const struct idem_journal_usage none = IDEM_JOURNAL_USAGE_INIT;

    watch->usage = none;
    if (!cli_journal_read_usage(&watch->usage) || !watch->usage.near) {
        return CLI_LEVEL_OK;
    }
    return watch->usage.room > 0 ? CLI_LEVEL_WARNING : CLI_LEVEL_CRITICAL;
}

/* The journal fills above all while the store is unavailable, so this is reported even
 * then. */
void watcher_tell_journal(struct watcher *watch, enum cli_level level)
{
    const struct idem_journal_usage *usage = &watch->usage;
    char name[CLI_ALERT_NAME_MAX];
    struct cli_json line;
    char text[96];

    if (level != CLI_LEVEL_OK) {
        cli_log_begin(&line, cli_levels[level], "journal");
        cli_json_count(&line, "entries", usage->entries);
        cli_json_count(&line, "room", usage->room);
        hour_name(name, "journal", level, cli_now_ms());
        (void)snprintf(text, sizeof(text),
                       "the journal of this host has %llu MiB of room left; "
                       "make room on its disk",
                       (unsigned long long)(usage->room >> 20));
        watcher_tell(watch, name, text, &line, watch->room != level);
    }
    watch->room = level;
}
