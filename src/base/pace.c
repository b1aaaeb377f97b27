/* Computes the pause before a busy service is asked again. */
#include "base/pace.h"

int64_t idem__backoff(unsigned attempt, int64_t base_ms, int64_t cap_ms,
                      uint64_t random)
{
    int64_t top_ms = base_ms;

    while (attempt > 0 && top_ms < cap_ms) {
        top_ms = top_ms > cap_ms / 2 ? cap_ms : top_ms * 2;
        attempt--;
    }
    if (top_ms > cap_ms) {
        top_ms = cap_ms;
    }
    return top_ms <= 0 ? 0 : (int64_t)(random % ((uint64_t)top_ms + 1));
}
