/* Implements a circuit breaker for a service that does not answer. */
#include "store/remote/breaker.h"

void idem__breaker_heard(struct idem__breaker *breaker)
{
    breaker->unheard = 0;
    breaker->open = false;
}

static int64_t next_try_ms(int64_t now_ms, uint64_t random)
{
    return now_ms + IDEM__BREAKER_PAUSE_MS +
           (int64_t)(random % (IDEM__BREAKER_JITTER_MS + 1));
}

void idem__breaker_unheard(struct idem__breaker *breaker, int64_t now_ms,
                           uint64_t random)
{
    if (breaker->unheard == 0) {
        breaker->first_ms = now_ms;
    }
    if (breaker->unheard < IDEM__BREAKER_REQUESTS) {
        breaker->unheard++;
    }
    /* Requests that run in parallel may all fail at one moment, so their number alone
     * does not show that the service is away. */
    if (!breaker->open && breaker->unheard == IDEM__BREAKER_REQUESTS &&
        now_ms - breaker->first_ms >= IDEM__BREAKER_AWAY_MS) {
        breaker->open = true;
        breaker->next_try_ms = next_try_ms(now_ms, random);
    }
}

bool idem__breaker_admits(struct idem__breaker *breaker, int64_t now_ms,
                          uint64_t random)
{
    if (!breaker->open) {
        return true;
    }
    if (now_ms < breaker->next_try_ms) {
        return false;
    }
    /* This op is the try: keep the others away until the next pause is over. */
    breaker->next_try_ms = next_try_ms(now_ms, random);
    return true;
}
