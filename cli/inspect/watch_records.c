/* Alerts about records: which are named, and which of those are new. */
#include "inspect/watch.h"
#include "record/open_records.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/screen.h"

#include <stdlib.h>

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

/* An alert that was named comes first, so that it stays named while it lasts: one that is
 * no longer named is reported as cleared. Then come those that have waited for longest. */
int watcher_compare(const void *a, const void *b)
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

int watcher_class_of(void *ctx, struct cli_open *open)
{
    const struct watcher *watch = ctx;
    enum cli_alert_kind kind;

    if (!cli_alert_of(open, &kind)) {
        return -1;
    }
    open->told = is_in(watch->last, watch->last_len, open);
    return (int)kind;
}

void watcher_tell(struct watcher *watch, const char *name, const char *text,
                  struct cli_json *line, bool is_new)
{
    struct cli_raise raise = {watch->store, watch->args->hook, text,
                              watch->args->hook_timeout_ms,
                              watch->args->again_ms};
    enum cli_raised raised = CLI_RAISED_BEFORE;

    if (watch->args->hook != NULL && watch->store != NULL) {
        raised = cli_alert_raise(&raise, name, line);
        cli_json_text(line, "raised", cli_raised_names[raised]);
    }
    if (watch->args->once && !watch->args->json && cli_stdout_is_tty()) {
        (void)printf("%s\n", text != NULL ? text : name);
        cli_json_finish(line);
    } else if (watch->args->once || is_new || raised == CLI_RAISED_NOW) {
        watch->status |= cli_log_end(line, stdout);
    } else {
        cli_json_finish(line);
    }
}

static void tell_record(struct watcher *watch, const struct cli_open *open)
{
    enum cli_alert_kind kind;
    enum cli_level level;
    char name[CLI_ALERT_NAME_MAX];
    struct cli_json line;
    char *text;

    if (!cli_alert_of(open, &kind)) {
        return;
    }
    level = cli_alert_level(&watch->limits, &watch->snapshot, kind);
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
    text = cli_alert_text(open, kind, watch->args->store,
                          watch->args->hook != NULL);
    watcher_tell(watch, name, text, &line, !open->told);
    free(text);
}

/* Tells that there are more of a kind than were named; the hook hears of it once an hour
 * for as long as it lasts. */
static void tell_more(struct watcher *watch, enum cli_alert_kind kind)
{
    static const char *const commands[CLI_ALERT_KINDS] = {
        [CLI_ALERT_OVERDUE] = "idem list --overdue",
        [CLI_ALERT_FAILED] = "idem list --status failed",
        [CLI_ALERT_UNKNOWN] = "idem list --status unknown",
        [CLI_ALERT_UNREADABLE] = "idem store check",
        [CLI_ALERT_OUTCOME] = "idem list --failed",
        [CLI_ALERT_RETRY] = "idem list --status retry",
    };
    const struct cli_snapshot_class *class = &watch->snapshot.classes[kind];
    enum cli_level level =
        cli_alert_level(&watch->limits, &watch->snapshot, kind);
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
                       (long long)(watch->snapshot.now_ms / 3600000));
        (void)snprintf(text, sizeof(text), "and %llu more: %s; see: %s",
                       (unsigned long long)n, cli_alert_kinds[kind],
                       commands[kind]);
        watcher_tell(watch, name, text, &line, !watch->more[kind]);
    }
    watch->more[kind] = n > 0 && level != CLI_LEVEL_OK;
}

void watcher_tell_kind(struct watcher *watch, enum cli_alert_kind kind)
{
    const struct cli_snapshot_class *class = &watch->snapshot.classes[kind];
    size_t i;

    for (i = 0; i < class->len; i++) {
        tell_record(watch, &class->open[i]);
    }
    tell_more(watch, kind);
}

/* Reports as cleared the alerts that were named at the last look and are not in @now. */
static void tell_cleared(struct watcher *watch, const struct cli_open *now,
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

void watcher_forget(struct watcher *watch)
{
    size_t i;

    for (i = 0; i < watch->last_len; i++) {
        cli_open_finish(&watch->last[i]);
    }
    free(watch->last);
    watch->last = NULL;
    watch->last_len = 0;
}

int watcher_remember(struct watcher *watch)
{
    struct cli_open *now;
    size_t len = 0;
    int kind;

    for (kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        len += watch->snapshot.classes[kind].len;
    }
    now = reallocarray(NULL, len + 1, sizeof(*now));
    if (now == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    for (len = 0, kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        struct cli_snapshot_class *class = &watch->snapshot.classes[kind];

        if (class->len > 0) {
            memcpy(now + len, class->open, class->len * sizeof(*now));
        }
        len += class->len;
        class->len = 0;
    }
    qsort(now, len, sizeof(*now), compare_ids);
    tell_cleared(watch, now, len);
    watcher_forget(watch);
    watch->last = now;
    watch->last_len = len;
    return 0;
}
