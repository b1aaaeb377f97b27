/* usage.h: command lines that cannot be followed. */
#ifndef IDEM_CLI_OPTIONS_USAGE_H
#define IDEM_CLI_OPTIONS_USAGE_H

struct cli_command;

/* A usage error: the sentence, then where to read on. Returns CLI_USAGE. */
int cli_usage(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A usage error for the first argument of a command that takes none, with its
 * hint. */
int cli_unexpected(const struct cli_command *command, const char *argument);

#endif
