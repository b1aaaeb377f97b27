/* The runner's side of the supervisor, and the guard between them.
 *
 *     runner --- guard --- supervisor --- command --- its descendants
 *        '------ channel ------'
 *
 * If the supervisor is killed, its children need another process that adopts and ends
 * them. The runner adopts them itself if it has no children of its own; else it forks a
 * guard, which does nothing but wait for the supervisor. */
#include "run/supervisor.h"

#include "process/descriptors.h"
#include "process/self.h"
#include "run/channel.h"
#include "run/descendants.h"
#include "run/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The guard ---- */

/* Keep only the channel: a reader of our streams must not wait for the guard. */
static int let_go_of_descriptors(int channel)
{
    int kept = STDERR_FILENO + 1;

    if (channel != kept) {
        (void)dup2(channel, kept);
    }
    closefrom(kept + 1);
    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    cli_open_std_fds();
    return kept;
}

static bool was_killed(pid_t supervisor)
{
    int how = 0;

    while (waitpid(supervisor, &how, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(how);
}

/* Ends the work of a supervisor that was killed, and only then tells the runner, which
 * sees the channel close only once the guard is gone, too. A guard that is killed sends
 * nothing: then nothing is proved, and the runner records nothing. */
static void end_the_work(int channel)
{
    struct supervisor_news news = {.kind = SUPERVISOR_SURVIVED};

    if (!descendants_end(/* group= */ 0, SUPERVISOR_KILL_MS, &news.survivor)) {
        (void)channel_send(channel, &news, sizeof(news), &channel_no_fds);
    }
    news.kind = SUPERVISOR_LOST;
    (void)channel_send(channel, &news, sizeof(news), &channel_no_fds);
}

void guard(const struct run *run, int channel)
{
    bool adopts = descendants_adopt() == 0;
    pid_t supervisor = adopts ? fork() : -1;

    if (supervisor == 0) {
        supervisor_main(run, channel);
    }
    if (supervisor < 0) {
        _exit(EXIT_FAILURE);
    }
    /* Leave the runner's group, so that a signal that ends the group spares us. */
    (void)setpgid(0, 0);
    self_set_name("idem-guard");
    channel = let_go_of_descriptors(channel);
    /* A supervisor that ended by itself has settled everything. */
    if (was_killed(supervisor)) {
        end_the_work(channel);
    }
    _exit(0);
}

/* ---- The runner ---- */

/* Fork with signals blocked: none may end the supervisor before it is set up, or the
 * runner in between. */
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

/* True if the program that became idem by exec has left us children. They are not part of
 * the work: to end all children would end them, too. */
static bool has_children(void)
{
    siginfo_t info;

    /* WNOWAIT leaves a child that has ended to the program that knows of it. */
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void supervisor_start(struct supervisor *supervisor, const struct run *run)
{
    int ends[2];

    memset(supervisor, 0, sizeof(*supervisor));
    supervisor->channel = -1;
    if (!descendants_can_be_adopted()) {
        supervisor->failed = errno;
        return;
    }
    /* Before the fork, so that init can never adopt a child of the supervisor
     * instead. */
    supervisor->adopts = !has_children() && descendants_adopt() == 0;
    if (channel_open(ends) != 0) {
        supervisor->failed = errno;
        return;
    }
    supervisor->pid = fork_blocked();
    if (supervisor->pid == 0) {
        (void)close(ends[0]);
        if (supervisor->adopts) {
            supervisor_main(run, ends[1]);
        }
        guard(run, ends[1]);
    }
    (void)close(ends[1]);
    /* The supervisor and its guard alone have the other end, so the death of either side
     * closes the channel for the other. */
    supervisor->channel = ends[0];
    if (supervisor->pid < 0) {
        supervisor->failed = errno;
        supervisor->pid = 0;
        io_close(&supervisor->channel);
    }
}

int supervisor_tell(const struct supervisor *supervisor,
                    const struct supervisor_order *order,
                    const struct channel_fds *fds)
{
    if (supervisor->channel < 0) {
        return -1;
    }
    return channel_send(supervisor->channel, order, sizeof(*order), fds);
}

void supervisor_say(const struct supervisor *supervisor,
                    enum supervisor_order_kind kind)
{
    struct supervisor_order order = {.kind = kind};

    (void)supervisor_tell(supervisor, &order, &channel_no_fds);
}

void supervisor_ask(const struct supervisor *supervisor, const struct run *run)
{
    const struct idem_request *request = &run->asked.request;
    struct supervisor_order order = {.kind = SUPERVISOR_ASK};
    struct supervisor_claim *claim = &order.claim;

    /* The supervisor gets the nonce before the store gets the claim, so it knows that of
     * every claim of ours that may be on record. */
    memcpy(claim->nonce, run->nonce.bytes, sizeof(claim->nonce));
    if (request->fingerprint.len == sizeof(claim->fingerprint)) {
        memcpy(claim->fingerprint, request->fingerprint.base,
               sizeof(claim->fingerprint));
        claim->has_fingerprint = true;
    }
    claim->key_len = (uint16_t)request->key.len;
    memcpy(claim->key, request->key.base, request->key.len);
    (void)supervisor_tell(supervisor, &order, &channel_no_fds);
}

int supervisor_hear(const struct supervisor *supervisor, bool wait,
                    struct supervisor_news *ret_news)
{
    return channel_receive(supervisor->channel, ret_news, sizeof(*ret_news),
                           wait, NULL);
}

void supervisor_dismiss(struct supervisor *supervisor)
{
    /* DONE is sent before the close: a channel that closes without it means that the runner
     * died. */
    supervisor_say(supervisor, SUPERVISOR_DONE);
    io_close(&supervisor->channel);
}

void supervisor_finish(struct supervisor *supervisor)
{
    supervisor_dismiss(supervisor);
    if (supervisor->pid > 0) {
        while (waitpid(supervisor->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        supervisor->pid = 0;
    }
}
