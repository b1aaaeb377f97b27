/* The work of a store, which drive.c finds somebody for. */
#ifndef IDEM_AWS_DYNAMODB_RUN_H
#define IDEM_AWS_DYNAMODB_RUN_H

#include "aws/dynamodb/store.h"

/* The leader's: everything that can be done without waiting. Says when there is
 * more. */
int64_t idem__run_round(struct idem__dynamodb_store *store);

/* With the mutex held: no more ops are taken. Those that are paused count as queued,
 * but for as many as may send at once. */
bool idem__run_is_full(const struct idem__dynamodb_store *store);

/* Lets go of everything, when nobody leads any more. */
void idem__run_drop(struct idem__dynamodb_store *store);

#endif
