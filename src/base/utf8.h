/* Well-formed UTF-8, as RFC 3629 has it. */
#ifndef IDEM_BASE_UTF8_H
#define IDEM_BASE_UTF8_H

#include <idem.h>

/* How many bytes the character above 0x7f at @p takes, of which @left are there; 0:
 * it is not well-formed. */
size_t idem__utf8_len(const uint8_t *p, size_t left);

/* True if all of @bytes is. */
bool idem__utf8_is(struct idem_slice bytes);

#endif
