/* index.h: which lists an index of the store serves. */
#ifndef IDEM_CLI_STORE_INDEX_H
#define IDEM_CLI_STORE_INDEX_H

#include <idem/operator.h>

/* An index finds the records of @filter, in an order of its own, where a store has one. */
bool cli_index_serves(const struct idem_filter *filter);

#endif
