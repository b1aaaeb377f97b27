/* watch.h: the parts of idem watch.
 *
 *     watch.c            options, a look, again and again, and its sum
 *     watch_records.c    alerts about records, and what of them is news
 *     watch_store.c      alerts about none: too many in progress, no success in time, the
 *                        store's time and log, the journal of this host
 */
#ifndef IDEM_CLI_INSPECT_WATCH_H
#define IDEM_CLI_INSPECT_WATCH_H

#include "inspect/alert.h"
#include "inspect/jobs.h"
#include "record/open_records.h"
#include "text/json.h"

#include <idem/journal.h>
#include <idem/sqlite.h>

struct watch_args {
    bool once;
    int64_t every_ms;
    const char *warn;
    const char *critical;
    const char *hook;
    int64_t hook_timeout_ms;
    int64_t again_ms;
    int64_t since_ms;
    uint64_t alerts;
    const char *missing;
    int64_t within_ms;
    const char *scope;
    bool json;
    const char *store;
};

struct watcher {
    const struct watch_args *args; /* As the command line says. */
    struct cli_limits limits;
    struct idem_store *store; /* NULL: it could not be opened yet. */
    struct cli_snapshot snapshot;
    struct cli_jobs jobs;  /* Of --missing. */
    struct cli_open *last; /* Named at the look before it, by id. */
    size_t last_len;
    bool more[CLI_ALERT_KINDS]; /* More was up then than is named. */
    bool many;                  /* in_progress was over its limit then. */
    bool warned;                /* That a retention is shorter than --within. */
    bool jumped;                /* The store's time had jumped then. */
    enum cli_level room;        /* In the journal then. */
    struct idem_journal_usage usage; /* Of the journal now. */
    int64_t jump_ms;
    int64_t doubt_ms;
    struct idem_sqlite_log_info log;
    int64_t log_pid; /* The process that held it then; 0: none. */
    int status;      /* Of the output. */
};

/* ---- watch_records.c ---- */

/* Raises it where there is a hook, and prints it where it is news: for programs, or
 * @text for a person who looks once. */
void watcher_tell(struct watcher *watch, const char *name, const char *text,
                  struct cli_json *line, bool is_new);

/* Which records a snapshot keeps, for struct cli_snapshot_keep. */
int watcher_compare(const void *a, const void *b);
int watcher_class_of(void *ctx, struct cli_open *open);

/* The alerts of one kind. */
void watcher_tell_kind(struct watcher *watch, enum cli_alert_kind kind);

/* Takes what was named over, to know at the next look what is new and what is
 * over. 0 or an exit status, after saying why. */
int watcher_remember(struct watcher *watch);
void watcher_forget(struct watcher *watch);

/* ---- watch_store.c ---- */

void watcher_tell_many(struct watcher *watch);

/* Of the keys that --missing names, those without a success --within the time. */
size_t watcher_missing(const struct watcher *watch);
void watcher_tell_missing(struct watcher *watch);

/* The store's time jumped at the boot, and may be wrong. */
bool watcher_has_jumped(struct watcher *watch);
void watcher_tell_clock(struct watcher *watch, bool jumped);

/* A log that cannot shrink grows until the disk is full. */
bool watcher_is_log_held(struct watcher *watch);
void watcher_tell_log(struct watcher *watch);

/* A journal that is full keeps nothing more. */
enum cli_level watcher_journal_level(struct watcher *watch);
void watcher_tell_journal(struct watcher *watch, enum cli_level level);

#endif
