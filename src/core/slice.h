/* Comparing slices. */
#ifndef IDEM_CORE_SLICE_H
#define IDEM_CORE_SLICE_H

#include <idem.h>

static inline bool idem__slice_equal(struct idem_slice a, struct idem_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.base, b.base, a.len) == 0);
}

#endif
