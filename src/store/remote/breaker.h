/* Decides whether new ops go to a service that may have stopped answering. Pure.
 *
 * Without it, every claim would wait for its whole timeout while the service is away.
 * Once a number of requests in a row, over some seconds, got no valid answer, new ops are
 * refused at once, and one op at a time goes through to try whether the service is back.
 * Ops of an owner are never held back: its outcome has to be recorded, and its requests
 * are such tries, too. */
#ifndef IDEM_STORE_REMOTE_BREAKER_H
#define IDEM_STORE_REMOTE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    IDEM__BREAKER_REQUESTS = 8,     /* Failures in a row that open it ... */
    IDEM__BREAKER_AWAY_MS = 5000,   /* ... if they take at least this long. */
    IDEM__BREAKER_PAUSE_MS = 1000,  /* From one try to the next, at least. */
    IDEM__BREAKER_JITTER_MS = 1000, /* Added at random, at most. */
};

/* Zeroed: closed. Times are of one clock that never goes back, in ms. */
struct idem__breaker {
    unsigned unheard;    /* Failed requests in a row. */
    int64_t first_ms;    /* The first of them ended. */
    int64_t next_try_ms; /* Open: when a new op may go through. */
    bool open;
};

/* Called when the service has answered a request; a refusal is an answer. */
void idem__breaker_heard(struct idem__breaker *breaker);

/* Called when a request got no answer, or a 5xx. @random spreads the tries of many
 * processes. */
void idem__breaker_unheard(struct idem__breaker *breaker, int64_t now_ms,
                           uint64_t random);

/* True if a new op may go to the service. While the breaker is open, that is one op per
 * pause. */
bool idem__breaker_admits(struct idem__breaker *breaker, int64_t now_ms,
                          uint64_t random);

#endif
