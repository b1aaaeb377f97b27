/* open_records.h: the open records of a store, read once.
 *
 * A snapshot counts all open records, and keeps a bounded part of them: of each class the
 * first ones in an order. So it takes the same memory however many are open.
 */
#ifndef IDEM_CLI_RECORD_OPEN_RECORDS_H
#define IDEM_CLI_RECORD_OPEN_RECORDS_H

#include <idem.h>

/* A record that is in progress, failed or unknown; or completed with a failure. */
struct cli_open {
    struct idem_record record; /* Only scope, key, owner, error and note of its
                                  slices; the snapshot owns them. */
    bool unreadable;           /* Only id, scope and key are set. */
    int exit_status;           /* On record; -1: none. */
    int http_status;           /* On record; -1: none. */
    bool told;                 /* idem watch reported it at its last check. */
};

void cli_open_finish(struct cli_open *open);

/* Records that need a person come first, then those that have gone on for longest,
 * then those completed with a failure, the newest first. */
int cli_open_compare(const void *a, const void *b);

#define CLI_SNAPSHOT_CLASSES 7

/* The part that a snapshot keeps. */
struct cli_snapshot_keep {
    size_t max; /* So many of each class: the first by @compare. */
    int (*compare)(const void *a, const void *b); /* Of struct cli_open. */
    /* The class of @open, from 0 on, or -1: it is counted, and not kept. May set
     * @open->told. */
    int (*class_of)(void *ctx, struct cli_open *open);
    void *ctx;
};

struct cli_snapshot_class {
    struct cli_open *open; /* In order. */
    size_t len;
    size_t room;
    bool is_cut; /* The first @max are in order, and later ones are left out. */
    uint64_t found; /* Of this class, also those that were not kept. */
};

struct cli_snapshot {
    struct cli_snapshot_class classes[CLI_SNAPSHOT_CLASSES];
    bool failed; /* Out of memory. */

    int64_t now_ms;          /* By the store's clock. */
    uint64_t in_progress;    /* Work that runs. */
    uint64_t retry;          /* Work that is to be run again. */
    uint64_t retry_attempts; /* The most attempts that one of these has had. */
    uint64_t overdue;        /* Of both. */
    uint64_t failed_len;
    uint64_t unknown;
    uint64_t unreadable;
    uint64_t failed_outcomes; /* By cli_snapshot_outcomes(). */
    int64_t oldest_ms; /* Start of the attempt in progress that has gone on for
                          longest; 0: there is none. */
    int64_t oldest_retry_ms; /* End of the last attempt of the work that has
                                waited longest to be run again; 0: none. */
};

/* How far back outcomes that failed are reported to operators: long enough for those of
 * a night to be seen in the morning. */
#define CLI_OUTCOMES_SINCE_MS (INT64_C(24) * 3600 * 1000)

/* Reads the open records in @scope (NULL: in every scope) but not those in the scope of
 * alerts (CLI_ALERT_SCOPE), and keeps those that @keep (NULL: none) selects. A store with
 * an index reads no other records. The caller calls cli_snapshot_finish(). An enum
 * idem_code. */
int cli_snapshot_take(struct idem_store *store, const struct idem_slice *scope,
                      const struct cli_snapshot_keep *keep,
                      struct cli_snapshot *ret_snapshot,
                      struct idem_error *ret_error);

/* The same, with the records that were completed with a failure (see
 * idem_outcome_failed()) within the last @within_ms by this host's clock. */
int cli_snapshot_outcomes(struct idem_store *store,
                          const struct idem_slice *scope, int64_t within_ms,
                          const struct cli_snapshot_keep *keep,
                          struct cli_snapshot *ret_snapshot,
                          struct idem_error *ret_error);

/* How many are open: in progress, to be run again, failed, unknown or unreadable. */
uint64_t cli_snapshot_open(const struct cli_snapshot *snapshot);

void cli_snapshot_finish(struct cli_snapshot *snapshot);

#endif
