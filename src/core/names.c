/* The words for statuses and verdicts. */
#include <idem.h>

const char *idem_status_name(enum idem_status status)
{
    switch (status) {
    case IDEM_STATUS_IN_PROGRESS:
        return "in_progress";
    case IDEM_STATUS_COMPLETED:
        return "completed";
    case IDEM_STATUS_FAILED:
        return "failed";
    case IDEM_STATUS_UNKNOWN:
        return "unknown";
    case IDEM_STATUS_RELEASED:
        return "released";
    case IDEM_STATUS_RETRY:
        return "retry";
    }
    return NULL;
}

enum idem_status idem_record_status(const struct idem_record *record)
{
    return record->retry ? IDEM_STATUS_RETRY : record->status;
}

const char *idem_verdict_name(enum idem_verdict verdict)
{
    switch (verdict) {
    case IDEM_STARTED:
        return "STARTED";
    case IDEM_REPLAY:
        return "REPLAY";
    case IDEM_MISMATCH:
        return "MISMATCH";
    case IDEM_FAILED:
        return "FAILED";
    case IDEM_UNKNOWN:
        return "UNKNOWN";
    case IDEM_BUSY:
        return "BUSY";
    case IDEM_RELEASED:
        return "RELEASED";
    }
    return NULL;
}
