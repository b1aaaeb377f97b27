/* The life of a task: from an op to its first state, from answers and pauses to the
 * next, and to its end. */
#include "aws/dynamodb/task/task.h"

#include "aws/dynamodb/task/commit.h"

#include <assert.h>

enum {
    KEEP_BYTES = 16 * 1024, /* Memory that a task keeps for the next op. */
};

/* Ends the op from outside, wherever it is. */
static void end(struct idem__task *task)
{
    task->state = IDEM__STATE_DONE;
    task->next = IDEM__TASK_DONE;
}

/* True for what changes the record of the op, or the count of its request. */
static bool is_write(enum idem__state state)
{
    return state == IDEM__STATE_WRITE || state == IDEM__STATE_LIMIT_WRITE ||
           state == IDEM__STATE_MARK;
}

void idem__task_no_clock(struct idem__task *task)
{
    if (is_write(task->state) && task->request.outcome != IDEM__AWS_NOT_SENT) {
        task->ambiguous = true; /* Its answer is not looked at. */
    }
    (void)idem__task_fail_with(task, IDEM_EUNAVAILABLE,
                               "the clock does not answer");
    end(task);
}

void idem__task_give_up(struct idem__task *task)
{
    (void)idem__task_fail_with(task, IDEM_EUNAVAILABLE,
                               task->op->error.text[0] != '\0'
                                   ? task->op->error.text
                                   : "DynamoDB did not answer in time");
    end(task);
}

void idem__task_init(struct idem__task *task, const struct idem__task_env *env)
{
    task->env = env;
    task->result.kind = 'r';
    task->input.kind = 'i';
}

/* A waiter, a claim that is probably refused, and one whose input would have to
 * be written before it can be refused. */
static bool looks_first(const struct idem_op *op)
{
    return op->u.begin.join_fence != 0 ||
           (op->u.begin.flags & IDEM_LIKELY_REPLAY) != 0 ||
           op->u.begin.input.len > IDEM__UNIT;
}

enum idem__state idem__task_first(struct idem__task *task)
{
    struct idem_op *op = task->op;

    switch (op->verb) {
    case IDEM_OP_BEGIN:
        return looks_first(op) ? IDEM__STATE_LOOK : IDEM__STATE_DECIDE;
    case IDEM_OP_IMPORT:
        return IDEM__STATE_DECIDE;
    case IDEM_OP_END:
    case IDEM_OP_RENEW:
    case IDEM_OP_EXPIRE:
        task->remembered = task->env->claims != NULL &&
                           idem__claimed_get(task->env->claims, op,
                                             &task->found_memory, &task->found);
        task->has_found = task->remembered;
        return task->remembered ? IDEM__STATE_DECIDE : IDEM__STATE_LOOK;
    case IDEM_OP_GET:
    case IDEM_OP_RESOLVE:
        return IDEM__STATE_LOOK;
    case IDEM_OP_LIST:
        return IDEM__STATE_LIST;
    case IDEM_OP_PURGE:
        return IDEM__STATE_PURGE;
    case IDEM_OP_LIMIT:
        return IDEM__STATE_LIMIT;
    case IDEM_OP_MOVE:
        return IDEM__STATE_GATE;
    case IDEM_OP_COUNT:
        break;
    }
    assert(!"an op that no table answers");
    return IDEM__STATE_DONE;
}

/* The op is another one: of the last, only memory stays. */
static void forget_op(struct idem__task *task)
{
    task->tries = 0;
    task->rounds = 0;
    task->ambiguous = false;
    idem__bodies_forget(task);
    task->has_found = false;
    task->remembered = false;
    task->looked_again = false;
    task->waited = false;
    task->claimed = false;
    task->settled = false;
    task->keeping = IDEM__STATE_NONE;
    memset(&task->kept, 0, sizeof(task->kept));
    memset(&task->old_result, 0, sizeof(task->old_result));
    memset(&task->old_input, 0, sizeof(task->old_input));
    task->keep = IDEM__KEEP_AS_IT_IS;
    task->transacts = false;
    task->caller_write = 0;
}

void idem__task_start(struct idem__task *task, struct idem_op *op,
                      const struct idem_now *now)
{
    struct idem_error error;
    enum idem__state first;

    task->op = op;
    op->changed = false;
    forget_op(task);
    if (op->verb != IDEM_OP_MOVE &&
        idem__layout_check(&task->env->table, op, &error) != 0) {
        first = idem__task_fail(task, &error);
    } else if (op->commit != NULL &&
               idem__commit_check(op->commit, &op->error) != 0) {
        first = IDEM__STATE_DONE;
    } else {
        first = idem__gate_is_due(task, now) ? IDEM__STATE_GATE
                                             : idem__task_first(task);
    }
    idem__state_enter(task, first, now);
}

void idem__task_answered(struct idem__task *task, const struct idem_now *now)
{
    struct idem__answer answer;

    idem__answer_read(&task->request, task->env->table.name, &answer);
    task->tries_before = task->tries;
    if (task->op->verb == IDEM_OP_PURGE) {
        idem__purge_bill(task, &answer);
    }
    if (answer.said == IDEM__SAID_OK || answer.said == IDEM__SAID_REFUSED) {
        task->tries = 0;
        memset(&task->op->error, 0, sizeof(task->op->error));
    }
    idem__state_answered(task, now, &answer);
}

void idem__task_resume(struct idem__task *task, const struct idem_now *now)
{
    idem__state_enter(task, task->after_pause, now);
}

static void for_all_buffers(struct idem__task *task,
                            void (*apply)(struct idem__buffer *buffer))
{
    apply(&task->found_memory);
    apply(&task->head);
    apply(&task->written);
    apply(&task->result.stored);
    apply(&task->result.bytes);
    apply(&task->input.stored);
    apply(&task->input.bytes);
    apply(&task->out);
}

static void shrink(struct idem__buffer *buffer)
{
    idem__buffer_reset(buffer, 2 * IDEM_HEAD_MAX);
}

void idem__task_reset(struct idem__task *task)
{
    for_all_buffers(task, shrink);
    if (task->request.answer_cap > KEEP_BYTES) {
        idem__aws_request_finish(&task->request);
    }
    task->op = NULL;
    task->ambiguous = false;
    task->settled = false;
}

void idem__task_free(struct idem__task *task)
{
    for_all_buffers(task, idem__buffer_free);
    idem__scratch_free(&task->scratch);
    idem__walk_free(task->walk);
    idem__limiter_free(task->limiter);
    idem__aws_request_finish(&task->request);
}
