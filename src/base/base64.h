/* URL-safe base64 without padding (RFC 4648 section 5). */
#ifndef IDEM_BASE_BASE64_H
#define IDEM_BASE_BASE64_H

#include <idem.h>

/* Writes the text of @bytes with a NUL; @cap counts the NUL. 0, or IDEM_EINVALID
 * when it does not fit. */
int idem__base64_encode(struct idem_slice bytes, char *buf, size_t cap);

/* Reads @text, which must be what the encoder writes: no padding, no spaces, no
 * stray bits. 0, or IDEM_EINVALID for that and when it does not fit. */
int idem__base64_decode(struct idem_slice text, uint8_t *buf, size_t cap,
                        size_t *ret_len);

#endif
