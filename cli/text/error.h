/* error.h: messages on stderr, suggestions, and the end of standard output. */
#ifndef IDEM_CLI_TEXT_ERROR_H
#define IDEM_CLI_TEXT_ERROR_H

#include <idem.h>
#include <stdarg.h>
#include <stddef.h>

/* "idem: " + the sentence + newline on stderr. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a caller that has a va_list. */
void cli_vsay(const char *format, va_list args)
    __attribute__((format(printf, 1, 0)));

/* The exit status of an error: one switch for all commands. */
int cli_exit_of(int code);

/* Prints the text of @error and returns its exit status. */
int cli_fail_with(const struct idem_error *error);

/* The same; if the store is unavailable, the message also has @undone, for example
 * "nothing was run". */
int cli_fail_before(const char *undone, const struct idem_error *error);

/* ---- The end of standard output ---- */

/* Flushes stdout and returns @status. If not everything could be written, prints an
 * error, and returns CLI_OUTPUT_FAILED in place of a @status of success. main() ends
 * every command with it. */
int cli_finish_output(int status);

/* ---- Suggestions for a mistyped word ---- */

/* Zeroed but for @word. The caller offers candidates, and then reads @best. */
struct cli_nearest {
    const char *word;
    const char *best; /* NULL: none is near. */
    size_t distance;
};
void cli_nearest_offer(struct cli_nearest *nearest, const char *candidate);

#endif
