/* WRITE: its request, and what is refused. */
#include "postgres/task.h"

enum {
    LARGE_BODY = 256 * 1024,
};

idem__state idem__pg_write(struct idem__pg_task *task,
                           const struct idem_now *now)
{
    bool claims = !task->base.extending &&
                  task->base.decision.change == IDEM_CHANGE_INSERT;
    struct idem__pg_request *request =
        idem__pg_ask(task, claims ? IDEM__PG_ASK_CLAIM : IDEM__PG_ASK_UPDATE);

    (void)now;
    request->write = (struct idem__pg_write){
        .record = &task->next,
        .head = idem__buffer_slice(&task->base.head),
        .set_result = !task->base.extending && task->base.decision.set_result,
        .set_input = !task->base.extending && task->base.decision.set_input,
        .old_fence = task->base.op->verb == IDEM_OP_IMPORT,
        .begins =
            (task->base.op->verb == IDEM_OP_BEGIN && !task->base.extending) ||
            (task->base.op->verb == IDEM_OP_RESOLVE && task->next.retry),
    };
    task->base.large =
        task->next.result.bytes.len + task->next.input.len > LARGE_BODY;
    if (!claims) {
        request->found = task->found.head;
    }
    return IDEM__STATE_SEND;
}

/* True for a claim that came with the time of a slow clock; the answer has told the right
 * one. */
static bool came_too_late(const struct idem__pg_task *task,
                          const struct idem_now *now)
{
    return task->request.ask == IDEM__PG_ASK_CLAIM &&
           !task->request.write.old_fence && task->base.rounds == 1 &&
           task->next.lease_end_ms <= now->store_ms;
}

/* Another was faster, or holds the row in a transaction of its own. */
static idem__state refused(struct idem__pg_task *task,
                           const struct idem_now *now)
{
    bool claimed = task->request.ask == IDEM__PG_ASK_CLAIM;

    if (claimed && task->request.row_code != 0) {
        return idem__pg_found(task);
    }
    if (came_too_late(task, now)) {
        return IDEM__STATE_DECIDE;
    }
    /* A record that was not shown or is gone by now, or a fence that is not high enough:
     * a look tells. */
    return task->base.rounds == 1
               ? IDEM__STATE_LOOK
               : idem__flight_again(&task->base, IDEM__STATE_LOOK,
                                    "another transaction holds the record");
}

idem__state idem__pg_write_answered(struct idem__pg_task *task,
                                    const struct idem_now *now)
{
    const struct idem__pg_request *request = &task->request;
    bool is_refused = request->said == IDEM__SAID_OK && !request->applied;
    idem__state next =
        idem__flight_written(&task->base, now,
                             is_refused ? IDEM__SAID_REFUSED : request->said,
                             request->sent, &request->error);

    return next != IDEM__STATE_NONE ? next : refused(task, now);
}
