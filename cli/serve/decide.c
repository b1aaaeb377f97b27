/* Decisions of persons, for serve --operator. */
#include "serve/methods.h"

#include "decide/decided.h"
#include "request/request.h"
#include "serve/calls.h"

/* Reads the record first, because the audit log keeps what a decision replaces. */
static int decide(struct idem_store *store, const struct serve_params *p,
                  const struct cli_decision *decision, struct idem_error *error)
{
    struct idem_answer *before;

    error->code =
        idem_get(store, p->request.scope, p->request.key, &before, error);
    if (error->code == 0) {
        error->code = cli_decide_audited(store, idem_answer_record(before),
                                         p->fence, decision, error);
        idem_answer_destroy(before);
    }
    return error->code;
}

void serve_decide(struct serve_call *call, struct serve_params *p)
{
    enum idem_status status = p->outcome.status != 0
                                  ? p->outcome.status
                                  : (enum idem_status)p->status;
    char who[IDEM_OWNER_MAX + 1];
    const struct cli_decision decision = {
        .status = status,
        .result = status == IDEM_STATUS_COMPLETED ? &p->outcome.result : NULL,
        .who = who,
        .why = p->reason,
        .force = p->force,
    };
    uint8_t id[IDEM_ID_LEN];

    if (p->outcome.status == 0 && status != IDEM_STATUS_COMPLETED &&
        status != IDEM_STATUS_FAILED && status != IDEM_STATUS_RELEASED) {
        serve_param_refuse(p->m, "status",
                           "\"completed\", \"failed\" or \"released\"");
        return;
    }
    cli_who(p->who, who);
    if (decide(call->serve->store, p, &decision, &p->m->error) != 0) {
        return;
    }
    if (idem_id(p->request.scope, p->request.key, id) == 0) {
        serve_calls_wake(call->serve, id);
    }
    cli_json_text(serve_answer(call), "status", idem_status_name(status));
    serve_reply(call);
}
