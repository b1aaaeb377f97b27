/* The runner's side of the keeper. */
#include "run/keeper.h"

#include "run/guard.h"
#include "run/io.h"
#include "run/keep.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* No signal may end the keeper, or the runner between the two. */
static pid_t fork_blocked(void)
{
    sigset_t all;
    sigset_t before;
    pid_t pid;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    pid = fork();
    if (pid != 0) {
        int why = errno;

        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        errno = why;
    }
    return pid;
}

/* The program that became us by exec may have had children. */
static bool has_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void keeper_start(struct keeper *keeper, const struct run *run)
{
    int ends[2];

    memset(keeper, 0, sizeof(*keeper));
    keeper->adopts = !has_children() && kin_adopt() == 0;
    keeper->channel = -1;
    if (channel_open(ends) != 0) {
        keeper->failed = errno;
        return;
    }
    keeper->pid = fork_blocked();
    if (keeper->pid == 0) {
        (void)close(ends[0]);
        if (keeper->adopts) {
            keep(run, ends[1]);
        }
        guard(run, ends[1]);
    }
    (void)close(ends[1]);
    keeper->channel = ends[0];
    if (keeper->pid < 0) {
        keeper->failed = errno;
        keeper->pid = 0;
        io_close(&keeper->channel);
    }
}

int keeper_tell(const struct keeper *keeper, const struct keeper_order *order,
                const struct channel_fds *fds)
{
    if (keeper->channel < 0) {
        return -1;
    }
    return channel_send(keeper->channel, order, sizeof(*order), fds);
}

void keeper_say(const struct keeper *keeper, enum keeper_order_kind kind)
{
    struct keeper_order order = {.kind = kind};

    (void)keeper_tell(keeper, &order, &channel_no_fds);
}

void keeper_ask(const struct keeper *keeper, const struct run *run)
{
    const struct idem_request *request = &run->asked.request;
    struct keeper_order order = {.kind = KEEPER_ASK};
    struct keeper_claim *claim = &order.claim;

    memcpy(claim->nonce, run->nonce.bytes, sizeof(claim->nonce));
    if (request->fingerprint.len == sizeof(claim->fingerprint)) {
        memcpy(claim->fingerprint, request->fingerprint.base,
               sizeof(claim->fingerprint));
        claim->has_fingerprint = true;
    }
    claim->key_len = (uint16_t)request->key.len;
    memcpy(claim->key, request->key.base, request->key.len);
    (void)keeper_tell(keeper, &order, &channel_no_fds);
}

int keeper_hear(const struct keeper *keeper, bool wait,
                struct keeper_news *ret_news)
{
    return channel_receive(keeper->channel, ret_news, sizeof(*ret_news), wait,
                           NULL);
}

void keeper_dismiss(struct keeper *keeper)
{
    keeper_say(keeper, KEEPER_DONE);
    io_close(&keeper->channel);
}

void keeper_finish(struct keeper *keeper)
{
    keeper_dismiss(keeper);
    if (keeper->pid > 0) {
        while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        keeper->pid = 0;
    }
}
