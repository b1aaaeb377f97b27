/* Alerts: findings that are reported to an operator once, each with a severity. */
#include "inspect/watch.h"

#include "options/command.h"
#include "record/record.h"
#include "record/verdict.h"
#include "request/request.h"
#include "text/error.h"
#include "text/json.h"
#include "text/text.h"

#include <errno.h>
#include <stdlib.h>

const char *const cli_alert_kinds[] = {
    "overdue",     "failed",         "unknown", "unreadable",
    "in_progress", "failed_outcome", "retry",   NULL,
};
const char *const cli_levels[] = {"ok", "warning", "critical", "unknown"};
const char *const cli_raised_names[] = {"now", "before", "busy", "failed"};

enum {
    LEASE_MARGIN_MS = 30000 /* Added to the longest time of a hook. */
};

/* ---- Limits ---- */

void cli_limits_init(struct cli_limits *limits)
{
    size_t i;

    for (i = 0; i < CLI_ALERT_KINDS; i++) {
        limits->warn[i] = IDEM_NEVER;
        limits->critical[i] = IDEM_NEVER;
    }
    limits->critical[CLI_ALERT_OVERDUE] = 0;
    limits->critical[CLI_ALERT_UNKNOWN] = 0;
    limits->critical[CLI_ALERT_UNREADABLE] = 0;
    limits->warn[CLI_ALERT_FAILED] = 0;
    limits->warn[CLI_ALERT_OUTCOME] = 0;
}

/* Reads "KIND=N" or "KIND=never". */
static bool read_one(const char *text, size_t len,
                     int64_t limits[CLI_ALERT_KINDS])
{
    size_t i;

    for (i = 0; i < CLI_ALERT_KINDS; i++) {
        size_t name = strlen(cli_alert_kinds[i]);
        const char *value = text + name + 1;
        size_t digits;

        if (len <= name + 1 || memcmp(text, cli_alert_kinds[i], name) != 0 ||
            text[name] != '=') {
            continue;
        }
        if (len == name + 6 && memcmp(value, "never", 5) == 0) {
            limits[i] = IDEM_NEVER;
            return true;
        }
        digits = strspn(value, "0123456789");
        limits[i] = strtoll(value, NULL, 10);
        return digits == len - name - 1 && digits <= 18;
    }
    return false;
}

int cli_limits_read(const struct cli_command *command, const char *option,
                    const char *text, int64_t limits[CLI_ALERT_KINDS])
{
    const char *p = text;

    while (text != NULL) {
        size_t len = strcspn(p, ",");

        if (!read_one(p, len, limits)) {
            return cli_usage(
                command,
                "--%s: write KIND=N or KIND=never, with commas between them; a KIND "
                "is overdue, failed, "
                "unknown, unreadable, in_progress, "
                "failed_outcome or retry",
                option);
        }
        if (p[len] == '\0') {
            break;
        }
        p += len + 1;
    }
    return 0;
}

/* ---- Levels ---- */

uint64_t cli_alert_count(const struct cli_snapshot *snapshot,
                         enum cli_alert_kind kind)
{
    const uint64_t counts[CLI_ALERT_KINDS] = {
        [CLI_ALERT_OVERDUE] = snapshot->overdue,
        [CLI_ALERT_FAILED] = snapshot->failed_len,
        [CLI_ALERT_UNKNOWN] = snapshot->unknown,
        [CLI_ALERT_UNREADABLE] = snapshot->unreadable,
        [CLI_ALERT_IN_PROGRESS] = snapshot->in_progress,
        [CLI_ALERT_OUTCOME] = snapshot->failed_outcomes,
        [CLI_ALERT_RETRY] = snapshot->retry,
    };

    return counts[kind];
}

static bool is_over(uint64_t count, int64_t limit)
{
    return limit != IDEM_NEVER && count > (uint64_t)limit;
}

enum cli_level cli_alert_level(const struct cli_limits *limits,
                               const struct cli_snapshot *snapshot,
                               enum cli_alert_kind kind)
{
    uint64_t count = cli_alert_count(snapshot, kind);

    if (is_over(count, limits->critical[kind])) {
        return CLI_LEVEL_CRITICAL;
    }
    return is_over(count, limits->warn[kind]) ? CLI_LEVEL_WARNING
                                              : CLI_LEVEL_OK;
}

enum cli_level cli_alert_worst(const struct cli_limits *limits,
                               const struct cli_snapshot *snapshot)
{
    enum cli_level worst = CLI_LEVEL_OK;
    int kind;

    for (kind = 0; kind < CLI_ALERT_KINDS; kind++) {
        enum cli_level level =
            cli_alert_level(limits, snapshot, (enum cli_alert_kind)kind);

        worst = level > worst ? level : worst;
    }
    return worst;
}

bool cli_alert_of(const struct cli_open *open, enum cli_alert_kind *ret_kind)
{
    const struct idem_record *r = &open->record;

    if (open->unreadable) {
        *ret_kind = CLI_ALERT_UNREADABLE;
    } else if (r->status == IDEM_STATUS_FAILED) {
        *ret_kind = CLI_ALERT_FAILED;
    } else if (r->status == IDEM_STATUS_UNKNOWN) {
        *ret_kind = CLI_ALERT_UNKNOWN;
    } else if (r->status == IDEM_STATUS_COMPLETED) {
        *ret_kind = CLI_ALERT_OUTCOME;
    } else if (r->overdue) {
        *ret_kind = CLI_ALERT_OVERDUE;
    } else if (r->retry) {
        *ret_kind = CLI_ALERT_RETRY;
    } else {
        return false;
    }
    return true;
}

/* ---- Words ---- */

static void print_wrong(FILE *f, const struct cli_open *open,
                        enum cli_alert_kind kind)
{
    static const char *const words[CLI_ALERT_KINDS] = {
        [CLI_ALERT_OVERDUE] = "should have ended by now",
        [CLI_ALERT_RETRY] = "is to be run again",
        [CLI_ALERT_FAILED] = "failed and waits for a person",
        [CLI_ALERT_UNKNOWN] = "has an unknown outcome",
        [CLI_ALERT_UNREADABLE] = "cannot be trusted: its record is damaged",
    };

    if (kind == CLI_ALERT_OVERDUE && open->record.retry) {
        (void)fputs(" is due for a retry, and no caller has retried it in time",
                    f);
    } else if (kind != CLI_ALERT_OUTCOME) {
        (void)fprintf(f, " %s", words[kind]);
    } else if (open->exit_status >= 0) {
        (void)fprintf(f, " ended with exit status %d", open->exit_status);
    } else {
        (void)fprintf(f, " was answered with HTTP status %d",
                      open->http_status);
    }
}

/* Prints the command that shows more. It has the key in the escaped form, which stays on
 * one line and survives an echo. Without memory for the key it prints nothing. */
static void print_show(FILE *f, const struct idem_record *record,
                       const char *store_url)
{
    char *key = cli_shown_key(record->key);

    if (key == NULL) {
        return;
    }
    (void)fputs("; see: idem show", f);
    if (store_url != NULL) {
        (void)fputs(" --store=", f);
        cli_print_url(f, store_url);
    }
    if (record->scope.len > 0) {
        (void)fputs(" --scope=", f);
        cli_print_quoted(f, record->scope);
    }
    cli_print_operand(f, idem_str(key));
    free(key);
}

char *cli_alert_text(const struct cli_open *open, enum cli_alert_kind kind,
                     const char *store_url, bool elsewhere)
{
    const char *usual = elsewhere ? secure_getenv("IDEM_STORE") : NULL;
    char id[2 * IDEM_ID_LEN + 1];
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (f == NULL) {
        return NULL;
    }
    if (!cli_log_shows_keys()) {
        cli_hex(idem_bytes(open->record.id, IDEM_ID_LEN), id);
        (void)fprintf(f, "the record %s", id);
    } else {
        (void)fputc('"', f);
        cli_print_escaped(f, open->record.key);
        (void)fputc('"', f);
    }
    print_wrong(f, open, kind);
    if (cli_log_shows_keys()) {
        if (store_url == NULL && usual != NULL && *usual != '\0') {
            store_url = usual;
        }
        print_show(f, &open->record, store_url);
    }
    return fclose(f) == 0 ? text : (free(text), NULL);
}

/* ---- Raising ---- */

void cli_alert_name(const struct idem_record *record, enum cli_alert_kind kind,
                    char buf[CLI_ALERT_NAME_MAX])
{
    char id[2 * IDEM_ID_LEN + 1];

    cli_hex(idem_bytes(record->id, sizeof(record->id)), id);
    (void)snprintf(buf, CLI_ALERT_NAME_MAX, "%s/%llu/%s", id,
                   (unsigned long long)record->fence, cli_alert_kinds[kind]);
}

/* Ends the attempt as the hook ended: completed, or released for the next check. */
static enum cli_raised finish(struct idem_attempt *attempt, int exit_status)
{
    struct idem_error error = {0};
    char text[64];

    if (exit_status == 0) {
        error.code = idem_complete(attempt, /* result= */ NULL, &error);
    } else {
        (void)snprintf(text, sizeof(text), "the hook ended with status %d",
                       exit_status);
        cli_say("%s; retrying at the next check", text);
        error.code = idem_release(attempt, idem_str(text), &error);
    }
    if (error.code != 0) {
        (void)cli_fail_with(&error);
    }
    return exit_status == 0 ? CLI_RAISED_NOW : CLI_RAISED_FAILED;
}

enum cli_raised cli_alert_raise(const struct cli_raise *raise, const char *name,
                                const struct cli_json *line)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    enum cli_raised raised = CLI_RAISED_BEFORE;
    struct idem_error error = {0};
    struct idem_attempt *attempt;
    char who[IDEM_OWNER_MAX + 1];

    cli_who(/* given= */ NULL, who);
    request.scope = idem_str(CLI_ALERT_SCOPE);
    request.key = idem_str(name);
    request.owner = idem_str(who);
    request.on_expired_lease = IDEM_RERUN;
    request.attempts_max = 0;
    request.lease_ms = raise->timeout_ms + LEASE_MARGIN_MS;
    request.retention_ms =
        raise->again_ms > request.lease_ms ? raise->again_ms : request.lease_ms;
    error.code = idem_begin(raise->store, &request, &attempt, &error);
    if (error.code != 0) {
        (void)cli_fail_with(&error);
        return CLI_RAISED_FAILED;
    }
    if (attempt->verdict == IDEM_STARTED) {
        raised = finish(attempt, cli_hook(raise->command, line, raise->text,
                                          raise->timeout_ms));
    } else if (attempt->verdict == IDEM_BUSY) {
        raised = CLI_RAISED_BUSY;
    }
    idem_attempt_destroy(attempt);
    return raised;
}
