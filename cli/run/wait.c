/* The time between the start of the command and its end: the lease, and one loop. */
#include "base/crash.h"
#include "process/descriptors.h"
#include "process/host.h"
#include "run/channel.h"
#include "run/work.h"

#include <limits.h>

/* ---- The lease ---- */

#define RETRY_MIN_MS 100 /* Between two attempts at a store that is away. */

static void set_limit(struct lease *lease, int64_t kill_at_ms)
{
    struct supervisor_order order = {
        .kind = SUPERVISOR_LEASE,
        .kill_at_ms = kill_at_ms,
    };

    (void)supervisor_tell(lease->supervisor, &order, &channel_no_fds);
}

static void renew_in(struct lease *lease, int64_t ms)
{
    lease->renew_at_ms = io_now_ms() + (ms > RETRY_MIN_MS ? ms : RETRY_MIN_MS);
}

/* Renew every third of the lease; earlier if the store's margin takes so much of a
 * short lease that the work would be stopped before the first renewal. */
static void renew_in_time(struct lease *lease)
{
    int64_t third_ms = lease->length_ms / 3;
    int64_t left_ms = idem_attempt_lease_left_ms(lease->attempt) -
                      lease_grace_ms(lease, INT64_MAX);

    renew_in(lease, third_ms < left_ms / 2 ? third_ms : left_ms / 2);
}

void lease_init(struct lease *lease, struct idem_store *store,
                struct idem_attempt *attempt,
                const struct supervisor *supervisor)
{
    memset(lease, 0, sizeof(*lease));
    lease->supervisor = supervisor;
    lease->store = store;
    lease->attempt = attempt;
    lease->length_ms = attempt->record->lease_ms;
    lease->renew_at_ms = INT64_MAX;
    if (lease->length_ms != IDEM_NEVER) {
        renew_in_time(lease);
    }
}

int64_t lease_kill_at_ms(const struct lease *lease)
{
    int64_t left_ms = idem_attempt_lease_left_ms(lease->attempt);

    return left_ms == IDEM_NEVER ? SUPERVISOR_NEVER : io_now_ms() + left_ms;
}

/* True once no effect may start any more. */
static bool lease_is_over(const struct lease *lease)
{
    return idem_attempt_lease_left_ms(lease->attempt) == 0;
}

int64_t lease_grace_ms(const struct lease *lease, int64_t wanted_ms)
{
    return wanted_ms < lease->length_ms / 4 ? wanted_ms : lease->length_ms / 4;
}

/* Milliseconds until the lease is to be renewed; -1: never. */
static int64_t lease_wait_ms(const struct lease *lease)
{
    int64_t ms = lease->renew_at_ms - io_now_ms();

    if (lease->renew_at_ms == INT64_MAX) {
        return -1;
    }
    return ms > 0 ? ms : 0;
}

/* The work is being stopped: renew no more. */
static void lease_let_go(struct lease *lease)
{
    lease->renew_at_ms = INT64_MAX;
}

static void stop_or_let_go(struct lease *lease)
{
    lease_let_go(lease);
    if (self_report(lease->store, lease->attempt) != 0) {
        set_limit(lease, SUPERVISOR_NEVER);
    } else {
        supervisor_say(lease->supervisor, SUPERVISOR_STOP);
    }
}

static void renew_if_due(struct lease *lease)
{
    int rc;

    if (lease_wait_ms(lease) != 0) {
        return;
    }
    rc = idem_renew(lease->attempt, /* lease_ms= */ 0, &lease->error);
    if (rc == 0) {
        IDEM__CRASH_POINT("run/lease/renewed");
        lease->error.code = 0;
        set_limit(lease, lease_kill_at_ms(lease));
        renew_in_time(lease);
    } else if (rc == IDEM_ELOST) {
        stop_or_let_go(lease);
    } else {
        renew_in(lease, lease->length_ms / 24);
    }
}

/* ---- The loop ---- */

/* A process that is not a descendant, or is allowed to live on, may hold the pipes
 * open for ever. Wait this long for its last output. */
#define LAST_WORDS_MS 200

static void wait_for_last_words(struct watch *w)
{
    w->over_at_ms = io_now_ms() + LAST_WORDS_MS;
    pump_drain(&w->out);
    pump_drain(&w->err);
}

static void command_ended(struct watch *w, const struct child_end *end)
{
    w->ended = true;
    w->end = *end;
    w->group = 0;
    if (w->allow_background) {
        w->alone = true;
    }
    wait_for_last_words(w);
}

static void all_ended(struct watch *w, bool left)
{
    w->alone = true;
    w->left = left;
    wait_for_last_words(w);
}

/* The work may go on, so nothing may be recorded about its end. */
static void survived(struct watch *w,
                     const struct descendants_survivor *survivor)
{
    w->survived = true;
    w->survivor = *survivor;
    lease_let_go(&w->lease);
    all_ended(w, w->left);
}

/* Its command died with it. */
static void supervisor_was_killed(struct watch *w)
{
    struct child_end killed = {.signal = SIGKILL, .at_ms = io_now_ms()};

    w->supervisor_died = true;
    if (!w->ended && !w->survived) {
        command_ended(w, &killed);
    }
    all_ended(w, w->left);
}

/* The supervisor was killed: end what it left. If the guard was killed too, its
 * orphans went to init, where we cannot find them. */
static void supervisor_is_gone(struct watch *w)
{
    struct descendants_survivor survivor = {.pid = 0};

    IDEM__CRASH_POINT("run/wait/supervisor-died");
    if (!w->supervisor->adopts) {
        if (w->group > 0) {
            (void)kill(-w->group, SIGKILL);
        }
        survived(w, &survivor);
    } else if (!descendants_end(w->group, SUPERVISOR_KILL_MS, &survivor)) {
        survived(w, &survivor);
    }
    supervisor_was_killed(w);
}

void watch_take_news(struct watch *w, const struct supervisor_news *news)
{
    switch (news->kind) {
    case SUPERVISOR_STARTED:
    case SUPERVISOR_REFUSED:
        break;
    case SUPERVISOR_STOPPED:
        terminal_stopped(w->terminal, w->group, news->number);
        break;
    case SUPERVISOR_STOPPING:
        w->stopping = news->why;
        if (news->why == SUPERVISOR_WHY_LEASE) {
            lease_let_go(&w->lease);
        }
        break;
    case SUPERVISOR_ENDED:
        command_ended(w, &news->end);
        IDEM__CRASH_POINT("run/wait/command-ended");
        supervisor_say(w->supervisor, SUPERVISOR_SEEN);
        break;
    case SUPERVISOR_ALONE:
        all_ended(w, news->number != 0);
        break;
    case SUPERVISOR_SURVIVED:
        survived(w, &news->survivor);
        break;
    case SUPERVISOR_LOST:
        supervisor_was_killed(w);
        break;
    }
}

static void listen_to_supervisor(struct watch *w)
{
    struct supervisor_news news;
    int heard = 0;

    while (!w->supervisor_died &&
           (heard = supervisor_hear(w->supervisor, /* wait= */ false, &news)) ==
               1) {
        watch_take_news(w, &news);
    }
    if (heard < 0) {
        supervisor_is_gone(w);
    }
}

static void pass_on(struct watch *w, int signo)
{
    if (w->group == 0) {
        if (signals_is_fatal(signo)) {
            supervisor_say(
                w->supervisor,
                SUPERVISOR_STOP); /* Stop the processes that outlived the command. */
        }
        return;
    }
    switch (signo) {
    case SIGCHLD: /* The supervisor changed state; its channel tells more. */
    case SIGTTOU: /* It concerns the terminal of the runner, not the command. */
        break;
    case SIGTSTP:
        terminal_stop(w->terminal, w->group);
        break;
    case SIGCONT:
        if (lease_is_over(&w->lease)) {
            break; /* The host slept past the lease. The command must not wake up beside a successor. */
        }
        (void)kill(-w->group, signo);
        break;
    default:
        (void)kill(-w->group, signo);
    }
}

static void pass_on_all(struct watch *w)
{
    int signo;

    while ((signo = signals_next(w->signals)) != 0) {
        pass_on(w, signo);
    }
}

static int timeout_ms(const struct watch *w)
{
    int64_t ms =
        w->alone ? w->over_at_ms - io_now_ms() : lease_wait_ms(&w->lease);

    if (w->alone && ms < 0) {
        return 0;
    }
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

static void turn(struct watch *w)
{
    struct pollfd ready[] = {
        {.fd = w->alone ? -1 : w->signals->fd, .events = POLLIN},
        {.fd = w->alone ? -1 : w->supervisor->channel, .events = POLLIN},
        pump_poll(&w->out),
        pump_poll(&w->err),
    };

    if (poll(ready, 4, timeout_ms(w)) > 0) {
        pump_move(&w->out, &ready[2]);
        pump_move(&w->err, &ready[3]);
        if (!w->alone) {
            listen_to_supervisor(w);
            pass_on_all(w);
        }
    }
    if (!w->alone) {
        renew_if_due(&w->lease);
    }
}

static bool is_over(const struct watch *w)
{
    if (!w->alone) {
        return false;
    }
    return (pump_is_done(&w->out) && pump_is_done(&w->err)) ||
           io_now_ms() >= w->over_at_ms;
}

void watch_until_end(struct watch *watch)
{
    while (!is_over(watch)) {
        turn(watch);
    }
    terminal_take(watch->terminal);
    if (watch->end.signal != 0) {
        terminal_mend(watch->terminal);
    }
}
