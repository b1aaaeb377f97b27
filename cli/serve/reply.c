/* Lines for a client. */
#include "serve/methods.h"

#include "base/base64.h"
#include "record/record.h"
#include "serve/calls.h"
#include "text/text.h"

#include <stdio.h>
#include <stdlib.h>

/* idem's errors have the codes -32001 to -32010, in the order of idem_code. */
#define CODE_OF_OURS(code) (-32000 + (code))

enum {
    NODES_MAX = 1 << 20,     /* Values of a result that is sent as JSON. */
    OTHER_MEMBERS = 1 << 20, /* Of an answer, beside its result. */
};

/* ---- The line ------------------------------------------------------------ */

/* {"jsonrpc":"2.0",HEAD VALUE} A connection whose answer cannot be made is closed: its
 * client must not wait for ever. False: it is too long. */
static bool put(struct serve_conn *conn, const char *head, struct idem_slice id,
                const char *member, struct cli_json *json)
{
    struct idem__buffer *out = &conn->unsent;
    const char *text = NULL;
    size_t len = 0;

    if (!json->failed) {
        text = json_object_to_json_string_length(
            json->object,
            JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
    }
    if (text != NULL && len < SERVE_LINE_MAX - 2 * SERVE_ID_MAX) {
        idem__buffer_str(out, "{\"jsonrpc\":\"2.0\",");
        idem__buffer_str(out, head);
        idem__buffer_add(out, id.base, id.len);
        idem__buffer_str(out, member);
        idem__buffer_add(out, text, len);
        idem__buffer_str(out, "}\n");
    }
    conn->broken = conn->broken || text == NULL || out->failed;
    cli_json_finish(json);
    return len < SERVE_LINE_MAX - 2 * SERVE_ID_MAX;
}

static bool put_answer(struct serve_conn *conn, struct idem_slice id,
                       const char *member, struct cli_json *json)
{
    return put(conn, "\"id\":", id.len > 0 ? id : idem_str("null"), member,
               json);
}

void serve_notify(struct serve_conn *conn, const char *method,
                  struct cli_json *params)
{
    (void)put(conn, "\"method\":\"", idem_str(method),
              "\",\"params\":", params);
}

/* ---- Errors -------------------------------------------------------------- */

/* data has the member @name, unless @value is NULL, and "kind", unless @kind is. */
static void put_error(struct serve_conn *conn, struct idem_slice id, int code,
                      const char *text, const char *name, const char *value,
                      const char *kind)
{
    struct cli_json json;
    struct cli_json data;
    char shown[512];

    if (!cli_is_utf8(idem_str(text))) { /* It was cut in a character. */
        text = cli_escape(idem_str(text), shown, sizeof(shown));
    }
    cli_json_init(&json);
    cli_json_ms(&json, "code", code);
    cli_json_text(&json, "message", text);
    if (value != NULL) {
        cli_json_init(&data);
        cli_json_text(&data, name, value);
        if (kind != NULL) {
            cli_json_text(&data, "kind", kind);
        }
        cli_json_object(&json, "data", &data);
    }
    (void)put_answer(conn, id, ",\"error\":", &json);
}

static bool is_heard(const struct serve_call *call)
{
    return call->id_len > 0 && serve_conn_hears(call->conn);
}

static void reply_error(struct serve_call *call, const struct idem_error *error)
{
    static const char *const kinds[] = {
        [IDEM_KIND_RETRY] = "retry",   [IDEM_KIND_LOST] = "lost",
        [IDEM_KIND_CALLER] = "caller", [IDEM_KIND_STORE] = "store",
        [IDEM_KIND_MEMORY] = "memory", [IDEM_KIND_NONE] = "none",
    };
    char name[32];

    (void)snprintf(name, sizeof(name), "IDEM_E%s",
                   idem_error_name(error->code));
    put_error(call->conn, idem_bytes(call->id, call->id_len),
              CODE_OF_OURS(error->code),
              error->text[0] != '\0' ? error->text
                                     : idem_error_text(error->code),
              "name", name, kinds[idem_error_kind(error->code)]);
}

void serve_reply_error(struct serve_call *call, const struct idem_error *error)
{
    if (is_heard(call)) {
        reply_error(call, error);
    }
    serve_call_end(call);
}

void serve_reply_cancelled(struct serve_call *call)
{
    if (is_heard(call)) {
        put_error(call->conn, idem_bytes(call->id, call->id_len),
                  SERVE_CANCELLED, "the request was cancelled", NULL, NULL,
                  NULL);
    }
    serve_call_end(call);
}

void serve_refuse(struct serve_conn *conn, const struct serve_message *m)
{
    if (serve_conn_hears(conn)) {
        put_error(conn, m->id, m->code, m->text, "member",
                  m->member[0] != '\0' ? m->member : NULL, NULL);
    }
}

void serve_reply(struct serve_call *call)
{
    static const struct idem_error too_long = {
        IDEM_EINVALID, "the answer is longer than a line may be"};

    if (is_heard(call) &&
        !put_answer(call->conn, idem_bytes(call->id, call->id_len),
                    ",\"result\":", &call->answer)) {
        reply_error(call, &too_long);
    }
    serve_call_end(call);
}

/* ---- Members ------------------------------------------------------------- */

void serve_json_fence(struct cli_json *json, uint64_t fence)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)fence);
    cli_json_text(json, "fence", text);
}

static bool is_json(struct serve *serve, const struct idem_result *result)
{
    static const char json[] = "application/json";
    struct idem_slice type = result->content_type;
    size_t len = strlen(json);
    const char *p = type.base;
    struct idem__tree *tree = &serve->other;

    tree->nodes_max = NODES_MAX;
    return type.len >= len && strncasecmp(p, json, len) == 0 &&
           (type.len == len || p[len] == ';' || p[len] == ' ') &&
           result->bytes.len > 0 &&
           idem__tree_read(tree, result->bytes, NULL) == 0 && !tree->halves;
}

/* As it was written, but on one line: between values a blank does as well. */
void serve_json_raw(struct cli_json *ret_json, struct idem_slice bytes)
{
    struct json_object *as_it_is = json_object_new_object();
    char *text = malloc(bytes.len + 1);
    size_t i;

    *ret_json = (struct cli_json){.object = as_it_is};
    if (as_it_is == NULL || text == NULL) {
        free(text);
        ret_json->failed = true;
        return;
    }
    memcpy(text, bytes.base, bytes.len);
    text[bytes.len] = '\0';
    for (i = 0; i < bytes.len; i++) {
        text[i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
    }
    json_object_set_serializer(as_it_is, json_object_userdata_to_json_string,
                               text, json_object_free_userdata);
}

/* Whether the text fits into a line, where JSON has some bytes in two, and others in
 * six. */
static bool fits(struct idem_slice text)
{
    const uint8_t *p = text.base;
    size_t len = text.len;
    size_t i;

    for (i = 0; i < text.len; i++) {
        len += p[i] < ' ' ? 5 : p[i] == '"' || p[i] == '\\' ? 1 : 0;
    }
    return len <= SERVE_LINE_MAX - OTHER_MEMBERS;
}

static void add_bytes(struct cli_json *json, struct serve *serve,
                      const struct idem_result *result)
{
    struct idem__buffer base64 = {.failed = false};
    struct cli_json raw;

    if (is_json(serve, result)) {
        serve_json_raw(&raw, result->bytes);
        cli_json_object(json, "json", &raw);
    } else if (cli_is_utf8(result->bytes) && fits(result->bytes)) {
        cli_json_bytes(json, "text", result->bytes);
    } else {
        idem__buffer_base64(&base64, result->bytes);
        json->failed = json->failed || base64.failed;
        cli_json_bytes(json, "base64", idem__buffer_slice(&base64));
        idem__buffer_free(&base64);
    }
}

static void add_result(struct cli_json *json, struct serve *serve,
                       const struct idem_record *record)
{
    const struct idem_result *result = &record->result;
    struct cli_json of;

    cli_json_init(&of);
    cli_json_count(&of, "len", record->result_len);
    if (result->content_type.len > 0) {
        cli_json_bytes(&of, "content_type", result->content_type);
    }
    if (result->meta.len > 0 && cli_is_utf8(result->meta)) {
        cli_json_bytes(&of, "meta", result->meta);
    }
    if (result->not_kept) {
        cli_json_bool(&of, "not_kept", true);
    } else if (result->bytes.len < record->result_len) {
        cli_json_bool(&of, "too_long", true);
    } else {
        add_bytes(&of, serve, result);
    }
    cli_json_object(json, "result", &of);
}

void serve_json_record(struct cli_json *json, struct serve *serve,
                       const struct idem_record *record, bool with_result)
{
    struct cli_json of;

    cli_json_init(&of);
    cli_json_record(&of, record, /* with_bytes= */ false);
    cli_json_object(json, "record", &of);
    if (with_result) {
        add_result(json, serve, record);
    }
}
