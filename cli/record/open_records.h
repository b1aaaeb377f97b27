/* open_records.h: what is open in a store, read once.
 *
 * A snapshot counts all that is open, and keeps a bounded part of it: of each class the
 * first ones in an order. So it takes the same memory however much is open.
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
    bool told;                 /* By idem watch, when it looked last. */
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
    bool is_cut; /* The first @max are in order, and later ones not wanted. */
    uint64_t found; /* Of this class, also those that were not kept. */
};

struct cli_snapshot {
    struct cli_snapshot_class classes[CLI_SNAPSHOT_CLASSES];
    bool failed; /* Out of memory. */

    int64_t now_ms;          /* By the store's clock. */
    uint64_t in_progress;    /* Work that runs. */
    uint64_t retry;          /* Its attempt is over: it is to be run again. */
    uint64_t retry_attempts; /* Of the one of these that was tried most. */
    uint64_t overdue;        /* Of both. */
    uint64_t failed_len;
    uint64_t unknown;
    uint64_t unreadable;
    uint64_t failed_outcomes; /* By cli_snapshot_outcomes(). */
    int64_t oldest_ms; /* Start of the attempt in progress that has gone on for
                          longest; 0: there is none. */
    int64_t oldest_retry_ms; /* End of the last attempt of what has waited for
                                longest to be run again; 0: none has. */
};

/* How far back operators are told of outcomes that failed: over a night, and until
 * the next morning. */
#define CLI_OUTCOMES_SINCE_MS (INT64_C(24) * 3600 * 1000)

/* Reads what is open in @scope (NULL: in every scope) and not in the scope of
 * alerts (CLI_ALERT_SCOPE), and keeps what @keep (NULL: nothing) says. A store with
 * an index reads nothing else. The caller calls cli_snapshot_finish(). An enum
 * idem_code. */
int cli_snapshot_take(struct idem_store *store, const struct idem_slice *scope,
                      const struct cli_snapshot_keep *keep,
                      struct cli_snapshot *ret_snapshot,
                      struct idem_error *ret_error);

/* The same, with what was completed with a failure within the last @within_ms, by
 * this host's clock (see idem_outcome_failed()). */
int cli_snapshot_outcomes(struct idem_store *store,
                          const struct idem_slice *scope, int64_t within_ms,
                          const struct cli_snapshot_keep *keep,
                          struct cli_snapshot *ret_snapshot,
                          struct idem_error *ret_error);

/* How many are open: in progress, to be run again, failed, unknown or unreadable. */
uint64_t cli_snapshot_open(const struct cli_snapshot *snapshot);

void cli_snapshot_finish(struct cli_snapshot *snapshot);

#endif
