/* The inside of a consumer. */
#ifndef IDEM_AWS_CONSUME_CONSUMER_H
#define IDEM_AWS_CONSUME_CONSUMER_H

#include "aws/consume/holds.h"
#include "aws/sqs/queue.h"

enum {
    IDEM__CONSUME_RECEIVES = 4, /* At once, where there is plenty. */
    IDEM__CONSUME_CALLS = 10,
};

enum idem__consume_kind {
    IDEM__CONSUME_NONE = 0, /* The call is free. */
    IDEM__CONSUME_RECEIVE,
    IDEM__CONSUME_DELETE,
    IDEM__CONSUME_CHANGE,
};

/* A request under way, and the messages that it is about. */
struct idem__consume_call {
    struct idem__sqs_call sqs; /* The first member. */
    enum idem__consume_kind kind;
    int64_t sent_ms;
    unsigned asked; /* RECEIVE: for so many. */
    struct idem__hold *holds[IDEM__SQS_BATCH];
    unsigned serials[IDEM__SQS_BATCH];
    int64_t seconds[IDEM__SQS_BATCH];
    size_t len;
};

struct idem_consumer {
    struct idem_consumer_options options;
    struct idem_host host;
    struct idem__sqs_queue queue;
    struct idem_consumer_queue info;
    char dead_letter[256];
    struct idem__holds holds;
    struct idem__consume_call calls[IDEM__CONSUME_CALLS];
    struct idem_consumer_counters counters;

    int64_t receive_ms; /* No receive before then. */
    int64_t room_ms; /* Since when there is room for some; 0: there is none. */
    unsigned failed; /* Requests in a row. */
    bool plenty;     /* The last receive brought all that it asked for. */
    bool empty;      /* It brought nothing, and nothing will come back. */
    int64_t back_ms; /* Messages that were let go are back in the queue by
                        then. */
    bool paused;
    bool stopped;
    bool aborted;          /* The receives, after the stop. */
    char attempt_id[33];   /* Of the next receive of a FIFO queue. */
    struct idem_error why; /* A failure that persists; code 0: nothing. */
    struct idem_error trouble;
};

/* ---- calls.c --------------------------------------------------------------- */

/* Requests of each kind that are due now. */
void idem__consume_send(struct idem_consumer *consumer, int64_t now_ms);

/* True if idem__consume_send() would look whether to receive. */
bool idem__consume_may_receive(const struct idem_consumer *consumer,
                               int64_t now_ms);

/* The result of @call, which is free then. */
void idem__consume_take(struct idem_consumer *consumer,
                        struct idem__consume_call *call, int64_t now_ms);

/* Requests under way of @kind; NONE: of any kind. */
size_t idem__consume_under_way(const struct idem_consumer *consumer,
                               enum idem__consume_kind kind);

/* A message that was let go of may be received again at @at_ms. */
void idem__consume_comes_back(struct idem_consumer *consumer, int64_t at_ms);

uint64_t idem__consume_random(struct idem_consumer *consumer);

#endif
