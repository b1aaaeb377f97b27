/* How values read: bytes, times and durations as text for people. */
#include "text/text.h"

#include <time.h>

/* Returns how many bytes follow @c, the first one of a character in UTF-8; -1 if @c
 * cannot be first. The bounds are those of the second byte. They exclude overlong forms,
 * surrogates, and numbers above U+10FFFF (Unicode, table 3-7). */
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

/* The length of the character at @p, of which @left bytes are there; 0: it is
 * not UTF-8. */
static size_t utf8_len(const unsigned char *p, size_t left)
{
    unsigned char min;
    unsigned char max;
    int follow = utf8_follow(*p, &min, &max);
    int i;

    if (follow < 0 || (size_t)follow >= left) {
        return 0;
    }
    for (i = 1; i <= follow; i++) {
        if (p[i] < min || p[i] > max) {
            return 0;
        }
        min = 0x80;
        max = 0xbf;
    }
    return (size_t)follow + 1;
}

static uint32_t utf8_decode(const unsigned char *p, size_t len)
{
    uint32_t c = len == 1 ? *p : *p & (0x7fu >> len);
    size_t i;

    for (i = 1; i < len; i++) {
        c = c << 6 | (p[i] & 0x3fu);
    }
    return c;
}

/* Characters that a terminal obeys or does not draw, and spaces that look like
 * another: two keys that differ in one of these would look the same. */
static bool is_unseen(uint32_t c)
{
    static const struct {
        uint32_t from;
        uint32_t to;
    } rows[] = {
        {0x0000, 0x001f}, {0x007f, 0x00a0},    {0x00ad, 0x00ad},
        {0x034f, 0x034f}, {0x061c, 0x061c},    {0x115f, 0x1160},
        {0x1680, 0x1680}, {0x17b4, 0x17b5},    {0x180b, 0x180f},
        {0x2000, 0x200f}, {0x2028, 0x202f},    {0x205f, 0x206f},
        {0x3164, 0x3164}, {0xe000, 0xf8ff},    {0xfe00, 0xfe0f},
        {0xfeff, 0xfeff}, {0xffa0, 0xffa0},    {0xfff0, 0xfffb},
        {0xfffe, 0xffff}, {0xe0000, 0x10ffff},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (c >= rows[i].from && c <= rows[i].to) {
            return true;
        }
    }
    return false;
}

/* The length of the character at @p if it is shown as it is, else 0. */
static size_t seen_len(const unsigned char *p, size_t left)
{
    size_t len = utf8_len(p, left);

    return len > 0 && !is_unseen(utf8_decode(p, len)) ? len : 0;
}

size_t cli_escape_one(const unsigned char *p, size_t left,
                      char buf[CLI_ESCAPED_LEN + 1], size_t *ret_taken)
{
    size_t len = *p != '\\' ? seen_len(p, left) : 0;

    if (len > 0) {
        memcpy(buf, p, len);
        buf[len] = '\0';
        *ret_taken = len;
        return len;
    }
    *ret_taken = 1;
    return (size_t)snprintf(buf, CLI_ESCAPED_LEN + 1, "\\x%02x", *p);
}

void cli_print_escaped(FILE *f, struct idem_slice s)
{
    const unsigned char *bytes = s.base;
    char text[CLI_ESCAPED_LEN + 1];
    size_t taken;
    size_t i;

    for (i = 0; i < s.len; i += taken) {
        size_t len = cli_escape_one(bytes + i, s.len - i, text, &taken);

        (void)fwrite(text, 1, len, f);
    }
}

const char *cli_escape(struct idem_slice s, char *buf, size_t size)
{
    static const char more[] = "...";
    const unsigned char *bytes = s.base;
    size_t cut = 0; /* Where "..." still fits. */
    size_t len = 0;
    char text[CLI_ESCAPED_LEN + 1];
    size_t taken;
    size_t i;

    buf[0] = '\0';
    for (i = 0; i < s.len; i += taken) {
        size_t n = cli_escape_one(bytes + i, s.len - i, text, &taken);

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

/* True if @len_of accepts each character; it returns the length of one, or 0. */
static bool is_each(struct idem_slice s,
                    size_t (*len_of)(const unsigned char *p, size_t left))
{
    const unsigned char *bytes = s.base;
    size_t i = 0;

    while (i < s.len) {
        size_t len = len_of(bytes + i, s.len - i);

        if (len == 0) {
            return false;
        }
        i += len;
    }
    return true;
}

bool cli_is_seen(struct idem_slice s)
{
    return is_each(s, seen_len);
}

size_t cli_columns(const char *text)
{
    size_t columns = 0;

    for (; *text != '\0'; text++) {
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return columns;
}

static bool has_prefix(struct idem_slice s)
{
    size_t len = strlen(CLI_ESCAPED);

    return s.len >= len && memcmp(s.base, CLI_ESCAPED, len) == 0;
}

bool cli_key_is_escaped(struct idem_slice key)
{
    bool as_typed = cli_is_seen(key) &&
                    (key.len == 0 || memchr(key.base, '\\', key.len) == NULL);

    return !as_typed || has_prefix(key);
}

void cli_print_key(FILE *f, struct idem_slice key)
{
    if (cli_key_is_escaped(key)) {
        (void)fputs(CLI_ESCAPED, f);
    }
    cli_print_escaped(f, key);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

bool cli_unescape(const char *text, char *buf, size_t size, size_t *ret_len)
{
    size_t len = 0;

    while (*text != '\0') {
        int c = (unsigned char)*text;

        if (*text == '\\') {
            int high = text[1] == 'x' ? hex_digit(text[2]) : -1;
            int low = high >= 0 ? hex_digit(text[3]) : -1;

            if (low < 0) {
                return false;
            }
            c = high << 4 | low;
            text += CLI_ESCAPED_LEN - 1;
        }
        if (len == size) {
            return false;
        }
        buf[len++] = (char)c;
        text++;
    }
    *ret_len = len;
    return true;
}

bool cli_unhex(struct idem_slice text, uint8_t *buf, size_t max,
               size_t *ret_len)
{
    const char *digits = text.base;
    size_t i;

    if (text.len % 2 != 0 || text.len / 2 > max) {
        return false;
    }
    for (i = 0; i < text.len; i += 2) {
        int high = hex_digit(digits[i]);
        int low = hex_digit(digits[i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        buf[i / 2] = (uint8_t)(high << 4 | low);
    }
    *ret_len = text.len / 2;
    return true;
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

static void cli_local_time_text(int64_t ms, char buf[48])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    if (ms <= 0 || ms == IDEM_NEVER || localtime_r(&seconds, &tm) == NULL ||
        strftime(buf, 48, "%Y-%m-%d %H:%M:%S %Z", &tm) == 0) {
        cli_time_text(ms, buf);
    }
}

void cli_time_for(bool is_tty, int64_t ms, char buf[48])
{
    if (is_tty) {
        cli_local_time_text(ms, buf);
    } else {
        cli_time_text(ms, buf);
    }
}

/* Two units where the first alone would be too coarse: "3h20m", "12d". */
static void two_units(int64_t big, const char *big_name, int small,
                      const char *small_name, char buf[32])
{
    if (big < 10 && small > 0) {
        (void)snprintf(buf, 32, "%lld%s%d%s", (long long)big, big_name, small,
                       small_name);
    } else {
        (void)snprintf(buf, 32, "%lld%s", (long long)big, big_name);
    }
}

void cli_span_text(int64_t ms, char buf[32])
{
    int64_t s = ms / 1000;
    int64_t days = s / 86400;

    if (ms == IDEM_NEVER) {
        (void)snprintf(buf, 32, "never");
    } else if (s < 1) {
        (void)snprintf(buf, 32, "%lldms", (long long)ms);
    } else if (s < 10) {
        (void)snprintf(buf, 32, "%lld.%llds", (long long)s,
                       (long long)(ms % 1000 / 100));
    } else if (s < 120) {
        (void)snprintf(buf, 32, "%llds", (long long)s);
    } else if (s < 3600) {
        two_units(s / 60, "m", (int)(s % 60), "s", buf);
    } else if (days < 2) {
        two_units(s / 3600, "h", (int)(s % 3600 / 60), "m", buf);
    } else if (days < 730) {
        two_units(days, "d", (int)(s % 86400 / 3600), "h", buf);
    } else {
        two_units(days / 365, "y", (int)(days % 365), "d", buf);
    }
}

/* "3 hours", "1 day". */
static int put_unit(char *buf, size_t size, int64_t count, const char *name)
{
    return snprintf(buf, size, "%lld %s%s", (long long)count, name,
                    count == 1 ? "" : "s");
}

void cli_span_words(int64_t ms, char buf[CLI_WORDS_MAX])
{
    static const struct {
        const char *name;
        int64_t s;
    } units[] = {{"year", INT64_C(31536000)},
                 {"day", 86400},
                 {"hour", 3600},
                 {"minute", 60},
                 {"second", 1}};
    const size_t len = sizeof(units) / sizeof(units[0]);
    int64_t s = ms / 1000;
    size_t i = 0;
    int at;

    if (s < 1) {
        (void)snprintf(buf, CLI_WORDS_MAX, "less than a second");
        return;
    }
    while (s < units[i].s) {
        i++;
    }
    at = put_unit(buf, CLI_WORDS_MAX, s / units[i].s, units[i].name);
    /* Seconds beside minutes would tell a reader nothing. */
    if (s / units[i].s < 10 && i + 2 < len &&
        s % units[i].s >= units[i + 1].s) {
        buf[at++] = ' ';
        (void)put_unit(buf + at, CLI_WORDS_MAX - (size_t)at,
                       s % units[i].s / units[i + 1].s, units[i + 1].name);
    }
}

/* Returns the length of a prefix of @s that is ASCII, in steps of eight bytes. Most texts
 * are ASCII only, and need no other check but of their last bytes. */
static size_t ascii_len(struct idem_slice s)
{
    const unsigned char *bytes = s.base;
    uint64_t eight;
    size_t i;

    for (i = 0; i + sizeof(eight) <= s.len; i += sizeof(eight)) {
        memcpy(&eight, bytes + i, sizeof(eight));
        if ((eight & 0x8080808080808080u) != 0) {
            break;
        }
    }
    return i;
}

bool cli_is_utf8(struct idem_slice s)
{
    size_t ascii = ascii_len(s);

    return ascii == s.len ||
           is_each(idem_bytes((const char *)s.base + ascii, s.len - ascii),
                   utf8_len);
}
