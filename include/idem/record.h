/* record.h: the record of an operation, which each attempt carries; <idem.h> includes
 * it. */
#ifndef IDEM_RECORD_H
#define IDEM_RECORD_H

#include <idem/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum idem_status {
    IDEM_STATUS_IN_PROGRESS = 1,
    IDEM_STATUS_COMPLETED = 2,
    IDEM_STATUS_FAILED = 3,
    IDEM_STATUS_UNKNOWN = 4,
    IDEM_STATUS_RELEASED = 5,
    /* Only in an outcome, a filter and idem_record_status(): a stored record is
     * IN_PROGRESS with retry set. (6 and 7 are verdicts.) */
    IDEM_STATUS_RETRY = 8,
};

/* The policy for a record whose lease ended before its owner reported an outcome. */
enum idem_on_expired_lease {
    IDEM_ON_EXPIRED_UNSET = 0, /* idem_begin() answers IDEM_EINVALID. */
    IDEM_RERUN = 1,            /* The next caller runs the work again. */
    IDEM_HOLD = 2,             /* It becomes unknown: a person must look. */
};

/* The outcome of completed work, which a replay returns byte for byte. */
struct idem_result {
    struct idem_slice bytes;        /* At most IDEM_RESULT_MAX. */
    struct idem_slice content_type; /* At most 255 bytes; may be empty. */
    struct idem_slice meta;         /* At most IDEM_META_MAX, in a format of
                                       your choice. <idem/form.h> describes the
                                       format of the front ends. */
    bool not_kept; /* A tombstone: done, but the bytes were not kept. */
};

/* How an earlier attempt of the record ended. */
enum idem_past_end {
    IDEM_PAST_RELEASED = 1,
    IDEM_PAST_TAKEN_OVER = 2, /* Its lease ended, and another attempt
                                 followed. */
    IDEM_PAST_RESOLVED = 3,   /* A person decided; the owner is that person. */
    IDEM_PAST_RETRIED = 4,    /* Its owner requested another run. */
    IDEM_PAST_REOPENED = 5,   /* A person, the owner here, requested another
                                 run. */
};

struct idem_past {
    struct idem_slice owner;
    uint64_t fence;
    int64_t started_ms;
    int64_t ended_ms;
    enum idem_past_end end;
    /* RESOLVED and REOPENED: the record before that decision. Else 0 and empty. */
    enum idem_status was;
    struct idem_slice meta; /* The first line of its result's metadata, cut
                               after IDEM_PAST_META_MAX bytes: "exit 3". */
    struct idem_slice text; /* Its error or its note, cut after
                               IDEM_PAST_TEXT_MAX bytes. */
};

/* A record. Read-only; its slices belong to the attempt, op or answer that holds it. */
struct idem_record {
    struct idem_slice scope;
    struct idem_slice key;
    uint8_t id[IDEM_ID_LEN]; /* idem_id() of scope and key. */
    enum idem_status status;
    enum idem_on_expired_lease on_expired_lease;
    struct idem_slice owner;       /* For people. */
    struct idem_slice traceparent; /* From the caller that started the attempt;
                                      see struct idem_request. May be empty. */
    uint64_t fence;                /* Grows with every attempt of the key. */
    uint32_t attempts;             /* How many times work started. */
    uint32_t retried;              /* How many of them do not count towards
                                      attempts_max: those that ended with
                                      idem_retry() or idem_release(), and all
                                      before a person decided. */
    uint32_t failures;    /* How many ended with idem_retry() in this life,
                             since a person last decided. */
    int64_t created_ms;   /* First claim. */
    int64_t started_ms;   /* This attempt. */
    int64_t lease_ms;     /* Length; IDEM_NEVER: it does not end. If retry is
                             set, the pause before the next attempt; 0: none. */
    int64_t lease_end_ms; /* IDEM_NEVER: it does not end. */
    int64_t expected_ms;  /* Overdue after this; 0: never. */
    int64_t ended_ms;     /* End of work; 0: not ended. */
    int64_t expires_ms;   /* End of retention; IDEM_NEVER: no end. */
    int64_t retention_ms; /* The longest that was requested in this life. */
    struct idem_slice fingerprint; /* Empty: not checked. */
    struct idem_result result;     /* In progress: the result of the newest
                                      attempt that ended with idem_retry(). A
                                      list and a takeover leave out its bytes
                                      ... */
    uint64_t result_len;           /* ... and this gives their number. */
    struct idem_slice error;       /* Of failed work. */
    struct idem_slice note;        /* Of unknown, released, resolved, retry. */
    bool by_lease; /* Unknown, or failed ("gave up"), because the lease ended
                      before its owner reported an outcome. */
    uint64_t
        in_doubt; /* Fence of an attempt of this life that may have done the
                     work without recording an outcome, as long as no person has
                     decided; 0: there is no such attempt, or it is in the
                     history. */
    bool retry;   /* In progress, but the attempt is over: the next begin starts
                     as a takeover, after the pause. */
    struct idem_slice input; /* Comes without its bytes in a list, after a
                                takeover, and after the functions that end an
                                attempt. */
    uint64_t input_len;
    struct idem_past history[IDEM_HISTORY_MAX]; /* Newest first. */
    size_t history_len;
    bool overdue; /* Set only by idem_get() and idem_list(): in progress, and
                     late by the store's own clock. */

    /* For stores: the credential of the attempt, and the boot on which its lease was
     * counted. */
    uint8_t nonce[16];
    uint8_t boot_id[16];

    bool live; /* For callers, like overdue: in progress, and its lease has an
                  end and still runs, so its owner may be at work. */

    /* For stores again. */
    int64_t lease_end_boot_ms;
    uint8_t result_digest[16];
    uint8_t input_digest[16];
    struct idem_slice unknown_fields; /* From a later minor version; a store
                                         keeps them. */
};

/* Returns "in_progress", "completed", "failed", "unknown", "released" or "retry"; NULL
 * for any other number. */
const char *idem_status_name(enum idem_status status);

/* Returns the status that the commands show: IDEM_STATUS_RETRY if @record->retry is
 * set, else @record->status. */
enum idem_status idem_record_status(const struct idem_record *record);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
