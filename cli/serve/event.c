/* Events of AWS Lambda: their units, which the client claims, and the answer to them. */
#include "serve/methods.h"

#include <idem/lambda.h>

static void take(void *ctx, struct idem_slice json)
{
    serve_answer_raw(ctx, json);
}

/* Both methods get the whole event, so that the server does not have to remember it. */
void serve_event(struct serve_call *call, struct serve_params *p)
{
    struct idem_lambda_options options = IDEM_LAMBDA_OPTIONS_INIT;
    struct idem_lambda_invocation now = IDEM_LAMBDA_INVOCATION_INIT;

    options.store = "memory:"; /* Required, but never opened here. */
    options.function = p->function;
    options.source = p->source;
    options.key = p->key_from;
    now.request_id = p->request_id != NULL ? p->request_id : now.request_id;
    now.event = idem__tree_raw(p->m->tree, idem__tree_at(p->m->tree, p->event));
    p->m->error.code =
        idem_lambda_units(&options, &now, p->states, take, call, &p->m->error);
    if (p->m->error.code == 0) {
        serve_reply(call);
    }
}
