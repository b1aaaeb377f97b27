/* GATE and MARK: read the mark of a table that is moved, and set it. The mark is an item
 * beside those of records:
 *
 *     id          "idem#move"; the key of the table, by the name that its layout has
 *     idem_mark   S  core/move.h; "open" for none
 *     idem_floor  N  all later fences are above it
 *     lim         N  0: by it the filters of idem's own layout leave the item out
 *
 * A write of a record cannot be conditional on another item, unless each claim becomes a
 * transaction at twice the price. So a handle reads the mark before its first claim, and
 * trusts the reading for IDEM__GATE_MS, counted by the boot clock from before the request.
 * While that lasts, it answers a claim STARTED at once. After that, it first reads the mark
 * again, once the claim is written:
 *
 *     handle   read (none) ............ claim written, STARTED
 *              |<-------------- IDEM__GATE_MS ------------->|
 *     mover                   mark written
 *                             |<-------------- IDEM__GATE_MS ------------->| list
 *
 * The mover waits for as long before it lists the table. So the list has every claim that
 * was answered STARTED, however long the process of its owner was stopped. */
#include "aws/dynamodb/task/task.h"

#include "aws/dynamodb/layout/layout.h"
#include "core/error.h"
#include "core/move.h"
#include "core/slice.h"

#include <stdlib.h>

enum {
    /* DynamoDB refuses a signature that is older than 15 minutes, so the write of a mark
     * arrives by then. The other five are for retries, for the error of the clocks, and for
     * the handles to read the mark. */
    SIGNED_MS = 20 * 60 * 1000,
    /* The clocks of two hosts do not run at the same rate. */
    MARGIN_MS = 1000,
    ROUNDS_MAX = 4,
};

bool idem__gate_is(struct idem_slice name)
{
    return idem__slice_equal(name, idem_str(IDEM__MOVE_NAME));
}

static bool is_open(const struct idem__gate *gate)
{
    return !idem__move_closes(idem_str(gate->mark));
}

static bool is_old(const struct idem__gate *gate, const struct idem_now *now)
{
    return now->boot_ms >= gate->until_boot_ms;
}

bool idem__gate_is_due(const struct idem__task *task)
{
    const struct idem_op *op = task->base.op;
    bool starts = op->verb == IDEM_OP_BEGIN || op->verb == IDEM_OP_LIMIT ||
                  (op->verb == IDEM_OP_RESOLVE &&
                   op->u.resolve.outcome.status == IDEM_STATUS_RETRY);

    /* A handle that last found the table closed reads the mark for each op: it may be open
     * by now. */
    return op->verb == IDEM_OP_MOVE ||
           (task->env->gate != NULL && starts &&
            (is_old(task->env->gate, task->base.now) ||
             !is_open(task->env->gate)));
}

bool idem__gate_doubts(const struct idem__task *task)
{
    return task->env->gate != NULL && task->base.op->verb == IDEM_OP_BEGIN &&
           task->base.decision.verdict == IDEM_STARTED &&
           is_old(task->env->gate, task->base.now);
}

struct idem_now idem__gate_now(const struct idem__task *task)
{
    struct idem_now at = *task->base.now;

    if (task->env->gate != NULL) {
        at.mark = task->env->gate->mark;
        at.fence_floor = task->env->gate->floor;
    }
    return at;
}

/* ---- Reading ---- */

static void put_table(struct idem__buffer *out, const struct idem__task *task)
{
    idem__buffer_str(out, "{\"TableName\":");
    idem__json_string(out, idem_str(task->env->table.name));
}

idem__state idem__gate_ask(struct idem__task *task)
{
    struct idem__buffer *out = idem__task_out(task);

    task->gate_asked_ms = task->base.now->boot_ms;
    put_table(out, task);
    idem__buffer_str(out, ",\"Key\":");
    idem__layout_put_key(out, &task->env->table, idem_str(IDEM__MOVE_NAME));
    idem__buffer_str(out, "},\"ConsistentRead\":true}");
    return idem__task_ask(task, IDEM__TARGET("GetItem"));
}

/* False: the answer is malformed. */
static bool read_item(struct idem__gate *gate, json_object *body)
{
    struct idem_move move = {0};
    struct idem_slice mark = {NULL, 0};
    struct idem_slice floor;
    json_object *item = NULL;

    /* An item without the attribute is a record of another library, and not the mark. */
    if (json_object_object_get_ex(body, "Item", &item)
            ? idem__json_attribute(item, "idem_mark", "S", &mark) < 0
            : !idem__look_found_nothing(body)) {
        return false;
    }
    if (idem__slice_equal(mark, idem_str("open"))) {
        mark.len = 0;
    }
    if (idem__move_read(mark, &move) != 0) {
        return false;
    }
    (void)idem__move_write(&move, gate->mark);
    gate->floor = 0;
    if (idem__json_attribute(item, "idem_floor", "N", &floor) == 1) {
        gate->floor = strtoull(floor.base, NULL, 10);
    }
    return true;
}

/* How long the mover must wait until no handle trusts an earlier reading. 0: an earlier op
 * set the mark, so long ago that every handle has read it. */
static int64_t settles_ms(const struct idem__task *task)
{
    struct idem_move move = {0};

    (void)idem__move_read(idem_str(task->env->gate->mark), &move);
    return !task->base.ambiguous &&
                   task->base.now->store_ms - move.marked_ms > SIGNED_MS
               ? 0
               : IDEM__GATE_MS + MARGIN_MS;
}

/* IDEM_OP_MOVE, once the mark was read: sets it if it is the one that the caller expects,
 * and else answers the op with it. */
static idem__state move_step(struct idem__task *task)
{
    const struct idem__gate *gate = task->env->gate;
    struct idem_op *op = task->base.op;
    struct idem_now at = idem__gate_now(task);

    if (op->u.move.set &&
        idem__slice_equal(idem_str(gate->mark), op->u.move.was) &&
        !idem__slice_equal(op->u.move.was, op->u.move.mark) &&
        task->base.rounds++ < ROUNDS_MAX) {
        return IDEM__STATE_MARK;
    }
    idem__move_answer(op, gate->mark, &at);
    op->changed = task->base.ambiguous && op->error.code == 0;
    op->u.move.settles_ms = settles_ms(task);
    return IDEM__STATE_DONE;
}

idem__state idem__gate_answered(struct idem__task *task,
                                struct idem__answer *answer)
{
    struct idem__gate *gate = task->env->gate;
    char text[160];

    if (!read_item(gate, answer->body)) {
        return idem__flight_fail_with(&task->base, IDEM_ECORRUPT,
                                      "DynamoDB: the item \"" IDEM__MOVE_NAME
                                      "\" is malformed");
    }
    gate->until_boot_ms = task->gate_asked_ms + IDEM__GATE_MS;
    if (task->base.op->verb == IDEM_OP_MOVE) {
        return move_step(task);
    }
    if (idem__move_refuses(gate->mark, task->base.op, text, sizeof(text))) {
        /* If the claim is on record already, no work runs under it: it was not answered
         * STARTED, and is not now. */
        return idem__flight_fail_with(&task->base, IDEM_ECONFIG, text);
    }
    if (!task->claimed) {
        return idem__task_first(task);
    }
    /* The table was open when the claim was on record, so a mover that marks it from now on
     * lists the claim. */
    task->base.settled = true;
    return IDEM__STATE_SETTLE;
}

/* ---- Writing ---- */

static void put_mark(struct idem__buffer *out, struct idem_slice mark)
{
    idem__buffer_str(out, "{\"S\":");
    idem__json_string(out, mark.len == 0 ? idem_str("open") : mark);
    idem__buffer_str(out, "}");
}

idem__state idem__mark_ask(struct idem__task *task)
{
    const struct idem_op *op = task->base.op;
    const struct idem__gate *gate = task->env->gate;
    struct idem__buffer *out = idem__task_out(task);

    put_table(out, task);
    idem__buffer_str(out, ",\"Item\":");
    idem__layout_put_key(out, &task->env->table, idem_str(IDEM__MOVE_NAME));
    idem__buffer_str(out, ",\"lim\":{\"N\":\"0\"},\"idem_floor\":");
    idem__json_n(out, op->u.move.fence_floor > gate->floor
                          ? op->u.move.fence_floor
                          : gate->floor);
    idem__buffer_str(out, ",\"idem_mark\":");
    put_mark(out, op->u.move.mark);
    /* Of two movers that have seen the same mark, one is refused. */
    idem__buffer_str(out, "},\"ConditionExpression\":\"");
    idem__buffer_str(out, op->u.move.was.len == 0
                              ? "attribute_not_exists(idem_mark) OR "
                                "idem_mark = :w"
                              : "idem_mark = :w");
    idem__buffer_str(out, "\",\"ExpressionAttributeValues\":{\":w\":");
    put_mark(out, op->u.move.was);
    idem__buffer_str(out, "}}");
    return idem__task_ask(task, IDEM__TARGET("PutItem"));
}

/* GATE then reads which mark is set: ours, also if the answer to it was lost, or that of
 * another mover. */
idem__state idem__mark_answered(struct idem__task *task,
                                struct idem__answer *answer)
{
    switch (answer->said) {
    case IDEM__SAID_OK:
        task->base.ambiguous = true;
        return IDEM__STATE_GATE;
    case IDEM__SAID_REFUSED:
        return IDEM__STATE_GATE;
    case IDEM__SAID_UNKNOWN:
        task->base.ambiguous = true;
        return idem__task_retry(task, answer, IDEM__STATE_GATE);
    case IDEM__SAID_NOT_APPLIED:
        return idem__task_retry(task, answer, IDEM__STATE_MARK);
    case IDEM__SAID_NEVER:
    case IDEM__SAID_CALLER_WRITE:
        break;
    }
    return idem__flight_fail(&task->base, &answer->error);
}
