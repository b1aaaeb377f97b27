/* One op on its way through the table, for the machine of remote stores
 * (store/remote/machine.h): the requests of its states, and what an answer means. Pure but
 * for memory: no I/O and no clock, so that the simulator runs the same code.
 *
 *     state    request
 *     -------  -----------------------------------------------------------------------
 *     LOOK     GetItem
 *     LOAD     GET_PARTS: BatchGetItem
 *     ACT      PUT_PARTS: BatchWriteItem; COPY, KEPT: an input is read and written anew
 *     WRITE    PutItem, DeleteItem, TransactWriteItems
 *     SETTLE   DELETE_PARTS: BatchWriteItem; COPY: until nothing is left that the former
 *              head named and the new one does not
 *
 * Once in half a minute a claim goes through GATE, before its first state, or after
 * WRITE: gate.c.
 *
 * Lists, purges and rate limits have ways of their own, drawn where they are: walk.c,
 * purge.c and limit_task.c.
 */
#ifndef IDEM_AWS_DYNAMODB_TASK_TASK_H
#define IDEM_AWS_DYNAMODB_TASK_TASK_H

#include "aws/dynamodb/layout/item.h"
#include "aws/dynamodb/layout/layout.h"
#include "aws/dynamodb/layout/request_json.h"
#include "aws/dynamodb/task/answer.h"
#include "base/bytes.h"
#include "store/remote/machine.h"

/* The states beside those of all services. */
enum {
    /* A table that is moved: gate.c. */
    IDEM__STATE_GATE = IDEM__STATE_MOVE, /* Reads its mark. */
    IDEM__STATE_MARK = IDEM__STATE_OWN,  /* Sets it. */

    IDEM__STATE_SETTLE, /* The op is answered: deletes what is not needed. */

    /* Bodies: bodies.c and lifetime.c. The state that enters one of the first three
     * names the one after it. */
    IDEM__STATE_GET_PARTS,
    IDEM__STATE_PUT_PARTS,
    IDEM__STATE_DELETE_PARTS,
    IDEM__STATE_COPY, /* Writes an input's parts anew, with another ttl ... */
    IDEM__STATE_KEPT, /* ... which is done, before the head is written. */

    /* A page of a list: walk.c. */
    IDEM__STATE_LIST_SCAN,
    IDEM__STATE_LIST_QUERY,
    IDEM__STATE_LIST_HEADS,

    /* A page of a purge: purge.c. */
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
    IDEM__STATE_LIMIT_WINDOW,
    IDEM__STATE_LIMIT_ENTRY,
    IDEM__STATE_LIMIT_WRITE,
    IDEM__STATE_LIMIT_MOVE, /* The op is answered. */
    IDEM__STATE_LIMIT_TRIM,

    IDEM__STATES,
};

/* Parts of bodies that no head names, as purges found them. */
struct idem__orphans {
    uint64_t found;
    uint64_t deleted;                /* Atomic: idem_dynamodb_inspect(). */
    char first[IDEM__PART_NAME_MAX]; /* Of those that were found. */
};

enum {
    IDEM__GATE_MS = 30 * 1000
};

/* The mark as a handle last read it. Zeroed: not read yet. */
struct idem__gate {
    char mark[IDEM_MARK_MAX];
    uint64_t floor;
    int64_t until_boot_ms;
};

/* The parts that the tasks of a store share. */
struct idem__task_env {
    struct idem__flight_env base; /* random is used for names, too. */
    struct idem__table_conf table;
    struct idem__orphans *orphans; /* NULL: they are not counted. */
    struct idem__gate *gate;       /* NULL: the table is never moved. */
};

/* The bytes of one body on their way in or out. */
struct idem__transfer {
    char kind;    /* 'r' or 'i'. */
    bool loading; /* They were asked for. */
    bool written; /* All of them are in the table, under body.tag. */
    struct idem__body body;
    struct idem__buffer stored; /* As stored: packed, or not. */
    size_t stored_len;          /* Reading: known with the last part. */
    struct idem__buffer bytes;  /* Unpacked; empty if it was not packed. */
    uint32_t left;
    bool done[IDEM__PARTS_MAX];
    idem__state then; /* Once all parts have moved. */
};

/* The need that sets the ttl of an input's parts; see lifetime.c. */
enum idem__keep {
    IDEM__KEEP_AS_IT_IS = 0,
    IDEM__KEEP_LONGER,    /* Before the head is written. */
    IDEM__KEEP_NO_LONGER, /* After it was. */
};

/* A body that is being deleted. */
struct idem__removal {
    uint8_t id[IDEM_ID_LEN];
    char kind;
    struct idem__body body;
    bool done[IDEM__PARTS_MAX];
    uint32_t left;
    idem__state then; /* Once all parts are gone. */
};

struct idem__task {
    struct idem__flight base;
    const struct idem__task_env *env;
    struct idem__aws_request request; /* target, body and answer_max are set. */

    unsigned
        tries_before;  /* base.tries before the answer that is being read. */
    bool looked_again; /* For parts that were not there. */
    bool waited;       /* For the owner of a claim whose lease is over. */
    int64_t gate_asked_ms; /* GATE: when, by the boot clock ... */
    bool claimed;          /* ... and after the claim was written. */

    struct idem__item found; /* base.found. */
    struct idem__item item;  /* base.next_record. */
    bool transacts;          /* It goes together with the caller's writes ... */
    size_t caller_write; /* ... of which this one was refused, from 1 on; 0. */

    /* The bodies of found that the caller is given, and those of item. */
    struct idem__transfer result;
    struct idem__transfer input;
    struct idem__transfer *moving; /* Of these: GET_PARTS and PUT_PARTS. */
    bool has_turn;                 /* The next is set: */
    uint8_t
        turn[8]; /* what tells the parts of this result from those of others. */

    /* How long bodies live: lifetime.c. */
    enum idem__keep keep;
    idem__state keeping;    /* The input is being written anew: what is entered
                                 then. NONE: it is not. */
    struct idem__body kept; /* The input, as it was written anew. */
    struct idem__body old_result; /* Named by nobody once the head is ... */
    struct idem__body old_input;  /* ... written. */
    struct idem__removal removal; /* DELETE_PARTS. */

    /* Memory, which outlives an op. */
    struct idem__buffer out;       /* The request's. */
    struct idem__walk *walk;       /* Of walk.c; NULL until it is needed. */
    struct idem__limiter *limiter; /* Of limit_task.c; likewise. */
    struct idem__scratch scratch;
};

/* Sets up a zeroed @task; it may be started again and again. */
void idem__task_init(struct idem__task *task, const struct idem__task_env *env);

/* The op has been given back; most of the memory stays. */
void idem__task_reset(struct idem__task *task);
void idem__task_free(struct idem__task *task);

/* ---- The states' functions ---- */

/* Enters a state: makes its request in idem__task_out(), and returns idem__task_ask(); or
 * does its work, and returns the next state. */
typedef idem__state idem__step_fn(struct idem__task *task);

/* Takes in the answer to its request; nothing may point into @answer afterwards. Returns
 * the next state. */
typedef idem__state idem__answered_fn(struct idem__task *task,
                                      struct idem__answer *answer);

idem__step_fn idem__look_ask;
idem__answered_fn idem__look_answered;
idem__step_fn idem__load_step;
idem__step_fn idem__write_ask;
idem__answered_fn idem__write_answered;
idem__step_fn idem__settle_step;

idem__step_fn idem__gate_ask;
idem__answered_fn idem__gate_answered;
idem__step_fn idem__mark_ask;
idem__answered_fn idem__mark_answered;

idem__step_fn idem__get_parts_ask;
idem__answered_fn idem__get_parts_answered;
idem__step_fn idem__put_parts_ask;
idem__answered_fn idem__put_parts_answered;
idem__step_fn idem__delete_parts_ask;
idem__answered_fn idem__delete_parts_answered;
idem__step_fn idem__copy_step;
idem__step_fn idem__kept_step;

idem__step_fn idem__list_step;
idem__step_fn idem__list_scan_ask;
idem__answered_fn idem__list_scan_answered;
idem__step_fn idem__list_query_ask;
idem__answered_fn idem__list_query_answered;
idem__step_fn idem__walk_heads_ask; /* Of a purge, too. */
idem__answered_fn idem__list_heads_answered;

idem__step_fn idem__purge_step;
idem__step_fn idem__purge_scan_ask;
idem__answered_fn idem__purge_scan_answered;
idem__answered_fn idem__purge_heads_answered;
idem__step_fn idem__purge_records_step;
idem__step_fn idem__purge_record_ask;
idem__answered_fn idem__purge_record_answered;
idem__step_fn idem__purge_input_step;
idem__step_fn idem__purge_next_step;
idem__step_fn idem__purge_count_step;
idem__step_fn idem__purge_orphans_step;
idem__step_fn idem__purge_orphan_ask;
idem__answered_fn idem__purge_orphan_answered;

idem__step_fn idem__limit_step;
idem__step_fn idem__limit_window_ask;
idem__answered_fn idem__limit_window_answered;
idem__step_fn idem__limit_entry_ask;
idem__answered_fn idem__limit_entry_answered;
idem__step_fn idem__limit_write_ask;
idem__answered_fn idem__limit_write_answered;
idem__step_fn idem__limit_move_ask;
idem__answered_fn idem__limit_move_answered;
idem__step_fn idem__limit_trim_ask;
idem__answered_fn idem__limit_trim_answered;

/* ---- Lists, purges and limits: walk.c, purge.c and limit_task.c ---- */

/* Of purge.from. */
enum {
    IDEM__PURGE_LOOKS = 0, /* If it is set, nothing is deleted, and orphans are
                              counted. */
    IDEM__PURGE_SEGMENT,   /* Of SEGMENTS, from 0 on; 0 of 0: the table. */
    IDEM__PURGE_SEGMENTS,
    IDEM__PURGE_LIMIT, /* Items of a page; 0: IDEM__HEADS_GET, the most. */
    /* The op adds to these: what its requests cost, in half units ... */
    IDEM__PURGE_READ,
    IDEM__PURGE_WRITE,
    IDEM__PURGE_THROTTLED, /* ... how many were refused for want of capacity ... */
    IDEM__PURGE_LOOKED,    /* ... and the items of its pages. */
};

/* The answer to a request of a purge: adds what it cost to the op's. */
void idem__purge_bill(struct idem__task *task,
                      const struct idem__answer *answer);
void idem__walk_free(struct idem__walk *walk);
void idem__limiter_free(struct idem__limiter *limiter);

/* ---- A table that is moved: gate.c ---- */

/* True if the op of @task starts something, and the gate has to be read first. */
bool idem__gate_is_due(const struct idem__task *task);

/* True if the claim of @task, which is in the table, may not be answered before the gate
 * was read. */
bool idem__gate_doubts(const struct idem__task *task);

/* @now, with what the gate says. */
struct idem_now idem__gate_now(const struct idem__task *task);

/* True if @name is the key of its item. */
bool idem__gate_is(struct idem_slice name);

/* ---- Bodies: bodies.c ---- */

/* Decides where the bodies of task->item, which is to be written, go. */
void idem__bodies_place(struct idem__task *task);

/* The state that writes the parts beside task->item, and after which comes ACT
 * again; NONE: there are none, or they are there. */
idem__state idem__bodies_store(struct idem__task *task);

/* A head that names the parts that this op wrote may have been written: another may have
 * replaced it by now, and delete them. They are written once more, under other names. */
void idem__bodies_forget(struct idem__task *task);

/* Reads, or writes, the parts of @body; @then is what is entered after that.
 * Returns the next state. */
idem__state idem__bodies_get(struct idem__task *task, struct idem__transfer *t,
                             const struct idem__body *body, idem__state then);
idem__state idem__bodies_put(struct idem__task *task, struct idem__transfer *t,
                             const struct idem__body *body, idem__state then);

/* ---- Lifetime of bodies: lifetime.c ---- */

/* The ttl of parts that a head with @record names. */
int64_t idem__input_ttl_ms(const struct idem_record *record);
int64_t idem__result_ttl_ms(const struct idem_record *record);

/* Decides what becomes of the bodies of task->found once task->item is written. */
void idem__lifetime_plan(struct idem__task *task);

/* The state that lets the input live as long as task->item, and after which comes
 * ACT again; NONE: it does. */
idem__state idem__lifetime_extend(struct idem__task *task);

/* The parts that were to be written anew are not there. Returns the next state. */
idem__state idem__lifetime_skip(struct idem__task *task);

/* Deletes the parts of a @body that no head names; @then is what is entered after
 * that. Returns the next state. */
idem__state idem__bodies_remove(struct idem__task *task, const uint8_t *id,
                                char kind, const struct idem__body *body,
                                idem__state then);

/* ---- For the machine: record.c ---- */

idem__state idem__task_decide(struct idem__flight *flight,
                              const struct idem_record *there);
idem__state idem__task_prepare(struct idem__flight *flight);
idem__state idem__task_settle(struct idem__flight *flight, bool wrote);

/* ---- For all of these ---- */

/* Where the op begins, once the gate is known to be open: task.c. */
idem__state idem__task_first(struct idem__task *task);

/* True if @body is GetItem's answer for an item that does not exist, {} (NULL) and what
 * it cost: record.c. */
bool idem__look_found_nothing(json_object *body);

/* The value under @member for this table, or NULL: record.c. */
json_object *idem__task_under_table(const struct idem__task *task,
                                    json_object *body, const char *member);

/* Reads an item of the table into task->found; see idem__layout_read(). */
int idem__task_read(struct idem__task *task, json_object *object,
                    const uint8_t *id, struct idem_error *ret_error);

/* Takes @object (NULL: none) as what is there. Returns the next state. */
idem__state idem__task_found(struct idem__task *task, json_object *object);

/* task->out, emptied, for the body of the next request; and the request that it is,
 * of @target: SEND, or DONE where memory ran out. task.c. */
struct idem__buffer *idem__task_out(struct idem__task *task);
idem__state idem__task_ask(struct idem__task *task, const char *target);

/* For an answer that is neither OK nor REFUSED: enters @again after a pause, or
 * ends the op. Returns the next state. */
idem__state idem__task_retry(struct idem__task *task,
                             const struct idem__answer *answer,
                             idem__state again);

/* Likewise, for a batch that was not done to its end. */
idem__state idem__task_busy(struct idem__task *task, bool progress,
                            const char *what, idem__state again);

/* ---- A caller's own writes, in one transaction with a record: commit.c ---- */

/* Checks that @commit's writes are entries of TransactItems, as many as it says,
 * and forgets an earlier answer. The service judges what is in them.
 *
 * IDEM_EINVALID, IDEM_ENOMEM
 */
int idem__commit_check(struct idem_commit *commit,
                       struct idem_error *ret_error);

/* Makes @decision on @found (NULL: nothing there) that of @op with its writes: a
 * claim becomes one that is completed already; what is on record already is known
 * as committed if these writes were. May set decision->code. */
void idem__commit_decide(struct idem_op *op, const struct idem__item *found,
                         const struct idem_now *now,
                         struct idem_decision *decision);

/* True if @decision's change is written in one transaction with the writes. */
bool idem__commit_transacts(const struct idem_op *op,
                            const struct idem_decision *decision);

/* ---- Which parts of a body an answer is about: parts.c ---- */

/* The number of the part that is named @name; false: it is none of @parts. */
bool idem__parts_number(const struct idem__parts *parts, struct idem_slice name,
                        uint32_t *ret_i);

/* Takes in an answer to PUT_PARTS or DELETE_PARTS about the next @carried of @parts: marks
 * in @done, which is parts->done, those that did not come back as unprocessed. NONE:
 * nothing is left of them; or the next state. */
idem__state idem__parts_answered(struct idem__task *task,
                                 const struct idem__parts *parts, bool *done,
                                 uint32_t *left, unsigned carried,
                                 const struct idem__answer *answer);

/* ---- Packing large results with zstd (RFC 8878): parts.c ---- */

/* Packs @bytes into @out (emptied first). False: it gains less than an eighth,
 * or there is no memory; @out is empty then. */
bool idem__pack(struct idem_slice bytes, struct idem__buffer *out);

/* Unpacks to exactly @len bytes, appended to @out.
 *
 * IDEM_ECORRUPT  It is not a frame of that length.
 * IDEM_ENOMEM
 */
int idem__unpack(struct idem_slice packed, size_t len,
                 struct idem__buffer *out);

#endif
