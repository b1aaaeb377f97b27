/* Rate limits: the window of a request, and the decision about it. Pure. */
#ifndef IDEM_LIMIT_LIMIT_H
#define IDEM_LIMIT_LIMIT_H

#include "contract/parts.h"

/* State outlives the time in which it can be asked for by this much, which is
 * more than any clock of ours can be wrong. */
#define IDEM__LIMIT_GRACE_MS IDEM_LIMIT_HOUR

/* 0, or IDEM_EINVALID with a sentence that names the member and its range. */
int idem__limit_check(const struct idem_limit_request *limit,
                      struct idem_error *error);

/* The window that the event of @limit lies in. */
void idem__limit_window(const struct idem_limit_request *limit,
                        int64_t *ret_start_ms, int64_t *ret_end_ms);

/* When the state of @limit's window may be deleted. */
int64_t idem__limit_expires(const struct idem_limit_request *limit);

/* The identities of @limit's window and, within it, of the request: whoever
 * changes max finds the same window, and what was counted in it. 0 or
 * IDEM_ENOMEM. */
int idem__limit_ids(const struct idem_limit_request *limit,
                    uint8_t ret_window[IDEM_ID_LEN],
                    uint8_t ret_request[IDEM_ID_LEN]);

/* ---- The decision ----
 *
 *     no entry --- cost <= left ---> admitted: counted, and the entry says what
 *        |                           remains
 *        '-------- cost >  left ---> refused: nothing is used; the entry says what
 *                                    was left, unless that is 0 or too many are
 *                                    remembered
 *     entry ------ at any time ----> the same answer; nothing is counted
 */

void idem__limit_decide(const struct idem_limit_request *limit,
                        const struct idem_limit_state *found,
                        const struct idem_now *now,
                        struct idem_limit_decision *ret_decision);

/* 0, or IDEM_EINVALID: the window is too far from @now to begin anything in. */
int idem__limit_in_time(const struct idem_limit_request *limit,
                        const struct idem_now *now, struct idem_error *error);

#endif
