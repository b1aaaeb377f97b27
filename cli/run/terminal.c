/* The owner of the terminal: the runner or the command. */
#include "run/terminal.h"

#include "process/descriptors.h"
#include "run/signals.h"

#include <fcntl.h>
#include <unistd.h>

static bool is_foreground(const struct terminal *terminal)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == terminal->own;
}

void terminal_init(struct terminal *terminal)
{
    terminal->fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    terminal->own = getpgrp();
    terminal->given = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 &&
                      is_foreground(terminal);
    terminal->saved =
        terminal->given && tcgetattr(terminal->fd, &terminal->before) == 0;
}

void terminal_finish(struct terminal *terminal)
{
    io_close(&terminal->fd);
}

void terminal_give(struct terminal *terminal, pid_t group)
{
    terminal->given = tcsetpgrp(terminal->fd, group) == 0;
}

void terminal_take(struct terminal *terminal)
{
    if (terminal->given) {
        (void)tcsetpgrp(terminal->fd, terminal->own);
        terminal->given = false;
    }
}

void terminal_mend(const struct terminal *terminal)
{
    if (terminal->saved && is_foreground(terminal)) {
        (void)tcsetattr(terminal->fd, TCSADRAIN, &terminal->before);
    }
}

static void stop_and_continue(struct terminal *terminal, pid_t group)
{
    bool given = terminal->given;

    terminal_take(terminal);
    signals_stop_self();
    if (given && is_foreground(terminal)) {
        terminal_give(terminal, group);
    }
    (void)kill(-group, SIGCONT);
}

void terminal_stopped(struct terminal *terminal, pid_t group, int signo)
{
    if (signo != SIGTSTP && signo != SIGTTIN && signo != SIGTTOU) {
        return; /* Somebody else stopped it, and will continue it. */
    }
    if (signo != SIGTSTP && !terminal->given && is_foreground(terminal)) {
        terminal_give(terminal, group);
        (void)kill(-group, SIGCONT);
    } else if (terminal->fd >= 0) {
        stop_and_continue(terminal, group);
    }
}

void terminal_stop(struct terminal *terminal, pid_t group)
{
    (void)kill(-group, SIGTSTP);
    stop_and_continue(terminal, group);
}
