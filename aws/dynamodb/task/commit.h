/* A caller's own writes, in one transaction with a record. Pure but for memory. */
#ifndef IDEM_AWS_DYNAMODB_TASK_COMMIT_H
#define IDEM_AWS_DYNAMODB_TASK_COMMIT_H

#include "aws/dynamodb/layout/item.h"

/* Checks that @commit's writes are entries of TransactItems, as many as it says,
 * and forgets an earlier answer. The service judges what is in them.
 *
 * IDEM_EINVALID, IDEM_ENOMEM
 */
int idem__commit_check(struct idem_commit *commit,
                       struct idem_error *ret_error);

/* Makes @decision on @found (NULL: nothing there) that of @op with its writes: a
 * claim becomes one that is completed already; what is on record already is known
 * as committed if these writes were. May set decision->code. */
void idem__commit_decide(struct idem_op *op, const struct idem__item *found,
                         const struct idem_now *now,
                         struct idem_decision *decision);

/* True if @decision's change is written in one transaction with the writes. */
bool idem__commit_transacts(const struct idem_op *op,
                            const struct idem_decision *decision);

#endif
