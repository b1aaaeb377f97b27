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

/* The value of each character of the alphabet, and KNOWN. By table, since which
 * kind of character comes next cannot be foretold. */
#define KNOWN 0x80u

static const uint8_t values[256] = {
    ['A'] = 128, ['B'] = 129, ['C'] = 130, ['D'] = 131, ['E'] = 132,
    ['F'] = 133, ['G'] = 134, ['H'] = 135, ['I'] = 136, ['J'] = 137,
    ['K'] = 138, ['L'] = 139, ['M'] = 140, ['N'] = 141, ['O'] = 142,
    ['P'] = 143, ['Q'] = 144, ['R'] = 145, ['S'] = 146, ['T'] = 147,
    ['U'] = 148, ['V'] = 149, ['W'] = 150, ['X'] = 151, ['Y'] = 152,
    ['Z'] = 153, ['a'] = 154, ['b'] = 155, ['c'] = 156, ['d'] = 157,
    ['e'] = 158, ['f'] = 159, ['g'] = 160, ['h'] = 161, ['i'] = 162,
    ['j'] = 163, ['k'] = 164, ['l'] = 165, ['m'] = 166, ['n'] = 167,
    ['o'] = 168, ['p'] = 169, ['q'] = 170, ['r'] = 171, ['s'] = 172,
    ['t'] = 173, ['u'] = 174, ['v'] = 175, ['w'] = 176, ['x'] = 177,
    ['y'] = 178, ['z'] = 179, ['0'] = 180, ['1'] = 181, ['2'] = 182,
    ['3'] = 183, ['4'] = 184, ['5'] = 185, ['6'] = 186, ['7'] = 187,
    ['8'] = 188, ['9'] = 189, ['+'] = 190, ['/'] = 191,
};

static bool read_quad(const uint8_t *p, uint32_t *ret_bits)
{
    uint32_t a = values[p[0]];
    uint32_t b = values[p[1]];
    uint32_t c = values[p[2]];
    uint32_t d = values[p[3]];

    *ret_bits = (a & 63) << 18 | (b & 63) << 12 | (c & 63) << 6 | (d & 63);
    return (a & b & c & d & KNOWN) != 0;
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
