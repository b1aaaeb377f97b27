/* A rate limit on its way through the table; see limit_request.h for what lies
 * there.
 *
 * All of these writes may be sent again without a look: each is conditional on
 * there being no entry of the request, and whoever finds one is shown it. That is
 * how an unanswered write is read back, and how a retry hears what the first try
 * was told. */
#include "aws/client/error.h"
#include "aws/dynamodb/limit/limiter.h"
#include "base/heap.h"
#include "core/error.h"

enum {
    ROUNDS_MAX = 64
};

void idem__limiter_free(struct idem__limiter *limiter)
{
    idem__free(limiter);
}

enum idem__state idem__limiter_corrupt(struct idem__task *task)
{
    return idem__task_fail_with(
        task, IDEM_ECORRUPT,
        "DynamoDB: what was counted in this window has a form that is not ours");
}

bool idem__limiter_settle(struct idem__task *task,
                          const struct idem_limit_state *found,
                          const struct idem_now *now)
{
    struct idem_limit_decision *decision = &task->limiter->decision;

    if (task->rounds++ == ROUNDS_MAX) {
        (void)idem__task_fail_with(
            task, IDEM_EUNAVAILABLE,
            "DynamoDB: the count changes faster than it can be read");
        return false;
    }
    idem__limit_decide(&task->op->u.limit.limit, found, now, decision);
    if (decision->code != 0) {
        (void)idem__task_fail_with(task, decision->code, decision->text);
        return false;
    }
    return true;
}

enum idem__state idem__limiter_answer(struct idem__task *task, bool changed)
{
    task->op->u.limit.answer = task->limiter->decision.limited;
    task->op->changed = changed;
    return IDEM__STATE_DONE;
}

json_object *idem__limiter_item(json_object *body)
{
    json_object *item = NULL;

    (void)json_object_object_get_ex(body, "Item", &item);
    return json_object_is_type(item, json_type_object) ? item : NULL;
}

bool idem__limiter_has_code(json_object *reason, const char *name)
{
    json_object *code = NULL;

    return json_object_is_type(reason, json_type_object) &&
           json_object_object_get_ex(reason, "Code", &code) &&
           json_object_is_type(code, json_type_string) &&
           strcmp(json_object_get_string(code), name) == 0;
}

json_object *idem__limiter_reason(json_object *reasons, size_t i)
{
    return reasons != NULL ? json_object_array_get_idx(reasons, i) : NULL;
}

json_object *idem__limiter_reasons(const struct idem__aws_request *request,
                                   json_object **ret_body)
{
    struct idem_slice text = {request->answer, request->answer_len};
    struct idem__aws_error error;
    json_object *reasons = NULL;
    int rc;

    *ret_body = NULL;
    if (request->outcome != IDEM__AWS_ANSWERED || request->status != 400) {
        return NULL;
    }
    *ret_body = idem__json_parse(text, &rc);
    if (*ret_body == NULL) {
        return NULL;
    }
    idem__aws_error_read(request->status, request->error_type, *ret_body,
                         &error);
    if (!idem__aws_error_is(&error, "TransactionCanceledException") ||
        !json_object_object_get_ex(*ret_body, "CancellationReasons",
                                   &reasons) ||
        !json_object_is_type(reasons, json_type_array)) {
        return NULL;
    }
    return reasons;
}

struct idem__limit_bounds *idem__limiter_bounds(struct idem__task *task)
{
    return idem__limit_known_of(task->env->limits, task->op);
}

json_object *idem__limiter_items(const struct idem__task *task,
                                 json_object *body)
{
    json_object *list = idem__task_under_table(task, body, "Responses");

    return json_object_is_type(list, json_type_array) ? list : NULL;
}

enum idem__state idem__limiter_found(struct idem__task *task, json_object *item,
                                     const struct idem_now *now)
{
    struct idem_limit_state found;

    if (idem__limit_read_entry(item, &found) != 0) {
        return idem__limiter_corrupt(task);
    }
    return idem__limiter_settle(task, &found, now)
               ? idem__limiter_answer(task, /* changed= */ false)
               : IDEM__STATE_DONE;
}

const char *idem__limit_window_ask(struct idem__task *task,
                                   const struct idem_now *now)
{
    (void)now;
    idem__limit_request_get(idem__task_out(task), &task->env->table,
                            task->op->u.limit.window);
    return IDEM__TARGET("GetItem");
}

enum idem__state idem__limit_step(struct idem__task *task,
                                  const struct idem_now *now)
{
    const struct idem_limit_request *limit = &task->op->u.limit.limit;
    struct idem_limited *limited;

    if (task->limiter == NULL) {
        task->limiter = idem__zalloc(sizeof(*task->limiter));
    }
    if (task->limiter == NULL) {
        return idem__task_fail_with(task, IDEM_ENOMEM,
                                    idem_error_text(IDEM_ENOMEM));
    }
    memset(task->limiter, 0, sizeof(*task->limiter));
    limited = &task->limiter->decision.limited;
    idem__limit_window(limit->at_ms, limit->per_ms, &limited->start_ms,
                       &limited->end_ms);
    return idem__limit_shards(limit) > 0 ? IDEM__STATE_LARGE_PLAN
                                         : idem__limit_small_first(task, now);
}
