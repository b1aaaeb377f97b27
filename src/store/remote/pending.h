/* A write of an op that was not answered, and may be done yet: it changes a record as it
 * was found, so it can be done for as long as that is there.
 *
 * The service's clock may be set back meanwhile. Then a record whose lease was over when
 * the write was decided is in progress again, and an answer that rests on that would be
 * wrong once the write is done. The op carries it, for its caller may ask once more. */
#ifndef IDEM_STORE_REMOTE_PENDING_H
#define IDEM_STORE_REMOTE_PENDING_H

#include "contract/store.h"

/* The write changes the record that has @head. Two are not noted: one that adds a record,
 * for it changes none that is found instead, and one that extends a claim of @op, which
 * has it in any case. Returns 0 or IDEM_ENOMEM. */
int idem__pending_note(struct idem_op *op, struct idem_slice head);

/* True if a write of @op can still be done, now that @head was read. Where memory runs
 * out it is taken to be possible. */
bool idem__pending_holds(const struct idem_op *op, struct idem_slice head);

#endif
