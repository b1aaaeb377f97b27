/* Decides a reopen: a person wants work to be run again. */
#include "core/decide.h"

#include "base/host.h"
#include "core/slice.h"

/* True for a repeated request: the same person has reopened this attempt before. */
static bool reopened_before(const struct idem_record *found,
                            const struct idem_op *op)
{
    return idem__is_reopened(found) && found->fence == op->fence &&
           idem__slice_equal(found->history[0].owner, op->u.resolve.who);
}

/* A record that waits for a retry may be reopened, too: until then only the same request
 * may continue it, and reopening allows another request. */
static bool may_reopen(const struct idem_record *found,
                       const struct idem_now *now,
                       struct idem_decision *decision)
{
    if (found->status == IDEM_STATUS_RELEASED || idem__is_reopened(found)) {
        idem__refuse(decision, IDEM_EINVALID,
                     "the record is %s already: the next caller runs the work",
                     found->retry ? "reopened" : "released");
        return false;
    }
    if (idem__is_live(found, now)) {
        idem__refuse_live(decision, found, now,
                          "wait for its owner, or resolve it by force");
        return false;
    }
    return true;
}

/* The next attempt may take as long as this one was expected to. */
static int64_t expected_again(const struct idem_record *found,
                              const struct idem_now *now)
{
    return found->expected_ms > found->started_ms
               ? idem__time_add(now->store_ms,
                                found->expected_ms - found->started_ms)
               : 0;
}

static int reopen(const struct idem_record *found, const struct idem_op *op,
                  const struct idem_now *now, struct idem_record *next)
{
    struct idem_outcome again = {.status = IDEM_STATUS_RETRY,
                                 .text = op->u.resolve.outcome.text};
    int rc;

    *next = *found;
    idem__history_decide(next, op->u.resolve.who, now, IDEM_PAST_REOPENED);
    /* The next attempt must be told that the work may have been done before. */
    next->in_doubt = found->fence;
    /* A new nonce: from now on the former owner gets LOST. */
    memcpy(next->nonce, op->nonce, sizeof(next->nonce));
    rc = idem__outcome_set(next, &again, now);
    /* The record never expires while it waits for the next caller, because a person wants
     * the work done. */
    next->expires_ms = IDEM_NEVER;
    next->expected_ms = expected_again(found, now);
    /* The corrected request may differ: the next claim sets the fingerprint anew
     * (take_over() in decide_begin.c). */
    next->fingerprint = idem_bytes(NULL, 0);
    /* A person has reviewed all attempts so far: none of them counts towards attempts_max
     * or failures_max any more. */
    next->retried = next->attempts;
    next->failures = 0;
    return rc;
}

void idem__decide_reopen(const struct idem_record *found,
                         const struct idem_op *op, const struct idem_now *now,
                         struct idem_decision *decision)
{
    int rc;

    /* A repeated request comes first, because may_reopen() refuses a record that is
     * reopened already. */
    if (reopened_before(found, op)) {
        return;
    }
    if (!idem__is_seen(found, op, decision) ||
        !may_reopen(found, now, decision)) {
        return;
    }
    rc = reopen(found, op, now, &decision->next);
    if (rc != 0) {
        idem__refuse(decision, rc, "%s", idem_error_text(rc));
        return;
    }
    if (idem__refuse_fence(decision)) {
        return;
    }
    decision->set_result = true;
    decision->change = IDEM_CHANGE_REPLACE;
}
