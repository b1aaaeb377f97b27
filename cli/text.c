/* How values read: bytes, times and durations as text for people. */
#include "text.h"

#include <time.h>

/* One byte as text in @buf. The backslash is escaped too, so that no two keys
 * look the same. Returns the length. */
static size_t escape_byte(unsigned char c, char buf[5])
{
    if (c >= ' ' && c <= '~' && c != '\\') {
        buf[0] = (char)c;
        buf[1] = '\0';
        return 1;
    }
    return (size_t)snprintf(buf, 5, "\\x%02x", c);
}

void cli_print_escaped(FILE *f, struct idem_slice s)
{
    const unsigned char *bytes = s.base;
    char text[5];
    size_t i;

    for (i = 0; i < s.len; i++) {
        (void)fwrite(text, 1, escape_byte(bytes[i], text), f);
    }
}

const char *cli_escape(struct idem_slice s, char *buf, size_t size)
{
    static const char more[] = "...";
    const unsigned char *bytes = s.base;
    size_t cut = 0; /* Where "..." still fits. */
    size_t len = 0;
    char text[5];
    size_t i;

    buf[0] = '\0';
    for (i = 0; i < s.len; i++) {
        size_t n = escape_byte(bytes[i], text);

        if (len + n + 1 > size) {
            memcpy(buf + cut, more, sizeof(more));
            break;
        }
        memcpy(buf + len, text, n + 1);
        len += n;
        if (len + sizeof(more) <= size) {
            cut = len;
        }
    }
    return buf;
}

void cli_hex(struct idem_slice s, char *buf)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *bytes = s.base;
    size_t i;

    for (i = 0; i < s.len; i++) {
        buf[2 * i] = digits[bytes[i] >> 4];
        buf[2 * i + 1] = digits[bytes[i] & 15];
    }
    buf[2 * s.len] = '\0';
}

void cli_time_text(int64_t ms, char buf[32])
{
    time_t seconds = (time_t)(ms / 1000);
    char date[24];
    struct tm tm;

    if (ms == IDEM_NEVER || ms == 0) {
        (void)snprintf(buf, 32, ms == 0 ? "-" : "never");
        return;
    }
    if (ms < 0 || gmtime_r(&seconds, &tm) == NULL ||
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        (void)snprintf(buf, 32, "%lldms", (long long)ms);
        return;
    }
    (void)snprintf(buf, 32, "%s.%03dZ", date, (int)(ms % 1000));
}

void cli_duration_text(int64_t ms, char buf[32])
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}};
    size_t i;

    if (ms == IDEM_NEVER) {
        (void)snprintf(buf, 32, "never");
        return;
    }
    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        int64_t whole = ms / units[i].ms;
        bool exact = whole > 0 && ms % units[i].ms == 0;

        if (whole >= 10 || exact) {
            (void)snprintf(buf, 32, "%lld%s", (long long)whole, units[i].name);
            return;
        }
    }
    (void)snprintf(buf, 32, "%lldms", (long long)ms);
}

/* How many bytes follow the first one of a character in UTF-8, and the bounds
 * of the first of those: they keep out what is overlong, surrogate or too large
 * (Unicode, table 3-7). -1 if @c cannot be first. */
static int utf8_follow(unsigned char c, unsigned char *ret_min,
                       unsigned char *ret_max)
{
    *ret_min = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    *ret_max = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (c < 0x80) {
        return 0;
    }
    if (c >= 0xc2 && c <= 0xdf) {
        return 1;
    }
    if (c >= 0xe0 && c <= 0xef) {
        return 2;
    }
    return c >= 0xf0 && c <= 0xf4 ? 3 : -1;
}

bool cli_is_utf8(struct idem_slice s)
{
    const unsigned char *p = s.base;
    size_t left = s.len;
    unsigned char min;
    unsigned char max;

    while (left > 0) {
        int follow = utf8_follow(*p++, &min, &max);

        if (follow < 0 || (size_t)follow > --left) {
            return false;
        }
        left -= (size_t)follow;
        for (; follow > 0; follow--, p++) {
            if (*p < min || *p > max) {
                return false;
            }
            min = 0x80;
            max = 0xbf;
        }
    }
    return true;
}
