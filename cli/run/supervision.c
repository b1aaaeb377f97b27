/* Ending the command in time: for its lease, for --max-time, or on an order. */
#include "run/supervisor.h"

#include "base/crash.h"
#include "process/descriptors.h"
#include "process/host.h"
#include "run/channel.h"

#include <signal.h>

#define KILL_AGAIN_MS 10 /* Between two rounds of SIGKILL. */
#define KILL_LATER_MS                                                          \
    1000 /* While the unreaped command hides whether one is left. */

void supervision_tell(const struct supervision *sup,
                      const struct supervisor_news *news)
{
    if (channel_send(sup->channel, news, sizeof(*news), &channel_no_fds) != 0) {
        channel_fall_silent(sup->channel);
    }
}

static int64_t soonest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t supervision_later(int64_t ms, int64_t by_ms)
{
    return ms > SUPERVISOR_NEVER - by_ms ? SUPERVISOR_NEVER : ms + by_ms;
}

/* When the lease makes SIGTERM due: early enough that SIGKILL comes before it ends. */
static int64_t warn_at_ms(const struct supervision *sup)
{
    return sup->kill_at_ms == SUPERVISOR_NEVER
               ? SUPERVISOR_NEVER
               : sup->kill_at_ms - sup->start.grace_ms;
}

/* True while the ended command stays unreaped because the runner does not know yet.
 * Until then waitid() cannot prove that no other child is left. */
static bool is_held(const struct supervision *sup)
{
    return sup->ended && !sup->released && !sup->orphaned;
}

pid_t supervision_group(const struct supervision *sup)
{
    return !sup->ended || is_held(sup) ? sup->command : 0;
}

bool supervision_is_settled(const struct supervision *sup)
{
    return sup->alone || sup->survived;
}

/* Keeps only the first reason. True if @why is it. */
static bool give_reason(struct supervision *sup, enum supervisor_why why)
{
    struct supervisor_news news = {.kind = SUPERVISOR_STOPPING, .why = why};

    if (sup->stopping != SUPERVISOR_WHY_NOT) {
        return false;
    }
    sup->stopping = why;
    /* A command that ended by itself was not cut short, even if its descendants are
     * stopped now. */
    sup->end.cut_short = !sup->ended;
    supervision_tell(sup, &news);
    return true;
}

static bool is_kill_due(const struct supervision *sup)
{
    /* The boot clock counts the time that the host sleeps, because other hosts count it,
     * too. */
    return io_now_ms() >= soonest(sup->kill_at_ms, sup->stop_kill_at_ms);
}

/* SIGCONT too, for a stopped process sees no SIGTERM; but not when it is already
 * time to kill. */
static void stop(struct supervision *sup, enum supervisor_why why)
{
    if (give_reason(sup, why) && !is_kill_due(sup)) {
        descendants_signal(SIGTERM, supervision_group(sup));
        descendants_signal(SIGCONT, supervision_group(sup));
        IDEM__CRASH_POINT("supervisor/told-to-end");
    }
}

void supervision_stop_within(struct supervision *sup, enum supervisor_why why,
                             int64_t grace_ms)
{
    sup->stop_kill_at_ms =
        soonest(sup->stop_kill_at_ms, supervision_later(io_now_ms(), grace_ms));
    stop(sup, why);
}

bool supervision_may_be_left(const struct supervision *sup)
{
    return sup->ended && sup->run->options->allow_background;
}

/* SIGKILL has not ended all. Nothing may be recorded without proof that the work is
 * over, so report the survivor. */
static void give_up(struct supervision *sup)
{
    struct supervisor_news news = {.kind = SUPERVISOR_SURVIVED};

    sup->survived = true;
    descendants_find_survivor(&news.survivor);
    sup->survivor = news.survivor;
    supervision_tell(sup, &news);
}

/* Sends SIGKILL, again every 10 ms: a process may fork while we list its family. A host
 * that slept past the end of the lease comes here without a SIGTERM first, because
 * another runner may already have taken over. */
static void kill_all(struct supervision *sup, int64_t now_ms)
{
    if (now_ms < sup->kill_next_ms) {
        return;
    }
    (void)give_reason(sup, SUPERVISOR_WHY_LEASE);
    if (sup->killed_at_ms == SUPERVISOR_NEVER) {
        sup->killed_at_ms = now_ms;
    }
    descendants_signal(SIGKILL, supervision_group(sup));
    IDEM__CRASH_POINT("supervisor/killed");
    sup->kill_next_ms = now_ms + KILL_AGAIN_MS;
    if (now_ms < sup->killed_at_ms + SUPERVISOR_KILL_MS) {
        return;
    }
    /* The ended command is a child until it is reaped: whether another is left shows only
     * once the runner knows of the end. */
    if (is_held(sup)) {
        sup->kill_next_ms = now_ms + KILL_LATER_MS;
    } else {
        give_up(sup);
    }
}

void supervision_obey_clock(struct supervision *sup)
{
    int64_t now_ms = io_now_ms();
    int64_t grace_ms = (int64_t)sup->run->options->kill_after_ms;

    if (supervision_is_settled(sup) || supervision_may_be_left(sup)) {
        return;
    }
    /* Killing comes first: past the end of the lease another runner may be at work. */
    if (is_kill_due(sup)) {
        kill_all(sup, now_ms);
        return;
    }
    if (now_ms >= warn_at_ms(sup)) {
        stop(sup, SUPERVISOR_WHY_LEASE);
    }
    if (!sup->ended && now_ms >= sup->max_end_ms) {
        sup->max_end_ms = SUPERVISOR_NEVER;
        supervision_stop_within(sup, SUPERVISOR_WHY_MAX_TIME, grace_ms);
    }
    /* The runner may learn late of the end, while it waits for its store. Until then
     * the unreaped command itself may be the only child, which is not a leftover. */
    if (now_ms >= sup->left_at_ms && !is_held(sup)) {
        sup->left_at_ms = SUPERVISOR_NEVER;
        sup->left = true;
        supervision_stop_within(sup, SUPERVISOR_WHY_LEFT, grace_ms);
    }
}

/* A timer on the boot clock counts the time that the host sleeps, unlike the timeout
 * of poll(). */
void supervision_set_timer(struct supervision *sup)
{
    int64_t at_ms = 0; /* Nothing is due. */
    int64_t ms = soonest(sup->kill_at_ms, sup->stop_kill_at_ms);

    if (sup->killed_at_ms != SUPERVISOR_NEVER) {
        ms = sup->kill_next_ms;
    } else {
        if (sup->stopping == SUPERVISOR_WHY_NOT) {
            ms = soonest(ms, warn_at_ms(sup));
        }
        ms = soonest(ms, sup->max_end_ms);
        ms = is_held(sup) ? ms : soonest(ms, sup->left_at_ms);
    }
    if (ms != SUPERVISOR_NEVER && !supervision_is_settled(sup) &&
        !supervision_may_be_left(sup)) {
        at_ms = ms;
    }
    boot_timer_set(sup->timer, at_ms);
}
