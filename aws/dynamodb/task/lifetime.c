/* How long the parts of a body stay: a day longer than the head that names them.
 *
 *     claim            the parts of its input get a ttl two days after that of the
 *                      head, or none if the head has none
 *     head lives on    (renewal, takeover, failed, unknown) parts that would go less
 *                      than a day after it are written again, BEFORE the head
 *     head gets an end (completed, released) parts without a ttl are written again
 *                      with one, AFTER the head
 *     head names       (a new life, a takeover, a resolution) the parts that it named
 *     others           before are deleted, AFTER the head
 *
 * So DynamoDB never deletes parts before the head that names them, whenever its writer
 * dies. A death can only leave parts that no head names, and a purge finds those
 * (purge.c).
 *
 * To write a part again takes a read and a write of its bytes. UpdateItem would cost as
 * many write units, and programs that run operations have no permission for it. */
#include "aws/dynamodb/task/task.h"
#include "base/host.h"

int64_t idem__input_ttl_ms(const struct idem_record *record)
{
    /* This is a day more than the parts need, so that work that renews its lease for less
     * than a day need not write its input again. */
    return idem__time_add(idem__item_ttl_ms(record), 2 * IDEM__TTL_PART_MS);
}

int64_t idem__result_ttl_ms(const struct idem_record *record)
{
    return record->status == IDEM_STATUS_COMPLETED
               ? idem__time_add(idem__item_ttl_ms(record), IDEM__TTL_PART_MS)
               : IDEM_NEVER;
}

/* ---- The plan ---- */

static bool same_parts(const struct idem__body *a, const struct idem__body *b)
{
    return a->place == IDEM__PLACE_APART && b->place == IDEM__PLACE_APART &&
           memcmp(a->tag, b->tag, IDEM__TAG_LEN) == 0;
}

/* Notes the parts that no head names once the old head is replaced. */
static void plan_removal(const struct idem__task *task,
                         const struct idem__body *old,
                         const struct idem__body *next,
                         struct idem__body *ret_body)
{
    memset(ret_body, 0, sizeof(*ret_body));
    if (task->base.has_found && old->place == IDEM__PLACE_APART &&
        !same_parts(old, next)) {
        *ret_body = *old;
    }
}

static void plan_input(struct idem__task *task)
{
    struct idem__body *input = &task->item.input;
    int64_t head_ms = idem__item_ttl_ms(&task->item.record);
    int64_t least_ms = idem__time_add(head_ms, IDEM__TTL_PART_MS);

    task->keep = IDEM__KEEP_AS_IT_IS;
    if (task->base.decision.set_input || !task->base.has_found ||
        input->place != IDEM__PLACE_APART) {
        return;
    }
    if (same_parts(input, &task->kept) && task->kept.ttl_ms >= least_ms) {
        /* This op has written them again already, in an earlier round. */
        input->ttl_ms = task->kept.ttl_ms;
    } else if (input->ttl_ms < least_ms) {
        input->ttl_ms = idem__input_ttl_ms(&task->item.record);
        task->keep = IDEM__KEEP_LONGER;
    } else if (input->ttl_ms == IDEM_NEVER && head_ms != IDEM_NEVER) {
        /* DynamoDB will delete the head, and would leave the parts for ever. */
        input->ttl_ms = idem__input_ttl_ms(&task->item.record);
        task->keep = IDEM__KEEP_NO_LONGER;
    }
}

void idem__lifetime_plan(struct idem__task *task)
{
    plan_removal(task, &task->found.result, &task->item.result,
                 &task->old_result);
    plan_removal(task, &task->found.input, &task->item.input, &task->old_input);
    plan_input(task);
}

/* ---- Writing an input again ---- */

idem__state idem__copy_step(struct idem__task *task)
{
    struct idem__transfer *input = &task->input;
    struct idem__body body = task->item.input;

    body.stored = idem_bytes(input->stored.base, input->stored_len);
    return idem__bodies_put(task, input, &body, task->keeping);
}

/* Writes the parts of the input with the ttl that task->item has, and then enters @then.
 * Reads them first, unless LOAD has read them for the caller. */
static idem__state copy_input(struct idem__task *task, idem__state then)
{
    struct idem__transfer *input = &task->input;

    task->keep = IDEM__KEEP_AS_IT_IS;
    task->keeping = then;
    if (input->loading && input->left == 0 &&
        same_parts(&input->body, &task->item.input)) {
        return IDEM__STATE_COPY;
    }
    return idem__bodies_get(task, input, &task->item.input, IDEM__STATE_COPY);
}

idem__state idem__kept_step(struct idem__task *task)
{
    task->keeping = IDEM__STATE_NONE;
    task->kept = task->item.input;
    return IDEM__STATE_ACT;
}

idem__state idem__lifetime_extend(struct idem__task *task)
{
    return task->keep == IDEM__KEEP_LONGER ? copy_input(task, IDEM__STATE_KEPT)
                                           : IDEM__STATE_NONE;
}

/* The head keeps the ttl that is on record, so that the next write of it tries again. */
idem__state idem__lifetime_skip(struct idem__task *task)
{
    task->item.input.ttl_ms = task->found.input.ttl_ms;
    return task->keeping;
}

/* ---- Deleting bodies ---- */

static struct idem__parts parts_of(const struct idem__removal *removal)
{
    return (struct idem__parts){
        .id = removal->id,
        .kind = removal->kind,
        .body = &removal->body,
        .done = removal->done,
    };
}

idem__state idem__delete_parts_answered(struct idem__task *task,
                                        struct idem__answer *answer)
{
    struct idem__removal *removal = &task->removal;
    struct idem__parts parts = parts_of(removal);
    idem__state next =
        idem__parts_answered(task, &parts, removal->done, &removal->left,
                             IDEM__PARTS_DELETE, answer);

    return next != IDEM__STATE_NONE ? next : removal->then;
}

idem__state idem__delete_parts_ask(struct idem__task *task)
{
    struct idem__parts parts = parts_of(&task->removal);

    idem__request_parts_delete(idem__task_out(task), &task->env->table, &parts);
    return idem__task_ask(task, IDEM__TARGET("BatchWriteItem"));
}

idem__state idem__bodies_remove(struct idem__task *task, const uint8_t *id,
                                char kind, const struct idem__body *body,
                                idem__state then)
{
    struct idem__removal *removal = &task->removal;

    if (body->place != IDEM__PLACE_APART) {
        return then;
    }
    memset(removal, 0, sizeof(*removal));
    memcpy(removal->id, id, IDEM_ID_LEN);
    removal->kind = kind;
    removal->body = *body;
    removal->left = body->parts;
    removal->then = then;
    return IDEM__STATE_DELETE_PARTS;
}

/* ---- After the head ---- */

/* Deletes one body, or writes the input again. Entered until nothing is left to do. */
idem__state idem__settle_step(struct idem__task *task)
{
    struct idem__body *old = task->old_result.place == IDEM__PLACE_APART
                                 ? &task->old_result
                                 : &task->old_input;
    struct idem__body body = *old;

    if (body.place == IDEM__PLACE_APART) {
        old->place = IDEM__PLACE_NONE;
        return idem__bodies_remove(task, task->base.op->id,
                                   old == &task->old_result ? 'r' : 'i', &body,
                                   IDEM__STATE_SETTLE);
    }
    return task->keep == IDEM__KEEP_NO_LONGER
               ? copy_input(task, IDEM__STATE_SETTLE)
               : IDEM__STATE_DONE;
}
