/* The report of a run, as one line of JSON. */
#include "run/status_report.h"

#include "process/descriptors.h"
#include "text/error.h"
#include "text/json.h"
#include "text/text.h"

#include <errno.h>
#include <stdlib.h>

void status_report_init(struct status_report *report, struct idem_slice scope,
                        struct idem_slice key)
{
    memset(report, 0, sizeof(*report));
    report->scope = scope;
    report->key = key;
    report->exit_status = -1;
}

void status_report_set_attempt(struct status_report *report,
                               const struct idem_attempt *attempt)
{
    const struct idem_record *record = attempt->record;

    report->verdict = idem_verdict_name(attempt->verdict);
    report->status = idem_status_name(record->status);
    report->fence = record->fence;
    report->attempts = record->attempts;
    report->takeover = attempt->takeover;
    report->busy = attempt->verdict == IDEM_BUSY;
    report->lease_left_ms = attempt->lease_left_ms;
}

void status_report_set_error(struct status_report *report, const char *text)
{
    (void)snprintf(report->error, sizeof(report->error), "%s", text);
}

void status_report_set_journal(struct status_report *report, char *path)
{
    free(report->journal);
    report->journal = path;
}

void status_report_finish(struct status_report *report)
{
    status_report_set_journal(report, NULL);
}

static void add_number(struct cli_json *json, const char *name, int64_t n,
                       bool applies)
{
    if (applies) {
        cli_json_count(json, name, (uint64_t)n);
    }
}

static void add_text(struct cli_json *json, const char *name, const char *text)
{
    if (text != NULL && *text != '\0') {
        cli_json_text(json, name, text);
    }
}

static void fill_json(struct cli_json *json, const struct status_report *s,
                      int status)
{
    add_text(json, "verdict", s->verdict);
    cli_json_bool(json, "executed", s->executed);
    add_number(json, "exit_status", s->exit_status, s->exit_status >= 0);
    add_number(json, "signal", s->signal, s->signal != 0);
    cli_json_bool(json, "recorded", s->recorded);
    add_text(json, "status", s->status);
    cli_json_bool(json, "not_kept", s->not_kept);
    cli_json_count(json, "replayed_bytes", s->replayed_bytes);
    cli_json_bytes(json, "scope", s->scope);
    cli_json_bytes(json, "key", s->key);
    add_number(json, "fence", (int64_t)s->fence, s->fence != 0);
    add_number(json, "attempts", s->attempts, s->fence != 0);
    cli_json_bool(json, "takeover", s->takeover);
    if (s->busy) {
        cli_json_ms(json, "lease_left_ms", s->lease_left_ms);
    }
    add_text(json, "journal", s->journal);
    add_text(json, "error", s->error);
    cli_json_count(json, "idem_status", (uint64_t)status);
}

/* The line with its newline, to be freed. NULL: out of memory. */
static char *make_line(const struct status_report *report, int status)
{
    struct cli_json json;
    char *line;

    cli_json_init(&json);
    fill_json(&json, report, status);
    line = cli_json_line(&json);
    cli_json_finish(&json);
    return line;
}

void status_report_tell(const struct status_report *report, int status, int fd)
{
    char *line = make_line(report, status);

    if (line == NULL) {
        cli_say("cannot write the status: out of memory");
    } else if (io_write_all(fd, line, strlen(line)) != 0) {
        cli_say("cannot write the status to descriptor %d: %s", fd,
                strerror(errno));
    }
    free(line);
}
