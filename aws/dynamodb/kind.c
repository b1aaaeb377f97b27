/* The kind of the store, by which idem_open() finds it. */

#include "contract/kind.h"

#include <idem/dynamodb.h>

const struct idem_store_kind idem_dynamodb_kind = {
    .abi = IDEM_STORE_ABI,
    .size = sizeof(struct idem_store_kind),
    .scheme = "dynamodb",
    .example = "dynamodb://TABLE",
    .open = idem_dynamodb_open,
    .create = idem_dynamodb_create,
    .check = idem_dynamodb_check,
};
