/* Decides the import of a record from another store. */
#include "core/decide.h"

/* True if @found stays as it is. A released record gives way to a copy with a higher
 * fence: the next claim would overwrite it anyway, and a copy that was imported earlier
 * must not hide the outcome of a later claim. */
static bool stays(const struct idem_record *found,
                  const struct idem_record *record, const struct idem_now *now)
{
    bool is_past =
        found->status == IDEM_STATUS_RELEASED && record->fence > found->fence;

    return !is_past && !idem__decide_expired(found, now);
}

/* True if @record accounts for the attempt with @fence: as its own, in its history, or as
 * in doubt. */
static bool knows_of(const struct idem_record *record, uint64_t fence)
{
    size_t i;

    for (i = 0; i < record->history_len; i++) {
        if (record->history[i].fence >= fence) {
            return true;
        }
    }
    return record->fence == fence || record->in_doubt >= fence;
}

/* A released record gives way, but not the knowledge that one of its attempts may have
 * done the work. */
static void keep_doubt(struct idem_record *next,
                       const struct idem_record *found)
{
    uint64_t doubt = idem__in_doubt(found);

    if (doubt == 0 || knows_of(next, doubt)) {
        return;
    }
    next->in_doubt = doubt;
    if (next->retention_ms < found->retention_ms) {
        next->retention_ms = found->retention_ms;
    }
    if (next->status == IDEM_STATUS_RELEASED &&
        next->expires_ms < found->expires_ms) {
        next->expires_ms = found->expires_ms;
    }
}

void idem__decide_import(const struct idem_record *found,
                         const struct idem_op *op, const struct idem_now *now,
                         struct idem_decision *ret_decision)
{
    struct idem_decision *decision = ret_decision;
    const struct idem_record *record = op->u.import.record;

    memset(decision, 0, sizeof(*decision));
    /* An expired copy would count as absent, and a record that still counts here is not
     * overwritten. */
    if (idem__decide_expired(record, now) ||
        (found != NULL && stays(found, record, now))) {
        return;
    }
    decision->next = *record;
    /* The fences of a key only rise, even if the copy has a lower one from another
     * store. */
    if (found != NULL && decision->next.fence <= found->fence) {
        decision->next.fence = found->fence + 1;
    }
    if (idem__refuse_fence(decision)) {
        return;
    }
    /* The life of an expired record is over, and its doubt with it. */
    if (found != NULL && !idem__decide_expired(found, now)) {
        keep_doubt(&decision->next, found);
    }
    decision->set_result = true;
    decision->set_input = true;
    decision->change = found == NULL ? IDEM_CHANGE_INSERT : IDEM_CHANGE_REPLACE;
}
