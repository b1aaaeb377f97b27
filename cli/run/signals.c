/* Signals as reads of a descriptor, and the owner of the terminal. */
#include "run/signals.h"

#include "process/descriptors.h"
#include "process/self.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

/* ---- Signals ---- */

/* The signals that the runner forwards, SIGCHLD, and SIGTTOU: while that is
 * blocked, the runner may give the terminal away, take it back and print to it,
 * even from the background. */
static const int taken[] = {
    SIGINT,   SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
    SIGWINCH, SIGCONT, SIGTSTP, SIGCHLD, SIGTTOU,
};

static void set_handler(int signo, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    (void)sigaction(signo, &action, NULL);
}

int signals_take(struct signals *signals)
{
    sigset_t set;
    size_t i;

    (void)sigemptyset(&set);
    for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        (void)sigaddset(&set, taken[i]);
    }
    signals->fd = signal_fd_open(&set);
    if (signals->fd < 0) {
        return -1;
    }
    (void)sigprocmask(SIG_BLOCK, &set, &signals->before);

    set_handler(SIGPIPE,
                SIG_IGN); /* A reader that left is an error of write. */
    set_handler(SIGCHLD, SIG_DFL); /* Ignored, no status would reach us. */
    return 0;
}

int signals_drop(struct signals *signals)
{
    int fatal = 0;
    int signo;

    while ((signo = signals_next(signals)) != 0) {
        if (signals_is_fatal(signo)) {
            fatal = signo;
        }
    }
    return fatal;
}

void signals_give_back(struct signals *signals)
{
    if (signals->fd >= 0) {
        (void)sigprocmask(SIG_SETMASK, &signals->before, NULL);
        io_close(&signals->fd);
    }
}

int signals_next(struct signals *signals)
{
    return signal_fd_next(signals->fd);
}

int signals_wait(struct signals *signals, int ms)
{
    struct pollfd waits = {.fd = signals->fd, .events = POLLIN};

    return poll(&waits, 1, ms) == 1 ? signals_next(signals) : 0;
}

bool signals_is_fatal(int signo)
{
    return signo == SIGINT || signo == SIGTERM || signo == SIGHUP ||
           signo == SIGQUIT;
}

void signals_stop_self(void)
{
    sigset_t stop;
    sigset_t before;

    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTSTP);
    (void)raise(SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &stop, &before); /* It stops here. */
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

void signals_reset(void)
{
    sigset_t none;
    int signo;

    for (signo = 1; signo < NSIG; signo++) {
        set_handler(signo, SIG_DFL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- The terminal ---- */

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

static void terminal_give(struct terminal *terminal, pid_t group)
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
