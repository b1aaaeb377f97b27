/* Recognises the writes of an op in a remote store. The answer to a write may be lost,
 * and the op then finds the record that it wrote itself. Pure. */
#ifndef IDEM_STORE_REMOTE_OWN_H
#define IDEM_STORE_REMOTE_OWN_H

#include "contract/store.h"

/* True if the lease in @record, which @op claimed by @decision, ends earlier in the
 * store's time than the owner counts on, because a slow clock made the claim. The caller
 * extends it before the owner gets the answer, whether the write was answered or the
 * claim was read back. */
bool idem__own_claim_is_short(const struct idem_op *op,
                              const struct idem_decision *decision,
                              const struct idem_record *record,
                              const struct idem_now *now);

/* Sets @op's fence to the fence of the claim that @decision makes, or finds in @found, so
 * that the claim can be released if its caller has gone. A claim that is ended in the
 * same write needs no release. */
void idem__own_claim_note(struct idem_op *op, const struct idem_record *found,
                          const struct idem_decision *decision);

/* True if @found is the record that the import @op added, and whose answer was lost. */
bool idem__own_import(const struct idem_op *op,
                      const struct idem_record *found);

/* The code to answer when @code stopped an op. If a write of the op may have been applied
 * (@ambiguous), the code must not mean that nothing was done. */
int idem__own_code(int code, bool ambiguous);

/* ---- A write that was not answered, and may still be applied ----
 *
 * Such a write is conditional on the record that was found, so the service can still
 * apply it while that record is unchanged. Meanwhile the service's clock may be set back.
 * A record whose lease had ended when the write was decided is then in progress again,
 * and an answer that rests on that would be wrong once the write is applied. The op keeps
 * the note, because its caller may submit it again. */

/* Notes a write that changes the record with @head. Two kinds of writes need no note: one
 * that adds a record, because no found record could answer the op instead, and one that
 * extends a claim of @op, which owns the key in any case. Returns 0 or IDEM_ENOMEM. */
int idem__pending_note(struct idem_op *op, struct idem_slice head);

/* True if the noted write of @op can still be applied to the record with @head, which was
 * just read. Also true if memory runs out. */
bool idem__pending_holds(const struct idem_op *op, struct idem_slice head);

#endif
