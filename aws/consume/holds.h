/* The messages that a consumer holds, and what is due for each of them. No I/O and
 * no clock: every time is CLOCK_MONOTONIC in ms, and an argument.
 *
 *     received --> WAITING --next--> GIVEN --delete--> DELETING --> freed
 *                                    ^   |---leave---> SHOWING  --> freed
 *                                    |   '---keep----> KEPT
 *                                    '------next---------'   (after its time)
 *
 * A message in DELETING no longer holds up its group. A message in any other state
 * does.
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
    IDEM__HOLD_SHOWING, /* We are making it visible to others. */
};

struct idem__hold {
    struct idem_message message; /* The first member. */
    struct idem__hold *next;
    struct idem__hold *prev;
    enum idem__hold_state state;
    char *receipt;      /* The newest, with a NUL. */
    unsigned serial;    /* The number of the receipt. */
    int64_t visible_ms; /* Others may receive it from then on. */
    int64_t need_ms;    /* KEPT: it must stay invisible until then. */
    int64_t due_ms;     /* KEPT: when next() returns it. DELETING, SHOWING:
                            when the request is due. */
    int64_t retry_ms;   /* No request about it before then. */
    int64_t show_ms;    /* SHOWING: how long until it is visible. */
    bool lost;          /* It returned to the queue. */
    bool in_call;       /* In a request in flight: not to be freed. */
};

struct idem__holds {
    struct idem__hold *first;
    struct idem__hold *last;
    size_t len;
    int64_t visibility_ms;
};

/* Returns how many messages are in @state. */
size_t idem__holds_count(const struct idem__holds *holds,
                         enum idem__hold_state state);

/* Adds @message, which is invisible to others until @visible_ms. If it is held already,
 * only takes the new receipt, and sets *@ret_again. 0 or IDEM_ENOMEM. */
int idem__holds_add(struct idem__holds *holds,
                    const struct idem__sqs_message *message, int64_t visible_ms,
                    bool *ret_again);

/* Unlinks and frees @hold. */
void idem__holds_remove(struct idem__holds *holds, struct idem__hold *hold);

/* Returns the oldest message that may be begun, and makes it GIVEN; or NULL. */
struct idem__hold *idem__holds_next(struct idem__holds *holds, int64_t now_ms);

/* The decision of the caller about a message that is GIVEN. */
void idem__hold_delete(struct idem__hold *hold, int64_t now_ms);
void idem__hold_keep(struct idem__hold *hold, int64_t now_ms, int64_t ms,
                     int64_t jitter_ms);

/* Makes @hold visible again after @ms; negative: when the queue does, without a request.
 * Returns how many messages after it in its group are given back with it. */
size_t idem__holds_leave(struct idem__holds *holds, struct idem__hold *hold,
                         int64_t now_ms, int64_t ms);

/* Gives back all messages that are not GIVEN; returns how many. */
size_t idem__holds_give_back(struct idem__holds *holds, int64_t now_ms);

/* Handles the messages that have returned to the queue: marks those that are GIVEN as
 * lost, and frees the others. Also frees those that end without a request. Returns how
 * many were lost. */
size_t idem__holds_sweep(struct idem__holds *holds, int64_t now_ms);

/* Picks the messages to delete now, at most IDEM__SQS_BATCH. Unless @flush, it picks none
 * before there are that many, or the oldest has waited. Returns how many. */
size_t idem__holds_to_delete(struct idem__holds *holds, int64_t now_ms,
                             bool flush, struct idem__hold **ret_picked);

/* Picks the messages whose visibility must change now, with the seconds from now. Returns
 * how many. */
size_t idem__holds_to_change(struct idem__holds *holds, int64_t now_ms,
                             struct idem__hold **ret_picked,
                             int64_t *ret_seconds);

/* Returns when there is something to do even if nothing arrives; IDEM_NEVER: never. A
 * message that next() would return now does not count. */
int64_t idem__holds_due_ms(const struct idem__holds *holds, int64_t now_ms);

#endif
