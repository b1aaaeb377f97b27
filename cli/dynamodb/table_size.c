/* How large a DynamoDB table is. */
#include "dynamodb/table_size.h"

#define SCHEME "dynamodb:"

const char *cli_table_place(const char *url)
{
    size_t len = strlen(SCHEME);

    return url != NULL && strncmp(url, SCHEME, len) == 0 ? url + len : NULL;
}

bool cli_is_table(const struct idem_store *store)
{
    return cli_table_place(idem_store_url(store)) != NULL;
}

int cli_table_size(const char *place, struct idem_dynamodb_extent *ret_size,
                   struct idem_error *ret_error)
{
    *ret_size = (struct idem_dynamodb_extent)IDEM_DYNAMODB_EXTENT_INIT;
    return idem_dynamodb_size(place, ret_size, ret_error);
}
