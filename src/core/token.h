/* Encodes the credential of an attempt as a token, which is text, and decodes it. */
#ifndef IDEM_CORE_TOKEN_H
#define IDEM_CORE_TOKEN_H

#include <idem.h>

struct idem__token {
    struct idem_slice scope; /* Points into bytes. */
    struct idem_slice key;
    uint8_t nonce[16];
    uint64_t fence;
    uint8_t bytes[IDEM_SCOPE_MAX + IDEM_KEY_MAX + 64];
};

/* "idem1." and base64 of: u8 length and bytes of scope, u8 length and bytes of
 * key, nonce, fence (8 bytes), and the first 4 bytes of SHA-256 of these, which
 * catches a token that was cut or mistyped. 0 or IDEM_ENOMEM. */
int idem__token_write(const struct idem__token *token,
                      char buf[IDEM_TOKEN_MAX]);

/* 0, IDEM_EINVALID with the reason, or IDEM_ENOMEM. */
int idem__token_read(const char *text, struct idem__token *ret_token,
                     struct idem_error *ret_error);

#endif
