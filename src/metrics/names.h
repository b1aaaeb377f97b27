/* Names and describes the metrics, in one table for both formats. */
#ifndef IDEM_METRICS_NAMES_H
#define IDEM_METRICS_NAMES_H

#include <idem/metrics.h>

/* Member of struct idem_counters, name in CloudWatch, help. */
#define IDEM__COUNTED_MAP(IDEM__X)                                             \
    IDEM__X(started, "started", "Claims that started work")                    \
    IDEM__X(takeovers, "takeovers",                                            \
            "Of these, those whose work may have been done before")            \
    IDEM__X(completed, "completed", "Attempts that were completed")            \
    IDEM__X(failed, "failed", "Attempts that failed, and need a person")       \
    IDEM__X(unknown, "unknown", "Attempts that may have happened")             \
    IDEM__X(released, "released", "Attempts that were released")               \
    IDEM__X(retried, "retried", "Attempts that are to be run again")           \
    IDEM__X(replayed, "replayed", "Callers that got a recorded outcome")       \
    IDEM__X(busy, "busy", "Callers that found another owner at work")          \
    IDEM__X(mismatch, "mismatch",                                              \
            "Callers that used a key for another request")                     \
    IDEM__X(lost, "lost", "Owners that had lost their attempt")                \
    IDEM__X(resolved, "resolved", "Decisions by persons")                      \
    IDEM__X(purged, "purged", "Records that were deleted")

/* Member of struct idem_metrics, name for Prometheus, in CloudWatch, help. */
#define IDEM__GAUGE_MAP(IDEM__X)                                               \
    IDEM__X(overdue, "overdue", "overdue",                                     \
            "Operations that should have ended by now")                        \
    IDEM__X(in_progress, "in_progress", "inProgress", "Attempts in progress")  \
    IDEM__X(retry, "retry_records", "retryRecords",                            \
            "Records that are to be run again")                                \
    IDEM__X(retry_attempts, "retry_attempts", "retryAttempts",                 \
            "Attempts of the most-tried record to be run again")               \
    IDEM__X(failed, "failed_records", "failedRecords",                         \
            "Records that are failed and wait for a person")                   \
    IDEM__X(unknown, "unknown_records", "unknownRecords",                      \
            "Records that are unknown and wait for a person")                  \
    IDEM__X(unreadable, "unreadable_records", "unreadableRecords",             \
            "Records that cannot be trusted")                                  \
    IDEM__X(failed_outcomes, "failed_outcomes", "failedOutcomes",              \
            "Operations that completed with a failure recently")

/* "begin" ... by enum idem_call. */
extern const char *const idem__call_names[IDEM_CALLS];

/* Upper bounds, in microseconds, of all buckets but the last. */
extern const int64_t idem__bucket_us[IDEM_METRICS_BUCKETS - 1];

#endif
