/* color.h: whether to paint.
 *
 * In this order: --color=always or never; NO_COLOR (no-color.org); CLICOLOR_FORCE
 * and CLICOLOR (bixense.com/clicolors); else on a terminal that knows colours.
 */
#ifndef IDEM_CLI_TEXT_COLOR_H
#define IDEM_CLI_TEXT_COLOR_H

#include <stdbool.h>

extern const char
    *const cli_color_names[]; /* "auto", "always", "never", NULL */
extern int cli_color;         /* Index of the one that was said. */

/* True if stdout is to be painted. */
bool cli_may_paint(void);

#endif
