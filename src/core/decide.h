/* Parts that the decisions share. The decisions themselves: "contract/store.h". */
#ifndef IDEM_CORE_DECIDE_H
#define IDEM_CORE_DECIDE_H

#include "contract/store.h"

/* True if the lease of @record is counted by the boot clock of this host. */
bool idem__is_counted_here(const struct idem_record *record,
                           const struct idem_now *now);

/* How long the lease of @record still runs; 0: it is over. IDEM_NEVER. */
int64_t idem__lease_left(const struct idem_record *record,
                         const struct idem_now *now);

/* When a record is due, by which stores order their records: the end of its lease while
 * it is in progress, else the end of its retention. IDEM_NEVER: never. */
int64_t idem__deadline(const struct idem_record *record);

/* Sets the end of @record's lease to @lease_ms from @now, and the expiry that follows
 * from it. */
void idem__lease_set(struct idem_record *record, int64_t lease_ms,
                     const struct idem_now *now);

/* Does the same, but never moves the end to an earlier time. */
void idem__lease_extend(struct idem_record *record, int64_t lease_ms,
                        const struct idem_now *now);

/* Ends it now, so that it is over by every clock. */
void idem__lease_end(struct idem_record *record, const struct idem_now *now);

/* True if the end of @found's lease lies further away than its length and the
 * error of any clock allow: a clock that was wrong has written it. Sets it to what
 * they allow. */
bool idem__lease_bound(struct idem_record *record, const struct idem_now *now);

/* The fence of the newest attempt of this life that may have done the work and that no
 * person has decided since; 0: there is none. */
uint64_t idem__in_doubt(const struct idem_record *record);

/* @ms, but not before any time of @record's newest attempt: hosts do not agree on the
 * time to the millisecond. */
int64_t idem__not_before(const struct idem_record *record, int64_t ms);

/* Puts the attempt that @record holds at the head of its history. */
void idem__history_push(struct idem_record *record, struct idem_slice owner,
                        int64_t ended_ms, enum idem_past_end end);

/* Puts a decision of @who there, with what it replaces. If it replaces another
 * decision, raises @record's fence, so that a late copy of that one finds another fence
 * than it names. */
void idem__history_decide(struct idem_record *record, struct idem_slice who,
                          const struct idem_now *now, enum idem_past_end end);

/* Gives @record the status of @outcome, with its result and texts; sets ended and
 * expires. After IDEM_STATUS_RETRY the record must run again, and its lease is the
 * pause until then. 0 or IDEM_ENOMEM. */
int idem__outcome_set(struct idem_record *record,
                      const struct idem_outcome *outcome,
                      const struct idem_now *now);

/* Leaves @record without result and texts. */
void idem__result_clear(struct idem_record *record);

/* True if @record is as a person decided, and nobody has started it since. */
bool idem__is_decided(const struct idem_record *record);

/* True if a person reopened @record and nobody has started it since. */
bool idem__is_reopened(const struct idem_record *record);

/* True if the work may have been done in a past attempt with this @end. */
bool idem__tells_of_work(enum idem_past_end end);

/* True if @outcome is on record in @found already; @digest is that of its result. */
bool idem__already_said(const struct idem_record *found,
                        const struct idem_outcome *outcome,
                        const uint8_t digest[16]);

/* Reopens; see idem__decide_resolve(). */
void idem__decide_reopen(const struct idem_record *found,
                         const struct idem_op *op, const struct idem_now *now,
                         struct idem_decision *decision);

/* Changes @found for a store time that is set back to @now: none of its times is later,
 * its lease ends one lease length from now at most, and it is kept for a whole
 * retention. No change if all its times are earlier anyway. */
void idem__decide_clock_back(const struct idem_record *found,
                             const struct idem_now *now,
                             struct idem_decision *ret_decision);

/* True if @found is still the attempt that the person saw; else refuses with
 * LOST. */
bool idem__is_seen(const struct idem_record *found, const struct idem_op *op,
                   struct idem_decision *decision);

/* True if @found is in progress under a lease that runs: its owner may be at work,
 * however late it is. A lease without an end does not count: it shows nothing about the
 * owner. */
bool idem__is_live(const struct idem_record *found, const struct idem_now *now);

/* Refuses a person's decision about an attempt whose lease runs; @mend is the
 * remedy. */
void idem__refuse_live(struct idem_decision *decision,
                       const struct idem_record *found,
                       const struct idem_now *now, const char *mend);

/* True if decision->next has a fence that no record can have, and is refused for it. */
bool idem__refuse_fence(struct idem_decision *decision);

/* Refuses: sets code and sentence of @decision. */
void idem__refuse(struct idem_decision *decision, int code, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));

#endif
