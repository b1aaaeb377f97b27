/* record.h: the record of an operation, which its attempts carry; <idem.h> has it. */
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
    /* Of an outcome, a filter, and idem_record_status(). On record it is
     * IN_PROGRESS with retry set; 6 and 7 are verdicts. */
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
                                       your choice. <idem/form.h> has the one of
                                       the front ends. */
    bool not_kept; /* A tombstone: done, but the bytes were not kept. */
};

/* How an attempt ended that a newer one followed. */
enum idem_past_end {
    IDEM_PAST_RELEASED = 1,
    IDEM_PAST_TAKEN_OVER = 2, /* Its lease ended, and another attempt
                                 followed. */
    IDEM_PAST_RESOLVED = 3,   /* A person decided; the owner is that person. */
    IDEM_PAST_RETRIED = 4,    /* Its owner requested another run. */
    IDEM_PAST_REOPENED = 5,   /* A person, the owner here, requested a run. */
};

struct idem_past {
    struct idem_slice owner;
    uint64_t fence;
    int64_t started_ms;
    int64_t ended_ms;
    enum idem_past_end end;
    /* RESOLVED and REOPENED: the record until then. Else 0 and empty. */
    enum idem_status was;
    struct idem_slice meta; /* The first line of its result's metadata, at most
                               IDEM_PAST_META_MAX bytes of it: "exit 3". */
    struct idem_slice text; /* Its error or its note, at most
                               IDEM_PAST_TEXT_MAX bytes of it. */
};

/* A record. Read-only; the slices belong to whatever holds the record. */
struct idem_record {
    struct idem_slice scope;
    struct idem_slice key;
    uint8_t id[IDEM_ID_LEN]; /* idem_id() of scope and key. */
    enum idem_status status;
    enum idem_on_expired_lease on_expired_lease;
    struct idem_slice owner;       /* For people. */
    struct idem_slice traceparent; /* That of the attempt's caller; see struct
                                      idem_request. May be empty. */
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
    struct idem_result result;     /* In progress: that of the newest attempt
                                      that ended with idem_retry(). Its bytes
                                      are left out in a list and after a
                                      takeover ... */
    uint64_t result_len;           /* ... and this is their number. */
    struct idem_slice error;       /* Of failed work. */
    struct idem_slice note;        /* Of unknown, released, resolved, retry. */
    bool by_lease; /* Unknown, or failed ("gave up"), because the lease ended
                      before its owner reported an outcome. */
    uint64_t
        in_doubt; /* Fence of an attempt of this life that may have done the
                     work without recording an outcome, as long as no person has
                     decided; 0: none, or one in the history. */
    bool retry;   /* In progress, but the attempt is over: the next begin starts
                     as a takeover, after the pause. */
    struct idem_slice input; /* Its bytes are left out where those of the result
                                are, and after the functions that end an
                                attempt. */
    uint64_t input_len;
    struct idem_past history[IDEM_HISTORY_MAX]; /* Newest first. */
    size_t history_len;
    bool overdue; /* Set only by idem_get() and idem_list(): in progress, and
                     late by the store's own clock. */

    /* For stores: who may end this attempt, and proofs of the parts. */
    uint8_t nonce[16];
    uint8_t boot_id[16];

    bool live; /* For callers, like overdue: in progress, and its lease has an
                  end and still runs, so its owner may be at work. */

    /* For stores again. */
    int64_t lease_end_boot_ms;
    uint8_t result_digest[16];
    uint8_t input_digest[16];
    struct idem_slice unknown_fields; /* Of a later minor version; kept. */
};

/* "in_progress", "completed", "failed", "unknown", "released", "retry"; NULL if
 * none. */
const char *idem_status_name(enum idem_status status);

/* The status that the commands show: that of @record, or IDEM_STATUS_RETRY if retry is
 * set. */
enum idem_status idem_record_status(const struct idem_record *record);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
