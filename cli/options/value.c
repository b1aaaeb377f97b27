/* The values of options: converted, and lists of statuses. */
#include "options/value.h"

#include "options/command.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <ctype.h>
#include <stdlib.h>

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit time_units[] = {
    {"ms", 1},      {"s", 1000},     {"m", 60000},
    {"h", 3600000}, {"d", 86400000}, {NULL, 0},
};

static const struct unit size_units[] = {
    {"", 1},         {"k", 1u << 10}, {"K", 1u << 10},
    {"M", 1u << 20}, {"G", 1u << 30}, {NULL, 0},
};

static const struct unit no_units[] = {
    {"", 1},
    {NULL, 0},
};

/* Digits, at least one, and nothing that does not fit. Moves *@text past it. */
static bool take_digits(const char **text, uint64_t *ret_number)
{
    const char *p = *text;
    uint64_t number = 0;

    if (!isdigit((unsigned char)*p)) {
        return false;
    }
    for (; isdigit((unsigned char)*p); p++) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number)) {
            return false;
        }
    }
    *text = p;
    *ret_number = number;
    return true;
}

static bool parse_number(const char *text, const struct unit *units,
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

static int64_t max_of(const struct cli_option *option)
{
    if (option->max != 0) {
        return option->max;
    }
    return option->kind == CLI_DURATION ? IDEM_DURATION_MAX_MS : INT64_MAX;
}

static bool in_range(const struct cli_option *option, uint64_t number)
{
    uint64_t min = (uint64_t)(option->min < 0 ? -option->min : option->min);

    return number >= min && number <= (uint64_t)max_of(option);
}

static int refuse(const struct cli_command *command,
                  const struct cli_option *option, const char *text,
                  const char *wanted)
{
    char shown[128];

    /* Variables are set as options are. */
    return cli_usage(command, "%s%s: \"%s\" is not %s",
                     isupper((unsigned char)option->name[0]) ? "" : "--",
                     option->name,
                     cli_escape(idem_str(text), shown, sizeof(shown)), wanted);
}

static int set_text(const struct cli_command *command,
                    const struct cli_option *option, const char *text)
{
    if (*text == '\0' && option->kind == CLI_TEXT) {
        return cli_usage(command, "--%s: %s must not be empty", option->name,
                         option->arg);
    }
    if (option->max != 0 && strlen(text) > (uint64_t)option->max) {
        return cli_usage(command, "--%s: %s has at most %lld bytes, not %zu",
                         option->name, option->arg, (long long)option->max,
                         strlen(text));
    }
    *(const char **)option->target = text;
    return 0;
}

static int set_duration(const struct cli_command *command,
                        const struct cli_option *option, const char *text)
{
    bool or_never = option->min < 0;
    char wanted[128];
    char min[32];
    char max[32];
    uint64_t ms;

    if (or_never && strcmp(text, "never") == 0) {
        *(int64_t *)option->target = IDEM_NEVER;
        return 0;
    }
    if (parse_number(text, time_units, &ms) && in_range(option, ms)) {
        *(int64_t *)option->target = (int64_t)ms;
        return 0;
    }
    cli_duration_text(or_never ? -option->min : option->min, min);
    cli_duration_text(max_of(option), max);
    (void)snprintf(wanted, sizeof(wanted),
                   "a time from %s to %s%s (500ms, 30s, 5m, 2h, 7d)", min, max,
                   or_never ? ", or never" : "");
    return refuse(command, option, text, wanted);
}

static int set_number(const struct cli_command *command,
                      const struct cli_option *option, const char *text)
{
    bool is_size = option->kind == CLI_SIZE;
    char wanted[128];
    uint64_t number;

    if (parse_number(text, is_size ? size_units : no_units, &number) &&
        in_range(option, number)) {
        *(uint64_t *)option->target = number;
        return 0;
    }
    (void)snprintf(wanted, sizeof(wanted), "a %s from %lld to %lld%s",
                   is_size ? "number of bytes" : "number",
                   (long long)option->min, (long long)max_of(option),
                   is_size ? " (512, 64k, 8M, 1G)" : "");
    return refuse(command, option, text, wanted);
}

static int set_choice(const struct cli_command *command,
                      const struct cli_option *option, const char *text)
{
    char wanted[128] = "one of";
    size_t len = strlen(wanted);
    int i;

    for (i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], text) == 0) {
            *(int *)option->target = i;
            return 0;
        }
        len += (size_t)snprintf(wanted + len, sizeof(wanted) - len, "%s %s",
                                i > 0 ? "," : "", option->choices[i]);
    }
    return refuse(command, option, text, wanted);
}

int cli_set_value(const struct cli_command *command,
                  const struct cli_option *option, const char *text)
{
    switch (option->kind) {
    case CLI_FLAG:
        break; /* Takes no value. */
    case CLI_TEXT:
    case CLI_ANY_TEXT:
        return set_text(command, option, text);
    case CLI_DURATION:
        return set_duration(command, option, text);
    case CLI_COUNT:
    case CLI_SIZE:
        return set_number(command, option, text);
    case CLI_CHOICE:
        return set_choice(command, option, text);
    }
    return CLI_INTERNAL;
}

/* ---- Statuses of records ------------------------------------------------- */

static const enum idem_status all_statuses[] = {
    IDEM_STATUS_IN_PROGRESS, IDEM_STATUS_COMPLETED, IDEM_STATUS_FAILED,
    IDEM_STATUS_UNKNOWN,     IDEM_STATUS_RELEASED,  IDEM_STATUS_RETRY};

#define ALL_STATUSES_LEN (sizeof(all_statuses) / sizeof(all_statuses[0]))

/* The bit of the status whose name is the @len bytes at @name; 0 if none. */
static unsigned status_bit(const char *name, size_t len)
{
    size_t i;

    for (i = 0; i < ALL_STATUSES_LEN; i++) {
        const char *known = idem_status_name(all_statuses[i]);

        if (strlen(known) == len && memcmp(known, name, len) == 0) {
            return 1u << all_statuses[i];
        }
    }
    return 0;
}

int cli_statuses(const struct cli_command *command, const char *text,
                 unsigned *ret_statuses)
{
    const char *p = text;
    unsigned bits = 0;

    while (p != NULL) {
        size_t len = strcspn(p, ",");
        unsigned bit = status_bit(p, len);
        char shown[64];

        if (bit == 0) {
            return cli_usage(
                command,
                "--status: \"%s\" is not one of in_progress, completed, "
                "failed, unknown, released, retry",
                cli_escape(idem_bytes(p, len), shown, sizeof(shown)));
        }
        bits |= bit;
        p = p[len] == ',' ? p + len + 1 : NULL;
    }
    *ret_statuses = bits;
    return 0;
}
