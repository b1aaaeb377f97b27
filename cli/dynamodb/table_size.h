/* table_size.h: how large a DynamoDB table is, for dry runs. */
#ifndef IDEM_CLI_DYNAMODB_TABLE_SIZE_H
#define IDEM_CLI_DYNAMODB_TABLE_SIZE_H

#include <idem.h>
#include <idem/dynamodb.h>

/* True: @store is a table. */
bool cli_is_table(const struct idem_store *store);

/* The part of @url after "dynamodb:"; NULL if it is not the URL of a table. */
const char *cli_table_place(const char *url);

/* By one request that costs no units. The service counts anew about every six hours:
 * 0 items may be many. An enum idem_code, with @ret_error. */
int cli_table_size(const char *place, struct idem_dynamodb_extent *ret_size,
                   struct idem_error *ret_error);

#endif
