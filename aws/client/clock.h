/* The service's time, learned from the Date headers of its answers.
 *
 * A Date header says, in whole seconds, when the service made the answer. That
 * was between the moment the request was handed to the network and the moment
 * the header arrived; so each answer gives an interval for
 *
 *     offset = the service's time - CLOCK_BOOTTIME of this machine
 *
 * and all answers together give their intersection. It widens with the time
 * since (IDEM__AWS_DRIFT_PPM), and starts out wider than the header says by
 * IDEM__AWS_DATE_SLACK_MS at both ends, because the hosts of a service differ a
 * little and some keep a formatted Date for a moment.
 *
 * An answer that contradicts what is known does not replace it: until
 * IDEM__AWS_CLOCK_TURNS answers in a row agree with one another against it, the
 * interval covers both. A caller that acts on the far bound (a taker on the
 * lower one) is therefore not deceived by one host with a wrong clock, unless
 * its answer is the very first.
 *
 * Pure: the caller brings every reading. The wall clock of this machine serves
 * only to refuse dates that are more than a year off.
 */
#ifndef IDEM_AWS_CLIENT_CLOCK_H
#define IDEM_AWS_CLIENT_CLOCK_H

#include <idem.h>

#define IDEM__AWS_DRIFT_PPM 200
#define IDEM__AWS_DATE_SLACK_MS 250
#define IDEM__AWS_CLOCK_TURNS 3
#define IDEM__AWS_TRIP_MAX_MS ((int64_t)15 * 60 * 1000)
#define IDEM__AWS_CLOCK_OFF_MAX_MS ((int64_t)366 * 24 * 3600 * 1000)

/* Bounds of the offset in ns, as of a reading of the boot clock. */
struct idem__aws_span {
    int64_t lo_ns;
    int64_t hi_ns;
    int64_t at_boot_ms;
};

/* Zeroed: nothing is known. */
struct idem__aws_clock {
    bool known;
    unsigned turns;              /* Answers that agree on @other; 0: none. */
    struct idem__aws_span span;  /* The span that is believed. */
    struct idem__aws_span other; /* The span that contradicts it. */
};

/* Takes in one answer: @date_ms is its Date header, @sent_boot_ms was read
 * before the request was handed over and @got_boot_ms after the header arrived.
 * @wall_ms is this machine's wall clock at that moment.
 *
 * True if it was used; false if it was refused: more than a year off the wall
 * clock, before 2020, under way for more than IDEM__AWS_TRIP_MAX_MS (the host
 * slept: it says hardly anything), or its readings run backwards. */
bool idem__aws_clock_learn(struct idem__aws_clock *clock, int64_t sent_boot_ms,
                           int64_t got_boot_ms, int64_t date_ms,
                           int64_t wall_ms);

/* The service's time when the boot clock of this machine shows @boot_ms: the
 * true one is within @ret_ms plus or minus @ret_err_ms. False: nothing is
 * known, and nothing is set. @boot_ms may lie before the last answer. */
bool idem__aws_clock_now(const struct idem__aws_clock *clock, int64_t boot_ms,
                         int64_t *ret_ms, int64_t *ret_err_ms);

/* Reads a Date header ("Sun, 06 Nov 1994 08:49:37 GMT", the only form that may be
 * sent; RFC 9110). False: it is not one. */
bool idem__aws_date_parse(struct idem_slice text, int64_t *ret_ms);

/* Writes @ms as the time of a signature ("20150830T123600Z") with a NUL. @ms is
 * taken into the years 1970 to 9999. */
#define IDEM__AWS_STAMP_LEN 16
void idem__aws_stamp(int64_t ms, char ret_stamp[IDEM__AWS_STAMP_LEN + 1]);

#endif
