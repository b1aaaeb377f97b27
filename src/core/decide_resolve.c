/* Decides a resolve: a person states how an attempt ended. */
#include "core/decide.h"

#include "base/bytes.h"
#include "core/identity.h"
#include "core/slice.h"

#include <idem/operator.h>

void idem__refuse_live(struct idem_decision *decision,
                       const struct idem_record *found,
                       const struct idem_now *now, const char *mend)
{
    struct idem_slice owner =
        found->owner.len > 0 ? found->owner : idem_str("its owner");
    int64_t left_ms = idem__lease_left(found, now);
    char left[IDEM__SPAN_MAX];

    /* Round up to whole seconds, so that the person does not come back too early. A lease
     * in a record may be too long to round. */
    if (left_ms <= IDEM_DURATION_MAX_MS) {
        left_ms = (left_ms + 999) / 1000 * 1000;
    }
    idem__span(left_ms, left);
    idem__refuse(decision, IDEM_EINVALID, "the lease of %.*s runs %s more; %s",
                 (int)(owner.len < 64 ? owner.len : 64),
                 (const char *)owner.base, left, mend);
}

bool idem__is_live(const struct idem_record *found, const struct idem_now *now)
{
    return found->status == IDEM_STATUS_IN_PROGRESS && !found->retry &&
           found->lease_end_ms != IDEM_NEVER &&
           idem__lease_left(found, now) > 0;
}

bool idem__is_seen(const struct idem_record *found, const struct idem_op *op,
                   struct idem_decision *decision)
{
    if (found->fence == op->fence) {
        return true;
    }
    idem__refuse(
        decision, IDEM_ELOST,
        "the record now has fence %llu, not %llu: read the record again",
        (unsigned long long)found->fence, (unsigned long long)op->fence);
    return false;
}

static bool may_resolve(const struct idem_record *found,
                        const struct idem_op *op, const struct idem_now *now,
                        struct idem_decision *decision)
{
    switch (found->status) {
    case IDEM_STATUS_FAILED:
    case IDEM_STATUS_UNKNOWN:
        /* Both wait for a person, however long. */
        return true;
    case IDEM_STATUS_IN_PROGRESS:
        /* While its lease runs, the owner may be working, and will report by itself. With
         * force the person vouches that it will not. */
        if (!idem__is_live(found, now) ||
            (op->u.resolve.flags & IDEM_RESOLVE_FORCE) != 0) {
            return true;
        }
        idem__refuse_live(decision, found, now, "--force overrides it");
        return false;
    case IDEM_STATUS_COMPLETED:
    case IDEM_STATUS_RELEASED:
        /* An outcome that an owner reported stays. Only what a person decided may be
         * corrected. */
        if (idem__is_decided(found)) {
            return true; /* A person may correct a person. */
        }
        break;
    case IDEM_STATUS_RETRY:
        break;
    }
    idem__refuse(decision, IDEM_EINVALID,
                 "nothing to resolve: the record is %s; %s",
                 idem_status_name(found->status),
                 found->status == IDEM_STATUS_COMPLETED
                     ? "to let the work run again: idem reopen"
                     : "the next caller runs the work");
    return false;
}

/* True for a repeated request: the same person has made the same decision about this
 * attempt. */
static bool resolved_before(const struct idem_record *found,
                            const struct idem_op *op)
{
    const struct idem_outcome *outcome = &op->u.resolve.outcome;
    const struct idem_past *last = &found->history[0];
    uint8_t digest[16];

    /* A correction raises the fence of the record. A late copy of the decision that it
     * replaced names the old fence: it gets LOST, and does not undo the correction. */
    return found->history_len > 0 && last->end == IDEM_PAST_RESOLVED &&
           last->fence == op->fence && found->fence == op->fence &&
           idem__slice_equal(last->owner, op->u.resolve.who) &&
           idem__body_digest(outcome->result.bytes, digest) == 0 &&
           idem__already_said(found, outcome, digest);
}

void idem__decide_resolve(const struct idem_record *found,
                          const struct idem_op *op, const struct idem_now *now,
                          struct idem_decision *ret_decision)
{
    const struct idem_outcome *outcome = &op->u.resolve.outcome;
    struct idem_decision *decision = ret_decision;
    struct idem_record *next = &decision->next;
    int rc;

    memset(decision, 0, sizeof(*decision));
    if (found != NULL && memcmp(found->nonce, op->nonce, 16) == 0) {
        return; /* A copy of this very request was applied before. */
    }
    /* An expired record counts as absent for a person, too. */
    if (found == NULL || idem__decide_expired(found, now)) {
        idem__refuse(decision, IDEM_ENOTFOUND, "%s",
                     idem_error_text(IDEM_ENOTFOUND));
        return;
    }
    /* A resolve to retry is a reopen, which has rules of its own. */
    if (outcome->status == IDEM_STATUS_RETRY) {
        idem__decide_reopen(found, op, now, decision);
        return;
    }
    if (resolved_before(found, op) || !idem__is_seen(found, op, decision)) {
        return;
    }
    if (!may_resolve(found, op, now, decision)) {
        return;
    }
    *next = *found;
    /* Push the decision first, while the record still has the outcome that it
     * replaces. */
    idem__history_decide(next, op->u.resolve.who, now, IDEM_PAST_RESOLVED);
    next->in_doubt = 0; /* The person has settled what was in doubt. */
    next->failures = 0;
    /* A new nonce: from now on the former owner gets LOST. */
    memcpy(next->nonce, op->nonce, sizeof(next->nonce));
    rc = idem__outcome_set(next, outcome, now);
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
