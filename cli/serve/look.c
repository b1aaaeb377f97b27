/* Records and counters for tests and dashboards, and rate limits. */
#include "serve/methods.h"

#include "process/host.h"
#include "record/record.h"

enum {
    LIST_MAX = 1000,
    LIST_USUAL = 100,
    LOOK_MAX =
        10000 /* Records that one page reads: other clients wait for it. */
};

static void shown(struct serve_call *call)
{
    const struct idem_record *record = idem_op_record(call->op);
    struct cli_json *answer = serve_answer(call);

    serve_json_fence(answer, record->fence);
    serve_json_record(answer, call->serve, record, record->ended_ms != 0);
    serve_reply(call);
}

void serve_show(struct serve_call *call, struct serve_params *p)
{
    struct idem_op *op = NULL;

    p->m->error.code =
        idem_op_get(p->request.scope, p->request.key, &op, &p->m->error);
    serve_ask(call, p, op, shown);
}

static int list_one(void *ctx, int code, const struct idem_record *record)
{
    struct cli_json *answer = ctx;

    cli_json_append(answer, "records");
    if (code == 0) {
        cli_json_record(answer, record, /* with_bytes= */ false);
    } else {
        cli_json_bytes(answer, "scope", record->scope);
        cli_json_bytes(answer, "key", record->key);
        cli_json_text(answer, "problem", idem_error_name(code));
    }
    cli_json_close(answer);
    return answer->text.failed;
}

void serve_list(struct serve_call *call, struct serve_params *p)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_page page = IDEM_PAGE_INIT;
    struct cli_json *answer = serve_answer(call);

    filter.scope = p->request.scope;
    filter.any_scope = filter.scope.base == NULL;
    filter.statuses = p->status == 0 ? 0 : 1u << p->status;
    filter.overdue = p->overdue;
    filter.max = p->limit.max == 0 ? LIST_USUAL : p->limit.max;
    if (filter.max > LIST_MAX) {
        filter.max = LIST_MAX;
    }
    (void)snprintf(page.place, sizeof(page.place), "%s",
                   p->place != NULL ? p->place : "");
    page.look_max = LOOK_MAX;
    cli_json_array(answer, "records");
    p->m->error.code = idem_list_page(call->serve->store, &filter, list_one,
                                      answer, &page, &p->m->error);
    if (p->m->error.code != 0) {
        return;
    }
    cli_json_text(answer, "place", page.place);
    cli_json_bool(answer, "done", page.done);
    cli_json_ms(answer, "now_ms", page.now_ms);
    serve_reply(call);
}

void serve_stats(struct serve_call *call, struct serve_params *p)
{
    struct idem_counters counters = IDEM_COUNTERS_INIT;

    (void)p;
    p->m->error.code = idem_count(call->serve->store, &counters, &p->m->error);
    if (p->m->error.code == 0) {
        cli_json_counters(serve_answer(call), &counters);
        serve_reply(call);
    }
}

static void limited(struct serve_call *call)
{
    const struct idem_limited *limited = idem_op_limited(call->op);
    struct cli_json *answer = serve_answer(call);

    cli_json_bool(answer, "admitted", limited->admitted);
    cli_json_bool(answer, "repeated", limited->repeated);
    cli_json_count(answer, "remaining", limited->remaining);
    cli_json_ms(answer, "start_ms", limited->start_ms);
    cli_json_ms(answer, "end_ms", limited->end_ms);
    serve_reply(call);
}

void serve_limit(struct serve_call *call, struct serve_params *p)
{
    struct idem_op *op = NULL;

    if (p->limit.at_ms == 0) {
        p->limit.at_ms = cli_now_ms() + call->serve->ahead_ms;
    }
    p->m->error.code = idem_op_limit(&p->limit, &op, &p->m->error);
    serve_ask(call, p, op, limited);
}
