/* A batch in progress, and the report of it to Lambda. */
#ifndef IDEM_AWS_LAMBDA_BATCH_H
#define IDEM_AWS_LAMBDA_BATCH_H

#include "aws/lambda/unit.h"

#include <idem/queue.h>

enum item_state {
    ITEM_OPEN = 0,
    ITEM_DONE,    /* It ran, or is a replay: it must not come again. */
    ITEM_FAILED,  /* It must come again. */
    ITEM_INVALID, /* It comes again, but will never succeed. */
    ITEM_WAITS,   /* It must come again, after one before it in its group. */
};

/* One record. */
struct item {
    struct idem__lambda_unit unit;
    uint8_t id[IDEM_ID_LEN];
    struct idem__buffer name;  /* Lambda's name for it; empty: none. */
    struct idem__buffer group; /* In which it must stay in order. */
    struct item *first;        /* The first record of its key, or NULL. */
    struct idem_attempt *attempt;
    enum item_state state;
    int64_t
        hide_until_ms; /* Hide it in its queue; monotonic clock; 0: do not. */
    bool paused;       /* Show it just then, even if the queue is later. */
    bool ended;        /* ending is its end; NULL: that could not be sent. */
    struct idem__lambda_ending *ending;
};

struct batch {
    struct idem_lambda *lambda;
    const struct idem__lambda_rule *rule;
    struct idem_queue *queue;
    struct item *items;
    size_t len;
    struct item *last; /* The newest that ran; NULL: none. */
    bool held_up;      /* The end of last was not settled in time. */
    size_t failures;
    size_t cut_off;
};

/* True if the result of @item is the response. If records cannot be reported one by one,
 * that is the result of the first failure, or else of the first record. */
static inline bool batch_answers(const struct batch *b, const struct item *item)
{
    return b->rule->shape == IDEM__LAMBDA_RECORDS && b->failures == 0 &&
           (item == b->items || item->state != ITEM_DONE);
}

/* Reads the records. Returns NULL, or why the whole event cannot be handled, which may be
 * idem__batch_no_memory. */
const char *idem__batch_read(struct batch *b);
void idem__batch_free(struct batch *b);
extern const char idem__batch_no_memory[];

/* Logs the message @what about @item. */
void idem__batch_log(const struct batch *b, const struct item *item,
                     const char *level, const char *what);

/* Writes {"batchItemFailures": [...]} as the response. */
void idem__batch_report(struct batch *b);

/* ---- Hiding messages of SQS -------------------------------------------- */

/* Has @item hidden, because another delivery is working on it, or it is in a pause. */
void idem__batch_hide_busy(const struct batch *b, struct item *item);

/* Has @item hidden for the pause of @ms, which may be 0, before its next attempt. */
void idem__batch_hide_pause(const struct batch *b, struct item *item,
                            int64_t ms);

/* Hides the items of @b that have a time for it, within the store's time-out and the
 * margin before the deadline. Logs once why it could not. */
void idem__batch_hide(struct batch *b);

void idem__lambda_hide_finish(struct idem_lambda *lambda);

#endif
