/* Decides how a record changes after its store was restored from a copy. */
#include "core/decide.h"

/* True if the owner of the attempt could still report its outcome. */
static bool may_be_ended(const struct idem_record *found)
{
    return found->status == IDEM_STATUS_IN_PROGRESS ||
           ((found->status == IDEM_STATUS_UNKNOWN ||
             found->status == IDEM_STATUS_FAILED) &&
            found->by_lease);
}

void idem__decide_restored(const struct idem_record *found,
                           const uint8_t nonce[16], struct idem_slice note,
                           const struct idem_now *now,
                           struct idem_decision *ret_decision)
{
    struct idem_decision *decision = ret_decision;
    struct idem_record *next = &decision->next;
    struct idem_outcome unknown = {
        .status = IDEM_STATUS_UNKNOWN,
        .text = note,
    };
    int rc;

    memset(decision, 0, sizeof(*decision));
    if (!may_be_ended(found)) {
        return;
    }
    *next = *found;
    /* The copy does not show what happened after it was made: the attempt may have ended,
     * been renewed or been taken over, and a record marked retry may have run again. */
    if (found->status == IDEM_STATUS_IN_PROGRESS) {
        rc = idem__outcome_set(next, &unknown, now);
        if (rc != 0) {
            idem__refuse(decision, rc, "%s", idem_error_text(rc));
            return;
        }
        decision->set_result = true;
    }
    /* The record may have had later owners since, so a report of this owner no longer
     * counts. */
    memcpy(next->nonce, nonce, sizeof(next->nonce));
    next->by_lease = false;
    decision->change = IDEM_CHANGE_REPLACE;
}
