/* The options of a command, to be typed once more. */
#include "inspect/repeat.h"

#include "record/remedy.h"

static bool is_among(const char *name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcmp(*names, name) == 0) {
            return true;
        }
    }
    return false;
}

static void print_text(FILE *f, const char *name, const char *text)
{
    if (text != NULL) {
        (void)fprintf(f, " --%s=", name);
        cli_print_quoted(f, idem_str(text));
    }
}

static void print_one(FILE *f, const struct cli_option *option)
{
    switch (option->kind) {
    case CLI_FLAG:
        if (*(const bool *)option->target) {
            (void)fprintf(f, " --%s", option->name);
        }
        break;
    case CLI_TEXT:
    case CLI_ANY_TEXT:
        print_text(f, option->name, *(const char *const *)option->target);
        break;
    case CLI_DURATION:
        if (*(const int64_t *)option->target != 0) {
            (void)fprintf(f, " --%s=%lldms", option->name,
                          (long long)*(const int64_t *)option->target);
        }
        break;
    case CLI_COUNT:
    case CLI_SIZE:
        if (*(const uint64_t *)option->target != 0) {
            (void)fprintf(f, " --%s=%llu", option->name,
                          (unsigned long long)*(
                              const uint64_t *)option->target);
        }
        break;
    case CLI_CHOICE:
        break;
    }
}

void cli_print_options(FILE *f, const struct cli_option *options,
                       const char *const *but)
{
    for (; options->name != NULL; options++) {
        if (!is_among(options->name, but)) {
            print_one(f, options);
        }
    }
}
