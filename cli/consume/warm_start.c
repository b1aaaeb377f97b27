/* The start of a command that is kept running. */
#include "consume/warm.h"
#include "process/io.h"
#include "run/channel.h"
#include "run/child.h"
#include "run/supervisor.h"
#include "run/watch.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Our ends are non-blocking; the command finds its own as it would expect them. */
static int open_pipes(struct warm *warm, struct channel_fds *fds)
{
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) != 0) {
        return -1;
    }
    fds->fd[SUPERVISOR_INPUT] = in[0];
    warm->in.fd = in[1];
    if (pipe2(out, O_CLOEXEC) != 0) {
        return -1;
    }
    warm->out.fd = out[0];
    fds->fd[SUPERVISOR_OUT] = out[1];
    return fcntl(in[1], F_SETFL, O_NONBLOCK) != 0 ||
                   fcntl(out[0], F_SETFL, O_NONBLOCK) != 0
               ? -1
               : 0;
}

static enum child_start await_start(struct warm *warm)
{
    struct supervisor_news news;

    if (supervisor_hear(&warm->supervisor, /* wait= */ true, &news) < 0) {
        errno =
            EPIPE; /* UNTESTED: the supervisor must be killed at that moment. */
        return CHILD_NO_MEANS;
    }
    if (news.kind == SUPERVISOR_REFUSED) {
        errno = news.number;
        return news.how;
    }
    if (news.kind == SUPERVISOR_STARTED) {
        warm->watch.group = news.number;
    } else {
        watch_take_news(&warm->watch, &news);
    }
    return CHILD_STARTED;
}

static enum child_start start(struct warm *warm)
{
    struct channel_fds fds = channel_no_fds;
    enum child_start how = CHILD_NO_MEANS;
    struct supervisor_order order;
    int why;

    memset(&order, 0, sizeof(order));
    order.kind = SUPERVISOR_START;
    order.idle = true;
    order.kill_at_ms = SUPERVISOR_NEVER;
    order.grace_ms = warm->options.kill_after_ms;
    if (warm->supervisor.pid == 0) {
        errno = warm->supervisor.failed;
    } else if (open_pipes(warm, &fds) == 0 &&
               supervisor_tell(&warm->supervisor, &order, &fds) == 0) {
        how = await_start(warm);
    }
    why = errno;
    io_close(&fds.fd[SUPERVISOR_INPUT]);
    io_close(&fds.fd[SUPERVISOR_OUT]);
    errno = why;
    return how;
}

int warm_start(struct warm *warm)
{
    enum child_start how = start(warm);
    char name[64];
    int why = errno;

    if (how == CHILD_STARTED) {
        return 0;
    }
    cli_say("cannot execute %s: %s",
            cli_escape(idem_str(warm->run.argv[0]), name, sizeof(name)),
            strerror(why));
    return how == CHILD_NOT_FOUND    ? CLI_NOT_FOUND
           : how == CHILD_NOT_USABLE ? CLI_CANNOT_EXECUTE
                                     : CLI_UNAVAILABLE;
}
