/* The table of methods, and a line as a call of one. */
#include "serve/methods.h"

#include "process/host.h"
#include "serve/calls.h"

struct method {
    const char *name;
    serve_method_fn *run;
    enum idem_status outcome; /* Of an end. */
    bool is_operators;
    bool claims;
    const char *params[20]; /* As in docs/serve.json; "*": it is required. */
};

static const struct method methods[] = {
    {.name = "hello",
     .run = serve_hello,
     .params = {"*protocol", "pid", "owner", "challenge"}},
    {.name = "begin",
     .run = serve_begin,
     .claims = true,
     .params = {"scope", "*key", "fingerprint", "on_expired_lease", "lease_ms",
                "retention_ms", "expect_ms", "attempts_max", "owner", "wait_ms",
                "wait_then_run", "*nonce", "again", "on_death", "max_time_ms"}},
    {.name = "http.begin",
     .run = serve_http_begin,
     .claims = true,
     .params = {"scope", "*method", "*target", "*headers", "body", "outcome",
                "replay_headers", "on_expired_lease", "lease_ms",
                "retention_ms", "expect_ms", "attempts_max", "owner", "wait_ms",
                "*nonce", "again", "on_death", "max_time_ms"}},
    {.name = "http.end",
     .run = serve_http_end,
     .params = {"attempt", "token", "*http_status", "*headers", "body",
                "not_kept", "outcome", "replay_headers", "failures_max",
                "retry_after_ms"}},
    {.name = "event.begin",
     .run = serve_event,
     .params = {"*event", "*function", "request_id", "source", "key_from"}},
    {.name = "event.end",
     .run = serve_event,
     .params = {"*event", "*function", "request_id", "source", "key_from",
                "*states"}},
    {.name = "complete",
     .run = serve_end,
     .outcome = IDEM_STATUS_COMPLETED,
     .params = {"attempt", "token", "result", "text"}},
    {.name = "fail",
     .run = serve_end,
     .outcome = IDEM_STATUS_FAILED,
     .params = {"attempt", "token", "result", "text"}},
    {.name = "release",
     .run = serve_end,
     .outcome = IDEM_STATUS_RELEASED,
     .params = {"attempt", "token", "text"}},
    {.name = "retry",
     .run = serve_end,
     .outcome = IDEM_STATUS_RETRY,
     .params = {"attempt", "token", "result", "text", "failures_max",
                "retry_after_ms"}},
    {.name = "unknown",
     .run = serve_end,
     .outcome = IDEM_STATUS_UNKNOWN,
     .params = {"attempt", "token", "text"}},
    {.name = "statement",
     .run = serve_statement,
     .params = {"*attempt", "result"}},
    {.name = "recorded", .run = serve_recorded, .params = {"attempt", "token"}},
    {.name = "renew",
     .run = serve_renew,
     .params = {"attempt", "token", "lease_ms"}},
    {.name = "cancel", .run = serve_cancel, .params = {"*id"}},
    {.name = "ping", .run = serve_ping},
    {.name = "bye", .run = serve_bye},
    {.name = "limit",
     .run = serve_limit,
     .params = {"*name", "*subject", "*request", "at_ms", "*per_ms", "start_ms",
                "*max", "cost", "late_ms"}},
    {.name = "show", .run = serve_show, .params = {"scope", "*key"}},
    {.name = "list",
     .run = serve_list,
     .params = {"scope", "status", "overdue", "max", "place"}},
    {.name = "stats", .run = serve_stats},
    {.name = "resolve",
     .run = serve_resolve,
     .is_operators = true,
     .params = {"scope", "*key", "*fence", "who", "*reason", "*status",
                "result", "force"}},
    {.name = "reopen",
     .run = serve_reopen,
     .is_operators = true,
     .params = {"scope", "*key", "*fence", "who", "*reason"}},
    {.name = NULL},
};

static const struct method *find(const struct serve *serve,
                                 const struct serve_conn *conn,
                                 struct serve_message *m)
{
    const struct method *method = methods;

    while (method->name != NULL && !serve_is_text(m->method, method->name)) {
        method++;
    }
    if (method->name == NULL) {
        serve_message_refuse(m, SERVE_NO_METHOD, NULL, "unknown method");
    } else if (method->is_operators && !serve->is_operator) {
        serve_message_refuse(m, SERVE_NO_METHOD, NULL,
                             "%s needs idem serve --operator", method->name);
    } else if (!conn->greeted && method->run != serve_hello) {
        serve_message_refuse(m, SERVE_NOT_A_REQUEST, NULL,
                             "hello comes first on each connection");
    }
    return method;
}

/* A client that cannot be told starts nothing any more; what it says of its work is
 * taken to the last line, for the pipe that it reads closes before the other is empty. */
static bool is_too_late(const struct serve_conn *conn,
                        const struct method *method)
{
    return !serve_conn_hears(conn) && method->claims;
}

static void run(struct serve *serve, struct serve_conn *conn,
                struct serve_message *m)
{
    const struct method *method = find(serve, conn, m);
    struct serve_call *call = NULL;
    struct serve_params params;

    serve_params_read(m, method->params, &params);
    params.outcome.status = method->outcome;
    if (m->code == 0 && !is_too_late(conn, method)) {
        call = serve_call_create(serve, conn, m->id);
        conn->broken = conn->broken || call == NULL;
    }
    if (call != NULL) {
        method->run(call, m, &params);
    }
    serve_params_finish(&params);
    if (m->code != 0) {
        serve_refuse(conn, m);
    }
    if (call != NULL && m->code != 0) {
        serve_call_end(call);
    } else if (call != NULL && m->error.code != 0) {
        serve_reply_error(call, &m->error);
    }
}

void serve_line(struct serve *serve, struct serve_conn *conn,
                struct idem_slice line)
{
    struct serve_message m;

    conn->heard_ms = io_now_ms();
    if (serve_message_read(&serve->tree, line, &m)) {
        run(serve, conn, &m);
    } else {
        serve_refuse(conn, &m);
    }
}

void serve_long_line(struct serve_conn *conn)
{
    struct serve_message m = {.code = 0};

    serve_message_refuse(&m, SERVE_NOT_JSON, NULL,
                         "a line has at most %d bytes", SERVE_LINE_MAX);
    serve_refuse(conn, &m);
}
