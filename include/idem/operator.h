/* operator.h: functions for operators of a store: lists of records, decisions of people
 * about attempts that no owner will end, copies of records between stores, counters,
 * and purge. The program idem has a command for each; see idem(1). */
#ifndef IDEM_OPERATOR_H
#define IDEM_OPERATOR_H

#include <idem.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct idem_filter {
    size_t size;       /* sizeof, set by IDEM_FILTER_INIT. */
    unsigned statuses; /* 1u << enum idem_status, or-ed; 0: all. A record to be
                          run again matches both IN_PROGRESS and RETRY. */
    bool overdue;      /* In progress, and past expected_ms or past the end of
                          the lease; with retry set, past expected_ms. */
    bool any_scope;    /* true: ignore scope below. */
    struct idem_slice scope;
    uint64_t max; /* 0: all. */
    bool expired; /* true: only records that a purge would delete; false: all
                     others. */
    bool failed_outcomes; /* true: in addition to @statuses (here 0 means none),
                             completed records for which idem_outcome_failed()
                             is true. A store with an index reads only these. */
    bool newest_first;    /* true: start with the record that came into the
                             store last. Works if the store has such an order
                             (SQLite and memory, not DynamoDB) and no index
                             serves the list: @statuses is 0 without
                             @failed_outcomes, or has COMPLETED, and @overdue is
                             false. Otherwise it has no effect. */
};
#define IDEM_FILTER_INIT                                                       \
    {                                                                          \
        sizeof(struct idem_filter), 0, false, true, {NULL, 0}, 0, false,       \
            false, false                                                       \
    }

/* True if @record is completed, and its metadata shows a failure: an exit status other
 * than 0 or a signal, as `idem run` records them, or an HTTP status of 500 or above,
 * unless an outcome table named that ending complete. Callers get such an outcome like
 * any other, and no person needs to decide. */
bool idem_outcome_failed(const struct idem_record *record);

/* True if @record is completed and a success: with exit status 0, with an HTTP status
 * of 2xx, without a status, or with an ending that an outcome table named complete
 * (<idem/outcome.h>). An HTTP status of 404 is neither a failure nor a success. */
bool idem_outcome_succeeded(const struct idem_record *record);

/* Called for each record, which is valid during the call only. Return 0 to go on,
 * anything else to stop. If @code is not 0, the record could not be read
 * (IDEM_ECORRUPT), and only its id, scope and key are set. */
typedef int idem_list_fn(void *ctx, int code, const struct idem_record *record);

/* Calls @each for the records that @filter selects, without results and inputs. Locks
 * nothing between pages: a record that changes meanwhile may appear in either state, or
 * twice. @each must not call the library. *@ret_now_ms is the store's time; @ret_now_ms
 * may be NULL.
 *
 * IDEM_EINVALID, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_list(struct idem_store *store, const struct idem_filter *filter,
              idem_list_fn *each, void *ctx, int64_t *ret_now_ms,
              struct idem_error *ret_error);

/* Bytes of a place, with its NUL. */
#define IDEM_PLACE_MAX 512

/* The progress of a list. Start from IDEM_PAGE_INIT, and pass it on from page to page;
 * @place alone continues a list in another process. */
struct idem_page {
    size_t size;       /* sizeof, set by IDEM_PAGE_INIT. */
    uint64_t look_max; /* End the page after reading about this many records,
                          shown or not; 0: at the end of the list. */
    char place[IDEM_PLACE_MAX]; /* Where the list continues: letters, digits,
                                   "-" and "_"; "" before the first page. */
    bool done;                  /* The end was reached. */
    uint64_t looked;            /* Records read, on all pages so far. */
    int64_t now_ms;             /* The store's time. */
};
#define IDEM_PAGE_INIT                                                         \
    {                                                                          \
        sizeof(struct idem_page), 0, {0}, false, 0, 0                          \
    }

/* Shows the next page of a list, like idem_list(), from @page->place on. The page ends
 * when it has shown @filter->max records or read page->look_max, when @each stops it,
 * or at the end of the list. The new place is after the last record that was shown; it
 * remains valid while records come and go, even if that record goes. A record that
 * exists from the first page to the last, and keeps its status, is shown once.
 *
 * IDEM_EINVALID  @filter or @page is not valid, or @page->place was not written for a
 *                list with this filter in this kind of store.
 * IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_list_page(struct idem_store *store, const struct idem_filter *filter,
                   idem_list_fn *each, void *ctx, struct idem_page *page,
                   struct idem_error *ret_error);

enum idem_resolve_flag {
    /* Decide although the owner's lease still runs: the owner may be at work, and may
     * go on after another attempt has started. */
    IDEM_RESOLVE_FORCE = 1,
};

/* Records a person's decision about a record that is failed, unknown, to be run again,
 * or in progress under a lease that is over or has no end. While the lease runs, only
 * IDEM_RESOLVE_FORCE in @flags allows a decision; that the work is overdue is not
 * enough. A person may correct a decision to complete or release, as long as no attempt
 * has started since. A correction raises the fence by one; the history keeps what it
 * replaced. The status of @outcome may be COMPLETED, FAILED or RELEASED; its text is
 * the reason. The history keeps @who. The record must still have @fence. The decision
 * is durable when this returns 0. The same decision by the same person returns 0 again,
 * unless it has raised the fence: read the record before you repeat a correction. The
 * former owner can no longer change the record.
 *
 * IDEM_ENOTFOUND  The record does not exist.
 * IDEM_ELOST      The record has another fence now, perhaps because this decision
 *                 raised it.
 * IDEM_EINVALID   The owner completed or released the record, the owner's lease still
 *                 runs, or an argument is not valid.
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_resolve(struct idem_store *store, struct idem_slice scope,
                 struct idem_slice key, uint64_t fence, struct idem_slice who,
                 const struct idem_outcome *outcome, unsigned flags,
                 struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Lets the next caller run the work again of a record that is completed, failed or
 * unknown, or that is in progress and that idem_resolve() would decide without a flag.
 * The record loses its result and its fingerprint, because the corrected request may be
 * a different one: idem_retry() lets the same request run again, and this function any
 * request. The record never expires. The next begin starts as a takeover and gives the
 * record its fingerprint. The history keeps @who and the former status, and the note is
 * @reason; fence, durability and repetition are as with idem_resolve().
 *
 * IDEM_ENOTFOUND  The record does not exist.
 * IDEM_ELOST      The record has another fence now: read it again.
 * IDEM_EINVALID   The record is released or reopened already, the owner's lease still
 *                 runs, or an argument is not valid.
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_reopen(struct idem_store *store, struct idem_slice scope,
                struct idem_slice key, uint64_t fence, struct idem_slice who,
                struct idem_slice reason, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Adds a record from another store (or a copy of this one) as it is, with its status,
 * owner's nonce, fence and times. Every member of @record must be set as idem_get()
 * sets it. A record that the store already has stays, unless it is past its retention,
 * or was released and has a lower fence; a record past its own retention is not added.
 * In both cases *@ret_added is false; @ret_added may be NULL.
 *
 * IDEM_EINVALID  @record is not a valid record, or its fence leaves no
 *                room for greater ones (2^61 or more).
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_import(struct idem_store *store, const struct idem_record *record,
                bool *ret_added, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* How often callers got each answer since the store was created, in all processes that
 * use it. */
struct idem_counters {
    size_t size;        /* sizeof, set by IDEM_COUNTERS_INIT. */
    uint64_t started;   /* Claims with the verdict STARTED. */
    uint64_t takeovers; /* Of these, takeovers. */
    uint64_t completed; /* Attempts that ended so ... */
    uint64_t failed;    /* ... including those that gave up or used up
                           failures_max ... */
    uint64_t unknown;   /* ... including those whose lease ended under
                           IDEM_HOLD. */
    uint64_t released;
    uint64_t replayed;
    uint64_t busy; /* A caller that waits counts once. */
    uint64_t mismatch;
    uint64_t lost;     /* Owners that got IDEM_ELOST. */
    uint64_t resolved; /* Decisions of people, including those to reopen; they
                          count nowhere else. */
    uint64_t purged;   /* Records. */
    uint64_t retried;  /* Attempts that ended in a retry, to be run again. */
};
#define IDEM_COUNTERS_INIT                                                     \
    {                                                                          \
        sizeof(struct idem_counters), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0    \
    }

/* Reads the counters. Start *@ret_counters from IDEM_COUNTERS_INIT. The store keeps the
 * counters, and writes them less often than records, so that counting costs nothing: a
 * busy process writes its counts up to a second late, and a process that only reads
 * writes them when it closes its store. If a process is killed, or the power fails,
 * counts that were not written are lost. No decision depends on a counter. A repeated
 * request that was applied before does not count, nor do calls through read-only
 * handles, or idem_sqlite_begin_in() and the functions beside it.
 *
 * IDEM_EINVALID   The size of *@ret_counters is not set.
 * IDEM_ENOTFOUND  The store has no counters: it is an application's database.
 * IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_count(struct idem_store *store, struct idem_counters *ret_counters,
               struct idem_error *ret_error);

/* Deletes at most @max records past their retention (0: all), in slices that each hold
 * the store's lock for less than 100 ms. *@ret_purged counts them; @ret_purged may be
 * NULL. New records reuse the space. Never deletes a record that is failed or unknown,
 * or that has a live lease or an unexpired result. Later fences are above the fences of
 * deleted records.
 *
 * IDEM_EUNAVAILABLE, IDEM_EFULL, IDEM_EDENIED, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_purge(struct idem_store *store, uint64_t max, uint64_t *ret_purged,
               struct idem_error *ret_error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
