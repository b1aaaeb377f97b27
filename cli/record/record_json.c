/* A record as an answer in JSON. */
#include "record/record.h"

#include <idem/form.h>
#include <stdlib.h>

/* Leaves the member out if @s is empty. */
static void some_bytes(struct cli_json *json, const char *name,
                       struct idem_slice s)
{
    if (s.len > 0) {
        cli_json_bytes(json, name, s);
    }
}

static void some_ms(struct cli_json *json, const char *name, int64_t ms)
{
    if (ms != 0) {
        cli_json_ms(json, name, ms);
    }
}

static void add_times(struct cli_json *json, const struct idem_record *r,
                      bool with_overdue)
{
    cli_json_ms(json, "created_ms", r->created_ms);
    cli_json_ms(json, "started_ms", r->started_ms);
    cli_json_ms(json, "lease_ms", r->lease_ms);
    if (r->status == IDEM_STATUS_IN_PROGRESS) {
        cli_json_ms(json, "lease_end_ms",
                    r->retry ? r->lease_end_ms : cli_lease_end_ms(r));
        if (with_overdue) {
            cli_json_bool(json, "overdue", r->overdue);
        }
    }
    some_ms(json, "expected_ms", r->expected_ms);
    some_ms(json, "ended_ms", r->ended_ms);
    some_ms(json, "expires_ms", r->expires_ms);
    cli_json_ms(json, "retention_ms", r->retention_ms);
}

static void add_past(struct cli_json *json, const struct idem_past *past)
{
    cli_json_append(json, "history");
    cli_json_count(json, "fence", past->fence);
    some_bytes(json, "owner", past->owner);
    cli_json_ms(json, "started_ms", past->started_ms);
    cli_json_ms(json, "ended_ms", past->ended_ms);
    cli_json_text(json, "end", cli_past_end_name(past->end));
    if (past->was != 0) {
        cli_json_text(json, "was", idem_status_name(past->was));
    }
    some_bytes(json, "meta", past->meta);
    some_bytes(json, "text", past->text);
    cli_json_close(json);
}

/* The bytes that a command printed to one of its streams. */
static void add_stream(struct cli_json *json, const char *name,
                       const struct idem_form *form, enum idem_stream wanted)
{
    struct idem_slice rest = form->bytes;
    struct idem_slice piece;
    enum idem_stream stream;
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    while (f != NULL && idem_form_next(form, &rest, &stream, &piece)) {
        if (stream == wanted) {
            (void)fwrite(piece.base, 1, piece.len, f);
        }
    }
    if (f == NULL || fclose(f) != 0) {
        json->text.failed = true;
    } else {
        cli_json_bytes(json, name, idem_bytes(text, len));
    }
    free(text);
}

static void add_result_bytes(struct cli_json *json,
                             const struct idem_result *result)
{
    struct idem_form form;

    idem_form_read(result, &form);
    if (form.kind == IDEM_FORM_DAMAGED) {
        cli_json_bool(json, "damaged", true);
    } else if (cli_is_output(&form)) {
        add_stream(json, "stdout", &form, IDEM_STREAM_STDOUT);
        add_stream(json, "stderr", &form, IDEM_STREAM_STDERR);
    } else {
        cli_json_bytes(json, "result", result->bytes);
    }
}

static void add_result(struct cli_json *json, const struct idem_record *r,
                       bool with_bytes)
{
    if (r->status != IDEM_STATUS_COMPLETED && r->result_len == 0 &&
        r->result.meta.len == 0) {
        return;
    }
    cli_json_count(json, "result_len", r->result_len);
    some_bytes(json, "content_type", r->result.content_type);
    some_bytes(json, "meta", r->result.meta);
    if (cli_outcome_exit(r) >= 0) {
        cli_json_count(json, "exit_status", (uint64_t)cli_outcome_exit(r));
    } else if (cli_outcome_http(r) >= 0) {
        cli_json_count(json, "http_status", (uint64_t)cli_outcome_http(r));
    }
    if (r->result.not_kept) {
        cli_json_bool(json, "not_kept", true);
    } else if (with_bytes) {
        add_result_bytes(json, &r->result);
    }
}

static void add_record(struct cli_json *json, const struct idem_record *r,
                       bool with_bytes, bool with_overdue)
{
    size_t i;

    cli_json_bytes(json, "scope", r->scope);
    cli_json_bytes(json, "key", r->key);
    cli_json_hex(json, "id", idem_bytes(r->id, sizeof(r->id)));
    cli_json_text(json, "status", idem_status_name(idem_record_status(r)));
    cli_json_text(json, "on_expired_lease",
                  r->on_expired_lease == IDEM_RERUN ? "rerun" : "hold");
    some_bytes(json, "owner", r->owner);
    some_bytes(json, "traceparent", r->traceparent);
    cli_json_count(json, "fence", r->fence);
    cli_json_count(json, "attempts", r->attempts);
    if (r->retried > 0) {
        cli_json_count(json, "retried", r->retried);
    }
    if (r->failures > 0) {
        cli_json_count(json, "failures", r->failures);
    }
    add_times(json, r, with_overdue);
    if (r->fingerprint.len > 0) {
        cli_json_hex(json, "fingerprint", r->fingerprint);
    }
    add_result(json, r, with_bytes);
    some_bytes(json, "error", r->error);
    some_bytes(json, "note", r->note);
    if (r->input_len > 0) {
        cli_json_count(json, "input_len", r->input_len);
    }
    for (i = 0; i < r->history_len; i++) {
        add_past(json, &r->history[i]);
    }
}

void cli_json_record(struct cli_json *json, const struct idem_record *r,
                     bool with_bytes)
{
    add_record(json, r, with_bytes, /* with_overdue= */ true);
}

void cli_json_stored(struct cli_json *json, const struct idem_record *r)
{
    add_record(json, r, /* with_bytes= */ false, /* with_overdue= */ false);
}

void cli_json_counters(struct cli_json *json, const struct idem_counters *c)
{
    cli_json_count(json, "started", c->started);
    cli_json_count(json, "takeovers", c->takeovers);
    cli_json_count(json, "completed", c->completed);
    cli_json_count(json, "failed", c->failed);
    cli_json_count(json, "unknown", c->unknown);
    cli_json_count(json, "released", c->released);
    cli_json_count(json, "retried", c->retried);
    cli_json_count(json, "replayed", c->replayed);
    cli_json_count(json, "busy", c->busy);
    cli_json_count(json, "mismatch", c->mismatch);
    cli_json_count(json, "lost", c->lost);
    cli_json_count(json, "resolved", c->resolved);
    cli_json_count(json, "purged", c->purged);
}
