/* What adding a record from elsewhere means. */
#include "core/decide.h"

/* What was released stands in nobody's way: the next claim would write over it.
 * One that was copied here earlier must not hide what came of that claim. */
static bool stays(const struct idem_record *found,
                  const struct idem_record *record, const struct idem_now *now)
{
    bool is_past =
        found->status == IDEM_STATUS_RELEASED && record->fence > found->fence;

    return !is_past && !idem_decide_expired(found, now);
}

void idem_decide_import(const struct idem_record *found,
                        const struct idem_op *op, const struct idem_now *now,
                        struct idem_decision *ret_decision)
{
    struct idem_decision *decision = ret_decision;
    const struct idem_record *record = op->u.import.record;

    memset(decision, 0, sizeof(*decision));
    if (idem_decide_expired(record, now) ||
        (found != NULL && stays(found, record, now))) {
        return;
    }
    decision->next = *record;
    if (found != NULL && decision->next.fence <= found->fence) {
        decision->next.fence = found->fence + 1;
    }
    decision->set_result = true;
    decision->set_input = true;
    decision->change = found == NULL ? IDEM_CHANGE_INSERT : IDEM_CHANGE_REPLACE;
}
