/* The structures that the files of the runtime share: the function, and one
 * delivery to it. */
#ifndef IDEM_AWS_LAMBDA_LAMBDA_H
#define IDEM_AWS_LAMBDA_LAMBDA_H

#include <idem/lambda.h>
#include <idem/outcome.h>
#include <idem/queue.h>

#include "key/tree.h"

#define IDEM__LAMBDA_TYPE_MAX 128 /* Bytes of an error's class, with its NUL. */
#define IDEM__LAMBDA_TEXT_MAX 1024 /* Bytes of an error's message. */

/* How a handler ended. */
enum idem__lambda_end {
    IDEM__LAMBDA_DONE = 1,
    IDEM__LAMBDA_ERROR,   /* It said so: type and text. */
    IDEM__LAMBDA_STOPPED, /* It was stopped, or died, midway; likewise. */
    IDEM__LAMBDA_SILENT,  /* It ended well, without a response; likewise. */
    IDEM__LAMBDA_USELESS, /* Done, but its response cannot be sent; likewise. */
    IDEM__LAMBDA_NOT_RUN, /* It could not be started; likewise. */
};

/* One run of a handler. call is the first member: the public functions find the
 * run by it. */
struct idem__lambda_run {
    struct idem_lambda_call call;
    enum idem__lambda_end end;
    struct idem__buffer answer;
    char type[IDEM__LAMBDA_TYPE_MAX];
    char text[IDEM__LAMBDA_TEXT_MAX];
    bool no_memory;
    bool too_long;    /* The answer: it was not kept. */
    size_t noise_len; /* Bytes that a program wrote before its answer. */
    bool nothing;     /* ERROR: the handler says that nothing happened. */
};

struct idem__lambda_hider;
struct idem__lambda_metrics;
struct idem__lambda_selects;

/* See ends.h. */
struct idem__lambda_ends {
    struct idem_queue *queue; /* NULL: nothing was sent yet. */
    struct idem__lambda_ending *first;
    struct idem__lambda_ending *last;
    size_t left_bytes; /* Of those that nobody waits for any more. */
};

struct idem_lambda {
    const struct idem_lambda_options *options;
    struct idem_outcome_table outcomes;
    struct idem_store *store;
    char *program; /* NULL: no executable. */
    idem_lambda_fn *run;
    struct idem__lambda_selects *selects;
    struct idem__lambda_metrics *metrics; /* NULL: nothing is counted. */
    struct idem__lambda_ends ends;
    struct idem__lambda_hider *hider; /* NULL: nothing was hidden yet. */

    /* This delivery. */
    const struct idem_lambda_invocation *now;
    struct idem__lambda_run work;
    struct idem__tree tree;    /* Of the event. */
    struct idem__buffer event; /* Of one record. */
    struct idem__buffer input; /* The part of it that is kept. */
    struct idem__buffer response;
    char error_type[IDEM__LAMBDA_TYPE_MAX];
    int64_t event_ms; /* When what the handler runs on happened; 0: not said. */
    int64_t
        retry_after_s; /* What HTTP is told where another try is worth it. */
    unsigned ran;
    bool warned; /* That the key is a weak one. */
};

/* How long this delivery may still take, in ms; negative: its time is over. */
int64_t idem__lambda_left_ms(const struct idem_lambda_invocation *now);

/* From now on the store has @ms for each operation, and no more than the options say:
 * a store that works in our thread, as a file does, waits so long for a lock that is
 * not ours, whatever its queue is reaped with. */
void idem__lambda_allow(const struct idem_lambda *lambda, int64_t ms);

#endif
