/* LOOK: reads what is there. */
#include "aws/dynamodb/task/task.h"
#include "contract/parts.h"

json_object *idem__task_under_table(const struct idem__task *task,
                                    json_object *body, const char *member)
{
    json_object *object;
    json_object *list;

    if (!json_object_object_get_ex(body, member, &object) ||
        !json_object_object_get_ex(object, task->env->table.name, &list)) {
        return NULL;
    }
    return list;
}

int idem__task_read(struct idem__task *task, json_object *object,
                    const uint8_t *id, struct idem_error *ret_error)
{
    return idem__layout_read(&task->env->table, object, id,
                             &task->base.found_memory, &task->scratch,
                             &task->found, ret_error);
}

/* A release that deletes, whose answer was lost: there is nothing, which is what
 * was asked for. */
static bool deleted_before(const struct idem__task *task)
{
    return task->base.ambiguous && task->base.op->verb == IDEM_OP_END &&
           idem__layout_deletes(task->env->table.layout, &task->item.record);
}

idem__state idem__task_found(struct idem__task *task, json_object *object)
{
    struct idem__flight *flight = &task->base;
    struct idem_error error;

    flight->remembered = false;
    flight->has_found = object != NULL;
    if (object == NULL && deleted_before(task)) {
        idem__verb_answer(flight->op, &flight->decision, &flight->given);
        flight->op->changed = true;
        return IDEM__STATE_DONE;
    }
    if (object != NULL &&
        idem__task_read(task, object, flight->op->id, &error) != 0) {
        return idem__flight_fail(flight, &error);
    }
    return IDEM__STATE_DECIDE;
}

bool idem__look_found_nothing(json_object *body)
{
    int known = json_object_object_get_ex(body, "ConsumedCapacity", NULL);

    return body == NULL || json_object_object_length(body) == known;
}

idem__state idem__look_answered(struct idem__task *task,
                                const struct idem_now *now,
                                struct idem__answer *answer)
{
    json_object *item = NULL;
    bool there;

    (void)now;
    there = json_object_object_get_ex(answer->body, "Item", &item);
    /* An answer that is not understood does not prove absence. */
    if (there ? item == NULL : !idem__look_found_nothing(answer->body)) {
        return idem__flight_fail_with(
            &task->base, IDEM_ECORRUPT,
            "DynamoDB: the answer has a form that is not its own");
    }
    return idem__task_found(task, item);
}

idem__state idem__look_ask(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    idem__request_get(idem__task_out(task), &task->env->table,
                      task->base.op->id, task->base.op->key);
    return idem__task_ask(task, IDEM__TARGET("GetItem"));
}
