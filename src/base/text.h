/* text.h: well-formed UTF-8, and spans of time as people read them. */
#ifndef IDEM_BASE_TEXT_H
#define IDEM_BASE_TEXT_H

#include <idem.h>

/* ---- UTF-8 as RFC 3629 defines it ---------------------------------------- */

/* Returns how many of the @left bytes at @p the character there takes, which is above
 * 0x7f; 0: it is not well-formed. */
size_t idem__utf8_len(const uint8_t *p, size_t left);

/* True if @bytes is well-formed UTF-8. */
bool idem__utf8_is(struct idem_slice bytes);

/* ---- Spans of time ------------------------------------------------------- */

#define IDEM__SPAN_MAX 32

/* Writes "420 ms", "2.2 s", "43 s", "12 minutes", "3 hours", "12 days", "56 years" to
 * @buf, rounded down; a negative @ms counts as 0. */
void idem__span(int64_t ms, char buf[IDEM__SPAN_MAX]);

#endif
