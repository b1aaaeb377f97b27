/* Base64 in the two spellings of RFC 4648 that idem uses. Each byte string has exactly
 * one text; the reader refuses spaces, stray bits and other padding. */
#ifndef IDEM_BASE_BASE64_H
#define IDEM_BASE_BASE64_H

#include <idem.h>

enum idem__base64 {
    IDEM__BASE64 = 0x80,     /* Section 4: "+" and "/", padded with "=". */
    IDEM__BASE64_URL = 0x40, /* Section 5: "-" and "_", without padding. */
};

/* Returns the length of the text of @len bytes; SIZE_MAX if that would overflow. */
size_t idem__base64_len(enum idem__base64 spelling, size_t len);

/* Writes the text of @bytes, idem__base64_len() characters without a NUL. */
void idem__base64_write(enum idem__base64 spelling, struct idem_slice bytes,
                        char *to);

/* Returns the largest number of bytes that @text_len characters can represent. */
size_t idem__base64_max(size_t text_len);

/* Reads @text into @to, which has room for idem__base64_max() bytes. Returns 0, or
 * IDEM_EINVALID if it is not the text of any bytes; @to may have changed then. */
int idem__base64_read(enum idem__base64 spelling, struct idem_slice text,
                      uint8_t *to, size_t *ret_len);

#endif
