/* Signals as reads of a descriptor. */
#include "run/signals.h"

#include "process/descriptors.h"
#include "process/self.h"

#include <poll.h>
#include <unistd.h>

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
