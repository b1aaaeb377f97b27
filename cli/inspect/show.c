/* idem show: everything that is known about one key. */
#include "options/command.h"
#include "options/commands.h"
#include "options/common.h"
#include "process/host.h"
#include "record/record.h"
#include "record/verdict.h"
#include "request/identity.h"
#include "store/journal.h"
#include "store/open.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/json.h"
#include "text/screen.h"
#include "text/text.h"

#include <idem/http.h>
#include <idem/operator.h>
#include <idem/setting.h>

static struct {
    const char *key_file;
    const char *scope;
    bool json;
    bool output;
    bool input;
    const char *store;
} args;

static void label(const char *name)
{
    (void)printf("%-18s", name);
}

static void line(const char *name, const char *text)
{
    label(name);
    (void)puts(text);
}

static void line_bytes(const char *name, struct idem_slice s)
{
    if (s.len == 0) {
        return;
    }
    label(name);
    cli_print_escaped(stdout, s);
    (void)putchar('\n');
}

/* "2026-11-21T08:24:00.123Z, 3m ago" or ", in 43s"; local time on a terminal. */
static void line_time(const char *name, int64_t ms)
{
    int64_t left_ms = ms - cli_now_ms();
    char time[48];
    char distance[32];

    if (ms == 0) {
        return;
    }
    label(name);
    cli_time_for(cli_stdout_is_tty(), ms, time);
    cli_span_text(left_ms < 0 ? -left_ms : left_ms, distance);
    if (ms == IDEM_NEVER) {
        (void)puts("never");
    } else if (left_ms < 0) {
        (void)printf("%s, %s ago\n", time, distance);
    } else {
        (void)printf("%s, in %s\n", time, distance);
    }
}

static void line_duration(const char *name, int64_t ms)
{
    char text[32];

    idem_setting_time(ms, text);
    line(name, text);
}

static void line_hex(const char *name, struct idem_slice s)
{
    char hex[2 * IDEM_FINGERPRINT_LEN + 1];

    if (s.len > 0 && s.len <= IDEM_FINGERPRINT_LEN) {
        cli_hex(s, hex);
        line(name, hex);
    }
}

static void print_identity(const struct idem_record *r)
{
    label("key");
    cli_print_key(stdout, r->key);
    (void)putchar('\n');
    line_bytes("scope", r->scope);
}

static void print_attempt(const struct idem_record *r)
{
    line_bytes("owner", r->owner);
    line_bytes("traceparent", r->traceparent);
    label("fence");
    (void)printf("%llu\n", (unsigned long long)r->fence);
    label("attempts");
    (void)printf("%u\n", (unsigned)r->attempts);
    if (r->failures > 0) {
        label("failures");
        (void)printf("%u\n", (unsigned)r->failures);
    }
    line_time("created", r->created_ms);
    line_time("started", r->started_ms);
    /* If the work is to be run again, its lease is the pause before that. */
    if (r->retry && r->lease_ms > 0) {
        line_duration("pause", r->lease_ms);
        line_time("not before", r->lease_end_ms);
    } else if (!r->retry) {
        line_duration("lease", r->lease_ms);
    }
    if (r->status == IDEM_STATUS_IN_PROGRESS && !r->retry) {
        line_time("lease ends", cli_lease_end_ms(r));
    }
    line("on expired lease",
         r->on_expired_lease == IDEM_RERUN ? "rerun" : "hold");
    line_time("expected by", r->expected_ms);
}

/* Prints each header of @head, "Name: value", on a line. */
static void print_headers(struct idem_slice head)
{
    const char *text = head.base;
    const char *end;
    size_t len;
    size_t at;

    for (at = 0; at < head.len; at += len + 1) {
        end = memchr(text + at, '\n', head.len - at);
        len = end != NULL ? (size_t)(end - text) - at : head.len - at;
        label(at == 0 ? "headers" : "");
        cli_print_escaped(stdout, idem_bytes(text + at, len));
        (void)putchar('\n');
    }
}

/* How the work ended, by the metadata that idem's own front ends write. */
static void print_meta(const struct idem_record *r)
{
    const char *named = idem_outcome_succeeded(r) ? " (complete)" : "";
    struct idem_slice head;
    int status;

    if (cli_outcome_exit(r) >= 0) {
        label("exit status");
        (void)printf("%d%s\n", cli_outcome_exit(r),
                     cli_outcome_exit(r) > 0 ? named : "");
    } else if (r->result.meta.len > 0 &&
               idem_http_head_read(r->result.meta, &status, &head) == 0) {
        label("HTTP status");
        (void)printf("%d%s\n", status, status >= 300 ? named : "");
        print_headers(head);
    } else {
        line_bytes("meta", r->result.meta);
    }
}

static void print_outcome(const struct idem_record *r)
{
    line_time("ended", r->ended_ms);
    line_duration("retention", r->retention_ms);
    line_time("expires", r->expires_ms);
    if (r->status == IDEM_STATUS_COMPLETED || r->result_len > 0) {
        label("result");
        (void)printf("%llu bytes%s\n", (unsigned long long)r->result_len,
                     r->result.not_kept ? ", not kept" : "");
    }
    line_bytes("content type", r->result.content_type);
    print_meta(r);
    line_bytes("error", r->error);
    line_bytes("note", r->note);
    if (r->input_len > 0) {
        label("input");
        (void)printf("%llu bytes\n", (unsigned long long)r->input_len);
    }
}

/* Ends a line with the outcome that a person's decision replaced. */
static void print_replaced(const struct idem_past *past)
{
    if (past->was != 0) {
        (void)printf("; it was %s", idem_status_name(past->was));
    }
    if (past->meta.len > 0) {
        (void)fputs(", ", stdout);
        cli_print_escaped(stdout, past->meta);
    }
    if (past->text.len > 0) {
        (void)fputs(": ", stdout);
        cli_print_escaped(stdout, past->text);
    }
}

static void print_history(const struct idem_record *r)
{
    char ended[48];
    size_t i;

    for (i = 0; i < r->history_len; i++) {
        const struct idem_past *past = &r->history[i];

        cli_time_for(cli_stdout_is_tty(), past->ended_ms, ended);
        label(i == 0 ? "history" : "");
        (void)printf("%llu %s %s", (unsigned long long)past->fence, ended,
                     cli_past_end_name(past->end));
        if (past->owner.len > 0) {
            (void)fputs(", ", stdout);
            cli_print_escaped(stdout, past->owner);
        }
        print_replaced(past);
        (void)putchar('\n');
    }
}

static void print_late(const struct idem_record *r)
{
    char options[96];

    (void)snprintf(options, sizeof(options),
                   " --fence %llu --force --release --reason TEXT",
                   (unsigned long long)r->fence);
    (void)fputs("\nIt is overdue, and its owner may be at work: look there "
                "first. When you know that the\nowner is gone and nothing "
                "happened (an owner at work would go on beside the next):\n  ",
                stdout);
    cli_print_remedy(stdout, "resolve", options, r, args.store);
    (void)putchar('\n');
}

/* The commands that a person who reads this can use. */
static void print_next_step(const struct idem_record *r)
{
    bool open =
        r->status == IDEM_STATUS_FAILED || r->status == IDEM_STATUS_UNKNOWN;

    if ((cli_outcome_failed(r) || r->failures > 0) && r->result_len > 0 &&
        !r->result.not_kept) {
        (void)fputs("\nIts output:\n  ", stdout);
        cli_print_remedy(stdout, "show", " --output", r, args.store);
        (void)putchar('\n');
    }
    if (open || (r->overdue && !r->live)) {
        (void)fputs("\nWhen you know how it ended, record it:", stdout);
        cli_print_resolve(stdout, r, args.store);
        (void)putchar('\n');
    } else if (cli_is_decided(r) && !r->retry) {
        (void)
            fputs("\nTo correct that decision, before anybody starts the work:",
                  stdout);
        cli_print_resolve(stdout, r, args.store);
        (void)putchar('\n');
    }
    if (r->overdue && r->live) {
        print_late(r);
    }
    if (open || cli_outcome_failed(r)) {
        (void)fputs("\nWhen the cause is fixed, let it run again:", stdout);
        cli_print_reopen(stdout, r, args.store);
        (void)putchar('\n');
    }
    if (r->retry) {
        (void)printf("\nThe next caller with this key%s runs it again; nothing "
                     "starts it by itself.\n",
                     r->lease_ms > 0 ? " after the pause" : "");
    }
    if (r->retry && r->fingerprint.len > 0) {
        (void)fputs("Only the same command may; to let another one run:",
                    stdout);
        cli_print_reopen(stdout, r, args.store);
        (void)putchar('\n');
    }
}

static void print_record(const struct idem_record *r)
{
    print_identity(r);
    label("status");
    cli_print_status(stdout, r, /* width= */ 0);
    (void)puts(r->overdue ? ", overdue" : "");
    print_attempt(r);
    print_outcome(r);
    print_history(r);
    line_hex("fingerprint", r->fingerprint);
    line_hex("id", idem_bytes(r->id, sizeof(r->id)));
    print_next_step(r);
}

static int print_json(const struct idem_record *r)
{
    struct cli_json json;

    cli_json_init(&json);
    cli_json_record(&json, r, /* with_bytes= */ false);
    return cli_json_print(&json);
}

static int print_output(const struct idem_record *r)
{
    if (r->status != IDEM_STATUS_COMPLETED && r->result.bytes.len == 0) {
        cli_say("no result on record: the status is %s",
                idem_status_name(idem_record_status(r)));
        return CLI_NO_RECORD;
    }
    return cli_write_result(r);
}

static int print_input(const struct idem_record *r)
{
    if (r->input.len == 0) {
        cli_say(
            "its input was not kept: see --input of idem run, --keep-input of idem consume and IDEM_LAMBDA_KEEP_INPUT");
        return CLI_NO_RECORD;
    }
    (void)fwrite(r->input.base, 1, r->input.len, stdout);
    return CLI_OK;
}

static int print(const struct idem_record *r)
{
    if (args.input) {
        return print_input(r);
    }
    if (args.output) {
        return print_output(r);
    }
    if (args.json) {
        return print_json(r);
    }
    print_record(r);
    return CLI_OK;
}

static int show(struct idem_slice scope, struct idem_slice key)
{
    struct idem_answer *answer;
    struct idem_store *store;
    enum idem_status waits;
    int status;

    status = cli_open_store(args.store, IDEM_OPEN_READONLY, &store);
    if (status != 0) {
        return status;
    }
    status = cli_get(store, args.store, scope, key, &answer);
    if (status == 0) {
        status = print(idem_answer_record(answer));
        idem_answer_destroy(answer);
    }
    waits = cli_journal_peek(store, scope, key);
    if (waits != 0) {
        cli_say(
            "its outcome, %s, waits in the journal; record it: idem reconcile",
            idem_status_name(waits));
    }
    idem_close(store);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct idem_slice scope;
    struct cli_key_text key;
    int status;

    if (args.output + args.json + args.input > 1) {
        return cli_usage(command, "choose one: --output, --input or --json");
    }
    status = cli_operand_key(command, argc, argv, args.key_file, &key);
    if (status == 0) {
        status = cli_scope(args.scope, &scope);
    }
    return status != 0 ? status : show(scope, idem_bytes(key.bytes, key.len));
}

static struct cli_option options[] = {
    CLI_OPTION_KEY_FILE(&args.key_file),
    CLI_OPTION_SCOPE(&args.scope),
    CLI_OPTION_JSON(&args.json),
    CLI_SWITCH("output", &args.output, "write the recorded result itself",
               .letter = 'o'),
    CLI_SWITCH("input", &args.input, "write the input kept with the record"),
    CLI_OPTION_STORE(&args.store),
    {.name = NULL},
};

static const char *const examples[] = {
    "idem show order-42",
    "idem show order-42 --output > receipt.json",
    "idem show order-42 --json | jq .fence",
    NULL,
};

const struct cli_command cli_show = {
    .name = "show",
    .summary = "show everything that is known about a key",
    .usage = "idem show [OPTION...] KEY",
    .examples = examples,
    .options = options,
    .run = run,
    .takes_key = true,
};
