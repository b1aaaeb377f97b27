/* How large a DynamoDB table is. */
#include "dynamodb/table_size.h"

#define SCHEME "dynamodb:"

enum {
    UNIT = 4096, /* Bytes that are read for one unit, strongly. */
};

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

static uint64_t units(uint64_t bytes, uint64_t each)
{
    return bytes / each + 1;
}

uint64_t cli_table_list_units(const struct idem_dynamodb_extent *size)
{
    return units(size->bytes, UNIT);
}

uint64_t cli_table_get_units(const struct idem_dynamodb_extent *size)
{
    return size->items == 0
               ? 0
               : size->items * units(size->bytes / size->items, UNIT);
}
