/* The terminal of idem top: its modes, its keys and its signals. */
#include "inspect/top.h"
#include "process/clock.h"
#include "process/signal_fd.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

static struct termios before; /* The one terminal that a process has. */

/* timeout(1) puts its command into the background, where setting the modes of the
 * terminal would stop it for good. */
static void take_signals(struct top_terminal *terminal)
{
    sigset_t set;

    (void)signal(SIGTTOU, SIG_IGN);
    (void)signal(SIGTTIN, SIG_IGN);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGWINCH);
    (void)sigaddset(&set, SIGTSTP);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    terminal->signals = signal_fd_open(&set);
}

/* Lines that are too long for the window are cut by the terminal: a character may
 * be wider than we count. */
static void take_screen(const struct top_terminal *terminal)
{
    struct termios keys = before;

    if (terminal->has_keys) {
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    (void)fputs("\033[?1049h\033[?25l\033[?7l", stdout);
}

static void give_back(const struct top_terminal *terminal)
{
    (void)fputs("\033[?7h\033[?25h\033[?1049l", stdout);
    (void)fflush(stdout);
    if (terminal->has_keys) {
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    }
}

void top_enter(struct top_terminal *terminal)
{
    terminal->live = isatty(STDOUT_FILENO) == 1;
    terminal->has_keys =
        terminal->live && tcgetattr(STDIN_FILENO, &before) == 0;
    terminal->signals = -1;
    if (terminal->live) {
        take_signals(terminal);
        take_screen(terminal);
    }
}

void top_leave(struct top_terminal *terminal)
{
    if (terminal->live) {
        give_back(terminal);
    }
    if (terminal->signals >= 0) {
        (void)close(terminal->signals);
    }
}

/* Ctrl-Z: the shell gets its screen, and we ours when we are continued. */
static enum top_event take_signal(const struct top_terminal *terminal)
{
    int signo;

    while ((signo = signal_fd_next(terminal->signals)) != 0) {
        if (signo == SIGTSTP) {
            give_back(terminal);
            (void)raise(SIGSTOP);
            take_screen(terminal);
        }
    }
    return TOP_DRAW;
}

/* In the background nothing can be read: then keys cannot be typed. */
static enum top_event take_key(struct top_terminal *terminal)
{
    char key = '\0';
    ssize_t n = read(STDIN_FILENO, &key, 1);

    if (n < 0) {
        terminal->has_keys = errno == EINTR || errno == EAGAIN;
        return TOP_DRAW;
    }
    if (n == 0 || key == 'q' || key == 'Q' || key == 3 || key == 4) {
        return TOP_QUIT;
    }
    if (key == 'f' || key == 'F') {
        return TOP_OUTCOMES;
    }
    return key == ' ' || key == 'r' ? TOP_LOOK : TOP_DRAW;
}

enum top_event top_wait(struct top_terminal *terminal, int stop,
                        int64_t until_ms)
{
    int64_t left_ms = until_ms - cli_mono_ms();
    /* A negative descriptor is left out. */
    struct pollfd fds[] = {{.fd = stop, .events = POLLIN},
                           {.fd = terminal->signals, .events = POLLIN},
                           {.fd = terminal->has_keys ? STDIN_FILENO : -1,
                            .events = POLLIN}};

    if (poll(fds, 3,
             left_ms < 0         ? 0
             : left_ms > INT_MAX ? INT_MAX
                                 : (int)left_ms) == 0) {
        return TOP_LOOK;
    }
    if (fds[0].revents != 0) {
        return TOP_QUIT;
    }
    if (fds[1].revents != 0) {
        return take_signal(terminal);
    }
    return fds[2].revents != 0 ? take_key(terminal) : TOP_DRAW;
}
