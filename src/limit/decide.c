/* Decides one request under a rate limit. */
#include "limit/limit.h"

#include "core/error.h"
#include "core/move.h"

#include <stdio.h>

static void refuse(struct idem_limit_decision *decision, int code,
                   const char *text)
{
    decision->code = code;
    (void)snprintf(decision->text, sizeof(decision->text), "%.199s", text);
}

/* Repeats the decision on record. */
static void repeat(struct idem_limit_decision *decision, int64_t entry)
{
    decision->limited.repeated = true;
    decision->limited.admitted = entry >= 0;
    decision->limited.remaining = (uint64_t)(entry >= 0 ? entry : -entry);
}

static bool is_sound(const struct idem_limit_state *found)
{
    return (!found->has_window || found->used <= IDEM_LIMIT_MAX) &&
           (!found->has_entry ||
            (found->entry < IDEM_LIMIT_MAX && found->entry > -IDEM_LIMIT_MAX));
}

void idem__limit_decide(const struct idem_limit_request *limit,
                        const struct idem_limit_state *found,
                        const struct idem_now *now,
                        struct idem_limit_decision *ret_decision)
{
    struct idem_limit_decision *decision = ret_decision;
    uint64_t used = found->has_window ? found->used : 0;
    uint64_t left = used < limit->max ? limit->max - used : 0;
    struct idem_error error;
    int rc;

    memset(decision, 0, sizeof(*decision));
    idem__limit_window(limit, &decision->limited.start_ms,
                       &decision->limited.end_ms);
    if (!is_sound(found)) {
        refuse(decision, IDEM_ECORRUPT,
               "the count of this window cannot be trusted");
        return;
    }
    /* A request that comes again gets its first decision, even after its window has
     * closed for new ones. */
    if (found->has_entry) {
        repeat(decision, found->entry);
        return;
    }
    rc = idem__limit_in_time(limit, now, &error);
    if (rc != 0) {
        refuse(decision, rc, error.text);
        return;
    }
    decision->limited.admitted = limit->cost <= left;
    if (decision->limited.admitted) {
        decision->remember = true;
        decision->used = used + limit->cost;
        decision->limited.remaining = left - limit->cost;
        decision->entry = (int64_t)decision->limited.remaining;
        decision->refusals = found->refusals;
    } else {
        decision->remember = left > 0 && found->refusals < IDEM_LIMIT_REFUSALS;
        decision->used = used;
        decision->limited.remaining = left;
        decision->entry = -(int64_t)left;
        decision->refusals = found->refusals + 1;
    }
    decision->expires_ms = idem__limit_expires(limit);
}

bool idem__limit_settle(struct idem_op *op,
                        const struct idem_limit_state *found,
                        const struct idem_now *now,
                        struct idem_limit_decision *ret_decision)
{
    idem__limit_decide(&op->u.limit.limit, found, now, ret_decision);
    if (idem__move_refuses(now->mark, op, ret_decision->text,
                           sizeof(ret_decision->text))) {
        ret_decision->code = IDEM_ECONFIG;
    }
    if (ret_decision->code != 0) {
        (void)idem__op_fail(op, ret_decision->code, "%s", ret_decision->text);
        return false;
    }
    op->u.limit.answer = ret_decision->limited;
    return true;
}
