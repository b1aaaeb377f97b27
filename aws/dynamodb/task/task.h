/* One op on its way through the table, for the machine of remote stores
 * (store/remote/machine.h): the requests of its states, and what an answer means. Pure but
 * for memory: no I/O and no clock, so that the simulator runs the same code.
 *
 *     state    request
 *     -------  -----------------------------------------------------------------------
 *     LOOK     GetItem
 *     LOAD     GET_PARTS: BatchGetItem
 *     ACT      PUT_PARTS: BatchWriteItem; COPY, KEPT: write an input again, with a later
 *              ttl
 *     WRITE    PutItem, DeleteItem, TransactWriteItems
 *     SETTLE   DELETE_PARTS: BatchWriteItem, for each body that only the former head
 *              named; COPY: write an input again, with a ttl
 *
 * GATE reads the mark of a table that is moved. An op that starts something goes through
 * it before its first state, if the last reading is older than half a minute or closed
 * the table; a claim that took too long goes through it after WRITE as well: gate.c.
 *
 * walk.c, purge.c and limit_task.c draw the states of lists, purges and rate limits.
 */
#ifndef IDEM_AWS_DYNAMODB_TASK_TASK_H
#define IDEM_AWS_DYNAMODB_TASK_TASK_H

#include "aws/dynamodb/layout/item.h"
#include "aws/dynamodb/layout/layout.h"
#include "aws/dynamodb/layout/request_json.h"
#include "aws/dynamodb/task/answer.h"
#include "base/bytes.h"
#include "store/remote/machine.h"

/* The states of DynamoDB alone. */
enum {
    /* A table that is moved: gate.c. */
    IDEM__STATE_GATE = IDEM__STATE_MOVE, /* Reads its mark. */
    IDEM__STATE_MARK = IDEM__STATE_OWN,  /* Sets it. */

    IDEM__STATE_SETTLE, /* The op is answered: deletes what is not needed. */

    /* Bodies: bodies.c and lifetime.c. The state that enters one of the first three
     * names the one that follows it. */
    IDEM__STATE_GET_PARTS,
    IDEM__STATE_PUT_PARTS,
    IDEM__STATE_DELETE_PARTS,
    IDEM__STATE_COPY, /* Writes the parts of an input again, with another ttl. */
    IDEM__STATE_KEPT, /* COPY is done, and the head is not written yet. */

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
    IDEM__STATE_PURGE_ORPHANS,
    IDEM__STATE_PURGE_ORPHAN,

    /* A rate limit: limit_task.c. */
    IDEM__STATE_LIMIT_WINDOW,
    IDEM__STATE_LIMIT_ENTRY,
    IDEM__STATE_LIMIT_WRITE,
    IDEM__STATE_LIMIT_MOVE, /* From here on the op is answered. */
    IDEM__STATE_LIMIT_TRIM,

    IDEM__STATES,
};

enum {
    /* How long a handle trusts its reading of the mark; a mover waits for as long. */
    IDEM__GATE_MS = 30 * 1000
};

/* The mark as a handle last read it. Zeroed: not read yet. */
struct idem__gate {
    char mark[IDEM_MARK_MAX];
    uint64_t floor;        /* New fences are above it. */
    int64_t until_boot_ms; /* The reading is trusted until then. */
};

/* The parts that the tasks of a store share. */
struct idem__task_env {
    struct idem__flight_env base; /* Its random also makes names of parts. */
    struct idem__table_conf table;
    /* How many parts that no head names were purged; NULL: do not count them. Atomic:
     * idem_dynamodb_inspect() reads it at any time. */
    uint64_t *parts_purged;
    struct idem__gate *gate; /* NULL: the table is never moved. */
};

/* The bytes of one body on their way in or out. */
struct idem__transfer {
    char kind;    /* 'r' for a result, 'i' for an input. */
    bool loading; /* This op has asked for the parts. */
    bool written; /* All parts are in the table, under body.tag. */
    struct idem__body body;
    struct idem__buffer stored; /* As stored: packed, or not. */
    size_t stored_len;          /* When reading; the last part tells it. */
    struct idem__buffer bytes;  /* Unpacked; empty if it was not packed. */
    uint32_t left;              /* Parts that have not moved yet. */
    bool done[IDEM__PARTS_MAX];
    idem__state then; /* Entered once all parts have moved. */
};

/* Whether the parts of an input must be written again with another ttl: lifetime.c. */
enum idem__keep {
    IDEM__KEEP_AS_IT_IS = 0,
    IDEM__KEEP_LONGER,    /* With a later one, before the head is written. */
    IDEM__KEEP_NO_LONGER, /* With one at all, after the head is written. */
};

/* A body that is being deleted. */
struct idem__removal {
    uint8_t id[IDEM_ID_LEN];
    char kind;
    struct idem__body body;
    bool done[IDEM__PARTS_MAX];
    uint32_t left;
    idem__state then; /* Entered once all parts are gone. */
};

struct idem__task {
    struct idem__flight base;
    const struct idem__task_env *env;
    struct idem__aws_request request; /* idem__task_ask() sets target, body. */

    /* base.tries before the answer that is being read. */
    unsigned tries_before;
    /* The head was read again for parts that were missing. */
    bool looked_again;
    bool waited; /* The op has waited once for the owner of a lapsed claim. */
    int64_t gate_asked_ms; /* When GATE was sent, by the boot clock. */
    bool claimed;          /* The claim was written before GATE. */

    struct idem__item found; /* base.found is its record. */
    struct idem__item item;  /* base.next_record is its record. */
    bool transacts; /* The item goes together with the caller's writes. */
    /* The one of them that was refused, from 1 on; 0: none. */
    size_t caller_write;

    /* The bodies of found that the caller is given, and those of item. */
    struct idem__transfer result;
    struct idem__transfer input;
    /* The one that GET_PARTS or PUT_PARTS moves. */
    struct idem__transfer *moving;
    bool has_turn; /* turn is set. */
    /* Makes the tag of this result unlike that of any other. */
    uint8_t turn[8];

    /* How long bodies live: lifetime.c. */
    enum idem__keep keep;
    /* Entered once the input is written again; NONE: it is not being written again. */
    idem__state keeping;
    struct idem__body kept;       /* The input as it was written again. */
    struct idem__body old_result; /* No head names it once item is written. */
    struct idem__body old_input;  /* The same. */
    struct idem__removal removal; /* What DELETE_PARTS deletes. */

    /* Memory that outlives an op. */
    struct idem__buffer out; /* The body of the request. */
    struct idem__walk *walk; /* Of walk.c; NULL until it is needed. */
    /* Of limit_task.c; NULL until it is needed. */
    struct idem__limiter *limiter;
    struct idem__scratch scratch;
};

/* Sets up a zeroed @task, which then serves one op after the other. */
void idem__task_init(struct idem__task *task, const struct idem__task_env *env);

/* Forgets the op, which has been given back; most of the memory stays. */
void idem__task_reset(struct idem__task *task);
void idem__task_free(struct idem__task *task);

/* ---- The states' functions ---- */

/* Enters a state: makes its request in idem__task_out(), and returns idem__task_ask(); or
 * does its work, and returns the next state. */
typedef idem__state idem__step_fn(struct idem__task *task);

/* Reads the answer to the state's request, and returns the next state. The caller frees
 * @answer, so nothing may point into it afterwards. */
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
idem__step_fn idem__walk_heads_ask; /* Purges use it, too. */
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

/* The indexes of purge.from. */
enum {
    IDEM__PURGE_LIMIT = 0, /* Items of a page; 0: IDEM__HEADS_GET, the most. */
    /* The op adds to these. */
    IDEM__PURGE_READ,      /* Capacity that its requests took, in half units. */
    IDEM__PURGE_WRITE,     /* The same. */
    IDEM__PURGE_THROTTLED, /* Requests that the service throttled. */
    IDEM__PURGE_LOOKED,    /* Items of its pages. */
};

/* Adds the capacity that the request took, as @answer reports it, to the op's. */
void idem__purge_bill(struct idem__task *task,
                      const struct idem__answer *answer);
void idem__walk_free(struct idem__walk *walk);
void idem__limiter_free(struct idem__limiter *limiter);

/* ---- A table that is moved: gate.c ---- */

/* True if the op of @task starts something, and must read the gate first. */
bool idem__gate_is_due(const struct idem__task *task);

/* True if the claim of @task is in the table, and must not be answered before the gate
 * has been read again. */
bool idem__gate_doubts(const struct idem__task *task);

/* base.now, with the mark and the floor of fences that the gate has. */
struct idem_now idem__gate_now(const struct idem__task *task);

/* True if @name is the key of the item that has the mark. */
bool idem__gate_is(struct idem_slice name);

/* ---- Bodies: bodies.c ---- */

/* Decides where the bodies of task->item go before it is written. */
void idem__bodies_place(struct idem__task *task);

/* Returns the state that writes parts which task->item names, and which leads to ACT
 * again; NONE: no parts are left to write. */
idem__state idem__bodies_store(struct idem__task *task);

/* Call this after a write that may have been applied. If it was, its head names the parts
 * that this op wrote, and another caller that replaces that head deletes them. So the op
 * writes its parts again before its next head, those of a result under another name. */
void idem__bodies_forget(struct idem__task *task);

/* Reads, or writes, the parts of @body, and then enters @then. Returns the next
 * state. */
idem__state idem__bodies_get(struct idem__task *task, struct idem__transfer *t,
                             const struct idem__body *body, idem__state then);
idem__state idem__bodies_put(struct idem__task *task, struct idem__transfer *t,
                             const struct idem__body *body, idem__state then);

/* ---- Lifetime of bodies: lifetime.c ---- */

/* The ttl of the parts that the head of @record names. */
int64_t idem__input_ttl_ms(const struct idem_record *record);
int64_t idem__result_ttl_ms(const struct idem_record *record);

/* Decides what becomes of the bodies of task->found once task->item is written. */
void idem__lifetime_plan(struct idem__task *task);

/* Returns the state that makes the input outlive task->item, and which leads to ACT
 * again; NONE: it outlives it already. */
idem__state idem__lifetime_extend(struct idem__task *task);

/* Goes on without writing an input again, because its parts are missing. Returns the
 * next state. */
idem__state idem__lifetime_skip(struct idem__task *task);

/* Deletes the parts of a @body that no head names, and then enters @then. Returns the
 * next state. */
idem__state idem__bodies_remove(struct idem__task *task, const uint8_t *id,
                                char kind, const struct idem__body *body,
                                idem__state then);

/* ---- For the machine: record.c ---- */

idem__state idem__task_decide(struct idem__flight *flight,
                              const struct idem_record *there);
idem__state idem__task_prepare(struct idem__flight *flight);
idem__state idem__task_settle(struct idem__flight *flight, bool wrote);

/* ---- For all of these ---- */

/* The first state of the op, once the gate is known to be open: task.c. */
idem__state idem__task_first(struct idem__task *task);

/* True if @body is the answer of GetItem for an item that does not exist: {} (NULL), or
 * the capacity alone: record.c. */
bool idem__look_found_nothing(json_object *body);

/* The value for this table in the object under @member, or NULL: record.c. */
json_object *idem__task_under_table(const struct idem__task *task,
                                    json_object *body, const char *member);

/* Reads an item of the table into task->found; see idem__layout_read(). */
int idem__task_read(struct idem__task *task, json_object *object,
                    const uint8_t *id, struct idem_error *ret_error);

/* Takes @object as the item that is in the table (NULL: there is none). Returns the next
 * state. */
idem__state idem__task_found(struct idem__task *task, json_object *object);

/* Returns task->out, emptied, for the body of the next request: task.c. */
struct idem__buffer *idem__task_out(struct idem__task *task);

/* Makes task->out the request of @target. Returns SEND, or DONE if memory ran out:
 * task.c. */
idem__state idem__task_ask(struct idem__task *task, const char *target);

/* For an answer that is neither OK nor REFUSED: enters @again after a pause, or
 * ends the op. Returns the next state. */
idem__state idem__task_retry(struct idem__task *task,
                             const struct idem__answer *answer,
                             idem__state again);

/* The same for a batch of which the service did only a part, or (not @progress)
 * nothing. @what it could not do is named in the error. */
idem__state idem__task_busy(struct idem__task *task, bool progress,
                            const char *what, idem__state again);

/* ---- A caller's own writes, in one transaction with a record: commit.c ---- */

/* Checks that the writes of @commit are entries of TransactItems, as many as it says,
 * and clears its answer. Only the service validates the contents of an entry.
 *
 * IDEM_EINVALID, IDEM_ENOMEM
 */
int idem__commit_check(struct idem_commit *commit,
                       struct idem_error *ret_error);

/* Turns the decision on @found (NULL: no item) into that of @op with its writes: a claim
 * becomes a completed record at once, and a record that was committed with these very
 * writes counts as committed by @op. May set decision->code. */
void idem__commit_decide(struct idem_op *op, const struct idem__item *found,
                         const struct idem_now *now,
                         struct idem_decision *decision);

/* True if the change of @decision goes into one transaction with the writes. */
bool idem__commit_transacts(const struct idem_op *op,
                            const struct idem_decision *decision);

/* ---- Which parts of a body an answer is about: parts.c ---- */

/* Sets *@ret_i to the number of the part with the name @name. False: @parts has no such
 * part. */
bool idem__parts_number(const struct idem__parts *parts, struct idem_slice name,
                        uint32_t *ret_i);

/* Reads the answer to a PUT_PARTS or DELETE_PARTS that carried the next @carried parts:
 * marks in @done, which is parts->done, those that the answer does not list as
 * unprocessed. NONE: all parts are done; or the next state. */
idem__state idem__parts_answered(struct idem__task *task,
                                 const struct idem__parts *parts, bool *done,
                                 uint32_t *left, unsigned carried,
                                 const struct idem__answer *answer);

/* ---- Packing large results with zstd (RFC 8878): parts.c ---- */

/* Packs @bytes into @out, which is emptied first. False: that saves less than an eighth,
 * or memory ran out; @out is empty then. */
bool idem__pack(struct idem_slice bytes, struct idem__buffer *out);

/* Unpacks @packed to exactly @len bytes, and appends them to @out.
 *
 * IDEM_ECORRUPT  @packed does not unpack to @len bytes.
 * IDEM_ENOMEM
 */
int idem__unpack(struct idem_slice packed, size_t len,
                 struct idem__buffer *out);

#endif
