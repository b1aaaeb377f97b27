/* One op on its way through the table: which request comes next, and what its
 * answer means. Pure but for memory: no I/O and no clock, so that the simulator
 * runs the same code.
 *
 *     idem__task_start(task, op, now)
 *     while (task->next != IDEM__TASK_DONE)
 *         IDEM__TASK_SEND:  send task->request; when it is done
 *                           idem__task_answered(task, now)
 *         IDEM__TASK_PAUSE: after task->pause_ms, idem__task_resume(task, now)
 *     the op's answer is set: give it back, idem__task_reset(task)
 *
 * The way is drawn in state.h.
 */
#ifndef IDEM_AWS_DYNAMODB_TASK_TASK_H
#define IDEM_AWS_DYNAMODB_TASK_TASK_H

#include "aws/dynamodb/task/answer.h"
#include "aws/dynamodb/task/claimed.h"
#include "aws/dynamodb/task/gate.h"
#include "aws/dynamodb/layout/layout.h"
#include "aws/dynamodb/layout/request.h"
#include "aws/dynamodb/task/state.h"

enum idem__task_next {
    IDEM__TASK_SEND = 1,
    IDEM__TASK_PAUSE,
    IDEM__TASK_DONE,
};

/* Parts of bodies that no head names, as purges found them. */
struct idem__orphans {
    uint64_t found;
    uint64_t deleted;                /* Atomic: idem_dynamodb_inspect(). */
    char first[IDEM__PART_NAME_MAX]; /* Of those that were found. */
};

/* The parts that the tasks of a store share. */
struct idem__task_env {
    struct idem__table_conf table;
    struct idem__claims *claims;
    struct idem__orphans *orphans; /* NULL: they are not counted. */
    struct idem__gate *gate;       /* NULL: the table is never moved. */
    struct idem_host host;         /* random is used, for jitter and names. */
    uint8_t *scratch; /* IDEM_HEAD_MAX bytes, for one task at a time. */
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
    enum idem__state then; /* Once all parts have moved. */
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
    enum idem__state then; /* Once all parts are gone. */
};

struct idem__task {
    const struct idem__task_env *env;
    struct idem_op *op;

    /* For the driver: its next step. */
    enum idem__task_next next;
    int64_t pause_ms;
    struct idem__aws_request request; /* target, body and answer_max are set. */

    /* Where the op is. */
    enum idem__state state;
    enum idem__state after_pause; /* PAUSE: what is entered then. */

    /* Counts of its tries so far; each is bounded. */
    unsigned tries;        /* Requests in vain, in a row ... */
    unsigned tries_before; /* ... before the answer that is being read. */
    unsigned rounds;       /* Decisions. */
    bool looked_again;     /* For parts that were not there. */
    bool waited;           /* For the owner of a claim whose lease is over. */
    int64_t gate_asked_ms; /* GATE: when, by the boot clock ... */
    bool claimed;          /* ... and after the claim was written. */

    /* How much is known of its effect should it fail. Once set for an op, neither is
     * ever unset. */
    bool ambiguous; /* A write of ours may have been applied: "nothing was done"
                       is not ours to say. */
    bool settled;   /* The op is answered; what is left to do may fail. */

    /* The record found, which the decision and the write's condition rest on. */
    bool has_found;
    bool remembered; /* found is what this handle wrote, and not a reading. */
    struct idem__item found;
    struct idem__buffer found_memory;
    struct idem__buffer written; /* The head of found, where that is a write of
                                    ours that was not read back. */

    /* The decision, which is to be answered and written. */
    struct idem_decision decision;
    struct idem_record given;
    struct idem__item item;
    struct idem__buffer head; /* Of item. */
    bool extending;           /* The write is a claim that is made to last. */
    bool transacts; /* The write goes together with the caller's writes ... */
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
    enum idem__state
        keeping;            /* The input is being written anew: what is entered
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
void idem__task_start(struct idem__task *task, struct idem_op *op,
                      const struct idem_now *now);

/* task->request has been done. */
void idem__task_answered(struct idem__task *task, const struct idem_now *now);
void idem__task_resume(struct idem__task *task, const struct idem_now *now);

/* The time is up: the op is answered with what is known. It must not be under
 * way (abort its request first, and pass the answer). */
void idem__task_give_up(struct idem__task *task);

/* The clock does not answer, so that the op cannot be started, gone on with, or
 * have its request's answer looked at: it ends. */
void idem__task_no_clock(struct idem__task *task);

/* The op has been given back; most of the memory stays. */
void idem__task_reset(struct idem__task *task);
void idem__task_free(struct idem__task *task);

/* ---- Lists, purges and limits: walk.c, purge.c and limit_task.c ---- */

/* Of purge.from. */
enum {
    IDEM__PURGE_LOOKS =
        0,               /* If it is set, nothing is deleted; records past their
                              retention (FOUND) and orphans are counted. */
    IDEM__PURGE_SEGMENT, /* Of SEGMENTS, from 0 on; 0 of 0: the table. */
    IDEM__PURGE_SEGMENTS,
    IDEM__PURGE_LIMIT, /* Items of a page; 0: IDEM__HEADS_GET, the most. */
    /* The op adds to these: what its requests cost, in half units ... */
    IDEM__PURGE_READ,
    IDEM__PURGE_WRITE,
    IDEM__PURGE_THROTTLED, /* ... how many were refused for want of capacity ... */
    IDEM__PURGE_LOOKED,    /* ... and the items of its pages. */
    IDEM__PURGE_FOUND,
};

/* The answer to a request of a purge: adds what it cost to the op's. */
void idem__purge_bill(struct idem__task *task,
                      const struct idem__answer *answer);
void idem__walk_free(struct idem__walk *walk);
void idem__limiter_free(struct idem__limiter *limiter);

/* ---- Bodies: bodies.c ---- */

/* Decides where the bodies of task->item, which is to be written, go. */
void idem__bodies_place(struct idem__task *task);

/* The state that writes the parts beside task->item, and after which comes ACT
 * again; NONE: there are none, or they are there. */
enum idem__state idem__bodies_store(struct idem__task *task);

/* A head that names the parts that this op wrote may have been written: another may have
 * replaced it by now, and delete them. They are written once more, under other names. */
void idem__bodies_forget(struct idem__task *task);

/* Reads, or writes, the parts of @body; @then is what is entered after that.
 * Returns the next state. */
enum idem__state idem__bodies_get(struct idem__task *task,
                                  struct idem__transfer *t,
                                  const struct idem__body *body,
                                  enum idem__state then);
enum idem__state idem__bodies_put(struct idem__task *task,
                                  struct idem__transfer *t,
                                  const struct idem__body *body,
                                  enum idem__state then);

/* ---- Lifetime of bodies: lifetime.c ---- */

/* The ttl of parts that a head with @record names. */
int64_t idem__input_ttl_ms(const struct idem_record *record);
int64_t idem__result_ttl_ms(const struct idem_record *record);

/* Decides what becomes of the bodies of task->found once task->item is written. */
void idem__lifetime_plan(struct idem__task *task);

/* The state that lets the input live as long as task->item, and after which comes
 * ACT again; NONE: it does. */
enum idem__state idem__lifetime_extend(struct idem__task *task);

/* The parts that were to be written anew are not there. Returns the next state. */
enum idem__state idem__lifetime_skip(struct idem__task *task);

/* Deletes the parts of a @body that no head names; @then is what is entered after
 * that. Returns the next state. */
enum idem__state idem__bodies_remove(struct idem__task *task, const uint8_t *id,
                                     char kind, const struct idem__body *body,
                                     enum idem__state then);

/* ---- For all of these ---- */

/* Where the op begins, once the gate is known to be open: task.c. */
enum idem__state idem__task_first(struct idem__task *task);

/* True if @body is GetItem's answer for an item that does not exist, {} (NULL) and what
 * it cost: look.c. */
bool idem__look_found_nothing(json_object *body);

/* The value under @member for this table, or NULL: look.c. */
json_object *idem__task_under_table(const struct idem__task *task,
                                    json_object *body, const char *member);

/* Reads an item of the table into task->found; see idem__layout_read(). */
int idem__task_read(struct idem__task *task, json_object *object,
                    const uint8_t *id, struct idem_error *ret_error);

/* Takes @object (NULL: none) as what is there. Returns the next state. */
enum idem__state idem__task_found(struct idem__task *task, json_object *object);

/* Encodes the head of task->item, which is to be written: write.c. False: the op
 * has failed. */
bool idem__task_encode(struct idem__task *task);

/* A write of the caller's was refused, and so nothing was done: an attempt goes on,
 * a key is free. Returns the next state. */
enum idem__state idem__task_refuse_caller_write(struct idem__task *task);

/* task->out, emptied, for the body of the next request: retry.c. */
struct idem__buffer *idem__task_out(struct idem__task *task);

/* Ends the op with an error. These return DONE. */
enum idem__state idem__task_fail(struct idem__task *task,
                                 const struct idem_error *error);
enum idem__state idem__task_fail_with(struct idem__task *task, int code,
                                      const char *text);

/* For an answer that is neither OK nor REFUSED: enters @again after a pause, or
 * ends the op. Returns the next state. */
enum idem__state idem__task_retry(struct idem__task *task,
                                  const struct idem__answer *answer,
                                  enum idem__state again);

/* Likewise, for a batch that was not done to its end. */
enum idem__state idem__task_busy(struct idem__task *task, bool progress,
                                 const char *what, enum idem__state again);

#endif
