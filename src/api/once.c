/* The whole pattern in one call. */
#include <idem.h>

static int record(struct idem_attempt *attempt,
                  const struct idem_outcome *outcome, struct idem_error *error)
{
    switch (outcome->status) {
    case IDEM_STATUS_COMPLETED:
        return idem_complete(attempt, &outcome->result, error);
    case IDEM_STATUS_FAILED:
        return idem_fail(attempt, outcome->text, &outcome->result, error);
    case IDEM_STATUS_RELEASED:
        return idem_release(attempt, outcome->text, error);
    case IDEM_STATUS_RETRY:
        return idem_retry(attempt, outcome->text, error);
    case IDEM_STATUS_UNKNOWN:
        return idem_unknown(attempt, outcome->text, error);
    case IDEM_STATUS_IN_PROGRESS:
        break;
    }
    return idem_unknown(attempt, idem_str("the work did not say how it ended"),
                        error);
}

int idem_once(struct idem_store *store, const struct idem_request *request,
              idem_work_fn *work, void *ctx, struct idem_attempt **ret_attempt,
              struct idem_error *ret_error)
{
    struct idem_outcome outcome;
    struct idem_attempt *attempt;
    int rc = idem_begin(store, request, &attempt, ret_error);

    if (rc != 0) {
        return rc;
    }
    if (attempt->verdict == IDEM_STARTED) {
        memset(&outcome, 0, sizeof(outcome));
        work(ctx, attempt, &outcome);
        rc = record(attempt, &outcome, ret_error);
    }
    *ret_attempt = attempt;
    return rc;
}
