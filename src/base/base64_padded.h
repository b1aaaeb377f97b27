/* Base64 with padding (RFC 4648 section 4), as JSON services carry bytes. */
#ifndef IDEM_BASE_BASE64_PADDED_H
#define IDEM_BASE_BASE64_PADDED_H

#include "base/buffer.h"

/* Appends the text of @bytes. */
void idem__base64_padded_add(struct idem__buffer *buffer,
                             struct idem_slice bytes);

/* The most bytes that @len characters can stand for. */
static inline size_t idem__base64_padded_max(size_t len)
{
    return len / 4 * 3;
}

/* Reads @text, which must be what an encoder writes: padded, no spaces, no stray
 * bits. @to has room for idem__base64_padded_max() bytes. 0 or IDEM_EINVALID. */
int idem__base64_padded_read(struct idem_slice text, uint8_t *to,
                             size_t *ret_len);

#endif
