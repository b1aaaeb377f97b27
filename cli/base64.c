/* Bytes as text, and back. */
#include "base64.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t cli_base64_len(size_t len)
{
    return (len + 2) / 3 * 4;
}

void cli_base64(struct idem_slice bytes, char *buf)
{
    const uint8_t *p = bytes.base;
    size_t i;

    for (i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t bits = (uint32_t)p[i] << 16 |
                        (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                        (left > 2 ? (uint32_t)p[i + 2] : 0);

        *buf++ = alphabet[bits >> 18];
        *buf++ = alphabet[bits >> 12 & 63];
        *buf++ = '=';
        *buf++ = '=';
        if (left > 1) {
            buf[-2] = alphabet[bits >> 6 & 63];
        }
        if (left > 2) {
            buf[-1] = alphabet[bits & 63];
        }
    }
    *buf = '\0';
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool cli_base64_decode(struct idem_slice text, uint8_t *buf, size_t *ret_len)
{
    const char *p = text.base;
    size_t len = text.len;
    uint32_t bits = 0;
    unsigned held = 0;
    size_t n = 0;
    size_t i;

    if (len % 4 != 0) {
        return false;
    }
    for (i = 0; i < 2 && len > 0 && p[len - 1] == '='; i++) {
        len--;
    }
    for (i = 0; i < len; i++) {
        int value = value_of(p[i]);

        if (value < 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            buf[n++] = (uint8_t)(bits >> held);
        }
    }
    *ret_len = n;
    /* What the last character says beyond the bytes is zero. */
    return (bits & ((1u << held) - 1)) == 0;
}
