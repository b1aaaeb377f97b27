/* screen.h: the terminal: its width, colors, and progress on it. */
#ifndef IDEM_CLI_TEXT_SCREEN_H
#define IDEM_CLI_TEXT_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* True if stdout is a terminal. */
bool cli_stdout_is_tty(void);

/* The columns of stdout; 80 if it is not a terminal, or does not report them. */
int cli_width(void);

/* True if stderr is a terminal. */
bool cli_stderr_is_tty(void);

/* True if stdout is to be painted. The first of these that is set decides: NO_COLOR
 * (no-color.org); CLICOLOR_FORCE and CLICOLOR (bixense.com/clicolors); and else
 * whether stdout is a terminal that knows colours. */
bool cli_may_paint(void);

/* The progress of long work: one line on the terminal of stderr.
 *
 *     copying  45% 13050/29000  3210/s  4s left
 *     exported 13050  3210/s  4s
 *
 * The line is shown on a terminal only, and not with --quiet. It is redrawn at most ten
 * times a second, and is never wider than the terminal. It is removed at the end, and
 * before any message. Work that ends soon never shows it. */

/* True: --quiet was given to a command that shows its progress. */
extern bool cli_progress_off;

/* Shows that @done of @all are done; an @all of 0 is unknown. May be called for each
 * row: it reads a clock, and allocates nothing. @doing, a word or two in static memory,
 * begins another piece of work when it changes. */
void cli_progress(const char *doing, uint64_t done, uint64_t all);

/* Removes the line from the terminal, because the work is over. */
void cli_progress_end(void);

/* Removes the line until the next call of cli_progress(). */
void cli_progress_hide(void);

/* ---- The line itself, for its test ------------------------------------- */

#define CLI_PROGRESS_MAX 256

/* Writes the line for work that has taken @ms, in fewer than @columns, with a NUL.
 * Returns its length, which is its width: it is ASCII. */
int cli_progress_line(const char *doing, uint64_t done, uint64_t all,
                      int64_t ms, int columns, char buf[CLI_PROGRESS_MAX]);

#endif
