/* Decides whether new requests go to a service that no longer answers. Pure.
 *
 * While the service is away, every claim, and its caller, would wait for the whole
 * timeout. After a number of requests in a row, over some seconds, without a sensible
 * answer, new ops are refused at once; one at a time goes through to see whether the
 * service is back. Ops of an owner are never held back: its outcome has to be recorded,
 * and its requests show, too, whether the service is back. */
#ifndef IDEM_STORE_REMOTE_BREAKER_H
#define IDEM_STORE_REMOTE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    IDEM__BREAKER_REQUESTS = 8,     /* In a row ... */
    IDEM__BREAKER_AWAY_MS = 5000,   /* ... and from the first to the last. */
    IDEM__BREAKER_PAUSE_MS = 1000,  /* At least, from one try to the next. */
    IDEM__BREAKER_JITTER_MS = 1000, /* At most, beside that. */
};

/* Zeroed: closed. Times are of one clock that never goes back, in ms. */
struct idem__breaker {
    unsigned unheard;    /* Requests in a row. */
    int64_t first_ms;    /* The first of them ended. */
    int64_t next_try_ms; /* Open: when something new may go through. */
    bool open;
};

/* A request ended with an answer that the service gave (a refusal is one). */
void idem__breaker_heard(struct idem__breaker *breaker);

/* A request ended with none, or with a 5xx. @random spreads the tries of many
 * processes. */
void idem__breaker_unheard(struct idem__breaker *breaker, int64_t now_ms,
                           uint64_t random);

/* True if a new op may go to the service. While the breaker is open, only one may
 * before the next pause is over. */
bool idem__breaker_admits(struct idem__breaker *breaker, int64_t now_ms,
                          uint64_t random);

#endif
