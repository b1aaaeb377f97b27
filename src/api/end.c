/* Implements the blocking verbs of an owner: complete, fail, release, retry, unknown,
 * renew, expire; and an end that the owner has recorded itself. */
#include "api/call.h"
#include "base/crash.h"
#include "base/host.h"
#include "core/error.h"
#include "queue/op.h"

#include <idem/queue.h>
#include <idem/statement.h>

int idem__check_in_store(const struct idem_attempt *attempt,
                         struct idem_error *error)
{
    const struct idem__attempt *a = (const struct idem__attempt *)attempt;

    if (a->store != NULL) {
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "the attempt lives in a transaction of your own: end it "
                       "with idem_sqlite_end_in()");
}

void idem__end_answered(struct idem_attempt *attempt, int code,
                        struct idem_op *op)
{
    /* The attempt is over, so its lease is too. After any other error it may still own
     * the key, and the caller may end it again. */
    if (code == 0 || code == IDEM_ELOST) {
        idem__attempt_set_lease_end(idem__attempt_of(attempt), 0);
    }
    if (code == 0) {
        IDEM__CRASH_POINT("api/end/answered");
        idem__attempt_update(attempt, op);
    }
}

int idem_end(struct idem_attempt *attempt, const struct idem_outcome *outcome,
             struct idem_error *ret_error)
{
    struct idem_op *op;
    int rc = idem__check_in_store(attempt, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = idem_op_end(attempt, outcome, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("api/end/asks");
    rc = idem__call(idem__attempt_of(attempt)->store, &op, ret_error);
    idem__end_answered(attempt, rc, op);
    return rc;
}

static int end_as(struct idem_attempt *attempt, enum idem_status status,
                  struct idem_slice text, const struct idem_result *result,
                  struct idem_error *error)
{
    struct idem_outcome outcome = {.status = status, .text = text};

    if (result != NULL) {
        outcome.result = *result;
    }
    return idem_end(attempt, &outcome, error);
}

int idem_complete(struct idem_attempt *attempt,
                  const struct idem_result *result,
                  struct idem_error *ret_error)
{
    return end_as(attempt, IDEM_STATUS_COMPLETED, idem_bytes(NULL, 0), result,
                  ret_error);
}

int idem_fail(struct idem_attempt *attempt, struct idem_slice text,
              const struct idem_result *result, struct idem_error *ret_error)
{
    return end_as(attempt, IDEM_STATUS_FAILED, text, result, ret_error);
}

int idem_release(struct idem_attempt *attempt, struct idem_slice text,
                 struct idem_error *ret_error)
{
    return end_as(attempt, IDEM_STATUS_RELEASED, text, /* result= */ NULL,
                  ret_error);
}

int idem_retry(struct idem_attempt *attempt, struct idem_slice text,
               struct idem_error *ret_error)
{
    return end_as(attempt, IDEM_STATUS_RETRY, text, /* result= */ NULL,
                  ret_error);
}

int idem_unknown(struct idem_attempt *attempt, struct idem_slice text,
                 struct idem_error *ret_error)
{
    return end_as(attempt, IDEM_STATUS_UNKNOWN, text, /* result= */ NULL,
                  ret_error);
}

int idem_renew(struct idem_attempt *attempt, int64_t lease_ms,
               struct idem_error *ret_error)
{
    struct idem__attempt *a = idem__attempt_of(attempt);
    struct idem_op *op;
    int rc = idem__check_in_store(attempt, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = idem_op_renew(attempt, lease_ms == 0 ? a->lease_ms : lease_ms, &op,
                       ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__call(a->store, &op, ret_error);
    /* Another attempt owns the key, so this one has no lease any more. After any other
     * failure the lease that was granted before still holds. */
    if (rc == IDEM_ELOST) {
        idem__attempt_set_lease_end(a, 0);
    }
    if (rc != 0) {
        return rc;
    }
    IDEM__CRASH_POINT("api/renew/answered");
    idem__attempt_count_lease(a, op);
    idem_op_destroy(op);
    return 0;
}

int idem_expire(struct idem_attempt *attempt, struct idem_error *ret_error)
{
    struct idem__attempt *a = idem__attempt_of(attempt);
    struct idem_op *op;
    int rc = idem__check_in_store(attempt, ret_error);

    if (rc != 0) {
        return rc;
    }
    rc = idem_op_expire(attempt, &op, ret_error);
    if (rc != 0) {
        return rc;
    }
    rc = idem__call(a->store, &op, ret_error);
    /* An expiry that may have been applied counts as one: only this owner can still be
     * wrong about the lease. */
    if (rc == 0 || rc == IDEM_ELOST || rc == IDEM_EUNKNOWN) {
        idem__attempt_set_lease_end(a, 0);
    }
    if (rc == 0) {
        idem__attempt_update(attempt, op);
    }
    return rc;
}

void idem_attempt_recorded(struct idem_attempt *attempt)
{
    struct idem__attempt *a = idem__attempt_of(attempt);
    struct idem_op *planned = a->planned;

    idem__attempt_set_lease_end(a, 0);
    /* The caller's statement changed the record without this library: show its outcome,
     * and wake the callers that wait for it. */
    if (planned != NULL) {
        a->planned = NULL;
        idem__store_changed(a->store, planned->id);
        idem__attempt_update(attempt, planned);
    }
}
