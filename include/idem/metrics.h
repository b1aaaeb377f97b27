/* idem/metrics.h: counters and metrics for monitoring.
 *
 * A meter counts the answers that a process gets from its stores: verdicts and ends,
 * errors by their code, and the time that each call took. With a file it counts for all
 * processes of this host together, however short-lived, and for any kind of store:
 *
 *     idem_meter_open("/var/lib/idem/meter", IDEM_METER_CREATE, &meter, &error)
 *     options.observe = idem_meter_observe;
 *     options.observe_ctx = meter;
 *     idem_open(url, &options, &store, &error)
 *     |
 *     |   ... work ...
 *     |
 *     idem_close(store)
 *     idem_meter_close(meter)
 *
 * Its counts, the store's own counters, and the numbers of records go into a struct
 * idem_metrics, which these functions write as Prometheus text or in CloudWatch's
 * embedded metric format.
 *
 * The file is one page that all processes map. Each addition is one atomic instruction,
 * and nothing flushes the page: after a power cut the last counts may be missing. All
 * numbers are 8 bytes in the byte order of the host:
 *
 *        0  8  "IDEMMTR1"
 *       64  .  the counters of struct idem_counters, in its order; 32 places
 *      320  .  errors by their negated code; 32 places
 *      576  .  calls: 8 times 32 places, one row for each enum idem_call: 20 buckets,
 *              then the sum in microseconds
 *     4096     the end
 */
#ifndef IDEM_METRICS_H
#define IDEM_METRICS_H

#include <idem.h>
#include <idem/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum idem_call {
    IDEM_CALL_BEGIN,
    IDEM_CALL_END, /* complete, fail, release, retry, unknown. */
    IDEM_CALL_RENEW,
    IDEM_CALL_OTHER, /* Every other verb: expire, get, list ... */
    IDEM_CALLS,
};

#define IDEM_METRICS_ERRORS 11  /* enum idem_code, negated; 0 stays empty. */
#define IDEM_METRICS_BUCKETS 16 /* The last one has no upper bound. */
#define IDEM_METRICS_JOBS 16

/* Work that is expected to succeed regularly. */
struct idem_metrics_job {
    const char *key;    /* The label: a pattern of keys. */
    int64_t success_ms; /* When it last succeeded; 0: never. */
};

struct idem_metrics {
    size_t size; /* sizeof, set by IDEM_METRICS_INIT. */
    const char
        *store; /* URL for the label of all metrics: its path or table, and
                   region; NULL: no label. */

    bool has_counters;
    struct idem_counters counters;

    bool has_calls; /* A meter counted the calls. */
    uint64_t errors[IDEM_METRICS_ERRORS];
    uint64_t buckets[IDEM_CALLS][IDEM_METRICS_BUCKETS]; /* Each call once. */
    uint64_t sum_us[IDEM_CALLS];

    bool unseen;    /* The caller did not read the store: leave out up and the
                       numbers of records. */
    bool up;        /* The store was read: the numbers of records are known. */
    int64_t now_ms; /* When it was read. */
    uint64_t overdue;
    uint64_t in_progress;    /* Work that runs. */
    uint64_t retry;          /* To be run again, ... */
    uint64_t retry_attempts; /* ... and the most attempts that one record
                                has. */
    uint64_t failed;
    uint64_t unknown;
    uint64_t unreadable;
    uint64_t failed_outcomes; /* Completed with a failure recently: see
                                 idem_outcome_failed(). */
    bool has_log;             /* The store is a file with a log. */
    uint64_t log_len;         /* Bytes of the log that are in use. */
    bool log_held;           /* A process is known to keep it from shrinking. */
    int64_t oldest_ms;       /* Age of the oldest attempt in progress. */
    int64_t oldest_retry_ms; /* How long the oldest retry has waited. */
    struct idem_metrics_job jobs[IDEM_METRICS_JOBS]; /* For Prometheus only. */
    size_t jobs_len;

    bool has_journal; /* The next two, of idem_journal_read_usage(), are known.
                         They cover all stores of this host. */
    uint64_t journal_entries;
    uint64_t journal_room; /* Bytes left for the journal. */
};

#define IDEM_METRICS_INIT                                                      \
    {                                                                          \
        .size = sizeof(struct idem_metrics), .counters = IDEM_COUNTERS_INIT    \
    }

/* A size of @buf that is enough for any @metrics. */
#define IDEM_METRICS_TEXT_MAX 65536

/* Writes @metrics as Prometheus text to @buf of @cap bytes, NUL-terminated. *@ret_len
 * is the length without the NUL.
 *
 * IDEM_EINVALID  The text does not fit, or the size is not set.
 */
int idem_metrics_prometheus(const struct idem_metrics *metrics, char *buf,
                            size_t cap, size_t *ret_len);

/* Writes one line in CloudWatch's embedded metric format, for the namespace @space,
 * like idem_metrics_prometheus(): the counts since @before (NULL: since the beginning),
 * and the present numbers of records. The line has only numbers, names, @space and the
 * label.
 *
 * IDEM_EINVALID  The line does not fit, or a size is not set.
 */
int idem_metrics_emf(const struct idem_metrics *metrics,
                     const struct idem_metrics *before, const char *space,
                     char *buf, size_t cap, size_t *ret_len);

/* ---- Meters ------------------------------------------------------------ */

/* May be used from many threads and by many stores at once, and after fork(). */
struct idem_meter;

enum idem_meter_flag {
    IDEM_METER_CREATE =
        1, /* Create the file, with mode 0600, if it does not exist. */
    IDEM_METER_READONLY = 2,
};

/* Opens the meter in the file @path; NULL: a meter for this process alone. The caller
 * closes *@ret_meter.
 *
 * IDEM_ENOTFOUND  The file does not exist, and IDEM_METER_CREATE is not set.
 * IDEM_EDENIED    This user may not use the file, or it is not a regular file.
 * IDEM_ECONFIG    The file is not a meter, or is one of a newer version.
 * IDEM_EFULL, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_meter_open(const char *path, unsigned flags,
                    struct idem_meter **ret_meter,
                    struct idem_error *ret_error);

/* Frees the meter; close the stores that use it first. NULL is allowed. */
void idem_meter_close(struct idem_meter *meter);

/* Counts an op; for observe of struct idem_open_options. */
void idem_meter_observe(void *meter, const struct idem_op *op, int64_t took_us);

/* Adds the errors and calls of the meter to @metrics, and fills in its counters unless
 * has_counters is already set, by a caller that has read the store's own. */
void idem_meter_read(const struct idem_meter *meter,
                     struct idem_metrics *metrics);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
