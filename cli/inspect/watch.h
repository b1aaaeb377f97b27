/* watch.h: the parts of idem watch.
 *
 *     watch.c            options, a look and its summary, again and again
 *     watch_records.c    alerts about records, and which of them are new
 *     watch_store.c      other alerts: too many in progress, no success in time, the
 *                        store's time and log, the journal of this host
 */
#ifndef IDEM_CLI_INSPECT_WATCH_H
#define IDEM_CLI_INSPECT_WATCH_H

#include "inspect/metrics.h"
#include "options/command.h"
#include "record/open_records.h"
#include "text/json.h"

#include <idem.h>
#include <idem/journal.h>
#include <idem/sqlite.h>

/* ---- Kinds of alerts, their severity, and raising them once ---- */

enum cli_alert_kind {
    CLI_ALERT_OVERDUE,     /* Work that should have ended by now. */
    CLI_ALERT_FAILED,      /* Work that ended, and needs a person. */
    CLI_ALERT_UNKNOWN,     /* It may have happened. */
    CLI_ALERT_UNREADABLE,  /* A record that cannot be trusted. */
    CLI_ALERT_IN_PROGRESS, /* Too much at a time; about no record. */
    CLI_ALERT_OUTCOME,     /* Work that was completed with a failure. */
    CLI_ALERT_RETRY,       /* Work that is to be run again. */
    CLI_ALERT_KINDS,
};

/* "overdue" ...; NULL at the end. */
extern const char *const cli_alert_kinds[];

/* The exit statuses of a monitoring plugin. */
enum cli_level {
    CLI_LEVEL_OK,
    CLI_LEVEL_WARNING,
    CLI_LEVEL_CRITICAL,
    CLI_LEVEL_UNKNOWN,
};

extern const char *const cli_levels[]; /* "ok" ... */

/* More than this many are worth an alert; IDEM_NEVER: never. */
struct cli_limits {
    int64_t warn[CLI_ALERT_KINDS];
    int64_t critical[CLI_ALERT_KINDS];
};

/* Sets the default limits: critical from the first record that is overdue, unknown or
 * unreadable, a warning from the first that failed or was completed with a failure. */
void cli_limits_init(struct cli_limits *limits);

/* Reads "failed=3,in_progress=100" into @limits; a number, or "never". 0, or a
 * usage error that names @option. */
int cli_limits_read(const struct cli_command *command, const char *option,
                    const char *text, int64_t limits[CLI_ALERT_KINDS]);

/* How many there are, and how bad that is. */
uint64_t cli_alert_count(const struct cli_snapshot *snapshot,
                         enum cli_alert_kind kind);
enum cli_level cli_alert_level(const struct cli_limits *limits,
                               const struct cli_snapshot *snapshot,
                               enum cli_alert_kind kind);

/* The worst of all. */
enum cli_level cli_alert_worst(const struct cli_limits *limits,
                               const struct cli_snapshot *snapshot);

/* Finds the fault of one record; false: it has none. */
bool cli_alert_of(const struct cli_open *open, enum cli_alert_kind *ret_kind);

enum cli_raised {
    CLI_RAISED_NOW,    /* The hook has run. */
    CLI_RAISED_BEFORE, /* It was raised already. */
    CLI_RAISED_BUSY,   /* Another process is raising it. */
    CLI_RAISED_FAILED, /* The hook failed, or could not be run: try again. */
};

extern const char *const cli_raised_names[]; /* "now" ... */

struct cli_raise {
    struct idem_store *store;
    const char *command;
    const char *text;   /* A sentence for people; may be NULL. */
    int64_t timeout_ms; /* Of the command. */
    int64_t again_ms;   /* When an alert that persists is raised again. */
};

/* Runs the hook for the alert @name once, even if other processes raise it too: @name is
 * the key of a claim. The hook reads @line. Reports what went wrong. */
enum cli_raised cli_alert_raise(const struct cli_raise *raise, const char *name,
                                const struct cli_json *line);

/* Describes the fault of a record in a sentence for people, and gives the command that
 * shows more. Where keys must not be logged, it shows the id in place of the key, and no
 * command. @store_url: --store, or NULL if it was not given. @elsewhere: the text will be
 * read in another shell, for example in a mail, and so names the store of IDEM_STORE too.
 * The caller frees it; NULL: no memory. */
char *cli_alert_text(const struct cli_open *open, enum cli_alert_kind kind,
                     const char *store_url, bool elsewhere);

/* The name of an alert about a record: its id, the fence, the kind. */
#define CLI_ALERT_NAME_MAX 128
void cli_alert_name(const struct idem_record *record, enum cli_alert_kind kind,
                    char buf[CLI_ALERT_NAME_MAX]);

/* ---- The user's hook ---------------------------------------------------- */

/* Runs @command by sh -c, with the line @json on its stdin, the sentence @text (may be
 * NULL) as its "$1", and this process's stderr as its stdout, in a process group of its
 * own. Kills the group if the command takes longer than @timeout_ms. Returns its exit
 * status; 128 + N if signal N ended it; 124 if it took too long; 127 if it could not be
 * started. */
int cli_hook(const char *command, const struct cli_json *json, const char *text,
             int64_t timeout_ms);

/* ---- Watch ---- */

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
    struct cli_open *last; /* The records named at the last look, by id. */
    size_t last_len;
    bool more[CLI_ALERT_KINDS];      /* There were more then than were named. */
    bool many;                       /* in_progress was over its limit then. */
    bool warned;                     /* Of a retention shorter than --within. */
    bool jumped;                     /* The store's time had jumped then. */
    enum cli_level room;             /* How bad the journal's room was then. */
    struct idem_journal_usage usage; /* Of the journal now. */
    int64_t jump_ms;
    int64_t doubt_ms;
    struct idem_sqlite_log_info log;
    int64_t log_pid; /* The process that held it then; 0: none. */
    int status;      /* Of the output. */
};

/* ---- watch_records.c ---- */

/* Raises an alert if there is a hook, and prints it if it is new: @line for programs, or
 * @text for a person who looks once. */
void watcher_tell(struct watcher *watch, const char *name, const char *text,
                  struct cli_json *line, bool is_new);

/* Which records a snapshot keeps, for struct cli_snapshot_keep. */
int watcher_compare(const void *a, const void *b);
int watcher_class_of(void *ctx, struct cli_open *open);

/* The alerts of one kind. */
void watcher_tell_kind(struct watcher *watch, enum cli_alert_kind kind);

/* Reports alerts that are over, and remembers those that were named, so that the next
 * look knows which are new and which are over. 0 or an exit status, after an error
 * message. */
int watcher_remember(struct watcher *watch);
void watcher_forget(struct watcher *watch);

/* ---- watch_store.c ---- */

void watcher_tell_many(struct watcher *watch);

/* How many patterns of --missing have no success within the time of --within. */
size_t watcher_missing(const struct watcher *watch);
void watcher_tell_missing(struct watcher *watch);

/* The store's time jumped at the boot, and may be wrong. */
bool watcher_has_jumped(struct watcher *watch);
void watcher_tell_clock(struct watcher *watch, bool jumped);

/* A log that cannot shrink grows until the disk is full. */
bool watcher_is_log_held(struct watcher *watch);
void watcher_tell_log(struct watcher *watch);

/* A full journal keeps no more outcomes. */
enum cli_level watcher_journal_level(struct watcher *watch);
void watcher_tell_journal(struct watcher *watch, enum cli_level level);

#endif
