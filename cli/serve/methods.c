/* The table of methods, and a line as a call of one. */
#include "serve/methods.h"

#include "serve/calls.h"

/* Parameters that several methods take. */
#define ATTEMPT "attempt token "
#define CLAIM                                                                  \
    "scope on_expired_lease lease_ms retention_ms expect_ms attempts_max "     \
    "owner wait_ms *nonce again on_death max_time_ms "
#define EVENT "*event *function request_id source key_from "
#define DECISION "scope *key *fence who *reason "

enum rule {
    ANY = 0,
    CLAIMS,   /* It starts work. */
    NAMES,    /* It is about an attempt. */
    OPERATORS /* It needs --operator. */
};

struct method {
    const char *name;
    serve_method_fn *run;
    enum rule rule;
    enum idem_status outcome; /* Of an end. */
    const char *params;       /* As in docs/serve.json; "*": it is required. */
};

static const struct method methods[] = {
    {"hello", serve_hello, ANY, 0, "*protocol pid owner challenge"},
    {"begin", serve_begin, CLAIMS, 0,
     CLAIM "*key fingerprint wait_then_run traceparent"},
    {"http.begin", serve_http_begin, CLAIMS, 0,
     CLAIM "*method *target *headers body outcome replay_headers"},
    {"http.end", serve_http_end, NAMES, 0,
     ATTEMPT "*http_status *headers body not_kept outcome replay_headers "
             "failures_max retry_after_ms"},
    {"event.begin", serve_event, ANY, 0, EVENT},
    {"event.end", serve_event, ANY, 0, EVENT "*states"},
    {"complete", serve_end, NAMES, IDEM_STATUS_COMPLETED,
     ATTEMPT "result text"},
    {"fail", serve_end, NAMES, IDEM_STATUS_FAILED, ATTEMPT "result text"},
    {"release", serve_end, NAMES, IDEM_STATUS_RELEASED, ATTEMPT "text"},
    {"retry", serve_end, NAMES, IDEM_STATUS_RETRY,
     ATTEMPT "result text failures_max retry_after_ms"},
    {"unknown", serve_end, NAMES, IDEM_STATUS_UNKNOWN, ATTEMPT "text"},
    {"statement", serve_statement, NAMES, 0, "*attempt result"},
    {"recorded", serve_statement, NAMES, IDEM_STATUS_COMPLETED, ATTEMPT},
    {"renew", serve_renew, NAMES, 0, ATTEMPT "lease_ms"},
    {"cancel", serve_cancel, ANY, 0, "*id"},
    {"ping", serve_ping, ANY, 0, ""},
    {"bye", serve_bye, ANY, 0, ""},
    {"limit", serve_limit, ANY, 0,
     "*name *subject *request at_ms *per_ms start_ms *max cost late_ms"},
    {"advance", serve_advance, ANY, 0, "*ms"},
    {"show", serve_show, ANY, 0, "scope *key"},
    {"list", serve_list, ANY, 0, "scope status overdue max place"},
    {"stats", serve_stats, ANY, 0, ""},
    {"resolve", serve_decide, OPERATORS, 0, DECISION "*status result force"},
    {"reopen", serve_decide, OPERATORS, IDEM_STATUS_RETRY, DECISION},
    {NULL, NULL, ANY, 0, ""},
};

/* The parameters of @method as sets, which are made from its text at the first call. */
static const struct serve_names *names_of(const struct method *method)
{
    static struct serve_names names[sizeof(methods) / sizeof(methods[0])];
    struct serve_names *found = &names[method - methods];

    if (found->taken == 0) {
        serve_names_read(method->params, found);
    }
    return found;
}

static const struct method *find(const struct serve *serve,
                                 const struct serve_conn *conn,
                                 struct serve_message *m)
{
    const struct method *method = methods;

    while (method->name != NULL && !serve_is_text(m->method, method->name)) {
        method++;
    }
    if (method->name == NULL) {
        serve_message_refuse(m, SERVE_NO_METHOD, "unknown method");
    } else if (method->rule == OPERATORS && !serve->is_operator) {
        serve_message_refuse(m, SERVE_NO_METHOD,
                             "%s needs idem serve --operator", method->name);
    } else if (!conn->greeted && method->run != serve_hello) {
        serve_message_refuse(m, SERVE_NOT_A_REQUEST,
                             "hello comes first on each connection");
    }
    return method;
}

/* A client that can no longer be told must not get a claim. But what it reports of its
 * work is taken to the last line: the pipe that it reads may close before the other is
 * empty. */
static bool is_too_late(const struct serve_conn *conn,
                        const struct method *method)
{
    return !serve_conn_hears(conn) && method->rule == CLAIMS;
}

static void run(struct serve *serve, struct serve_conn *conn,
                struct serve_message *m)
{
    const struct method *method = find(serve, conn, m);
    struct serve_call *call = NULL;
    struct serve_params params;

    serve_params_read(m, names_of(method), &params);
    params.outcome.status = method->outcome;
    if (m->code == 0 && !is_too_late(conn, method)) {
        call = serve_call_create(serve, conn, m->id);
        conn->broken = conn->broken || call == NULL;
    }
    if (call != NULL &&
        (method->rule != NAMES || serve_find_attempt(call, &params))) {
        method->run(call, &params);
    }
    serve_params_finish(&params);
    if (m->code != 0) {
        serve_refuse(serve, conn, m);
    }
    if (call != NULL && m->code != 0) {
        serve_call_end(call);
    } else if (call != NULL && m->error.code != 0) {
        serve_reply_error(call, &m->error);
    }
}

static void answered(struct serve_call *call)
{
    if (idem_op_code(call->op) != 0) {
        serve_reply_error(call, idem_op_error(call->op));
    } else {
        call->done(call);
    }
}

void serve_ask(struct serve_call *call, struct serve_params *p,
               struct idem_op *op, void (*done)(struct serve_call *call))
{
    if (p->m->error.code == 0) {
        call->done = done;
        serve_call_submit(call, op, answered);
    }
}

void serve_line(struct serve *serve, struct serve_conn *conn,
                struct idem_slice line)
{
    struct serve_message m;

    conn->heard_ms = serve_now_ms(serve);
    if (serve_message_read(&serve->tree, line, &m)) {
        run(serve, conn, &m);
    } else {
        serve_refuse(serve, conn, &m);
    }
}

void serve_long_line(struct serve *serve, struct serve_conn *conn)
{
    struct serve_message m = {.code = 0};

    serve_message_refuse(&m, SERVE_NOT_JSON, "a line has at most %d bytes",
                         SERVE_LINE_MAX);
    serve_refuse(serve, conn, &m);
}
