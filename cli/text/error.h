/* error.h: messages on stderr, suggestions, and the end of standard output. */
#ifndef IDEM_CLI_TEXT_ERROR_H
#define IDEM_CLI_TEXT_ERROR_H

#include <idem.h>
#include <stdarg.h>
#include <stddef.h>

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

/* ---- That everything reached standard output ---- */

/* Flushes stdout. @status; where that says that all is well and not everything
 * could be written, CLI_OUTPUT_FAILED after saying so. main() ends every
 * command with it. */
int cli_finish_output(int status);

/* ---- What somebody who mistyped may have meant ---- */

/* Zeroed but for @word; offer it words, then look at @best. */
struct cli_nearest {
    const char *word;
    const char *best; /* NULL: none is near. */
    size_t distance;
};
void cli_nearest_offer(struct cli_nearest *nearest, const char *candidate);

#endif
