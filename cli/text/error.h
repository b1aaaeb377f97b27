/* error.h: sentences on stderr, and the exit status of an error. */
#ifndef IDEM_CLI_TEXT_ERROR_H
#define IDEM_CLI_TEXT_ERROR_H

#include <idem.h>
#include <stdarg.h>

/* "idem: " + the sentence + newline on stderr. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for those that have a list. */
void cli_vsay(const char *format, va_list args)
    __attribute__((format(printf, 1, 0)));

/* The exit status of an error: one switch for all commands. */
int cli_exit_of(int code);

/* Says the sentence of @error and returns its exit status. */
int cli_fail_with(const struct idem_error *error);

/* The same; of a store that is away it adds @undone, for example "nothing was
 * run". */
int cli_fail_before(const char *undone, const struct idem_error *error);

#endif
