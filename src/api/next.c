/* Ends one attempt and claims the next key, in one submission. */
#include "api/call.h"
#include "base/crash.h"
#include "core/error.h"
#include "queue/op.h"
#include "queue/queue.h"

#include <idem/queue.h>

enum {
    END,
    BEGIN,
    BOTH
};

/* Gives back the claim of the next key: its work must not start, because the end before
 * it is not on record. If the store answered the end, this waits for the release; if
 * the store does not answer, it sends the release and does not wait for it. */
static void give_back(struct idem_queue *queue, const struct idem__asked *end,
                      struct idem__asked *begin)
{
    struct idem_op *op = begin->op;

    if (begin->error.code != 0 || op->verdict != IDEM_STARTED) {
        idem__asked_drop(queue, begin);
        return;
    }
    begin->op = NULL;
    op->fence = op->record->fence;
    if (idem_error_kind(end->error.code) == IDEM_KIND_RETRY) {
        idem__withdraw(queue, op);
        return;
    }
    op->verb = IDEM_OP_END;
    op->u.end = (struct idem_outcome){
        .status = IDEM_STATUS_RELEASED,
        .text = idem_str("the attempt before it could not be ended"),
    };
    *begin = (struct idem__asked){.op = op};
    idem__ask(queue, begin, 1);
    idem__asked_drop(queue, begin);
}

/* Runs both ops at once. On success *@op is the answered begin; on failure it is NULL.
 * @end is gone in both cases. */
static int call_both(struct idem_attempt *attempt, struct idem_op *end,
                     struct idem_op **op, struct idem_error *error)
{
    struct idem__asked asked[BOTH] = {
        [END] = {.op = end}, [BEGIN] = {.op = *op}};
    struct idem_queue queue;
    int failed = END;
    int rc = idem__queue_init(&queue, idem__attempt_of(attempt)->store);

    if (rc != 0) {
        idem_op_destroy(end);
        idem_op_destroy(*op);
        return idem__error_plain(error, rc);
    }
    idem__ask(&queue, asked, BOTH);
    rc = asked[END].error.code;
    idem__end_answered(attempt, rc, asked[END].op);
    if (rc != 0) {
        IDEM__CRASH_POINT("api/next/gives-back");
        give_back(&queue, &asked[END], &asked[BEGIN]);
        idem__asked_drop(&queue, &asked[END]);
    } else if (asked[BEGIN].error.code != 0) {
        failed = BEGIN;
        rc = asked[BEGIN].error.code;
        idem__asked_drop(&queue, &asked[BEGIN]);
    }
    if (rc != 0 && error != NULL) {
        *error = asked[failed].error;
    }
    *op = asked[BEGIN].op;
    idem__queue_finish(&queue);
    return rc;
}

/* Ends, then claims: if both have the same key, the claim has to find the end on
 * record. */
static int end_then_begin(struct idem_attempt *attempt,
                          const struct idem_outcome *outcome,
                          const struct idem_request *request,
                          struct idem_attempt **ret_next,
                          struct idem_error *error)
{
    int rc = idem_end(attempt, outcome, error);

    return rc != 0 ? rc
                   : idem_begin(idem__attempt_of(attempt)->store, request,
                                ret_next, error);
}

int idem_next(struct idem_attempt *attempt, const struct idem_outcome *outcome,
              const struct idem_request *request,
              struct idem_attempt **ret_next, struct idem_error *ret_error)
{
    struct idem__attempt *a = idem__attempt_of(attempt);
    struct idem_op *begin = NULL;
    struct idem_op *end = NULL;
    int rc = idem__check_in_store(attempt, ret_error);

    if (rc != 0) {
        goto done;
    }
    rc = idem__begin_op(request, &begin, ret_error);
    if (rc != 0) {
        goto done;
    }
    rc = idem_op_end(attempt, outcome, &end, ret_error);
done:
    if (rc != 0) {
        idem_op_destroy(begin);
        return rc;
    }
    if (memcmp(begin->id, end->id, sizeof(begin->id)) == 0) {
        idem_op_destroy(begin);
        idem_op_destroy(end);
        return end_then_begin(attempt, outcome, request, ret_next, ret_error);
    }
    IDEM__CRASH_POINT("api/next/asks");
    rc = call_both(attempt, end, &begin, ret_error);
    return rc != 0 ? rc
                   : idem__begin_answered(a->store, request, begin, ret_next,
                                          ret_error);
}
