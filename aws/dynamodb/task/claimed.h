/* Items of claims that this handle made, as src/store/remote remembers them. */
#ifndef IDEM_AWS_DYNAMODB_TASK_CLAIMED_H
#define IDEM_AWS_DYNAMODB_TASK_CLAIMED_H

#include "aws/dynamodb/layout/item.h"
#include "store/remote/claims.h"

/* Remembers @item, whose head is @head. */
void idem__claimed_put(struct idem__claims *claims,
                       const struct idem__item *item, struct idem_slice head);

/* The item of @op's id, nonce and fence, if it is remembered: its slices point
 * into @memory. */
bool idem__claimed_get(struct idem__claims *claims, const struct idem_op *op,
                       struct idem__buffer *memory,
                       struct idem__item *ret_item);

#endif
