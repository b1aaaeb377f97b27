/* Functions that the decide_*.c files share. "contract/store.h" declares the
 * decisions. */
#ifndef IDEM_CORE_DECIDE_H
#define IDEM_CORE_DECIDE_H

#include "contract/store.h"

/* True if this boot of this host set the lease of @record, so that the boot clock
 * measures it. */
bool idem__is_counted_here(const struct idem_record *record,
                           const struct idem_now *now);

/* The time left on @record's lease: 0 once it has ended, IDEM_NEVER if it has no end. */
int64_t idem__lease_left(const struct idem_record *record,
                         const struct idem_now *now);

/* The time at which @record is next due: the end of its lease while it is in progress,
 * afterwards the end of its retention. Stores order their records by it. IDEM_NEVER:
 * never. */
int64_t idem__deadline(const struct idem_record *record);

/* Sets the end of @record's lease to @lease_ms from @now, and the expiry that follows
 * from it. */
void idem__lease_set(struct idem_record *record, int64_t lease_ms,
                     const struct idem_now *now);

/* Does the same, but never moves the end to an earlier time. */
void idem__lease_extend(struct idem_record *record, int64_t lease_ms,
                        const struct idem_now *now);

/* Ends @record's lease now, by the clock of every host and boot. */
void idem__lease_end(struct idem_record *record, const struct idem_now *now);

/* Shortens @record's lease if its end is later than its length and the error of any clock
 * allow, which means that a wrong clock wrote it. True if it was shortened. */
bool idem__lease_bound(struct idem_record *record, const struct idem_now *now);

/* The fence of the newest attempt of this life that may have done the work and that no
 * person has decided on since. 0: none. */
uint64_t idem__in_doubt(const struct idem_record *record);

/* Returns @ms, or the latest time of @record's newest attempt if that is later: the
 * clocks of two hosts may differ by milliseconds. */
int64_t idem__not_before(const struct idem_record *record, int64_t ms);

/* Pushes the current attempt of @record onto its history, which has the newest entry
 * first. */
void idem__history_push(struct idem_record *record, struct idem_slice owner,
                        int64_t ended_ms, enum idem_past_end end);

/* Pushes a decision of @who onto the history, with the status, metadata and text that it
 * replaces. If it replaces an earlier decision, raises @record's fence: a late copy of
 * that decision then names an old fence, and is refused. */
void idem__history_decide(struct idem_record *record, struct idem_slice who,
                          const struct idem_now *now, enum idem_past_end end);

/* Records @outcome in @record: status, result, texts, end and expiry. IDEM_STATUS_RETRY
 * leaves the record in progress, with the pause before the next attempt as its lease. 0
 * or IDEM_ENOMEM. */
int idem__outcome_set(struct idem_record *record,
                      const struct idem_outcome *outcome,
                      const struct idem_now *now);

/* Clears the result and the texts of @record. */
void idem__result_clear(struct idem_record *record);

/* True if a person decided @record and no attempt has started since. */
bool idem__is_decided(const struct idem_record *record);

/* True if a person reopened @record and no attempt has started since. */
bool idem__is_reopened(const struct idem_record *record);

/* True if the work may have been done in a past attempt with this @end. */
bool idem__tells_of_work(enum idem_past_end end);

/* True if @found already records @outcome. @digest is the digest of @outcome's result. */
bool idem__already_said(const struct idem_record *found,
                        const struct idem_outcome *outcome,
                        const uint8_t digest[16]);

/* Decides a reopen. The caller, idem__decide_resolve(), has checked that @found is there
 * and has not expired. */
void idem__decide_reopen(const struct idem_record *found,
                         const struct idem_op *op, const struct idem_now *now,
                         struct idem_decision *decision);

/* Adapts @found to a store time that a person has set back to @now: none of its times is
 * later than @now, its lease ends at most one lease length from now, and it is kept for a
 * whole retention. No change if it was created, started and ended before @now anyway. */
void idem__decide_clock_back(const struct idem_record *found,
                             const struct idem_now *now,
                             struct idem_decision *ret_decision);

/* True if @found still has the fence that the person saw; else refuses with LOST. */
bool idem__is_seen(const struct idem_record *found, const struct idem_op *op,
                   struct idem_decision *decision);

/* True if @found is in progress and its lease has not ended: its owner may be working,
 * even if the work is overdue. A lease without an end does not count, because it shows
 * nothing about the owner. */
bool idem__is_live(const struct idem_record *found, const struct idem_now *now);

/* Refuses a person's decision about an attempt whose lease has not ended; @mend is the
 * remedy. */
void idem__refuse_live(struct idem_decision *decision,
                       const struct idem_record *found,
                       const struct idem_now *now, const char *mend);

/* True if the fence of decision->next is higher than a record may have; @decision then
 * refuses. */
bool idem__refuse_fence(struct idem_decision *decision);

/* Turns @decision into a refusal with @code and a sentence, and drops its change. */
void idem__refuse(struct idem_decision *decision, int code, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));

#endif
