/* Answers in JSON: the members, and the line. */
#include "text/json.h"

#include "process/host.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

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

void cli_json_array(struct cli_json *json, const char *name)
{
    add(json, name, json_object_new_array());
}

/* @value may be NULL, which is null. */
static void append_any(struct cli_json *json, const char *name,
                       struct json_object *value)
{
    struct json_object *array = NULL;

    if (!json->failed &&
        !json_object_object_get_ex(json->object, name, &array)) {
        cli_json_array(json, name);
        (void)json_object_object_get_ex(json->object, name, &array);
    }
    if (json->failed || json_object_array_add(array, value) != 0) {
        json->failed = true;
        (void)json_object_put(value);
    }
}

static void append(struct cli_json *json, const char *name,
                   struct json_object *value)
{
    json->failed = json->failed || value == NULL;
    append_any(json, name, value);
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

void cli_json_append_text(struct cli_json *json, const char *name,
                          const char *text)
{
    if (text == NULL) {
        append_any(json, name, NULL);
    } else {
        append(json, name, json_object_new_string(text));
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

int cli_json_end(struct cli_json *json, FILE *f)
{
    int status = cli_json_write(json, f);

    cli_json_finish(json);
    return status;
}

int cli_json_print(struct cli_json *json)
{
    return cli_json_end(json, stdout);
}

/* ---- The log of a command that goes on ---- */

static bool hashed;

int cli_log_init(void)
{
    const char *rule = secure_getenv("IDEM_LOG_KEYS");

    hashed = rule != NULL && strcmp(rule, "hashed") == 0;
    if (rule == NULL || *rule == '\0' || hashed || strcmp(rule, "clear") == 0) {
        return 0;
    }
    cli_say("invalid IDEM_LOG_KEYS; expected clear or hashed");
    return CLI_USAGE;
}

bool cli_log_shows_keys(void)
{
    return !hashed;
}

void cli_log_begin(struct cli_json *line, const char *level, const char *event)
{
    char time[32];

    cli_time_text(cli_now_ms(), time);
    cli_json_init(line);
    cli_json_text(line, "time", time);
    cli_json_text(line, "level", level);
    cli_json_text(line, "event", event);
}

void cli_log_identity(struct cli_json *line, const struct idem_record *r)
{
    if (!hashed) {
        cli_json_bytes(line, "scope", r->scope);
        cli_json_bytes(line, "key", r->key);
    }
    cli_json_hex(line, "id", idem_bytes(r->id, sizeof(r->id)));
}

void cli_log_record(struct cli_json *line, const struct idem_record *r)
{
    cli_log_identity(line, r);
    cli_json_text(line, "status", idem_status_name(idem_record_status(r)));
    cli_json_bytes(line, "owner", r->owner);
    cli_json_count(line, "fence", r->fence);
    cli_json_count(line, "attempts", r->attempts);
    cli_json_ms(line, "created_ms", r->created_ms);
    cli_json_ms(line, "started_ms", r->started_ms);
    if (r->expected_ms != 0) {
        cli_json_ms(line, "expected_ms", r->expected_ms);
    }
    if (r->status == IDEM_STATUS_IN_PROGRESS) {
        cli_json_ms(line, "lease_end_ms", r->lease_end_ms);
    }
    if (r->ended_ms != 0) {
        cli_json_ms(line, "ended_ms", r->ended_ms);
    }
}

int cli_log_end(struct cli_json *line, FILE *f)
{
    int status = cli_json_write(line, f);

    (void)fflush(f);
    cli_json_finish(line);
    return status;
}
