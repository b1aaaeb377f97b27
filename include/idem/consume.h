/* idem/consume.h: messages of an SQS queue, held while they are worked on.
 *
 * A queue delivers each message at least once, and counts how often: a message that was
 * received too often goes to the dead-letter queue. A consumer holds messages for its
 * caller: it receives only as many as the caller can begin, keeps them invisible to
 * others while it holds them, and deletes them, ten at a time, once the caller reports
 * that their outcome is on record.
 *
 * Calling sequence
 * ----------------
 *
 *     idem_consumer_open(&options, &consumer, &error)
 *     |
 *     +-- idem_consumer_work(consumer, &error)     never blocks
 *     +-- idem_consumer_next(consumer)             a message to begin, or NULL
 *     |     |
 *     |     |   idem_begin(), the work, idem_complete(); then one of
 *     |     +-- idem_consumer_delete()  its outcome is on record
 *     |     +-- idem_consumer_leave()   it failed: the redrive policy decides
 *     |     +-- idem_consumer_keep()    its duplicate is in flight: again later
 *     +-- idem_consumer_wait(consumer, ms)
 *     |
 *     idem_consumer_close(consumer)
 *
 * A kept message is not received again, so the count does not rise while its duplicate
 * is at work elsewhere; if this process dies, the message comes back to the queue when
 * the lease of that duplicate is over. From a FIFO queue, next() returns a message only
 * after every earlier one of its group was deleted; if one is left, the consumer gives
 * back those after it.
 *
 * A consumer and its messages are used by one thread at a time; a foreign event loop
 * watches idem_consumer_fd() and calls work() then and at idem_consumer_due_ms(). Like
 * a DynamoDB store it reads AWS's variables and files, and may have a short-lived
 * thread while credentials are fetched.
 */
#ifndef IDEM_CONSUME_H
#define IDEM_CONSUME_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct idem_consumer;

struct idem_consumer_options {
    size_t size;        /* sizeof, set by IDEM_CONSUMER_OPTIONS_INIT. */
    const char *queue;  /* The URL or the name of the queue. */
    const char *region; /* NULL: from the URL, else from AWS's settings. */
    bool insecure;      /* Allow http:// to another machine. */
    size_t hold_max;    /* 1. Messages held at most, begun or not. */
    int64_t wait_ms;    /* 20,000. The length of a long poll, at most 20,000. */
    int64_t open_ms;    /* 10,000. How long opening may take. */
};

#define IDEM_CONSUMER_OPTIONS_INIT                                             \
    {                                                                          \
        sizeof(struct idem_consumer_options), NULL, NULL, false, 1, 20000,     \
            10000                                                              \
    }

/* The attributes of the queue when it was opened. */
struct idem_consumer_queue {
    const char *url; /* This and the other texts are valid until the consumer is
                        closed. */
    const char *region;
    int64_t visibility_ms;
    int64_t retention_ms;
    int64_t waiting;   /* Messages, about; -1: unknown. */
    int64_t in_flight; /* Messages, about; -1: unknown. */
    bool fifo;
    uint64_t max_receives;    /* 0: no dead-letter queue. */
    const char *dead_letter;  /* Its ARN; "": none. */
    bool dead_letter_missing; /* SQS says that the queue does not exist. */
};

/* Counts since the consumer was opened. */
struct idem_consumer_counters {
    size_t size; /* sizeof, set by IDEM_CONSUMER_COUNTERS_INIT. */
    uint64_t received;
    uint64_t again;   /* Of these, held already. */
    uint64_t damaged; /* Of these, with a body that does not match its MD5. */
    uint64_t deleted;
    uint64_t undeleted; /* Not deleted: they come back, and are replayed. */
    uint64_t left;
    uint64_t kept;
    uint64_t given_back; /* To the queue, without having begun. */
    uint64_t lost;       /* Returned to the queue while they were held. */
    uint64_t receives;   /* Requests to receive ... */
    uint64_t empty;      /* ... that brought no message. */
    uint64_t deletes;
    uint64_t extensions; /* Requests that changed visibilities. */
    uint64_t failures;   /* Requests of any kind that failed. */
};

#define IDEM_CONSUMER_COUNTERS_INIT                                            \
    {                                                                          \
        sizeof(struct idem_consumer_counters), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   \
            0, 0, 0, 0                                                         \
    }

/* A message. Read-only; its texts are valid until it is deleted, left, or given back by
 * idem_consumer_close(). */
struct idem_message {
    struct idem_slice id;
    struct idem_slice body;
    struct idem_slice group; /* Of a FIFO queue, else empty. */
    uint64_t receives;       /* As SQS counts them, approximately. */
    uint64_t given;          /* How often idem_consumer_next() returned it. */
    void *user;              /* For the caller. */
    int64_t sent_ms; /* When it was sent, in ms since 1970, the same in each
                        delivery; 0: the queue does not report it. For at_ms of
                        <idem/limit.h>. */
};

/* Finds the queue and reads its attributes. The caller closes *@ret_consumer.
 *
 * IDEM_EINVALID      An option is missing or out of range.
 * IDEM_ENOTFOUND     The queue does not exist.
 * IDEM_EDENIED       The credentials do not allow it.
 * IDEM_ECONFIG       No region is configured, libcurl is too old, or the endpoint is
 *                    not allowed.
 * IDEM_EUNAVAILABLE  SQS did not answer within open_ms.
 * IDEM_ENOMEM
 */
int idem_consumer_open(const struct idem_consumer_options *options,
                       struct idem_consumer **ret_consumer,
                       struct idem_error *ret_error);

/* Returns the attributes of the queue, which belong to the consumer. */
const struct idem_consumer_queue *idem_consumer_info(
    const struct idem_consumer *consumer);

/* Receives, deletes, and extends visibilities, as far as possible without waiting. It
 * returns only an error that does not pass by itself: the consumer then receives
 * nothing more, and messages that it holds may still be deleted. It only counts an
 * error that may pass, and idem_consumer_trouble() returns the reason.
 *
 * IDEM_ENOTFOUND, IDEM_EDENIED, IDEM_ECONFIG
 */
int idem_consumer_work(struct idem_consumer *consumer,
                       struct idem_error *ret_error);

/* Returns the next message to begin, oldest first; NULL if there is none now. It
 * belongs to the caller until the caller passes it to one of the next three
 * functions. */
struct idem_message *idem_consumer_next(struct idem_consumer *consumer);

/* Deletes @message, whose outcome is on record, in one request with others. */
void idem_consumer_delete(struct idem_consumer *consumer,
                          struct idem_message *message);

/* Leaves @message, whose work is not done, to the queue: it comes back after @ms
 * (negative: when its visibility ends), and the next receive counts. */
void idem_consumer_leave(struct idem_consumer *consumer,
                         struct idem_message *message, int64_t ms);

/* Keeps @message, which cannot begin yet: the consumer holds it, invisible to others
 * for @ms and a little more, and next() returns it again after @ms. This does not count
 * as a receive. */
void idem_consumer_keep(struct idem_consumer *consumer,
                        struct idem_message *message, int64_t ms);

/* Pauses or resumes receiving. Pause while no work can begin: each receive would count
 * against the messages. */
void idem_consumer_pause(struct idem_consumer *consumer, bool paused);

/* Stops receiving for good, and gives back the messages that have not begun. */
void idem_consumer_stop(struct idem_consumer *consumer);

/* Returns why the last receive failed; NULL if it did not. */
const char *idem_consumer_trouble(const struct idem_consumer *consumer);

/* Returns how many messages the consumer holds in any way, plus the requests in flight
 * that change them. After idem_consumer_stop(), 0 means that the consumer is done. */
size_t idem_consumer_busy(const struct idem_consumer *consumer);

/* True if the consumer holds nothing, the last receive brought nothing, and no message
 * that was left here is still to come back. */
bool idem_consumer_is_empty(const struct idem_consumer *consumer);

/* Reads the counts of the consumer into *@ret_counters. */
void idem_consumer_count(const struct idem_consumer *consumer,
                         struct idem_consumer_counters *ret_counters);

/* Returns a descriptor that is readable when work() has something to do. It belongs to
 * the consumer. */
int idem_consumer_fd(const struct idem_consumer *consumer);

/* Returns the time, in ms of CLOCK_MONOTONIC, at which work() or next() has something
 * to do even if the descriptor is not readable; IDEM_NEVER: nothing is due. */
int64_t idem_consumer_due_ms(const struct idem_consumer *consumer);

/* Waits until the descriptor is readable or that time has come, at most @ms. */
void idem_consumer_wait(struct idem_consumer *consumer, int64_t ms);

/* Frees the consumer without waiting, and leaves the messages that it holds as they
 * are: they come back when their visibility ends. NULL is allowed. */
void idem_consumer_close(struct idem_consumer *consumer);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
