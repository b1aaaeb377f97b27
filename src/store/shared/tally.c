/* Counts the answers to ops. A copy of a request that was applied before changes nothing,
 * and is not counted. */
#include "store/shared/tally.h"

#include <idem/operator.h>

const char *const idem__counter_names[IDEM__COUNTERS] = {
#define IDEM__X(name) #name,
    IDEM__COUNTER_MAP(IDEM__X)
#undef IDEM__X
};

/* Counts how records ended, by their owner or by their lease. */
static void tally_status(struct idem__tally *tally, enum idem_status status)
{
    switch (status) {
    case IDEM_STATUS_COMPLETED:
        tally->n[IDEM__COUNTER_completed]++;
        break;
    case IDEM_STATUS_FAILED:
        tally->n[IDEM__COUNTER_failed]++;
        break;
    case IDEM_STATUS_UNKNOWN:
        tally->n[IDEM__COUNTER_unknown]++;
        break;
    case IDEM_STATUS_RELEASED:
        tally->n[IDEM__COUNTER_released]++;
        break;
    case IDEM_STATUS_RETRY:
        tally->n[IDEM__COUNTER_retried]++;
        break;
    case IDEM_STATUS_IN_PROGRESS:
        break;
    }
}

/* True for a caller that waits: it was counted as busy at its first request, before it
 * began to wait. */
static bool waits(const struct idem_request *request)
{
    return request->join_fence != 0 ||
           (request->flags & IDEM_WAIT_THEN_RUN) != 0;
}

static void tally_begin(struct idem__tally *tally, const struct idem_op *op)
{
    switch (op->verdict) {
    case IDEM_STARTED:
        /* A second copy of a claim finds the first: one start, counted once. */
        tally->n[IDEM__COUNTER_started] += op->changed;
        tally->n[IDEM__COUNTER_takeovers] += op->changed && op->takeover;
        break;
    case IDEM_REPLAY:
        tally->n[IDEM__COUNTER_replayed]++;
        break;
    case IDEM_BUSY:
        tally->n[IDEM__COUNTER_busy] += !waits(&op->u.begin);
        break;
    case IDEM_MISMATCH:
        tally->n[IDEM__COUNTER_mismatch]++;
        break;
    case IDEM_FAILED:
    case IDEM_UNKNOWN:
        if (op->changed) {
            tally_status(tally, op->record->status);
        }
        break;
    case IDEM_RELEASED:
        break;
    }
}

static void tally_lost(struct idem__tally *tally, const struct idem_op *op)
{
    bool owner = op->verb == IDEM_OP_END || op->verb == IDEM_OP_RENEW ||
                 op->verb == IDEM_OP_EXPIRE;

    tally->n[IDEM__COUNTER_lost] += owner && op->error.code == IDEM_ELOST;
}

void idem__tally_op(struct idem__tally *tally, const struct idem_op *op)
{
    if (op->error.code != 0) {
        tally_lost(tally, op);
        return;
    }
    switch (op->verb) {
    case IDEM_OP_BEGIN:
        tally_begin(tally, op);
        break;
    case IDEM_OP_END:
        if (op->changed) {
            /* A retry that used up its budget is on record as a failure. */
            tally_status(tally, idem_record_status(op->record));
        }
        break;
    case IDEM_OP_RESOLVE:
        tally->n[IDEM__COUNTER_resolved] += op->changed;
        break;
    case IDEM_OP_PURGE:
        tally->n[IDEM__COUNTER_purged] += op->u.purge.purged;
        break;
    case IDEM_OP_RENEW:
    case IDEM_OP_EXPIRE:
    case IDEM_OP_GET:
    case IDEM_OP_LIST:
    case IDEM_OP_IMPORT:
    case IDEM_OP_COUNT:
    case IDEM_OP_LIMIT:
    case IDEM_OP_MOVE:
        break;
    }
}

void idem__tally_answer(const struct idem__tally *tally, struct idem_op *op)
{
    struct idem_counters *counters = &op->u.counters;

    counters->size = sizeof(*counters);
#define IDEM__X(name) counters->name = tally->n[IDEM__COUNTER_##name];
    IDEM__COUNTER_MAP(IDEM__X)
#undef IDEM__X
}
