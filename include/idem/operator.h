/* operator.h: for those who look after a store.
 *
 * Lists of records, decisions of persons about attempts that nobody will end, a
 * copy of records between stores, counters, and purge. The program idem has all of
 * them as commands; idem(1). */
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
                          run again is IN_PROGRESS, and RETRY. */
    bool overdue;      /* In progress, and past expected_ms or past the end of
                          the lease; with retry set, past expected_ms. */
    bool any_scope;    /* true: scope below is not looked at. */
    struct idem_slice scope;
    uint64_t max; /* 0: all. */
    bool expired; /* true: what a purge would delete, and nothing else; such
                     records are left out otherwise. */
    bool failed_outcomes; /* true: beside @statuses (0: none), what is completed
                             and idem_outcome_failed(). A store with an index
                             reads nothing else for it. */
    bool newest_first; /* true: the record that came into the store last comes
                          first. Holds where the store has such an order (SQLite
                          and memory, not DynamoDB) and no index serves the
                          list: @statuses is 0 or has COMPLETED, without
                          @overdue. Elsewhere it changes nothing. */
};
#define IDEM_FILTER_INIT                                                       \
    {                                                                          \
        sizeof(struct idem_filter), 0, false, true, {NULL, 0}, 0, false,       \
            false, false                                                       \
    }

/* True if @record is completed, and its result tells of a failure: an exit status
 * other than 0 or a signal, as `idem run` records them, or an HTTP status of 500 or
 * above, and the table of its front end did not name that complete. Such an outcome is replayed like any other, and waits for nobody. */
bool idem_outcome_failed(const struct idem_record *record);

/* True if @record is completed, and a success: with exit status 0, an HTTP status of 2xx
 * or no status at all, or as an ending that the table of its front end names complete
 * (<idem/outcome.h>). An answer of HTTP 404 is neither that nor a failure. */
bool idem_outcome_succeeded(const struct idem_record *record);

/* Called for each record, which is valid during the call only. Answer 0 to go
 * on, anything else to stop. With @code other than 0 the record could not be
 * read (IDEM_ECORRUPT); only its id, scope and key are set. */
typedef int idem_list_fn(void *ctx, int code, const struct idem_record *record);

/* Calls @each for the records that @filter lets through, without results and
 * inputs. Holds nothing locked between pages: a record that changes meanwhile
 * may be seen in either state, or twice. @each must not call the library.
 * *@ret_now_ms (may be NULL) is the store's time.
 *
 * IDEM_EINVALID, IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_list(struct idem_store *store, const struct idem_filter *filter,
              idem_list_fn *each, void *ctx, int64_t *ret_now_ms,
              struct idem_error *ret_error);

/* With its zero byte. */
#define IDEM_PLACE_MAX 512

/* How far a list has come. Begin with IDEM_PAGE_INIT, and pass it on from page to
 * page; @place alone goes on with a list in another process. */
struct idem_page {
    size_t size;       /* sizeof, set by IDEM_PAGE_INIT. */
    uint64_t look_max; /* A page ends after about so many records that were
                          looked at, shown or not; 0: at the end of the list. */
    char place[IDEM_PLACE_MAX]; /* Where the list goes on: letters, digits, "-"
                                   and "_"; "" before the first page. */
    bool done;                  /* The end was reached. */
    uint64_t looked;            /* Records looked at, on all pages so far. */
    int64_t now_ms;             /* The store's time. */
};
#define IDEM_PAGE_INIT                                                         \
    {                                                                          \
        sizeof(struct idem_page), 0, {0}, false, 0, 0                          \
    }

/* The next page of a list: as idem_list(), from @page->place on, until
 * @filter->max records were shown, @each stops it, or page->look_max or the end is
 * reached. The place is that after the last record that was shown; it holds while
 * records come and go, also if that record goes. A record that is there from the
 * first page to the last, and keeps its status, is shown once.
 *
 * IDEM_EINVALID  Likewise; or @page->place is not that of a list with this filter.
 * IDEM_EUNAVAILABLE, IDEM_ENOMEM
 */
int idem_list_page(struct idem_store *store, const struct idem_filter *filter,
                   idem_list_fn *each, void *ctx, struct idem_page *page,
                   struct idem_error *ret_error);

enum idem_resolve_flag {
    /* Although the lease of an owner still runs: it may be at work, also after
     * another has started. */
    IDEM_RESOLVE_FORCE = 1,
};

/* Decides for a record that is failed, unknown, to be run again, or in progress
 * while its lease is over or has no end; by IDEM_RESOLVE_FORCE in @flags also while
 * the lease runs, which being overdue does not allow. A record that a person completed or
 * released may be corrected while nobody has started since. A decision about a
 * decision raises the fence by one; the history keeps what it replaced. @outcome's status may be
 * COMPLETED, FAILED or RELEASED, its text is the reason. @who is recorded.
 * The record must still have @fence. Durable when it answers 0; the same decision
 * by the same person again answers 0 again, unless it has raised the fence: read the
 * record before you repeat a decision about a decision. The former owner can no
 * longer change the record.
 *
 * IDEM_ENOTFOUND  The record does not exist.
 * IDEM_ELOST      Its fence is another one now, perhaps by this very decision: look
 *                 again.
 * IDEM_EINVALID   Its owner completed or released it, or the lease of its owner
 *                 runs.
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_resolve(struct idem_store *store, struct idem_slice scope,
                 struct idem_slice key, uint64_t fence, struct idem_slice who,
                 const struct idem_outcome *outcome, unsigned flags,
                 struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Lets the work of a record that is completed, failed or unknown be run again, or
 * of one in progress that idem_resolve() would take without a flag. Its result is
 * dropped and its fingerprint with it, as the mended request may be another one:
 * so idem_retry() lets the same request run again, and this one any request;
 * its history keeps who reopened it and what it was. It never expires. The next
 * begin starts as a takeover and gives the record its fingerprint. @who and @reason
 * are recorded; fence, durability and repetition are as with idem_resolve().
 *
 * IDEM_ENOTFOUND  The record does not exist.
 * IDEM_ELOST      Its fence is another one now: look again.
 * IDEM_EINVALID   It is released or reopened already, or the lease of its owner
 *                 runs.
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_reopen(struct idem_store *store, struct idem_slice scope,
                struct idem_slice key, uint64_t fence, struct idem_slice who,
                struct idem_slice reason, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* Adds a record from another store (or a copy of this one) as it is: status,
 * owner's nonce, fence, times and all. Every member of @record must be set as
 * idem_get() sets it. A record that is already there, and
 * is not past its retention, stays: *@ret_added (may be NULL) is false then. One
 * that was released gives way to one with a higher fence.
 *
 * IDEM_EINVALID  @record is not one that a store could hold, or its fence leaves no
 *                room for greater ones (2^61 or more).
 * IDEM_EUNAVAILABLE, IDEM_EUNKNOWN, IDEM_EFULL, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_import(struct idem_store *store, const struct idem_record *record,
                bool *ret_added, struct idem_error *ret_error)
    __attribute__((warn_unused_result));

/* How often things happened since the store was made, in all processes that use
 * it, as their callers were answered. */
struct idem_counters {
    size_t size;        /* sizeof, set by IDEM_COUNTERS_INIT. */
    uint64_t started;   /* Claims that were STARTED. */
    uint64_t takeovers; /* Of these, with attempt->takeover. */
    uint64_t completed; /* Attempts that ended so ... */
    uint64_t failed;    /* ... with those that were given up or used up their
                           failures_max ... */
    uint64_t unknown;   /* ... with those whose lease ended under IDEM_HOLD. */
    uint64_t released;
    uint64_t replayed;
    uint64_t busy; /* A caller that waits counts once. */
    uint64_t mismatch;
    uint64_t lost;     /* Verbs of owners that were answered IDEM_ELOST. */
    uint64_t resolved; /* Decisions by persons, with those to reopen; they
                          count nowhere else. */
    uint64_t purged;   /* Records. */
    uint64_t retried;  /* Attempts that ended in a retry, to be run again. */
};
#define IDEM_COUNTERS_INIT                                                     \
    {                                                                          \
        sizeof(struct idem_counters), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0    \
    }

/* Reads the counters. Start *@ret_counters from IDEM_COUNTERS_INIT.
 *
 * They are kept in the store, but written less often than records, so that
 * counting costs nothing: another process sees those of a busy one a second late,
 * and those of one that only reads when it closes its store. A process that is
 * killed, or a power cut, takes what was not written with it. Nothing is decided
 * by them. Copies of a request that was applied before are not counted, nor is
 * what a read-only handle, or idem_sqlite_begin_in() and its kin, did.
 *
 * IDEM_EINVALID   Its size is not set.
 * IDEM_ENOTFOUND  The store keeps none: it is an application's database.
 * IDEM_EUNAVAILABLE, IDEM_ECORRUPT, IDEM_ENOMEM
 */
int idem_count(struct idem_store *store, struct idem_counters *ret_counters,
               struct idem_error *ret_error);

/* Deletes records past their retention, at most @max of them (0: all), in slices
 * that each hold the store's lock for less than 100 ms. Their space is used
 * again. A live lease, an unexpired result and what failed or is unknown are
 * never touched; fences keep growing over what was deleted.
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
