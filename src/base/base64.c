/* URL-safe base64. libcrypto's has another alphabet, insists on padding and does
 * not refuse stray bits, so that a token would have many spellings. */
#include "base/base64.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int idem__base64_encode(struct idem_slice bytes, char *buf, size_t cap)
{
    const uint8_t *p = bytes.base;
    uint32_t bits = 0;
    unsigned held = 0;
    size_t n = 0;
    size_t i;

    if (bytes.len > SIZE_MAX / 2 || (bytes.len * 4 + 2) / 3 + 1 > cap) {
        return IDEM_EINVALID;
    }
    for (i = 0; i < bytes.len; i++) {
        bits = bits << 8 | p[i];
        for (held += 8; held >= 6; held -= 6) {
            buf[n++] = alphabet[bits >> (held - 6) & 63];
        }
    }
    if (held > 0) {
        buf[n++] = alphabet[bits << (6 - held) & 63];
    }
    buf[n] = '\0';
    return 0;
}

static int value_of(char c)
{
    const char *at = c == '\0' ? NULL : strchr(alphabet, c);

    return at == NULL ? -1 : (int)(at - alphabet);
}

int idem__base64_decode(struct idem_slice text, uint8_t *buf, size_t cap,
                        size_t *ret_len)
{
    const char *p = text.base;
    uint32_t bits = 0;
    unsigned held = 0;
    size_t n = 0;
    size_t i;

    if (text.len % 4 == 1 || text.len / 4 * 3 + text.len % 4 > cap + 1) {
        return IDEM_EINVALID;
    }
    for (i = 0; i < text.len; i++) {
        int v = value_of(p[i]);

        if (v < 0) {
            return IDEM_EINVALID;
        }
        bits = bits << 6 | (uint32_t)v;
        held += 6;
        if (held >= 8) {
            held -= 8;
            if (n == cap) {
                return IDEM_EINVALID;
            }
            buf[n++] = (uint8_t)(bits >> held);
        }
    }
    if ((bits & ((1u << held) - 1)) != 0) {
        return IDEM_EINVALID;
    }
    *ret_len = n;
    return 0;
}
