/* One request with its answer, and the options and counters of the client that sends
 * it. aws/client/transport.h describes the life of a request. */
#ifndef IDEM_AWS_CLIENT_REQUEST_H
#define IDEM_AWS_CLIENT_REQUEST_H

#include "aws/client/credentials.h"
#include "aws/client/endpoint.h"

enum idem__aws_outcome {
    IDEM__AWS_NOT_SENT = 1,
    IDEM__AWS_NO_ANSWER,
    IDEM__AWS_ANSWERED,
};

/* The limit of an answer in bytes if the request sets none: a little more than DynamoDB
 * ever returns. */
#define IDEM__AWS_ANSWER_MAX ((size_t)17 << 20)

/* One POST. Zero it, set the first part, submit it; it must not move or change until it
 * is reaped. If it is submitted again, it reuses the memory of its answer, which
 * idem__aws_request_finish() frees. */
struct idem__aws_request {
    /* The caller's. */
    const struct idem__aws_endpoint *endpoint; /* Kept until it is done. */
    const char *target;       /* x-amz-target; NULL: none. Kept. */
    const char *content_type; /* NULL: application/x-amz-json-1.0. Kept. */
    struct idem_slice body;   /* Kept, not copied. */
    int64_t deadline_ms;      /* CLOCK_MONOTONIC. */
    size_t answer_max;        /* 0: IDEM__AWS_ANSWER_MAX. */
    bool once;                /* Never send a second copy; see transport.h. */
    void *user;

    /* The answer. */
    enum idem__aws_outcome outcome;
    struct idem_error error; /* code 0: ANSWERED. NOT_SENT: IDEM_EUNAVAILABLE;
                                or IDEM_ECONFIG, IDEM_EINVALID, IDEM_ENOMEM if
                                the request could not be made.
                                NO_ANSWER: IDEM_EUNKNOWN, or IDEM_ENOMEM if
                                the memory for the answer ran out. */
    int status;              /* 0: none. */
    uint8_t *answer;         /* The body; without a NUL after it. */
    size_t answer_len;
    char error_type[128]; /* x-amzn-ErrorType; "": none. */
    char request_id[80];  /* x-amzn-RequestId; "": none. */
    bool has_crc32;       /* x-amz-crc32 was there (and right, if ANSWERED). */
    unsigned sends;       /* Copies handed to a connection. */
    bool signed_anew;     /* See 2. in transport.h. */
    bool timed_out;       /* The deadline ended it. */

    /* The client's own. */
    struct idem__aws_request *next;
    struct idem__aws_request *prev;
    struct idem__aws_slot *slot;
    size_t answer_cap;
    uint64_t serial; /* Of the credentials that signed it. */
    int64_t submitted_ms;
    int state;
};

struct idem__aws_options {
    struct idem__aws_provider *provider; /* Kept; not closed by the client. */
    struct idem_host host;  /* Only clock is used; NULL: the system's. */
    size_t connections_max; /* Requests in flight; others wait their turn.
                                    0: 32. */
    int64_t connect_ms;     /* At most, for a connection with TLS; 0: 3,000. */
    int64_t idle_ms;        /* A connection that was idle for longer is not
                                    used again; 0: 20,000. */
    const char *ca_file;    /* NULL: the system's. AWS_CA_BUNDLE goes here. */
};

/* Counters since the client was opened, for people and tests. */
struct idem__aws_counters {
    uint64_t requests;    /* Done. */
    uint64_t sends;       /* Copies handed to a connection. */
    uint64_t connections; /* Opened. */
    uint64_t signed_anew;
    uint64_t not_sent;
    uint64_t no_answer;
};

#endif
