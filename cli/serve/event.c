/* Events of AWS Lambda: their units, which the client claims, and the answer to them. */
#include "serve/methods.h"

#include <idem/lambda.h>

struct answer {
    struct cli_json json;
    bool given;
};

static void take(void *ctx, struct idem_slice json)
{
    struct answer *answer = ctx;

    serve_json_raw(&answer->json, json);
    answer->given = true;
}

static const char *or_null(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

/* Both methods are told the same, so that neither has to remember an event. */
void serve_event(struct serve_call *call, struct serve_message *m,
                 struct serve_params *p)
{
    struct idem_lambda_options options = IDEM_LAMBDA_OPTIONS_INIT;
    struct idem_lambda_invocation now = IDEM_LAMBDA_INVOCATION_INIT;
    struct answer answer = {.given = false};

    options.store = "memory:"; /* It is not opened. */
    options.function = p->function;
    options.source = or_null(p->source);
    options.key = or_null(p->key_from);
    now.request_id = p->request_id;
    now.event = idem__tree_raw(m->tree, idem__tree_at(m->tree, p->event));
    m->error.code =
        idem_lambda_units(&options, &now, p->states, take, &answer, &m->error);
    if (answer.given) {
        serve_reply(call, &answer.json);
    }
}
