/* Learns the time of a service from its answers.
 *
 * An answer gives the time at the service, more or less exactly. The service made it
 * between the moment at which this host sent the request and the moment at which the
 * answer arrived. So each answer gives an interval for
 *
 *     offset = the service's time - CLOCK_BOOTTIME of this machine
 *
 * and all answers together give the intersection of these intervals. It widens with the
 * time since the last answer (IDEM__LEARNED_DRIFT_PPM).
 *
 * An answer that contradicts the intersection does not replace it: until
 * IDEM__LEARNED_TURNS answers in a row agree with one another against it, the interval
 * covers both. So a caller that acts on the far bound (a taker on the lower one) is not
 * deceived by one host of the service with a wrong clock, unless that host gave the
 * very first answer.
 *
 * Pure: the caller brings every reading. The wall clock of this machine serves only to
 * refuse times that are more than a year off.
 */
#ifndef IDEM_BASE_LEARNED_CLOCK_H
#define IDEM_BASE_LEARNED_CLOCK_H

#include <idem.h>

#define IDEM__LEARNED_DRIFT_PPM 200
#define IDEM__LEARNED_TURNS 3
#define IDEM__LEARNED_TRIP_MAX_MS ((int64_t)15 * 60 * 1000)
#define IDEM__LEARNED_OFF_MAX_MS ((int64_t)366 * 24 * 3600 * 1000)

/* Bounds of the offset in ns, at a reading of the boot clock. */
struct idem__learned_span {
    int64_t lo_ns;
    int64_t hi_ns;
    int64_t at_boot_ms;
};

/* Zeroed: no time is known. */
struct idem__learned_clock {
    bool known;
    unsigned turns;                  /* Answers that agree on other; 0: none. */
    struct idem__learned_span span;  /* The span that is believed. */
    struct idem__learned_span other; /* The span that contradicts it. */
};

/* One answer. */
struct idem__learned_time {
    int64_t sent_boot_ms; /* Read before the request was sent ... */
    int64_t got_boot_ms;  /* ... and after the time arrived. */
    int64_t told_ms;      /* The time that the answer gives; the true time was
                             ... */
    int64_t early_ms;     /* ... at most this earlier ... */
    int64_t late_ms;      /* ... and at most this later. */
};

/* Takes in one answer. @wall_ms is this machine's wall clock at that moment.
 *
 * Returns true if it used the answer. Returns false if it refused the answer: its time
 * is more than a year off the wall clock or before 2020, it was in flight for more than
 * IDEM__LEARNED_TRIP_MAX_MS (the host slept, so it bounds hardly anything), or its
 * readings run backwards.
 */
bool idem__learned_clock_learn(struct idem__learned_clock *clock,
                               const struct idem__learned_time *time,
                               int64_t wall_ms);

/* Returns the service's time when the boot clock of this machine shows @boot_ms: the
 * true time is within @ret_ms plus or minus @ret_err_ms. Returns false, and sets
 * nothing, if no time is known. @boot_ms may lie before the last answer. */
bool idem__learned_clock_now(const struct idem__learned_clock *clock,
                             int64_t boot_ms, int64_t *ret_ms,
                             int64_t *ret_err_ms);

#endif
