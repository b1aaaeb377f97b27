/* pace.h: pauses before a waiter looks again, or asks a busy service again. */
#ifndef IDEM_BASE_PACE_H
#define IDEM_BASE_PACE_H

#include <stdint.h>

/* A waiter polls a store soon after its first look, and then ever less often, because a
 * thousand waiters poll a thousand times as often. */
enum {
    IDEM__PACE_MAX_MS = 250,  /* For the first five seconds, */
    IDEM__PACE_SHARE = 20,    /* then a twentieth of the time waited, */
    IDEM__PACE_LAST_MS = 1000 /* and at most. */
};

struct idem__pace {
    int64_t since_ms; /* When the wait began, by the caller's clock. */
    int64_t pause_ms; /* The next pause; doubled each time. */
};

/* Returns the pause before the next look: between half and all of what is due, chosen
 * by @random, so that many waiters do not look at once. */
static inline int64_t idem__pace_next(struct idem__pace *pace, int64_t now_ms,
                                      uint16_t random)
{
    int64_t ms = pace->pause_ms;
    int64_t longest_ms = (now_ms - pace->since_ms) / IDEM__PACE_SHARE;

    if (longest_ms < IDEM__PACE_MAX_MS) {
        longest_ms = IDEM__PACE_MAX_MS;
    } else if (longest_ms > IDEM__PACE_LAST_MS) {
        longest_ms = IDEM__PACE_LAST_MS;
    }
    pace->pause_ms = ms * 2 < longest_ms ? ms * 2 : longest_ms;
    return ms - ms * random / 131072;
}

/* Returns the pause in ms before a busy service is asked again, with full jitter: drawn
 * evenly from 0 to min(@cap_ms, @base_ms * 2^@attempt), both included. @attempt counts
 * from 0; @random is 64 even bits. Two callers that were refused together do not come
 * back together. Pure. */
int64_t idem__backoff(unsigned attempt, int64_t base_ms, int64_t cap_ms,
                      uint64_t random);

#endif
