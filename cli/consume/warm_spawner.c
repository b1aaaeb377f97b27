/* The process that starts warm workers: it has nothing open that a fork would carry
 * along. */
#include "consume/consume.h"
#include "consume/warm.h"
#include "process/io.h"
#include "process/self.h"
#include "run/channel.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signals that a terminal or a service manager sends to all are for the consumer to
 * obey: it lets the message at work end. */
static void take_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

static void serve(const struct consume *consume, int channel)
    __attribute__((noreturn));

/* Until the consumer is gone. */
static void serve(const struct consume *consume, int channel)
{
    struct channel_fds fds;
    char order;
    size_t i;

    while (channel_receive(channel, &order, sizeof(order), /* wait= */ true,
                           &fds) > 0) {
        if (fork() == 0) {
            io_close(&channel);
            warm_worker(consume, &fds);
        }
        /* A worker that could not be started is one whose channel ends. */
        for (i = 0; i < CHANNEL_FDS; i++) {
            io_close(&fds.fd[i]);
        }
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
    }
    _exit(0);
}

int consume_warm_init(struct consume *consume)
{
    int ends[2];
    pid_t pid;

    if (channel_open(ends) != 0) {
        return -1;
    }
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        (void)setpgid(0, 0);
        self_set_name("idem-spawner");
        take_signals();
        serve(consume, ends[1]);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        int why = errno;

        (void)close(ends[0]);
        errno = why;
        return -1;
    }
    consume->spawner = ends[0];
    consume->spawner_pid = pid;
    return 0;
}

void consume_warm_finish(struct consume *consume)
{
    io_close(&consume->spawner);
    if (consume->spawner_pid > 0) {
        (void)waitpid(consume->spawner_pid, NULL, 0);
    }
}
