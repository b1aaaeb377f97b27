/* The service's time, learned from the Date headers of its answers; see
 * base/learned_clock.h.
 *
 * A Date header says in whole seconds when the service made the answer. We widen that
 * range by IDEM__AWS_DATE_SLACK_MS at both ends, because the clocks of a service's hosts
 * differ a little, and some hosts reuse a formatted Date for a moment. Pure.
 */
#ifndef IDEM_AWS_CLIENT_CLOCK_H
#define IDEM_AWS_CLIENT_CLOCK_H

#include "base/learned_clock.h"

#define IDEM__AWS_DATE_SLACK_MS 250

/* Learns from one answer. @date_ms is its Date header; @sent_boot_ms was read before the
 * request was sent, @got_boot_ms after the header arrived, and @wall_ms, this machine's
 * wall clock, at that moment. False: the clock refused it. */
bool idem__aws_clock_learn(struct idem__learned_clock *clock,
                           int64_t sent_boot_ms, int64_t got_boot_ms,
                           int64_t date_ms, int64_t wall_ms);

/* Reads a Date header ("Sun, 06 Nov 1994 08:49:37 GMT", the only form that may be
 * sent; RFC 9110). False: it is not one. */
bool idem__aws_date_parse(struct idem_slice text, int64_t *ret_ms);

/* Reads "2026-11-21T15:04:05Z", also with a fraction, or with +01:00 for Z. False: it is
 * not such a time, or is before 1970. */
bool idem__aws_time_parse(struct idem_slice text, int64_t *ret_ms);

/* Writes @ms as the time of a signature ("20150830T123600Z") with a NUL. Limits @ms to
 * the years 1970 to 9999. */
#define IDEM__AWS_STAMP_LEN 16
void idem__aws_stamp(int64_t ms, char ret_stamp[IDEM__AWS_STAMP_LEN + 1]);

#endif
