/* The table of a task's states, and the functions by which the machine of remote stores
 * runs it. */
#include "aws/dynamodb/task/task.h"

#include "core/error.h"

enum {
    KEEP_BYTES = 16 * 1024, /* Memory that a request keeps for the next one. */
    LARGE_BODY = 256 * 1024,
};

static const struct row {
    idem__step_fn *enter;
    idem__answered_fn *answered; /* NULL: the state sends nothing. */
    /* answered() gets every answer. Otherwise it gets OK alone, and after any other answer
     * the state asks again. */
    bool takes_all;
} rows[IDEM__STATES] = {
    [IDEM__STATE_LOOK] = {.enter = idem__look_ask,
                          .answered = idem__look_answered},
    [IDEM__STATE_LOAD] = {.enter = idem__load_step},
    [IDEM__STATE_WRITE] = {.enter = idem__write_ask,
                           .answered = idem__write_answered,
                           .takes_all = true},
    [IDEM__STATE_SETTLE] = {.enter = idem__settle_step},

    [IDEM__STATE_GATE] = {.enter = idem__gate_ask,
                          .answered = idem__gate_answered},
    [IDEM__STATE_MARK] = {.enter = idem__mark_ask,
                          .answered = idem__mark_answered,
                          .takes_all = true},

    [IDEM__STATE_GET_PARTS] = {.enter = idem__get_parts_ask,
                               .answered = idem__get_parts_answered},
    [IDEM__STATE_PUT_PARTS] = {.enter = idem__put_parts_ask,
                               .answered = idem__put_parts_answered},
    [IDEM__STATE_DELETE_PARTS] = {.enter = idem__delete_parts_ask,
                                  .answered = idem__delete_parts_answered},
    [IDEM__STATE_COPY] = {.enter = idem__copy_step},
    [IDEM__STATE_KEPT] = {.enter = idem__kept_step},

    [IDEM__STATE_LIST] = {.enter = idem__list_step},
    [IDEM__STATE_LIST_SCAN] = {.enter = idem__list_scan_ask,
                               .answered = idem__list_scan_answered},
    [IDEM__STATE_LIST_QUERY] = {.enter = idem__list_query_ask,
                                .answered = idem__list_query_answered},
    [IDEM__STATE_LIST_HEADS] = {.enter = idem__walk_heads_ask,
                                .answered = idem__list_heads_answered},

    [IDEM__STATE_PURGE] = {.enter = idem__purge_step},
    [IDEM__STATE_PURGE_SCAN] = {.enter = idem__purge_scan_ask,
                                .answered = idem__purge_scan_answered},
    [IDEM__STATE_PURGE_HEADS] = {.enter = idem__walk_heads_ask,
                                 .answered = idem__purge_heads_answered},
    [IDEM__STATE_PURGE_RECORDS] = {.enter = idem__purge_records_step},
    [IDEM__STATE_PURGE_RECORD] = {.enter = idem__purge_record_ask,
                                  .answered = idem__purge_record_answered,
                                  .takes_all = true},
    [IDEM__STATE_PURGE_INPUT] = {.enter = idem__purge_input_step},
    [IDEM__STATE_PURGE_NEXT] = {.enter = idem__purge_next_step},
    [IDEM__STATE_PURGE_ORPHANS] = {.enter = idem__purge_orphans_step},
    [IDEM__STATE_PURGE_ORPHAN] = {.enter = idem__purge_orphan_ask,
                                  .answered = idem__purge_orphan_answered,
                                  .takes_all = true},

    [IDEM__STATE_LIMIT] = {.enter = idem__limit_step},
    [IDEM__STATE_LIMIT_WINDOW] = {.enter = idem__limit_window_ask,
                                  .answered = idem__limit_window_answered},
    [IDEM__STATE_LIMIT_ENTRY] = {.enter = idem__limit_entry_ask,
                                 .answered = idem__limit_entry_answered},
    [IDEM__STATE_LIMIT_WRITE] = {.enter = idem__limit_write_ask,
                                 .answered = idem__limit_write_answered,
                                 .takes_all = true},
    [IDEM__STATE_LIMIT_MOVE] = {.enter = idem__limit_move_ask,
                                .answered = idem__limit_move_answered,
                                .takes_all = true},
    [IDEM__STATE_LIMIT_TRIM] = {.enter = idem__limit_trim_ask,
                                .answered = idem__limit_trim_answered,
                                .takes_all = true},
};

static struct idem__task *task_of(struct idem__flight *flight)
{
    return (struct idem__task *)flight;
}

/* ---- Asking ---- */

struct idem__buffer *idem__task_out(struct idem__task *task)
{
    idem__buffer_reset(&task->out, KEEP_BYTES);
    return &task->out;
}

idem__state idem__task_ask(struct idem__task *task, const char *target)
{
    if (task->out.failed) {
        return idem__flight_no_memory(&task->base);
    }
    task->request.target = target;
    task->request.body = idem__buffer_slice(&task->out);
    task->base.large = task->out.len > LARGE_BODY;
    return IDEM__STATE_SEND;
}

static idem__state enter(struct idem__flight *flight)
{
    return rows[flight->state].enter(task_of(flight));
}

static idem__state answered(struct idem__flight *flight)
{
    struct idem__task *task = task_of(flight);
    struct idem__answer answer;
    idem__state next;

    idem__answer_read(&task->request, task->env->table.name, &answer);
    task->tries_before = flight->tries;
    if (flight->op->verb == IDEM_OP_PURGE) {
        idem__purge_bill(task, &answer);
    }
    if (answer.said == IDEM__SAID_OK || answer.said == IDEM__SAID_REFUSED) {
        flight->tries = 0;
        memset(&flight->op->error, 0, sizeof(flight->op->error));
    }
    next = answer.said == IDEM__SAID_OK || rows[flight->state].takes_all
               ? rows[flight->state].answered(task, &answer)
               : idem__task_retry(task, &answer, flight->state);
    idem__answer_finish(&answer);
    return next;
}

/* ---- Asking again ---- */

idem__state idem__task_retry(struct idem__task *task,
                             const struct idem__answer *answer,
                             idem__state again)
{
    return idem__flight_retry(&task->base, answer->said, answer->sent,
                              &answer->error, again);
}

idem__state idem__task_busy(struct idem__task *task, bool progress,
                            const char *what, idem__state again)
{
    struct idem__flight *flight = &task->base;
    struct idem_error error;

    /* answered() set tries to 0, because the service answered. A batch of which nothing
     * was done is still one more try without progress. */
    flight->tries = progress ? 0 : task->tries_before;
    /* The op is answered, and idem__flight_retry() would leave the rest of the batch to a
     * purge. Go on while the service takes some of it each time. */
    if (flight->settled && progress) {
        return idem__flight_pause(flight, again);
    }
    (void)idem__error(&error, IDEM_EUNAVAILABLE, "DynamoDB is too busy to %s",
                      what);
    return idem__flight_retry(flight, IDEM__SAID_NOT_APPLIED, /* sent= */ true,
                              &error, again);
}

/* ---- Beginning ---- */

idem__state idem__task_first(struct idem__task *task)
{
    const struct idem_op *op = task->base.op;

    /* The parts of a large input are written before the claim. Look first, so that a
     * duplicate does not pay for them. */
    return idem__flight_first(&task->base,
                              op->verb == IDEM_OP_BEGIN &&
                                  op->u.begin.input.len > IDEM__UNIT);
}

/* A task serves one op after the other, and keeps only its memory from the last one. */
static void forget_op(struct idem__task *task)
{
    idem__bodies_forget(task);
    task->looked_again = false;
    task->waited = false;
    task->claimed = false;
    task->keeping = IDEM__STATE_NONE;
    memset(&task->kept, 0, sizeof(task->kept));
    memset(&task->old_result, 0, sizeof(task->old_result));
    memset(&task->old_input, 0, sizeof(task->old_input));
    task->keep = IDEM__KEEP_AS_IT_IS;
    task->transacts = false;
    task->caller_write = 0;
}

static idem__state start(struct idem__flight *flight)
{
    struct idem__task *task = task_of(flight);
    struct idem_op *op = flight->op;
    struct idem_error error;

    forget_op(task);
    if (op->verb != IDEM_OP_MOVE &&
        idem__layout_check(&task->env->table, op, &error) != 0) {
        return idem__flight_fail(flight, &error);
    }
    if (op->commit != NULL && idem__commit_check(op->commit, &op->error) != 0) {
        return IDEM__STATE_DONE;
    }
    return idem__gate_is_due(task) ? IDEM__STATE_GATE : idem__task_first(task);
}

/* ---- Claims of this handle ---- */

/* The next write of the item replaces all of it, so remember the inline bodies, too. */
static void remember(struct idem__flight *flight)
{
    const struct idem__item *item = &task_of(flight)->item;
    struct idem__body bodies[] = {item->result, item->input};
    struct idem_slice more[] = {
        idem_bytes(bodies, sizeof(bodies)),
        item->result.stored,
        item->input.stored,
    };

    idem__flight_remember(flight, more, sizeof(more) / sizeof(more[0]));
}

static bool recall(struct idem__flight *flight)
{
    struct idem__item *found = &task_of(flight)->found;
    struct idem__body bodies[2];
    const uint8_t *more;

    memset(found, 0, sizeof(*found));
    if (!idem__flight_recall(flight, &more)) {
        return false;
    }
    memcpy(bodies, more, sizeof(bodies));
    more += sizeof(bodies);
    found->result = bodies[0];
    found->result.stored.base = more;
    found->input = bodies[1];
    found->input.stored.base = more + found->result.stored.len;
    return true;
}

/* ---- Claims that are too short ---- */

static void rewrite(struct idem__flight *flight)
{
    task_of(flight)->item = task_of(flight)->found;
}

/* False for another library's item: its next write is conditional on attributes that only
 * a reading shows. */
static bool found_written(struct idem__flight *flight)
{
    struct idem__task *task = task_of(flight);

    task->found = task->item;
    return idem__layout_of(&task->env->table)->ours;
}

/* ---- Writing ---- */

static idem__state store_bodies(struct idem__flight *flight)
{
    idem__state first = idem__bodies_store(task_of(flight));

    return first != IDEM__STATE_NONE ? first : IDEM__STATE_WRITE;
}

/* Only these states change what the caller asks about: the record, the count of a limit,
 * the mark. A write of parts alone changes nothing, because no head names them yet. */
static bool may_have_written(const struct idem__flight *flight)
{
    const struct idem__task *task = (const struct idem__task *)flight;

    return (flight->state == IDEM__STATE_WRITE ||
            flight->state == IDEM__STATE_LIMIT_WRITE ||
            flight->state == IDEM__STATE_MARK) &&
           task->request.outcome != IDEM__AWS_NOT_SENT;
}

static const struct idem__machine_ops task_ops = {
    .service = "DynamoDB",
    .rounds_max = 16,
    .pause_base_ms = 25,
    .start = start,
    .enter = enter,
    .answered = answered,
    .decide = idem__task_decide,
    .prepare = idem__task_prepare,
    .store = store_bodies,
    .settle = idem__task_settle,
    .rewrite = rewrite,
    .found_written = found_written,
    .remember = remember,
    .recall = recall,
    .may_have_written = may_have_written,
};

void idem__task_init(struct idem__task *task, const struct idem__task_env *env)
{
    task->env = env;
    task->base.ops = &task_ops;
    task->base.env = &env->base;
    task->base.found = &task->found.record;
    task->base.found_head = &task->found.head;
    task->base.next_record = &task->item.record;
    task->result.kind = 'r';
    task->input.kind = 'i';
}

/* ---- Memory ---- */

static void for_all_buffers(struct idem__task *task,
                            void (*apply)(struct idem__buffer *buffer))
{
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
    idem__flight_reset(&task->base);
}

void idem__task_free(struct idem__task *task)
{
    for_all_buffers(task, idem__buffer_free);
    idem__scratch_free(&task->scratch);
    idem__walk_free(task->walk);
    idem__limiter_free(task->limiter);
    idem__aws_request_finish(&task->request);
    idem__flight_free(&task->base);
}
