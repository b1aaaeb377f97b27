/* Answers in JSON: the members, and the line. */
#include "text/json.h"

#include "process/host.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <assert.h>
#include <stdlib.h>

enum {
    KEEP = 64 * 1024 /* Memory kept after a long line. */
};

void cli_json_init(struct cli_json *json)
{
    memset(json, 0, sizeof(*json));
    cli_json_reset(json);
}

void cli_json_finish(struct cli_json *json)
{
    idem__buffer_free(&json->text);
}

static void put(struct cli_json *json, const char *text)
{
    idem__buffer_str(&json->text, text);
}

void cli_json_reset(struct cli_json *json)
{
    idem__buffer_reset(&json->text, KEEP);
    json->depth = 0;
    json->arrays[0] = NULL;
    put(json, "{");
}

/* ---- Strings ---- */

static void put_escape(struct idem__buffer *text, uint8_t c)
{
    static const char letters[] = "\"\\\b\f\n\r\t";
    static const char escapes[] = "\"\\bfnrt";
    const char *at = c == '\0' ? NULL : strchr(letters, c);
    char unit[8];

    if (at != NULL) {
        (void)snprintf(unit, sizeof(unit), "\\%c", escapes[at - letters]);
    } else {
        (void)snprintf(unit, sizeof(unit), "\\u%04x", c);
    }
    idem__buffer_str(text, unit);
}

/* Writes a byte that is not UTF-8 as cli_escape() does: readers of JSON would refuse the
 * line with the byte itself. */
static void put_bad_byte(struct idem__buffer *text, uint8_t c)
{
    char shown[8];

    (void)snprintf(shown, sizeof(shown), "\\\\x%02x", c);
    idem__buffer_str(text, shown);
}

/* Returns false if some bytes were not UTF-8. */
static bool put_string(struct cli_json *json, struct idem_slice s)
{
    const uint8_t *p = s.base;
    bool is_utf8 = true;
    size_t at = 0;

    put(json, "\"");
    while (at < s.len) {
        size_t n = idem__json_plain_len(p + at, s.len - at);
        uint8_t c = p[at];

        if (n == 0 && (c < ' ' || c == '"' || c == '\\')) {
            put_escape(&json->text, c);
            at++;
            continue;
        }
        if (n == 0) {
            n = c == 0x7f ? 1 : idem__utf8_len(p + at, s.len - at);
        }
        if (n == 0) {
            put_bad_byte(&json->text, c);
            is_utf8 = false;
            at++;
            continue;
        }
        idem__buffer_add(&json->text, p + at, n);
        at += n;
    }
    put(json, "\"");
    return is_utf8;
}

/* ---- Members ---- */

/* True if the next member or value is the first one, which no comma precedes. */
static bool is_first(const struct cli_json *json)
{
    const struct idem__buffer *text = &json->text;
    uint8_t last = text->len == 0 ? '{' : text->base[text->len - 1];

    return last == '{' || last == '[';
}

static void end_array(struct cli_json *json)
{
    if (json->arrays[json->depth] != NULL) {
        put(json, "]");
        json->arrays[json->depth] = NULL;
    }
}

/* The beginning of a member, up to its value: ,"NAME": Names need no escapes. */
static void put_name(struct cli_json *json, const char *name)
{
    size_t len = strlen(name);
    uint8_t *to;

    end_array(json);
    to = idem__buffer_room(&json->text, len + strlen(",\"\":"));
    if (to == NULL) {
        return;
    }
    if (!is_first(json)) {
        *to++ = ',';
    }
    *to++ = '"';
    memcpy(to, name, len);
    to += len;
    *to++ = '"';
    *to++ = ':';
    json->text.len = (size_t)(to - json->text.base);
}

static void put_open(struct cli_json *json)
{
    put(json, "{");
    json->depth++;
    assert(json->depth < CLI_JSON_DEPTH);
    json->arrays[json->depth] = NULL;
}

void cli_json_null(struct cli_json *json, const char *name)
{
    put_name(json, name);
    put(json, "null");
}

void cli_json_text(struct cli_json *json, const char *name, const char *text)
{
    put_name(json, name);
    (void)put_string(json, idem_str(text));
}

void cli_json_bool(struct cli_json *json, const char *name, bool value)
{
    put_name(json, name);
    put(json, value ? "true" : "false");
}

void cli_json_count(struct cli_json *json, const char *name, uint64_t value)
{
    put_name(json, name);
    idem__buffer_u64(&json->text, value);
}

void cli_json_ms(struct cli_json *json, const char *name, int64_t ms)
{
    if (ms == IDEM_NEVER) {
        cli_json_null(json, name);
        return;
    }
    put_name(json, name);
    put(json, ms < 0 ? "-" : "");
    idem__buffer_u64(&json->text, ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms);
}

void cli_json_hex(struct cli_json *json, const char *name, struct idem_slice s)
{
    char *hex;

    put_name(json, name);
    put(json, "\"");
    hex = (char *)idem__buffer_room(&json->text, 2 * s.len + 1);
    if (hex != NULL) {
        cli_hex(s, hex);
        json->text.len += 2 * s.len;
    }
    put(json, "\"");
}

void cli_json_base64(struct cli_json *json, const char *name,
                     struct idem_slice s)
{
    put_name(json, name);
    put(json, "\"");
    idem__buffer_base64(&json->text, s);
    put(json, "\"");
}

bool cli_json_utf8(struct cli_json *json, const char *name, struct idem_slice s)
{
    size_t before;
    bool is_utf8;

    end_array(json);
    before = json->text.len;
    put_name(json, name);
    is_utf8 = put_string(json, s);
    json->text.len = is_utf8 ? json->text.len : before;
    return is_utf8;
}

void cli_json_bytes(struct cli_json *json, const char *name,
                    struct idem_slice s)
{
    char name_hex[64];

    if (!cli_json_utf8(json, name, s)) {
        (void)snprintf(name_hex, sizeof(name_hex), "%s_hex", name);
        cli_json_null(json, name);
        cli_json_hex(json, name_hex, s);
    }
}

void cli_json_raw(struct cli_json *json, const char *name,
                  struct idem_slice value)
{
    put_name(json, name);
    idem__buffer_add(&json->text, value.base, value.len);
}

void cli_json_open(struct cli_json *json, const char *name)
{
    put_name(json, name);
    put_open(json);
}

void cli_json_close(struct cli_json *json)
{
    end_array(json);
    put(json, "}");
    json->depth -= json->depth > 0; /* The outermost object is at depth 0. */
}

/* ---- Arrays ---- */

void cli_json_array(struct cli_json *json, const char *name)
{
    put_name(json, name);
    put(json, "[");
    json->arrays[json->depth] = name;
}

static void put_item(struct cli_json *json, const char *name)
{
    const char *array = json->arrays[json->depth];

    if (array == NULL || strcmp(array, name) != 0) {
        cli_json_array(json, name);
    } else if (!is_first(json)) {
        put(json, ",");
    }
}

void cli_json_append(struct cli_json *json, const char *name)
{
    put_item(json, name);
    put_open(json);
}

void cli_json_append_count(struct cli_json *json, const char *name,
                           uint64_t value)
{
    put_item(json, name);
    idem__buffer_u64(&json->text, value);
}

void cli_json_append_text(struct cli_json *json, const char *name,
                          const char *text)
{
    put_item(json, name);
    if (text == NULL) {
        put(json, "null");
    } else {
        (void)put_string(json, idem_str(text));
    }
}

void cli_json_append_pair(struct cli_json *json, const char *name,
                          struct idem_slice first, struct idem_slice second)
{
    put_item(json, name);
    put(json, "[");
    (void)put_string(json, first);
    put(json, ",");
    (void)put_string(json, second);
    put(json, "]");
}

/* ---- The line ---- */

char *cli_json_line(const struct cli_json *json)
{
    const char *end = json->arrays[0] != NULL ? "]}\n" : "}\n";
    char *line =
        json->text.failed ? NULL : malloc(json->text.len + strlen(end) + 1);

    if (line != NULL) {
        memcpy(line, json->text.base, json->text.len);
        (void)strcpy(line + json->text.len, end);
    }
    return line;
}

struct json_object *cli_json_parse(const struct cli_json *json)
{
    char *line = cli_json_line(json);
    struct json_object *object = line == NULL ? NULL : json_tokener_parse(line);

    free(line);
    return object;
}

int cli_json_write(const struct cli_json *json, FILE *f)
{
    char *line = cli_json_line(json);

    if (line == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    (void)fputs(line, f);
    free(line);
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
