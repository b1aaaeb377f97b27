/* Outcomes before they are recorded. */
#include "core/outcome.h"

bool idem__is_end(enum idem_status status)
{
    return status == IDEM_STATUS_RETRY ||
           (status >= IDEM_STATUS_COMPLETED && status <= IDEM_STATUS_RELEASED);
}

struct idem_outcome idem__outcome_bounded(const struct idem_outcome *outcome,
                                          size_t result_max)
{
    struct idem_outcome copy = *outcome;

    if (copy.text.len > IDEM_TEXT_MAX) {
        copy.text.len = IDEM_TEXT_MAX;
    }
    if (copy.result.not_kept || copy.result.bytes.len > result_max) {
        copy.result.not_kept = true;
        copy.result.bytes = idem_bytes(NULL, 0);
    }
    if (copy.status == IDEM_STATUS_RETRY) {
        /* It stays in progress, which has none. */
        memset(&copy.result, 0, sizeof(copy.result));
    }
    return copy;
}
