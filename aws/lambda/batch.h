/* A batch under way, and what Lambda is told of it. */
#ifndef IDEM_AWS_LAMBDA_BATCH_H
#define IDEM_AWS_LAMBDA_BATCH_H

#include "aws/lambda/unit.h"

#include <idem/queue.h>

enum item_state {
    ITEM_OPEN = 0,
    ITEM_DONE,    /* It ran, or is a replay: it must not come again. */
    ITEM_FAILED,  /* It is to come again. */
    ITEM_INVALID, /* Likewise, and will not get better. */
    ITEM_WAITS,   /* Likewise, after one before it in its group. */
};

/* One record. */
struct item {
    struct idem__lambda_unit unit;
    uint8_t id[IDEM_ID_LEN];
    struct idem__buffer name;  /* Lambda's name for it; empty: nothing. */
    struct idem__buffer group; /* In which it stays in order. */
    struct item *first;        /* The one before it with its key, or NULL. */
    struct idem_attempt *attempt;
    enum item_state state;
    int64_t
        hide_until_ms; /* In its queue, by the monotonic clock; 0: it is not. */
    bool paused;       /* It is to be shown just then, and not later. */
    bool ended; /* ending is its end, or NULL where it could not be sent. */
    struct idem__lambda_ending *ending;
};

struct batch {
    struct idem_lambda *lambda;
    const struct idem__lambda_rule *rule;
    struct idem_queue *queue;
    struct item *items;
    size_t len;
    struct item *last; /* The newest that ran; NULL: none. */
    bool held_up;      /* Its end was not settled while there was time. */
    size_t failures;
    size_t cut_off;
};

/* True if what became of @item is the response: where records cannot be reported
 * one by one, that is the first failure, or else the first record. */
static inline bool batch_answers(const struct batch *b, const struct item *item)
{
    return b->rule->shape == IDEM__LAMBDA_RECORDS && b->failures == 0 &&
           (item == b->items || item->state != ITEM_DONE);
}

/* Reads the records. NULL, or why the whole event cannot be handled, which may be
 * idem__batch_no_memory. */
const char *idem__batch_read(struct batch *b);
void idem__batch_free(struct batch *b);
extern const char idem__batch_no_memory[];

/* Logs @what of @item. */
void idem__batch_log(const struct batch *b, const struct item *item,
                     const char *level, const char *what);

/* Writes {"batchItemFailures": [...]} as the response. */
void idem__batch_report(struct batch *b);

/* ---- Hiding messages of SQS -------------------------------------------- */

/* Has @item hidden whose attempt in flight is another's, or that is in a pause. */
void idem__batch_hide_busy(const struct batch *b, struct item *item);

/* Has @item hidden for the pause of @ms, which may be 0, before its next attempt. */
void idem__batch_hide_pause(const struct batch *b, struct item *item,
                            int64_t ms);

/* Hides the items of @b that have a time for it, within the store's time-out and the
 * margin before the deadline. Why it could not is in the log, once. */
void idem__batch_hide(struct batch *b);

void idem__lambda_hide_finish(struct idem_lambda *lambda);

#endif
