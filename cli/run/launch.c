/* Everything up to the moment in which the command runs. */
#include "base/crash.h"
#include "process/descriptors.h"
#include "run/channel.h"
#include "run/child.h"
#include "run/run.h"
#include "run/signals.h"
#include "run/status_report.h"
#include "run/supervisor.h"
#include "run/work.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const char overslept[] = "the lease ended before the command started";

/* Only our end is non-blocking: the flag belongs to one end, and the command must
 * find blocking outputs as usual. */
static int open_capture(struct pump *pump, int *ret_end)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) != 0) {
        return -1;
    }
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    pump_connect(pump, pair[0]);
    *ret_end = pair[1];
    return 0;
}

/* The ends that the command gets. 0, or -1 with errno. */
static int open_ends(struct run *run, struct watch *watch,
                     struct channel_fds *fds)
{
    bool captures = run->options->capture == RUN_CAPTURE_BOTH;

    *fds = channel_no_fds;
    if (run->asked.input != NULL) {
        fds->fd[SUPERVISOR_INPUT] =
            memory_file_of("input", run->asked.request.input.base,
                           run->asked.request.input.len);
        if (fds->fd[SUPERVISOR_INPUT] < 0) {
            return -1;
        }
    }
    if (captures &&
        (open_capture(&watch->out, &fds->fd[SUPERVISOR_OUT]) != 0 ||
         open_capture(&watch->err, &fds->fd[SUPERVISOR_ERR]) != 0)) {
        return -1;
    }
    if (watch->terminal->given) {
        fds->fd[SUPERVISOR_TERMINAL] = watch->terminal->fd;
    }
    return 0;
}

static void close_ends(struct channel_fds *fds)
{
    int why = errno;

    io_close(&fds->fd[SUPERVISOR_INPUT]);
    io_close(&fds->fd[SUPERVISOR_OUT]);
    io_close(&fds->fd[SUPERVISOR_ERR]);
    errno = why;
}

static int make_order(const struct run *run, const struct watch *watch,
                      struct supervisor_order *order)
{
    const struct idem_attempt *attempt = run->attempt;
    const struct lease *lease = &watch->lease;

    memset(order, 0, sizeof(*order));
    order->kind = SUPERVISOR_START;
    order->kill_at_ms = lease_kill_at_ms(lease);
    order->grace_ms = lease_grace_ms(lease, run->options->kill_after_ms);
    order->policy = attempt->record->on_expired_lease;
    order->task.fence = attempt->fence;
    order->task.attempts = attempt->attempts;
    order->task.takeover = attempt->takeover;
    return idem_attempt_token(attempt, order->task.token);
}

/* A supervisor that dies before it answers may have started the command. Assume that
 * it did: the watch finds the supervisor dead, and nobody concludes that nothing was
 * run. */
static enum child_start await_start(struct run *run, struct watch *watch)
{
    struct supervisor_news news;

    if (supervisor_hear(run->supervisor, /* wait= */ true, &news) < 0) {
        return CHILD_STARTED;
    }
    if (news.kind == SUPERVISOR_REFUSED) {
        errno = news.number;
        return news.how;
    }
    IDEM__CRASH_POINT("run/launch/started");
    if (news.kind == SUPERVISOR_STARTED) {
        watch->group = news.number;
    } else {
        watch_take_news(watch,
                        &news); /* Of a guard: the supervisor was killed. */
    }
    return CHILD_STARTED;
}

static enum child_start start(struct run *run, struct watch *watch)
{
    struct supervisor_order order;
    struct channel_fds fds;
    enum child_start how = CHILD_NO_MEANS;

    if (run->supervisor->pid == 0) {
        errno = run->supervisor->failed;
        return CHILD_NO_MEANS;
    }
    lease_init(&watch->lease, run->store, run->attempt, run->supervisor);
    if (open_ends(run, watch, &fds) != 0) {
        close_ends(&fds);
    } else if (make_order(run, watch, &order) != 0) {
        close_ends(&fds);
        errno = ENOMEM;
    } else {
        IDEM__CRASH_POINT("run/launch/ready");
        if (supervisor_tell(run->supervisor, &order, &fds) == 0) {
            IDEM__CRASH_POINT("run/launch/ordered");
            how = await_start(run, watch);
        }
        close_ends(&fds);
    }
    explicit_bzero(&order, sizeof(order));
    return how;
}

static int exit_of(enum child_start how)
{
    switch (how) {
    case CHILD_STARTED:
        return 0;
    case CHILD_NO_MEANS:
    case CHILD_TOO_LATE:
        break;
    case CHILD_NOT_FOUND:
        return CLI_NOT_FOUND;
    case CHILD_NOT_USABLE:
        return CLI_CANNOT_EXECUTE;
    }
    return CLI_UNAVAILABLE;
}

int launch(struct run *run, struct watch *watch)
{
    enum child_start how;
    char text[192];
    char name[64];
    int why;

    how = start(run, watch);
    why = errno;
    if (how == CHILD_STARTED) {
        return 0;
    }
    terminal_take(watch->terminal);
    if (how == CHILD_TOO_LATE) {
        run_say(run, RUN_ERROR, "%s; nothing was run; raise --lease",
                overslept);
        return launch_give_up(run, CLI_UNAVAILABLE, overslept);
    }
    if (run->supervisor->pid == 0) {
        (void)snprintf(
            text, sizeof(text),
            "cannot start the process that supervises the command: "
            "%s%s; nothing was run",
            strerror(why),
            why == EINVAL
                ? " (prctl PR_SET_CHILD_SUBREAPER, which qemu-user 7 lacks)"
                : "");
    } else {
        (void)snprintf(text, sizeof(text), "cannot execute %s: %s",
                       cli_escape(idem_str(run->argv[0]), name, sizeof(name)),
                       strerror(why));
    }
    run_say(run, RUN_ERROR, "%s", text);
    return launch_give_up(run, exit_of(how), text);
}

int launch_give_up(struct run *run, int status, const char *text)
{
    status_report_set_error(&run->report, text);
    return ending_release(run, text) == IDEM_ELOST ? CLI_NOT_RECORDED : status;
}
