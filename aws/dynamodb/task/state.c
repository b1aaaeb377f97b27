/* The table of the states of an op, and what moves it from one to the next. */
#include "aws/dynamodb/task/state.h"

#include "aws/dynamodb/task/task.h"
#include "core/error.h"

#include <assert.h>

/* A state asks, or steps, or is an end of a step. */
static const struct row {
    idem__ask_fn *ask;
    idem__answered_fn *answered;
    idem__step_fn *step;
} rows[IDEM__STATES] = {
    [IDEM__STATE_LOOK] = {.ask = idem__look_ask,
                          .answered = idem__look_answered},
    [IDEM__STATE_DECIDE] = {.step = idem__decide_step},
    [IDEM__STATE_LOAD] = {.step = idem__load_step},
    [IDEM__STATE_ACT] = {.step = idem__act_step},
    [IDEM__STATE_EXTEND] = {.step = idem__extend_step},
    [IDEM__STATE_WRITE] = {.ask = idem__write_ask,
                           .answered = idem__write_answered},
    [IDEM__STATE_SETTLE] = {.step = idem__settle_step},

    [IDEM__STATE_GATE] = {.ask = idem__gate_ask,
                          .answered = idem__gate_answered},
    [IDEM__STATE_MARK] = {.ask = idem__mark_ask,
                          .answered = idem__mark_answered},

    [IDEM__STATE_GET_PARTS] = {.ask = idem__get_parts_ask,
                               .answered = idem__get_parts_answered},
    [IDEM__STATE_PUT_PARTS] = {.ask = idem__put_parts_ask,
                               .answered = idem__put_parts_answered},
    [IDEM__STATE_DELETE_PARTS] = {.ask = idem__delete_parts_ask,
                                  .answered = idem__delete_parts_answered},
    [IDEM__STATE_COPY] = {.step = idem__copy_step},
    [IDEM__STATE_KEPT] = {.step = idem__kept_step},

    [IDEM__STATE_LIST] = {.step = idem__list_step},
    [IDEM__STATE_LIST_SCAN] = {.ask = idem__list_scan_ask,
                               .answered = idem__list_scan_answered},
    [IDEM__STATE_LIST_QUERY] = {.ask = idem__list_query_ask,
                                .answered = idem__list_query_answered},
    [IDEM__STATE_LIST_HEADS] = {.ask = idem__walk_heads_ask,
                                .answered = idem__list_heads_answered},

    [IDEM__STATE_PURGE] = {.step = idem__purge_step},
    [IDEM__STATE_PURGE_SCAN] = {.ask = idem__purge_scan_ask,
                                .answered = idem__purge_scan_answered},
    [IDEM__STATE_PURGE_HEADS] = {.ask = idem__walk_heads_ask,
                                 .answered = idem__purge_heads_answered},
    [IDEM__STATE_PURGE_RECORDS] = {.step = idem__purge_records_step},
    [IDEM__STATE_PURGE_RECORD] = {.ask = idem__purge_record_ask,
                                  .answered = idem__purge_record_answered},
    [IDEM__STATE_PURGE_INPUT] = {.step = idem__purge_input_step},
    [IDEM__STATE_PURGE_NEXT] = {.step = idem__purge_next_step},
    [IDEM__STATE_PURGE_COUNT] = {.step = idem__purge_count_step},
    [IDEM__STATE_PURGE_ORPHANS] = {.step = idem__purge_orphans_step},
    [IDEM__STATE_PURGE_ORPHAN] = {.ask = idem__purge_orphan_ask,
                                  .answered = idem__purge_orphan_answered},

    [IDEM__STATE_LIMIT] = {.step = idem__limit_step},
    [IDEM__STATE_LIMIT_WINDOW] = {.ask = idem__limit_window_ask,
                                  .answered = idem__limit_window_answered},
    [IDEM__STATE_LIMIT_ENTRY] = {.ask = idem__limit_entry_ask,
                                 .answered = idem__limit_entry_answered},
    [IDEM__STATE_LIMIT_WRITE] = {.ask = idem__limit_write_ask,
                                 .answered = idem__limit_write_answered},
    [IDEM__STATE_LIMIT_MOVE] = {.ask = idem__limit_move_ask,
                                .answered = idem__limit_move_answered},
    [IDEM__STATE_LIMIT_TRIM] = {.ask = idem__limit_trim_ask,
                                .answered = idem__limit_trim_answered},
};

/* Makes the request of @state. */
static void ask(struct idem__task *task, enum idem__state state,
                const struct idem_now *now)
{
    const char *target = rows[state].ask(task, now);

    if (task->out.failed) {
        task->state = idem__task_fail_with(task, IDEM_ENOMEM,
                                           idem_error_text(IDEM_ENOMEM));
        task->next = IDEM__TASK_DONE;
        return;
    }
    task->request.target = target;
    task->request.body = idem__buffer_slice(&task->out);
    task->next = IDEM__TASK_SEND;
}

void idem__state_enter(struct idem__task *task, enum idem__state state,
                       const struct idem_now *now)
{
    for (task->state = state; rows[task->state].step != NULL;) {
        task->state = rows[task->state].step(task, now);
    }
    switch (task->state) {
    case IDEM__STATE_PAUSE:
        task->next = IDEM__TASK_PAUSE;
        return;
    case IDEM__STATE_DONE:
        task->next = IDEM__TASK_DONE;
        return;
    default:
        assert(rows[task->state].ask != NULL);
        ask(task, task->state, now);
    }
}

void idem__state_answered(struct idem__task *task, const struct idem_now *now,
                          struct idem__answer *answer)
{
    enum idem__state next = rows[task->state].answered(task, now, answer);

    /* It is large, and no longer needed. */
    idem__answer_finish(answer);
    idem__state_enter(task, next, now);
}
