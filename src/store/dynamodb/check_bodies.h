/* Are there parts of bodies in the table that belong to no record? */
#ifndef IDEM_STORE_DYNAMODB_CHECK_BODIES_H
#define IDEM_STORE_DYNAMODB_CHECK_BODIES_H

#include "store/dynamodb/judge.h"
#include "store/dynamodb/store.h"

/* Tells what it finds. It reads the table, for a few seconds at most. */
void idem__check_bodies(const struct idem__judge *judge,
                        struct idem__dynamodb_store *store);

#endif
