/* What the decisions share. The decisions themselves: <idem/store.h>. */
#ifndef IDEM_CORE_DECIDE_H
#define IDEM_CORE_DECIDE_H

#include <idem/store.h>

/* How long the lease of @record still runs; 0: it is over. IDEM_NEVER. */
int64_t idem__lease_left(const struct idem_record *record,
                         const struct idem_now *now);

/* Sets the end of @record's lease to @lease_ms from @now, and what follows from
 * it. */
void idem__lease_set(struct idem_record *record, int64_t lease_ms,
                     const struct idem_now *now);

/* Likewise, but never to an earlier end than it has. */
void idem__lease_extend(struct idem_record *record, int64_t lease_ms,
                        const struct idem_now *now);

/* Ends it now, so that it is over by every clock. */
void idem__lease_end(struct idem_record *record, const struct idem_now *now);

/* Puts the attempt that @record holds at the head of its history. */
void idem__history_push(struct idem_record *record, struct idem_slice owner,
                        int64_t ended_ms, enum idem_past_end end);

/* Makes @record's status that of @outcome, with its result and texts; sets
 * ended and expires. 0 or IDEM_ENOMEM. */
int idem__outcome_set(struct idem_record *record,
                      const struct idem_outcome *outcome,
                      const struct idem_now *now);

/* True if @found already says what @outcome says; @digest is that of its result. */
bool idem__already_said(const struct idem_record *found,
                        const struct idem_outcome *outcome,
                        const uint8_t digest[16]);

/* Refuses: sets code and sentence of @decision. */
void idem__refuse(struct idem_decision *decision, int code, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));

#endif
