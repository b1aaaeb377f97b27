/* Decides the verbs of an owner: complete, fail, release, retry, unknown,
 * renew, expire. */
#include "core/decide.h"

#include "base/host.h"
#include "core/identity.h"
#include "core/slice.h"

/* True if the record still belongs to the attempt that @op names by fence and nonce; else
 * refuses with LOST. */
static bool is_own(const struct idem_record *found, const struct idem_op *op,
                   struct idem_decision *decision)
{
    if (found == NULL) {
        /* A purged record leaves no trace, so the owner learns that it lost the key, but
         * not how. */
        idem__refuse(
            decision, IDEM_ELOST,
            "the record is not in this store; its retention may be over");
        return false;
    }
    /* Another attempt has started since and may be at work, or a person has corrected a
     * decision. A report of this owner must change neither. */
    if (found->fence != op->fence) {
        idem__refuse(
            decision, IDEM_ELOST,
            "the key passed from the attempt with fence %llu to the attempt "
            "with fence %llu (%s)",
            (unsigned long long)op->fence, (unsigned long long)found->fence,
            idem_status_name(idem_record_status(found)));
        return false;
    }
    /* The fence alone does not show it: a decision by a person and a restore from a copy
     * may keep the fence, but give the record another nonce. */
    if (memcmp(found->nonce, op->nonce, 16) != 0) {
        idem__refuse(decision, IDEM_ELOST, "%s: %s",
                     idem__is_decided(found)
                         ? "a person decided"
                         : "the store was put back from a copy",
                     idem_status_name(idem_record_status(found)));
        return false;
    }
    return true;
}

static bool same_result(const struct idem_record *found,
                        const struct idem_result *result,
                        const uint8_t digest[16])
{
    /* The record was loaded without its bodies: length and digest stand for them. */
    return found->result_len == result->bytes.len &&
           memcmp(found->result_digest, digest, 16) == 0 &&
           found->result.not_kept == result->not_kept &&
           idem__slice_equal(found->result.content_type,
                             result->content_type) &&
           idem__slice_equal(found->result.meta, result->meta);
}

/* True if @outcome is a retry and @failures, which counts it, has reached its limit. */
static bool uses_up(const struct idem_outcome *outcome, uint32_t failures)
{
    return outcome->status == IDEM_STATUS_RETRY && outcome->failures_max != 0 &&
           failures >= outcome->failures_max;
}

/* True if this outcome is on record already. For a released, unknown or retried attempt
 * the status is enough: no caller is ever given its content as an answer. */
bool idem__already_said(const struct idem_record *found,
                        const struct idem_outcome *outcome,
                        const uint8_t digest[16])
{
    enum idem_status status = outcome->status;

    if (found->status == IDEM_STATUS_FAILED &&
        uses_up(outcome, found->failures)) {
        /* A retry that used up its budget is on record as failed. */
        status = IDEM_STATUS_FAILED;
    }
    /* The end of the lease set this status, and no report did: record the owner's report
     * over it, even if it is the same. */
    if (idem_record_status(found) != status || found->by_lease) {
        return false;
    }
    switch (status) {
    case IDEM_STATUS_COMPLETED:
        return same_result(found, &outcome->result, digest) &&
               idem__slice_equal(found->note, outcome->text);
    case IDEM_STATUS_FAILED:
        return same_result(found, &outcome->result, digest) &&
               idem__slice_equal(found->error, outcome->text);
    case IDEM_STATUS_RELEASED:
    case IDEM_STATUS_UNKNOWN:
    case IDEM_STATUS_RETRY:
        return true;
    case IDEM_STATUS_IN_PROGRESS:
        break;
    }
    return false;
}

/* If only the lease ended the attempt, its owner may still report the outcome. It may no
 * longer release it, which would mean that nothing happened. */
static bool may_follow(const struct idem_record *found, enum idem_status to)
{
    return (found->status == IDEM_STATUS_IN_PROGRESS && !found->retry) ||
           (found->by_lease && to != IDEM_STATUS_RELEASED);
}

/* The store time at which the work ended. The owner's host reports how long ago that was
 * by its boot clock, which nobody can set. */
static int64_t ended_at(const struct idem_outcome *outcome,
                        const struct idem_now *now)
{
    int64_t boot_ms = outcome->ended_boot_ms;

    /* 0: the owner did not report a time. Nor can the work have ended in the future. */
    if (boot_ms == 0 || boot_ms >= now->boot_ms) {
        return now->store_ms;
    }
    /* No pause is longer than IDEM_DURATION_MAX_MS, so an earlier end makes no difference
     * to a pause, and the subtraction below cannot overflow. */
    if (boot_ms < now->boot_ms - IDEM_DURATION_MAX_MS) {
        boot_ms = now->boot_ms - IDEM_DURATION_MAX_MS;
    }
    return now->store_ms - (now->boot_ms - boot_ms);
}

/* After a retry the attempt is over, but the operation is not, unless the failures are used
 * up. The pause counts from the end of the work, not from this write. */
static int record_end(struct idem_record *next,
                      const struct idem_outcome *outcome, int64_t ended_ms,
                      const struct idem_now *now)
{
    struct idem_outcome end = *outcome;

    if (outcome->status == IDEM_STATUS_RETRY) {
        /* The attempt reported its own end, so it does not count towards attempts_max,
         * which limits attempts that died (specification 3). */
        next->retried += next->retried < next->attempts ? 1 : 0;
        next->failures += next->failures < UINT32_MAX ? 1 : 0;
        /* If the pause is already over, this is 0 or less, which set_pause() treats as
         * none. */
        end.retry_after_ms -= now->store_ms - ended_ms;
    }
    if (uses_up(outcome, next->failures)) {
        /* The last failure that the budget allows: from now on a person decides, not the
         * next caller. */
        end.status = IDEM_STATUS_FAILED;
    }
    return idem__outcome_set(next, &end, now);
}

void idem__decide_end(const struct idem_record *found, const struct idem_op *op,
                      const struct idem_now *now,
                      struct idem_decision *ret_decision)
{
    const struct idem_outcome *outcome = &op->u.end;
    struct idem_decision *decision = ret_decision;
    int64_t ended_ms = ended_at(outcome, now);
    int rc;

    memset(decision, 0, sizeof(*decision));
    /* Lease and expiry do not matter here: until another attempt starts or a person
     * decides, the owner's report is the best knowledge there is. */
    if (!is_own(found, op, decision)) {
        return;
    }
    /* Fill in next first, because idem__already_said() needs the digest of the result.
     * Callers ignore next if nothing changes. */
    decision->next = *found;
    rc = record_end(&decision->next, outcome, ended_ms, now);
    if (rc != 0) {
        idem__refuse(decision, rc, "%s", idem_error_text(rc));
        return;
    }
    /* A second report of the same outcome gets the same answer as the first. Check this
     * before may_follow(), which would find the attempt ended by the first. */
    if (idem__already_said(found, outcome, decision->next.result_digest)) {
        return;
    }
    /* The owner has reported another outcome before: the first one stays. */
    if (!may_follow(found, outcome->status)) {
        idem__refuse(decision, IDEM_ELOST,
                     "the attempt has already ended, as %s",
                     idem_status_name(idem_record_status(found)));
        return;
    }
    /* The work may have ended long ago, if the report comes from the journal. Expiry
     * counts from this write: a late report is remembered for as long as any other. */
    decision->next.ended_ms = idem__not_before(found, ended_ms);
    decision->set_result = true;
    decision->change = IDEM_CHANGE_REPLACE;
}

/* True if @found is the attempt that @op names and has not ended; else refuses with
 * LOST. */
static bool is_at_work(const struct idem_record *found,
                       const struct idem_op *op, struct idem_decision *decision)
{
    if (!is_own(found, op, decision)) {
        return false;
    }
    if (found->status == IDEM_STATUS_IN_PROGRESS && !found->retry) {
        return true;
    }
    idem__refuse(decision, IDEM_ELOST,
                 "the attempt has already ended: the record is %s",
                 idem_status_name(idem_record_status(found)));
    return false;
}

void idem__decide_renew(const struct idem_record *found,
                        const struct idem_op *op, const struct idem_now *now,
                        struct idem_decision *ret_decision)
{
    struct idem_decision *decision = ret_decision;

    memset(decision, 0, sizeof(*decision));
    if (!is_at_work(found, op, decision)) {
        return;
    }
    decision->next = *found;
    /* An earlier end than the one on record would let another caller start while this owner
     * counts on the longer lease. */
    idem__lease_extend(&decision->next,
                       op->u.renew.lease_ms == 0 ? found->lease_ms
                                                 : op->u.renew.lease_ms,
                       now);
    decision->change = IDEM_CHANGE_REPLACE;
}

void idem__decide_expire(const struct idem_record *found,
                         const struct idem_op *op, const struct idem_now *now,
                         struct idem_decision *ret_decision)
{
    struct idem_decision *decision = ret_decision;

    memset(decision, 0, sizeof(*decision));
    if (!is_at_work(found, op, decision)) {
        return;
    }
    /* Expire only brings forward the end of the lease: the policies decide what the next
     * begin makes of it (specification 3). A lease that is over already needs no write. */
    if (idem__lease_left(found, now) > 0) {
        decision->next = *found;
        idem__lease_end(&decision->next, now);
        decision->change = IDEM_CHANGE_REPLACE;
    }
}
