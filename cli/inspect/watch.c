/* idem watch: reports work that needs an operator. */
#include "inspect/watch.h"

#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "process/self.h"
#include "store/open.h"
#include "text/error.h"
#include "text/json.h"

static struct watch_args args = {
    .hook_timeout_ms = 60000,
    .again_ms = 30LL * 86400000,
    .since_ms = CLI_OUTCOMES_SINCE_MS,
    .alerts = 1000,
};

/* ---- The summary ---- */

static void print_limit(int64_t limit)
{
    if (limit != IDEM_NEVER) {
        (void)printf("%lld", (long long)limit);
    }
    (void)putchar(';');
}

static const char *const words[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

/* IDEM CRITICAL - 1 overdue, 0 failed ... | overdue=1;;0;0 ... */
static void print_plugin_line(const struct watcher *watch, enum cli_level level)
{
    int kind;

    (void)printf("IDEM %s -", words[level]);
    for (kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        (void)printf("%s %llu %s", kind == 0 ? "" : ",",
                     (unsigned long long)cli_alert_count(
                         &watch->snapshot, (enum cli_alert_kind)kind),
                     kind == CLI_ALERT_IN_PROGRESS ? "in progress"
                     : kind == CLI_ALERT_RETRY     ? "to be run again"
                     : kind == CLI_ALERT_OUTCOME   ? "failed outcomes"
                                                   : cli_alert_kinds[kind]);
    }
    if (watch->jobs.len > 0) {
        (void)printf(", %zu missing", watcher_missing(watch));
    }
    (void)fputs(" |", stdout);
    for (kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        (void)printf(" %s=%llu;", cli_alert_kinds[kind],
                     (unsigned long long)cli_alert_count(
                         &watch->snapshot, (enum cli_alert_kind)kind));
        print_limit(watch->limits.warn[kind]);
        print_limit(watch->limits.critical[kind]);
        (void)putchar('0');
    }
    if (watch->jobs.len > 0) {
        (void)printf(" missing=%zu;;0;0", watcher_missing(watch));
    }
    (void)putchar('\n');
    (void)fflush(stdout);
}

static void print_look_line(struct watcher *watch, enum cli_level level)
{
    struct cli_json line;
    int kind;

    cli_log_begin(&line, cli_levels[level], "look");
    for (kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        cli_json_count(&line, cli_alert_kinds[kind],
                       cli_alert_count(&watch->snapshot,
                                       (enum cli_alert_kind)kind));
    }
    if (watch->snapshot.oldest_ms != 0) {
        cli_json_ms(&line, "oldest_ms", watch->snapshot.oldest_ms);
    }
    if (watch->snapshot.retry > 0) {
        cli_json_ms(&line, "oldest_retry_ms", watch->snapshot.oldest_retry_ms);
        cli_json_count(&line, "retry_attempts", watch->snapshot.retry_attempts);
    }
    if (watch->jobs.len > 0) {
        cli_json_count(&line, "missing", watcher_missing(watch));
    }
    watch->status |= cli_log_end(&line, stdout);
}

/* ---- One look ---- */

static enum cli_level cannot_look(struct watcher *watch)
{
    /* The jobs of --missing may not have succeeded. */
    enum cli_level level =
        watch->jobs.len > 0 ? CLI_LEVEL_CRITICAL : CLI_LEVEL_UNKNOWN;
    struct cli_json line;

    if (args.once && !args.json) {
        (void)printf("IDEM %s - the store cannot be read\n", words[level]);
    } else {
        cli_log_begin(&line, cli_levels[level], "away");
        watch->status |= cli_log_end(&line, stdout);
    }
    idem_close(watch->store);
    watch->store = NULL;
    watcher_tell_journal(watch, watcher_journal_level(watch));
    return level;
}

/* False: no limit is about completed work that failed, so it need not be read. */
static bool wants_outcomes(const struct watcher *watch)
{
    return watch->limits.warn[CLI_ALERT_OUTCOME] != IDEM_NEVER ||
           watch->limits.critical[CLI_ALERT_OUTCOME] != IDEM_NEVER;
}

/* The scope that is looked at; NULL: all. */
static const struct idem_slice *only(struct idem_slice *scope)
{
    *scope = idem_str(args.scope);
    return args.scope != NULL ? scope : NULL;
}

static int read_records(struct watcher *watch, struct idem_error *error)
{
    struct idem_slice scope;
    const struct cli_snapshot_keep keep = {.max = (size_t)args.alerts,
                                           .compare = watcher_compare,
                                           .class_of = watcher_class_of,
                                           .ctx = watch};

    return wants_outcomes(watch)
               ? cli_snapshot_outcomes(watch->store, only(&scope),
                                       args.since_ms, &keep, &watch->snapshot,
                                       error)
               : cli_snapshot_take(watch->store, only(&scope), &keep,
                                   &watch->snapshot, error);
}

/* A hook is run under a claim, so it takes a store that can be written. */
static int read_store(struct watcher *watch)
{
    unsigned flags = args.hook != NULL
                         ? IDEM_OPEN_NO_CREATE | CLI_OPEN_FOR_PERSON
                         : IDEM_OPEN_READONLY;
    struct idem_error error = {0};
    struct idem_slice scope;
    int status = 0;

    if (watch->store == NULL) {
        status = cli_open_store(args.store, flags, &watch->store);
    }
    if (status != 0) {
        return status;
    }
    error.code = read_records(watch, &error);
    if (error.code == 0) {
        error.code =
            cli_jobs_look(&watch->jobs, watch->store, only(&scope),
                          watch->snapshot.now_ms - args.within_ms, &error);
    }
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

static enum cli_level look(struct watcher *watch)
{
    enum cli_level level;
    enum cli_level room;
    bool jumped;
    bool held;
    int kind;

    if (read_store(watch) != 0) {
        return cannot_look(watch);
    }
    level = watcher_missing(watch) > 0
                ? CLI_LEVEL_CRITICAL
                : cli_alert_worst(&watch->limits, &watch->snapshot);
    jumped = watcher_has_jumped(watch);
    held = watcher_is_log_held(watch);
    level =
        (jumped || held) && level == CLI_LEVEL_OK ? CLI_LEVEL_WARNING : level;
    room = watcher_journal_level(watch);
    level = room > level ? room : level;
    if (args.once && !args.json) {
        print_plugin_line(watch, level);
    } else {
        print_look_line(watch, level);
    }
    for (kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        watcher_tell_kind(watch, (enum cli_alert_kind)kind);
    }
    watcher_tell_many(watch);
    watcher_tell_missing(watch);
    watcher_tell_clock(watch, jumped);
    watcher_tell_log(watch);
    watcher_tell_journal(watch, room);
    watch->status |= watcher_remember(watch);
    cli_snapshot_finish(&watch->snapshot);
    return level;
}

/* ---- Again and again ---- */

static int watch(struct watcher *w)
{
    enum cli_level level = look(w);

    if (!args.once) {
        int stop = cli_stop_fd();

        while (w->status == 0 && !ferror(stdout) &&
               !cli_stop_within(stop, args.every_ms)) {
            (void)look(w);
        }
        level = CLI_LEVEL_OK;
    }
    watcher_forget(w);
    idem_close(w->store);
    return w->status != 0 ? w->status : (int)level;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct watcher w = {.args = &args};
    int status;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "watch takes no key; see idem show");
    }
    if (args.once == (args.every_ms != 0)) {
        return cli_usage(command, "no interval given: --once or --every TIME");
    }
    if ((args.missing != NULL) != (args.within_ms != 0)) {
        return cli_usage(command,
                         "--missing KEYS and --within TIME go together");
    }
    status = cli_jobs_read(command, args.missing, &w.jobs);
    if (status != 0) {
        return status;
    }
    cli_limits_init(&w.limits);
    status = cli_limits_read(command, "warn", args.warn, w.limits.warn);
    if (status == 0) {
        status = cli_limits_read(command, "critical", args.critical,
                                 w.limits.critical);
    }
    if (status == 0) {
        status = cli_log_init();
    }
    return status != 0 ? status : watch(&w);
}

static struct cli_option options[] = {
    CLI_SWITCH("once", &args.once,
               "look once; exit as a monitoring plugin does"),
    CLI_VALUE("every", "TIME", CLI_DURATION, &args.every_ms,
              "look every TIME, until a signal ends it", .min = 100),
    CLI_VALUE("warn", "LIMITS", CLI_TEXT, &args.warn,
              "more than this is a warning: failed=0,failed_outcome=0"),
    CLI_VALUE("critical", "LIMITS", CLI_TEXT, &args.critical,
              "more than this is critical: overdue=0,unknown=0,unreadable=0"),
    CLI_VALUE("hook", "COMMAND", CLI_TEXT, &args.hook,
              "run it once for each alert: a sentence in $1, JSON on stdin"),
    CLI_VALUE("max-time", "TIME", CLI_DURATION, &args.hook_timeout_ms,
              "time limit of the hook (60s)", .min = 1, .max = 86400000),
    CLI_VALUE("again", "TIME", CLI_DURATION, &args.again_ms,
              "repeat an alert that lasts this long (30d)", .min = 1,
              .or_never = true),
    CLI_VALUE("since", "TIME", CLI_DURATION, &args.since_ms,
              "report outcomes that failed within this time (24h)",
              .min = 1000),
    CLI_VALUE("max", "N", CLI_COUNT, &args.alerts,
              "name at most N of each kind, count the rest (1000)", .min = 1,
              .max = 1000000),
    CLI_OPTION_MISSING(&args.missing,
                       "critical if no such key succeeded --within the time: "
                       "'backup@*,report@*'"),
    CLI_VALUE("within", "TIME", CLI_DURATION, &args.within_ms,
              "such as 26h for daily work", .min = 1000),
    CLI_OPTION_SCOPES(&args.scope),
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem watch --once                 # for Nagios, Icinga, cron",
    "idem watch --every 5m --hook 'mail -s \"$1\" ops@example.com'",
    "idem watch --once --critical in_progress=500,overdue=3",
    "idem watch --once --since 8h      # the jobs that failed last night",
    "idem watch --once --missing 'backup@*' --within 26h",
    NULL,
};

const struct cli_command cli_watch = {
    .name = "watch",
    .summary = "report work that is overdue, failed or unknown",
    .usage = "idem watch [OPTION...] --once | --every TIME",
    .examples = examples,
    .options = options,
    .run = run,
};
