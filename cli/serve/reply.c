/* Lines for a client. */
#include "serve/methods.h"

#include "http/multipart.h"
#include "record/record.h"
#include "serve/calls.h"

#include <stdio.h>

/* idem's errors have the codes -32001 to -32010, in the order of idem_code. */
#define CODE_OF_OURS(code) (-32000 + (code))

enum {
    NODES_MAX = 1 << 20,     /* Values of a result that is sent as JSON. */
    OTHER_MEMBERS = 1 << 20, /* Bytes of an answer beside its result. */
};

/* ---- The line ------------------------------------------------------------ */

static struct cli_json *begin(struct serve *serve)
{
    cli_json_reset(&serve->line);
    cli_json_text(&serve->line, "jsonrpc", "2.0");
    return &serve->line;
}

static struct idem_slice id_of(const struct serve_call *call)
{
    return idem_bytes(call->id, call->id_len);
}

static struct cli_json *begin_answer(struct serve *serve, struct idem_slice id)
{
    struct cli_json *line = begin(serve);

    cli_json_raw(line, "id", id.len > 0 ? id : idem_str("null"));
    return line;
}

/* If memory runs out for an answer, the connection is closed, so that its client
 * does not wait for ever. False: the line is too long. */
static bool put(struct serve_conn *conn, struct cli_json *line)
{
    struct idem__buffer *out = &conn->unsent;

    while (line->depth > 0) {
        cli_json_close(line);
    }
    cli_json_close(line);
    if (line->text.len > SERVE_LINE_MAX) {
        return false;
    }
    if (serve_conn_hears(conn)) {
        idem__buffer_add(out, line->text.base, line->text.len);
        idem__buffer_str(out, "\n");
        conn->broken = line->text.failed || out->failed;
    }
    return true;
}

void serve_notify_lost(struct serve *serve, const struct serve_attempt *a,
                       const char *reason)
{
    struct cli_json *line = begin(serve);

    cli_json_text(line, "method", "lost");
    cli_json_open(line, "params");
    cli_json_count(line, "attempt", a->number);
    cli_json_text(line, "reason", reason);
    (void)put(a->conn, line);
}

/* ---- Answers ------------------------------------------------------------- */

struct cli_json *serve_answer(struct serve_call *call)
{
    struct cli_json *line = begin_answer(call->serve, id_of(call));

    cli_json_open(line, "result");
    return line;
}

void serve_answer_raw(struct serve_call *call, struct idem_slice result)
{
    cli_json_raw(begin_answer(call->serve, id_of(call)), "result", result);
}

/* data has the member @name, unless @value is NULL, and "kind", unless @kind is. */
static void put_error(struct serve *serve, struct serve_conn *conn,
                      struct idem_slice id, int code, const char *text,
                      const char *name, const char *value, const char *kind)
{
    struct cli_json *line = begin_answer(serve, id);

    cli_json_open(line, "error");
    cli_json_ms(line, "code", code);
    cli_json_text(line, "message", text);
    if (value != NULL) {
        cli_json_open(line, "data");
        cli_json_text(line, name, value);
        if (kind != NULL) {
            cli_json_text(line, "kind", kind);
        }
    }
    (void)put(conn, line);
}

static void answer_error(struct serve_call *call,
                         const struct idem_error *error)
{
    static const char *const kinds[] = {
        [IDEM_KIND_RETRY] = "retry",   [IDEM_KIND_LOST] = "lost",
        [IDEM_KIND_CALLER] = "caller", [IDEM_KIND_STORE] = "store",
        [IDEM_KIND_MEMORY] = "memory", [IDEM_KIND_NONE] = "none",
    };
    char name[32];

    (void)snprintf(name, sizeof(name), "IDEM_E%s",
                   idem_error_name(error->code));
    put_error(call->serve, call->conn, id_of(call), CODE_OF_OURS(error->code),
              error->text[0] != '\0' ? error->text
                                     : idem_error_text(error->code),
              "name", name, kinds[idem_error_kind(error->code)]);
}

void serve_reply_error(struct serve_call *call, const struct idem_error *error)
{
    answer_error(call, error);
    serve_call_end(call);
}

void serve_reply_cancelled(struct serve_call *call)
{
    put_error(call->serve, call->conn, id_of(call), SERVE_CANCELLED,
              "the request was cancelled", NULL, NULL, NULL);
    serve_call_end(call);
}

void serve_refuse(struct serve *serve, struct serve_conn *conn,
                  const struct serve_message *m)
{
    put_error(serve, conn, m->id, m->code, m->text, "member",
              m->member[0] != '\0' ? m->member : NULL, /* kind= */ NULL);
}

void serve_reply(struct serve_call *call)
{
    static const struct idem_error too_long = {
        IDEM_EINVALID, "the answer is longer than a line may be"};

    if (!put(call->conn, &call->serve->line)) {
        answer_error(call, &too_long);
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
    struct idem_slice type = idem__media_type(result->content_type);
    struct idem__tree *tree = &serve->other;

    tree->nodes_max = NODES_MAX;
    return idem__http_is(type, "application/json") && result->bytes.len > 0 &&
           idem__tree_read(tree, result->bytes, NULL) == 0 && !tree->halves;
}

/* Adds the value as it was written, but on one line: a newline can only be between
 * values, where a blank does as well. */
static void add_json(struct cli_json *json, struct idem_slice value)
{
    struct idem__buffer *text = &json->text;
    size_t at = text->len;

    cli_json_raw(json, "json", value);
    for (; at < text->len; at++) {
        if (text->base[at] == '\n' || text->base[at] == '\r') {
            text->base[at] = ' ';
        }
    }
}

/* JSON needs two bytes for some bytes of a text, and six for others, so a text may become
 * too long. */
static void add_bytes(struct cli_json *json, struct serve *serve,
                      const struct idem_result *result)
{
    size_t before = json->text.len;

    if (is_json(serve, result)) {
        add_json(json, result->bytes);
    } else if (!cli_json_utf8(json, "text", result->bytes) ||
               json->text.len - before > SERVE_LINE_MAX - OTHER_MEMBERS) {
        json->text.len = before;
        cli_json_base64(json, "base64", result->bytes);
    }
}

static void add_result(struct cli_json *json, struct serve *serve,
                       const struct idem_record *record)
{
    const struct idem_result *result = &record->result;

    cli_json_open(json, "result");
    cli_json_count(json, "len", record->result_len);
    if (result->content_type.len > 0) {
        cli_json_bytes(json, "content_type", result->content_type);
    }
    if (result->meta.len > 0) {
        (void)cli_json_utf8(json, "meta", result->meta);
    }
    if (result->not_kept) {
        cli_json_bool(json, "not_kept", true);
    } else if (result->bytes.len < record->result_len) {
        cli_json_bool(json, "too_long", true);
    } else {
        add_bytes(json, serve, result);
    }
    cli_json_close(json);
}

void serve_json_record(struct cli_json *json, struct serve *serve,
                       const struct idem_record *record, bool with_result)
{
    cli_json_open(json, "record");
    cli_json_record(json, record, /* with_bytes= */ false);
    cli_json_close(json);
    if (with_result) {
        add_result(json, serve, record);
    }
}
