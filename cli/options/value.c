/* The values of options: converted, and lists of statuses. */
#include "options/value.h"

#include "options/command.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <ctype.h>
#include <idem/setting.h>
#include <stdlib.h>

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

static struct idem_setting setting_of(const struct cli_option *option)
{
    struct idem_setting setting = {.min = option->min,
                                   .max = option->max,
                                   .or_never = option->or_never,
                                   .words = option->choices};

    if (option->as != NULL) {
        return *option->as;
    }
    setting.kind = option->kind == CLI_DURATION ? IDEM_SETTING_TIME
                   : option->kind == CLI_SIZE   ? IDEM_SETTING_SIZE
                   : option->kind == CLI_CHOICE ? IDEM_SETTING_WORD
                                                : IDEM_SETTING_COUNT;
    return setting;
}

static int set_value(const struct cli_command *command,
                     const struct cli_option *option, const char *text)
{
    struct idem_setting setting = setting_of(option);
    struct idem_error error = {0};
    char name[64];
    int64_t value;

    (void)snprintf(name, sizeof(name), "--%s", option->name);
    if (idem_setting_read(&setting, name, text, &value, &error) != 0) {
        return cli_usage(command, "%s", error.text);
    }
    if (option->kind == CLI_CHOICE) {
        *(int *)option->target = (int)value;
    } else if (option->kind == CLI_DURATION) {
        *(int64_t *)option->target = value;
    } else {
        *(uint64_t *)option->target = (uint64_t)value;
    }
    return 0;
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
    case CLI_COUNT:
    case CLI_SIZE:
    case CLI_CHOICE:
        return set_value(command, option, text);
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
