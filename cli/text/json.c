/* Answers in JSON: the members, and the line. */
#include "text/json.h"

#include "record/fields.h"
#include "record/record.h"

#include <stdlib.h>

void cli_json_init(struct cli_json *json)
{
    json->object = json_object_new_object();
    json->failed = json->object == NULL;
}

void cli_json_finish(struct cli_json *json)
{
    (void)json_object_put(json->object);
    json->object = NULL;
}

/* Adds a value that was just made; NULL: memory ran out before it. */
static void add(struct cli_json *json, const char *name,
                struct json_object *value)
{
    if (value == NULL) {
        json->failed = true;
        return;
    }
    if (json->failed ||
        json_object_object_add(json->object, name, value) != 0) {
        json->failed = true;
        (void)json_object_put(value);
    }
}

void cli_json_null(struct cli_json *json, const char *name)
{
    if (json->failed || json_object_object_add(json->object, name, NULL) != 0) {
        json->failed = true;
    }
}

void cli_json_text(struct cli_json *json, const char *name, const char *text)
{
    add(json, name, json_object_new_string(text));
}

void cli_json_bool(struct cli_json *json, const char *name, bool value)
{
    add(json, name, json_object_new_boolean(value));
}

void cli_json_count(struct cli_json *json, const char *name, uint64_t value)
{
    add(json, name, json_object_new_uint64(value));
}

void cli_json_ms(struct cli_json *json, const char *name, int64_t ms)
{
    if (ms == IDEM_NEVER) {
        cli_json_null(json, name);
    } else {
        add(json, name, json_object_new_int64(ms));
    }
}

void cli_json_hex(struct cli_json *json, const char *name, struct idem_slice s)
{
    char *hex = malloc(2 * s.len + 1);

    if (hex == NULL) {
        json->failed = true;
        return;
    }
    cli_hex(s, hex);
    cli_json_text(json, name, hex);
    free(hex);
}

void cli_json_bytes(struct cli_json *json, const char *name,
                    struct idem_slice s)
{
    char name_hex[64];

    if (cli_is_utf8(s)) {
        add(json, name,
            json_object_new_string_len(s.len > 0 ? s.base : "", (int)s.len));
        return;
    }
    (void)snprintf(name_hex, sizeof(name_hex), "%s_hex", name);
    cli_json_null(json, name);
    cli_json_hex(json, name_hex, s);
}

/* Adds a value that was just made to an array; NULL: memory ran out. */
static void append(struct cli_json *json, const char *name,
                   struct json_object *value)
{
    struct json_object *array = NULL;

    if (!json->failed &&
        !json_object_object_get_ex(json->object, name, &array)) {
        array = json_object_new_array();
        add(json, name, array);
    }
    if (json->failed || value == NULL ||
        json_object_array_add(array, value) != 0) {
        json->failed = true;
        (void)json_object_put(value);
    }
}

void cli_json_append(struct cli_json *json, const char *name,
                     struct cli_json *child)
{
    json->failed = json->failed || child->failed;
    append(json, name, child->object);
    child->object = NULL; /* It belongs to the array now. */
}

void cli_json_object(struct cli_json *json, const char *name,
                     struct cli_json *child)
{
    json->failed = json->failed || child->failed;
    add(json, name, child->object);
    child->object = NULL; /* It belongs to the other now. */
}

void cli_json_append_count(struct cli_json *json, const char *name,
                           uint64_t value)
{
    append(json, name, json_object_new_uint64(value));
}

/* Left out where there is nothing to say. */
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

static void add_times(struct cli_json *json, const struct idem_record *r)
{
    cli_json_ms(json, "created_ms", r->created_ms);
    cli_json_ms(json, "started_ms", r->started_ms);
    cli_json_ms(json, "lease_ms", r->lease_ms);
    if (r->status == IDEM_STATUS_IN_PROGRESS) {
        cli_json_ms(json, "lease_end_ms", r->lease_end_ms);
        cli_json_bool(json, "overdue", cli_is_overdue(r));
    }
    some_ms(json, "expected_ms", r->expected_ms);
    some_ms(json, "ended_ms", r->ended_ms);
    some_ms(json, "expires_ms", r->expires_ms);
    cli_json_ms(json, "retention_ms", r->retention_ms);
}

static void add_past(struct cli_json *json, const struct idem_past *past)
{
    struct cli_json entry;

    cli_json_init(&entry);
    cli_json_count(&entry, "fence", past->fence);
    some_bytes(&entry, "owner", past->owner);
    cli_json_ms(&entry, "started_ms", past->started_ms);
    cli_json_ms(&entry, "ended_ms", past->ended_ms);
    cli_json_text(&entry, "end", cli_past_end_name(past->end));
    if (past->was != 0) {
        cli_json_text(&entry, "was", idem_status_name(past->was));
    }
    cli_json_append(json, "history", &entry);
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
        json->failed = true;
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
    if (r->status != IDEM_STATUS_COMPLETED && r->result_len == 0) {
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

void cli_json_record(struct cli_json *json, const struct idem_record *r,
                     bool with_bytes)
{
    size_t i;

    cli_json_bytes(json, "scope", r->scope);
    cli_json_bytes(json, "key", r->key);
    cli_json_hex(json, "id", idem_bytes(r->id, sizeof(r->id)));
    cli_json_text(json, "status", idem_status_name(idem_record_status(r)));
    cli_json_text(json, "on_expired_lease",
                  r->on_expired_lease == IDEM_RERUN ? "rerun" : "hold");
    some_bytes(json, "owner", r->owner);
    cli_json_count(json, "fence", r->fence);
    cli_json_count(json, "attempts", r->attempts);
    if (r->retried > 0) {
        cli_json_count(json, "retried", r->retried);
    }
    add_times(json, r);
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

int cli_json_write(const struct cli_json *json, FILE *f)
{
    const char *line = NULL;

    if (!json->failed) {
        line =
            json_object_to_json_string_ext(json->object,
                                           JSON_C_TO_STRING_PLAIN |
                                               JSON_C_TO_STRING_NOSLASHESCAPE);
    }
    if (line == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    (void)fputs(line, f);
    (void)fputc('\n', f);
    return 0;
}

int cli_json_print(const struct cli_json *json)
{
    return cli_json_write(json, stdout);
}
