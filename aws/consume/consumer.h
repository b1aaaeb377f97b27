/* The inside of a consumer. */
#ifndef IDEM_AWS_CONSUME_CONSUMER_H
#define IDEM_AWS_CONSUME_CONSUMER_H

#include "aws/consume/holds.h"
#include "aws/sqs/queue.h"

enum {
    IDEM__CONSUME_RECEIVES = 4, /* At once, while there are many messages. */
    IDEM__CONSUME_CALLS = 10,
};

enum idem__consume_kind {
    IDEM__CONSUME_NONE = 0, /* The call is free. */
    IDEM__CONSUME_RECEIVE,
    IDEM__CONSUME_DELETE,
    IDEM__CONSUME_CHANGE,
};

/* A request in flight, and its messages. */
struct idem__consume_call {
    struct idem__sqs_call sqs; /* The first member. */
    enum idem__consume_kind kind;
    int64_t sent_ms;
    unsigned asked; /* RECEIVE: how many messages it requested. */
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
    int64_t room_ms;    /* When there was first room for a message; 0: none. */
    unsigned failed;    /* Receives that failed, in a row. */
    bool plenty;        /* The last receive returned as many as requested. */
    bool empty;         /* It returned none, and none will come back. */
    int64_t back_ms;    /* By then, the messages that we let go are back in the
                        queue. */
    bool paused;
    bool stopped;
    bool aborted;          /* The receives were, after the stop. */
    char attempt_id[33];   /* For the next receive from a FIFO queue. */
    struct idem_error why; /* A failure that no retry mends; code 0: none. */
    struct idem_error trouble; /* Of the last receive; code 0: none. */
};

/* ---- calls.c --------------------------------------------------------------- */

/* Sends the requests of each kind that are due now. */
void idem__consume_send(struct idem_consumer *consumer, int64_t now_ms);

/* True if idem__consume_send() would consider a receive. */
bool idem__consume_may_receive(const struct idem_consumer *consumer,
                               int64_t now_ms);

/* Takes the result of @call, and frees the call for another request. */
void idem__consume_take(struct idem_consumer *consumer,
                        struct idem__consume_call *call, int64_t now_ms);

/* Returns the number of requests of @kind in flight; NONE: of any kind. */
size_t idem__consume_under_way(const struct idem_consumer *consumer,
                               enum idem__consume_kind kind);

/* Notes that a message that we let go may be received again at @at_ms. */
void idem__consume_comes_back(struct idem_consumer *consumer, int64_t at_ms);

uint64_t idem__consume_random(struct idem_consumer *consumer);

#endif
