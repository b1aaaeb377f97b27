/* Are there parts of bodies in the table that belong to no record? */
#ifndef IDEM_AWS_DYNAMODB_TABLE_CHECK_BODIES_H
#define IDEM_AWS_DYNAMODB_TABLE_CHECK_BODIES_H

#include "aws/dynamodb/table/table_check.h"
#include "aws/dynamodb/store.h"

/* Tells what it finds. It reads the table, unless @options are quick; @items is how
 * many are in it, as the service last counted, or 0. IDEM_ENOMEM. */
int idem__check_bodies(const struct idem__table_check *table,
                       struct idem__dynamodb_store *store,
                       const struct idem_check_options *options,
                       const char *place, uint64_t items,
                       struct idem_error *ret_error);

#endif
