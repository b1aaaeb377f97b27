/* base64.h: bytes as text with the usual alphabet and padding (RFC 4648,
 * section 4), which `base64 -d` reads. */
#ifndef IDEM_CLI_BASE64_H
#define IDEM_CLI_BASE64_H

#include <idem.h>

/* The length of the text of @len bytes. */
size_t cli_base64_len(size_t len);

/* Writes that text and a NUL. */
void cli_base64(struct idem_slice bytes, char *buf);

/* Reads a text that cli_base64() writes, and no other spelling of it. @buf has
 * room for text.len / 4 * 3 bytes. */
bool cli_base64_decode(struct idem_slice text, uint8_t *buf, size_t *ret_len);

#endif
