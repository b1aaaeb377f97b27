/* screen.h: the terminal: its width, colors, and progress on it. */
#ifndef IDEM_CLI_TEXT_SCREEN_H
#define IDEM_CLI_TEXT_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* True if stdout is a terminal. */
bool cli_stdout_is_tty(void);

/* Columns of it; 80 if it is not a terminal, or does not tell. */
int cli_width(void);

/* True if stderr is a terminal. */
bool cli_stderr_is_tty(void);

/* True if stdout is to be painted. The first of these that is set decides: NO_COLOR
 * (no-color.org); CLICOLOR_FORCE and CLICOLOR (bixense.com/clicolors); and else
 * whether stdout is a terminal that knows colours. */
bool cli_may_paint(void);

/* How far long work has come: one line on the terminal of stderr.
 *
 *     copying [=========>          ]  45% 13050/29000  3210/s  4s left
 *     exported 13050  3210/s  4s
 *
 * It is there on a terminal only, and not with --quiet. It is drawn over itself, at
 * most ten times a second, no wider than the terminal, and takes itself away: at the
 * end, and before anything else is said. Work that is over soon never shows it. */

/* --quiet was given to a command whose long work shows itself. */
extern bool cli_progress_off;

/* @done of @all are done; 0: how many there are is not known. May be called for
 * each row: it reads a clock, and allocates nothing. @doing, a word or two that
 * stay, begins another line of work when it changes. */
void cli_progress(const char *doing, uint64_t done, uint64_t all);

/* The line is gone from the terminal, and the work that it was about is over. */
void cli_progress_end(void);

/* The line is gone, and comes back with the next call of cli_progress(). */
void cli_progress_hide(void);

/* ---- The line itself, for its test ------------------------------------- */

#define CLI_PROGRESS_MAX 256

/* Writes the line for work that has taken @ms, in fewer than @columns, with a NUL.
 * Returns its length, which is its width: it is ASCII. */
int cli_progress_line(const char *doing, uint64_t done, uint64_t all,
                      int64_t ms, int columns, char buf[CLI_PROGRESS_MAX]);

#endif
