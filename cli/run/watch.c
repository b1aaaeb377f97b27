/* The time between the start of the command and its end: one loop. */
#include "run/watch.h"

#include "base/crash.h"
#include "process/descriptors.h"
#include "process/host.h"

#include <limits.h>

/* A process that is not a descendant, or may live on, may hold the pipes for as
 * long as it likes. He gets this long to say his last words. */
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

/* Work that may go on: it is not ours to say how it ended. */
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

/* Processes that the supervisor did not end are ours to end. If its guard was
 * killed too, that has gone to init, where nobody finds it. */
static void supervisor_is_gone(struct watch *w)
{
    struct descendants_survivor survivor = {.pid = 0};

    IDEM__CRASH_POINT("run/watch/supervisor-died");
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
        IDEM__CRASH_POINT("run/watch/command-ended");
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
            supervisor_say(w->supervisor,
                           SUPERVISOR_STOP); /* The processes that outlived
                                                   it. */
        }
        return;
    }
    switch (signo) {
    case SIGCHLD: /* The supervisor. Its channel tells more. */
    case SIGTTOU: /* Meant for us, and of no use here. */
        break;
    case SIGTSTP:
        terminal_stop(w->terminal, w->group);
        break;
    case SIGCONT:
        if (lease_is_over(&w->lease)) {
            break; /* We were asleep, and so may the command be: it must not
                      wake up beside a successor. */
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
        lease_tick(&w->lease);
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
