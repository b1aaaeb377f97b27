/* The states of an op on its way through the table.
 *
 * A state asks or steps. One that asks makes a request, and its answer names the
 * next state; one that steps does its work at once and names the next state. The
 * table of them is in state.c, and nothing else moves an op.
 *
 * An op on one record:
 *
 *     start ----------------> LOOK <----------------------------+
 *       |                      |                                |
 *       |                      v                                |
 *       +------------------> DECIDE <---------------+           | not answered, or
 *                            |    |                 |           | refused without
 *        a body is given     v    |        refused, |           | a sight of the
 *                          LOAD   |       shown the |           | item
 *                            |    |            item |           |
 *                            v    v                 |           |
 *                             ACT --> (bodies) --> WRITE -------+
 *                            |   |                 ^   |
 *        nothing to write    |   +----> EXTEND ----+   | applied
 *                            v     too short           v
 *                           DONE <----------------- SETTLE
 *
 *     state    request            what decides on the next state
 *     -------  -----------------  ------------------------------------------------
 *     start                       DECIDE: a claim that is probably the first, an
 *                                 import, an owner whose claim is remembered;
 *                                 LOOK: anybody else
 *     LOOK     GetItem            DECIDE: an item, or none
 *     DECIDE                      LOOK: what is remembered is good for no answer;
 *                                 LOAD: the caller is given a body; ACT
 *     LOAD     GET_PARTS          LOOK, once: a part is gone; ACT: all is as the
 *                                 record says
 *     ACT      PUT_PARTS; COPY,   DONE: nothing is to be written; EXTEND: a claim of
 *              KEPT               ours is found, and too short; WRITE
 *     EXTEND                      WRITE: the claim with a longer lease
 *     WRITE    PutItem,           DECIDE: refused, and shown the item; LOOK: refused
 *              DeleteItem,        and not shown it, or not answered; EXTEND: applied,
 *              TransactWriteItems and too short (LOOK first, where the table is not
 *                                 ours alone); SETTLE: applied
 *     SETTLE   DELETE_PARTS;      DONE: nothing is left that the former head named
 *              COPY               and the new one does not
 *
 * A write is decided on what was found, or on there being nothing, and is
 * conditional on just that. Refused, it shows what is there now, and that is
 * decided on anew. Whether an unanswered write was applied is found by reading,
 * never guessed: the record then holds our nonce and content, or it does not.
 *
 * Each state that asks may be throttled, or read in vain: then it goes through PAUSE
 * to itself. Each may fail, the time may be up, or the clock not answer: DONE, with an
 * error that says whether a write may have been applied (task->ambiguous).
 *
 * Once in half a minute a claim goes through GATE, before its first state, or after
 * WRITE: gate.h.
 *
 * Lists, purges and rate limits have ways of their own, drawn where they are: walk.c,
 * purge.c, limit_small.c and limit_large.c.
 */
#ifndef IDEM_AWS_DYNAMODB_TASK_STATE_H
#define IDEM_AWS_DYNAMODB_TASK_STATE_H

#include "aws/dynamodb/task/answer.h"

struct idem__task;
struct idem_now;

enum idem__state {
    /* None: before the first op; and for a function that has nothing to say of
     * what is next. */
    IDEM__STATE_NONE = 0,

    /* One record: look.c, decide.c and write.c. */
    IDEM__STATE_LOOK,   /* Reads its item, strongly. */
    IDEM__STATE_DECIDE, /* What is to be answered and written? */
    IDEM__STATE_LOAD,   /* Reads the bodies that the caller is given. */
    IDEM__STATE_ACT,    /* Does what was decided. */
    IDEM__STATE_EXTEND, /* Makes a claim last as long as its owner counts. */
    IDEM__STATE_WRITE,  /* Writes its item, if it is as it was found. */
    IDEM__STATE_SETTLE, /* The op is answered: deletes what is not needed. */

    /* A table that is moved: gate.c. */
    IDEM__STATE_GATE, /* Reads its mark. */
    IDEM__STATE_MARK, /* Sets it. */

    /* Bodies: bodies.c and lifetime.c. The state that enters one of the first three
     * names the one after it. */
    IDEM__STATE_GET_PARTS,
    IDEM__STATE_PUT_PARTS,
    IDEM__STATE_DELETE_PARTS,
    IDEM__STATE_COPY, /* Writes an input's parts anew, with another ttl ... */
    IDEM__STATE_KEPT, /* ... which is done, before the head is written. */

    /* A page of a list: walk.c. */
    IDEM__STATE_LIST,
    IDEM__STATE_LIST_SCAN,
    IDEM__STATE_LIST_QUERY,
    IDEM__STATE_LIST_HEADS,

    /* A page of a purge: purge.c. */
    IDEM__STATE_PURGE,
    IDEM__STATE_PURGE_SCAN,
    IDEM__STATE_PURGE_HEADS,
    IDEM__STATE_PURGE_RECORDS,
    IDEM__STATE_PURGE_RECORD,
    IDEM__STATE_PURGE_INPUT,
    IDEM__STATE_PURGE_NEXT,
    IDEM__STATE_PURGE_COUNT,
    IDEM__STATE_PURGE_ORPHANS,
    IDEM__STATE_PURGE_ORPHAN,

    /* A rate limit: limit_task.c. */
    IDEM__STATE_LIMIT,
    IDEM__STATE_LIMIT_WINDOW,
    IDEM__STATE_LIMIT_ENTRY,
    IDEM__STATE_LIMIT_WRITE,
    IDEM__STATE_LIMIT_MOVE, /* The op is answered. */
    IDEM__STATE_LIMIT_TRIM,

    /* The ends of a step: the driver waits, or gives the op back. */
    IDEM__STATE_PAUSE, /* Then the state task->after_pause. */
    IDEM__STATE_DONE,

    IDEM__STATES,
};

/* Makes the request of a state in idem__task_out(). Returns its target. */
typedef const char *idem__ask_fn(struct idem__task *task,
                                 const struct idem_now *now);

/* Takes in the answer to it; nothing may point into @answer afterwards. Returns the
 * next state. */
typedef enum idem__state idem__answered_fn(struct idem__task *task,
                                           const struct idem_now *now,
                                           struct idem__answer *answer);

/* Does the work of a state that asks for nothing. Returns the next state. */
typedef enum idem__state idem__step_fn(struct idem__task *task,
                                       const struct idem_now *now);

/* ---- The functions of the states ---- */

idem__ask_fn idem__look_ask;
idem__answered_fn idem__look_answered;
idem__step_fn idem__decide_step;
idem__step_fn idem__load_step;
idem__step_fn idem__act_step;
idem__step_fn idem__extend_step;
idem__ask_fn idem__write_ask;
idem__answered_fn idem__write_answered;
idem__step_fn idem__settle_step;

idem__ask_fn idem__gate_ask;
idem__answered_fn idem__gate_answered;
idem__ask_fn idem__mark_ask;
idem__answered_fn idem__mark_answered;

idem__ask_fn idem__get_parts_ask;
idem__answered_fn idem__get_parts_answered;
idem__ask_fn idem__put_parts_ask;
idem__answered_fn idem__put_parts_answered;
idem__ask_fn idem__delete_parts_ask;
idem__answered_fn idem__delete_parts_answered;
idem__step_fn idem__copy_step;
idem__step_fn idem__kept_step;

idem__step_fn idem__list_step;
idem__ask_fn idem__list_scan_ask;
idem__answered_fn idem__list_scan_answered;
idem__ask_fn idem__list_query_ask;
idem__answered_fn idem__list_query_answered;
idem__ask_fn idem__walk_heads_ask; /* Of a purge, too. */
idem__answered_fn idem__list_heads_answered;

idem__step_fn idem__purge_step;
idem__ask_fn idem__purge_scan_ask;
idem__answered_fn idem__purge_scan_answered;
idem__answered_fn idem__purge_heads_answered;
idem__step_fn idem__purge_records_step;
idem__ask_fn idem__purge_record_ask;
idem__answered_fn idem__purge_record_answered;
idem__step_fn idem__purge_input_step;
idem__step_fn idem__purge_next_step;
idem__step_fn idem__purge_count_step;
idem__step_fn idem__purge_orphans_step;
idem__ask_fn idem__purge_orphan_ask;
idem__answered_fn idem__purge_orphan_answered;

idem__step_fn idem__limit_step;
idem__ask_fn idem__limit_window_ask;
idem__answered_fn idem__limit_window_answered;
idem__ask_fn idem__limit_entry_ask;
idem__answered_fn idem__limit_entry_answered;
idem__ask_fn idem__limit_write_ask;
idem__answered_fn idem__limit_write_answered;
idem__ask_fn idem__limit_move_ask;
idem__answered_fn idem__limit_move_answered;
idem__ask_fn idem__limit_trim_ask;
idem__answered_fn idem__limit_trim_answered;

/* ---- Moving on: state.c ---- */

/* Enters @state, and those that follow, until there is a request to send, a pause
 * to make, or an end. */
void idem__state_enter(struct idem__task *task, enum idem__state state,
                       const struct idem_now *now);

/* The answer to the request of the state that the op is in. */
void idem__state_answered(struct idem__task *task, const struct idem_now *now,
                          struct idem__answer *answer);

#endif
