/* Tasks of a Step Functions state machine that hands on its context object: at
 * least "Execution" and "State" of it. */
#include "lambda/source.h"

static struct idem_slice execution_of(struct json_object *event)
{
    struct json_object *execution = idem__lambda_object(event, "Execution");
    struct idem_slice id = idem__lambda_text(execution, "Id");

    return id.len > 0 ? id : idem__lambda_text(execution, "Name");
}

static bool is_from(struct json_object *event)
{
    return execution_of(event).len > 0;
}

/* The execution, whose name its starter chose, and which task of it. */
static const char *key(struct json_object *event,
                       const struct idem_lambda_invocation *now,
                       struct idem__buffer *to)
{
    struct idem_slice execution = execution_of(event);

    (void)now;
    idem__buffer_add(to, execution.base, execution.len);
    idem__buffer_str(to, "/");
    return idem__lambda_key_text(
        to, idem__lambda_text(idem__lambda_object(event, "State"), "Name"),
        "the event has no State.Name");
}

static const char *parts(struct json_object *event,
                         struct idem__lambda_parts *to)
{
    idem__lambda_part_json(to, event, "Input");
    return NULL;
}

const struct idem__lambda_rule idem__lambda_stepfunctions = {
    .row = {.name = "stepfunctions",
            .key = "Execution.Id, else .Name; State.Name",
            .strength = IDEM_LAMBDA_REDRIVE_SAFE,
            .busy = "error Idem.InProgress",
            .failure = "error",
            .sample = "stepfunctions.json"},
    .shape = IDEM__LAMBDA_EVENT,
    .is_from = is_from,
    .key = key,
    .parts = parts,
};
