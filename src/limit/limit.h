/* Computes the window of a request under a rate limit, and decides about the request.
 * Pure. */
#ifndef IDEM_LIMIT_LIMIT_H
#define IDEM_LIMIT_LIMIT_H

#include "contract/parts.h"

/* How much longer than needed the state of a window is kept: more than any clock of
 * ours can be wrong. */
#define IDEM__LIMIT_GRACE_MS IDEM_LIMIT_HOUR

/* Returns 0, or IDEM_EINVALID with a sentence that names the member and its range. */
int idem__limit_check(const struct idem_limit_request *limit,
                      struct idem_error *error);

/* Computes the window in which the event of @limit lies. */
void idem__limit_window(const struct idem_limit_request *limit,
                        int64_t *ret_start_ms, int64_t *ret_end_ms);

/* Returns when the state of @limit's window may be deleted. */
int64_t idem__limit_expires(const struct idem_limit_request *limit);

/* Computes the identities of @limit's window and, within it, of the request. max is not
 * part of them: a caller that changes max finds the same window, and its count. Returns
 * 0 or IDEM_ENOMEM. */
int idem__limit_ids(const struct idem_limit_request *limit,
                    uint8_t ret_window[IDEM_ID_LEN],
                    uint8_t ret_request[IDEM_ID_LEN]);

/* ---- The decision ----
 *
 *     no entry --- cost <= left ---> admitted: counted, and the entry has the rest
 *        |
 *        '-------- cost >  left ---> refused: nothing is used; the entry has what was
 *                                    left, unless that is 0 or too many refusals are
 *                                    on record
 *     entry ------ at any time ----> the same answer; nothing is counted
 */

void idem__limit_decide(const struct idem_limit_request *limit,
                        const struct idem_limit_state *found,
                        const struct idem_now *now,
                        struct idem_limit_decision *ret_decision);

/* Returns 0, or IDEM_EINVALID if the window is too far from @now for a new request. */
int idem__limit_in_time(const struct idem_limit_request *limit,
                        const struct idem_now *now, struct idem_error *error);

#endif
