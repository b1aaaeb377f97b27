/* screen.h: the terminal that stdout may be: its width, and a pager before it. */
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

#endif
