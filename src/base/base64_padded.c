/* Base64 with padding: three bytes at a time, for bodies of megabytes. */
#include "base/base64_padded.h"

static const char alphabet[64] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void write_quad(uint8_t *to, uint32_t bits)
{
    to[0] = (uint8_t)alphabet[bits >> 18];
    to[1] = (uint8_t)alphabet[bits >> 12 & 63];
    to[2] = (uint8_t)alphabet[bits >> 6 & 63];
    to[3] = (uint8_t)alphabet[bits & 63];
}

void idem__base64_padded_add(struct idem__buffer *buffer,
                             struct idem_slice bytes)
{
    const uint8_t *p = bytes.base;
    size_t left = bytes.len;
    uint8_t *to = idem__buffer_room(buffer, bytes.len / 3 * 4 + 4);

    if (to == NULL) {
        return;
    }
    for (; left >= 3; left -= 3, p += 3, to += 4) {
        write_quad(to, (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2]);
    }
    if (left > 0) {
        uint32_t second = left == 2 ? p[1] : 0;

        write_quad(to, (uint32_t)p[0] << 16 | second << 8);
        to[3] = '=';
        if (left == 1) {
            to[2] = '=';
        }
        to += 4;
    }
    buffer->len = (size_t)(to - buffer->base);
}

/* 0 to 63, or 64 for what is no character of the alphabet. */
static uint32_t value_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') {
        return (uint32_t)(c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (uint32_t)(c - 'a') + 26;
    }
    if (c >= '0' && c <= '9') {
        return (uint32_t)(c - '0') + 52;
    }
    if (c == '+') {
        return 62;
    }
    return c == '/' ? 63 : 64;
}

static bool read_quad(const uint8_t *p, uint32_t *ret_bits)
{
    uint32_t a = value_of(p[0]);
    uint32_t b = value_of(p[1]);
    uint32_t c = value_of(p[2]);
    uint32_t d = value_of(p[3]);

    *ret_bits = a << 18 | b << 12 | c << 6 | d;
    return ((a | b | c | d) & 64) == 0;
}

/* The last four characters, of which one or two may be padding. */
static int read_last(const uint8_t *p, uint8_t *to, size_t *ret_len)
{
    uint8_t quad[4];
    uint32_t bits;
    size_t pads = 0;

    memcpy(quad, p, sizeof(quad));
    while (pads < 2 && quad[3 - pads] == '=') {
        quad[3 - pads] = 'A';
        pads++;
    }
    if (!read_quad(quad, &bits) || (bits & ((1u << 8 * pads) - 1)) != 0) {
        return IDEM_EINVALID;
    }
    to[0] = (uint8_t)(bits >> 16);
    if (pads < 2) {
        to[1] = (uint8_t)(bits >> 8);
    }
    if (pads == 0) {
        to[2] = (uint8_t)bits;
    }
    *ret_len = 3 - pads;
    return 0;
}

int idem__base64_padded_read(struct idem_slice text, uint8_t *to,
                             size_t *ret_len)
{
    const uint8_t *p = text.base;
    uint8_t *start = to;
    size_t left = text.len;
    size_t last = 0;

    if (left % 4 != 0) {
        return IDEM_EINVALID;
    }
    for (; left > 4; left -= 4, p += 4, to += 3) {
        uint32_t bits;

        if (!read_quad(p, &bits)) {
            return IDEM_EINVALID;
        }
        to[0] = (uint8_t)(bits >> 16);
        to[1] = (uint8_t)(bits >> 8);
        to[2] = (uint8_t)bits;
    }
    if (left == 4 && read_last(p, to, &last) != 0) {
        return IDEM_EINVALID;
    }
    *ret_len = (size_t)(to - start) + last;
    return 0;
}
