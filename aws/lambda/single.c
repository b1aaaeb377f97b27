/* Handles an event that is one unit. */
#include "aws/lambda/unit.h"

#include "aws/lambda/answer.h"
#include "aws/lambda/ends.h"
#include "aws/lambda/lambda.h"
#include "aws/lambda/http.h"
#include "base/host.h"
#include "core/error.h"

/* The shortest wait, except for the last one. */
enum {
    SLICE_MIN_MS = 50,
};

/* ---- Ends -------------------------------------------------------------- */

void idem__lambda_stopped(const struct idem_lambda *lambda,
                          struct idem_attempt *attempt)
{
    struct idem_error error = {0};

    idem__lambda_outcome_log(lambda, attempt, /* outcome= */ NULL);
    idem__lambda_allow(lambda, idem__lambda_ends_bound_ms(lambda));
    error.code = idem_expire(attempt, &error);
    if (error.code != 0) {
        idem__lambda_log(lambda->now, "WARN", NULL,
                         "the lease goes on until it ends by itself: %s",
                         error.text);
    }
}

void idem__lambda_log_start(const struct idem_lambda *lambda,
                            const struct idem_attempt *attempt)
{
    struct idem__lambda_field fields[] = {
        {"key", attempt->record->key, 0},
        {"fence", {NULL, 0}, attempt->fence},
        {"attempts", {NULL, 0}, attempt->attempts},
        {NULL, {NULL, 0}, 0},
    };

    if (attempt->takeover) {
        idem__lambda_log(lambda->now, "WARN", fields,
                         "takeover: an attempt before this one may have done "
                         "the work");
    }
}

/* ---- One unit ---------------------------------------------------------- */

/* Records the outcome, for which the answer waits a bounded time. False: only the log has
 * the outcome. */
static bool record(struct idem_lambda *lambda,
                   const struct idem__lambda_unit *unit,
                   struct idem_attempt *attempt)
{
    struct idem__buffer scratch = {0};
    struct idem__lambda_ending *ending;
    struct idem_outcome outcome;
    bool recorded = true;

    if (!idem__lambda_outcome(lambda, unit->rule->shape, &scratch, &outcome)) {
        idem__lambda_stopped(lambda, attempt);
    } else {
        idem__lambda_outcome_log(lambda, attempt, &outcome);
        ending = idem__lambda_ends_send(lambda, attempt, &outcome);
        idem__lambda_ends_work(lambda, idem__lambda_ends_bound_ms(lambda));
        recorded = idem__lambda_ends_take(lambda, ending);
    }
    idem__buffer_free(&scratch);
    return recorded;
}

static void started(struct idem_lambda *lambda,
                    const struct idem__lambda_unit *unit,
                    struct idem_attempt *attempt)
{
    bool recorded;

    idem__lambda_log_start(lambda, attempt);
    idem__lambda_handler_run(lambda, lambda->now->event, attempt);
    recorded = record(lambda, unit, attempt);
    idem__lambda_answer_work(lambda);
    if (!recorded && unit->rule->shape == IDEM__LAMBDA_HTTP) {
        idem__lambda_answer_unrecorded(lambda);
    }
}

static void refused(struct idem_lambda *lambda,
                    const struct idem__lambda_unit *unit,
                    const struct idem_attempt *attempt)
{
    struct idem__lambda_field fields[] = {
        {"key", idem__buffer_slice(&unit->key), 0},
        {"fence", {NULL, 0}, attempt->fence},
        {NULL, {NULL, 0}, 0},
    };
    struct idem_http_answer answer;

    idem__lambda_log(lambda->now,
                     attempt->verdict == IDEM_BUSY ? "INFO" : "WARN", fields,
                     "%s", idem_verdict_name(attempt->verdict));
    if (attempt->verdict == IDEM_BUSY) {
        idem_http_answer_of(0, attempt, idem_bytes(NULL, 0), &answer);
        lambda->retry_after_s = answer.retry_after_s;
    }
    idem__lambda_answer_verdict(lambda, unit->rule, attempt);
}

/* Returns how long to wait for an attempt in flight: after that there must still be time
 * for the work, if it becomes ours. */
static int64_t wait_bound_ms(const struct idem_lambda *lambda)
{
    const struct idem_lambda_options *options = lambda->options;
    int64_t left_ms = idem__lambda_left_ms(lambda->now) -
                      options->start_min_ms - IDEM__LAMBDA_STOP_MS;

    left_ms = left_ms < 0 ? 0 : left_ms;
    return left_ms < options->wait_ms ? left_ms : options->wait_ms;
}

/* Returns the length of the next wait: at most half of the time until the margin, because
 * the store gets the other half. Then a store that stalls at the end of a wait does not
 * use up the time for an answer. */
static int64_t slice_ms(const struct idem_lambda *lambda, int64_t wait_ms)
{
    int64_t half_ms =
        (idem__lambda_left_ms(lambda->now) - IDEM__LAMBDA_STOP_MS) / 2;

    half_ms = half_ms < SLICE_MIN_MS ? SLICE_MIN_MS : half_ms;
    wait_ms = wait_ms < 0 ? 0 : wait_ms;
    return wait_ms < half_ms ? wait_ms : half_ms;
}

/* True if another try may get the claim: the other attempt still works, or was
 * released. */
static bool is_worth_asking(const struct idem_attempt *attempt)
{
    return attempt->verdict == IDEM_RELEASED || attempt->verdict == IDEM_BUSY;
}

/* Claims, and waits for another attempt in slices. Each try is a new request, so that its
 * lease counts from that moment and never ends too early. */
static int ask(struct idem_lambda *lambda, const struct idem__lambda_unit *unit,
               struct idem_attempt **ret_attempt, struct idem_error *error)
{
    int64_t until_ms = idem__mono_ms() + wait_bound_ms(lambda);
    char owner[IDEM__LAMBDA_OWNER_MAX];
    struct idem_request request;
    int rc;

    for (;;) {
        int64_t wait_ms = until_ms - idem__mono_ms();

        rc = idem__lambda_unit_request(lambda, unit, owner, &request);
        if (rc != 0) {
            return idem__error_plain(error, rc);
        }
        request.wait_ms = slice_ms(lambda, wait_ms);
        idem__lambda_allow(lambda, idem__lambda_ends_bound_ms(lambda));
        rc = idem_begin(lambda->store, &request, ret_attempt, error);
        if (rc != 0 || request.wait_ms == 0 || !is_worth_asking(*ret_attempt)) {
            return rc;
        }
        idem_attempt_destroy(*ret_attempt);
    }
}

static void claim(struct idem_lambda *lambda,
                  const struct idem__lambda_unit *unit)
{
    struct idem_attempt *attempt;
    struct idem_error error = {0};

    error.code = ask(lambda, unit, &attempt, &error);
    if (error.code != 0) {
        idem__lambda_log(lambda->now, "ERROR", NULL, "nothing was started: %s",
                         error.text);
        idem__lambda_answer_refusal(lambda, unit->rule,
                                    error.code == IDEM_ECORRUPT
                                        ? &idem__lambda_corrupt
                                        : &idem__lambda_no_store,
                                    idem_error_text(error.code));
        return;
    }
    switch (attempt->verdict) {
    case IDEM_STARTED:
        started(lambda, unit, attempt);
        break;
    case IDEM_REPLAY:
        idem__lambda_answer_replay(lambda, unit->rule, attempt->record);
        break;
    case IDEM_BUSY:
    case IDEM_MISMATCH:
    case IDEM_FAILED:
    case IDEM_UNKNOWN:
    case IDEM_RELEASED:
        refused(lambda, unit, attempt);
        break;
    }
    idem_attempt_destroy(attempt);
}

static const struct idem__lambda_refusal *why_not(
    const struct idem__lambda_unit *unit, const struct idem_error *error)
{
    if (error->code != IDEM_EINVALID) {
        return &idem__lambda_no_memory;
    }
    return unit->refusal == NULL ? &idem__lambda_invalid : unit->refusal;
}

void idem__lambda_single(struct idem_lambda *lambda,
                         const struct idem__lambda_rule *rule)
{
    struct idem__lambda_unit unit = {.rule = rule};
    struct idem_error error = {0};

    error.code = idem__lambda_unit_init(lambda, &unit, &error);
    lambda->event_ms = unit.event_ms;
    if (error.code != 0) {
        idem__lambda_log(lambda->now, "ERROR", NULL, "%s", error.text);
        idem__lambda_answer_refusal(lambda, rule, why_not(&unit, &error),
                                    error.text);
    } else if (unit.is_open) {
        idem__lambda_handler_run(lambda, lambda->now->event,
                                 /* attempt= */ NULL);
        idem__lambda_answer_work(lambda);
    } else {
        claim(lambda, &unit);
    }
    idem__lambda_unit_finish(&unit);
}
