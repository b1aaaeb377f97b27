/* The messages that a consumer holds, and what is due for each of them. No I/O and
 * no clock: every time is CLOCK_MONOTONIC in ms, and an argument.
 *
 *     received --> WAITING --next--> GIVEN --delete--> ENDING (delete) --> freed
 *                     ^                |----leave----> ENDING (show)   --> freed
 *                     |  next          '----keep-----> KEPT
 *                     '---------------------------------'   (after its time)
 *
 * A message that is deleted no longer holds up its group; one in any other
 * state does.
 */
#ifndef IDEM_AWS_CONSUME_HOLDS_H
#define IDEM_AWS_CONSUME_HOLDS_H

#include "aws/sqs/codec.h"

#include <idem/consume.h>

enum idem__hold_state {
    IDEM__HOLD_WAITING = 1,
    IDEM__HOLD_GIVEN,
    IDEM__HOLD_KEPT,
    IDEM__HOLD_DELETING,
    IDEM__HOLD_SHOWING, /* Being made visible to others. */
};

struct idem__hold {
    struct idem_message message; /* The first member. */
    struct idem__hold *next;
    struct idem__hold *prev;
    enum idem__hold_state state;
    char *receipt;      /* With a NUL; the newest. */
    unsigned serial;    /* Of the receipt. */
    int64_t visible_ms; /* Others may receive it then. */
    int64_t need_ms;    /* KEPT: it is to stay invisible until then. */
    int64_t due_ms;     /* KEPT: when next() gives it; DELETING, SHOWING: when
                            that is to be asked for. */
    int64_t retry_ms;   /* No change of its visibility before then. */
    int64_t show_ms;    /* SHOWING: after how long. */
    bool lost;          /* It came back to the queue. */
    bool in_call;       /* A request about it is under way: it stays. */
};

struct idem__holds {
    struct idem__hold *first;
    struct idem__hold *last;
    size_t len;
    int64_t visibility_ms;
};

/* How many are in @state. */
size_t idem__holds_count(const struct idem__holds *holds,
                         enum idem__hold_state state);

/* Takes @message in, invisible to others until @visible_ms. One that is held
 * already only gets the new receipt, and *@ret_again is true. 0 or IDEM_ENOMEM. */
int idem__holds_add(struct idem__holds *holds,
                    const struct idem__sqs_message *message, int64_t visible_ms,
                    bool *ret_again);

/* Unlinks and frees. */
void idem__holds_remove(struct idem__holds *holds, struct idem__hold *hold);

/* The oldest one that may be begun, which is GIVEN then; or NULL. */
struct idem__hold *idem__holds_next(struct idem__holds *holds, int64_t now_ms);

/* The caller's word on one that is GIVEN. */
void idem__hold_delete(struct idem__hold *hold, int64_t now_ms);
void idem__hold_keep(struct idem__hold *hold, int64_t now_ms, int64_t ms,
                     int64_t jitter_ms);

/* @ms negative: nothing is asked of the queue. Returns how many after it in its
 * group are given back with it. */
size_t idem__holds_leave(struct idem__holds *holds, struct idem__hold *hold,
                         int64_t now_ms, int64_t ms);

/* Gives back all that nobody has begun; returns how many. */
size_t idem__holds_give_back(struct idem__holds *holds, int64_t now_ms);

/* Drops those that came back to the queue and that nobody has; marks those that
 * somebody has. Frees what ended without a request. Returns how many were lost. */
size_t idem__holds_sweep(struct idem__holds *holds, int64_t now_ms);

/* Those to delete now, at most IDEM__SQS_BATCH; none before there are as many or
 * the oldest has waited, unless @flush. Returns how many. */
size_t idem__holds_to_delete(struct idem__holds *holds, int64_t now_ms,
                             bool flush, struct idem__hold **ret_picked);

/* Those whose visibility is to be changed now, and to how long from now. */
size_t idem__holds_to_change(struct idem__holds *holds, int64_t now_ms,
                             struct idem__hold **ret_picked,
                             int64_t *ret_seconds);

/* When there is something to do without news; IDEM_NEVER: never. One whose turn
 * has come, and which nobody takes, does not count. */
int64_t idem__holds_due_ms(const struct idem__holds *holds, int64_t now_ms);

#endif
