/* Spans of time as people read them. */
#ifndef IDEM_BASE_SPAN_H
#define IDEM_BASE_SPAN_H

#include <stdint.h>

#define IDEM__SPAN_MAX 32

/* "420 ms", "2.2 s", "43 s", "12 minutes", "3 hours", "12 days", "56 years" in
 * @buf, rounded down; less than nothing is nothing. */
void idem__span(int64_t ms, char buf[IDEM__SPAN_MAX]);

#endif
