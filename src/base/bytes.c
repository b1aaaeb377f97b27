/* Implements buffers that grow, UTF-8, decimal numbers, and spans of time for
 * people. */
#include "base/bytes.h"

#include "base/base64.h"
#include "base/heap.h"

#include <stddef.h>
#include <stdio.h>

enum {
    FIRST_CAP = 512
};

uint8_t *idem__buffer_room(struct idem__buffer *buffer, size_t more)
{
    size_t cap = buffer->cap < FIRST_CAP ? FIRST_CAP : buffer->cap;
    uint8_t *grown;

    if (buffer->failed || more > SIZE_MAX / 4 - buffer->len) {
        buffer->failed = true;
        return NULL;
    }
    if (buffer->cap - buffer->len >= more && buffer->base != NULL) {
        return buffer->base + buffer->len;
    }
    while (cap - buffer->len < more) {
        cap *= 2;
    }
    grown = idem__realloc(buffer->base, cap);
    if (grown == NULL) {
        buffer->failed = true;
        return NULL;
    }
    buffer->base = grown;
    buffer->cap = cap;
    return buffer->base + buffer->len;
}

void idem__buffer_u64(struct idem__buffer *buffer, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    idem__buffer_add(buffer, digits + at, sizeof(digits) - at);
}

void idem__buffer_base64(struct idem__buffer *buffer, struct idem_slice bytes)
{
    size_t len = idem__base64_len(IDEM__BASE64, bytes.len);
    uint8_t *to = idem__buffer_room(buffer, len);

    if (to != NULL) {
        idem__base64_write(IDEM__BASE64, bytes, (char *)to);
        buffer->len += len;
    }
}

void idem__buffer_reset(struct idem__buffer *buffer, size_t keep)
{
    if (buffer->cap > keep) {
        idem__buffer_free(buffer);
    }
    buffer->len = 0;
    buffer->failed = false;
}

void idem__buffer_free(struct idem__buffer *buffer)
{
    idem__free(buffer->base);
    memset(buffer, 0, sizeof(*buffer));
}

/* ---- UTF-8, and spans of time ---- */

size_t idem__utf8_len(const uint8_t *p, size_t left)
{
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    size_t i;

    if (p[0] < 0xc2 || p[0] > 0xf4 || left < n) {
        return 0;
    }
    for (i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) {
        return 0;
    }
    return n;
}

bool idem__utf8_is(struct idem_slice bytes)
{
    const uint8_t *p = bytes.base;
    size_t i = 0;

    while (i < bytes.len) {
        size_t n = p[i] < 0x80 ? 1 : idem__utf8_len(p + i, bytes.len - i);

        if (n == 0) {
            return false;
        }
        i += n;
    }
    return true;
}

size_t idem__json_plain_len(const uint8_t *p, size_t len)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t n = 0;

    /* Check eight bytes at a time: a byte that is not plain sets a top bit in one of
     * these terms. */
    for (; len - n >= sizeof(uint64_t); n += sizeof(uint64_t)) {
        uint64_t bytes;

        memcpy(&bytes, p + n, sizeof(bytes));
        if (((bytes | (bytes - ones * ' ') | ((bytes ^ ones * '"') - ones) |
              ((bytes ^ ones * '\\') - ones) | ((bytes ^ ones * 0x7f) - ones)) &
             ones << 7) != 0) {
            break;
        }
    }
    while (n < len && p[n] >= ' ' && p[n] <= '~' && p[n] != '"' &&
           p[n] != '\\') {
        n++;
    }
    return n;
}

bool idem__digits(struct idem_slice text, uint64_t max, uint64_t *ret_number)
{
    const char *p = text.base;
    uint64_t number = 0;
    size_t i;

    for (i = 0; i < text.len; i++) {
        if (p[i] < '0' || p[i] > '9' || number > max / 10) {
            return false;
        }
        number = number * 10 + (uint64_t)(p[i] - '0');
    }
    if (text.len == 0 || number > max) {
        return false;
    }
    *ret_number = number;
    return true;
}

static void in_seconds(int64_t ms, char buf[IDEM__SPAN_MAX])
{
    int64_t tenth = ms / 100 % 10;

    if (ms < 1000) {
        (void)snprintf(buf, IDEM__SPAN_MAX, "%lld ms", (long long)ms);
    } else if (ms < 10000 && tenth > 0) {
        (void)snprintf(buf, IDEM__SPAN_MAX, "%lld.%lld s", (long long)ms / 1000,
                       (long long)tenth);
    } else {
        (void)snprintf(buf, IDEM__SPAN_MAX, "%lld s", (long long)ms / 1000);
    }
}

void idem__span(int64_t ms, char buf[IDEM__SPAN_MAX])
{
    /* A unit is used from two of it on: so no unit needs a singular, and rounding down
     * hides less than half. */
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {
        {"years", 365 * INT64_C(86400000)},
        {"days", INT64_C(86400000)},
        {"hours", 3600000},
        {"minutes", 60000},
    };
    size_t i;

    ms = ms < 0 ? 0 : ms;
    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (ms >= 2 * units[i].ms) {
            (void)snprintf(buf, IDEM__SPAN_MAX, "%lld %s",
                           (long long)(ms / units[i].ms), units[i].name);
            return;
        }
    }
    in_seconds(ms, buf);
}
