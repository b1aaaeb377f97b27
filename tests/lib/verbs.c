/* One switch over the status of an outcome. */
#include "verbs.h"

#include <idem/operator.h>

int verb_end(struct idem_attempt *attempt, const struct idem_outcome *outcome)
{
    switch (outcome->status) {
    case IDEM_STATUS_COMPLETED:
        return idem_complete(attempt, &outcome->result, NULL);
    case IDEM_STATUS_FAILED:
        return idem_fail(attempt, outcome->text, &outcome->result, NULL);
    case IDEM_STATUS_RELEASED:
        return idem_release(attempt, outcome->text, NULL);
    case IDEM_STATUS_RETRY:
        if (outcome->failures_max != 0 || outcome->retry_after_ms != 0 ||
            outcome->result.bytes.len > 0) {
            return idem_end(attempt, outcome, NULL);
        }
        return idem_retry(attempt, outcome->text, NULL);
    case IDEM_STATUS_UNKNOWN:
    case IDEM_STATUS_IN_PROGRESS:
        break;
    }
    return idem_unknown(attempt, outcome->text, NULL);
}

int verb_resolve(struct idem_store *store, struct idem_slice scope,
                 struct idem_slice key, uint64_t fence, const char *who,
                 const struct idem_outcome *outcome, unsigned flags)
{
    if (outcome->status == IDEM_STATUS_RETRY) {
        return idem_reopen(store, scope, key, fence, idem_str(who),
                           outcome->text, NULL);
    }
    return idem_resolve(store, scope, key, fence, idem_str(who), outcome, flags,
                        NULL);
}
