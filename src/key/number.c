/* Writes numbers in canonical form, ours and those of other libraries.
 *
 * Ours is the exact decimal value. The other libraries round to a double: both write
 * the fewest digits that are read back as the same double, and of these the digits
 * nearest to it; they differ in where the exponent begins.
 */
#include "key/canonical.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    DIGITS_MAX = 17,
    TEXT_MAX = 512,
    ZEROS_AFTER_MAX = 21,
    ZEROS_BEFORE_MAX = 6,
};

/* The limit of 17 digits for an exponent. An exponent of more than EXPONENT_DIGITS_MAX
 * digits in the input stays above it, however many digits the number has. */
static const int64_t exponent_max = 99999999999999999;
enum {
    EXPONENT_DIGITS_MAX = 18,
};

struct digits {
    char text[DIGITS_MAX + 1];
    int len;
    int exponent; /* Of the first digit. */
};

/* ---- The decimal value ---- */

/* Returns the digits and the point before any exponent, without the sign. */
static struct idem_slice mantissa_of(struct idem_slice number)
{
    const char *p = number.base;
    size_t from = p[0] == '-';
    size_t to = from;

    while (to < number.len && p[to] != 'e' && p[to] != 'E') {
        to++;
    }
    return idem_bytes(p + from, to - from);
}

/* Reads the exponent at @p, after the "e"; none is 0. Returns false if it is too
 * long. */
static bool read_exponent(const char *p, const char *end, int64_t *ret_exponent)
{
    bool negative = p < end && *p == '-';
    int64_t value = 0;

    p += p < end && (*p == '-' || *p == '+');
    while (p < end && *p == '0') {
        p++;
    }
    if (end - p > EXPONENT_DIGITS_MAX) {
        return false;
    }
    for (; p < end; p++) {
        value = value * 10 + (*p - '0');
    }
    *ret_exponent = negative ? -value : value;
    return true;
}

static bool is_zero(char c)
{
    return c == '0' || c == '.';
}

bool idem__number_decimal(struct idem__buffer *out, struct idem_slice number)
{
    struct idem_slice mantissa = mantissa_of(number);
    const char *p = mantissa.base;
    const char *end = p + mantissa.len;
    const char *text_end = (const char *)number.base + number.len;
    const char *point = memchr(p, '.', mantissa.len);
    int64_t exponent = 0;

    while (p < end && is_zero(*p)) {
        p++;
    }
    if (p == end) {
        idem__buffer_str(out, "0");
        return true;
    }
    if (!read_exponent(end + (end < text_end), text_end, &exponent)) {
        return false;
    }
    point = point != NULL ? point : end;
    while (is_zero(end[-1])) {
        end--;
    }
    /* The exponent of the last digit. The point itself takes a place if it is before
     * that digit. */
    exponent += point - end + (point < end);
    if (exponent > exponent_max || exponent < -exponent_max) {
        return false;
    }

    idem__buffer_str(out, *(const char *)number.base == '-' ? "-" : "");
    if (p < point && point < end) {
        idem__buffer_add(out, p, (size_t)(point - p));
        p = point + 1;
    }
    idem__buffer_add(out, p, (size_t)(end - p));
    idem__buffer_str(out, exponent < 0 ? "e-" : "e");
    idem__buffer_u64(out, (uint64_t)(exponent < 0 ? -exponent : exponent));
    return true;
}

/* Inserts @before and @n zeros at byte @at. */
static void put_in(struct idem__buffer *out, size_t at, int64_t n,
                   const char *before)
{
    static const char zeros[] = "000000000000000000000";
    size_t len = strlen(before) + (size_t)n;

    if (idem__buffer_room(out, len) != NULL) {
        memmove(out->base + at + len, out->base + at, out->len - at);
        memcpy(out->base + at, before, strlen(before));
        memcpy(out->base + at + strlen(before), zeros, (size_t)n);
        out->len += len;
    }
}

bool idem__number_text(struct idem__buffer *out, struct idem_slice number)
{
    size_t from = out->len;
    int64_t exponent, digits;
    const uint8_t *mark;

    if (!idem__number_decimal(out, number) || out->failed) {
        return out->failed;
    }
    mark = memchr(out->base + from, 'e', out->len - from);
    if (mark == NULL) {
        return true; /* 0 */
    }
    from += out->base[from] == '-';
    digits = mark - out->base - (int64_t)from;
    (void)read_exponent((const char *)mark + 1,
                        (const char *)out->base + out->len, &exponent);
    if (exponent < -digits - ZEROS_BEFORE_MAX || exponent > ZEROS_AFTER_MAX) {
        return true;
    }
    out->len = from + (size_t)digits;
    if (exponent >= 0) {
        put_in(out, out->len, exponent, "");
    } else if (exponent <= -digits) {
        put_in(out, from, -exponent - digits, "0.");
    } else {
        put_in(out, out->len - (size_t)-exponent, 0, ".");
    }
    return true;
}

/* ---- Doubles ---- */

static double read_double(const char *text)
{
    /* Never freed. The C locale needs no file. Two threads may both create it, and
     * either is as good. */
    static locale_t plain;
    locale_t locale = __atomic_load_n(&plain, __ATOMIC_ACQUIRE);

    if (locale == NULL) {
        locale = newlocale(LC_ALL_MASK, "C", NULL);
        __atomic_store_n(&plain, locale, __ATOMIC_RELEASE);
    }
    return strtod_l(text, NULL, locale);
}

double idem__number_read(struct idem_slice number)
{
    char text[TEXT_MAX];
    size_t len = number.len < TEXT_MAX ? number.len : TEXT_MAX - 1;

    memcpy(text, number.base, len);
    text[len] = '\0';
    return read_double(text);
}

bool idem__number_is_integer(struct idem_slice number)
{
    const char *p = number.base;
    size_t i;

    for (i = 0; i < number.len; i++) {
        if (p[i] == '.' || p[i] == 'e' || p[i] == 'E') {
            return false;
        }
    }
    return true;
}

/* Rounds @value to @len digits. */
static void round_to(double value, int len, struct digits *ret)
{
    char text[64];
    const char *p;

    (void)snprintf(text, sizeof(text), "%.*e", len - 1, value);
    ret->len = 0;
    for (p = text; *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9') { /* Skip the point, whatever the locale
                                         writes. */
            ret->text[ret->len++] = *p;
        }
    }
    ret->exponent = (int)strtol(p + 1, NULL, 10);
}

static bool is_read_as(const struct digits *d, double value)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%.*se%d", d->len, d->text,
                   d->exponent - d->len + 1);
    return read_double(text) == value;
}

/* Adds one in the last place. Returns false if that carries out of the first digit. */
static bool step_up(struct digits *d)
{
    int i = d->len - 1;

    while (i >= 0 && d->text[i] == '9') {
        d->text[i--] = '0';
    }
    if (i < 0) {
        return false;
    }
    d->text[i]++;
    return true;
}

/* Finds the shortest digits of @value, which is finite and above 0. The doubles below a
 * power of two are twice as dense as those above, so the nearest digits may be read as
 * the double below where the next digits up are read correctly. */
static void shortest(double value, struct digits *ret)
{
    int exponent;
    bool power = frexp(value, &exponent) == 0.5;
    int len;

    for (len = 1; len <= DIGITS_MAX; len++) {
        round_to(value, len, ret);
        if (is_read_as(ret, value)) {
            return;
        }
        if (power && step_up(ret) && is_read_as(ret, value)) {
            return;
        }
    }
}

static void add_zeros(struct idem__buffer *out, int n)
{
    for (; n > 0; n--) {
        idem__buffer_str(out, "0");
    }
}

/* Appends the digits without an exponent; with @fraction, at least ".0" after the
 * point. */
static void add_plain(struct idem__buffer *out, const struct digits *d,
                      bool fraction)
{
    int whole = d->exponent + 1;
    int before = whole < 0 ? 0 : whole < d->len ? whole : d->len;

    if (whole <= 0) {
        idem__buffer_str(out, "0");
    }
    idem__buffer_add(out, d->text, (size_t)before);
    add_zeros(out, whole - d->len);
    if (before < d->len) {
        idem__buffer_str(out, ".");
        add_zeros(out, -whole);
        idem__buffer_add(out, d->text + before, (size_t)(d->len - before));
    } else if (fraction) {
        idem__buffer_str(out, ".0");
    }
}

/* Appends "d.ddde+n", whose exponent has at least @width digits. */
static void add_power(struct idem__buffer *out, const struct digits *d,
                      int width)
{
    char text[16];
    int n = d->exponent < 0 ? -d->exponent : d->exponent;

    idem__buffer_add(out, d->text, 1);
    if (d->len > 1) {
        idem__buffer_str(out, ".");
        idem__buffer_add(out, d->text + 1, (size_t)d->len - 1);
    }
    (void)snprintf(text, sizeof(text), "e%c%0*d", d->exponent < 0 ? '-' : '+',
                   width, n);
    idem__buffer_str(out, text);
}

void idem__number_python(struct idem__buffer *out, double value)
{
    struct digits d = {"0", 1, 0};

    if (signbit(value)) {
        idem__buffer_str(out, "-");
    }
    if (isinf(value)) {
        idem__buffer_str(out, "Infinity");
        return;
    }
    if (value != 0) {
        shortest(fabs(value), &d);
    }
    if (d.exponent >= -4 && d.exponent < 16) {
        add_plain(out, &d, /* fraction= */ true);
    } else {
        add_power(out, &d, /* width= */ 2);
    }
}

void idem__number_javascript(struct idem__buffer *out, double value)
{
    struct digits d = {"0", 1, 0};

    if (isinf(value)) {
        idem__buffer_str(out, "null");
        return;
    }
    if (value < 0) {
        idem__buffer_str(out, "-");
    }
    if (value != 0) {
        shortest(fabs(value), &d);
    }
    if (d.exponent >= -6 && d.exponent < 21) {
        add_plain(out, &d, /* fraction= */ false);
    } else {
        add_power(out, &d, /* width= */ 1);
    }
}
