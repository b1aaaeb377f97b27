/* Records, claims and moments that tests begin with and then change. */
#ifndef TEST_SAMPLE_H
#define TEST_SAMPLE_H

#include "contract/store.h"

#include <idem/limit.h>

/* Store time and boot clock of sample_now(), whose boot id is sixteen 'A'. */
#define NOW_MS 1700000000000
#define NOW_BOOT_MS 5000000

struct idem_now sample_now(void);

/* The statuses that an attempt can end with. */
enum {
    SAMPLE_ENDS = 5
};
extern const enum idem_status sample_ends[SAMPLE_ENDS];

/* In progress for ten seconds, under IDEM_HOLD, its lease of a minute counted
 * by the clocks of sample_now(); fence 41, nonce sixteen 'n', no fingerprint. */
struct idem_record sample_record(void);

/* One that its owner ended with idem_retry() five seconds ago. */
struct idem_record sample_retry(void);

/* The same in another status, ended five seconds ago, with @retention_ms where
 * that status expires. Completed: its result is sample_result(). */
struct idem_record sample_ended(enum idem_status status, int64_t retention_ms);

/* Every member at its largest: texts of full length, eight past attempts. */
struct idem_record sample_largest(void);

/* Every member that may be empty is empty. */
struct idem_record sample_smallest(void);

/* Sets lease_end_ms and lease_end_boot_ms to @left_ms from sample_now(). */
void sample_lease(struct idem_record *record, int64_t left_ms);

/* A claim of the sample record's key with nonce sixteen 'm', under IDEM_HOLD. */
struct idem_op sample_begin(void);

/* The end of the sample record's attempt: completed with sample_result(). */
struct idem_op sample_end(void);

/* A person's decision about the sample record: failed, for a reason. */
struct idem_op sample_resolve(void);

/* Request "r1" of "u1" in "uploads", at LIMIT_AT_MS, 2017-11-07T15:15:04.370Z, a Tuesday; eight
 * in a day. */
#define LIMIT_AT_MS 1510067704370LL
struct idem_limit_request sample_limit(void);

/* Returns the decision of @op about @found (NULL: there is no record) at @now (NULL: at
 * sample_now()). Its note is valid until the next call. */
struct idem_decision sample_decide(const struct idem_record *found,
                                   const struct idem_op *op,
                                   const struct idem_now *now);

/* "done" as text/plain with some metadata. */
struct idem_result sample_result(void);

/* Fails unless the two records have the same members, texts and history, but
 * for the bytes of result and input. */
void assert_same_record(const struct idem_record *a,
                        const struct idem_record *b);

#endif
