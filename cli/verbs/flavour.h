/* flavour.h: the key that another library makes of an event. */
#ifndef IDEM_CLI_VERBS_FLAVOUR_H
#define IDEM_CLI_VERBS_FLAVOUR_H

#include "options/command.h"

struct cli_flavour {
    int choice;         /* Index into cli_flavours. */
    const char *select; /* A selector, or NULL: the whole event. */
    const char *prefix; /* NULL: the flavour's own, if it has one. */
    bool allow_null;
    bool json;
};

/* The values of the option --flavour; ends with NULL. */
extern const char *const cli_flavours[];

/* Prints the key of the event that the one operand names: @FILE, or -. Returns an
 * exit status. */
int cli_flavour_print(const struct cli_command *command,
                      const struct cli_flavour *flavour, int argc, char **argv);

#endif
