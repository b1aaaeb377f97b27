/* LOOK: reads what is there. */
#include "aws/dynamodb/task/task.h"

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
    return idem__layout_read(&task->env->table, object, id, &task->found_memory,
                             &task->scratch, &task->found, ret_error);
}

enum idem__state idem__task_found(struct idem__task *task, json_object *object)
{
    struct idem_error error;

    task->remembered = false;
    task->has_found = object != NULL;
    if (object != NULL &&
        idem__task_read(task, object, task->op->id, &error) != 0) {
        return idem__task_fail(task, &error);
    }
    return IDEM__STATE_DECIDE;
}

bool idem__look_found_nothing(json_object *body)
{
    int known = json_object_object_get_ex(body, "ConsumedCapacity", NULL);

    return body == NULL || json_object_object_length(body) == known;
}

enum idem__state idem__look_answered(struct idem__task *task,
                                     const struct idem_now *now,
                                     struct idem__answer *answer)
{
    json_object *item = NULL;
    bool there;

    (void)now;
    if (answer->said != IDEM__SAID_OK) {
        return idem__task_retry(task, answer, IDEM__STATE_LOOK);
    }
    there = json_object_object_get_ex(answer->body, "Item", &item);
    /* An answer that is not understood does not prove absence. */
    if (there ? item == NULL : !idem__look_found_nothing(answer->body)) {
        return idem__task_fail_with(
            task, IDEM_ECORRUPT,
            "DynamoDB: the answer has a form that is not its own");
    }
    return idem__task_found(task, item);
}

const char *idem__look_ask(struct idem__task *task, const struct idem_now *now)
{
    (void)now;
    idem__request_get(idem__task_out(task), &task->env->table, task->op->id,
                      task->op->key);
    return IDEM__TARGET("GetItem");
}
