/* look.h: what is open in a store, read once. */
#ifndef IDEM_CLI_LOOK_H
#define IDEM_CLI_LOOK_H

#include <idem.h>

/* A record that is in progress, failed or unknown; or completed with a failure. */
struct cli_open {
    struct idem_record record; /* Only scope, key, owner, error and note of its
                                  slices; the look owns them. */
    bool unreadable;           /* Only id, scope and key are set. */
    int exit_status;           /* On record; -1: none. */
    int http_status;           /* Likewise. */
};

/* Copies @record, which could be read if @code is 0. False: out of memory. */
bool cli_open_init(struct cli_open *open, int code,
                   const struct idem_record *record);
void cli_open_finish(struct cli_open *open);

/* For cli_look_sort(): what needs a person comes first, then what has gone on for
 * longest; then what was completed with a failure, the newest first. */
int cli_open_compare(const void *a, const void *b);

struct cli_look {
    struct cli_open *open; /* In the order in which the store told them. */
    size_t len;
    size_t room;
    bool failed; /* Out of memory. */

    int64_t now_ms; /* By the store's clock. */
    uint64_t in_progress;
    uint64_t retry;   /* Of these, whose attempt is over: to be run again. */
    uint64_t overdue; /* Of these. */
    uint64_t missing; /* These, and what is unknown because its lease ended. */
    uint64_t failed_len;
    uint64_t unknown;
    uint64_t unreadable;
    uint64_t failed_outcomes; /* By cli_look_outcomes(). */
    int64_t oldest_ms; /* Start of the attempt in progress that has gone on for
                          longest; 0: there is none. */
};

/* How far back operators are told of outcomes that failed: over a night, and until
 * the next morning. */
#define CLI_OUTCOMES_SINCE_MS (INT64_C(24) * 3600 * 1000)

/* Reads what is open in @scope (NULL: in every scope) and not in the scope of
 * alerts (CLI_ALERT_SCOPE). A store with an index reads nothing else. The caller
 * calls cli_look_finish(). An enum idem_code. */
int cli_look(struct idem_store *store, const struct idem_slice *scope,
             struct cli_look *ret_look, struct idem_error *ret_error);

/* The same, with what was completed with a failure within the last @within_ms, by
 * this host's clock (see idem_outcome_failed()). */
int cli_look_outcomes(struct idem_store *store, const struct idem_slice *scope,
                      int64_t within_ms, struct cli_look *ret_look,
                      struct idem_error *ret_error);

/* Puts what is open in the order of @compare, as qsort() would; there may be
 * nothing. */
void cli_look_sort(struct cli_look *look,
                   int (*compare)(const void *a, const void *b));
void cli_look_finish(struct cli_look *look);

#endif
