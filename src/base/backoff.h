/* How long to wait before asking a busy service again. */
#ifndef IDEM_BASE_BACKOFF_H
#define IDEM_BASE_BACKOFF_H

#include <stdint.h>

/* Full jitter: a time drawn evenly from 0 to min(@cap_ms, @base_ms * 2^@attempt),
 * both ends included, in ms. @attempt counts from 0; @random is 64 even bits.
 * Pure, and monotone in nothing: two callers that were refused together do not
 * come back together. */
int64_t idem__backoff(unsigned attempt, int64_t base_ms, int64_t cap_ms,
                      uint64_t random);

#endif
