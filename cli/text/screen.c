/* The terminal that stdout may be: its width, a pager before it, and whether to paint. */
#include "text/screen.h"

#include "text/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WIDTH 80

bool cli_no_pager;

static pid_t pager; /* 0: there is none. */

bool cli_stdout_is_tty(void)
{
    return pager != 0 || isatty(STDOUT_FILENO) == 1;
}

bool cli_stderr_is_tty(void)
{
    return isatty(STDERR_FILENO) == 1;
}

/* The terminal is asked, not $COLUMNS: that is a shell's and may be stale. The
 * pager writes to the terminal that stderr is. */
int cli_width(void)
{
    struct winsize size;
    int fd = pager != 0 ? STDERR_FILENO : STDOUT_FILENO;

    if (cli_stdout_is_tty() && ioctl(fd, TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 0) {
        return size.ws_col;
    }
    return WIDTH;
}

/* The pager to run, or NULL: "cat" and nothing are the same. */
static const char *pager_name(void)
{
    const char *name = secure_getenv("IDEM_PAGER");

    if (name == NULL) {
        name = secure_getenv("PAGER");
    }
    return name == NULL || *name == '\0' || strcmp(name, "cat") == 0 ? NULL
                                                                     : name;
}

/* less leaves at once where all fits on the screen, and lets colours through. */
static _Noreturn void become(const char *name, int from)
{
    (void)setenv("LESS", "FRX", /* overwrite= */ 0);
    if (dup2(from, STDIN_FILENO) == STDIN_FILENO) {
        (void)execl("/bin/sh", "sh", "-c", name, (char *)NULL);
    }
    _exit(CLI_NOT_FOUND);
}

static void start(const char *name)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    pid = fork();
    if (pid == 0) {
        become(name, ends[0]);
    }

    (void)close(ends[0]);
    if (pid > 0 && dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO) {
        /* Ctrl-C is the pager's: a shell must not come back beside it. */
        (void)signal(SIGINT, SIG_IGN);
        pager = pid;
    }
    (void)close(ends[1]);
}

void cli_page_begin(void)
{
    const char *name = pager_name();

    if (name != NULL && !cli_no_pager && pager == 0 && cli_stdout_is_tty()) {
        (void)fflush(stdout);
        start(name);
    }
}

/* Its end of the pipe is closed, so that it sees the end of the text. */
void cli_page_end(void)
{
    if (pager == 0) {
        return;
    }
    (void)close(STDOUT_FILENO);
    while (waitpid(pager, NULL, 0) < 0 && errno == EINTR) {
    }
    pager = 0;
}

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
