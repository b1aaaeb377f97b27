/* Whether to paint what goes to stdout. */
#include "text/color.h"

#include "text/screen.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLOR_AUTO,
    COLOR_ALWAYS,
    COLOR_NEVER
};

const char *const cli_color_names[] = {"auto", "always", "never", NULL};
int cli_color = COLOR_AUTO;

/* Set to something: NO_COLOR= means nothing (no-color.org). */
static bool is_set(const char *name)
{
    const char *value = secure_getenv(name);

    return value != NULL && *value != '\0';
}

static bool is_zero(const char *name)
{
    const char *value = secure_getenv(name);

    return value != NULL && strcmp(value, "0") == 0;
}

static bool terminal_has_colors(void)
{
    const char *term = secure_getenv("TERM");

    return cli_stdout_is_tty() && term != NULL && strcmp(term, "dumb") != 0;
}

bool cli_may_paint(void)
{
    if (cli_color != COLOR_AUTO) {
        return cli_color == COLOR_ALWAYS;
    }
    if (is_set("NO_COLOR")) {
        return false;
    }
    if (is_set("CLICOLOR_FORCE") && !is_zero("CLICOLOR_FORCE")) {
        return true;
    }
    return !is_zero("CLICOLOR") && terminal_has_colors();
}
