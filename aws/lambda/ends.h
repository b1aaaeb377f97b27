/* The ends of attempts that are being sent to the store.
 *
 *     send --> SENT --answer--> RECORDED, REFUSED      take() frees it
 *               ^  |
 *               |  '--error of kind RETRY--> AGAIN     take() leaves it here
 *               '-----------work(), retell()--'
 *
 * The work is done, so its answer must not be lost by waiting here: work() has a bound. If
 * an outcome is not on record when the answer goes out, it is in the log, for `idem
 * reconcile`, and is sent again before the next claims, which would otherwise find its key
 * in progress.
 */
#ifndef IDEM_AWS_LAMBDA_ENDS_H
#define IDEM_AWS_LAMBDA_ENDS_H

#include "aws/lambda/lambda.h"
#include "aws/lambda/event_source.h"

struct idem__lambda_ending;

enum {
    IDEM__LAMBDA_PAUSE_FIRST_MS = 20,
    IDEM__LAMBDA_PAUSE_MAX_MS = 500,
};

/* Pauses between two tries. An unreachable store refuses at once, so each pause is longer
 * than the one before. */
void idem__lambda_pause(int64_t ms);

static inline int64_t idem__lambda_pause_after(int64_t ms)
{
    return ms * 2 < IDEM__LAMBDA_PAUSE_MAX_MS ? ms * 2
                                              : IDEM__LAMBDA_PAUSE_MAX_MS;
}

/* Frees all ends. Call it before the store is closed. */
void idem__lambda_ends_finish(struct idem_lambda *lambda);

/* Sends the end of @attempt, and copies its @outcome. NULL: memory ran out, or @outcome is
 * not valid; the log has the reason. */
struct idem__lambda_ending *idem__lambda_ends_send(
    struct idem_lambda *lambda, const struct idem_attempt *attempt,
    const struct idem_outcome *outcome);

/* Sends the store the ends that it has not taken, for @for_ms at most; 0: without
 * waiting. */
void idem__lambda_ends_work(struct idem_lambda *lambda, int64_t for_ms);

/* Does the same until @ending (NULL counts as settled) is settled: on record, or refused
 * for good. False: it is not. */
bool idem__lambda_ends_settle(struct idem_lambda *lambda,
                              const struct idem__lambda_ending *ending,
                              int64_t for_ms);

/* Returns how long the answer to a caller may wait for the record: half of the time that
 * is left, and at most the store's time-out. */
int64_t idem__lambda_ends_bound_ms(const struct idem_lambda *lambda);

/* Ends the use of @ending, which may be NULL. True if it is on record; otherwise logs that
 * it is not. */
bool idem__lambda_ends_take(struct idem_lambda *lambda,
                            struct idem__lambda_ending *ending);

/* Sends again the ends that earlier deliveries have left. */
void idem__lambda_ends_retell(struct idem_lambda *lambda);

/* ---- The outcome of a run, for the record and for the log ---------------- */

/* Sets *@ret_outcome to the outcome of lambda->work; it points into that and @scratch.
 * False: there is none, because the handler was stopped: call idem_expire(). */
bool idem__lambda_outcome(const struct idem_lambda *lambda,
                          enum idem__lambda_shape shape,
                          struct idem__buffer *scratch,
                          struct idem_outcome *ret_outcome);

/* Logs how @attempt ended, before the end is sent to the store: `idem reconcile` can
 * record it from this line. @outcome NULL: it was stopped. */
void idem__lambda_outcome_log(const struct idem_lambda *lambda,
                              const struct idem_attempt *attempt,
                              const struct idem_outcome *outcome);

/* Logs that the store has not recorded the outcome. */
void idem__lambda_not_recorded(const struct idem_lambda *lambda,
                               struct idem_slice key,
                               const struct idem_error *error);

#endif
