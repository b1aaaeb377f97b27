/* The pace of a waiter that looks again and again: soon after the first look, and
 * ever later, for a thousand waiters are a thousand looks. */
#ifndef IDEM_BASE_PACE_H
#define IDEM_BASE_PACE_H

#include <stdint.h>

enum {
    IDEM__PACE_MAX_MS = 250,  /* For the first five seconds; */
    IDEM__PACE_SHARE = 20,    /* then a twentieth of the time waited, */
    IDEM__PACE_LAST_MS = 1000 /* and at most. */
};

struct idem__pace {
    int64_t since_ms; /* Of the caller's clock, when the wait began. */
    int64_t pause_ms; /* The next pause; doubled by each. */
};

/* The pause before the next look: between half and all of what is due, as @random
 * has it, so that many waiters do not come at once. */
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

#endif
