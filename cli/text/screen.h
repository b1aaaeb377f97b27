/* screen.h: the terminal that stdout may be: its width, a pager before it, and whether
 * to paint. */
#ifndef IDEM_CLI_TEXT_SCREEN_H
#define IDEM_CLI_TEXT_SCREEN_H

#include <stdbool.h>

/* True if stdout is a terminal, or was one before a pager came between. */
bool cli_stdout_is_tty(void);

/* Columns of it; 80 where it is none, or does not say. */
int cli_width(void);

/* Sends stdout through $IDEM_PAGER or $PAGER where stdout is a terminal and one
 * of them is set: without one nothing is paged. cli_page_end() waits for it. */
void cli_page_begin(void);
void cli_page_end(void);

extern bool cli_no_pager; /* --no-pager: nothing is paged. */

/* True if stderr is a terminal. */
bool cli_stderr_is_tty(void);

/* Whether to paint is decided by the first of these that is set: --color=always or never;
 * NO_COLOR (no-color.org); CLICOLOR_FORCE and CLICOLOR (bixense.com/clicolors); and else
 * by whether stdout is a terminal that knows colours. */
extern const char
    *const cli_color_names[]; /* "auto", "always", "never", NULL */
extern int cli_color;         /* Index of the one that was said. */

/* True if stdout is to be painted. */
bool cli_may_paint(void);

#endif
