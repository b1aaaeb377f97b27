/* One op on its way through the table: which request comes next, and what its
 * answer means. Pure but for memory: no I/O and no clock, so that the simulator
 * runs the same code.
 *
 *     idem__task_start(task, op, now)
 *     while (task->next != IDEM__TASK_DONE)
 *         IDEM__TASK_SEND:  send task->request; when it is done
 *                           idem__task_answered(task, now)
 *         IDEM__TASK_PAUSE: after task->pause_ms, idem__task_resume(task, now)
 *     the op's answer is set: give it back, idem__task_finish(task)
 *
 * A write is decided on what was found (or on there being nothing) and is
 * conditional on just that. Refused, it shows what is there now, and that is
 * decided on anew. Whether an unanswered write was applied is found by reading,
 * never guessed: the record then holds our nonce and content, or it does not.
 */
#ifndef IDEM_AWS_DYNAMODB_TASK_TASK_H
#define IDEM_AWS_DYNAMODB_TASK_TASK_H

#include "aws/dynamodb/layout/layout.h"
#include "aws/dynamodb/layout/request.h"
#include "aws/dynamodb/task/answer.h"
#include "aws/dynamodb/task/claims.h"

enum idem__task_next {
    IDEM__TASK_SEND = 1,
    IDEM__TASK_PAUSE,
    IDEM__TASK_DONE,
};

/* Parts of bodies that no head names, as purges found them. */
struct idem__orphans {
    uint64_t found;
    uint64_t deleted;
    char first[IDEM__PART_NAME_MAX]; /* Of those that were found. */
};

/* The parts that the tasks of a store share. */
struct idem__task_env {
    struct idem__table_conf table;
    struct idem__claims *claims;
    struct idem__limit_known *limits; /* NULL: no rate limits. */
    struct idem__orphans *orphans;    /* NULL: they are not counted. */
    struct idem_host host;            /* random is used, for jitter. */
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
};

struct idem__task;

/* The place of a paused task among those that wait to send again. */
struct idem__task_turn {
    struct idem__task_turn *next; /* See base/list.h. */
    struct idem__task_turn *prev;
    struct idem__task *task; /* NULL: it does not wait. */
};

struct idem__task_turns {
    struct idem__task_turn *first;
    struct idem__task_turn *last;
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
    void (*then)(struct idem__task *task, const struct idem_now *now);
};

struct idem__task {
    const struct idem__task_env *env;
    struct idem_op *op;
    enum idem__task_next next;
    int64_t pause_ms;
    struct idem__aws_request request; /* target, body and answer_max are set. */

    /* The task's own. */
    void (*then)(struct idem__task *task, const struct idem_now *now,
                 struct idem__answer *answer);
    void (*again)(struct idem__task *task, const struct idem_now *now);
    unsigned tries;        /* In vain, in a row ... */
    unsigned tries_before; /* ... before the answer that is being looked at. */
    unsigned rounds;       /* Decisions. */
    bool ambiguous;        /* A write of ours may have been applied. */
    bool extending;        /* The write is a claim that is made to last. */
    bool transacts;        /* The write goes together with the op's writes. */
    size_t caller_write;   /* The one of these that was refused, from 1 on. */
    bool has_found;
    bool remembered; /* found is what this handle wrote, and not a reading. */
    struct idem__item found;
    struct idem__buffer found_memory;
    struct idem_decision decision;
    struct idem__item item; /* To be written. */
    struct idem__buffer head;
    struct idem__buffer written; /* A head that is on record by now. */
    struct idem_record given;
    struct idem__transfer result;
    struct idem__transfer input;
    struct idem__transfer *moving;
    void (*moved)(struct idem__task *task, const struct idem_now *now);
    bool looked_again; /* For parts that were not there. */

    /* Of lifetime.c. */
    enum idem__keep keep;
    void (*keeping)(struct idem__task *task, const struct idem_now *now);
    struct idem__body kept; /* The input, as it was written anew. */
    struct idem__body
        old_result; /* Named by nobody once the head is written. */
    struct idem__body old_input;
    struct idem__removal removal;
    bool settled; /* The op is answered; what is left to do may fail. */

    struct idem__buffer out;
    struct idem__walk *walk;       /* Of walk.c; NULL until it is needed. */
    struct idem__limiter *limiter; /* See limiter.h; likewise. */
    struct idem__scratch scratch;

    struct idem__task *link;      /* The store's. */
    struct idem__task *link_back; /* Of those that run. */
    struct idem__task_turn turn;
    int64_t due_ms; /* Paused: the clock is looked at then. */
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

/* ---- The verbs of their own: walk.c, purge.c and limit_task.c ---- */

void idem__walk_list(struct idem__task *task, const struct idem_now *now);
void idem__walk_purge(struct idem__task *task, const struct idem_now *now);
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
void idem__limit_start(struct idem__task *task, const struct idem_now *now);
void idem__limiter_free(struct idem__limiter *limiter);

/* ---- Bodies: bodies.c ---- */

/* Reads the bodies that the caller is given, before anything is written: one that
 * cannot be trusted must not cost an attempt. Then goes on to idem__task_change(),
 * or the op has failed. */
void idem__bodies_load(struct idem__task *task, const struct idem_now *now);

/* Decides where the bodies of task->item, which is to be written, go. */
void idem__bodies_place(struct idem__task *task);

/* Writes the parts beside task->item, if there are any and they are not there
 * yet. True: they are on their way, and idem__task_change() is called again
 * once they are. */
bool idem__bodies_store(struct idem__task *task, const struct idem_now *now);

/* Reads, or writes, the parts of @body; goes on to @then, or the op has failed. */
void idem__bodies_get(struct idem__task *task, struct idem__transfer *t,
                      const struct idem__body *body,
                      void (*then)(struct idem__task *task,
                                   const struct idem_now *now),
                      const struct idem_now *now);
void idem__bodies_put(struct idem__task *task, struct idem__transfer *t,
                      const struct idem__body *body,
                      void (*then)(struct idem__task *task,
                                   const struct idem_now *now),
                      const struct idem_now *now);

/* ---- Lifetime of bodies: lifetime.c ---- */

/* The ttl of parts that a head with @record names. */
int64_t idem__input_ttl_ms(const struct idem_record *record);
int64_t idem__result_ttl_ms(const struct idem_record *record);

/* Decides what becomes of the bodies of task->found once task->item is written. */
void idem__lifetime_plan(struct idem__task *task);

/* Lets the input live as long as task->item, if it would not. True: that is on its
 * way, and idem__task_change() is called again. */
bool idem__lifetime_extend(struct idem__task *task, const struct idem_now *now);

/* The parts that were to be written anew are not there. */
void idem__lifetime_skip(struct idem__task *task, const struct idem_now *now);

/* task->item is on record and the op's answer is set: does what is left, and ends
 * the op, whatever comes of that. */
void idem__lifetime_settle(struct idem__task *task, const struct idem_now *now);

/* Deletes the parts of a @body that no head names, and goes on to @then. */
void idem__bodies_remove(struct idem__task *task, const uint8_t *id, char kind,
                         const struct idem__body *body,
                         void (*then)(struct idem__task *task,
                                      const struct idem_now *now),
                         const struct idem_now *now);

/* ---- For all of these ---- */

/* Reads the record, and decides on what is there. */
void idem__task_look(struct idem__task *task, const struct idem_now *now);

/* The value under @member for this table, or NULL. */
json_object *idem__task_under_table(const struct idem__task *task,
                                    json_object *body, const char *member);

/* Does what was decided on: writes it, or answers that there is nothing to do. */
void idem__task_change(struct idem__task *task, const struct idem_now *now);

/* Reads an item of the table into task->found; see idem__item_read(). */
int idem__task_read(struct idem__task *task, json_object *object,
                    const uint8_t *id, struct idem_error *ret_error);

/* task->out, emptied, for the body of the next request. */
struct idem__buffer *idem__task_out(struct idem__task *task);

/* Sends @target with what is in task->out. */
void idem__task_send(struct idem__task *task, const char *target,
                     void (*then)(struct idem__task *task,
                                  const struct idem_now *now,
                                  struct idem__answer *answer));

/* Ends the op with an error. */
void idem__task_fail(struct idem__task *task, const struct idem_error *error);
void idem__task_fail_with(struct idem__task *task, int code, const char *text);
void idem__task_done(struct idem__task *task);

/* For an answer that is neither OK nor REFUSED: asks again after a pause with
 * again(), or ends the op. */
void idem__task_retry(struct idem__task *task,
                      const struct idem__answer *answer,
                      void (*again)(struct idem__task *task,
                                    const struct idem_now *now));

/* For a batch that was not done to its end. */
void idem__task_busy(struct idem__task *task, bool progress, const char *what,
                     void (*again)(struct idem__task *task,
                                   const struct idem_now *now));

#endif
