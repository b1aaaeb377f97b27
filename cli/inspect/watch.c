/* idem watch: tells an operator of work that needs one. */
#include "inspect/alert.h"
#include "inspect/commands.h"
#include "inspect/metrics.h"
#include "options/command.h"
#include "options/common.h"
#include "options/usage.h"
#include "process/clock.h"
#include "process/stop.h"
#include "record/open_records.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/log.h"
#include "text/screen.h"

#include <idem/journal.h>
#include <idem/sqlite.h>
#include <stdlib.h>

/* A jump of the store's time at a boot that a person should know of. */
#define JUMP_MAX_MS (INT64_C(24) * 3600 * 1000)

static struct {
    bool once;
    int64_t every_ms;
    const char *warn;
    const char *critical;
    const char *hook;
    int64_t hook_timeout_ms;
    int64_t again_ms;
    int64_t since_ms;
    uint64_t alerts;
    const char *scope;
    const char *metrics;
    bool emf;
    bool json;
    const char *store;
} args = {
    .hook_timeout_ms = 60000,
    .again_ms = 30LL * 86400000,
    .since_ms = CLI_OUTCOMES_SINCE_MS,
    .alerts = 1000,
};

struct watch {
    struct cli_limits limits;
    struct idem_store *store; /* NULL: it could not be opened yet. */
    struct cli_look look;
    struct cli_open *last; /* Named at the look before it, by id. */
    size_t last_len;
    bool more[CLI_ALERT_KINDS];      /* More was up then than is named. */
    bool many;                       /* in_progress was over its limit then. */
    bool jumped;                     /* The store's time had jumped then. */
    enum cli_level room;             /* In the journal then. */
    struct idem_journal_usage usage; /* Of the journal now. */
    int64_t jump_ms;
    int64_t doubt_ms;
    struct idem_sqlite_log_info log;
    int64_t log_pid;             /* The process that held it then; 0: none. */
    struct idem_metrics metrics; /* Likewise. */
    bool measured;               /* There are such. */
    int status;                  /* Of the output. */
};

/* ---- One alert ---- */

static int compare_ids(const void *a, const void *b)
{
    return memcmp(((const struct cli_open *)a)->record.id,
                  ((const struct cli_open *)b)->record.id, IDEM_ID_LEN);
}

/* True if the alert about @open is among @list, which is in the order of ids. */
static bool is_in(const struct cli_open *list, size_t len,
                  const struct cli_open *open)
{
    enum cli_alert_kind kind;
    enum cli_alert_kind was;
    const struct cli_open *found =
        len == 0 ? NULL : bsearch(open, list, len, sizeof(*list), compare_ids);

    return found != NULL && found->record.fence == open->record.fence &&
           cli_alert_of(found, &was) && cli_alert_of(open, &kind) &&
           was == kind;
}

/* An alert that was named stays named while it is up, or nobody could be told that
 * it is over; then those come that have waited for longest. */
static int compare_alerts(const void *a, const void *b)
{
    const struct cli_open *x = a;
    const struct cli_open *y = b;
    const struct idem_record *r = &x->record;
    const struct idem_record *s = &y->record;
    int64_t from = r->ended_ms != 0 ? r->ended_ms : r->started_ms;
    int64_t other = s->ended_ms != 0 ? s->ended_ms : s->started_ms;

    if (x->told != y->told) {
        return x->told ? -1 : 1;
    }
    return from != other ? (from > other) - (from < other) : compare_ids(a, b);
}

static int class_of(void *ctx, struct cli_open *open)
{
    const struct watch *watch = ctx;
    enum cli_alert_kind kind;

    if (!cli_alert_of(open, &kind)) {
        return -1;
    }
    open->told = is_in(watch->last, watch->last_len, open);
    return (int)kind;
}

/* Raises it where there is a hook, and prints it where it is news: for programs, or
 * @text for a person who looks once. */
static void tell(struct watch *watch, const char *name, const char *text,
                 struct cli_json *line, bool is_new)
{
    struct cli_raise raise = {watch->store, args.hook, text,
                              args.hook_timeout_ms, args.again_ms};
    enum cli_raised raised = CLI_RAISED_BEFORE;

    if (args.hook != NULL && watch->store != NULL) {
        raised = cli_alert_raise(&raise, name, line);
        cli_json_text(line, "raised", cli_raised_names[raised]);
    }
    if (args.once && !args.json && cli_stdout_is_tty()) {
        (void)printf("%s\n", text != NULL ? text : name);
        cli_json_finish(line);
    } else if (args.once || is_new || raised == CLI_RAISED_NOW) {
        watch->status |= cli_log_end(line, stdout);
    } else {
        cli_json_finish(line);
    }
}

static void tell_record(struct watch *watch, const struct cli_open *open)
{
    enum cli_alert_kind kind;
    enum cli_level level;
    char name[CLI_ALERT_NAME_MAX];
    struct cli_json line;
    char *text;

    if (!cli_alert_of(open, &kind)) {
        return;
    }
    level = cli_alert_level(&watch->limits, &watch->look, kind);
    if (level == CLI_LEVEL_OK) {
        return;
    }
    cli_log_begin(&line, cli_levels[level], cli_alert_kinds[kind]);
    if (open->unreadable) {
        cli_log_identity(&line, &open->record);
    } else {
        cli_log_record(&line, &open->record);
    }
    if (open->exit_status >= 0) {
        cli_json_count(&line, "exit", (uint64_t)open->exit_status);
    } else if (open->http_status >= 0) {
        cli_json_count(&line, "http_status", (uint64_t)open->http_status);
    }
    cli_alert_name(&open->record, kind, name);
    text = cli_alert_text(open, kind, args.store, args.hook != NULL);
    tell(watch, name, text, &line, !open->told);
    free(text);
}

/* More of a kind than is named: raised once an hour for as long as it lasts. */
static void tell_more(struct watch *watch, enum cli_alert_kind kind)
{
    static const char *const commands[CLI_ALERT_KINDS] = {
        [CLI_ALERT_OVERDUE] = "idem list --overdue",
        [CLI_ALERT_FAILED] = "idem list --status failed",
        [CLI_ALERT_UNKNOWN] = "idem list --status unknown",
        [CLI_ALERT_UNREADABLE] = "idem store check",
        [CLI_ALERT_OUTCOME] = "idem list --failed",
    };
    const struct cli_look_class *class = &watch->look.classes[kind];
    enum cli_level level = cli_alert_level(&watch->limits, &watch->look, kind);
    uint64_t n = class->found - class->len;
    char name[CLI_ALERT_NAME_MAX];
    struct cli_json line;
    char text[128];

    if (n > 0 && level != CLI_LEVEL_OK) {
        cli_log_begin(&line, cli_levels[level], "more");
        cli_json_text(&line, "kind", cli_alert_kinds[kind]);
        cli_json_count(&line, "more", n);
        (void)snprintf(name, sizeof(name), "more/%s/%s/%lld",
                       cli_alert_kinds[kind], cli_levels[level],
                       (long long)(watch->look.now_ms / 3600000));
        (void)snprintf(text, sizeof(text), "and %llu more: %s; see: %s",
                       (unsigned long long)n, cli_alert_kinds[kind],
                       commands[kind]);
        tell(watch, name, text, &line, !watch->more[kind]);
    }
    watch->more[kind] = n > 0 && level != CLI_LEVEL_OK;
}

static void tell_kind(struct watch *watch, enum cli_alert_kind kind)
{
    const struct cli_look_class *class = &watch->look.classes[kind];
    size_t i;

    for (i = 0; i < class->len; i++) {
        tell_record(watch, &class->open[i]);
    }
    tell_more(watch, kind);
}

/* About no record: raised once an hour for as long as it lasts. */
static void tell_many(struct watch *watch)
{
    enum cli_level level =
        cli_alert_level(&watch->limits, &watch->look, CLI_ALERT_IN_PROGRESS);
    char name[CLI_ALERT_NAME_MAX];
    struct cli_json line;
    char text[64];

    if (level != CLI_LEVEL_OK) {
        cli_log_begin(&line, cli_levels[level], "in_progress");
        cli_json_count(&line, "in_progress", watch->look.in_progress);
        (void)snprintf(name, sizeof(name), "in_progress/%s/%lld",
                       cli_levels[level],
                       (long long)(watch->look.now_ms / 3600000));
        (void)snprintf(text, sizeof(text),
                       "%llu are in progress, more than the limit",
                       (unsigned long long)watch->look.in_progress);
        tell(watch, name, text, &line, !watch->many);
    }
    watch->many = level != CLI_LEVEL_OK;
}

/* The store's time jumped at the boot, and may be wrong. */
static bool has_jumped(struct watch *watch)
{
    watch->jump_ms = 0;
    watch->doubt_ms = 0;
    (void)idem_sqlite_clock(watch->store, &watch->jump_ms, &watch->doubt_ms,
                            /* ret_error= */ NULL);
    return watch->jump_ms > JUMP_MAX_MS;
}

/* About no record. */
static void tell_clock(struct watch *watch, bool jumped)
{
    char name[CLI_ALERT_NAME_MAX];
    struct cli_json line;

    if (jumped) {
        cli_log_begin(&line, cli_levels[CLI_LEVEL_WARNING], "clock");
        cli_json_ms(&line, "jump_ms", watch->jump_ms);
        cli_json_ms(&line, "doubt_ms", watch->doubt_ms);
        (void)snprintf(name, sizeof(name), "clock/%lld",
                       (long long)watch->jump_ms);
        tell(watch, name,
             "the store's time jumped at this boot; see: idem doctor", &line,
             !watch->jumped);
    }
    watch->jumped = jumped;
}

/* A log that cannot shrink grows until the disk is full. */
static bool is_log_held(struct watch *watch)
{
    static const struct idem_sqlite_log_info none = IDEM_SQLITE_LOG_INFO_INIT;

    watch->log = none;
    (void)idem_sqlite_log(watch->store, &watch->log, /* ret_error= */ NULL);
    return watch->log.pid != 0;
}

/* About no record. */
static void tell_log(struct watch *watch)
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
        (void)snprintf(text, sizeof(text),
                       "the store's log is %llu MB long and cannot shrink: "
                       "process %lld keeps a transaction open; see: idem "
                       "doctor",
                       (unsigned long long)(watch->log.len >> 20),
                       (long long)pid);
        tell(watch, name, text, &line, pid != watch->log_pid);
    }
    watch->log_pid = pid;
}

/* A journal that is full keeps nothing more. */
static enum cli_level judge_journal(struct watch *watch)
{
    const struct idem_journal_usage none = IDEM_JOURNAL_USAGE_INIT;

    watch->usage = none;
    if (!cli_journal_read_usage(&watch->usage) || !watch->usage.near) {
        return CLI_LEVEL_OK;
    }
    return cli_journal_percent(&watch->usage) < 100 ? CLI_LEVEL_WARNING
                                                    : CLI_LEVEL_CRITICAL;
}

/* About no record, and told above all while the store is away. */
static void tell_journal(struct watch *watch, enum cli_level level)
{
    const struct idem_journal_usage *usage = &watch->usage;
    char name[CLI_ALERT_NAME_MAX];
    struct cli_json line;
    char text[96];

    if (level != CLI_LEVEL_OK) {
        cli_log_begin(&line, cli_levels[level], "journal");
        cli_json_count(&line, "entries", usage->entries);
        cli_json_count(&line, "entries_max", usage->entries_max);
        cli_json_count(&line, "bytes", usage->bytes);
        cli_json_count(&line, "bytes_max", usage->bytes_max);
        (void)snprintf(name, sizeof(name), "journal/%s/%lld", cli_levels[level],
                       (long long)(cli_now_ms() / 3600000));
        (void)snprintf(text, sizeof(text),
                       "the journal of this host is %u %% full; record what "
                       "is in it: idem reconcile",
                       cli_journal_percent(usage));
        tell(watch, name, text, &line, watch->room != level);
    }
    watch->room = level;
}

/* Tells of alerts that were named at the last look and are not among @now. */
static void tell_cleared(struct watch *watch, const struct cli_open *now,
                         size_t len)
{
    enum cli_alert_kind kind;
    struct cli_json line;
    size_t i;

    for (i = 0; i < watch->last_len; i++) {
        const struct cli_open *open = &watch->last[i];

        if (cli_alert_of(open, &kind) && !is_in(now, len, open)) {
            cli_log_begin(&line, "ok", "cleared");
            cli_json_text(&line, "kind", cli_alert_kinds[kind]);
            cli_log_identity(&line, &open->record);
            cli_json_count(&line, "fence", open->record.fence);
            watch->status |= cli_log_end(&line, stdout);
        }
    }
}

static void forget(struct watch *watch)
{
    size_t i;

    for (i = 0; i < watch->last_len; i++) {
        cli_open_finish(&watch->last[i]);
    }
    free(watch->last);
    watch->last = NULL;
    watch->last_len = 0;
}

/* Takes what was named over, to know at the next look what is new and what is
 * over. */
static int remember(struct watch *watch)
{
    struct cli_open *now;
    size_t len = 0;
    int kind;

    for (kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        len += watch->look.classes[kind].len;
    }
    now = reallocarray(NULL, len + 1, sizeof(*now));
    if (now == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    for (len = 0, kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        struct cli_look_class *class = &watch->look.classes[kind];

        if (class->len > 0) {
            memcpy(now + len, class->open, class->len * sizeof(*now));
        }
        len += class->len;
        class->len = 0;
    }
    qsort(now, len, sizeof(*now), compare_ids);
    tell_cleared(watch, now, len);
    forget(watch);
    watch->last = now;
    watch->last_len = len;
    return 0;
}

/* ---- The sum ---- */

static void print_limit(int64_t limit)
{
    if (limit != IDEM_NEVER) {
        (void)printf("%lld", (long long)limit);
    }
    (void)putchar(';');
}

/* IDEM CRITICAL - 1 overdue, 0 failed ... | overdue=1;;0;0 ... */
static void print_plugin_line(const struct watch *watch, enum cli_level level)
{
    static const char *const words[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
    int kind;

    (void)printf("IDEM %s -", words[level]);
    for (kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        (void)printf("%s %llu %s", kind == 0 ? "" : ",",
                     (unsigned long long)cli_alert_count(
                         &watch->look, (enum cli_alert_kind)kind),
                     kind == CLI_ALERT_IN_PROGRESS ? "in progress"
                     : kind == CLI_ALERT_OUTCOME   ? "failed outcomes"
                                                   : cli_alert_kinds[kind]);
    }
    (void)fputs(" |", stdout);
    for (kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        (void)printf(" %s=%llu;", cli_alert_kinds[kind],
                     (unsigned long long)cli_alert_count(
                         &watch->look, (enum cli_alert_kind)kind));
        print_limit(watch->limits.warn[kind]);
        print_limit(watch->limits.critical[kind]);
        (void)putchar('0');
    }
    (void)putchar('\n');
    (void)fflush(stdout);
}

static void print_look_line(struct watch *watch, enum cli_level level)
{
    struct cli_json line;
    int kind;

    cli_log_begin(&line, cli_levels[level], "look");
    for (kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        cli_json_count(&line, cli_alert_kinds[kind],
                       cli_alert_count(&watch->look,
                                       (enum cli_alert_kind)kind));
    }
    if (watch->look.oldest_ms != 0) {
        cli_json_ms(&line, "oldest_ms", watch->look.oldest_ms);
    }
    watch->status |= cli_log_end(&line, stdout);
}

/* The metrics of this look, or that the store is away. */
static void measure(struct watch *watch, const struct cli_look *look)
{
    struct idem_metrics metrics;
    struct idem_error error = {0};

    if (args.metrics == NULL && !args.emf) {
        return;
    }
    error.code = cli_metrics(watch->store, look, &metrics, &error);
    if (error.code != 0) {
        watch->status |= cli_fail_with(&error);
    }
    if (args.metrics != NULL) {
        watch->status |= cli_metrics_write(&metrics, args.metrics);
    }
    if (args.emf) {
        watch->status |=
            cli_metrics_emf(&metrics, watch->measured ? &watch->metrics : NULL);
    }
    metrics.store = NULL; /* The store's, which may be closed. */
    watch->metrics = metrics;
    watch->measured = true;
}

/* ---- One look ---- */

static enum cli_level cannot_look(struct watch *watch)
{
    struct cli_json line;

    if (args.once && !args.json) {
        (void)puts("IDEM UNKNOWN - the store cannot be read");
    } else {
        cli_log_begin(&line, cli_levels[CLI_LEVEL_UNKNOWN], "away");
        watch->status |= cli_log_end(&line, stdout);
    }
    idem_close(watch->store);
    watch->store = NULL;
    tell_journal(watch, judge_journal(watch));
    measure(watch, /* look= */ NULL);
    return CLI_LEVEL_UNKNOWN;
}

/* Nobody asks for what would be read: neither a limit nor metrics. */
static bool wants_outcomes(const struct watch *watch)
{
    return watch->limits.warn[CLI_ALERT_OUTCOME] != IDEM_NEVER ||
           watch->limits.critical[CLI_ALERT_OUTCOME] != IDEM_NEVER ||
           args.metrics != NULL || args.emf;
}

static int read_records(struct watch *watch, struct idem_error *error)
{
    struct idem_slice scope = idem_str(args.scope);
    const struct idem_slice *only = args.scope != NULL ? &scope : NULL;
    const struct cli_look_keep keep = {.max = (size_t)args.alerts,
                                       .compare = compare_alerts,
                                       .class_of = class_of,
                                       .ctx = watch};

    return wants_outcomes(watch)
               ? cli_look_outcomes(watch->store, only, args.since_ms, &keep,
                                   &watch->look, error)
               : cli_look(watch->store, only, &keep, &watch->look, error);
}

/* A hook is run under a claim, so it takes a store that can be written. */
static int read_store(struct watch *watch)
{
    unsigned flags = args.hook != NULL
                         ? IDEM_OPEN_NO_CREATE | CLI_OPEN_FOR_PERSON
                         : IDEM_OPEN_READONLY;
    struct idem_error error = {0};
    int status = 0;

    if (watch->store == NULL) {
        status = cli_open_store(args.store, flags, &watch->store);
    }
    if (status != 0) {
        return status;
    }
    error.code = read_records(watch, &error);
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

static enum cli_level look(struct watch *watch)
{
    enum cli_level level;
    enum cli_level room;
    bool jumped;
    bool held;
    int kind;

    if (read_store(watch) != 0) {
        return cannot_look(watch);
    }
    level = cli_alert_worst(&watch->limits, &watch->look);
    jumped = has_jumped(watch);
    held = is_log_held(watch);
    level =
        (jumped || held) && level == CLI_LEVEL_OK ? CLI_LEVEL_WARNING : level;
    room = judge_journal(watch);
    level = room > level ? room : level;
    if (args.once && !args.json) {
        print_plugin_line(watch, level);
    } else {
        print_look_line(watch, level);
    }
    for (kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        tell_kind(watch, (enum cli_alert_kind)kind);
    }
    tell_many(watch);
    tell_clock(watch, jumped);
    tell_log(watch);
    tell_journal(watch, room);
    watch->status |= remember(watch);
    measure(watch, &watch->look);
    cli_look_finish(&watch->look);
    return level;
}

/* ---- Again and again ---- */

static int watch(struct watch *w)
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
    forget(w);
    idem_close(w->store);
    return w->status != 0 ? w->status : (int)level;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct watch w = {.status = 0};
    int status;

    (void)argv;
    if (argc > 0) {
        return cli_usage(command, "watch takes no key; see idem show");
    }
    if (args.once == (args.every_ms != 0)) {
        return cli_usage(command, "no interval given: --once or --every TIME");
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
    {.name = "once",
     .kind = CLI_FLAG,
     .target = &args.once,
     .help = "look once; exit as a monitoring plugin does"},
    {.name = "every",
     .kind = CLI_DURATION,
     .target = &args.every_ms,
     .arg = "TIME",
     .min = 100,
     .max = IDEM_DURATION_MAX_MS,
     .help = "look again and again, until a signal ends it"},
    {.name = "warn",
     .kind = CLI_TEXT,
     .target = &args.warn,
     .arg = "LIMITS",
     .help = "more than this is a warning: failed=0,failed_outcome=0"},
    {.name = "critical",
     .kind = CLI_TEXT,
     .target = &args.critical,
     .arg = "LIMITS",
     .help = "more than this is critical: overdue=0,unknown=0,unreadable=0"},
    {.name = "hook",
     .kind = CLI_TEXT,
     .target = &args.hook,
     .arg = "COMMAND",
     .help = "run it once for each alert: IDEM_ALERT, and JSON on its stdin"},
    {.name = "hook-timeout",
     .kind = CLI_DURATION,
     .target = &args.hook_timeout_ms,
     .arg = "TIME",
     .min = 1,
     .max = 86400000,
     .help = "how long the hook may take (60s)"},
    {.name = "again",
     .kind = CLI_DURATION,
     .target = &args.again_ms,
     .arg = "TIME",
     .min = CLI_OR_NEVER(1),
     .max = IDEM_DURATION_MAX_MS,
     .help = "raise an alert again that lasts this long (30d)"},
    {.name = "since",
     .kind = CLI_DURATION,
     .target = &args.since_ms,
     .arg = "TIME",
     .min = 1000,
     .max = IDEM_DURATION_MAX_MS,
     .help = "tell of outcomes that failed this long ago or less (24h)"},
    {.name = "alerts",
     .kind = CLI_COUNT,
     .target = &args.alerts,
     .arg = "N",
     .min = 1,
     .max = 1000000,
     .help = "name at most so many of a kind, and count the rest (1000)"},
    CLI_OPTION_SCOPES(&args.scope),
    {.name = "metrics",
     .kind = CLI_TEXT,
     .target = &args.metrics,
     .arg = "FILE",
     .help = "write them for Prometheus at each look"},
    {.name = "emf",
     .kind = CLI_FLAG,
     .target = &args.emf,
     .help = "print them for CloudWatch at each look"},
    CLI_OPTION_JSON(&args.json),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem watch --once                 # for Nagios, Icinga, cron",
    "idem watch --every 5m --hook 'mail -s \"$IDEM_ALERT\" ops@example.com'",
    "idem watch --once --critical in_progress=500,overdue=3",
    "idem watch --once --since 8h      # the jobs that failed last night",
    NULL,
};

const struct cli_command cli_watch = {
    .name = "watch",
    .summary = "tell of work that is overdue, failed or unknown",
    .usage = "idem watch [OPTION...] --once | --every TIME",
    .examples = examples,
    .options = options,
    .run = run,
};
