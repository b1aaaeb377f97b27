/* The claims that this handle made and has not ended: their items as they were
 * last written, so that an owner ends its attempt in one request.
 *
 * Nothing relies on it. An item that is found here is written over only on
 * condition that it is still the same; what is not found is read first. */
#ifndef IDEM_AWS_DYNAMODB_TASK_CLAIMS_H
#define IDEM_AWS_DYNAMODB_TASK_CLAIMS_H

#include "aws/dynamodb/layout/item.h"

struct idem__claims;

/* NULL: no memory. */
struct idem__claims *idem__claims_create(void);
void idem__claims_destroy(struct idem__claims *claims);

/* Remembers @item, whose head is @head, unless it is large; forgets the oldest
 * claim where there are too many. */
void idem__claims_put(struct idem__claims *claims,
                      const struct idem__item *item, struct idem_slice head);

/* The item of (@id, @nonce, @fence), if it is remembered: its slices point into
 * @memory. */
bool idem__claims_get(struct idem__claims *claims, const struct idem_op *op,
                      struct idem__buffer *memory, struct idem__item *ret_item);

void idem__claims_forget(struct idem__claims *claims,
                         const uint8_t id[IDEM_ID_LEN]);

#endif
