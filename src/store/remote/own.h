/* An op of a remote store recognises its own writes: the answer to a write may be lost,
 * and then the op finds the record that it wrote. Pure. */
#ifndef IDEM_STORE_REMOTE_OWN_H
#define IDEM_STORE_REMOTE_OWN_H

#include "contract/store.h"

/* True if @record, which @op claimed by @decision, ends sooner in the store's time than
 * its owner counts, because a slow clock made it. It is extended before the owner hears
 * of it, whether the answer came or the claim was read back. */
bool idem__own_claim_is_short(const struct idem_op *op,
                              const struct idem_decision *decision,
                              const struct idem_record *record,
                              const struct idem_now *now);

/* Sets @op's fence to that of the claim that @decision makes, or finds in @found, so
 * that the claim can be released if its caller has gone. A claim that is ended in the
 * same write leaves nothing to release. */
void idem__own_claim_note(struct idem_op *op, const struct idem_record *found,
                          const struct idem_decision *decision);

/* True if @found is the record that the import @op added; its answer was lost. */
bool idem__own_import(const struct idem_op *op,
                      const struct idem_record *found);

/* The code to answer when @code stopped an op. Once a write of it may have been applied
 * (@ambiguous), the code must not mean that nothing was done. */
int idem__own_code(int code, bool ambiguous);

/* ---- A write that was not answered, and may be done yet ----
 *
 * The write changes the record that was found, so the service can still apply it as
 * long as that record is there. The service's clock may be set back meanwhile. Then a
 * record whose lease was over when the write was decided is in progress again, and an
 * answer that rests on that would be wrong once the write is applied. The op carries
 * the note, because its caller may submit it once more. */

/* Notes a write that changes the record with @head. Two kinds of writes need no note:
 * one that adds a record, because it changes none that is found instead, and one that
 * extends a claim of @op, which owns the key in any case. Returns 0 or IDEM_ENOMEM. */
int idem__pending_note(struct idem_op *op, struct idem_slice head);

/* True if a write of @op can still be applied, now that @head was read; also if memory
 * runs out. */
bool idem__pending_holds(const struct idem_op *op, struct idem_slice head);

#endif
