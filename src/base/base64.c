/* Encodes and decodes base64, three bytes at a time, because bodies have megabytes.
 * libcrypto's decoder also accepts other spellings, so that one token would have many
 * texts. */
#include "base/base64.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const char usual[] = LETTERS "+/";
static const char of_urls[] = LETTERS "-_";

#define BOTH (IDEM__BASE64 | IDEM__BASE64_URL)

/* The value of each character, and the spellings that have it. A table, because no
 * processor can predict which kind of character comes next. */
static const uint8_t values[256] = {
    ['A'] = BOTH | 0,
    ['B'] = BOTH | 1,
    ['C'] = BOTH | 2,
    ['D'] = BOTH | 3,
    ['E'] = BOTH | 4,
    ['F'] = BOTH | 5,
    ['G'] = BOTH | 6,
    ['H'] = BOTH | 7,
    ['I'] = BOTH | 8,
    ['J'] = BOTH | 9,
    ['K'] = BOTH | 10,
    ['L'] = BOTH | 11,
    ['M'] = BOTH | 12,
    ['N'] = BOTH | 13,
    ['O'] = BOTH | 14,
    ['P'] = BOTH | 15,
    ['Q'] = BOTH | 16,
    ['R'] = BOTH | 17,
    ['S'] = BOTH | 18,
    ['T'] = BOTH | 19,
    ['U'] = BOTH | 20,
    ['V'] = BOTH | 21,
    ['W'] = BOTH | 22,
    ['X'] = BOTH | 23,
    ['Y'] = BOTH | 24,
    ['Z'] = BOTH | 25,
    ['a'] = BOTH | 26,
    ['b'] = BOTH | 27,
    ['c'] = BOTH | 28,
    ['d'] = BOTH | 29,
    ['e'] = BOTH | 30,
    ['f'] = BOTH | 31,
    ['g'] = BOTH | 32,
    ['h'] = BOTH | 33,
    ['i'] = BOTH | 34,
    ['j'] = BOTH | 35,
    ['k'] = BOTH | 36,
    ['l'] = BOTH | 37,
    ['m'] = BOTH | 38,
    ['n'] = BOTH | 39,
    ['o'] = BOTH | 40,
    ['p'] = BOTH | 41,
    ['q'] = BOTH | 42,
    ['r'] = BOTH | 43,
    ['s'] = BOTH | 44,
    ['t'] = BOTH | 45,
    ['u'] = BOTH | 46,
    ['v'] = BOTH | 47,
    ['w'] = BOTH | 48,
    ['x'] = BOTH | 49,
    ['y'] = BOTH | 50,
    ['z'] = BOTH | 51,
    ['0'] = BOTH | 52,
    ['1'] = BOTH | 53,
    ['2'] = BOTH | 54,
    ['3'] = BOTH | 55,
    ['4'] = BOTH | 56,
    ['5'] = BOTH | 57,
    ['6'] = BOTH | 58,
    ['7'] = BOTH | 59,
    ['8'] = BOTH | 60,
    ['9'] = BOTH | 61,
    ['+'] = IDEM__BASE64 | 62,
    ['/'] = IDEM__BASE64 | 63,
    ['-'] = IDEM__BASE64_URL | 62,
    ['_'] = IDEM__BASE64_URL | 63,
};

size_t idem__base64_len(enum idem__base64 spelling, size_t len)
{
    if (len > SIZE_MAX / 2) {
        return SIZE_MAX;
    }
    return spelling == IDEM__BASE64 ? (len + 2) / 3 * 4 : (len * 4 + 2) / 3;
}

static void write_quad(const char *letters, uint32_t bits, char *to)
{
    to[0] = letters[bits >> 18];
    to[1] = letters[bits >> 12 & 63];
    to[2] = letters[bits >> 6 & 63];
    to[3] = letters[bits & 63];
}

void idem__base64_write(enum idem__base64 spelling, struct idem_slice bytes,
                        char *to)
{
    const char *letters = spelling == IDEM__BASE64 ? usual : of_urls;
    const uint8_t *p = bytes.base;
    size_t left = bytes.len;

    for (; left >= 3; left -= 3, p += 3, to += 4) {
        write_quad(letters, (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2],
                   to);
    }
    if (left > 0) {
        uint32_t second = left == 2 ? p[1] : 0;
        char last[4];

        write_quad(letters, (uint32_t)p[0] << 16 | second << 8, last);
        memset(last + left + 1, '=', 3 - left);
        memcpy(to, last, spelling == IDEM__BASE64 ? 4 : left + 1);
    }
}

size_t idem__base64_max(size_t text_len)
{
    return text_len / 4 * 3 + text_len % 4 * 3 / 4;
}

static bool read_quad(enum idem__base64 spelling, const uint8_t *p,
                      uint32_t *ret_bits)
{
    uint32_t a = values[p[0]];
    uint32_t b = values[p[1]];
    uint32_t c = values[p[2]];
    uint32_t d = values[p[3]];

    *ret_bits = (a & 63) << 18 | (b & 63) << 12 | (c & 63) << 6 | (d & 63);
    return (a & b & c & d & spelling) != 0;
}

/* Reads the last @len characters of a text, 2 to 4 without their padding. */
static int read_last(enum idem__base64 spelling, const uint8_t *p, size_t len,
                     uint8_t *to)
{
    uint8_t quad[4] = {'A', 'A', 'A', 'A'};
    uint8_t bytes[3];
    uint32_t bits;

    memcpy(quad, p, len);
    if (!read_quad(spelling, quad, &bits) ||
        (bits & ((1u << 8 * (4 - len)) - 1)) != 0) {
        return IDEM_EINVALID;
    }
    bytes[0] = (uint8_t)(bits >> 16);
    bytes[1] = (uint8_t)(bits >> 8);
    bytes[2] = (uint8_t)bits;
    memcpy(to, bytes, len - 1);
    return 0;
}

/* Returns the length of @text without its padding; 0 for a length that no text has. */
static size_t unpadded(enum idem__base64 spelling, struct idem_slice text)
{
    const char *p = text.base;
    size_t len = text.len;

    if (spelling == IDEM__BASE64) {
        if (len % 4 != 0) {
            return 0;
        }
        len -= len > 0 && p[len - 1] == '=';
        len -= len % 4 == 3 && p[len - 1] == '=';
    }
    return len % 4 == 1 ? 0 : len;
}

int idem__base64_read(enum idem__base64 spelling, struct idem_slice text,
                      uint8_t *to, size_t *ret_len)
{
    const uint8_t *p = text.base;
    size_t left = unpadded(spelling, text);
    size_t len = idem__base64_max(left);

    if (left == 0 && text.len > 0) {
        return IDEM_EINVALID;
    }
    for (; left > 4; left -= 4, p += 4, to += 3) {
        uint32_t bits;

        if (!read_quad(spelling, p, &bits)) {
            return IDEM_EINVALID;
        }
        to[0] = (uint8_t)(bits >> 16);
        to[1] = (uint8_t)(bits >> 8);
        to[2] = (uint8_t)bits;
    }
    if (left > 0 && read_last(spelling, p, left, to) != 0) {
        return IDEM_EINVALID;
    }
    *ret_len = len;
    return 0;
}
