/* Ends of attempts on their way to the store.
 *
 *     send --> SENT --answer--> RECORDED, REFUSED      take() frees it
 *               ^  |
 *               |  '--error of kind RETRY--> AGAIN     take() leaves it here
 *               '-----------work(), retell()--'
 *
 * The work is done, so nothing here may cost its answer: work() has a bound. An
 * outcome that is not on record when the answer goes out is in the log, for
 * `idem reconcile`, and is told again before the next claims, which would find
 * its key at work otherwise.
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

/* A store that is away refuses at once: between two tries is a pause, and each is
 * longer than the one before. */
void idem__lambda_pause(int64_t ms);

static inline int64_t idem__lambda_pause_after(int64_t ms)
{
    return ms * 2 < IDEM__LAMBDA_PAUSE_MAX_MS ? ms * 2
                                              : IDEM__LAMBDA_PAUSE_MAX_MS;
}

/* Before the store is closed. */
void idem__lambda_ends_finish(struct idem_lambda *lambda);

/* Sends the end of @attempt, whose @outcome is copied. NULL: memory ran out, or
 * @outcome is not valid, which is in the log. */
struct idem__lambda_ending *idem__lambda_ends_send(
    struct idem_lambda *lambda, const struct idem_attempt *attempt,
    const struct idem_outcome *outcome);

/* Tells the store what it was not told, for @for_ms at most; 0: without waiting. */
void idem__lambda_ends_work(struct idem_lambda *lambda, int64_t for_ms);

/* Likewise, until @ending, which may be NULL, is settled: on record, or refused so
 * that another try cannot change it. False: it is not. */
bool idem__lambda_ends_settle(struct idem_lambda *lambda,
                              const struct idem__lambda_ending *ending,
                              int64_t for_ms);

/* How long the answer to a caller may wait for the record: half of what is left,
 * and never longer than the store may take to answer. */
int64_t idem__lambda_ends_bound_ms(const struct idem_lambda *lambda);

/* True if @ending, which may be NULL, is on record; else the log says that it is
 * not. @ending is gone. */
bool idem__lambda_ends_take(struct idem_lambda *lambda,
                            struct idem__lambda_ending *ending);

/* Tells again what deliveries before this one have left. */
void idem__lambda_ends_retell(struct idem_lambda *lambda);

/* ---- How a run is put on record, and what the log says of it before ------ */

/* The outcome of lambda->work, which it points into, and into @scratch. False:
 * it has none, because the handler was stopped: idem_expire(). */
bool idem__lambda_outcome(const struct idem_lambda *lambda,
                          enum idem__lambda_shape shape,
                          struct idem__buffer *scratch,
                          struct idem_outcome *ret_outcome);

/* Writes to the log how @attempt ended, before the store is told: a line from
 * which `idem reconcile` can record it. @outcome NULL: it was stopped. */
void idem__lambda_outcome_log(const struct idem_lambda *lambda,
                              const struct idem_attempt *attempt,
                              const struct idem_outcome *outcome);

/* Says that the store could not be told. */
void idem__lambda_not_recorded(const struct idem_lambda *lambda,
                               struct idem_slice key,
                               const struct idem_error *error);

#endif
