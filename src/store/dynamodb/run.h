/* The work of a store, which drive.c finds somebody for. */
#ifndef IDEM_STORE_DYNAMODB_RUN_H
#define IDEM_STORE_DYNAMODB_RUN_H

#include "store/dynamodb/store.h"

/* The leader's: everything that can be done without waiting. Says when there is
 * more. */
int64_t idem__run_round(struct idem__dynamodb_store *store);

/* Lets go of everything, when nobody leads any more. */
void idem__run_drop(struct idem__dynamodb_store *store);

#endif
