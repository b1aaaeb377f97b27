/* Learns the time of a service, as an interval, from its answers. */
#include "base/learned_clock.h"

#define NS_PER_MS ((int64_t)1000000)
#define DRIFT_NS_PER_MS                                                        \
    ((int64_t)IDEM__LEARNED_DRIFT_PPM)     /* 1 ppm of 1 ms: 1 ns. */
#define OLDEST_MS ((int64_t)1577836800000) /* 2020-01-01. */
#define READING_MAX_MS ((int64_t)1 << 42)  /* 139 years. */

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns @span widened by the drift that is possible between its own reading and
 * @boot_ms, which may be earlier or later. */
static struct idem__learned_span widened(const struct idem__learned_span *span,
                                         int64_t boot_ms)
{
    int64_t apart_ms = boot_ms - span->at_boot_ms;
    int64_t drift_ns = (apart_ms < 0 ? -apart_ms : apart_ms) * DRIFT_NS_PER_MS;
    struct idem__learned_span wide = {
        .lo_ns = span->lo_ns - drift_ns,
        .hi_ns = span->hi_ns + drift_ns,
        .at_boot_ms = boot_ms,
    };

    return wide;
}

/* Narrows @span to its intersection with @seen, since both hold at the same reading.
 * Returns false, and changes nothing, if they have none. */
static bool narrow(struct idem__learned_span *span,
                   const struct idem__learned_span *seen)
{
    int64_t lo_ns = max(span->lo_ns, seen->lo_ns);
    int64_t hi_ns = min(span->hi_ns, seen->hi_ns);

    if (lo_ns > hi_ns) {
        return false;
    }
    span->lo_ns = lo_ns;
    span->hi_ns = hi_ns;
    return true;
}

/* @seen contradicts the believed span, or an earlier answer did so already: the
 * contradicting answers are kept apart until enough of them agree. */
static void doubt(struct idem__learned_clock *clock,
                  const struct idem__learned_span *seen)
{
    struct idem__learned_span other = *seen;

    if (clock->turns > 0) {
        other = widened(&clock->other, seen->at_boot_ms);
    }
    if (clock->turns == 0 || !narrow(&other, seen)) {
        other = *seen;
        clock->turns = 0;
    }
    clock->other = other;
    clock->turns++;
    if (clock->turns >= IDEM__LEARNED_TURNS) {
        clock->span = other;
        clock->turns = 0;
        return;
    }
    clock->span.lo_ns = min(clock->span.lo_ns, other.lo_ns);
    clock->span.hi_ns = max(clock->span.hi_ns, other.hi_ns);
}

/* Returns the span that one answer gives. Readings of the boot clock are cut to whole
 * ms, so each may be short of almost 1 ms. The upper bound counts from the moment of
 * sending, and has widened since then. */
static struct idem__learned_span span_of(const struct idem__learned_time *time)
{
    int64_t trip_ms = time->got_boot_ms - time->sent_boot_ms;
    int64_t lo_ms = time->told_ms - time->early_ms;
    int64_t hi_ms = time->told_ms + time->late_ms;
    struct idem__learned_span span = {
        .lo_ns = (lo_ms - time->got_boot_ms - 1) * NS_PER_MS,
        .hi_ns = (hi_ms - time->sent_boot_ms) * NS_PER_MS +
                 trip_ms * DRIFT_NS_PER_MS,
        .at_boot_ms = time->got_boot_ms,
    };

    return span;
}

static bool is_sound(const struct idem__learned_time *time, int64_t wall_ms)
{
    return time->sent_boot_ms >= 0 && time->got_boot_ms >= time->sent_boot_ms &&
           time->got_boot_ms - time->sent_boot_ms <=
               IDEM__LEARNED_TRIP_MAX_MS &&
           time->got_boot_ms <= READING_MAX_MS && time->told_ms >= OLDEST_MS &&
           time->told_ms <= READING_MAX_MS && wall_ms >= 0 &&
           wall_ms <= READING_MAX_MS &&
           time->told_ms - wall_ms <= IDEM__LEARNED_OFF_MAX_MS &&
           wall_ms - time->told_ms <= IDEM__LEARNED_OFF_MAX_MS;
}

bool idem__learned_clock_learn(struct idem__learned_clock *clock,
                               const struct idem__learned_time *time,
                               int64_t wall_ms)
{
    struct idem__learned_span seen;

    if (!is_sound(time, wall_ms)) {
        return false;
    }
    seen = span_of(time);
    if (!clock->known) {
        clock->span = seen;
        clock->known = true;
        clock->turns = 0;
        return true;
    }
    clock->span = widened(&clock->span, time->got_boot_ms);
    if (clock->turns > 0 || !narrow(&clock->span, &seen)) {
        doubt(clock, &seen);
    }
    return true;
}

bool idem__learned_clock_now(const struct idem__learned_clock *clock,
                             int64_t boot_ms, int64_t *ret_ms,
                             int64_t *ret_err_ms)
{
    struct idem__learned_span span;
    int64_t middle_ns;
    int64_t ms;

    if (!clock->known) {
        return false;
    }
    span = widened(&clock->span, boot_ms);
    middle_ns = span.lo_ns + (span.hi_ns - span.lo_ns) / 2;
    ms = boot_ms + middle_ns / NS_PER_MS;
    /* Add 1 ms for the division, and 1 ms for the part that @boot_ms cuts off. */
    *ret_err_ms = (span.hi_ns - span.lo_ns) / 2 / NS_PER_MS + 2;
    *ret_ms = ms;
    return true;
}
