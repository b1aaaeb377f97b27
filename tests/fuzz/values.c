/* Values of options: durations, sizes, counts, exit statuses, choices, texts.
 * What is accepted is what a second reader, which counts in 128 bits, makes of the
 * same text, and within the range of the option; everything else is refused and
 * changes nothing.
 */
#include "fuzz.h"
#include "options/command.h"
#include "options/value.h"
#include "text/exit_status.h"

#include <stdlib.h>

typedef __int128 wide;

static const char *const choices[] = {"hold", "rerun", "re", NULL};

/* Of the digits at the start of *@text; -1: there are none, or far too many. */
static wide number_of(const char **text)
{
    wide n = 0;
    const char *p = *text;

    for (; *p >= '0' && *p <= '9'; p++) {
        n = n * 10 + (*p - '0');
        if (n > (wide)1 << 64) {
            return -1;
        }
    }
    if (p == *text) {
        return -1;
    }
    *text = p;
    return n;
}

static wide factor_of(enum cli_kind kind, const char *unit)
{
    static const struct {
        enum cli_kind kind;
        const char *unit;
        int64_t factor;
    } units[] = {
        {CLI_DURATION, "ms", 1},
        {CLI_DURATION, "s", 1000},
        {CLI_DURATION, "m", 60000},
        {CLI_DURATION, "h", 3600000},
        {CLI_DURATION, "d", 86400000},
        {CLI_SIZE, "", 1},
        {CLI_SIZE, "k", 1 << 10},
        {CLI_SIZE, "K", 1 << 10},
        {CLI_SIZE, "m", 1 << 20},
        {CLI_SIZE, "M", 1 << 20},
        {CLI_SIZE, "g", 1 << 30},
        {CLI_SIZE, "G", 1 << 30},
        {CLI_COUNT, "", 1},
    };
    size_t i;

    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (units[i].kind == kind && strcmp(units[i].unit, unit) == 0) {
            return units[i].factor;
        }
    }
    return -1;
}

static void numbers(const struct cli_command *command,
                    struct cli_option *option, const char *text)
{
    int64_t before = 0x5a5a5a5a5a5a5a5a;
    int64_t target = before;
    const char *unit = text;
    wide n = number_of(&unit);
    wide factor = n < 0 ? -1 : factor_of(option->kind, unit);
    bool or_never = option->kind == CLI_DURATION && option->or_never;
    int64_t max = option->max != 0               ? option->max
                  : option->kind == CLI_DURATION ? IDEM_DURATION_MAX_MS
                                                 : INT64_MAX;
    int rc;

    option->target = &target;
    rc = cli_set_value(command, option, text);
    if (or_never && strcmp(text, "never") == 0) {
        must(rc == 0 && target == IDEM_NEVER);
    } else if (factor > 0 && n * factor >= option->min && n * factor <= max) {
        must(rc == 0 && target == (int64_t)(n * factor));
    } else {
        must(rc == CLI_USAGE && target == before);
    }
}

static void choice(const struct cli_command *command, struct cli_option *option,
                   const char *text)
{
    int target = -1;
    int want = -1;
    int i;

    for (i = 0; choices[i] != NULL; i++) {
        want = strcmp(text, choices[i]) == 0 ? i : want;
    }
    option->target = &target;
    option->min = 0; /* The first of them. */
    option->choices = choices;
    must(cli_set_value(command, option, text) == (want < 0 ? CLI_USAGE : 0));
    must(target == want);
}

static void texts(const struct cli_command *command, struct cli_option *option,
                  const char *text)
{
    const char *target = NULL;
    bool good =
        strlen(text) <= 255 && (*text != '\0' || option->kind == CLI_ANY_TEXT);

    option->max = 255;
    option->target = &target;
    must(cli_set_value(command, option, text) == (good ? 0 : CLI_USAGE));
    must(target == (good ? text : NULL));
}

static int64_t take_limit(struct tape *tape)
{
    static const int64_t limits[] = {0,        1,          IDEM_LEASE_MIN_MS,
                                     255,      UINT32_MAX, IDEM_DURATION_MAX_MS,
                                     INT64_MAX};

    return limits[take_up_to(tape, 6)];
}

FUZZ_HUSHED

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct cli_command command = {.name = "fuzz"};
    struct tape tape = tape_of(data, len);
    struct cli_option option = {.name = "option", .arg = "ARG"};
    char *text;

    option.kind = (enum cli_kind)(
        CLI_TEXT + (int)take_up_to(&tape, CLI_CHOICE - CLI_TEXT));
    option.min = take_limit(&tape);
    option.max = take_limit(&tape);
    if (take_bool(&tape)) {
        option.or_never = true;
    }
    text = text_of(take_rest(&tape));
    switch (option.kind) {
    case CLI_FLAG:
        break;
    case CLI_TEXT:
    case CLI_ANY_TEXT:
        texts(&command, &option, text);
        break;
    case CLI_DURATION:
    case CLI_COUNT:
    case CLI_SIZE:
        numbers(&command, &option, text);
        break;
    case CLI_CHOICE:
        choice(&command, &option, text);
        break;
    }
    free(text);
    return 0;
}
