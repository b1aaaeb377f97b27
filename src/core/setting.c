/* Parses the values of settings: times, sizes, counts and words. */
#include <idem/setting.h>

#include "core/error.h"

#include <stdio.h>

#define SHOWN_MAX 64

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit time_units[] = {
    {"ms", 1},      {"s", 1000},     {"m", 60000},
    {"h", 3600000}, {"d", 86400000}, {NULL, 0},
};

static const struct unit size_units[] = {
    {"", 1},         {"k", 1u << 10}, {"K", 1u << 10}, {"m", 1u << 20},
    {"M", 1u << 20}, {"g", 1u << 30}, {"G", 1u << 30}, {NULL, 0},
};

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits, at least one, and refuses a number that does not fit. Moves *@text past
 * them. */
static bool take_digits(const char **text, uint64_t *ret_number)
{
    const char *p = *text;
    uint64_t number = 0;

    if (!is_digit(*p)) {
        return false;
    }
    for (; is_digit(*p); p++) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number)) {
            return false;
        }
    }
    *text = p;
    *ret_number = number;
    return true;
}

static bool read_number(const char *text, const struct unit *units,
                        uint64_t *ret_number)
{
    uint64_t number;
    const struct unit *u;

    if (!take_digits(&text, &number)) {
        return false;
    }
    for (u = units; u->name != NULL; u++) {
        if (strcmp(u->name, text) == 0) {
            return !__builtin_mul_overflow(number, u->factor, ret_number);
        }
    }
    return false;
}

static const struct unit *units_of(const struct idem_setting *setting)
{
    switch (setting->kind) {
    case IDEM_SETTING_TIME:
        return time_units;
    case IDEM_SETTING_SIZE:
        return size_units;
    case IDEM_SETTING_COUNT:
    case IDEM_SETTING_WORD:
        break;
    }
    return no_units;
}

static int64_t max_of(const struct idem_setting *setting)
{
    if (setting->max != 0) {
        return setting->max;
    }
    return setting->kind == IDEM_SETTING_TIME ? IDEM_DURATION_MAX_MS
                                              : INT64_MAX;
}

static bool read_word(const struct idem_setting *setting, const char *text,
                      int64_t *ret_value)
{
    int64_t i;

    for (i = 0; setting->words[i] != NULL; i++) {
        if (strcmp(setting->words[i], text) == 0) {
            *ret_value = setting->min + i;
            return true;
        }
    }
    return false;
}

static bool read_value(const struct idem_setting *setting, const char *text,
                       int64_t *ret_value)
{
    uint64_t number;

    if (setting->kind == IDEM_SETTING_WORD) {
        return read_word(setting, text, ret_value);
    }
    if (setting->kind == IDEM_SETTING_TIME && setting->or_never &&
        strcmp(text, "never") == 0) {
        *ret_value = IDEM_NEVER;
        return true;
    }
    if (!read_number(text, units_of(setting), &number) ||
        number < (uint64_t)setting->min || number > (uint64_t)max_of(setting)) {
        return false;
    }
    *ret_value = (int64_t)number;
    return true;
}

/* ---- The sentence of a refusal ------------------------------------------- */

/* "one of hold, rerun", or "a time from 2s to 7d, or never (500ms, ...)". */
static void say_wanted(const struct idem_setting *setting, char wanted[128])
{
    int64_t max_value = max_of(setting);
    char min[32];
    char max[32];
    size_t len;
    int i;

    switch (setting->kind) {
    case IDEM_SETTING_TIME:
        idem_setting_time(setting->min, min);
        idem_setting_time(max_value, max);
        (void)snprintf(wanted, 128,
                       "a time from %s to %s%s (500ms, 30s, 5m, 2h, 7d)", min,
                       max, setting->or_never ? ", or never" : "");
        break;
    case IDEM_SETTING_SIZE:
        (void)snprintf(wanted, 128,
                       "a number of bytes from %lld to %lld (512, 64k, 8M, 1G)",
                       (long long)setting->min, (long long)max_value);
        break;
    case IDEM_SETTING_COUNT:
        (void)snprintf(wanted, 128, "a number from %lld to %lld",
                       (long long)setting->min, (long long)max_value);
        break;
    case IDEM_SETTING_WORD:
        len = (size_t)snprintf(wanted, 128, "one of");
        for (i = 0; setting->words[i] != NULL && len < 128; i++) {
            len += (size_t)snprintf(wanted + len, 128 - len, "%s %s",
                                    i > 0 ? "," : "", setting->words[i]);
        }
        break;
    }
}

/* Escapes each byte of @text that could do harm in a terminal or a log. */
static void show(const char *text, char shown[SHOWN_MAX + 8])
{
    size_t len = 0;

    for (; *text != '\0' && len < SHOWN_MAX; text++) {
        bool plain = *text >= ' ' && *text <= '~' && *text != '\\';

        len += (size_t)snprintf(shown + len, 5, plain ? "%c" : "\\x%02x",
                                (unsigned char)*text);
    }
    (void)snprintf(shown + len, 4, "%s", *text != '\0' ? "..." : "");
}

int idem_setting_read(const struct idem_setting *setting, const char *name,
                      const char *text, int64_t *ret_value,
                      struct idem_error *ret_error)
{
    char shown[SHOWN_MAX + 8];
    char wanted[128];

    if (read_value(setting, text, ret_value)) {
        return 0;
    }
    show(text, shown);
    say_wanted(setting, wanted);
    return idem__error(ret_error, IDEM_EINVALID, "%s: \"%s\" is not %s", name,
                       shown, wanted);
}

void idem_setting_time(int64_t ms, char buf[32])
{
    static const struct unit units[] = {{"d", 86400000},
                                        {"h", 3600000},
                                        {"m", 60000},
                                        {"s", 1000}};
    size_t i;

    if (ms == IDEM_NEVER) {
        (void)snprintf(buf, 32, "never");
        return;
    }
    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        int64_t factor = (int64_t)units[i].factor;
        int64_t whole = ms / factor;

        if (whole >= 10 || (whole > 0 && ms % factor == 0)) {
            (void)snprintf(buf, 32, "%lld%s", (long long)whole, units[i].name);
            return;
        }
    }
    (void)snprintf(buf, 32, "%lldms", (long long)ms);
}
