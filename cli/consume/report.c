/* Reads what idem run reports of a message, and reports on the queue. */
#include "consume/consume.h"
#include "process/host.h"
#include "text/error.h"
#include "text/json.h"
#include "text/screen.h"
#include "text/text.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- The status line of idem run ---- */

enum {
    REPORT_MAX = 65536,
};

struct json_object *consume_status_report_line(int fd)
{
    char *text = calloc(1, REPORT_MAX + 1);
    struct json_object *line = NULL;
    ssize_t len = text == NULL ? -1 : pread(fd, text, REPORT_MAX, 0);

    /* A line without its newline was cut. */
    if (len > 0 && text[len - 1] == '\n') {
        line = json_tokener_parse(text);
    }
    free(text);
    if (!json_object_is_type(line, json_type_object)) {
        (void)json_object_put(line);
        line = NULL;
    }
    return line;
}

static const char *text_of(struct json_object *line, const char *name)
{
    struct json_object *value;

    return json_object_object_get_ex(line, name, &value) &&
                   json_object_is_type(value, json_type_string)
               ? json_object_get_string(value)
               : "";
}

static bool flag_of(struct json_object *line, const char *name)
{
    struct json_object *value;

    return json_object_object_get_ex(line, name, &value) &&
           json_object_get_boolean(value);
}

void consume_status_report_read(struct json_object *line,
                                struct consume_status_report *ret_report)
{
    struct consume_status_report report = {.verdict = "", .status = ""};
    struct json_object *value;

    report.lease_left_ms = -1;
    if (line != NULL &&
        json_object_object_get_ex(line, "idem_status", &value)) {
        report.told = true;
        report.idem_status = json_object_get_int(value);
        report.executed = flag_of(line, "executed");
        report.recorded = flag_of(line, "recorded");
        report.verdict = text_of(line, "verdict");
        report.status = text_of(line, "status");
        report.journaled = text_of(line, "journal")[0] != '\0';
        if (json_object_object_get_ex(line, "lease_left_ms", &value)) {
            report.lease_left_ms =
                value == NULL ? IDEM_NEVER : json_object_get_int64(value);
        }
    }
    *ret_report = report;
}

/* ---- Reports ---- */

#define SHOW_MS 200

static void count(struct consume_counts *counts,
                  const struct consume_verdict *verdict)
{
    switch (verdict->fate) {
    case CONSUME_DONE:
        if (strcmp(verdict->word, "replayed") == 0) {
            counts->replayed++;
        } else {
            counts->done++;
        }
        break;
    case CONSUME_LEAVE:
        if (strcmp(verdict->word, "unknown") == 0) {
            counts->unknown++;
        } else {
            counts->failed++;
        }
        break;
    case CONSUME_KEEP:
        counts->busy++;
        break;
    case CONSUME_AWAY:
    case CONSUME_STOP:
        counts->away++;
        break;
    }
}

static const char *action_of(enum consume_fate fate)
{
    switch (fate) {
    case CONSUME_DONE:
        return "delete";
    case CONSUME_LEAVE:
        return "leave";
    case CONSUME_KEEP:
    case CONSUME_AWAY:
        return "keep";
    case CONSUME_STOP:
        break;
    }
    return "stop";
}

static void print_line(const struct idem_message *message,
                       const struct consume_verdict *verdict, const char *why,
                       struct json_object *line)
{
    struct cli_json json;
    const char *run;

    cli_json_init(&json);
    cli_json_bytes(&json, "message_id", message->id);
    cli_json_count(&json, "receives", message->receives);
    cli_json_text(&json, "outcome", verdict->word);
    cli_json_text(&json, "action", action_of(verdict->fate));
    if (why != NULL) {
        cli_json_text(&json, "error", why);
    }
    if (line != NULL) {
        run =
            json_object_to_json_string_ext(line,
                                           JSON_C_TO_STRING_PLAIN |
                                               JSON_C_TO_STRING_NOSLASHESCAPE);
        cli_json_raw(&json, "run", idem_str(run != NULL ? run : "null"));
    }
    (void)cli_json_print(&json);
    (void)fflush(stdout); /* The reader waits for each line. */
}

/* " of 3": how many receives the queue allows. */
static void max_text(const struct consume *consume, char text[32])
{
    uint64_t max = idem_consumer_info(consume->consumer)->max_receives;

    text[0] = '\0';
    if (max != 0) {
        (void)snprintf(text, 32, " of %llu", (unsigned long long)max);
    }
}

static void say(const struct consume *consume,
                const struct idem_message *message, const char *key,
                const struct consume_verdict *verdict, const char *why)
{
    char shown_id[160], shown_key[160], max[32];
    bool detail =
        verdict->fate == CONSUME_DONE || verdict->fate == CONSUME_KEEP;

    if (consume->options->quiet || (detail && !consume->options->verbose)) {
        return;
    }
    consume_progress_end(consume);
    max_text(consume, max);
    cli_say("message %s (%s%s%sreceive %llu%s): %s%s%s",
            cli_escape(message->id, shown_id, sizeof(shown_id)),
            key != NULL ? "key " : "",
            key != NULL
                ? cli_escape(idem_str(key), shown_key, sizeof(shown_key))
                : "",
            key != NULL ? ", " : "", (unsigned long long)message->receives, max,
            verdict->word, why != NULL ? ": " : "", why != NULL ? why : "");
}

void consume_report(struct consume *consume, const struct idem_message *message,
                    const char *key, const struct consume_verdict *verdict,
                    const char *why, struct json_object *line)
{
    count(&consume->counts, verdict);
    if (consume->options->json) {
        print_line(message, verdict, why, line);
    }
    say(consume, message, key, verdict, why);
}

void consume_progress(struct consume *consume)
{
    const struct consume_counts *c = &consume->counts;
    int64_t now_ms = cli_mono_ms();

    if (consume->options->quiet || !cli_stderr_is_tty() ||
        now_ms < consume->shown_ms + SHOW_MS) {
        return;
    }
    consume->shown_ms = now_ms;
    (void)fprintf(stderr,
                  "\r\033[K%llu done, %llu replayed, %llu failed, %llu "
                  "unknown; %zu at work%s",
                  (unsigned long long)c->done, (unsigned long long)c->replayed,
                  (unsigned long long)c->failed, (unsigned long long)c->unknown,
                  consume->running,
                  consume->paused ? "; store unavailable" : "");
}

void consume_progress_end(const struct consume *consume)
{
    if (consume->shown_ms != 0) {
        (void)fputs("\r\033[K", stderr);
    }
}

void consume_summary(const struct consume *consume)
{
    struct idem_consumer_counters n = IDEM_CONSUMER_COUNTERS_INIT;
    const struct consume_counts *c = &consume->counts;

    if (consume->options->quiet) {
        return;
    }
    consume_progress_end(consume);
    idem_consumer_count(consume->consumer, &n);
    cli_say("%llu received: %llu done, %llu replayed, %llu failed, %llu "
            "unknown, %llu times busy; %llu deleted; %llu requests to SQS",
            (unsigned long long)n.received, (unsigned long long)c->done,
            (unsigned long long)c->replayed, (unsigned long long)c->failed,
            (unsigned long long)c->unknown, (unsigned long long)c->busy,
            (unsigned long long)n.deleted,
            (unsigned long long)(n.receives + n.deletes + n.extensions));
}
