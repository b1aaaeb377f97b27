/* The time of a service, learned from its answers.
 *
 * An answer says what time it is at the service, more or less exactly. It was
 * made between the moment the request was handed to the network and the moment
 * the answer arrived; so each answer gives an interval for
 *
 *     offset = the service's time - CLOCK_BOOTTIME of this machine
 *
 * and all answers together give their intersection. It widens with the time
 * since (IDEM__LEARNED_DRIFT_PPM).
 *
 * An answer that contradicts what is known does not replace it: until
 * IDEM__LEARNED_TURNS answers in a row agree with one another against it, the
 * interval covers both. A caller that acts on the far bound (a taker on the
 * lower one) is therefore not deceived by one host with a wrong clock, unless
 * its answer is the very first.
 *
 * Pure: the caller brings every reading. The wall clock of this machine serves
 * only to refuse times that are more than a year off.
 */
#ifndef IDEM_BASE_LEARNED_CLOCK_H
#define IDEM_BASE_LEARNED_CLOCK_H

#include <idem.h>

#define IDEM__LEARNED_DRIFT_PPM 200
#define IDEM__LEARNED_TURNS 3
#define IDEM__LEARNED_TRIP_MAX_MS ((int64_t)15 * 60 * 1000)
#define IDEM__LEARNED_OFF_MAX_MS ((int64_t)366 * 24 * 3600 * 1000)

/* Bounds of the offset in ns, as of a reading of the boot clock. */
struct idem__learned_span {
    int64_t lo_ns;
    int64_t hi_ns;
    int64_t at_boot_ms;
};

/* Zeroed: nothing is known. */
struct idem__learned_clock {
    bool known;
    unsigned turns;                 /* Answers that agree on @other; 0: none. */
    struct idem__learned_span span; /* The span that is believed. */
    struct idem__learned_span other; /* The span that contradicts it. */
};

/* One answer. */
struct idem__learned_time {
    int64_t sent_boot_ms; /* Read before the request was handed over ... */
    int64_t got_boot_ms;  /* ... and after the time arrived. */
    int64_t told_ms;  /* It was said to be then, at the service; it was ... */
    int64_t early_ms; /* ... no more than this before that ... */
    int64_t late_ms;  /* ... nor than this after it. */
};

/* Takes in one answer. @wall_ms is this machine's wall clock at that moment.
 *
 * True if it was used; false if it was refused: more than a year off the wall
 * clock, before 2020, under way for more than IDEM__LEARNED_TRIP_MAX_MS (the host
 * slept: it says hardly anything), or its readings run backwards. */
bool idem__learned_clock_learn(struct idem__learned_clock *clock,
                               const struct idem__learned_time *time,
                               int64_t wall_ms);

/* The service's time when the boot clock of this machine shows @boot_ms: the
 * true one is within @ret_ms plus or minus @ret_err_ms. False: nothing is
 * known, and nothing is set. @boot_ms may lie before the last answer. */
bool idem__learned_clock_now(const struct idem__learned_clock *clock,
                             int64_t boot_ms, int64_t *ret_ms,
                             int64_t *ret_err_ms);

#endif
